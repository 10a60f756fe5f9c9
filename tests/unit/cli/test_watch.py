"""`windrow watch`: what it shows, what keys do, and that it works on a real terminal (tmux)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.app.runs import RunView, find_run
from windrow.cli.main import main
from windrow.cli.watching import Look, lines, named, pressed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]

WORKFLOW = """
name: toy
tasks:
  - {id: "good-{i}", kind: good, matrix: {i: 1..9}, command: "echo fine"}
  - {id: bad, command: "echo no chunk; exit 5"}
  - {id: after, command: "true", after: bad}
"""


@pytest.fixture
def run() -> str:
    Path("toy.yaml").write_text(WORKFLOW.replace(", after: bad", ""))
    assert main(["run", "toy.yaml"]) == 1
    return "toy-1"


def screen(look: Look, width: int = 100, height: int = 24) -> list[str]:
    told = RunView(find_run("toy-1"))
    found = [line.plain for line in lines(told, look, time.time(), width, height)]
    told.close()
    return found


def test_the_screen_is_as_high_as_the_terminal_and_failures_stand_first(run: str) -> None:
    for width, height in ((100, 24), (40, 12), (200, 60)):
        found = screen(Look(), width, height)
        assert len(found) == height
        assert max(map(len, found)) <= width
        assert found[0].startswith(f"{run}  failed  10/11  1 failed")
    found = screen(Look())
    assert found[2] == "✗ bad  exit code 5: no chunk"
    assert found[3] == f"  windrow logs bad --run {run}"
    assert any(line.startswith("good ") and "9/9" in line for line in found)


def test_lists_searches_and_scrolls(run: str) -> None:
    tasks = screen(Look("tasks"))
    assert sum("finished" in line for line in tasks) == 10
    assert [
        line.split()[0] for line in screen(Look("tasks", query="good-3")) if "finished" in line
    ] == ["good-3"]
    assert any("    no chunk" in line for line in screen(Look("failed")))
    low = screen(Look("tasks", top=500), height=12)
    assert low[-2].startswith("after") or "finished" in low[-2]
    assert low[-1].startswith("6 to 11 of 11") or " of 11" in low[-1]
    assert any("ended" in line for line in screen(Look("jobs")))


def test_keys() -> None:
    look = pressed(Look(), "/")
    assert look == Look("tasks", is_typing=True)
    for key in named("ab\x7fq\r"):
        assert look is not None
        look = pressed(look, key)
    assert look == Look("tasks", query="aq"), "a letter is not a command while one types"
    assert pressed(look, "escape") == Look()
    assert pressed(Look(top=3), "page up") == Look(top=0)
    assert pressed(Look(), "j") == Look("jobs")
    assert pressed(Look(), "q") is None
    assert named("\x1b[A\x1b[6~\x1bx") == ["up", "page down", "escape", "x"]


def test_little_room_cuts_no_keys_and_no_next_command(run: str) -> None:
    told = RunView(find_run(run))
    for width in (60, 80, 100):
        found = [line.plain for line in lines(told, Look(), time.time(), width, 20)]
        assert found[-1].startswith("q leave")
        assert "/ search" in found[-1]
        assert not any(line.endswith("…") for line in found)
        assert any(line.startswith(f"  windrow resume {run}") for line in found)
    assert "(the run continues)" in lines(told, Look(), time.time(), 80, 20)[-1].plain
    told.close()


class Terminal:
    """A real one, of 100 columns and 30 lines, in which a command runs."""

    def __init__(self, command: str) -> None:
        self.socket = f"windrow-{id(self)}"
        self._do("new-session", "-d", "-s", "w", "-x", "100", "-y", "30", command)

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        self._do("send-keys", "-t", "w", *keys)

    def shows(self, words: str) -> None:
        wait_until(lambda: words in self._do("capture-pane", "-p", "-t", "w"))

    @property
    def is_there(self) -> bool:
        return bool(self._do("list-sessions"))

    def close(self) -> None:
        self._do("kill-server")


@pytest.fixture
def terminal(run: str) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux to watch a run with")
    found = Terminal(f"{sys.executable} -P -m windrow.cli.main watch {run}")
    yield found
    found.close()


def test_a_person_at_a_terminal(terminal: Terminal) -> None:
    terminal.shows("✗ bad  exit code 5: no chunk")
    terminal.shows("q leave (the run continues)")
    terminal.press("j")
    terminal.shows("ended")
    terminal.press("/", "g", "o", "o", "d", "-", "7")
    terminal.shows("search: good-7")
    terminal.press("Enter")
    terminal.shows("good-7 ")
    terminal.press("f")
    terminal.shows("    no chunk")
    terminal.press("q")
    wait_until(lambda: not terminal.is_there)
