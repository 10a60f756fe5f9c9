"""The figures of a run, against what was counted by hand or second by second."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report import told_runs as run

from windrow.model import Task, Workflow
from windrow.model.cause import Cause
from windrow.model.wording import node_span
from windrow.story import events as e
from windrow.story.figures import (
    data_node_s,
    kind_times,
    node_time,
    queue_waits_s,
    visible_wait_s,
    wait_s,
)
from windrow.story.journal import Record
from windrow.strategies import JobPlan


def test_node_time_of_shared_and_of_whole_nodes() -> None:
    records = [
        *run.one_job(3, nodes=2),  # from 1015 on
        run.task_started(1020, 0, 0, 0),
        run.finished(1030, 0, 1020),  # 10 s of half a node
        run.task_started(1020, 0, 1, 0),
        run.failed(1024, 1, 1020),  # 4 s of half a node, in vain
        run.ended(1035, 0),  # 20 s of two nodes
    ]
    told = run.told(run.independent(3), records, until_s=1035, cores=2)
    assert node_time(told).allocated_s == 40
    assert node_time(told).used_s == 5
    assert node_time(told).lost_s == 2
    assert node_time(told).idle_s == 33
    assert node_time(told).share == pytest.approx(1 / 8)
    assert node_time(told, 0) == node_time(told)


@given(
    st.lists(st.tuples(st.integers(1000, 1100), st.integers(0, 60), st.booleans()), max_size=4),
    st.integers(1, 3),
    st.integers(0, 80),
)
def test_allocated_is_used_and_idle_and_lost(
    spans: list[tuple[int, int, bool]], cores: int, held_s: int
) -> None:
    """Whatever the records say, also where they contradict each other: attempts outside of their
    job, say."""
    records = run.one_job(4, nodes=2)
    for task, (begin, took_s, is_done) in enumerate(spans):
        over = run.finished if is_done else run.failed
        records += [run.task_started(begin, 0, task, 0), over(begin + took_s, task, begin)]
    told = run.told(
        run.independent(4), [*records, run.ended(1015 + held_s, 0)], until_s=1200, cores=cores
    )
    allocated, *parts = node_time(told).parts().values()
    assert allocated == 2 * held_s
    assert sum(parts) == pytest.approx(allocated)
    assert min(parts) >= -1e-9


def test_cpu_efficiency_is_of_the_core_time_allocated() -> None:
    records = [
        *run.one_job(1, nodes=2),
        run.task_started(1020, 0, 0, 0),
        run.finished(1030, 0, 1020),
    ]
    told = run.told(run.independent(1), [*records, run.ended(1035, 0)], until_s=1035, cores=3)
    assert node_time(told).cpu_efficiency == pytest.approx(0.5 / (20 * 2 * 3))
    assert node_time(replace(told, is_simulated=True)).cpu_efficiency is None


def test_node_time_waiting_for_data_is_that_of_transfers_in_which_nothing_ran() -> None:
    tasks = [
        Task("a", 5, outputs=("x/a",)),
        Task("b", 5, inputs=("x/a",)),
        Task("c", 5, inputs=("c",)),
    ]
    workflow = Workflow.from_tasks("data", tasks)
    moved = [
        Record(
            e.FilesMoved(1024, ("run/x/a",), "", "west", 9, 12.0), at_s=1024
        ),  # the job has begun at 1015
        Record(
            e.FilesMoved(1040, ("run/y/a", "run/d"), "", "west", 9, 4.0), at_s=1040
        ),  # what no task reads
        Record(e.FilesMoved(1044, ("run/c",), "", "west", 9, 4.0), at_s=1044),
    ]
    ran = [run.task_started(1017, 0, 0), run.finished(1020, 0, 1017), run.task_started(1024, 0, 1)]
    records = [
        *run.one_job(3, nodes=2),
        *ran[:2],
        moved[0],
        ran[2],
        run.finished(1030, 1, 1024),
        *moved[1:],
    ]
    told = run.told(workflow, [*records, run.ended(1042, 0)], until_s=1050)
    assert data_node_s(told) == 2 * (2 + 4 + 2)  # 1015 to 1017, 1020 to 1024, 1040 to its end
    assert data_node_s(run.told(workflow, run.one_job(3), until_s=1050)) == 0


def test_what_is_not_over_counts_until_now() -> None:
    records = [*run.one_job(1), run.task_started(1016, 0, 0)]
    told = run.told(run.independent(1), records, until_s=1025)
    assert (node_time(told).allocated_s, node_time(told).used_s) == (10, 9)


def test_a_task_lost_with_its_job_was_in_vain() -> None:
    killed = Record(e.JobKilled(1022, 0, Cause.NODE_FAILED, "a node failed"), at_s=1022)
    told = run.told(
        run.independent(1),
        [*run.one_job(1), run.task_started(1016, 0, 0), killed],
        until_s=1060,
        state="interrupted",
    )
    assert (node_time(told).allocated_s, node_time(told).used_s, node_time(told).lost_s) == (
        7,
        0,
        6,
    )


def test_nothing_held_has_no_share() -> None:
    told = run.told(run.independent(1), run.one_job(1)[:-1], until_s=1100)
    assert node_time(told).share is None


def test_waits_end_with_the_start_or_the_end_or_now() -> None:
    plan = JobPlan((0,), 1, 60, 120)
    begun = Record(e.RunBegan(1000), at_s=1000)
    jobs = [run.planned(1000, plan), run.submitted(1002, 0)]
    waiting = run.told(run.independent(1), [begun, *jobs], until_s=1050)
    assert wait_s(waiting.story.jobs[0], 1050) == 48
    gone = run.told(run.independent(1), [begun, *jobs, run.ended(1012, 0)], until_s=1050)
    assert wait_s(gone.story.jobs[0], 1050) == 10
    unsent = run.told(run.independent(1), [begun, jobs[0]], until_s=1050)
    assert wait_s(unsent.story.jobs[0], 1050) == 0


SPANS = st.lists(st.tuples(st.integers(15, 60), st.integers(1, 20)), max_size=8)


@given(SPANS)
def test_visible_wait_is_the_seconds_in_which_nothing_runs(spans: list[tuple[int, int]]) -> None:
    tasks = max(1, len(spans))
    records = run.one_job(tasks, nodes=tasks)
    for task, (begin, length) in enumerate(spans):
        begun = 1000.0 + begin
        records += [
            run.task_started(begun, 0, task, task),
            run.finished(begun + length, task, begun),
        ]
    told = run.told(run.independent(tasks), records, until_s=1100)
    idle = [
        s for s in range(100) if not any(begin <= s < begin + length for begin, length in spans)
    ]
    assert visible_wait_s(told) == pytest.approx(len(idle))


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_hidden_wait_is_the_seconds_in_which_a_job_waits_and_tasks_run(
    spans: list[tuple[int, int]], since: int, wait: int
) -> None:
    tasks = len(spans) + 2
    records = run.one_job(tasks - 1, nodes=tasks)  # its job waits for 10 s, before any task
    for task, (begin, length) in enumerate(spans):
        begun = 1000.0 + begin
        records += [
            run.task_started(begun, 0, task, task),
            run.finished(begun + length, task, begun),
        ]
    plan = JobPlan((tasks - 1,), 1, 60, 120)
    records += [
        run.planned(1000 + since, plan),
        run.submitted(1000 + since, 1),
        run.started(1000 + since + wait, 1),
    ]
    told = run.told(run.independent(tasks), records, until_s=1200)
    waiting = range(since, since + wait)
    hidden = [s for s in waiting if any(begin <= s < begin + length for begin, length in spans)]
    assert queue_waits_s(told) == pytest.approx((10 + wait, len(hidden)))


def test_kinds_count_what_finished() -> None:
    records = run.one_job(3)
    for task, length in enumerate((2.0, 4.0)):
        records += [run.task_started(1020, 0, task), run.finished(1020 + length, task, 1020)]
    (kind,) = kind_times(run.told(run.independent(3), records, until_s=1100).story)
    assert (kind.name, kind.tasks, kind.mean_s, kind.longest_s, kind.expected_s) == (
        "work",
        2,
        3.0,
        4.0,
        60.0,
    )
    assert (kind.cpu_s, kind.peak_bytes) == (0.5, 10**8)


@pytest.mark.parametrize(
    ("node_s", "text"),
    [(12, "12 node-s"), (210, "3.5 node-min"), (7200, "2.0 node-h"), (4334400, "1,204.0 node-h")],
)
def test_node_time_for_people(node_s: float, text: str) -> None:
    assert node_span(node_s) == text
