"""Further attempts at tasks that run: how many, when and where; against an obvious law, and on
virtual nodes."""

from __future__ import annotations

from itertools import combinations
from math import inf, prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.manager.test_core import A, B, C, D, diamond, planned

from windrow.app.copies import price
from windrow.manager.copying import LATE, MOST, Copying
from windrow.manager.core import Core
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.cause import Cause
from windrow.model.hazard import Hazard
from windrow.model.site import Site
from windrow.story import events as e
from windrow.story.figures import RecordedRun, node_time
from windrow.story.journal import Record
from windrow.story.states import AttemptState, JobStage
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan, View, Work, whole_seconds
from windrow.trials.virtual.shell import VirtualRun
from windrow.trials.virtual.world import World, empty_queue

STEP = Step(("make",), "/")
REPLICAS = Step(("make",), "/", replicas=2)


def running(*events: e.Event) -> Core:
    """The diamond: a in a job of its own, and running; then what happens."""
    core = diamond()
    begun = (
        e.RunBegan(0),
        planned(0, JobPlan((A,), 1, 10, 10)),
        e.JobStarted(0, 0),
        e.TaskStarted(0, 0, A),
    )
    for event in (*begun, *events):
        core.handle(event)
    return core


def copying(core: Core, rules: CopyRules = NO_COPIES, *steps: Step) -> Copying:
    return Copying(
        core, rules, lambda: (*steps, *[STEP] * (len(core.job_of) - len(steps))), lambda _: True
    )


def copies(decision: Decision) -> list[tuple[int, ...]]:
    assert not any(job.tasks for job in decision.jobs)
    return [job.copies for job in decision.jobs]


def test_replicas_run_from_the_start_on_and_never_more_of_them() -> None:
    core = running()
    found = copying(core, CopyRules(), REPLICAS).decide(0)
    assert copies(found) == [(A,)]
    assert found.why == "copies of a (replicas: 2)"
    core.handle(e.JobsPlanned(0, found))
    assert copies(copying(core, CopyRules(), REPLICAS).decide(1)) == []
    assert copies(copying(core, CopyRules(), Step(("make",), "/", replicas=3)).decide(1)) == [(A,)]


def test_what_failed_by_itself_or_lacks_a_parent_gets_no_further_attempt() -> None:
    core = running()
    three = copying(core, CopyRules(), Step(("make",), "/", replicas=3))
    core.handle(e.JobsPlanned(0, three.decide(0)))
    core.handle(e.CopyFailed(1, 0, A))
    core.handle(e.TaskStarted(1, 1, A))
    assert copies(three.decide(2)) == []
    core.handle(e.CopyFailed(3, 1, A))
    core.handle(e.CopyFailed(3, 2, A))
    assert core.failed == {A}
    core = running(
        e.TaskFinished(10, A),
        planned(10, JobPlan((B,), 1, 20, 20)),
        e.JobStarted(10, 1),
        e.TaskStarted(10, 1, B),
    )
    core.handle(e.TaskUndone(11, A))  # its output is gone: what runs now will fail
    assert copies(copying(core, CopyRules(), STEP, REPLICAS).decide(12)) == []


def test_a_task_is_late_at_one_and_a_half_times_its_time_and_when_a_new_job_is_worth_it() -> None:
    for overhead_s, late_s in ((0, 15), (3, 15), (9, 19)):
        core = running()
        core.terms = Terms(margin=1.0, round_s=1, overhead_s=overhead_s)
        speculative = copying(core, CopyRules(speculate=True))
        assert copies(speculative.decide(late_s - 1)) == []
        assert speculative.next_s == late_s
        found = speculative.decide(late_s)
        assert copies(found) == [(A,)]
        assert found.jobs[0].requested_s >= LATE * 10
        core.handle(e.JobsPlanned(late_s, found))
        assert (
            copies(speculative.decide(10 * late_s)) == []
        )  # before the copy has started there is nothing to judge
        core.handle(e.JobStarted(20, 1))
        core.handle(e.TaskStarted(20, 1, A))
        assert copies(speculative.decide(20 + late_s)) == [(A,)]


