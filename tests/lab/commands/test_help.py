"""The commands of the lab, as the command line finds them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from windrow.cli.elsewhere import LAB_COMMANDS
from windrow.cli.main import main


def test_help_of_a_command_loads_no_numba_and_has_an_example() -> None:
    program = (
        "import sys\n"
        "from windrow.cli.elsewhere import LAB_COMMANDS\n"
        "from windrow.cli.main import main\n"
        "for command in LAB_COMMANDS:\n"
        "    try: main([command, '--help'])\n"
        "    except SystemExit: print('\\f')\n"
        "sys.exit('numba' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    for command, text in zip(LAB_COMMANDS, answer.stdout.split("\f")[:-1], strict=True):
        assert f"usage: windrow {command}" in text
        assert f"  windrow {command} " in text.split("example")[-1]


def test_they_are_among_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "all"]) == 0
    text = capsys.readouterr().out
    assert set(LAB_COMMANDS) <= set(text.partition("with windrow-lab:")[2].split())
    assert "inspect a run:" in text


def test_a_slip_of_the_pen_finds_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduc"]) == 2
    assert "did you mean reproduce?" in capsys.readouterr().err


def test_our_own_commands_look_up_no_others() -> None:
    program = (
        "import sys; from windrow.cli.main import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
