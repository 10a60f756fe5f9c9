"""Changed workflow files, a second `run`, deleted results, moved folders: by real runs on a queue
of their own."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.app import continuing
from windrow.app.queues import open_queue
from windrow.app.runs import RunView, find_run
from windrow.cli.main import main
from windrow.story import events as e
from windrow.story.journal import RunJournal

pytestmark = pytest.mark.slow

CHAIN = """
name: m
tasks:
  - {id: gen, command: "cat data > x; echo gen >> ran", inputs: data, outputs: x, runtime: 1s}
  - {id: use, command: "USE", inputs: x, outputs: y, runtime: 1s}
  - {id: plot, command: "cat y > z; echo plot >> ran", inputs: y, outputs: z, runtime: 1s}
  - {id: side, command: "touch s; echo side >> ran", outputs: s, runtime: 1s}
"""
GOOD = "cat x > y; echo use >> ran"


@pytest.fixture(autouse=True)
def _here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which somebody works."""
    (home / "p").mkdir()
    monkeypatch.chdir(home / "p")
    Path("data").write_text("1\n")


def write(use: str, more: str = "") -> str:
    Path("m.yaml").write_text(CHAIN.replace("USE", use) + more)
    return "m.yaml"


def ran() -> Counter[str]:
    return Counter(Path("ran").read_text().split()) if Path("ran").exists() else Counter()


def said(capsys: pytest.CaptureFixture[str]) -> str:
    heard = capsys.readouterr()
    return heard.out + heard.err


def test_resume_takes_the_corrected_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write("exit 3")]) == 1
    write(GOOD)
    said(capsys)
    assert main(["resume"]) == 0
    words = said(capsys)
    assert "1 unfinished task changed: use (its command changed)" in words
    assert "2 tasks stay finished, 2 to run" in words
    assert "m-2 continues m-1" in words
    assert ran() == {"gen": 1, "use": 1, "plot": 1, "side": 1}
    assert main(["status", "m-1"]) == 0
    assert "m-1: continued by m-2" in said(capsys)
    assert main(["resume", "m-1"]) == 2
    assert "m-1 is continued by m-2; use windrow resume m-2" in said(capsys)
    assert main(["explain", "gen"]) == 0
    assert "kept from m-1" in said(capsys)
    for command in ("report", "runs", "status"):
        assert main([command]) == 0


def test_what_depends_on_a_change_runs_again_and_chains_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", write(GOOD)]) == 0
    write(
        "cat x x > y; echo use >> ran",
        '  - {id: extra, command: "echo extra >> ran", runtime: 1s}\n',
    )
    assert main(["resume", "--json"]) == 0
    heard = capsys.readouterr()
    assert (
        "2 finished tasks run again: use (its command changed), plot (it depends on use)"
        in heard.err
    )
    assert "1 new task: extra" in heard.err
    found = json.loads(heard.out[heard.out.index("{") :])
    assert (found["run"], found["continues"], found["tasks"]["kept"]) == ("m-2", "m-1", 2)
    assert Path("z").read_text() == "1\n1\n"
    write("cat x x x > y; echo use >> ran")
    assert main(["resume"]) == 0
    words = said(capsys)
    assert "1 task is no longer in the file: extra" in words
    assert "m-3 continues m-2" in words
    assert ran() == {"gen": 1, "side": 1, "use": 3, "plot": 3, "extra": 1}
    assert RunView(find_run(None)).story.tasks[0].kept.run == "m-1"  # type: ignore[union-attr]


def test_a_changed_input_runs_its_readers_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(GOOD)]) == 0
    Path("data").write_text("2\n")
    os.utime("data", (1, 1))  # an older file than before, of the same size
    said(capsys)
    assert main(["run", "m.yaml"]) == 2
    words = said(capsys)
    assert "gen (its input data changed), use, plot (they depend on gen)" in words
    assert "--resume   continues it and runs 3 of 4 tasks" in words
    assert main(["run", "m.yaml", "--resume"]) == 0
    assert Path("z").read_text() == "2\n"
    assert ran() == {"gen": 2, "use": 2, "plot": 2, "side": 1}
    said(capsys)
    assert main(["run", "m.yaml"]) == 0
    assert (
        "m-2 of this workflow is complete and up to date; nothing to do (--again runs all 4"
        in said(capsys)
    )


def test_a_file_that_cannot_be_read_is_not_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write("touch y")]) == 0
    Path("m.yaml").write_text(Path("m.yaml").read_text().replace("outputs: s", "outputs: m.yaml"))
    said(capsys)
    assert main(["run", "m.yaml"]) == 2
    assert "which is the workflow file itself" in said(capsys)


