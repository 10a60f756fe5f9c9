"""`tasks`, `logs`, `shell`, `explain`, `run -n` and `help`: questions about a real run and their
answers."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from windrow.cli import progress_lines, terminal
from windrow.cli.commands import logs
from windrow.cli.main import COMMANDS, main

WORKFLOW = """
name: answers
tasks:
  - {id: gen, command: "echo hello; echo 1 > x", outputs: x, runtime: 1s, cores: 1, env: {LEVEL: "3 a"}}
  - {id: mute, command: "true", inputs: x, runtime: 1s}
  - {id: bad, command: 'printf "it is \\033[31mred\\n"; exit 3', inputs: x, retries: 1, runtime: 1s}
  - {id: late, command: "true", after: bad, runtime: 1s}
"""  # noqa: E501
WINDROW = [sys.executable, "-m", "windrow.cli.main"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run that failed in part."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "w.yaml").write_text(WORKFLOW)
    env = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    env |= {"XDG_DATA_HOME": str(folder / "data")}
    ended = subprocess.run(
        [*WINDROW, "run", "w.yaml", "--deadline", "1"],
        cwd=folder,
        env=env,
        check=False,
        capture_output=True,
    )
    assert ended.returncode == 1, ended.stderr
    return folder


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[str, str]:
    assert main(list(argv)) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


@pytest.mark.slow
def test_tasks_are_listed_with_what_became_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in told(capsys, "tasks")[0].splitlines()]
    assert lines[0] == ["task", "state", "job", "attempts", "started", "ran", "exit", "why"]
    assert [line[:2] for line in lines[1:]] == [
        ["gen", "finished"],
        ["mute", "finished"],
        ["bad", "failed"],
        ["late", "blocked"],
    ]
    assert told(capsys, "tasks", "--failed")[0].splitlines()[1].split()[-4:] == [
        "3",
        "exit",
        "code",
        "3",
    ]
    assert told(capsys, "tasks", "--state", "blocked")[0].splitlines()[1].endswith("needs bad")
    assert "has no task that is running" in told(capsys, "tasks", "--running")[1]


def test_tasks_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(told(capsys, "tasks", "--failed", "--json")[0])
    assert found["run"] == "answers-1"
    (bad,) = found["tasks"]
    assert (bad["task"], bad["exit"], bad["attempts"], bad["state"]) == ("bad", 3, 2, "failed")
    assert Path(bad["output"]).read_bytes() == b"it is \x1b[31mred\n"


def test_logs_are_found_by_the_tasks_id(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    out, err = told(capsys, "logs", "gen")
    assert out == "hello\n"
    assert err.startswith("gen: attempt 1 of 1, job 0, finished: ")
    assert str(folder / ".windrow" / "runs" / "answers-1" / "out") in err
    assert "no output" in told(capsys, "logs", "mute")[1]
    assert (
        told(capsys, "logs", "late")[1]
        == "late has not started: a task that it depends on failed\n"
    )
    assert "attempt 1 of 2" in told(capsys, "logs", "bad", "--attempt", "1")[1]
    assert told(capsys, "logs", "bad")[0] == "it is \x1b[31mred\n"  # into a pipe, as it is
    assert told(capsys, "logs", "gen", "-f")[0] == "hello\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("logs gne", "answers-1 has no task 'gne'; did you mean gen?"),
        ("logs", "name a task, or a job with --job"),
        ("logs gen --attempt 2", "gen has 1 attempt(s); there is no attempt 2"),
        ("logs gen --job 7", "gen did not start in job 7"),
        ("logs --job 7", "answers-1 has no job 7"),
        (
            "shell nosuch",
            "answers-1 has no task 'nosuch'; windrow tasks --run answers-1 lists them",
        ),
        (
            "tasks --state odd",
            "there is no state 'odd'; the states are pending, submitted, running",
        ),
        ("explain nosuch", "has no task or job 'nosuch'"),
    ],
)
def test_what_is_not_there_is_told(
    argv: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv.split()) == 2
    assert words in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_not_steered_wherever_blocks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a\x1b[31mred\x1b[0m\r\nb\x1b]0;title\x07c\rd\x1b(Be\x08\u00e9\n".encode()
    for size in range(1, len(text) + 1):
        screen = _Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        printer = logs._printer()
        for start in range(0, len(text), size):
            printer.write(text[start : start + size])
        assert screen.getvalue() == "ared\nbc\nde\u00e9\n", size


@pytest.mark.slow
def test_large_outputs_take_little_memory(folder: Path) -> None:
    with (folder / ".windrow" / "runs" / "answers-1" / "out" / "0.1").open("ab") as out:
        out.truncate(150 << 20)
    code = (
        "import tracemalloc, sys; from windrow.cli.main import main; tracemalloc.start(); "
        "main(['logs', 'gen']);"
    )
    code += "print(tracemalloc.get_traced_memory()[1], file=sys.stderr)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as windrow:
        assert windrow.stdout is not None
        assert windrow.stderr is not None
        size = 0
        while block := windrow.stdout.read(1 << 20):
            size += len(block)
        peak_bytes = int(windrow.stderr.read().split()[-1])
    assert size == 150 << 20
    assert peak_bytes < 50e6
    os.truncate(folder / ".windrow" / "runs" / "answers-1" / "out" / "0.1", 6)


@pytest.mark.slow
def test_following_ends_with_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "echo one; while ! test -e go; do sleep 0.1; done; echo two"
    (tmp_path / "w.yaml").write_text(
        f"name: f\ntasks:\n  - {{id: slow, command: '{text}', runtime: 1m}}\n"
    )
    with subprocess.Popen(
        [*WINDROW, "run", "w.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        while not (tmp_path / ".windrow" / "runs" / "f-1" / "journal.sqlite").exists():
            assert run.poll() is None
            time.sleep(0.05)
        with subprocess.Popen(
            [*WINDROW, "logs", "slow", "-f"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as log:
            assert log.stdout is not None
            assert log.stdout.readline() == b"one\n"
            (tmp_path / "go").touch()
            assert log.stdout.read() == b"two\n"
            assert log.wait() == 0
        run.communicate()
        assert run.returncode == 0


@pytest.mark.slow
def test_a_shell_in_the_tasks_folder_and_environment(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    found = json.loads(told(capsys, "shell", "gen", "--json")[0])
    assert found["folder"] == str(folder)
    assert found["env"]["LEVEL"] == "3 a"
    assert found["env"]["WINDROW_TASK"] == "gen"
    assert found["command"][-1] == "echo hello; echo 1 > x"
    pasted = told(capsys, "shell", "gen", "--print")[0]
    assert pasted.startswith(f"cd {folder}\nexport LEVEL='3 a'\n")
    ended = subprocess.run(["/bin/sh", "-c", pasted], check=True, capture_output=True, text=True)
    assert ended.stdout == "hello\n"
    script = 'echo "$PWD $LEVEL $WINDROW_RUN"'
    ended = subprocess.run(
        [*WINDROW, "shell", "gen", "-c", script], check=True, capture_output=True, text=True
    )
    assert ended.stdout == f"{folder} 3 a answers-1\n"
    assert (
        subprocess.run(
            [*WINDROW, "shell", "bad", "-c"], check=False, capture_output=True
        ).returncode
        == 3
    )
    ended = subprocess.run(
        [*WINDROW, "shell", "gen"], input="echo $LEVEL", capture_output=True, text=True, check=True
    )
    assert ended.stdout == "3 a\n"
    assert "echo hello; echo 1 > x" in ended.stderr


@pytest.mark.parametrize("what", ["gen", "mute", "bad", "late", "0"])
def test_explain_answers_in_five_lines(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    short = told(capsys, "explain", what)[0].splitlines()
    full = told(capsys, "explain", what, "--all")[0].splitlines()
    assert 1 < len(short) <= 5
    assert len(full) > len(short)
    found = json.loads(told(capsys, "explain", what, "--json")[0])
    assert found["answer"] == short
    assert found["lines"] == full


def test_explain_says_first_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "explain", "bad")[0].splitlines()
    assert lines[0] == "task bad: failed (job 0)"
    assert lines[1].startswith("attempt 2: job 0")
    assert lines[1].endswith("failed: exit code 3")
    assert lines[2] == "  | it is red"
    assert "it cannot run because of bad" in told(capsys, "explain", "late")[0]


def test_a_missed_deadline_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    late = json.loads(told(capsys, "status", "--json")[0])["missed_deadline_by_s"]
    out = told(capsys, "status")[0]
    assert ("missed its deadline of 1 s by" in out) == (late is not None)


def test_a_dry_run_plans_where_run_would_go_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(
        "name: d\ntasks:\n  - {id: a, command: 'touch ran'}\n  - {id: b, command: 'true'}\n"
    )
    out, _ = told(capsys, "run", "-n", "w.yaml")
    assert "d: 2 tasks, planned by auto for local" in out
    assert "2 of 2 run times are guesses of 60 s each (--guess)" in out
    assert "would be submitted (nothing was submitted):" in out
    assert [path.name for path in tmp_path.iterdir()] == ["w.yaml"]
    (tmp_path / "w.yaml").write_text(
        "name: d\ntasks:\n  - {id: a, command: 'true', inputs: missing.txt}\n"
    )
    assert main(["run", "--dry-run", "w.yaml"]) == 2
    assert "task a reads missing.txt, which no task writes" in capsys.readouterr().err


@pytest.mark.slow
def test_guesses_are_marked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(
        "tasks:\n- {id: a, command: x}\n- {id: b, command: x, runtime: 1m}\n"
    )
    assert "2.0 min (1 of 2 run times are guesses)" in told(capsys, "show", "w.yaml")[0]
    assert json.loads(told(capsys, "show", "w.yaml", "--json")[0])["guessed_run_times"] == 1
    (tmp_path / "w.dax").write_text('<adag name="n"><job id="A" name="k" runtime="-0.1"/></adag>')
    assert "repaired: 1 run time below zero, read as 0" in told(capsys, "show", "w.dax")[0]
    assert json.loads(told(capsys, "show", "w.dax", "--json")[0])["mended_run_times"] == 1


def test_help_by_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main(["help", command])
        assert ended.value.code == 0
        assert f"usage: windrow {command}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["help"])
    short = capsys.readouterr().out
    assert len(short.splitlines()) <= 30
    assert "More: windrow help COMMAND; windrow help all" in short
    assert main(["help", "all"]) == 0
    assert "inspect a run:" in capsys.readouterr().out
    assert main(["help", "lgos"]) == 2
    assert "did you mean logs?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_outlives_a_full_disk_behind_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(
        "name: o\ntasks:\n  - {id: a, command: 'touch ran', outputs: ran, runtime: 1s}\n"
    )
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*WINDROW, "run", "w.yaml"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    assert "o-1 continues" in ended.stderr or "windrow status -f" in ended.stderr
    assert (tmp_path / "ran").exists()


def test_a_line_now_and_then_where_nobody_sees_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "LINE_S", 0.01)
    heard, say = threading.Event(), terminal.say

    def hear(line: str) -> None:
        say(line)
        heard.set()

    monkeypatch.setattr(terminal, "say", hear)
    with terminal.waiting("reading it"):
        assert heard.wait(60)
    assert "reading it ... 0 s" in capsys.readouterr().err


@pytest.mark.slow
def test_how_far_a_run_is_stands_in_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terminal, "LINE_S", 0.0)
    monkeypatch.setattr(progress_lines, "_QUIET_LINE_S", 0.0)
    (tmp_path / "w.yaml").write_text(
        "name: p\ntasks:\n  - {id: a, command: sleep 1, runtime: 1s}\n"
    )
    assert main(["run", "w.yaml"]) == 0
    assert re.search(r"  0/1 tasks  jobs: 1 running\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    "command",
    [
        "tasks",
        "files",
        "status",
        "report -o page.html",
        "logs bad",
        "explain bad",
        "shell bad --print",
        "explain 0",
    ],
)
def test_a_run_may_be_named_as_the_last_word_and_by_an_option(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = command.replace("page.html", str(tmp_path / "page.html"))
    name = "answers-1"
    plain, word, option = (
        told(capsys, *f"{words}{more}".split()) for more in ("", f" {name}", f" --run {name}")
    )
    assert plain[0] == word[0] == option[0]
    assert main([*words.split(), "no-such-run"]) == 2
    assert (
        f"unknown {'file' if command == 'files' else 'run'} 'no-such-run'"
        in capsys.readouterr().err
    )
    assert main([*words.split(), *(["x"] if command == "files" else []), name, "--run", name]) == 2


def test_hints_work_as_printed_where_there_is_a_later_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("flaky", "exit 3"), ("later", "true")):
        Path(f"{name}.yaml").write_text(
            f"name: {name}\ntasks:\n  - {{id: only-{name}, command: '{text}', runtime: 1s}}\n"
        )
        main(["run", f"{name}.yaml"])
    capsys.readouterr()
    assert main(["status", "flaky-1"]) == 0
    (hint,) = re.findall("for details: windrow (.*)", capsys.readouterr().out)
    assert hint == "explain only-flaky --run flaky-1"
    assert main(hint.split()) == 0
    assert main(["status", "later-1"]) == 0
    assert "--run" not in capsys.readouterr().out


DOCUMENTED = Path(__file__).parents[3] / "docs" / "reference" / "json.md"
ABOUT_RUNS = {
    "status": "status",
    "wait": "status",
    "watch": "status",
    "tasks": "tasks",
    "files": "files",
    "logs --failed": "logs",
    "logs --job 0": "logs",
    "runs": "runs",
    "report": "report",
}
ABOUT_OTHERS = (
    "explain bad",
    "config",
    "generate list",
    "generate montage --tasks 20 -o small.json",
    "generate log --jobs 30 --nodes 8 -o small.swf",
    "show small.json",
    "simulate small.swf --policy fcfs",
    "plan small.json --log small.swf --at 0 --strategy giant",
    "sites",
)
LONG_AGO = 10**9
"""Seconds since 1970: no duration is that long, and no instant of a run that early."""


def documented(part: str) -> tuple[set[str], set[str]]:
    """The names that the page lists in the row of a command or a part, and those that it lists with
    a condition."""
    row = next(
        line
        for line in DOCUMENTED.read_text().splitlines()
        if line.startswith("| ") and part in line.split("|")[1]
    )
    always, _, sometimes = row.split("|")[2].partition(";")
    return set(re.findall(r"`(\w+)`", always)), set(re.findall(r"`(\w+)`", sometimes))


def names_and_values(value: object) -> Iterator[tuple[str, object]]:
    """All names at any depth, with what they name."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield name, one
            yield from names_and_values(one)
    elif isinstance(value, list):
        for one in value:
            yield from names_and_values(one)


