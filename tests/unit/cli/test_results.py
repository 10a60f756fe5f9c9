"""A wrong result is never called complete: real runs on a queue of their own."""

from __future__ import annotations

import os
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
    assert main(["run", write('name: t\ntasks:\n  - {id: g, command: "true", outputs: old.txt}\n')]) == 1
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
    assert [p.name for p in Path("deep").iterdir()] == ["a.txt"]
    assert Path("deep/a.txt").read_text() == ("whole\n" if end == "resumed" else "old")


def test_a_run_begun_by_an_older_version_keeps_its_shell(capsys: pytest.CaptureFixture[str]) -> None:
    text = "name: old\ntasks: [{id: t, command: 'false; echo $0 > {outputs}; test -e go', outputs: a.txt}]"
    assert main(["run", write(text.replace("false; ", "true;  "))]) == 1
    kept = Path(".windrow/runs/old-1/workflow.json")
    strict = '"/bin/bash","-euo","pipefail","-c"'
    assert strict in kept.read_text()
    kept.write_text(kept.read_text().replace(strict, '"/bin/sh","-c"').replace("true;  ", "false; "))
    write(text)
    Path("go").touch()
    assert main(["resume"]) == 0
    assert Path("a.txt").read_text() == "/bin/sh\n"
