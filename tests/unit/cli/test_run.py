"""`windrow run` and its kin, by real runs on a queue of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from windrow.app.execute import strategy_of
from windrow.app.facts import RunRequest
from windrow.app.queues import open_queue
from windrow.cli.main import main
from windrow.foresight.strategy import Foresight

pytestmark = pytest.mark.usefixtures("home")

FORK_JOIN = """
name: fork-join
tasks:
  - id: split
    command: seq 1 20 > numbers
    outputs: [numbers]
    runtime: 1s
  - id: sum-{i}
    matrix: {i: 1..4}
    command: awk -v i={i} '{{s += $1 * i}} END {{print s}}' numbers > sum-{i}
    inputs: [numbers]
    outputs: ["sum-{i}"]
    runtime: 1s
  - id: total
    command: cat sum-1 sum-2 sum-3 sum-4 > total
    inputs: [sum-1, sum-2, sum-3, sum-4]
    outputs: [total]
    runtime: 1s
"""

FAILING = """
name: failing
tasks:
  - id: good
    command: touch good
    runtime: 1s
  - id: bad
    command: echo it is me; test -e mended
    runtime: 1s
    retries: 1
  - id: after-bad
    command: touch after-bad
    after: [bad]
    runtime: 1s
"""


def write(text: str) -> str:
    Path("workflow.yaml").write_text(text)
    return "workflow.yaml"


def status(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["status", "--json", *args]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["individual", "glume"])
def test_a_run_computes_what_it_should(strategy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(FORK_JOIN), "--strategy", strategy]) == 0
    assert Path("total").read_text().split() == ["210", "420", "630", "840"]
    found = status(capsys)
    assert (found["state"], found["run"]) == ("complete", "fork-join-1")
    assert main(["explain", "total"]) == 0
    assert "attempt 1" in capsys.readouterr().out
    for number in range(
        len(found["jobs"])
    ):  # the local queue's ids count from 1: they must not be taken for numbers
        assert main(["explain", str(number)]) == 0
        assert capsys.readouterr().out.startswith(f"job {number}: ")
    assert main(["runs"]) == 0
    assert "6/6" in capsys.readouterr().out
    assert main(["resume"]) == 0  # nothing to do


@pytest.mark.slow
def test_a_failure_is_explained_and_mended(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(FAILING)]) == 1
    last_words = capsys.readouterr().out
    assert "failing-1: failed" in last_words
    assert "task bad failed: exit code 1; last line: it is me" in last_words
    assert "for details: windrow explain bad" in last_words
    found = status(capsys)
    assert (found["state"], found["failed_tasks"]) == ("failed", ["bad"])
    assert Path("good").exists()
    assert main(["explain", "bad"]) == 0
    words = capsys.readouterr().out
    assert "attempt 2" in words
    assert "it is me" in words
    assert main(["explain", "after-bad"]) == 0
    assert "it cannot run because of bad" in capsys.readouterr().out
    Path("mended").touch()
    assert main(["resume"]) == 0
    assert status(capsys)["state"] == "complete"
    assert Path("after-bad").exists()


@pytest.mark.slow
def test_a_detached_run_is_cancelled_and_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    text = "name: long\ntasks:\n  - {id: nap, command: 'sleep 600', runtime: 600s}\n"
    assert main(["run", write(text), "--detach"]) == 0
    assert status(capsys)["state"] == "running"
    assert main(["cancel"]) == 0
    assert status(capsys)["state"] == "stopped"
    assert open_queue("local").snapshot().jobs == ()


@pytest.mark.slow
@pytest.mark.parametrize("is_stderr_read", [True, False], ids=["| head -1", "|& head -1"])
def test_a_run_outlives_its_reader(is_stderr_read: bool) -> None:
    """Level by level, so that there is something to submit, and to say, after the reader has
    left."""
    command = [
        sys.executable,
        "-m",
        "windrow.cli.main",
        "run",
        write(FORK_JOIN),
        "--strategy",
        "level-by-level",
    ]
    errors = subprocess.PIPE if is_stderr_read else subprocess.STDOUT
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read() if process.stderr is not None else ""
    assert process.returncode == 0, said
    assert Path("total").read_text().split() == ["210", "420", "630", "840"]
    if is_stderr_read:
        assert (
            said.count(
                "output closed; fork-join-1 keeps running here, and windrow status -f shows it"
            )
            == 1
        )
        assert "Error" not in said


@pytest.mark.slow
def test_who_only_watches_leaves_with_the_reader(capsys: pytest.CaptureFixture[str]) -> None:
    text = "name: long\ntasks:\n  - {id: nap, command: 'sleep 600', runtime: 600s}\n"
    assert main(["run", write(text), "--detach"]) == 0
    command = [sys.executable, "-m", "windrow.cli.main", "watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
    assert main(["cancel"]) == 0


def test_what_cannot_run_is_refused_before_anything_is_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "name: x\ntasks:\n  - {id: a, command: 'cat nothing', inputs: [nothing], runtime: 1s}\n"
    assert main(["run", write(text)]) == 2
    assert "task a reads nothing" in capsys.readouterr().err
    assert main(["run", write(FORK_JOIN), "--strategy", "zang"]) == 2
    assert "did you mean zhang" in capsys.readouterr().err
    assert main(["run", write(FORK_JOIN), "--strategy", "glume", "--think", "4"]) == 2
    assert "--think are for foresight" in capsys.readouterr().err
    assert main(["run", write(FORK_JOIN), "--on", "moon"]) == 2
    assert not Path(".windrow").exists()


def test_a_plan_on_a_queue_submits_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", write(FORK_JOIN), "--on", "local", "--strategy", "giant", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert sum(len(job["tasks"]) for job in plan["jobs_now"]) == 6
    assert sys.executable in plan["commands"][0]
    assert not Path(".windrow").exists()


def test_a_plan_on_a_queue_asks_for_as_much_as_a_run_would(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "name: long\ntasks:\n  - {id: nap, command: 'sleep 1000', runtime: 1000s}\n"
    asked_s = []
    for options in ([], ["--margin", "1.2"], ["--margin", "1.1"]):
        assert (
            main(
                ["plan", write(text), "--on", "local", "--strategy", "one-job", "--json", *options]
            )
            == 0
        )
        asked_s.append(json.loads(capsys.readouterr().out)["jobs_now"][0]["requested_s"])
    assert asked_s[0] == asked_s[1] >= 1200 > asked_s[2]


def test_without_runs_the_commands_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("status", "watch", "resume", "cancel"):
        assert main([command]) == 2
        assert "windrow run WORKFLOW starts one" in capsys.readouterr().err


def test_who_is_to_think_more_does_and_remembers_it() -> None:
    usual, deep = (strategy_of(RunRequest(Path("w.yaml"), think=times)) for times in (1, 4))
    assert isinstance(usual, Foresight)
    assert isinstance(deep, Foresight)
    assert (deep.plays, deep.futures) == (4 * usual.plays, 2 * usual.futures)


@pytest.mark.slow
def test_a_damaged_run_is_listed_and_never_mistaken_for_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "name: ok\ntasks:\n  - {id: a, command: 'true', runtime: 1s}\n"
    assert main(["run", write(text)]) == 0
    Path("other.yaml").write_text(text.replace("ok", "later"))
    assert main(["run", "other.yaml"]) == 0
    (damaged,) = Path(".windrow/runs").glob("later-1")
    (damaged / "journal.sqlite").write_bytes(b"")
    for command in ("status", "report", "resume", "cancel", "watch"):
        capsys.readouterr()
        assert main([command]) == 2
        assert "the latest run, later-1, cannot be read" in capsys.readouterr().err
    assert main(["runs"]) == 0
    out = capsys.readouterr().out
    assert "ok-1" in out
    assert "unreadable" in out
    assert main(["status", "ok-1"]) == 0


@pytest.mark.slow
def test_cancelling_what_is_over_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = "name: ok\ntasks:\n  - {id: a, command: 'true', runtime: 1s}\n"
    assert main(["run", write(text)]) == 0
    capsys.readouterr()
    assert main(["cancel"]) == 0
    assert capsys.readouterr().err == "ok-1 is complete; nothing to stop\n"


@pytest.mark.parametrize("command", ["status", "watch", "report", "resume", "cancel"])
def test_names_that_no_file_can_have(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(".windrow/runs/w-1/jobs").mkdir(parents=True)
    Path(".windrow").chmod(0o700)
    assert main([command, "x" * 5000]) == 2
    err = capsys.readouterr().err
    assert len(err) < 300