def test_a_second_run_asks_what_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write("exit 3"), "--resume"]) == 2
    assert "no run of m.yaml here to resume" in said(capsys)
    assert main(["run", "m.yaml"]) == 1
    said(capsys)
    assert main(["run", "m.yaml"]) == 2
    words = said(capsys)
    assert "there is already a run of this workflow: m-1, failed" in words
    assert "runs 2 of 4 tasks: use (failed), 1 that has not run" in words
    assert "--again    starts from the beginning and runs all 4" in words
    assert main(["run", "m.yaml", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["tasks_to_run"] == {"resume": 2, "again": 4}
    assert [path.name for path in Path(".windrow/runs").iterdir()] == ["m-1"]
    assert main(["run", "m.yaml", "--again", "--resume"]) == 2
    write(GOOD)
    assert main(["run", "m.yaml", "--again"]) == 0
    assert ran() == {"gen": 2, "side": 2, "use": 1, "plot": 1}
    assert not RunView(find_run("m-1")).facts.continued_by


def test_a_deleted_result_is_made_again_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(GOOD)]) == 0
    Path("x").unlink()  # nobody needs it
    said(capsys)
    assert main(["resume"]) == 0
    assert "m-1 is complete and up to date; nothing to do" in said(capsys)
    Path("s").unlink()
    assert main(["resume"]) == 0
    assert "task side runs again: its output s is gone" in said(capsys)
    assert ran() == {"gen": 1, "use": 1, "plot": 1, "side": 2}
    for name in ("y", "z"):
        Path(name).unlink()
    assert main(["resume"]) == 0
    assert ran() == {"gen": 2, "use": 2, "plot": 2, "side": 2}
    assert main(["status"]) == 0


def test_without_its_file_a_run_continues_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write("test -e ok && cp x y")]) == 1
    Path("m.yaml").unlink()
    Path("ok").touch()
    said(capsys)
    assert main(["resume"]) == 0
    assert (
        "m.yaml: no such file; check the path; m-1 continues with the workflow as it was started"
        in said(capsys)
    )
    assert find_run(None).name == "m-1"


def test_a_moved_or_copied_project_is_continued_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write("exit 3")]) == 1
    shutil.copytree(tmp_path / "p", tmp_path / "copy")
    (tmp_path / "p").rename(tmp_path / "q")
    for place in ("q", "copy"):
        monkeypatch.chdir(tmp_path / place)
        said(capsys)
        assert main(["retry", "use"]) == 2
        words = said(capsys)
        assert (
            f"m-1 was started in {tmp_path / 'p'} and has been moved to {tmp_path / place}" in words
        )
        assert main(["resume"]) == 1
        words = said(capsys)
        assert "m-1 ran in another folder; its results count here" in words
        assert "2 tasks stay finished, 2 to run" in words
        write(GOOD)
        assert main(["run", "m.yaml", "--resume"]) == 0
        assert "2 tasks stay finished, 2 to run" in said(capsys)
        assert main(["resume"]) == 0
        assert "up to date" in said(capsys)


@pytest.mark.parametrize("place", ["making", "marking"])
def test_whoever_dies_while_continuing_loses_nothing(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write("exit 3")]) == 1
    write(GOOD)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if place == "making":
            patched.setattr(RunJournal, "append", die)
        else:
            patched.setattr(continuing, "mark_continued", die)
        assert main(["resume"]) == 130
    assert find_run(None).name == ("m-1" if place == "making" else "m-2")
    if place == "marking":
        assert main(["resume", "m-1"]) == 2
        assert "m-1 is continued by m-2" in said(capsys)
        assert RunView(find_run("m-1")).state == "continued by m-2"
    assert main(["resume"]) == 0
    assert ran() == {"gen": 1, "use": 1, "plot": 1, "side": 1}


