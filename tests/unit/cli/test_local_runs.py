"""Runs whose tasks work on disks of their nodes, on the local queue: settings, what is where, and
ends of all kinds."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from tests.survival.test_disks_and_clocks import mounted
from tests.waiting import read_pid

from windrow.agent.event_file import AgentStarted, Tail
from windrow.app.runs import find_run
from windrow.cli.main import main
from windrow.forecast.runtimes import FETCHING, PastRun, RunTimes
from windrow.story.events import DiskRefused, FilesGone, TaskFinished, TaskUndone
from windrow.story.journal import RunJournal

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
def test_only_what_leaves_the_job_leaves_the_node(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("w.yaml").write_text(CHAIN.replace("GATE", "true"))
    Path("windrow.toml").write_text(f'[data]\nscratch = "{here}/disk"\nkeep = ["none*"]\n')
    assert main(["run", "w.yaml"]) == 0
    assert not Path("mid").exists()
    assert where(capsys) == {"in": "shared", "mid": "gone", "out": "shared"}
    assert main(["files", "nope"]) == 2
    capsys.readouterr()
    assert main(["report", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    nothing = dict.fromkeys(
        ("home_bytes", "nodes_bytes", "hit_bytes", "stayed_bytes", "committed_bytes"), 0
    )
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
    assert "[data] scratch must be text in quotes, not 1" in capsys.readouterr().err


@pytest.mark.parametrize("scratch", ["$NOSUCH/disk", "${NOSUCH}", "~nosuch/x"])
def test_a_disk_that_no_variable_names_is_refused_before_any_job(
    here: Path, capsys: pytest.CaptureFixture[str], scratch: str
) -> None:
    Path("w.yaml").write_text(CHAIN.replace("GATE", "true"))
    for words in ("run", "run -n"):
        assert main([*words.split(), "w.yaml", "--scratch", scratch]) == 2
        said = capsys.readouterr().err
        assert f"scratch {scratch!r} cannot be used on this machine: " in said
    assert not Path(".windrow/runs/w-1").exists()


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


ELSEWHERE = """
name: w
tasks:
  - {id: make, command: "COMMAND", outputs: tree, runtime: 1s}
  - {id: use, command: "cat tree/f > out", inputs: tree, outputs: out, nodes: 2, runtime: 1s}