def printed(capsys: pytest.CaptureFixture[str], command: str) -> dict[str, Any]:
    """Its one JSON object, of which the names of times are what they should be."""
    main([*command.split(), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert next(iter(found.items())) == ("schema", 1)
    for name, value in names_and_values(found):
        if name.endswith("_s") and isinstance(value, int | float):
            assert value < LONG_AGO, f"{name} is an instant"
        if name.endswith("_at") and isinstance(value, int | float) and command in ABOUT_RUNS:
            assert value > LONG_AGO, f"{name} is a duration"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("command", ABOUT_RUNS)
def test_objects_about_runs_are_as_documented(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    found = printed(capsys, command)
    always, sometimes = documented(f"`{ABOUT_RUNS[command]}`")
    assert found.keys() - sometimes == {"schema", *always}


@pytest.mark.slow
def test_parts_of_objects_are_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    (job,) = printed(capsys, "status")["jobs"]
    assert job.keys() == documented("a job of")[0]
    for task in printed(capsys, "tasks")["tasks"]:
        assert task.keys() == documented("a task of")[0]
    (failed,) = printed(capsys, "logs --failed")["outputs"]
    assert failed.keys() == documented("an output of")[0]
    assert (failed["task"], failed["text"]) == ("bad", "it is \x1b[31mred\n")
    (own,) = printed(capsys, "logs --job 0")["outputs"]
    assert own.keys() == documented("an output of")[1]


@pytest.mark.slow
def test_every_object_begins_with_its_schema_and_names_its_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in ABOUT_OTHERS:
        assert len(printed(capsys, command)) > 1, command
