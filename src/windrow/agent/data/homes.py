"""Where shared data come from: a file or folder of the shared file system, an http(s) address, or
what fsspec knows.

Rule 1: what is read is what was listed. A file that has changed since is refused, not mixed with
what was read before; and so is a home that does not tell its versions apart.
Rule 2: credentials come from the environment of the process that reads, and are in no address: one
with a password is refused, and messages leave out what follows the `?` of an address, which may be
a signature.
Rule 3: a name is relative, with `/` between its parts. A home that is one file has one name, its
own.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from windrow.errors import OutsideError, UserError

AUTHORIZATION = "WINDROW_HTTP_AUTHORIZATION"
"""The variable with what an http(s) home wants to hear as `Authorization`, if anything."""
_TIMEOUT_S = 60.0
_PAUSES_S = (
    0.5,
    2.0,
    8.0,
    20.0,
    40.0,
)  # before a further try: a home may be out of reach for a minute


class Home:
    """Files by name, each with its size and a mark that changes when the file does; and ranges of
    them."""

    def __init__(self, source: str) -> None:
        """OutsideError if it cannot be listed."""
        self.source = source
        self.files: dict[str, tuple[int, str]] = {}
        self._list()

    def read(self, name: str, begin: int, end: int) -> bytes:
        """These bytes of a file, all of them. OutsideError if that is impossible."""
        data, mark = self._get(name, begin, end)
        if len(data) != end - begin or mark != self.files[name][1]:
            raise self._fault(name, "changed while it was read")
        return data

    def finish(self, name: str, path: str) -> None:  # noqa: ARG002  (others need the name)
        """A copy of this file is whole: no one is to write in it."""
        os.chmod(path, 0o400)

    def _list(self) -> None:
        raise NotImplementedError

    def _get(self, name: str, begin: int, end: int) -> tuple[bytes, str]:
        """These bytes, as far as there are any, and the file's mark."""
        raise NotImplementedError

    def _fault(self, name: str, why: object) -> OutsideError:
        return OutsideError(f"{self.source.partition('?')[0]}{f': {name}' if name else ''}: {why}")


class FolderHome(Home):
    """A file or folder of a file system that this node sees. Links to files are followed, links to
    folders are not."""

    def _list(self) -> None:
        try:
            if not stat.S_ISDIR(os.stat(self.source).st_mode):
                return self._note(os.path.basename(self.source), self.source)
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

    def _path(self, name: str) -> str:
        return self.source + (name if self.source.endswith("/") else "")

    def _get(self, name: str, begin: int, end: int) -> tuple[bytes, str]:
        parts = []
        try:
            with open(self._path(name), "rb", buffering=0) as file:
                while begin < end and (part := os.pread(file.fileno(), end - begin, begin)):
                    parts.append(part)
                    begin += len(part)
                mark = str(os.fstat(file.fileno()).st_mtime_ns)
        except OSError as error:
            raise self._fault(name, error.strerror) from error
        return parts[0] if len(parts) == 1 else b"".join(parts), mark

    def finish(self, name: str, path: str) -> None:
        """It has the time of the file, too, and may be executed if that may."""
        found = os.stat(self._path(name))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        os.chmod(path, 0o400 | (found.st_mode & 0o100))


def _refuse(error: OSError) -> None:
    raise error


