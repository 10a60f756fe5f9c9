"""Where shared data come from: a file or folder of the shared file system, an http(s) address, or what fsspec knows.

Rule 1: what is read is what was listed. A file that has changed since is refused, not mixed with what was read before.
Rule 2: credentials come from the environment of the process that reads, and are in no address: one with a password is
refused, and messages leave out what follows the `?` of an address, which may be a signature.
Rule 3: a name is relative, with `/` between its parts. A home that is one file has one name, its own. It is listed by
one node for all: the others take its `record`, in which a folder ends in `/`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from windrow.errors import OutsideError, UserError

AUTHORIZATION = "WINDROW_HTTP_AUTHORIZATION"
"""The variable with what an http(s) home wants to hear as `Authorization`, if anything."""
TIMEOUT_S = 60.0
_PAUSES_S = (0.5, 2.0)  # before a further try of a home behind a network


class Home:
    """Files by name, each with its size and a mark that changes when the file does; and ranges of them."""

    def __init__(self, source: str, files: Mapping[str, tuple[int, str]] | None = None) -> None:
        """`files`: as another node listed them. OutsideError where it is to be listed, and cannot be."""
        self.source = source
        self.files = {name: (int(size), str(mark)) for name, (size, mark) in (files or {}).items()}
        if files is None:
            self.list()

    @property
    def record(self) -> list[object]:
        """What another node needs to read it, as JSON has it."""
        return [self.source, self.files]

    def list(self) -> None:
        """Find its files."""
        raise NotImplementedError

    def read(self, name: str, begin: int, end: int) -> bytes:
        """These bytes of a file, all of them. OutsideError where that is impossible."""
        raise NotImplementedError

    def _fault(self, name: str, why: object) -> OutsideError:
        return OutsideError(f"{self.source.partition('?')[0]}{f': {name}' if name else ''}: {why}")

    def _checked(self, name: str, data: bytes, length: int, mark: str) -> bytes:
        if len(data) != length or mark != self.files[name][1]:
            raise self._fault(name, "changed while it was read")
        return data


class FolderHome(Home):
    """A file or folder of a file system that this node sees. Links to files are followed, links to folders are not."""

    def list(self) -> None:
        """The regular files of the folder, or the one."""
        try:
            if not stat.S_ISDIR(os.stat(self.source).st_mode):
                self._note(os.path.basename(self.source), self.source)
                return
            self.source = os.path.join(self.source, "")
            for folder, below, names in os.walk(self.source, onerror=_refuse):
                below.sort()
                for path in (os.path.join(folder, name) for name in sorted(names)):
                    self._note(os.path.relpath(path, self.source), path)
        except OSError as error:
            raise self._fault("", error.strerror) from error

    def _note(self, name: str, path: str) -> None:
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            self.files[name] = found.st_size, str(found.st_mtime_ns)

    def read(self, name: str, begin: int, end: int) -> bytes:
        """These bytes, read here."""
        path, at, parts = self.source + (name if self.source.endswith("/") else ""), begin, []
        try:
            with open(path, "rb", buffering=0) as file:
                mark = str(os.fstat(file.fileno()).st_mtime_ns)
                while at < end and (part := os.pread(file.fileno(), end - at, at)):
                    parts.append(part)
                    at += len(part)
        except OSError as error:
            raise self._fault(name, error.strerror) from error
        return self._checked(name, parts[0] if len(parts) == 1 else b"".join(parts), end - begin, mark)


def _refuse(error: OSError) -> None:
    raise error


class HttpHome(Home):
    """One file, by an http or https address whose server answers requests for ranges; by proxies of the environment."""

    def list(self) -> None:
        """The one file, by the last part of its address."""
        size, mark, _ = self._get(0, 1)
        self.files = {unquote(urlsplit(self.source).path.rpartition("/")[2]) or "index": (size, mark)}

    def read(self, name: str, begin: int, end: int) -> bytes:
        """These bytes, as its server sends them."""
        _, mark, data = self._get(begin, end)
        return self._checked(name, data, end - begin, mark)

    def _get(self, begin: int, end: int) -> tuple[int, str, bytes]:
        """The size of the file and its mark, and these bytes of it."""
        for pause_s in (*_PAUSES_S, 0.0):
            try:
                return self._try(begin, end)
            except urllib.error.HTTPError as error:
                if error.code == 416 and (error.headers.get("Content-Range") or "").endswith("*/0"):
                    return 0, "", b""
                why: object = f"its server answered {error.code}"
                pause_s = pause_s if error.code >= 500 else 0.0  # noqa: PLW2901
            except OSError as error:
                why = getattr(error, "reason", error)
            if not pause_s:
                break
            time.sleep(pause_s)
        raise self._fault("", why)

    def _try(self, begin: int, end: int) -> tuple[int, str, bytes]:
        request = urllib.request.Request(self.source, headers={"Range": f"bytes={begin}-{end - 1}"})
        if secret := os.environ.get(AUTHORIZATION):
            request.add_unredirected_header("Authorization", secret)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            total = (answer.headers.get("Content-Range") or "").rpartition("/")[2]
            if answer.status != 206 or not total.isdecimal():
                raise self._fault("", "its server does not answer requests for ranges")
            mark = " ".join((total, answer.headers.get("ETag", ""), answer.headers.get("Last-Modified", "")))
            return int(total), mark, answer.read(end - begin)


class FsspecHome(Home):
    """Files wherever fsspec finds them: s3, gs, ssh, ftp and others, by the packages that are installed."""

    def __init__(self, source: str, files: Mapping[str, tuple[int, str]] | None = None) -> None:
        self.source = source
        with self._faults(""):
            from fsspec.core import url_to_fs  # noqa: PLC0415  (an extra)

            found: tuple[Any, str] = url_to_fs(source)
            self._system, self._root = found
        super().__init__(source, files)

    @contextlib.contextmanager
    def _faults(self, name: str) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            why = f"{error}; install windrow[data], and what this address needs, for the Python that agents use"
            raise self._fault("", why) from None
        except Exception as error:  # noqa: BLE001  (each has errors of its own; their texts may hold the address)
            raise self._fault(name, type(error).__name__) from None

    def list(self) -> None:
        """All files below it, or the one."""
        with self._faults(""):
            found = self._system.find(self._root, detail=True)
        if list(found) != [self._root]:
            self.source = self.source.rstrip("/") + "/"
        for path, about in sorted(found.items()):
            name = path[len(self._root) :].lstrip("/") or path.rpartition("/")[2]
            self.files[name] = int(about["size"]), ""

    def read(self, name: str, begin: int, end: int) -> bytes:
        """These bytes, as the implementation has them."""
        path = f"{self._root.rstrip('/')}/{name}" if self.source.endswith("/") else self._root
        with self._faults(name):
            data = bytes(self._system.cat_file(path, start=begin, end=end))
        return self._checked(name, data, end - begin, "")


def open_home(source: str, files: Mapping[str, tuple[int, str]] | None = None) -> Home:
    """The home at this path or address. UserError where that holds a password."""
    scheme, found, rest = source.partition("://")
    if not found:
        return FolderHome(source, files)
    if urlsplit(source).password:
        shown = f"{scheme}://{rest.rpartition('@')[2]}".partition("?")[0]
        raise UserError(f"{shown}: its address holds a password; give credentials by the environment")
    if scheme == "file":
        return FolderHome(unquote(urlsplit(source).path), files)
    return HttpHome(source, files) if scheme in ("http", "https") else FsspecHome(source, files)
