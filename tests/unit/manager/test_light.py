"""The manager is light: few questions to the queue, memory that does not grow with what happens, a
quick return.

Times are virtual where questions are counted, so nothing here depends on how busy the machine is.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from windrow.agent import event_file
from windrow.agent.claim import claim
from windrow.agent.folder import RunFolder
from windrow.app.learning import Learning, LearningPlace
from windrow.app.runs import past_predictions
from windrow.app.strategies import find_strategy
from windrow.forecast import ledger
from windrow.forecast.base import Ints
from windrow.forecast.twin import Twin
from windrow.forecast.waits import History
from windrow.forecast.waits import default_path as waits_path
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.inbox import PATIENCE_S, POLL_S, SLOWEST_POLL_S
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Runnable, Step, Task, Workflow
from windrow.model.attempt import Attempt
from windrow.model.site import Site
from windrow.queues.port import JobSpec, JobState, JobStatus, Limits, Snapshot
from windrow.story.events import Event, JobsPlanned, JobStarted, JobSubmitted, TaskStarted
from windrow.story.journal import PredictedStart, Record, RunJournal
from windrow.strategies import Decision, JobPlan, Work, whole_seconds


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    at_s: float = 1_000_000.0

    def now(self) -> float:
        return self.at_s


@dataclass
class CountingQueue:
    """Takes every job, starts those it is told to, and remembers when it was asked what."""

    clock: Clock
    max_array: int = 1000
    name: str = "counting"
    policy: str = "conservative"
    running: set[str] = field(default_factory=set)
    over: set[str] = field(default_factory=set)
    submitted: int = 0
    asked: list[tuple[float, str, int]] = field(default_factory=list)

    def limits(self) -> Limits:
        return Limits(8, NodeShape(), max_array=self.max_array)

    def submit(self, spec: JobSpec) -> str:
        return self.submit_array([spec])[0]

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        self.asked.append((self.clock.at_s, "submit", len(specs)))
        first, self.submitted = self.submitted, self.submitted + len(specs)
        return [str(n) for n in range(first, self.submitted)]

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        self.asked.append((self.clock.at_s, "status", len(ids)))
        return {i: self._status(i) for i in ids}

    def _status(self, number: str) -> JobStatus:
        if number in self.running:
            return JobStatus(number, JobState.RUNNING, started_s=self.clock.at_s)
        if number in self.over:
            return JobStatus(number, JobState.ENDED, started_s=self.clock.at_s, exit_code=1)
        return JobStatus(number, JobState.WAITING)

    def cancel(self, ids: Collection[str]) -> None:
        raise AssertionError(f"nobody wanted to cancel {ids}")

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        raise AssertionError(f"nobody doubts {tags}")

    def snapshot(self) -> Snapshot:
        raise AssertionError("nobody forecasts here")

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        raise AssertionError(f"nobody forecasts {nodes} nodes for {walltime_s} s here")

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        return [spec.tag for spec in specs]


class NoWait:
    """Forecasts that everything starts at once."""

    name = "no-wait"

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        return np.zeros(np.broadcast(nodes, requested_s).shape, dtype=np.int64)


def hired(
    folder: Path, tasks: int, strategy: str, clock: Clock, queue: CountingQueue, *, cap: int = 1000
) -> Manager:
    """A manager of so many independent tasks; the run's journal is made where there is none."""
    workflow = Workflow.from_tasks("many", [Task(f"t{i}", 10.0, kind="t") for i in range(tasks)])
    runnable = Runnable(workflow, tuple(Step(("true",), "/") for _ in range(tasks)))
    site = Site.of(8, cap=cap, max_array=queue.max_array)
    terms = Terms(margin=1.2, overhead_s=15, patience=PATIENCE)
    path = folder / "journal.sqlite"
    journal = (
        RunJournal.open(path, writable=True)
        if path.exists()
        else RunJournal.create(path, {"uid": "u"})
    )
    dispatch = Dispatch(RunFolder(folder), runnable, "u", "many-1")
    return Manager(
        folder=RunFolder(folder),
        journal=journal,
        core=Core(Work(workflow, whole_seconds(workflow), site), terms),
        outposts=[Outpost(queue, forecasters=[NoWait()])],
        strategy=find_strategy(strategy),
        dispatch=dispatch,
        on_records=Learning(dispatch, {"": LearningPlace("counting")}, (), History(waits_path())),
        now_s=clock.now,
        steady_s=clock.now,
    )


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories of their own; and no test here is about what survives a crash of the machine."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history.sqlite"))


def drive(manager: Manager, clock: Clock, seconds: float) -> int:
    """Let the manager live for so long, as `app.execute.drive` does; how often it looked."""
    until, steps = clock.at_s + seconds, 0
    while clock.at_s < until:
        happened = manager.step()
        clock.at_s += manager.next_look_s(happened=happened)
        steps += 1
    return steps