"""
ON_TWO = """
[data]
scratch = "DISK"
[queues.two]
kind = "local"
nodes = 2
"""
SOCKET = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(chr(115))'"


def on_two_nodes(here: Path, workflow: str, *options: str) -> int:
    """The exit code of a run of this workflow in this folder; what several nodes read leaves the
    node that made it."""
    Path("w.yaml").write_text(workflow)
    Path("windrow.toml").write_text(ON_TWO.replace("DISK", f"{here}/disk"))
    return main(["run", "w.yaml", "--on", "two", *options])


@pytest.mark.slow
@pytest.mark.parametrize(("make", "kind"), [("mkfifo s", "a named pipe"), (SOCKET, "a socket")])
def test_an_output_that_cannot_leave_its_node_fails_its_task_at_once(
    here: Path, capsys: pytest.CaptureFixture[str], make: str, kind: str
) -> None:
    assert (
        on_two_nodes(here, ELSEWHERE.replace("COMMAND", f"mkdir tree; cd tree; echo 1 > f; {make}"))
        == 1
    )
    why = "its output tree cannot be copied from its node to the shared folder: "
    why += f"{here}/p/tree/s: {kind} cannot be copied (ENOTSUP)"
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    assert [job["state"] for job in json.loads(capsys.readouterr().out)["jobs"]] == ["ended"]
    assert main(["status"]) == main(["explain", "make"]) == 0
    printed = capsys.readouterr().out.replace("\n", " ")
    assert printed.count(why) == 2
    told = [record for _, record in RunJournal.open(find_run(None).journal).records()]
    (refused,) = [
        record for record in told if isinstance(record.event, DiskRefused) and record.event.is_final
    ]
    assert (refused.detail or {})["errno"] == errno.EOPNOTSUPP
    assert not any((here / "disk").iterdir())
    Path("w.yaml").write_text(ELSEWHERE.replace("COMMAND", "mkdir tree; echo 1 > tree/f"))
    assert main(["resume"]) == 0
    assert Path("out").read_text() == "1\n"


@pytest.mark.slow
def test_links_in_a_folder_leave_their_node_as_links(here: Path) -> None:
    links = (
        "mkdir tree; cd tree; echo 1 > f; ln -s nowhere gone; ln -s /etc/hostname host; ln "
        "-s f near"
    )
    assert on_two_nodes(here, ELSEWHERE.replace("COMMAND", links)) == 0
    found = {path.name: path.readlink() for path in Path("tree").iterdir() if path.is_symlink()}
    assert {name: str(path) for name, path in found.items()} == {
        "gone": "nowhere",
        "host": "/etc/hostname",
        "near": "f",
    }


@pytest.mark.slow
def test_a_full_shared_folder_ends_the_run_with_its_reason(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other tasks finish meanwhile, which is no reason to go on."""
    make = "mkdir tree; echo 1 > tree/f; head -c 20000000 /dev/zero > tree/big"
    others = (
        '  - {id: "o-{n}", matrix: {n: 1..3}, command: "echo > o-{n}", outputs: "o-{n}", '
        "runtime: 1s}\n"
    )
    with mounted(here / "small", "8m"):
        monkeypatch.chdir(here / "small")
        assert on_two_nodes(here, ELSEWHERE.replace("COMMAND", make) + others) == 1
        capsys.readouterr()
        assert main(["status", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert len(told["jobs"]) == 3
        assert "tree/big: No space left on device (ENOSPC)" in told["trouble"]
        assert main(["explain", "make"]) == 0
        assert "No space left on device (ENOSPC)" in capsys.readouterr().out.replace("\n", " ")
        monkeypatch.chdir(here)


@pytest.mark.slow
def test_a_disk_of_a_node_that_is_too_small_is_the_reason_given(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mounted(here / "small", "1m"):
        Path("w.yaml").write_text(
            "tasks: [{id: big, command: head -c 9000000 /dev/zero > x, outputs: x, runtime: 1s}]"
        )
        assert main(["run", "w.yaml", "--scratch", f"{here}/small"]) == 1
        capsys.readouterr()
        assert main(["status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["jobs"]) == 3
    assert "No space left on device (on the scratch disk of its node)" in told["trouble"]
    assert "time" not in told["trouble"]


@pytest.mark.slow
def test_the_time_to_fetch_inputs_is_requested_and_learned(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Assumed at first; what this run took is what the next one asks for, with a slow home much
    more."""
    with Path("data").open("wb") as file:
        file.truncate(2_000_000_000)
    reads = (
        '{id: "r-{n}", matrix: {n: 1..2}, command: "head -c 1 data > o-{n}", inputs: data, '
        'outputs: "o-{n}"'
    )
    Path("w.yaml").write_text(f"name: w\ntasks:\n  - {reads}, runtime: 5s}}\n")
    given = ["plan", "w.yaml", "--on", "local", "--json"]

    def planned(*options: str) -> tuple[int, str]:
        capsys.readouterr()
        assert main([*given, *options]) == 0
        told = json.loads(capsys.readouterr().out)
        return told["jobs_now"][0]["requested_s"], " ".join(told["notes"])

    plain_s, _ = planned()
    assumed_s, note = planned("--scratch", f"{here}/disk")
    assert plain_s <= assumed_s <= plain_s + 60
    assert (
        "a node fetches up to 2 GB that its tasks read: requests have 20 s for it (100 MB/s, "
        "assumed" in note
    )
    RunTimes().record([PastRun("w", FETCHING, 250.0, 1.0)] * 20)
    learned_s, note = planned("--scratch", f"{here}/disk")
    assert learned_s >= plain_s + 500
    assert "requests have 8.3 min for it (4 MB/s, as in earlier runs)" in note


@pytest.mark.slow
def test_what_fetching_took_is_remembered(here: Path) -> None:
    Path("in").write_bytes(b"x" * 5_000_000)
    Path("w.yaml").write_text(CHAIN.replace("GATE", "true"))
    assert main(["run", "w.yaml", "--scratch", f"{here}/disk"]) == 0
    (s_per_gb,) = RunTimes().times("w", FETCHING)
    (ended, _) = (
        record
        for _, record in RunJournal.open(find_run(None).journal).records()
        if isinstance(record.event, TaskFinished)
    )
    assert ended.attempt is not None
    assert s_per_gb == pytest.approx(ended.attempt.fetch_s / 0.005)
    assert 0 < ended.attempt.fetch_s <= ended.at_s - ended.attempt.begun