class HttpHome(Home):
    """One file, by an http or https address whose server answers requests for ranges; by proxies of
    the environment."""

    def _list(self) -> None:
        _, mark = self._get("", 0, 1)
        self.files[unquote(urlsplit(self.source).path.rpartition("/")[2]) or "index"] = (
            int(mark.split()[0]),
            mark,
        )

    def _request(self, begin: int, end: int) -> urllib.request.Request:
        request = urllib.request.Request(self.source, headers={"Range": f"bytes={begin}-{end - 1}"})
        if secret := os.environ.get(AUTHORIZATION):
            request.add_unredirected_header("Authorization", secret)
        return request

    def _get(self, name: str, begin: int, end: int) -> tuple[bytes, str]:  # noqa: ARG002  (there is one file)
        request = self._request(begin, end)
        for pause_s in (*_PAUSES_S, None):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                    return answer.read(end - begin), self._mark(answer.status, answer.headers)
            except urllib.error.HTTPError as error:
                if error.code == 416:
                    return b"", self._mark(206, error.headers)
                why: object = f"its server answered {error.code}"
                if error.code < 500:
                    break
            except OSError as error:
                why = getattr(error, "reason", error)
            if pause_s is not None:
                time.sleep(pause_s)
        raise self._fault("", why)

    def _mark(self, status: int, headers: Any) -> str:
        """The size of the file, and what its server says of its version."""
        size = headers.get("Content-Range", "").rpartition("/")[2]
        if status != 206 or not size.isdecimal():
            raise self._fault("", "its server does not answer requests for ranges")
        tells = [headers.get(name, "") for name in ("ETag", "Last-Modified")]
        if not any(tells):
            raise self._fault(
                "",
                "its server tells neither the time nor a hash of the file, so a change while it is "
                "read would not show; copy it to the shared file system, and name it there",
            )
        return " ".join((size, *tells))


_TELLING = ("etag", "md5", "sha", "checksum", "mtime", "modif", "updated", "generation", "version")
"""What fsspec's systems call that by which versions of a file differ has one of these in its
name."""


class FsspecHome(Home):
    """Files wherever fsspec finds them: s3, gs, ssh, ftp and others, by the packages that are
    installed."""

    def _list(self) -> None:
        with self._faults(""):
            from fsspec.core import url_to_fs  # noqa: PLC0415  (an extra)

            found: tuple[Any, str] = url_to_fs(self.source)
            self._system, self._root = found
            for path, about in sorted(self._system.find(self._root, detail=True).items()):
                name = path[len(self._root) :].lstrip("/") or path.rpartition("/")[2]
                self.files[name] = int(about["size"]), self._mark(path, about)
        if unmarked := next((name for name, (_, mark) in self.files.items() if not mark), ""):
            why = (
                "this kind of URL tells neither the time nor a hash of a file, so a change "
                "while it is read would not"
            )
            raise self._fault(
                unmarked, f"{why} show; copy it to the shared file system, and name it there"
            )

    def _mark(self, path: str, about: dict[str, Any]) -> str:
        """What changes when the file does; empty if its home tells nothing of the kind."""
        telling = (name for name in sorted(about) if any(word in name.lower() for word in _TELLING))
        found = [f"{name}={about[name]}" for name in telling if about[name] not in (None, "")]
        if not found:
            with contextlib.suppress(NotImplementedError, KeyError):
                found = [str(self._system.modified(path))]
        if found:
            return " ".join((f"size={about['size']}", *found))
        return ""

    @contextlib.contextmanager
    def _faults(self, name: str) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            why = (
                f"{error}; install windrow-hpc[data], and the package for this kind of URL, for "
                "the Python that agents use"
            )
            raise self._fault("", why) from None
        except Exception as error:  # noqa: BLE001  (each store has its own errors; their texts may contain the URL)
            raise self._fault(name, type(error).__name__) from None

    def _get(self, name: str, begin: int, end: int) -> tuple[bytes, str]:
        with self._faults(name):
            is_file = self._root.rpartition("/")[2] == name and len(self.files) == 1
            if is_file:
                path = self._root
            else:
                path = f"{self._root.rstrip('/')}/{name}"
            data = bytes(self._system.cat_file(path, start=begin, end=end))
            self._system.invalidate_cache()
            return data, self._mark(path, self._system.info(path))


def open_home(source: str) -> Home:
    """The home at this path or address. UserError if that holds a password."""
    scheme, found, rest = source.partition("://")
    if not found:
        return FolderHome(source)
    if urlsplit(source).password:
        shown = f"{scheme}://{rest.rpartition('@')[2]}".partition("?")[0]
        raise UserError(
            f"{shown}: its URL contains a password; pass credentials in environment variables"
        )
    if scheme in ("http", "https"):
        return HttpHome(source)
    return FsspecHome(source)
