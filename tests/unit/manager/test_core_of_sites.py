"""A core that has several sites: what is held of each says nothing of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.strategies.test_listing import workflows

from windrow.app.strategies import STRATEGIES
from windrow.errors import UserError
from windrow.forecast.base import Ints
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Task, Workflow
from windrow.model.cause import Cause
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.story.avoidance import FOR_S
from windrow.story.events import (
    Decide,
    JobEnded,
    JobKilled,
    JobsPlanned,
    JobStarted,
    RunBegan,
    TaskDropped,
    TaskFinished,
    TaskStarted,
)
from windrow.strategies import Decision, JobPlan, Work, whole_seconds
from windrow.strategies.levels import works
from windrow.trials.trial import run_trial

NORTH, SOUTH = (
    Site.of(4, name="north", cap=1),
    Site.of(8, name="south", cap=2, speed=2.0, max_request_s=500),
)
PAIRS = [
    Task("a", 10),
    Task("b", 10, parents=("a",)),
    Task("c", 10),
    Task("d", 10, parents=("a", "c")),
]
"""The first two are to run in the north, the others in the south."""


def no_wait(nodes: Ints, _requested_s: Ints) -> Ints:
    return nodes


def two_sites() -> Core:
    return Core(
        works(Workflow.from_tasks("pairs", PAIRS), [NORTH, SOUTH], [0, 0, 1, 1]),
        Terms(margin=1.0, round_s=1),
    )


def plan(site: str, *tasks: int) -> JobsPlanned:
    return JobsPlanned(0, Decision((JobPlan(tasks, 1, 10, 20, site=site),)), site)


def test_each_site_has_its_tasks_cap_and_times() -> None:
    core = two_sites()
    assert core.handle(RunBegan(0)) == [Decide("north"), Decide("south")]
    north, south = core.view(0, no_wait, "north"), core.view(0, no_wait, "south")
    assert (north.left.tolist(), south.left.tolist()) == (
        [True, True, False, False],
        [False, False, True, True],
    )
    assert (north.ready, south.ready) == ((0,), (2,))
    assert (north.cap, south.cap, north.request(600), south.request(600)) == (1, 2, 600, 500)
    assert (north.work.expected_s[0], south.work.expected_s[2]) == (10, 5)
    core.handle(plan("north", 0))
    assert not core.view(0, no_wait, "north").can_submit
    assert core.view(0, no_wait, "south").can_submit
    assert (list(core.own_jobs("north")), list(core.own_jobs("south"))) == ([0], [])
    assert core.handle(JobStarted(0, 0)) == []  # the cap of the north is reached
    core.handle(plan("south", 2))
    core.handle(TaskFinished(5, 2))
    assert core.handle(TaskFinished(10, 0)) == [
        Decide("south")
    ]  # where d is ready; the north waits for its job


def test_a_job_is_not_expected_to_wait_for_one_elsewhere_unless_that_makes_its_inputs() -> None:
    everywhere = np.ones((2, len(PAIRS)), dtype=bool)
    core = Core(
        works(Workflow.from_tasks("pairs", PAIRS), [NORTH, SOUTH], everywhere),
        Terms(margin=1.0, round_s=1),
    )
    for number, (site, task) in enumerate((("north", 0), ("south", 2), ("south", 1))):
        core.handle(plan(site, task))
        core.handle(JobStarted(number, number))
    # The second has nothing to do with the first, the third needs what that makes, and follows the
    # second.
    assert [job.expected_end_s for job in core.jobs.values()] == [10, 11, 21]


def test_what_goes_wrong_at_one_site_is_not_held_against_another() -> None:
    core = two_sites()
    for job in range(2):
        core.handle(plan("south", 2))
        core.handle(JobStarted(0, job))
        core.handle(JobKilled(10, job, cause=Cause.NODE_FAILED, node="n1"))
    assert core.view(20, no_wait, "south").work.cluster_nodes == 7
    assert core.view(20, no_wait, "north").work.cluster_nodes == 4
    assert core.view(20 + FOR_S, no_wait, "south").work.cluster_nodes == 8


def test_a_task_that_took_long_is_expected_to_take_long_everywhere() -> None:
    core = two_sites()
    core.handle(plan("south", 2, 3))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, 2))
    core.handle(JobKilled(20, 0, cause=Cause.TIME_LIMIT))
    assert [at.work.expected_s[2] for at in core.sites] == [80, 40]
    assert [at.work.expected_s[3] for at in core.sites] == [10, 5]


@pytest.mark.parametrize(
    ("had_s", "expected"), [(200, [800, 400]), (300, [1200, 500]), (500, [2000, 500])]
)
def test_but_not_longer_than_jobs_may_take_there(had_s: int, expected: list[int]) -> None:
    """Jobs of the south take 500 s at most; it is twice as fast as the north, where there is no
    limit."""
    core = two_sites()
    core.handle(JobsPlanned(0, Decision((JobPlan((2,), 1, had_s, had_s, site="south"),)), "south"))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, 2))
    core.handle(JobKilled(had_s, 0, cause=Cause.TIME_LIMIT))
    assert [at.work.expected_s[2] for at in core.sites] == expected


def test_only_the_tasks_of_a_site_must_fit_there() -> None:
    workflow = Workflow.from_tasks("w", [Task("small", 5), Task("wide", 5, nodes=8)])
    assert len(works(workflow, [NORTH, SOUTH], [0, 1])) == 2
    with pytest.raises(UserError, match="task wide needs 8 nodes"):
        works(workflow, [NORTH, SOUTH], [1, 0])


@examples(20)
@given(
    workflows(mixed=False),
    st.integers(0, 10**6),
    st.sampled_from(["individual", "glume", "level-by-level"]),
)
def test_the_view_of_a_site_is_that_of_a_run_which_has_no_other(
    workflow: Workflow, seed: int, strategy: str
) -> None:
    """A second site to which no task goes changes nothing, and has nothing to decide."""
    site, second = Site.of(6, cap=3), Site.of(2, name="second", speed=2.0)
    rng = np.random.default_rng(seed)
    actual = np.maximum(
        1, (workflow.runtime_s * rng.lognormal(0, 0.7, len(workflow))).astype(np.int64)
    )
    trial = run_trial(Cluster(nodes=6), workflow, STRATEGIES[strategy], site=site, actual_s=actual)
    alone = Core(Work(workflow, whole_seconds(workflow), site), Terms())
    both = Core(
        works(workflow, [replace(site, name="first"), second], [0] * len(workflow)), Terms()
    )
    for event, _ in trial.events:
        actions, same = alone.handle(event), both.handle(event)
        assert [a for a in same if not isinstance(a, Decide)] == [
            a for a in actions if not isinstance(a, Decide)
        ]
        assert [a.site for a in same if isinstance(a, Decide)] == ["first"] * actions.count(
            Decide()
        )
        both.check()
        one = alone.view(event.at_s, no_wait)
        other = both.view(event.at_s, no_wait, "first")
        assert (one.left == other.left).all()
        assert (one.work.expected_s == other.work.expected_s).all()
        for name in (
            "ready",
            "jobs_waiting",
            "jobs_running",
            "busy_s",
            "cap",
            "individually",
            "jobs",
        ):
            assert getattr(one, name) == getattr(other, name)
        assert not both.view(event.at_s, no_wait, "second").can_submit
    assert alone.is_complete
    assert both.is_complete


def test_what_came_back_too_early_waits_for_its_makers_at_another_site_without_a_job() -> None:
    """A job for it was sent every 25 s, for as long as a task of the other site took."""
    core = two_sites()
    core.handle(RunBegan(0))
    core.handle(plan("north", 0))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, 0))
    core.handle(plan("south", 3))
    core.handle(JobStarted(0, 1))
    assert core.view(0, no_wait, "south").left.tolist() == [False, False, True, False]
    core.handle(TaskDropped(16, 1, 3))
    core.handle(JobEnded(16, 1))
    core.check()
    assert core.view(16, no_wait, "south").left.tolist() == [False, False, True, False]
    core.handle(TaskFinished(20, 2))
    assert Decide("south") in core.handle(TaskFinished(30, 0))
    assert core.view(30, no_wait, "south").ready == (3,)
