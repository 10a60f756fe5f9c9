"""A wrong result is never called complete: real runs on a queue of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import read_pid, wait_until

from windrow.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]

IN_THE_MIDDLE = """
name: middle
defaults: {runtime: 1s}
tasks:
  - id: multi
    command: |
      cat /nonexistent
      echo done > m.txt
    outputs: m.txt
  - {id: pipe, command: "cat /nonexistent | sort > p.txt", outputs: p.txt}
  - {id: unset, command: "echo $no_such_variable > u.txt", outputs: u.txt}
"""

WORDS = """
name: words
defaults: {runtime: 1s}
tasks:
  - id: count-{book}
    matrix: { book: [emma, ulysses] }
    command: wc -w < {inputs} > {outputs}
    inputs: books/{book}.txt
    outputs: counts/{book}.txt
  - id: total
    command: cat {inputs} | paste -sd+ > {outputs}
    inputs: counts/*.txt
    outputs: total.txt
"""

HALF = """
name: half
defaults: {runtime: 1s}
tasks:
  - id: {WAY}
    command: |
      if test ! -e go; then echo half > {NAME}; echo $$ > pid; sleep 1000; fi
      echo whole > {NAME}
    outputs: deep/a.txt
"""


def write(text: str) -> str:
    Path("workflow.yaml").write_text(text)
    return "workflow.yaml"


def test_a_command_that_fails_in_the_middle_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(IN_THE_MIDDLE)]) == 1
    said = capsys.readouterr().out
    assert "task multi failed: exit code 1; last line: cat: /nonexistent" in said
    assert "task pipe failed: exit code 1" in said
    assert "no_such_variable: unbound variable" in said
    assert not any(Path(name).exists() for name in ("m.txt", "p.txt", "u.txt"))


def test_a_run_that_does_not_want_to_be_strict_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    text = IN_THE_MIDDLE.replace("{runtime: 1s}", "{runtime: 1s, shell: sh}")
    assert main(["run", write(text)]) == 0
    assert Path("m.txt").read_text() == "done\n"


def test_a_stale_file_does_not_make_a_run_complete(capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.txt").write_text("stale")
    assert (
        main(["run", write('name: t\ntasks:\n  - {id: g, command: "true", outputs: old.txt}\n')])
        == 1
    )
    assert "old.txt exists and was left unchanged" in capsys.readouterr().out
    assert Path("old.txt").read_text() == "stale"


def test_the_folders_of_outputs_are_made() -> None:
    Path("books").mkdir()
    for book in ("emma", "ulysses"):
        Path(f"books/{book}.txt").write_text("one two three\n")
    assert main(["run", write(WORDS)]) == 0
    assert Path("total.txt").read_text() == "3+3\n"
    assert sorted(p.name for p in Path("counts").iterdir()) == ["emma.txt", "ulysses.txt"]


@pytest.mark.parametrize("name", ["{outputs}", "deep/a.txt"])
@pytest.mark.parametrize("end", ["resumed", "cancelled"])
def test_a_killed_agent_leaves_no_half_written_output_in_the_end(name: str, end: str) -> None:
    Path("deep").mkdir()
    Path("deep/a.txt").write_text("old")
    text = HALF.replace("{WAY}", "t").replace("{NAME}", name)
    windrow = [sys.executable, "-m", "windrow.cli.main"]
    with subprocess.Popen([*windrow, "run", write(text)], stdout=subprocess.DEVNULL) as run:
        task = read_pid(Path("pid"))
        agent = int(Path(f"/proc/{task}/stat").read_text().rsplit(")", 1)[1].split()[1])
        if name == "{outputs}":
            assert Path("deep/a.txt").read_text() == "old"  # all the time
        if end == "cancelled":
            run.send_signal(signal.SIGKILL)
            run.wait()
        else:
            Path("go").touch()
        os.kill(agent, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{task}").exists())
        if end == "resumed":
            assert run.wait(timeout=120) == 0
        else:
            assert main(["cancel"]) == 0
    if end == "resumed":  # no run had made what was there, so it is kept
        left = {"a.txt": "whole\n", "a.txt.before-1": "old"}
    else:
        left = {"a.txt": "old"}
    assert {path.name: path.read_text() for path in Path("deep").iterdir()} == left


MOSAIC = """
name: mosaic
defaults: {runtime: 1s, keep: false}
tasks:
  - {id: "a{i}", matrix: {i: 1..4}, command: "head -c 1000 /dev/zero > {outputs}", outputs: "a{i}.bin"}
  - {id: z, command: "cat {inputs} > z.bin", inputs: "a*.bin", outputs: z.bin}
"""  # noqa: E501


def test_a_limit_on_space_that_was_exceeded_is_said_everywhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Four files of 1 kB each, and one of which nothing is known, which holds them all."""
    assert main(["run", write(MOSAIC), "--space", "5kB"]) == 0
    words = "the limit of 5 kB was exceeded: 8 kB after"
    assert words in "".join(capsys.readouterr())
    assert main(["status"]) == 0
    assert words in capsys.readouterr().out
    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["space"]
    assert found == {"limit_bytes": 5000, "most_bytes": 8000, "is_exceeded": True}
    assert main(["report", "-o", "page.html"]) == 0
    assert words in Path("page.html").read_text()


def test_a_run_that_gives_up_for_space_says_how_much_would_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The files of all four must be there at a time. The first two are made to learn that, and no
    more than fit."""
    assert main(["run", write(MOSAIC), "--space", "3kB"]) == 1
    assert (
        "its files need at least 4 kB at a time, and may take 3 kB: windrow resume mosaic-1 "
        "--space 4kB, or more: 1 file of unknown size would come to it"
        in "".join(capsys.readouterr())
    )
    assert sum(path.stat().st_size for path in Path().glob("*.bin")) <= 3000
    assert main(["resume", "mosaic-1", "--space", "8kB"]) == 0
    assert Path("z.bin").stat().st_size == 4000


TOO_LARGE = """
name: large
defaults: {runtime: 1s, keep: false, cores: 1}
tasks:
  - {id: "a{i}", matrix: {i: 1..4}, command: "head -c 10000 /dev/zero > {outputs}", outputs: {"a{i}.x": 1kB}}
  - {id: "b{i}", matrix: {i: 1..4}, command: "head -c 10 {inputs} > {outputs}", inputs: "a{i}.x", outputs: {"b{i}.txt": 10B}}
"""  # noqa: E501


@pytest.mark.slow
def test_a_run_whose_files_turn_out_too_large_says_at_once_how_much_would_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No job is sent in vain, and with what it says the run is complete, and has no trouble."""
    assert main(["run", write(TOO_LARGE), "--space", "6kB"]) == 1
    told = capsys.readouterr().out
    assert "gave up: no task that is left fits in the space that its files may take" in told
    assert "the limit of 6 kB was exceeded:" in told
    (fix,) = re.findall("may take 6 kB: windrow (resume .*)", told)
    assert main(["runs", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert len(run["jobs"]) == 2, "only one found no room"
    assert run["tasks"]["finished"] in (2, 4), "what takes away more than it makes has run"
    assert fix.split()[-1].startswith("10.0")
    assert main(fix.split()) == 0
    assert "gave up" not in capsys.readouterr().out
