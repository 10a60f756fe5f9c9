"""The pool's core, driven by a made-up clock: what starts, what is tried again, what can never
run."""

from __future__ import annotations

import heapq
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streams.small import streams, workflows

from windrow.errors import UserError
from windrow.model import NodeShape, Runnable, Step, Task, Workflow
from windrow.pool.core import PoolAttempt, PoolCore, alone_s
from windrow.pool.events import CANCELLED, COMPLETE, FAILED
from windrow.pool.workflow_state import ServedWorkflow, WorkflowPast
from windrow.streams import Pool, Progress, find_policy
from windrow.streams.estimates import length_s
from windrow.streams.selection import at_random, by_descendants
from windrow_lab.stream.simulation import run_by_pool
from windrow_lab.stream.workload import Workload

POLICIES = st.sampled_from(["bf", "sr", "sr-exact", "slop:0.5", "fes:1", "due:2"])
SHAPE = NodeShape(4)


def runnable(workflow: Workflow, retries: int = 0) -> Runnable:
    return Runnable(workflow, (Step(("true",), "/", retries=retries),) * len(workflow))


def core_of(policy: str, slots: int = 4, seed: int = 0) -> PoolCore:
    return PoolCore(Pool(slots, find_policy(policy), seed=seed), SHAPE)


def graph(workflow: Workflow) -> nx.DiGraph:
    made = nx.DiGraph()
    made.add_nodes_from(range(len(workflow)))
    made.add_edges_from(
        (p, v) for v in range(len(workflow)) for p in workflow.parents.of(v).tolist()
    )
    return made


@pytest.mark.slow
@given(streams(most_cores=3), POLICIES, st.integers(0, 3))
def test_starts_are_those_of_the_simulated_pool(
    drawn: tuple[Workload, list[float]], policy: str, seed: int
) -> None:
    workload, arrivals = drawn
    expected_starts, expected_ends = run_by_pool(
        Pool(4, find_policy(policy), seed=seed), workload, arrivals
    )
    core = core_of(policy, seed=seed)
    starts = [np.full(len(w), np.nan) for w in workload.workflows]
    running: list[tuple[float, int, PoolAttempt]] = []
    begun = arrived = 0
    while running or arrived < len(workload):
        if running and (arrived == len(workload) or running[0][0] <= arrivals[arrived]):
            now, _, done = heapq.heappop(running)
            runtime = float(workload.workflows[done.number].runtime_s[done.task])
            attempts = core.finished(done.number, done.task, runtime)
        else:
            now = arrivals[arrived]
            attempts = core.arrive(arrived, runnable(workload.workflows[arrived]), now)
            arrived += 1
        for attempt in attempts:
            begun += 1
            starts[attempt.number][attempt.task] = now
            end = now + float(workload.workflows[attempt.number].runtime_s[attempt.task])
            heapq.heappush(running, (end, begun, attempt))
    for got, expected in zip(starts, expected_starts, strict=True):
        assert got.tolist() == expected.tolist()
    assert [outcome for _, outcome in core.take_ended()] == [COMPLETE] * len(workload)
    assert all(np.isfinite(ends).all() for ends in expected_ends)


@pytest.mark.slow
@given(
    st.lists(workflows(most_cores=4), min_size=1, max_size=4),
    POLICIES,
    st.integers(0, 2),
    st.data(),
)
def test_whatever_tasks_do_all_rules_hold(
    drawn: list[Workflow], policy: str, retries: int, data: st.DataObject
) -> None:
    """Tasks succeed, fail and get lost at will."""
    core = core_of(policy)
    running: list[PoolAttempt] = []
    finished: Counter[tuple[int, int]] = Counter()
    failures: Counter[tuple[int, int]] = Counter()
    begun: Counter[tuple[int, int]] = Counter()
    waiting = list(enumerate(drawn))
    steps = 0
    while waiting or running:
        steps += 1
        if waiting and (not running or data.draw(st.booleans())):
            number, workflow = waiting.pop(0)
            attempts = core.arrive(number, runnable(workflow, retries), float(number))
        else:
            done = running.pop(data.draw(st.integers(0, len(running) - 1)))
            key = done.number, done.task
            fate = data.draw(st.sampled_from("sssfl" if steps < 200 else "s"))
            if fate == "s":
                finished[key] += 1
                attempts = core.finished(*key, 1.0)
            elif fate == "f":
                assert core.is_final(*key) == (failures[key] >= retries)
                failures[key] += 1
                attempts = core.failed(*key, 1.0)
            else:
                attempts = core.lost(*key)
        for attempt in attempts:
            key = attempt.number, attempt.task
            begun[key] += 1
            assert attempt.attempt == begun[key]
            assert all(
                finished[attempt.number, p]
                for p in drawn[attempt.number].parents.of(attempt.task).tolist()
            )
            assert attempt not in running
            assert not finished[key]
            running.append(attempt)
        assert sum(int(drawn[a.number].cores[a.task]) for a in running) <= 4
    ended = {served.number: outcome for served, outcome in core.take_ended()}
    assert core.pool.free == 4
    assert core.pool.queue == []
    for number, workflow in enumerate(drawn):
        given_up = {t for t in range(len(workflow)) if failures[number, t] > retries}
        below = set().union(*(nx.descendants(graph(workflow), t) for t in given_up))
        got = {t for t in range(len(workflow)) if finished[number, t]}
        assert got == set(range(len(workflow))) - given_up - below
        assert ended[number] == (FAILED if given_up else COMPLETE)
    assert set(finished.values()) <= {1}