def test_retry_runs_finished_tasks_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(GOOD)]) == 0
    said(capsys)
    assert main(["retry", "use"]) == 0
    assert "m-1 runs 1 task again: use" in said(capsys)
    assert ran() == {"gen": 1, "use": 2, "plot": 1, "side": 1}
    assert main(["retry", "g*", "--with-descendants", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "complete"
    assert ran() == {"gen": 2, "use": 3, "plot": 2, "side": 1}
    assert main(["explain", "gen"]) == 0
    assert "task gen runs again: requested by windrow retry" in said(capsys)
    assert main(["retry", "plto"]) == 2
    assert "m-1 has no task 'plto'; did you mean plot?" in said(capsys)
    assert main(["retry", "nothing-*"]) == 2
    Path("y").unlink()  # what it needs is made again
    assert main(["retry", "plot", "--run", "m-1"]) == 0
    assert ran() == {"gen": 2, "use": 4, "plot": 3, "side": 1}
    for command in (["status"], ["report"]):
        assert main(command) == 0


def test_retry_of_a_failed_task_and_of_one_in_a_run_that_is_managed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (
        "name: m\ntasks:\n"
        '  - {id: a, command: "echo a >> ran", runtime: 1s}\n'
        '  - {id: b, command: "echo b >> ran; test -e ok", runtime: 1s}\n'
        '  - {id: c, command: "echo c >> ran", after: b, runtime: 1s}\n'
        '  - {id: last, command: "while ! test -e end; do sleep 0.1; done", runtime: 1s}\n'
        '  - {id: after, command: "echo after >> ran", after: [last], runtime: 1s}\n'
    )
    Path("m.yaml").write_text(text)
    assert main(["run", "m.yaml", "--detach", "--strategy", "individual"]) == 0
    told = RunView(find_run(None))

    def until(task: int, state: str) -> None:
        while told.story.tasks[task].state != state:
            assert told.holder is not None or told.story.tasks[task].state == state
            told.refresh()

    until(0, "finished")
    until(1, "failed")
    until(3, "running")
    Path("ok").touch()
    said(capsys)
    assert main(["retry", "a", "b"]) == 0
    assert "manages it and has been notified" in said(capsys)
    until(2, "finished")
    assert ran() == {"a": 2, "b": 2, "c": 1}
    assert main(["retry", "a", "last"]) == 0  # what runs is left alone
    Path("end").touch()
    until(4, "finished")
    while told.holder is not None:
        told.refresh()
    assert told.state == "complete"
    assert ran() == {"a": 3, "b": 2, "c": 1, "after": 1}


def test_a_changed_file_stops_what_the_old_run_still_has_in_the_queue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = write("touch began; sleep 600")
    assert main(["run", text, "--detach"]) == 0
    told = RunView(find_run(None))
    while told.story.tasks[1].state != "running" or told.story.tasks[3].state != "finished":
        told.refresh()
    write(GOOD)
    assert main(["run", "m.yaml", "--resume"]) == 2  # it is managed
    assert "m-1 of this workflow is running, managed by process" in said(capsys)
    os.kill(int(str(told.holder).split()[1]), 9)
    while told.holder is not None:
        told.refresh()
    assert told.state == "interrupted"
    assert main(["run", "m.yaml", "--again"]) == 2
    assert "m-1 in" in (words := said(capsys))
    assert "has unfinished jobs and runs the same workflow file" in words
    assert main(["resume"]) == 0
    assert "m-2 continues m-1" in said(capsys)
    assert ran() == {"gen": 1, "use": 1, "plot": 1, "side": 1}
    wait_until(
        lambda: open_queue("local").snapshot().jobs == ()
    )  # its server hears of the end a moment later


@pytest.mark.parametrize("change", ["file", "nothing", "outputs"])
def test_the_dry_run_of_a_continuation_is_what_it_does(
    change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(GOOD if change == "outputs" else "exit 3")
    assert main(["run", "m.yaml"]) == (0 if change == "outputs" else 1)
    if change == "outputs":
        Path("z").unlink()
    if change == "file":
        write(GOOD)
    before = ran()
    said(capsys)
    assert main(["run", "-n", "--resume", "m.yaml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert ran() == before
    assert [path.name for path in Path(".windrow/runs").iterdir()] == ["m-1"]
    assert (told["run"], len(told["jobs_now"]), len(told["commands"])) == ("m-1", 1, 1)
    planned = told["jobs_now"][0]["tasks"]
    assert planned == ([2] if change == "outputs" else [1, 2])
    assert told["finished"] + told["to_run"] == 4
    assert main(["run", "-n", "--resume", "m.yaml"]) == 0
    assert f"{told['finished']} tasks stay finished, {told['to_run']} to run" in said(capsys)
    assert main(["run", "--resume", "m.yaml"]) == (1 if change == "nothing" else 0)
    journal = RunJournal.open(find_run(None).journal)
    decided = [
        r.event.decision.jobs for _, r in journal.records() if isinstance(r.event, e.JobsPlanned)
    ]
    journal.close()
    assert list(decided[-1][0].tasks) == planned, "the run submitted what the dry run showed"


def test_options_count_even_if_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(GOOD)]) == 0
    Path("windrow.toml").write_text("[queues.small]\nkind = 'local'\nnodes = 2\n")
    for words in (
        ["--on", "nosuch"],
        ["--on", ""],
        ["--strategy", "nosuch"],
        ["--on", "nosuch", "--resume"],
    ):
        said(capsys)
        assert main(["run", "m.yaml", *words]) == 2, words
        assert "windrow: error:" in said(capsys)
    for words in ([], ["--on", "local"]):
        assert main(["run", "m.yaml", *words]) == 0
        assert "is a run on" not in said(capsys)
    assert main(["run", "m.yaml", "--on", "small"]) == 0
    assert "m-1 is a run on local; --on small counts for a new run only (--again)" in said(capsys)


def test_why_a_run_that_cannot_be_read_is_not_continued(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A version of other records, say, or a damaged disk."""
    assert main(["run", write(GOOD)]) == 0
    with sqlite3.connect(find_run(None).journal) as db:
        db.execute("UPDATE events SET body = '{\"no\": 1}' WHERE seq = 1")
    db.close()
    assert main(["run", "m.yaml", "--resume"]) == 2
    told = said(capsys)
    assert "the latest run of m.yaml, m-1, cannot be read (" in told
    assert "leave --resume out for a new one" in told