def gaps_s(queue: CountingQueue, what: str) -> list[float]:
    times = [at for at, call, _ in queue.asked if call == what]
    return [b - a for a, b in pairwise(times)]


@pytest.mark.slow
def test_a_thousand_waiting_jobs_are_asked_for_together_and_ever_more_rarely(
    tmp_path: Path,
) -> None:
    clock = Clock()
    queue = CountingQueue(clock)
    manager = hired(tmp_path, 1000, "individual", clock, queue)
    manager.begin()
    steps = drive(manager, clock, 600)
    assert [size for _, call, size in queue.asked if call == "submit"] == [1000], (
        "alike jobs go out together"
    )
    sizes = [size for _, call, size in queue.asked if call == "status"]
    assert set(sizes) == {1000}, "one query for all"
    gaps = gaps_s(queue, "status")
    assert min(gaps) >= POLL_S
    assert max(gaps) <= SLOWEST_POLL_S + 1
    assert len(sizes) <= 600 / SLOWEST_POLL_S + 10
    assert steps <= 601, "it sleeps a second between looks"


@pytest.mark.slow
def test_a_thousand_silent_jobs_cost_one_look_at_each_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue calls them over, their agents have not said a word, and claims never change."""
    clock, folder = Clock(), RunFolder(tmp_path)
    queue = CountingQueue(clock)
    manager = hired(tmp_path, 1000, "individual", clock, queue)
    manager.begin()
    for number in range(1000):
        assert not claim(folder.claim(number), "here", manager.placed[number].id or "", clock.at_s)
    queue.running = {str(number) for number in range(1000)}
    drive(manager, clock, 5)
    seen: Counter[str] = Counter()
    read, listed, found = Path.read_bytes, os.listdir, os.stat
    monkeypatch.setattr(Path, "read_bytes", lambda path: (seen.update([path.name]), read(path))[1])
    monkeypatch.setattr(os, "listdir", lambda *args: (seen.update(["list"]), listed(*args))[1])
    monkeypatch.setattr(
        os, "stat", lambda *args, **how: (seen.update(["stat"]), found(*args, **how))[1]
    )
    queue.running, queue.over = set(), queue.running
    while not all(job.over_since_s is not None for job in manager.placed.values()):
        drive(manager, clock, 1)
    assert drive(manager, clock, PATIENCE_S - 1) >= 2
    assert len(manager.placed) == 1000, "their agents may still speak"
    assert seen.pop("stat") < 10, "whether the run is held open, once a look"
    assert seen == {"claim": 1000}


@pytest.mark.slow
def test_agents_that_talk_all_the_time_make_no_more_queries(tmp_path: Path) -> None:
    clock = Clock()
    queue = CountingQueue(clock)
    manager = hired(tmp_path, 130, "one-job", clock, queue)
    manager.begin()
    (number,) = manager.placed
    writer = event_file.Writer(manager.folder.events(number), sync_every_s=1e9)
    writer.add(event_file.AgentStarted(clock.at_s, "here", 1, "0", ("here",)))
    queue.running.add("0")
    for task in range(129):
        writer.add(event_file.AttemptStarted(clock.at_s, Attempt(task, 1, nodes=(0,))))
        writer.add(event_file.AttemptFinished(clock.at_s, Attempt(task, 1, begun=clock.at_s)))
        writer.flush()
        assert manager.step(), "it heard something"
        clock.at_s += manager.next_look_s(happened=True)
    writer.close()
    assert len(gaps_s(queue, "status")) <= 2, "the queue is asked as rarely as if they were silent"
    assert min(gaps_s(queue, "status")) >= POLL_S


def resident_bytes() -> int:
    """What this process holds of the machine's memory."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("memory is measured by /proc, which is not here")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