@given(workflows(most_tasks=9, most_cores=3), st.data())
def test_after_a_restart_a_policy_sees_what_it_would_have_seen(
    workflow: Workflow, data: st.DataObject
) -> None:
    whole = Progress(workflow)
    eligible = set(whole.entries())
    took_s = {}
    for _ in range(data.draw(st.integers(0, len(workflow) - 1))):
        task = data.draw(st.sampled_from(sorted(eligible)))
        took_s[task] = 1.0
        eligible = (eligible - {task}) | set(whole.finish(task))
    served = ServedWorkflow(1, runnable(workflow), SHAPE, WorkflowPast(took_s))
    rest = Progress(served.rest_workflow())
    assert {served.rest[t] for t in rest.entries()} == eligible
    assert [size for size in rest.sizes if size] == [size for size in whole.sizes if size]
    assert rest.exact_parallelism == whole.exact_parallelism


@pytest.mark.slow
@given(st.lists(workflows(), min_size=2, max_size=4), POLICIES, st.data())
def test_a_cancelled_workflow_leaves_and_the_others_do_not_notice(
    drawn: list[Workflow], policy: str, data: st.DataObject
) -> None:
    core = core_of(policy)
    running = [a for n, w in enumerate(drawn) for a in core.arrive(n, runnable(w), float(n))]
    for _ in range(data.draw(st.integers(0, 3))):
        if running:
            done = running.pop(0)
            running += core.finished(done.number, done.task, 1.0)
    left = sorted(core.workflows)
    if not left:
        return
    victim = data.draw(st.sampled_from(left))
    mine = [a for a in running if a.number == victim]
    fresh = core.withdraw(victim)
    for attempt in mine:
        assert all(a.number != victim for a in fresh)
        fresh += core.lost(victim, attempt.task)
    running = [a for a in running if a.number != victim] + fresh
    assert victim not in core.pool.queue
    while running:
        done = running.pop(0)
        assert done.number != victim
        running += core.finished(done.number, done.task, 1.0)
    ended = {served.number: outcome for served, outcome in core.take_ended()}
    assert ended == {n: CANCELLED if n == victim else COMPLETE for n in range(len(drawn))}
    assert core.pool.free == 4


def test_a_restart_goes_on_counting_failures() -> None:
    workflow = Workflow.from_tasks("two", [Task("a", 1.0), Task("b", 1.0, parents=("a",))])
    core = core_of("bf")
    past = WorkflowPast(attempts={0: 3}, failures={0: 1})
    assert core.arrive(7, runnable(workflow, retries=2), 0.0, past) == [PoolAttempt(7, 0, 4)]
    assert not core.is_final(7, 0)
    assert core.failed(7, 0, 1.0) == [PoolAttempt(7, 0, 5)]
    assert core.is_final(7, 0)
    assert core.failed(7, 0, 1.0) == []
    assert [(served.number, outcome) for served, outcome in core.take_ended()] == [(7, FAILED)]


def test_a_workflow_that_was_done_before_the_restart_ends_at_once() -> None:
    workflow = Workflow.from_tasks("one", [Task("a", 1.0)])
    core = core_of("sr")
    assert core.arrive(1, runnable(workflow), 0.0, WorkflowPast({0: 2.0})) == []
    assert [outcome for _, outcome in core.take_ended()] == [COMPLETE]


def test_what_is_larger_than_the_pool_is_refused_and_changes_nothing() -> None:
    core = core_of("bf", slots=8)
    for task in (Task("a", 1.0, cores=5), Task("a", 1.0, nodes=3)):
        with pytest.raises(UserError):
            core.arrive(1, runnable(Workflow.from_tasks("wide", [task])), 0.0)
    assert core.workflows == {}
    assert core.pool.free == 8
    whole_nodes = Workflow.from_tasks("wide", [Task("a", 1.0, nodes=2)])
    assert core.arrive(1, runnable(whole_nodes), 0.0) == [PoolAttempt(1, 0, 1)]
    assert core.pool.free == 0


@pytest.mark.slow
@given(workflows(most_cores=1), st.integers(1, 4))
def test_alone_is_between_the_bounds_of_list_scheduling(workflow: Workflow, slots: int) -> None:
    times = workflow.runtime_s.tolist()
    served = ServedWorkflow(1, runnable(workflow), SHAPE, WorkflowPast(dict(enumerate(times))))
    longest = max(
        sum(times[v] for v in path)
        for source in graph(workflow)
        for target in graph(workflow)
        for path in (
            [[source]] if source == target else nx.all_simple_paths(graph(workflow), source, target)
        )
    )
    alone = alone_s(served, SHAPE, slots, at_random)
    assert length_s(workflow, times, slots) - 1e-9 <= alone
    assert alone <= sum(times) / slots + (slots - 1) / slots * longest + 1e-9  # Graham's bound


def test_alone_by_hand() -> None:
    """Two slots, a (1 s) before b (2 s), c (3 s) and d (1 s): b and c at 1, d at 3 beside c, all
    done at 4."""
    tasks = [
        Task("a", 9.0),
        *(Task(name, 9.0, parents=("a",)) for name in "bc"),
        Task("d", 9.0, parents=("b",)),
    ]
    workflow = Workflow.from_tasks("four", tasks)
    took = {0: 1.0, 1: 2.0, 2: 3.0, 3: 1.0}
    served = ServedWorkflow(1, runnable(workflow), SHAPE, WorkflowPast(took))
    assert alone_s(served, SHAPE, 2, by_descendants) == 4.0
    assert alone_s(served, SHAPE, 1, by_descendants) == 7.0
    begun = ServedWorkflow(1, runnable(workflow), SHAPE, WorkflowPast({0: 1.0}))
    assert alone_s(begun, SHAPE, 2, at_random) == 0.0
