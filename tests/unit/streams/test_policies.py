"""Policies as starts of tasks: the paper's identities, the compiled simulation, and the laws of the
pool."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streams.small import streams

from windrow.errors import UserError
from windrow.model import Task, Workflow
from windrow.streams import (
    Pool,
    Start,
    TaskFinished,
    TaskLost,
    WorkflowArrived,
    WorkflowWithdrawn,
    find_policy,
)
from windrow.streams.selection import SELECTIONS, Selection
from windrow_lab.stream.simulation import Simulator, run_by_pool
from windrow_lab.stream.workload import Workload, draw_workload

_SAME = (("bf", "slop:0", "fes:0", "due:0"), ("sr", "slop:1", "fes:99"))
_ALL = ("sr", "slop:0.9", "slop:0.5", "slop:0.2", "fes:2", "fes:1", "bf", "due", "due:5")

Stream = tuple[Workload, list[float]]


def starts(
    policy: str, stream: Stream, slots: int = 4, selection: Selection = SELECTIONS["random"]
) -> list[float]:
    pool = Pool(slots, find_policy(policy), selection=selection, seed=5)
    return [float(s) for of in run_by_pool(pool, *stream)[0] for s in of]


@pytest.mark.slow
@given(streams(most_cores=3))
def test_the_papers_identities_hold_start_by_start(stream: Stream) -> None:
    for family in _SAME:
        first, *others = (starts(policy, stream) for policy in family)
        assert all(other == first for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["montage", "ligo", "sipht", "mixture"])
def test_the_identities_hold_on_the_papers_workloads(workload: str) -> None:
    drawn = draw_workload(workload, workflows=40, seed=4)
    simulator = Simulator(drawn)
    for family, utilization in zip(_SAME, (0.9, 0.4), strict=True):
        arrival_s = drawn.arrivals_s(utilization, 100)
        outcomes = [simulator.run(find_policy(policy), arrival_s).start_s for policy in family]
        assert all(np.array_equal(outcome, outcomes[0]) for outcome in outcomes)


@pytest.mark.slow
@given(streams(most_cores=3), st.sampled_from(_ALL), st.sampled_from(sorted(SELECTIONS)))
def test_compiled_simulation_and_pool_start_the_same_tasks_at_the_same_times(
    stream: Stream, policy: str, selection: str
) -> None:
    workload, arrival_s = stream
    outcome = Simulator(workload, 4, selection=selection, seed=5).run(
        find_policy(policy), np.array(arrival_s)
    )
    assert outcome.start_s.tolist() == starts(policy, stream, selection=SELECTIONS[selection])
    assert outcome.in_system == 0
    assert outcome.events == sum(len(w) + 1 for w in workload.workflows)


@pytest.mark.slow
@pytest.mark.parametrize("policy", _ALL)
def test_compiled_simulation_and_pool_agree_on_the_papers_mixture(policy: str) -> None:
    drawn = draw_workload("mixture", workflows=45, seed=8)
    arrival_s = drawn.arrivals_s(0.8, 100)
    outcome = Simulator(drawn, seed=5).run(find_policy(policy), arrival_s)
    assert outcome.start_s.tolist() == starts(policy, (drawn, arrival_s.tolist()), 100)


@pytest.mark.slow
@given(streams(most_cores=3), st.sampled_from((*_ALL, "sr-exact")))
def test_every_schedule_is_valid(stream: Stream, policy: str) -> None:
    workload, arrival_s = stream
    begun, ended = run_by_pool(Pool(4, find_policy(policy)), workload, arrival_s)
    moments = []
    for w, workflow in enumerate(workload.workflows):
        assert (begun[w] >= arrival_s[w]).all()
        assert np.array_equal(ended[w], begun[w] + workflow.runtime_s)
        for v in range(len(workflow)):
            assert all(begun[w][v] >= ended[w][p] for p in workflow.parents.of(v))
            moments += [(begun[w][v], ended[w][v], int(workflow.cores[v]))]
    for at, _, _ in moments:
        assert sum(cores for start, end, cores in moments if start <= at < end) <= 4


@pytest.mark.slow
@given(streams(), st.sampled_from(("bf", "due", "sr", "slop:0.5", "fes:1")))
def test_after_each_event_idle_processors_are_kept_or_nobody_can_use_them(
    stream: Stream, policy: str
) -> None:
    workload, arrival_s = stream

    class Watched(Pool):
        def handle(self, event: object) -> list[Start]:
            answer = super().handle(event)  # type: ignore[arg-type]
            ready = sum(self.progress(w).eligible - len(self.running(w)) for w in self.queue)
            assert 0 <= self.reserved <= self.free
            assert ready == 0 or self.reserved == self.free
            assert policy not in ("bf", "due") or self.reserved == 0
            return answer

    run_by_pool(Watched(3, find_policy(policy)), workload, arrival_s)


@pytest.mark.slow
@given(streams())
def test_under_strict_reservation_nobody_is_delayed_by_those_behind(stream: Stream) -> None:
    """Section III-D. A workflow starts as if the ones that arrive after it did not exist."""
    workload, arrival_s = stream
    everyone, _ = run_by_pool(Pool(3, find_policy("sr-exact"), seed=2), workload, arrival_s)
    for k in range(1, len(workload)):
        alone = Workload("first", workload.workflows[:k], workload.sizes[:k], workload.gaps[:k])
        ahead, _ = run_by_pool(Pool(3, find_policy("sr-exact"), seed=2), alone, arrival_s[:k])
        assert all(np.array_equal(a, b) for a, b in zip(ahead, everyone, strict=False))


def fork(name: str, width: int, runtime_s: float = 1.0) -> Workflow:
    entry = Task(f"{name}-entry", runtime_s)
    return Workflow.from_tasks(
        name, [entry, *(Task(f"{name}{i}", 1.0, parents=(entry.id,)) for i in range(width))]
    )


@pytest.mark.parametrize(
    ("policy", "second", "kept"),
    [("bf", 3, 0), ("sr", 0, 3), ("slop:0.5", 2, 1), ("fes:0", 3, 0), ("fes:1", 0, 3)],
)
def test_what_is_kept_for_the_first_is_not_given_to_the_second(
    policy: str, second: int, kept: int
) -> None:
    pool = Pool(4, find_policy(policy))
    assert pool.handle(WorkflowArrived(0, fork("a", 4), 0.0)) == [Start(0, 0)]
    bag = Workflow.from_tasks("b", [Task(f"b{i}", 1.0) for i in range(6)])
    assert len(pool.handle(WorkflowArrived(1, bag, 0.0))) == second
    assert pool.reserved == kept
    assert pool.free == 3 - second


def test_a_wide_task_is_not_overtaken_for_ever() -> None:
    pool = Pool(4, find_policy("bf"))
    narrow = Workflow.from_tasks("narrow", [Task(f"n{i}", 1.0) for i in range(9)])
    wide = Workflow.from_tasks("wide", [Task("w", 1.0, cores=4)])
    assert (
        len(pool.handle(WorkflowArrived(0, Workflow.from_tasks("one", [Task("x", 1.0)]), 0.0))) == 1
    )
    assert pool.handle(WorkflowArrived(1, wide, 0.0)) == []
    assert pool.handle(WorkflowArrived(2, narrow, 0.0)) == []
    assert pool.reserved == 3
    assert pool.handle(TaskFinished(0, 0, 1.0)) == [Start(1, 0)]


def test_a_lost_task_runs_again_and_a_withdrawn_workflow_makes_room() -> None:
    pool = Pool(1, find_policy("bf"))
    one = Workflow.from_tasks("one", [Task("x", 1.0)])
    assert pool.handle(WorkflowArrived(0, one, 0.0)) == [Start(0, 0)]
    assert pool.handle(WorkflowArrived(1, one, 0.0)) == []
    assert pool.handle(TaskLost(0, 0)) == [Start(0, 0)]
    assert pool.handle(WorkflowWithdrawn(0)) == [Start(1, 0)]
    assert pool.queue == [1]
    assert pool.handle(TaskFinished(1, 0, 1.0)) == []
    assert (pool.queue, pool.free) == ([], 1)


def test_due_dates_let_the_short_pass_but_only_for_a_time() -> None:
    """A workflow of length 10 with patience 2 is due at 20: a short one passes it before that, none
    after."""
    long, short = fork("long", 1, 9.0), fork("short", 1, 1.0)
    pool = Pool(1, find_policy("due:2"))
    pool.handle(WorkflowArrived(0, short, 0.0))
    pool.handle(WorkflowArrived(1, long, 0.0))
    pool.handle(WorkflowArrived(2, short, 15.9))
    pool.handle(WorkflowArrived(3, short, 16.1))
    assert pool.queue == [0, 2, 1, 3]


def test_the_pool_names_what_it_cannot_take() -> None:
    with pytest.raises(UserError, match="at least 1 processor"):
        Pool(0, find_policy("bf"))
    wide = Workflow.from_tasks("wide", [Task("w", 1.0, cores=5)])
    with pytest.raises(UserError, match="a task of 5 cores, but the pool has 4"):
        Pool(4, find_policy("bf")).handle(WorkflowArrived(0, wide, 0.0))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slop:1.5", "between 0 and 1"),
        ("slop:nan", "between 0 and 1"),
        ("slop", "for example slop:0.2"),
        ("fes:x", "for example fes:1"),
        ("fes:-1", "at least 0"),
        ("due:inf", "at least 0"),
        ("bff", "did you mean bf"),
        ("bf:1", "unknown policy"),
    ],
)
def test_bad_policy_names_get_one_clear_message(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        find_policy(text)


@pytest.mark.parametrize("name", [*_ALL, "sr-exact"])
def test_a_policy_is_found_by_its_own_name(name: str) -> None:
    found = find_policy(name)
    assert find_policy(found.name) == found
