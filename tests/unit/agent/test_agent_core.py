"""The agent's decisions, on random jobs with random luck, checked against what any execution must
keep to."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.jobs import task

from windrow.agent.core import AgentCore, StartAttempt
from windrow.agent.event_file import (
    AttemptFailed,
    AttemptFinished,
    AttemptLost,
    AttemptStarted,
    Record,
    TaskDeclined,
)
from windrow.agent.job_file import JobFile, TaskSpec
from windrow.model.attempt import DONE, Attempt
from windrow.model.cause import Cause

NODES, CORES, MEMORY = 3, 4, 100


def random_job(chance: random.Random) -> tuple[JobFile, list[int]]:
    """A job whose tasks depend on each other and on tasks of other jobs, which are numbered from
    1000."""
    count = chance.randrange(1, 25)
    elsewhere = [1000 + n for n in range(chance.randrange(4))]
    parents = {
        n: [p for p in (*range(n), *elsewhere) if chance.random() < 0.1] for n in range(count)
    }
    tasks = []
    for n in range(count):
        needs = {"cores": chance.randrange(1, 6), "memory_bytes": chance.choice([0, 10, 60, 101])}
        whole = {"nodes": chance.choice([0, 0, 0, 1, 2, 4])}
        children = tuple(c for c in range(count) if n in parents[c])
        more = {
            "retries": chance.randrange(3),
            "expected_s": float(chance.randrange(1, 40)),
            **needs,
            **whole,
        }
        tasks.append(task(n, "x", parents=tuple(parents[n]), children=children, **more))
    walltime_s = chance.choice([60.0, 300.0, 10_000.0])
    return JobFile("r", 0, NODES, CORES, MEMORY, walltime_s, tuple(tasks), grace_s=5.0), elsewhere


def execute(
    core: AgentCore, elsewhere: list[int], chance: random.Random, at: float
) -> list[Record]:
    """Let it run with random durations and failures; sometimes it is told to stop."""
    records = core.take_records()
    running: list[tuple[float, StartAttempt]] = []
    for _ in range(1000):
        for start in core.start(at):
            running.append((at + chance.uniform(0, 1.2) * start.spec.expected_s, start))
        records += core.take_records()
        if core.is_done:
            break
        if elsewhere and chance.random() < 0.4:
            parent = elsewhere.pop()
            core.never(parent, "failed", at) if chance.random() < 0.3 else core.done_elsewhere(
                parent
            )
        elif running and chance.random() < 0.95:
            running.sort(key=lambda entry: entry[0])
            at, start = running.pop(0)
            core.ended(
                Attempt(
                    start.spec.task, start.attempt, 0, None, "" if chance.random() < 0.7 else "bad"
                ),
                at,
            )
        else:
            at += 5
            core.drop_late(at)
        if chance.random() < 0.01:
            core.drain("told to", at)
    core.end(DONE, at)
    return records + core.take_records()


def check_room(specs: dict[int, TaskSpec], started: dict[int, tuple[int, ...]]) -> None:
    """What runs at one time fits its nodes."""
    for node in range(NODES):
        here = [specs[t] for t, nodes in started.items() if node in nodes]
        whole = [spec for spec in here if spec.nodes]
        assert not whole or len(here) == 1
        if not whole:
            assert sum(spec.cores for spec in here) <= CORES
            assert sum(spec.memory_bytes for spec in here) <= MEMORY


def check(job: JobFile, records: list[Record], deadline: float) -> None:
    specs = {spec.task: spec for spec in job.tasks}
    running: dict[int, tuple[int, ...]] = {}
    done: set[int] = set()
    closed: Counter[int] = Counter()
    failures: Counter[int] = Counter()
    for record in records:
        match record:
            case AttemptStarted():
                spec = specs[record.task]
                assert record.at + spec.expected_s <= deadline
                assert {p for p in spec.parents if p < 1000} <= done
                assert record.of.number == failures[record.task] + 1
                assert len(record.of.nodes) == max(1, spec.nodes)
                assert not closed[record.task]
                running[record.task] = record.of.nodes
                check_room(specs, running)
            case AttemptFinished():
                del running[record.task]
                done.add(record.task)
                closed[record.task] += 1
            case AttemptFailed():
                del running[record.task]
                failures[record.task] += 1
                assert record.final == (failures[record.task] > specs[record.task].retries)
                closed[record.task] += record.final
            case TaskDeclined():
                assert record.task not in running
                assert record.why
                closed[record.task] += 1
            case AttemptLost():
                del running[record.task]
                closed[record.task] += 1
            case _:
                pass
    assert not running
    assert closed == dict.fromkeys(specs, 1), "each task comes to exactly one end"


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_every_execution_keeps_the_rules(seed: int) -> None:
    chance = random.Random(seed)
    job, elsewhere = random_job(chance)
    core = AgentCore(job, 100.0)
    records = execute(core, elsewhere, chance, 100.0)
    assert job.walltime_s is not None
    check(job, records, 100.0 + job.walltime_s - 5.0)


def test_without_bad_luck_everything_is_done() -> None:
    tasks = tuple(
        task(n, "x", parents=(n - 1,) if n else (), children=(n + 1,) if n < 9 else ())
        for n in range(10)
    )
    core = AgentCore(JobFile("r", 0, 1, 1, None, 1000, tasks), 0.0)
    order = []
    while not core.is_done:
        (start,) = core.start(1.0)
        order.append(start.spec.task)
        core.ended(Attempt(start.spec.task, 1, 0, None, ""), 2.0)
    assert order == list(range(10))


def test_a_task_waits_for_each_parent_elsewhere() -> None:
    core = AgentCore(JobFile("r", 0, 1, 1, None, 1000, (task(0, "x", parents=(7, 8, 7)),)), 0.0)
    assert core.start(1.0) == []
    core.done_elsewhere(7)
    core.done_elsewhere(7)
    assert core.is_waiting_for_others
    assert core.start(1.0) == []
    core.done_elsewhere(8)
    assert not core.is_waiting_for_others
    assert [start.spec.task for start in core.start(1.0)] == [0]


def test_a_waiting_task_is_dropped_when_its_time_has_run_out() -> None:
    core = AgentCore(
        JobFile("r", 0, 1, 1, None, 100, (task(0, "x", parents=(7,), expected_s=50),)), 0.0
    )
    core.drop_late(45.0)
    assert not core.is_done
    core.drop_late(45.1)
    assert core.is_done
    assert not core.is_waiting_for_others


@pytest.mark.parametrize("retries", [0, 1])
def test_a_draining_job_tries_nothing_again(retries: int) -> None:
    core = AgentCore(JobFile("r", 0, 1, 1, None, 100, (task(0, "x", retries=retries),)), 0.0)
    core.start(0.0)
    core.drain("enough", 1.0)
    core.ended(Attempt(0, 1, 1, None, "exit code 1"), 2.0)
    assert core.is_done
    kinds = [type(record) for record in core.take_records()]
    assert kinds == [AttemptStarted, AttemptFailed, *([TaskDeclined] if retries else [])]


def test_what_is_called_back_does_not_start_and_is_not_tried_again() -> None:
    """What these tasks read is to be made again: one that runs may have read it before."""
    tasks = tuple(task(n, "x", parents=(), children=(), retries=2) for n in range(2))
    core = AgentCore(JobFile("r", 0, 1, 1, 100, None, tasks, grace_s=5.0), 0.0)
    (start,) = core.start(0.0)
    other = 1 - start.spec.task
    for number in range(2):
        core.call_back(number, 1.0)
    core.ended(Attempt(start.spec.task, start.attempt, 1, None, "exit code 1"), 2.0)
    assert core.is_done
    assert not core.start(3.0)
    _, declined, lost = core.take_records()
    assert isinstance(declined, TaskDeclined)
    assert isinstance(lost, AttemptLost)
    assert (declined.task, lost.task, lost.cause) == (other, start.spec.task, Cause.DISMISSED)
