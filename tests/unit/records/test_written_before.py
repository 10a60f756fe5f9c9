"""What earlier versions wrote is read as they meant it.

`written_before.tar.gz` was made by the version before journals, stores and user files got one room: three toy runs on
this machine (one complete, one with a task that failed, one whose manager was killed while a task ran; the journals
with SQLite's logs as their processes left them), a pool that served two workflows and was given a third, a local queue
left in the middle of its work, what was learned of waits and run times, and what was seen of a queue.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from windrow.agent.folder import RunFolder
from windrow.app.runs import RunPaths, RunView, past_predictions
from windrow.forecast.runtimes import RunTimes
from windrow.forecast.waits import History, PastWait
from windrow.foresight.observed_file import ObservedFile
from windrow.manager.core import Core
from windrow.manager.dispatch import job_tag
from windrow.manager.journal import Record, RunJournal
from windrow.manager.states import TaskState
from windrow.manager.terms import Terms
from windrow.model.site import Site
from windrow.pool import events as e
from windrow.pool.folder import PoolFolder
from windrow.pool.journal import PoolJournal
from windrow.pool.view import PoolView
from windrow.queues.local.store import LocalSettings, QueueStore
from windrow.queues.port import JobSpec, JobState
from windrow.strategies.levels import Work, whole_seconds

RUNS = ("good-1", "bad-1", "long-1")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).with_name("written_before.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def rows_of(path: Path) -> list[tuple[int, float, str, Any, Any]]:
    """The events as they are in the file, without a line of ours."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT seq, at_s, kind, body, detail FROM events ORDER BY seq").fetchall()
    return [(seq, at_s, kind, body, detail and json.loads(detail)) for seq, at_s, kind, body, detail in found]


def row(journal: RunJournal, seq: int, record: Record) -> tuple[int, float, str, Any, Any]:
    """As it would be written today, byte for byte."""
    return seq, record.at_s, *journal._row(record.event), record.detail


@pytest.mark.parametrize("name", RUNS)
def test_every_record_of_a_run_says_what_it_said(old: Path, name: str) -> None:
    path = old / "runs" / name / "journal.sqlite"
    written = rows_of(path)
    journal = RunJournal.open(path)
    assert [row(journal, seq, record) for seq, record in journal.records()] == written
    assert len(written) >= 5
    journal.close()


@pytest.mark.parametrize(
    ("name", "state", "finished", "failed"),
    [("good-1", "complete", 3, 0), ("bad-1", "failed", 1, 1), ("long-1", "interrupted", 1, 0)],
)
def test_runs_are_told_and_replayed(old: Path, name: str, state: str, finished: int, failed: int) -> None:
    paths = RunPaths(RunFolder.at(old / "runs" / name))
    view = RunView(paths)
    assert view.state == state
    assert (view.story.count(TaskState.FINISHED), view.story.count(TaskState.FAILED)) == (finished, failed)
    assert job_tag(view.facts["uid"], 0) == f"windrow-{view.facts['uid']}-0"
    workflow, terms = view.runnable.workflow, Terms()
    core = Core(Work(workflow, whole_seconds(workflow), Site.of(2)), terms)
    journal = RunJournal.open(paths.journal, writable=True)
    for _, record in journal.records():
        core.handle(record.event)
    core.check()
    assert sum(core.is_done(task) for task in range(len(workflow))) == finished
    journal.set_fact("trouble", "none")  # it can be gone on with
    assert journal.facts()["trouble"] == "none"
    journal.close()
    view.close()


def test_predictions_of_earlier_runs_count(old: Path) -> None:
    found = past_predictions(old / "runs")
    assert {p.tag.rpartition("-")[0].partition("-")[0] for p in found} == {"windrow"}
    assert len(found) == sum(_count(old / "runs" / name / "journal.sqlite", "predictions") for name in RUNS)


def _count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_pool_goes_on_where_it_was(old: Path) -> None:
    folder = PoolFolder(old / "pools" / "lab")
    view = PoolView(folder)
    assert {number: w.outcome for number, w in view.story.workflows.items()} == {1: e.COMPLETE, 2: e.FAILED}
    assert (view.submitted, view.holder) == (1, None)
    assert view.settings is not None
    assert (view.settings.policy, view.settings.slots) == ("bf", 2)
    assert [folder.read(number)[0].workflow.name for number in (1, 2, 3)] == ["good", "bad", "good"]
    assert folder.read(3)[1] > folder.read(1)[1] > 1e9
    before = _count(folder.journal, "events")
    journal = PoolJournal.open(folder.journal, writable=True)
    journal.append([e.PoolClosed(view.facts["created_s"], "over")], {"reserved": 1})
    assert [type(event) for _, event in journal.records(before)] == [e.PoolClosed]
    journal.close()
    view.close()


def test_a_queue_goes_on_where_it_was(old: Path) -> None:
    store = QueueStore(old / "queue" / "queue.sqlite")
    assert store.settings() == LocalSettings(nodes=2)
    ended, running, waiting, unwanted = store.jobs(range(10))
    states = [job.state for job in (ended, running, waiting, unwanted)]
    assert states == [JobState.ENDED, JobState.RUNNING, JobState.WAITING, JobState.WAITING]
    assert (ended.exit_code, running.boot, unwanted.is_unwanted) == (3, "some-boot", True)
    assert store.find(["windrow-0123456789ab-2"]) == {"windrow-0123456789ab-2": waiting.id}
    assert store.launch(waiting.id).environment == {"A": "1", "PATH": "/usr/bin:/bin"}
    spec = JobSpec(tag="new", nodes=1, walltime_s=60, command=("true",), workdir="/", output="/dev/null")
    assert store.add([spec], {}, 2000.0) == [unwanted.id + 1]
    store.close()


def test_what_was_learnt_is_known(old: Path) -> None:
    waits = History(old / "data" / "windrow" / "waits.sqlite")
    (bound,) = waits.bounds("local", [(1, 60)], 1794797800.0, quantile=0.5, confidence=0.7)
    assert bound is not None
    assert (bound.jobs, bound.wait_s) == (2, 1)
    waits.record("local", [PastWait("windrow-new-0", 1, 60, 1794797790.0, 1794797795.0)])
    (more,) = waits.bounds("local", [(1, 60)], 1794797800.0, quantile=0.5, confidence=0.7)
    assert more is not None
    assert more.jobs == 3
    times = RunTimes(old / "data" / "windrow" / "history.sqlite")
    assert [len(times.times("good", kind)) for kind in ("first", "second", "third", "unheard")] == [1, 1, 1, 0]
    seen = ObservedFile("slurm at site", old / "state" / "windrow" / "seen").load()
    assert [(job.user, job.nodes, job.started_s) for job in seen.jobs.values()] == [("me", 2, 160.0)]