def test_nothing_is_copied_while_tasks_wait_or_where_there_is_time() -> None:
    """b has 10 s to spare beside c: its copy starts as late as it may, and not while a task waits
    for nodes."""
    both = planned(10, JobPlan((B, C, D), 2, 35, 40))
    core = running(e.TaskFinished(10, A), both, e.JobStarted(10, 1), e.TaskStarted(10, 1, C))
    core.sites[0].work = Work(
        core.work.workflow, core.work.expected_s, Site.of(8, hazard=Hazard.of_mean(300.0))
    )
    careful = copying(core, CopyRules(0.95))
    assert copies(careful.decide(10)) == []  # b could start
    core.handle(e.TaskStarted(10, 1, B))
    assert copies(careful.decide(10)) == [(C,)]
    assert careful.next_s == 20
    assert copies(careful.decide(19)) == [(C,)]
    assert sorted(copies(careful.decide(20))) == [(B,), (C,)]


def test_copies_leave_jobs_to_others_and_stop_with_the_run() -> None:
    core = diamond(cap=3)
    for event in (
        e.RunBegan(0),
        planned(0, JobPlan((A,), 1, 10, 10)),
        e.JobStarted(0, 0),
        e.TaskStarted(0, 0, A),
    ):
        core.handle(event)
    three = copying(core, CopyRules(), Step(("make",), "/", replicas=3))
    assert len(three.decide(0).jobs) == 1  # of two that the cap allows
    core.handle(e.RunStopped(1))
    assert three.decide(1) == Decision()


@given(
    st.lists(st.tuples(st.floats(30, 10**6), st.integers(1, 500)), min_size=1, max_size=3),
    st.floats(0.5, 0.999),
)
def test_as_few_attempts_as_make_the_loss_of_all_unlikely_enough(
    sites: list[tuple[float, int]], wanted: float
) -> None:
    """Against all ways to choose up to three attempts, the first of which is there already."""
    workflow = Workflow.from_tasks("one", [Task("t", 60)])
    named = [
        Site.of(9, name=f"s{n}", hazard=Hazard.of_mean(mean)) for n, (mean, _) in enumerate(sites)
    ]
    core = Core(
        [Work(workflow, whole_seconds(workflow), site) for site in named], Terms(overhead_s=10)
    )
    core.handle(e.RunBegan(0))
    core.handle(planned(0, JobPlan((0,), 2, 60, 90, site=core.sites[0].name)))
    core.handle(e.JobStarted(0, 0))
    core.handle(e.TaskStarted(0, 0, 0))
    careful = copying(core, CopyRules(wanted))
    waits = {at.name: float(wait) for at, (_, wait) in zip(core.sites, sites, strict=True)}
    careful.wait_s = lambda at, _nodes, _run_s: waits[at.name]
    chosen = [job.site for job in careful.decide(0).jobs]
    if len(sites) == 1:
        waits = {"": 0.0}
    ends = {name: wait + 70 for name, wait in waits.items()}
    in_time = {name: end for name, end in ends.items() if end <= 60 + min(ends.values())}
    hazard = {at.name: at.site.hazard for at in core.sites}
    own = 1 - hazard[core.sites[0].name].survival(2, 60)

    def risk(names: tuple[str, ...]) -> float:
        return own * prod(1 - hazard[name].survival(1, 60) for name in names)

    ways = [way for n in range(MOST) for way in set(combinations([*in_time] * 2, n))]
    enough = [way for way in ways if risk(way) <= 1 - wanted]
    fewest = min(map(len, enough), default=MOST - 1)
    assert len(chosen) == fewest
    assert set(chosen) <= in_time.keys()
    assert risk(tuple(chosen)) <= min(risk(way) for way in ways if len(way) == fewest) + 1e-12


class Apart:
    """Two jobs of two nodes and one node: what is not `left` to the second, and what is."""

    name = "apart"

    def decide(self, view: View) -> Decision:
        if not view.left.all():
            return Decision()
        return Decision((JobPlan((0, 1), 2, 500, 600), JobPlan((2,), 1, 200, 300)))


def apart(folder: Path, **takes: float) -> VirtualRun:
    """A long and a short task on two nodes, and a third with a replica in a job of its own."""
    (folder / "work").mkdir()
    times = {"long": 500.0, "short": 50.0, "third": 200.0}
    tasks = [Task(name, time, outputs=(f"{name}.out",)) for name, time in times.items()]
    steps = [Step(("make", f"{name}.out"), str(folder / "work"), elsewhere=((1, 0, 0),), replicas=1 + (name == "third"))  # noqa: E501
             for name in times]  # fmt: skip
    taken = list((times | takes).values())
    world = World(empty_queue(8), lambda task: taken[task])
    return VirtualRun(
        folder / "run", world, Runnable(Workflow.from_tasks("apart", tasks), tuple(steps)), Apart()
    )


