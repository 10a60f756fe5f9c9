"""Runs whose tasks work on disks of their nodes, on the local queue: settings, what is where, and ends of all kinds."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.waiting import read_pid

from windrow.agent.event_file import AgentStarted, Tail
from windrow.app.runs import find_run
from windrow.cli.main import main
from windrow.manager.events import FilesGone, TaskUndone
from windrow.manager.journal import RunJournal

CHAIN = """
name: w
tasks:
  - {id: a, command: "cat in > mid; echo a >> $RAN", inputs: in, outputs: mid, runtime: 1s}
  - {id: b, command: "cat mid > out; echo b >> $RAN; GATE", inputs: mid, outputs: out, runtime: 1s}
"""


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("p", "disk"):
        (home / folder).mkdir()
    monkeypatch.chdir(home / "p")
    monkeypatch.setenv("RAN", str(home / "ran"))
    Path("in").write_text("in\n")
    return home


def where(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert main(["files", "--json"]) == 0
    return {file["file"]: file["where"] for file in json.loads(capsys.readouterr().out)["files"]}


@pytest.mark.slow
def test_only_what_leaves_the_job_leaves_the_node(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("w.yaml").write_text(CHAIN.replace("GATE", "true"))
    Path("windrow.toml").write_text(f'[data]\nscratch = "{here}/disk"\nkeep = ["none*"]\n')
    assert main(["run", "w.yaml"]) == 0
    assert not Path("mid").exists()
    assert where(capsys) == {"in": "shared", "mid": "gone", "out": "shared"}
    assert main(["files", "nope"]) == 2
    capsys.readouterr()
    assert main(["report", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    nothing = dict.fromkeys(("home_bytes", "nodes_bytes", "hit_bytes", "stayed_bytes", "committed_bytes"), 0)
    nothing |= {"brought": 0, "hits": 0}
    assert report["data"] == [
        {"role": "endpoint", **nothing, "home_bytes": 3, "brought": 1, "committed_bytes": 3},
        {"role": "pipeline", **nothing, "stayed_bytes": 3, "hit_bytes": 3, "hits": 1},
    ]
    (space,) = report["node_bytes"].values()
    assert [used for _, used in space] == [6, 9, 6, 0]  # in and mid, then out, then without mid
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == report["data"]
    Path("windrow.toml").write_text(f'[data]\nscratch = "{here}/disk"\nkeep = ["m*"]\n')
    assert main(["run", "w.yaml", "--again"]) == 0
    assert Path("mid").read_text() == "in\n"
    assert main(["explain", "b"]) == 0
    assert not any((here / "disk").iterdir())
    Path("windrow.toml").write_text("[data]\nscratch = 1\n")
    assert main(["run", "w.yaml", "--again"]) == 2
    assert "[data] takes limit, folder" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_on_a_node_whose_agent_is_killed_is_made_again(here: Path) -> None:
    """The agent dies while b runs: what a made is gone with the node, so a runs again."""
    gate = "test -e ../once || { touch ../once; echo $$ > ../pid; sleep 60; }"
    Path("w.yaml").write_text(CHAIN.replace("GATE", gate))
    pid = os.fork()
    if pid == 0:
        os._exit(main(["run", "w.yaml", "--scratch", f"{here}/disk"]))
    read_pid(here / "pid")
    folder = find_run(None).folder
    (started,) = [word for word in Tail(folder.events(0)).read() if isinstance(word, AgentStarted)]
    os.kill(started.pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == 0
    assert (here / "ran").read_text().split() == ["a", "b", "a", "b"]
    told = [record.event for _, record in RunJournal.open(find_run(None).journal).records()]
    assert [event.files for event in told if isinstance(event, FilesGone)][:1] == [("mid",)]
    assert [event.task for event in told if isinstance(event, TaskUndone)] == [0]
    assert Path("out").read_text() == "in\n"
    assert not any((here / "disk").iterdir())
