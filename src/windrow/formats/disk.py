"""Bytes from and to the disk: plain or gzip, whole or as a stream, replaced all at once.

Rule 1: what is wrong with a file on its way in (missing, a folder, a pipe or device, not readable,
empty, too large, broken gzip, not UTF-8) leaves here as an InputError that names the file and the
fix. Rule 2: a file on its way out appears complete or not at all: it is written beside its place
under another name and renamed at the end. Rule 3: same content, same bytes: the gzip we write
carries neither time nor name.

Reading goes by content, not by name: gzip under any name is unpacked. Writing goes by name: `.gz`
is packed.
"""

import errno
import gzip
import io
import os
import re
import stat
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from windrow.deletion import put
from windrow.errors import InputError, NothingBegun, OutsideError, UserError
from windrow.files import draft_beside

AnyPath = str | os.PathLike[str]

BYTES_MAX = 4 * 2**30
"""The most bytes that a file may hold, unpacked."""

_PACKED_MAX = 200  # times smaller than its content a gzip may be; text packs 5 to 40 times
_SMALL_BYTES = 64 * 2**20  # up to which that does not matter
_BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_TOML_PLACE = re.compile(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", re.DOTALL)
_NUL = re.compile(r"\\(?:u0000|U00000000)")
_AGAIN = "copy or download it again"


def format_suffix(path: AnyPath) -> str:
    """The suffix that names the format, in lower case and without `.gz`: `.json` for
    `a/b.JSON.gz`."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def bare_name(path: AnyPath) -> str:
    """The file's name without folder, `.gz` and the suffix of its format: `b.1` for
    `a/b.1.json.gz`."""
    name = Path(path).name
    if name.lower().endswith(".gz"):
        name = name[:-3]
    return Path(name).stem or name


@contextmanager
def open_bytes(path: AnyPath) -> Iterator[BinaryIO]:
    """A stream of the file's unpacked bytes. Faults of the file met inside the `with` leave it as
    InputError."""
    with _faults_explained(path):
        if "\0" in str(path):
            raise FileNotFoundError
        about = Path(path).stat()
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(about.st_mode):  # it may never end
            raise InputError(
                path, "this is a pipe, a socket or a device, not a file", fix="give a regular file"
            )
        if about.st_size > BYTES_MAX:
            raise InputError(
                path, f"has {about.st_size:,} bytes; the maximum is {BYTES_MAX:,}", fix="split it"
            )
        with Path(path).open("rb") as file:
            start = file.peek(2)[:2]
            if not start:
                raise InputError(path, "the file is empty", fix=_AGAIN)
            if start == _GZIP_MAGIC:
                with io.BufferedReader(
                    _Unpacked(path, file, about.st_size), _BLOCK_BYTES
                ) as unpacked:
                    yield cast(BinaryIO, unpacked)
            elif Path(path).name.lower().endswith(".gz"):
                raise InputError(
                    path, "named .gz but not gzip data", fix=f"{_AGAIN}, or drop .gz from its name"
                )
            else:
                yield file


def read_bytes(path: AnyPath) -> bytes:
    """The file's unpacked bytes, all of them."""
    with open_bytes(path) as stream:
        return b"".join(iter(lambda: stream.read(_BLOCK_BYTES), b""))


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, which is refused as soon as it turns out to be out of all
    proportion."""

    def __init__(self, path: AnyPath, file: BinaryIO, size: int) -> None:
        self._path = path
        self._stream = gzip.GzipFile(fileobj=file)
        self._left = min(BYTES_MAX, max(_SMALL_BYTES, size * _PACKED_MAX))
        self._most = self._left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            problem = (
                f"unpacks to more than {self._most:,} bytes, which is too much for a file "
                "of its size"
            )
            raise InputError(self._path, problem, fix="unpack it and check its contents")
        return count


def read_text(path: AnyPath) -> str:
    """The file's unpacked text. InputError with the line where it is not UTF-8."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise not_utf8(path, data) from None


def _refuse_nul(path: AnyPath, text: str) -> None:
    if (nul := _NUL.search(text)) is not None:
        at = text.count("\n", 0, nul.start()) + 1
        raise InputError(path, f"{nul[0]} stands for no character", line=at, fix="leave it out")


def read_toml(path: AnyPath, fix: str = "") -> tuple[str, dict[str, Any]]:
    """The file's text, and what it says. InputError with the line if it is not TOML."""
    text = read_text(path)
    _refuse_nul(path, text)
    try:
        return text, tomllib.loads(text)
    except RecursionError:
        problem = "brackets are nested too deeply"
        raise InputError(path, problem, fix=fix or "write it with fewer levels") from None
    except tomllib.TOMLDecodeError as error:
        found = _TOML_PLACE.match(str(error))
        problem, line = (found[1], found[2]) if found else (str(error), None)
        raise InputError(
            path, f"not TOML: {problem}", line=int(line or text.count("\n") + 1), fix=fix
        ) from None


def replace_text(path: AnyPath, text: str) -> None:
    """Give the file this content, completely or not at all."""
    with replace_bytes(path) as stream:
        stream.write(text.encode())


def not_utf8(path: AnyPath, data: bytes) -> InputError:
    """The error for `data`, which holds bytes that are not UTF-8: it names the line of the
    first."""
    problem = "not UTF-8 text"
    line = None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem += f" (byte 0x{data[error.start]:02x})"
    return InputError(
        path, problem, line=line, fix="convert it, for example with iconv -f latin1 -t utf-8"
    )


@contextmanager
def replace_bytes(path: AnyPath) -> Iterator[BinaryIO]:
    """A stream to write the file's new content to; packed if the name ends in `.gz`.

    When the `with` ends well the file is there, complete; when it ends by an exception the old file
    is untouched and nothing is left behind. Devices and pipes (`/dev/stdout`) cannot be replaced
    and are written directly.
    """
    target = Path(path)
    with _refusals_explained(target):
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as device, _packed(target, device) as stream:
                yield stream
            return
        place = _place_of(target)
        with draft_beside(place) as beside:
            with beside.open("xb") as file:
                with _packed(target, file) as stream:
                    yield stream
                file.flush()
                os.fsync(file.fileno())
            if place.exists():  # a replaced file keeps its permissions
                beside.chmod(stat.S_IMODE(place.stat().st_mode))
            put(beside, place)


def _place_of(target: Path) -> Path:
    """Where a file of this name is put: a link stays a link, and what it points to is replaced."""
    place = Path(os.path.realpath(target))
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    return place


def check_writable(path: AnyPath) -> None:
    """UserError, or NothingBegun, if `replace_bytes` could not write there: better before what
    takes long than after. Devices and pipes are left alone."""
    target = Path(path)
    try:
        with _refusals_explained(target):
            if target.exists() and not target.is_file() and not target.is_dir():
                return
            with draft_beside(_place_of(target)) as beside, beside.open("xb"):
                pass
    except OutsideError as error:
        raise NothingBegun(str(error)) from None


def check_folder(path: AnyPath) -> None:
    """The same of a folder, which need not be there yet."""
    there = Path(path).absolute()
    while not os.path.lexists(there):
        there = there.parent
    check_writable(there / "x")


@contextmanager
def _packed(path: Path, file: BinaryIO) -> Iterator[BinaryIO]:
    if path.name.lower().endswith(".gz"):
        # GzipFile compresses call by call; gathering small writes first makes it several times
        # faster.
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed,
            io.BufferedWriter(cast(io.RawIOBase, packed), 1 << 16) as gathered,
        ):
            yield cast(BinaryIO, gathered)
    else:
        yield file


@contextmanager
def _faults_explained(path: AnyPath) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise InputError(
            path, "the gzip data ends too early: the file is truncated", fix=_AGAIN
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(path, f"the gzip data is corrupt ({error})", fix=_AGAIN) from None
    except FileNotFoundError:
        raise InputError(path, "no such file", fix="check the path") from None
    except IsADirectoryError:
        raise InputError(path, "this is a folder", fix="give a file in it") from None
    except PermissionError:
        raise InputError(path, "not allowed to read it", fix="check its permissions") from None
    except OSError as error:
        raise InputError(
            path, f"cannot be read: {error.strerror or error}", fix="check the path"
        ) from None


@contextmanager
def _refusals_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError:
        raise UserError(f"{path}: this is a folder; give the name of a file in it") from None
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{path}: there is no folder {path.parent}; create it first, or write elsewhere"
        ) from None
    except PermissionError:
        raise UserError(
            f"{path}: not allowed to write there; check the permissions of {path.parent}"
        ) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UserError(
                f"{str(path)[:60]}...: the name is too long; give a shorter one"
            ) from None
        raise OutsideError(f"{path}: cannot be written: {error.strerror or error}") from None