@pytest.mark.slow
def test_forty_thousand_events_leave_memory_flat_and_are_replayed(tmp_path: Path) -> None:
    tasks, batch = 20_000, 1000
    clock = Clock()
    queue = CountingQueue(clock)
    manager = hired(tmp_path, tasks, "one-job", clock, queue)
    manager.begin()
    (number,) = manager.placed
    writer = event_file.Writer(manager.folder.events(number), sync_every_s=1e9)
    writer.add(event_file.AgentStarted(clock.at_s, "here", 1, "0", ("here",)))
    early_bytes = 0
    for first in range(0, tasks - 1, batch):
        for task in range(first, min(first + batch, tasks - 1)):
            writer.add(event_file.AttemptStarted(clock.at_s, Attempt(task, 1, nodes=(0,))))
            writer.add(
                event_file.AttemptFinished(
                    clock.at_s + 1, Attempt(task, 1, begun=clock.at_s, cpu_s=0.5)
                )
            )
        writer.flush()
        clock.at_s += 1
        assert manager.step()
        early_bytes = early_bytes or (resident_bytes() if first >= tasks // 5 else 0)
    writer.close()
    grown = resident_bytes() - early_bytes
    assert grown < 7 * 2**20, f"{grown / 2**20:.0f} MB more after 32,000 events"

    manager.journal.close()
    again = hired(tmp_path, tasks, "one-job", clock, queue)
    again.restore()
    assert [task for task in range(tasks) if not again.core.is_done(task)] == [tasks - 1]
    assert again.placed[number].tail.offset == manager.folder.events(number).stat().st_size
    assert again.step() is False, "nothing is heard twice"
    again.journal.close()


@pytest.mark.slow
def test_what_the_manager_looks_back_at_does_not_grow_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    manager = hired(tmp_path, 10, "individual", clock, CountingQueue(clock))
    manager.outposts[0].predictions.said = [
        PredictedStart(n, "no-wait", n, 1, 60, n, 1) for n in range(20_000)
    ]
    looked_at: list[int] = []

    def choose(known: Sequence[ledger.PastPrediction], *, default: str) -> str:
        looked_at.append(len(known))
        return default

    monkeypatch.setattr(ledger, "choose", choose)
    manager.begin()
    assert max(looked_at) <= 4 * ledger.LAST + 10
    assert min(looked_at) >= ledger.LAST
    manager.journal.close()


def test_predictions_of_many_jobs_are_one_write(tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "journal.sqlite", {})
    said = [PredictedStart(n, "twin", 5.0, 1, 60, 7.0, 0) for n in range(100)]
    statements: list[str] = []
    journal._db.set_trace_callback(statements.append)
    journal.predict(said)
    assert statements.count("COMMIT") == 1
    assert journal.predictions() == said
    journal.close()


def test_a_journal_reads_only_the_kinds_asked_for(tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "journal.sqlite", {})
    events: list[Event] = [
        JobSubmitted(1, 0, "a"),
        JobStarted(2, 0),
        TaskStarted(3, 0, 7),
        JobStarted(4, 1),
    ]
    journal.append([Record(event) for event in events])
    assert [record.event for _, record in journal.records()] == events
    assert [(seq, r.event) for seq, r in journal.records(kinds=(JobStarted,))] == [
        (2, events[1]),
        (4, events[3]),
    ]
    assert [seq for seq, _ in journal.records(2, kinds=(JobStarted, TaskStarted))] == [3, 4]
    journal.close()


def test_past_predictions_come_with_the_starts_of_their_own_runs(tmp_path: Path) -> None:
    for name, uid, queue in (
        ("a-1", "aa", "local"),
        ("a-2", "bb", "local"),
        ("a-3", "cc", "slurm"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        facts = {"uid": uid, "request": {"workflow": "w.yaml", "on": queue}}
        journal = RunJournal.create(folder / "journal.sqlite", facts)
        journal.append([Record(JobStarted(100, 0), at_s=100.5)] if uid == "aa" else [])
        journal.predict([PredictedStart(0, "twin", 90.0 + int(name[-1]), 1, 60, 99.0, 1)])
        journal.close()
    found = past_predictions(tmp_path, "local")
    assert [(p.tag, p.predicted_s, p.started_s) for p in found] == [
        ("windrow-aa-0", 99.0, 100.5),
        ("windrow-bb-0", 99.0, None),
    ]
    assert len(past_predictions(tmp_path)) == 3


def test_waits_are_learnt_once_from_submission_to_start() -> None:
    workflow = Workflow.from_tasks("one", [Task("t", 1.0)])
    runnable = Runnable(workflow, (Step(("true",), "/"),))
    plan = Record(JobsPlanned(0, Decision((JobPlan((0,), 3, 50, 60),))))
    dispatch = Dispatch(RunFolder(Path("nowhere")), runnable, "u", "one-1")
    submitted = Record(JobSubmitted(10, 0, "q"), at_s=10.5)
    learning = Learning(
        dispatch, {"": LearningPlace("here")}, [plan, submitted], History(waits_path())
    )
    learning([Record(JobStarted(40, 0), at_s=40.25)])
    learning([Record(JobStarted(50, 0), at_s=50.0)])
    with closing(sqlite3.connect(waits_path())) as database:
        rows = database.execute("SELECT queue, tag, submitted_s, wait_s FROM waits").fetchall()
    assert rows == [("here", "windrow-u-0", 10.5, 29.75)]


def test_jobs_submitted_together_are_predicted_one_behind_the_other(tmp_path: Path) -> None:
    clock = Clock()
    queue = CountingQueue(clock)
    queue.snapshot = lambda: Snapshot(clock.at_s, 2, ())  # type: ignore[method-assign]  # two nodes, and nobody there
    manager = hired(tmp_path, 6, "individual", clock, queue)
    manager.outposts[0].predictions.forecasters = [Twin(queue, clock.now)]
    manager.begin()
    (request_s,) = {p.requested_s for p in manager.outposts[0].predictions.said}
    waits = [p.start_s - clock.at_s for p in manager.outposts[0].predictions.said]
    assert waits == [0, 0, request_s, request_s, 2 * request_s, 2 * request_s]
    manager.journal.close()
