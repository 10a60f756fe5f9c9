"""No two live runs write the same files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.agent.event_file import last_word
from windrow.app import live_runs
from windrow.app.facts import RunFacts, RunRequest
from windrow.app.queues import open_queue
from windrow.app.runs import RunPaths, facts_of, new_run
from windrow.cli.main import main
from windrow.errors import UserError
from windrow.manager.dispatch import job_tag
from windrow.model import Runnable, Task, Workflow
from windrow.pool.folder import PoolFolder
from windrow.pool.journal import PoolJournal
from windrow.queues.port import JobSpec
from windrow.records.lock import RunLock
from windrow.records.runnable_file import write_runnable
from windrow.story import events as e
from windrow.story.journal import Record, RunJournal
from windrow.strategies import Decision, JobPlan


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def writing(folder: Path, *outputs: str) -> Runnable:
    folder.mkdir(exist_ok=True)
    task = Task("t", 1.0, outputs=outputs, command=("true",))
    return Runnable.of(Workflow.from_tasks("w", [task]), str(folder))


def made(
    runnable: Runnable, root: Path, workflow: str = "w.yaml", uid: str = "", on: str = ""
) -> RunPaths:
    def fill(paths: RunPaths) -> None:
        write_runnable(paths.workflow, runnable)
        request = RunRequest(root.parent.parent / workflow, on=on)
        facts = RunFacts(request=request, uid=uid, created_s=1.0)
        RunJournal.create(paths.journal, facts.written()).close()

    return new_run("w", root, fill)


def test_a_managed_run_keeps_its_files_to_itself(tmp_path: Path) -> None:
    first = writing(tmp_path / "a", "x", "y")
    run = made(first, tmp_path / "a" / ".windrow" / "runs")
    lock = RunLock(run.lock)
    live_runs.enter(run, first, facts_of(run))
    live_runs.enter(run, first, facts_of(run))  # it is not in its own way
    (tmp_path / "link").symlink_to(tmp_path / "a")
    root = tmp_path / "b" / ".windrow" / "runs"
    for other in (
        writing(tmp_path / "b", "../a/y"),
        writing(tmp_path / "b", str(tmp_path / "link" / "y")),
    ):
        with pytest.raises(
            UserError,
            match=r"w-1 in .*a/.windrow/runs/w-1 is running and writes .*a/y, which this run",
        ):
            live_runs.refuse_conflicts(root, tmp_path / "b.yaml", other)
    for folder in ("../a", "../a/x/inside"):
        with pytest.raises(UserError, match="w-1"):
            live_runs.refuse_conflicts(root, tmp_path / "b.yaml", writing(tmp_path / "b", folder))
    live_runs.refuse_conflicts(root, tmp_path / "b.yaml", writing(tmp_path / "b", "y"))
    lock.release()
    live_runs.refuse_conflicts(root, tmp_path / "b.yaml", writing(tmp_path / "b", "../a/y"))
    assert [path.name for path in (tmp_path / "state" / "windrow" / "live").iterdir()] == [".lock"]


def test_a_run_without_a_manager_lives_while_its_jobs_do(tmp_path: Path) -> None:
    runnable = writing(tmp_path / "a", "x")
    root = tmp_path / "a" / ".windrow" / "runs"
    run = made(runnable, root)
    journal = RunJournal.open(run.journal, writable=True)
    journal.append([Record(e.JobsPlanned(1, Decision((JobPlan((0,), 1, 5, 60),))))])
    live_runs.enter(run, runnable, facts_of(run))
    with pytest.raises(UserError, match="has unfinished jobs and runs the same workflow file"):
        live_runs.refuse_conflicts(root, tmp_path / "a" / "w.yaml", runnable)
    with pytest.raises(UserError, match="has unfinished jobs and writes"):
        live_runs.refuse_conflicts(root, tmp_path / "a" / "other.yaml", runnable)
    journal.append([Record(e.JobEnded(2, 0))])
    journal.close()
    live_runs.refuse_conflicts(root, tmp_path / "a" / "w.yaml", runnable)


def test_a_pool_takes_nothing_that_a_live_run_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history.sqlite"))
    (tmp_path / "w.yaml").write_text(
        'name: w\ntasks:\n  - {id: t, command: "echo > x", outputs: x, runtime: 1s}\n'
    )
    runnable = writing(tmp_path, "x")
    run = made(runnable, tmp_path / ".windrow" / "runs")
    lock = RunLock(run.lock)
    live_runs.enter(run, runnable, facts_of(run))
    pool = PoolFolder(tmp_path / ".windrow" / "pools" / "lab")
    pool.make()
    PoolJournal.create(pool.journal, {})
    assert main(["submit", "w.yaml", "--pool", "lab"]) == 2
    assert "w-1 in" in capsys.readouterr().err
    lock.release()
    assert main(["submit", "w.yaml", "--pool", "lab"]) == 0


def test_without_a_place_to_look_runs_are_not_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    runnable = writing(tmp_path / "a", "x")
    live_runs.refuse_conflicts(tmp_path / "a", tmp_path / "w.yaml", runnable)


@pytest.mark.slow
def test_of_two_that_start_at_once_one_is_refused(tmp_path: Path) -> None:
    lines = [
        f'  - {{id: t{i}, command: "sleep 0.2; echo t{i} >> ran", runtime: 1s}}' for i in range(6)
    ]
    (tmp_path / "w.yaml").write_text("\n".join(["name: w", "tasks:", *lines, ""]))
    env = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "WINDROW_HISTORY": str(tmp_path / "history"),
    }
    command = [sys.executable, "-m", "windrow.cli.main", "run", "w.yaml"]
    both = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=env,
            text=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    assert any(
        "w-1" in words or "w-2" in words
        for process, words in zip(both, said, strict=True)
        if process.returncode
    )
    assert Counter((tmp_path / "ran").read_text().split()) == {f"t{i}": 1 for i in range(6)}
    assert len(list((tmp_path / ".windrow" / "runs").iterdir())) == 1


@pytest.mark.slow
def test_a_run_with_a_damaged_journal_lives_while_its_jobs_do(tmp_path: Path) -> None:
    command = (
        f"echo {{i}} >> ran; while [ ! -e {tmp_path}/go{{i}} ]; do sleep 0.05; done; echo "
        f"> {{outputs}}"
    )
    (tmp_path / "w.yaml").write_text(
        f'name: w\ntasks:\n  - {{id: "a{{i}}", matrix: {{i: 1..2}}, command: "{command}", '
        f'outputs: "{{i}}.x"}}\n'
    )
    env = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "WINDROW_HISTORY": str(tmp_path / "history"),
    }
    run = [sys.executable, "-m", "windrow.cli.main", "run", "w.yaml"]
    with subprocess.Popen(
        run, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as first:
        wait_until((tmp_path / "ran").exists)
        journal = tmp_path / ".windrow" / "runs" / "w-1" / "journal.sqlite"
        journal.write_bytes(b"")
        (tmp_path / "go1").touch()  # an event, which its manager cannot record
        assert first.wait(100) == 1
    try:
        second = subprocess.run(
            run, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False
        )
        assert second.returncode == 2
        assert "w-1" in second.stderr
        assert (
            "may have unfinished jobs, and runs the same workflow file in this folder"
            in second.stderr
        )
    finally:
        (tmp_path / "go2").touch()
    events = journal.parent / "jobs" / "0" / "events"
    wait_until(lambda: last_word(events, events.stat().st_size) is not None)
    third = subprocess.run(
        run, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert third.returncode == 0, third.stderr


@pytest.mark.slow
def test_jobs_of_a_damaged_run_that_were_killed_are_asked_of_their_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runnable = writing(tmp_path / "a", "x")
    root = tmp_path / "a" / ".windrow" / "runs"
    run = made(runnable, root, uid="1234", on="local")
    queue = open_queue("local")
    job = queue.submit(
        JobSpec(job_tag("1234", 0), 1, None, ("sleep", "60"), str(tmp_path), str(tmp_path / "out"))
    )
    live_runs.enter(run, runnable, facts_of(run))
    run.folder.make(0)
    run.journal.write_bytes(b"no journal")
    other = writing(tmp_path / "b", "../a/x")
    try:
        with pytest.raises(
            UserError, match=r"may have unfinished jobs, and writes .*/x, which this run"
        ):
            live_runs.refuse_conflicts(root, tmp_path / "b.yaml", other)
        run.workflow.unlink()
        with pytest.raises(
            UserError, match="may have unfinished jobs, and may write the same files"
        ):
            live_runs.refuse_conflicts(root, tmp_path / "b.yaml", other)
    finally:
        queue.cancel([job])
    wait_until(lambda: queue.status([job])[job].state.is_over)
    live_runs.refuse_conflicts(root, tmp_path / "b.yaml", other)
