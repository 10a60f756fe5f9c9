"""What the carrier copies, and what it says of what it cannot."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from windrow.agent.data.carrier import Copied, copied

NOBODY = 65534


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    (made / "below").mkdir(parents=True)
    (made / "below" / "f").write_text("f")
    (made / "below" / "f").chmod(0o751)
    (made / "gone").symlink_to("nowhere")
    (made / "below").chmod(0o555)
    os.utime(made / "below", (1, 2))
    return made


def test_a_folder_comes_with_modes_times_and_links(tree: Path, tmp_path: Path) -> None:
    done = copied([(str(tree), f"{tmp_path}/to/tree")])
    assert (done.why, done.errno) == ("", 0)
    there = tmp_path / "to" / "tree"
    assert str((there / "gone").readlink()) == "nowhere"
    assert (there / "below" / "f").stat().st_mode & 0o777 == 0o751
    assert (there / "below").stat().st_mode & 0o777 == 0o555
    assert (there / "below").stat().st_mtime == 2


def test_a_file_system_that_sets_no_times_of_links_has_them_all_the_same(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with sshfs, which sets those of what the link leads to: that may be missing, or belong to
    others."""

    def follows(path: str, *_: object, **more: object) -> None:
        if not more.get("follow_symlinks", True) or not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    monkeypatch.setattr(os, "utime", follows)
    assert copied([(str(tree), f"{tmp_path}/to")]).why == ""
    assert (tmp_path / "to" / "gone").is_symlink()


def test_a_file_system_without_links_is_named(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "symlink", refuse)
    done = copied([(str(tree), f"{tmp_path}/to")])
    assert (done.why, done.errno) == (
        f"{tree}/gone: its file system has no symbolic links",
        errno.EPERM,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]


def test_what_cannot_be_read_is_named(tree: Path, tmp_path: Path) -> None:
    """As another user, since root may read all."""
    tmp_path.chmod(0o777)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    (tree / "secret").touch(0o000)
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        os.write(telling, repr(tuple(copied([(str(tree), f"{tmp_path}/to")])[:2])).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(told, 4096).decode() == repr((f"{tree}/secret: Permission denied", errno.EACCES))
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("number", [errno.EINTR, errno.ECONNABORTED, errno.EAGAIN])
def test_an_error_that_passes_is_not_the_end(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    rename, left = os.replace, [number, number]

    def interrupted(source: str, target: str) -> None:
        if left:
            raise OSError(left.pop(), "for now", source)
        rename(source, target)

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, interrupted)
    assert isinstance(copied([(str(tree), f"{tmp_path}/to")]), Copied)
    assert (tmp_path / "to" / "below" / "f").read_text() == "f"
    left += [number] * 9
    assert copied([(str(tree), f"{tmp_path}/to2")]).errno == number
