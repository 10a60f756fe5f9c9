"""Parquet is an extra: without pyarrow everything else works, and what needs it says so before any
work is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = (
    "import sys; sys.modules['pyarrow'] = None; from windrow.cli.main import main; "
    "sys.exit(main(sys.argv[1:]))"
)
ALL = WITHOUT.replace("main(sys.argv[1:])", "any(main(words.split()) for words in sys.argv[1:])")
WORKFLOW = (
    "name: two\ntasks:\n  - {id: a, command: 'echo 1 > a', outputs: a}\n  - {id: b, "
    "command: 'cat a', inputs: a}\n"
)
INSTALL = "needs pyarrow, which is not installed; pip install {}\n"


def windrow(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where pyarrow cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text(WORKFLOW, encoding="utf-8")


@pytest.mark.slow
def test_all_else_works() -> None:
    commands = (
        "run w.yaml",
        "status",
        "report",
        "generate log --model lublin --nodes 8 --jobs 50 --seed 1 -o l.swf",
        "simulate l.swf --jobs-out jobs.csv",
        "compare w.yaml --log l.swf --at 1h --strategies giant,foresight",
        "lab --example",
    )
    answer = subprocess.run(
        [sys.executable, "-c", ALL, *commands], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "l.swf", "--jobs-out", "jobs.parquet"),
        ("lab", "c.toml"),
        ("lab", "--summary", "there"),
        ("reproduce", "glume"),
        ("reproduce", "zhang", "--out", "there"),
    ],
)
def test_what_needs_it_says_so_before_any_work(command: tuple[str, ...]) -> None:
    before = sorted(Path().iterdir())
    answer = windrow(*command)
    assert answer.returncode == 2
    assert answer.stderr.startswith("windrow: error: ")
    assert answer.stderr.endswith(
        INSTALL.format("windrow-lab" if command[0] == "reproduce" else "'windrow-hpc[parquet]'")
    )
    assert sorted(Path().iterdir()) == before


@pytest.mark.slow
def test_what_tests_of_papers_need_comes_with_the_lab() -> None:
    program = WITHOUT.replace("pyarrow", "scipy")
    command = [sys.executable, "-c", program, "reproduce", "zhang"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    words = "windrow reproduce zhang needs scipy, which is not installed; pip install windrow-lab"
    assert (answer.returncode, answer.stderr) == (2, f"windrow: error: {words}\n")
