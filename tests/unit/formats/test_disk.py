from __future__ import annotations

import gzip
import os
import random
import stat
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError, UserError
from windrow.formats import disk
from windrow.formats.disk import (
    bare_name,
    format_suffix,
    open_bytes,
    read_bytes,
    read_text,
    replace_bytes,
)


def test_gzip_is_known_by_its_content_whatever_the_name(tmp_path: Path) -> None:
    packed = tmp_path / "log.swf"
    packed.write_bytes(gzip.compress(b"hello"))
    assert read_bytes(packed) == b"hello"
    with open_bytes(packed) as stream:
        assert stream.read() == b"hello"


@pytest.mark.parametrize("keep", [1, 5, 15, 40])
@pytest.mark.parametrize("whole", [True, False])
def test_truncated_gzip_is_refused_by_name(tmp_path: Path, keep: int, whole: bool) -> None:
    content = random.Random(1).randbytes(100)  # incompressible, so that every cut loses something
    packed = gzip.compress(content)
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(packed[: len(packed) - keep])
    with pytest.raises(
        InputError, match=r"cut\.swf\.gz: the gzip data ends too early.*download it again"
    ):
        _read(path, whole)


@pytest.mark.parametrize("whole", [True, False])
def test_corrupt_gzip_is_refused_by_name(tmp_path: Path, whole: bool) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 40))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "bad.json.gz"
    path.write_bytes(packed)
    with pytest.raises(
        InputError, match=r"bad\.json\.gz: the gzip data (is corrupt|ends too early).*again"
    ):
        _read(path, whole)


@pytest.mark.parametrize("whole", [True, False])
def test_what_cannot_be_read_is_refused_with_the_fix(tmp_path: Path, whole: bool) -> None:
    (tmp_path / "empty.swf").touch()
    (tmp_path / "plain.swf.gz").write_text("not packed")
    for name, words in {
        "missing.swf": "no such file; check the path",
        "": "this is a folder; give a file in it",
        "empty.swf": "the file is empty",
        "empty.swf/below": "cannot be read",
        "plain.swf.gz": "named .gz but not gzip data",
    }.items():
        with pytest.raises(InputError, match=words) as caught:
            _read(tmp_path / name, whole)
        assert caught.value.file == str(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permissions_are_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.swf"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(InputError, match="not allowed to read it"):
        read_bytes(path)
    tmp_path.chmod(0o500)
    with (
        pytest.raises(UserError, match="not allowed to write there"),
        replace_bytes(tmp_path / "new.swf"),
    ):
        pass
    tmp_path.chmod(0o700)


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.swf"
    path.write_bytes("; fine\n; Universität\n".encode("latin1"))
    with pytest.raises(InputError, match=r"latin\.swf:2: not UTF-8 text \(byte 0xe4\); convert it"):
        read_text(path)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "bom.swf").write_bytes(b"\xef\xbb\xbf; hello")
    assert read_text(tmp_path / "bom.swf") == "; hello"


@given(content=st.binary(max_size=200_000), packed=st.booleans())
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / ("x.bin.gz" if packed else "x.bin")
    with replace_bytes(path) as stream:
        stream.write(content[:1000])
        stream.write(content[1000:])
    if content or packed:
        unpacked = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        assert unpacked == content


def test_packed_output_is_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, now in (("a.gz", 1.0), ("b.gz", 2e9)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        with replace_bytes(tmp_path / name) as stream:
            stream.write(b"content")
    first = (tmp_path / "a.gz").read_bytes()
    assert first == (tmp_path / "b.gz").read_bytes()
    assert first[4:8] == b"\0\0\0\0"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.swf"
    path.write_text("old")

    def interrupted() -> None:
        with replace_bytes(path) as stream:
            stream.write(b"half of the new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.swf"]


def test_a_replaced_file_keeps_its_link_and_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.swf", tmp_path / "link.swf"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with replace_bytes(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with replace_bytes(tmp_path / "new.swf"):
        pass
    assert (tmp_path / "new.swf").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_devices_are_written_not_replaced() -> None:
    before = Path("/dev/null").stat()
    with replace_bytes("/dev/null") as stream:
        stream.write(b"gone")
    after = Path("/dev/null").stat()
    assert stat.S_ISCHR(after.st_mode)
    assert after.st_ino == before.st_ino


@pytest.mark.parametrize(
    ("name", "words"), [("no/such/x.swf", "there is no folder"), ("", "this is a folder")]
)
def test_places_that_cannot_be_written_are_named(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(UserError, match=words), replace_bytes(tmp_path / name) as stream:
        stream.write(b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "suffix", "name"),
    [
        ("a/KTH-SP2-1996-2.1-cln.swf.gz", ".swf", "KTH-SP2-1996-2.1-cln"),
        ("B.JSON.GZ", ".json", "B"),
        ("x.dax", ".dax", "x"),
        ("plain", "", "plain"),
        ("only.gz", "", "only"),
    ],
)
def test_names_come_apart(path: str, suffix: str, name: str) -> None:
    assert (format_suffix(path), bare_name(path)) == (suffix, name)


def _read(path: Path, whole: bool) -> None:
    if whole:
        read_bytes(path)
    else:
        with open_bytes(path) as stream:
            while stream.read(16):
                pass


@pytest.mark.parametrize("whole", [True, False])
def test_pipes_devices_and_sockets_are_refused_at_once(tmp_path: Path, whole: bool) -> None:
    os.mkfifo(tmp_path / "pipe.swf")
    (tmp_path / "zero.swf").symlink_to("/dev/zero")
    for name in ("pipe.swf", "zero.swf"):
        with pytest.raises(
            InputError,
            match="this is a pipe, a socket or a device, not a file; give a regular file",
        ):
            _read(tmp_path / name, whole)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_a_gzip_that_unpacks_out_of_all_proportion_is_refused_in_constant_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """Of 32 MB, where what has 8 MB may be as dense as it likes."""
    monkeypatch.setattr(disk, "_SMALL_BYTES", 8 << 20)
    bomb = tmp_path / "bomb.swf.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as stream:
        for _ in range(32):
            stream.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(InputError, match=r"bomb\.swf\.gz: unpacks to more than [0-9,]+ bytes"):
        _read(bomb, whole)
    assert tracemalloc.get_traced_memory()[1] < 36e6
    tracemalloc.stop()


def test_a_gzip_of_text_as_dense_as_text_gets_is_read(tmp_path: Path) -> None:
    line = b"1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n"
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress(line * 100_000))
    assert read_bytes(packed) == line * 100_000


def test_a_name_that_is_too_long_is_the_users_mistake(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="the name is too long; give a shorter one"),
        replace_bytes(tmp_path / ("x" * 300)),
    ):
        pass
