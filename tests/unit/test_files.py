"""Files that several processes share: made once, replaced whole, appended whole, held by one at a
time."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

from windrow import files


def test_only_the_first_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "claim"
    assert files.create_once(path, b"one")
    assert not files.create_once(path, b"two")
    draft = tmp_path / "draft"
    draft.write_bytes(b"three")
    assert not files.link_once(draft, path)
    assert files.link_once(draft, tmp_path / "other")
    assert (path.read_bytes(), (tmp_path / "other").read_bytes()) == (b"one", b"three")


@pytest.mark.parametrize("lasting", [True, False])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, lasting: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), files.replacing(path, lasting=lasting) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    with files.replacing(path, lasting=lasting) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"first\n")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    files.append_whole(descriptor, b"second\n", 6)
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:2]))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        files.append_whole(descriptor, b"third and more\n", 13)
    os.close(descriptor)
    assert path.read_bytes() == b"first\nsecond\n"


def test_one_at_a_time(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from windrow.files import held\nwith "
        "held(Path(sys.argv[1])): print(1)"
    )
    with files.held(tmp_path / "lock"):
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "lock")], stdout=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
    assert other.communicate(timeout=30)[0] == b"1\n"


def test_all_marks_are_needed_to_be_killed() -> None:
    env = {**os.environ, "WINDROW_A": "files-1", "WINDROW_B": "files-2"}
    with (
        subprocess.Popen(["sleep", "60"], env=env) as one,
        subprocess.Popen(["sleep", "60"], env=env) as spared,
    ):
        assert files.kill_marked([b"WINDROW_A=files-1", b"WINDROW_B=other"]) == []
        assert files.kill_marked(
            [b"WINDROW_A=files-1", b"WINDROW_B=files-2"], spared=[spared.pid]
        ) == [one.pid]
        assert one.wait(timeout=PATIENCE_S) == -9
        assert spared.poll() is None
        spared.kill()


def test_it_knows_on_which_file_system_a_file_is() -> None:
    assert files.file_system("/proc/self/not-there") == "proc"
    assert files.file_system("/dev/shm/x") == "tmpfs"
    assert not files.is_shared("/dev/shm/x")


def test_what_other_machines_may_write_is_on_shared_file_systems(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "20 1 0:1 / / rw - ext4 /dev/a rw\n"
        "21 20 0:2 / /home rw shared:1 - nfs4 srv:/home rw\n"
        "22 21 0:3 / /home/disk\\040of\\040mine rw - xfs /dev/b rw\n"
        "23 20 0:4 / /homes rw - lustre mgs:/x rw\n"
        "24 20 0:5 / /over rw - ext4 /dev/c rw\n"
        "25 20 0:6 / /over rw - fuse.bindfs /dev/fuse rw\n"
    )
    kinds = {
        "/x": "ext4",
        "/home/me": "nfs4",
        "/home/disk of mine/r": "xfs",
        "/homes": "lustre",
        "/over/x": "fuse.bindfs",
    }
    assert {path: files.file_system(path, mounts) for path in kinds} == kinds
    assert [path for path in kinds if files.is_shared(path, mounts)] == [
        "/home/me",
        "/homes",
        "/over/x",
    ]
    assert not files.is_shared("/home/me", tmp_path / "none")