def test_idle_nodes_of_a_running_job_take_a_copy_and_nothing_is_submitted_for_it(
    tmp_path: Path,
) -> None:
    run = apart(tmp_path, short=1.0)
    run.survive()
    story = run.story()
    copy = story.jobs[2]
    assert (copy.taken_by, copy.submitted_s, copy.plan.copies) == (0, None, (2,))
    assert [a.job for a in story.tasks[2].attempts] == [1, 2]
    outcomes = [a.outcome for a in story.tasks[2].attempts]
    assert outcomes == [AttemptState.FINISHED, AttemptState.SUPERSEDED]
    told = RecordedRun("r", "complete", "apart", "virtual", story, (), story.last_s)
    used = node_time(told)
    assert used.allocated_s == pytest.approx(
        2 * 500 + 200, abs=60
    )  # the copy held no nodes of its own
    assert 150 < used.copies_s == used.lost_s < 250
    run.close()


def test_a_copy_that_no_running_job_has_room_for_goes_to_the_queue(tmp_path: Path) -> None:
    run = apart(tmp_path)
    run.survive()
    copy = run.story().jobs[2]
    assert copy.taken_by is None
    assert copy.submitted_s is not None
    run.close()


def test_the_copy_goes_on_when_the_first_is_lost_and_its_host_stays_for_it(tmp_path: Path) -> None:
    run = apart(tmp_path, short=1.0, long=100.0)
    world = run.world
    world.dues.append((world.now_s + 50, lambda: world.kill_agent("c2")))
    run.survive()
    story = run.story()
    first, second, *_ = [a.outcome for a in story.tasks[2].attempts]
    assert (first, second) == (AttemptState.LOST, AttemptState.FINISHED)
    assert story.jobs[1].outcome is JobStage.KILLED
    assert not any(
        job.plan.tasks for number, job in story.jobs.items() if number > 1
    )  # nothing was cut again
    run.close()


def test_the_price_says_what_runs_with_and_without_copies_take() -> None:
    hazard = Hazard.of_mean(1000.0)
    workflow = Workflow.from_tasks(
        "w", [Task("a", 100), Task("b", 10), Task("c", 100, parents=("a",))]
    )
    work = Work(workflow, whole_seconds(workflow), Site.of(4, hazard=hazard))
    steps = [STEP] * 3
    none = price(work, CopyRules(), steps, 0, lambda _: True)
    p, held_s = 1 - hazard.survival(1, 100), hazard.held_s(1, 100)
    least = 2 * held_s / (1 - p) + hazard.held_s(1, 10) / hazard.survival(1, 10)
    assert none.tasks == 0
    assert none.with_node_s == pytest.approx(least)
    assert none.without_node_s == none.with_node_s
    found = price(work, CopyRules(0.95), steps, 0, lambda _: True)
    assert found.tasks == 2  # b has all the time in the world
    more = 2 * 2 * held_s / (1 - p**2) + hazard.held_s(1, 10) / hazard.survival(1, 10)
    assert found.with_node_s == pytest.approx(more)
    assert price(work, CopyRules(0.95), steps, 0, lambda _: False) == none
    assert "+" in found.words(CopyRules(0.95), is_known=True)
    assert price(work, CopyRules(), [STEP, REPLICAS, STEP], 0, lambda _: True).tasks == 1
    assert inf > found.with_node_s


def test_a_task_blocked_while_it_ran_is_blocked_in_its_story() -> None:
    """Its parent was undone and failed while it ran; then it was lost."""
    core = diamond()
    events: list[e.Event] = [
        e.RunBegan(0),
        planned(0, JobPlan((A, B, C, D), 2, 50, 60)),
        e.JobStarted(0, 0),
    ]
    events += [
        e.TaskStarted(0, 0, A),
        e.TaskFinished(10, A),
        e.TaskStarted(10, 0, B),
        e.TaskUndone(11, A),
    ]
    events += [
        planned(11, JobPlan((A,), 1, 10, 10)),
        e.JobStarted(11, 1),
        e.TaskStarted(11, 1, A),
        e.TaskFailed(12, A),
    ]
    events += [e.JobKilled(13, 0, cause=Cause.NODE_FAILED)]
    for event in events:
        core.handle(event)
    detail = {"maker": A, "file": "x", "reader": B}
    records = [
        Record(event, detail if isinstance(event, e.TaskUndone) else None) for event in events
    ]
    story = RunStory.of(core.work.workflow, records)
    assert [task.state for task in story.tasks] == ["failed", "blocked", "blocked", "blocked"]
    assert core.blocked == {B, C, D}
