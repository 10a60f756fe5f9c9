"""Sizes of files: as workflows declare them, and as agents measure them."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.agent.event_file import AttemptFinished, decode, encode
from windrow.agent.order import Order
from windrow.agent.outputs import Outputs
from windrow.app.queues import open_queue
from windrow.app.settings import settings_of
from windrow.errors import InputError
from windrow.files import free_bytes
from windrow.formats import read_runnable
from windrow.model.attempt import Attempt
from windrow.queues.local.queue import LocalQueue
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.story.story import RunStory

TEXT = """
name: sized
tasks:
  - {id: make, outputs: {big.dat: 10GB, "part {n}": 1KiB, log: }, matrix: {n: [1]}, command: make}
  - {id: read, inputs: [big.dat], outputs: [small], command: read}
"""


def test_a_workflow_declares_sizes(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(TEXT)
    workflow = read_runnable(tmp_path / "w.yaml").workflow
    sizes = {file.id: file.size_bytes for file in workflow.files}
    assert sizes == {"big.dat": 10_000_000_000, "part 1": 1024, "log": 0, "small": 0}
    story = RunStory.of(
        workflow, [Record(e.TaskKept(0, 0), {"run": "r-1", "started_s": 0.0, "ended_s": 1.0})]
    )
    assert story.sizes() == {0: 10_000_000_000, 1: 1024}
    measured = {"run": "r-1", "started_s": 0.0, "ended_s": 1.0, "sizes": [7, 8, 9]}
    assert RunStory.of(workflow, [Record(e.TaskKept(0, 0), measured)]).sizes() == {0: 7, 1: 8, 2: 9}


@pytest.mark.parametrize("size", ["10 apples", "-1GB", "[1]", "0B", "{}"])
def test_a_size_that_is_none(tmp_path: Path, size: str) -> None:
    (tmp_path / "w.yaml").write_text(TEXT.replace("10GB", size))
    with pytest.raises(InputError, match=r"w.yaml:4: outputs big.dat is .*like 500MB or 4GiB"):
        read_runnable(tmp_path / "w.yaml")


def test_outputs_are_measured(tmp_path: Path) -> None:
    (tmp_path / "d" / "deep").mkdir(parents=True)
    (tmp_path / "d" / "deep" / "x").write_bytes(b"12345")
    (tmp_path / "d" / "y").write_bytes(b"123")
    (tmp_path / "f").write_bytes(b"1234")
    paths = tuple(str(tmp_path / name) for name in ("f", "d", "nothing"))
    assert Outputs(Order(0, 1, ("x",), "/", {}, "/out", outputs=paths)).sizes() == (4, 8, 0)


def test_event_files_keep_sizes() -> None:
    record = AttemptFinished(1.0, Attempt(0, 1, cpu_s=0.5, peak_bytes=6, sizes=(7, 8)))
    assert decode(encode(record).encode()) == record


def test_a_site_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    free = LocalQueue(tmp_path).limits().room_bytes
    assert free is not None
    assert free > 0
    assert free_bytes(tmp_path / "nowhere") is None
    assert settings_of().of("local").room is None
    (tmp_path / "windrow.toml").write_text('[queues.local]\nroom = "2TB"\n')
    open_queue("local")
    assert settings_of().of("local").room == 2_000_000_000_000
    (tmp_path / "windrow.toml").write_text("[queues.local]\nroom = 2\n")
    with pytest.raises(InputError, match="room must be text in quotes"):
        open_queue("local")
