"""The door of the command line: help, errors, exit codes, and what gets imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windrow.cli import main as door
from windrow.cli.commands import show
from windrow.cli.main import COMMANDS, main
from windrow.errors import OutsideError
from windrow.version import __version__


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_comes_without_loading_anything_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from windrow.cli.main import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'rich', 'pyarrow', 'msgspec'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    answer = python(program)
    assert answer.returncode == 0, answer.stderr


def test_help_of_a_command_loads_no_numba_and_has_an_example() -> None:
    """One process asks for all of them: what none of them loads, no single one does."""
    program = (
        "import sys\n"
        "from windrow.cli.main import COMMANDS, main\n"
        "for command in COMMANDS:\n"
        "    try: main([command, '--help'])\n"
        "    except SystemExit: print('\\f')\n"
        "sys.exit('numba' in sys.modules)"
    )
    answer = python(program)
    assert answer.returncode == 0, answer.stderr
    for command, text in zip(COMMANDS, answer.stdout.split("\f")[:-1], strict=True):
        assert f"usage: windrow {command}" in text
        assert f"  windrow {command} " in text.split("example")[-1]


def test_names_of_earlier_commands_work_and_are_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, now in door.EARLIER_NAMES.items():
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"usage: windrow {now[0]} " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out.split()
    assert not set(door.EARLIER_NAMES) & set(shown)


def test_help_is_short_and_help_all_names_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    named = {line.split()[0] for line in lines if line.startswith("  ")}
    assert set(door.EVERYDAY) <= named
    assert set(door.EVERYDAY) <= set(COMMANDS)
    assert main(["help", "all"]) == 0
    assert set(COMMANDS) <= set(capsys.readouterr().out.split())


def test_nothing_typed_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: windrow")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"windrow {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulat"], "unknown command 'simulat'; did you mean simulate?"),
        (["simulate"], "LOG"),
        (
            ["simulate", "x.swf", "--nodes", "none"],
            "argument --nodes: 'none' is not a whole number from 1 to 10,000,000",
        ),
        (["simulate", "x.swf", "--from", "soon"], "argument --from: 'soon' is not a duration"),
        (
            ["simulate", "x.swf", "--polic", "easy"],
            "unrecognized arguments: --polic easy; did you mean --policy? see windrow simulate",
        ),
        (
            ["compare", "w.json", "--log", "l", "--strategy", "heft"],
            "did you mean --strategies? see",
        ),
        (["run", "w.yaml", "--strategies=heft"], "did you mean --strategy? see"),
        (["run", "w.yaml", "--zzz"], "unrecognized arguments: --zzz; see windrow run --help"),
        (["simulate", "missing.swf"], "missing.swf: no such file"),
        (["show", "missing.json"], "missing.json: no such file"),
        (["generate", "nothing", "-o", "x.json"], "unknown recipe 'nothing'"),
        (["generate", "montag"], "unknown recipe 'montag'; did you mean montage?"),
        (["generate", "montage"], "-o montage.json"),
        (
            ["generate", "montage", "--set", "width", "-o", "x.json"],
            "'width' is not of the form NAME=VALUE",
        ),
        (["generate", "montage", "--jobs", "3", "-o", "x.json"], "--jobs is for a log"),
        (["generate", "log", "--tasks", "3", "-o", "x.swf"], "--tasks is for a workflow"),
        (
            ["generate", "blast", "--set", "a=1", "--set", "a=2", "-o", "x.json"],
            "--set a is given twice",
        ),
        (["generate", "blast", "--seed", "-1", "-o", "x.json"], "--seed"),
        (["traces"], "ACTION"),
        (["traces", "fetch", "NO-SUCH-LOG"], "no log is called 'NO-SUCH-LOG'"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("windrow: error: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_broken_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "broken.swf"
    log.write_text("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 20 -1 1 1 -1 -1 -1 -1 -1 -1\n2 0 0 oops\n")
    assert main(["simulate", str(log)]) == 2
    assert f"{log}:3: " in capsys.readouterr().err


def test_what_the_world_does_wrong_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_args: object) -> int:
        raise OutsideError("the disk is full")

    monkeypatch.setattr(show, "run", fail)
    assert main(["show", "x.json"]) == 1
    assert capsys.readouterr().err == "windrow: error: the disk is full\n"


def test_interrupted_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "run", interrupt)
    assert main(["show", "x.json"]) == 130
    assert capsys.readouterr().err == "windrow: interrupted\n"


def test_bugs_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(_args: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(show, "run", stumble)
    with pytest.raises(ZeroDivisionError):
        door.main(["show", "x.json"])


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = [sys.executable, "-m", "windrow.cli.main", "generate", "list"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
def test_a_terminal_without_blocks_gets_question_marks(tmp_path: Path) -> None:
    workflow = tmp_path / "w.json"
    assert main(["generate", "fork-join", "--tasks", "5", "-o", str(workflow)]) == 0
    program = [sys.executable, "-m", "windrow.cli.main", "show", str(workflow)]
    answer = subprocess.run(
        program, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert b"????" in answer.stdout


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_reason_to_fail(closed: str) -> None:
    command = f"{sys.executable} -m windrow.cli.main generate list {closed}"
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert answer.returncode == 0
    assert "Traceback" not in answer.stderr


@pytest.mark.usefixtures("home")
def test_a_variable_says_where_runs_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("w.yaml").write_text("name: w\ntasks:\n  - {id: a, command: 'true'}\n")
    monkeypatch.setenv("WINDROW_ON", "nowhere")
    assert main(["run", "w.yaml"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert main(["run", "-n", "w.yaml", "--on", "local"]) == 0
