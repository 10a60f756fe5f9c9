"""What was seen, kept in a file: by several at once, and in spite of broken files."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest

from windrow.errors import OutsideError
from windrow.foresight.observed import JOBS_KEPT, Observed
from windrow.foresight.observed_file import ObservedFile
from windrow.queues.port import PastJob


def seen_with(*ids: str, since_s: float = 0.0, until_s: float = 100.0) -> Observed:
    seen = Observed()
    jobs = [PastJob(job_id, "ann", 2, 60, since_s + 1, since_s + 2, since_s + 3) for job_id in ids]
    seen.learn(jobs, since_s, until_s)
    return seen


def test_what_was_kept_is_what_comes_back(tmp_path: Path) -> None:
    file = ObservedFile("slurm.big/main", tmp_path / "new")
    assert file.load() == Observed()
    seen = seen_with("a", "b")
    seen.learn([PastJob("waits", "bob", 1, 60, 50.0)], 0.0, 100.0)
    file.keep(seen)
    back = ObservedFile("slurm.big/main", tmp_path / "new").load()
    assert (back.jobs, back.spans) == (seen.jobs, seen.spans)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert {path.suffix for path in file.path.parent.iterdir()} == {".json", ".lock"}


def test_keeping_adds(tmp_path: Path) -> None:
    ObservedFile("q", tmp_path).keep(seen_with("a"))
    mine = seen_with("b", since_s=90.0, until_s=200.0)
    ObservedFile("q", tmp_path).keep(mine)
    assert set(mine.jobs) == {"a", "b"}
    assert ObservedFile("q", tmp_path).load().spans == ((0.0, 200.0),)


def _keep_some(folder: Path, number: int) -> None:
    for i in range(10):
        ObservedFile("q", folder).keep(seen_with(f"{number}-{i}"))


def test_several_at_once_lose_nothing(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_keep_some, args=(tmp_path, number)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(ObservedFile("q", tmp_path).load().jobs) == 40


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"format":1,"place":"q","spans":[],"jobs":[["a"]]}'],
)
def test_a_broken_file_is_said_and_started_anew(tmp_path: Path, content: bytes) -> None:
    said: list[str] = []
    file = ObservedFile("q", tmp_path, said.append)
    file.path.write_bytes(content)
    assert file.load() == Observed()
    assert len(said) == 1
    assert str(file.path) in said[0]
    ObservedFile("q", tmp_path, said.append).keep(seen_with("a"))
    assert set(file.load().jobs) == {"a"}


def test_files_of_other_versions_and_queues_are_not_taken_for_ours(tmp_path: Path) -> None:
    said: list[str] = []
    ObservedFile("a b", tmp_path).keep(seen_with("x"))
    assert ObservedFile("a-b", tmp_path, said.append).load() == Observed()
    assert len(said) == 1


def test_a_folder_that_cannot_be_is_an_outside_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutsideError, match="file"):
        ObservedFile("q", tmp_path / "file").keep(seen_with("a"))


def test_the_file_stays_small(tmp_path: Path) -> None:
    file = ObservedFile("q", tmp_path)
    for part in range(3):
        file.keep(
            seen_with(
                *(f"{part}-{i}" for i in range(JOBS_KEPT)), since_s=1000.0 * part, until_s=1e4
            )
        )
    assert len(file.load().jobs) == JOBS_KEPT
    assert file.path.stat().st_size < 500_000
