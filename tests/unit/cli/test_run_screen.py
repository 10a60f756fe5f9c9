"""How a run is told on a terminal: from its journal, and what its manager last said."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec import to_builtins

from windrow.app.facts import RunFacts, RunRequest
from windrow.app.runs import RunPaths, RunView, new_run
from windrow.cli import progress_lines, run_screen
from windrow.model import Runnable, Task, Workflow
from windrow.model.cause import Cause
from windrow.records.runnable_file import write_runnable
from windrow.report.run.view import status_view
from windrow.story import events as e
from windrow.story.journal import Record, RunJournal
from windrow.strategies import Decision, JobPlan


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    """A run whose one job waits, and that nobody manages."""

    def fill(paths: RunPaths) -> None:
        runnable = Runnable.of(
            Workflow.from_tasks("w", [Task("t", 1.0, command=("true",))]), str(tmp_path)
        )
        write_runnable(paths.workflow, runnable)
        request = RunRequest(Path("w.yaml"), on="slurm", strategy="glume")
        facts = RunFacts(request=request, uid="1", created_s=1.0).written()
        journal = RunJournal.create(paths.journal, facts)
        planned = e.JobsPlanned(1, Decision((JobPlan((0,), 1, 5, 60),)))
        journal.append([Record(e.RunBegan(1)), Record(planned), Record(e.JobSubmitted(2, 0, "17"))])
        journal.close()

    return new_run("w", tmp_path / "runs", fill)


def says(paths: RunPaths, **words: object) -> RunView:
    journal = RunJournal.open(paths.journal, writable=True)
    journal.set_fact("queue_words", words)
    journal.close()
    return RunView(paths)


def test_why_a_job_waits_is_in_all_that_is_shown(paths: RunPaths) -> None:
    told = says(paths, reasons={"0": "QOSMaxWallDurationPerJobLimit"}, trouble="")
    because = "it requests more than its QOS allows one job (QOSMaxWallDurationPerJobLimit)"
    rows, _ = run_screen.job_rows(told, 3.0)
    assert rows[0][-1] == because
    (warning,) = [line for line in run_screen.summary(told, 3.0) if line.startswith("warning: ")]
    assert warning.startswith(
        f"warning: nothing of this run can start: job 0 (17) waits because {because}; fix: "
    )
    shown = to_builtins(status_view(told))
    assert shown["jobs"][0]["reason"] == "QOSMaxWallDurationPerJobLimit"
    assert shown["warnings"] == [warning]
    told.close()


def test_a_job_of_which_the_queue_said_nothing_waits_for_no_reason(paths: RunPaths) -> None:
    told = RunView(paths)
    assert run_screen.job_rows(told, 3.0)[0][0][-1] == ""
    assert to_builtins(status_view(told))["jobs"][0]["reason"] == ""
    assert not told.warnings()
    told.close()


def test_what_a_manager_died_of_is_told(paths: RunPaths) -> None:
    words = "journal.sqlite: the journal cannot be used: database or disk is full"
    paths.log.write_text(f"00:00:01  0/1 tasks  job 0 waiting\nwindrow: error: {words}\n")
    told = RunView(paths)
    assert told.state == "interrupted"
    assert f"its manager ended: {words}" in run_screen.summary(told, time.time())
    os.utime(paths.log, (0, 0))  # another one managed the run since then
    assert not any("disk is full" in line for line in run_screen.summary(told, time.time()))
    told.close()


def test_progress_lines_tell_each_reason_once_and_warn_on_stderr(
    paths: RunPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    told = says(paths, reasons={"0": "Priority"}, trouble="")
    with progress_lines.showing(told) as show:
        show(None)
        for word in ("PartitionDown", "Priority", "PartitionDown"):
            says(paths, reasons={"0": word}, trouble="").close()
            show(None)
    told.close()
    said = capsys.readouterr()
    assert said.out.count("job 0 waits because jobs of higher priority come first (Priority)") == 1
    assert (
        said.out.count("0/1 tasks  job 0 waits because its partition is down (PartitionDown)") == 1
    )
    assert (
        said.err.count("windrow: warning: nothing of this run can start: job 0 (17) waits because")
        == 2
    )


def test_causes_and_avoided_nodes_are_told(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs in a row lost the same node."""
    now = int(time.time())
    journal = RunJournal.open(paths.journal, writable=True)
    planned = e.JobsPlanned(now, Decision((JobPlan((0,), 1, 5, 60),)))
    killed = [
        e.JobKilled(now, job, why="a node failed", cause=Cause.NODE_FAILED, node="n3")
        for job in (0, 1)
    ]
    journal.append(
        [Record(event) for event in (killed[0], planned, e.JobSubmitted(now, 1, "18"), killed[1])]
    )
    journal.close()
    told = RunView(paths)
    monkeypatch.setattr(RunView, "state", "running")
    until = run_screen.clock(now + 3600)
    assert f"avoiding n3 until {until}: 2 jobs failed on it" in run_screen.summary(told, now + 1.0)
    shown = to_builtins(status_view(told))
    assert [job["cause"] for job in shown["jobs"]] == ["node failed", "node failed"]
    assert shown["avoided_nodes"] == [
        {"node": "n3", "why": "2 jobs failed on it", "until_s": now + 3600}
    ]
    told.close()
