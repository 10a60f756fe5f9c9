"""What was in the files that a run reads and none of its tasks makes, as a hash of each: so that a
later run sees whether one has changed, or only its time.

Law: a hash is recorded only if the file had size and time as when the run began, before and after
it was read, and is forgotten if it has not when a task that reads it is heard to have finished: it
is the hash of what tasks read. Of a file without one, another time counts as a change.

Small files are read when the run begins, others while it lasts, in a thread of its manager that
reads a bounded number of bytes a second.
"""

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from windrow.records.compact import as_json
from windrow.records.runnable_file import inputs_at, write_private

SMALL_BYTES = 1 << 20
AT_ONCE_BYTES = 32 << 20
"""Of small files as much is read when a run begins."""
BYTES_A_SECOND = 64 << 20
LAST_S = 2.0
"""How long the end of a run waits for what is being read."""
_BLOCK = 1 << 20
_NEVER = (-1, -1, "")

Seen = tuple[int, int]
"""Size and time of a file."""


def _stat(path: str) -> Seen | None:
    with suppress(OSError):
        found = Path(path).stat()
        return found.st_size, found.st_mtime_ns
    return None


def content_hash(path: str, *, pace: float = 0.0, stop: threading.Event | None = None) -> str:
    """The hash of what is in this file; empty if it cannot be read, or is to `stop`. `pace`: bytes
    a second at most, 0: as fast as it goes."""
    found = hashlib.blake2b(digest_size=20)
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            while block := file.read(_BLOCK):
                found.update(block)
                if stop is not None and stop.wait(len(block) / pace if pace else 0):
                    return ""
    except OSError:
        return ""
    return found.hexdigest()


def hashes_at(path: Path) -> dict[str, tuple[int, int, str]]:
    """What was recorded; nothing if that cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[int, int, str]])
    except (OSError, msgspec.DecodeError):
        return {}


def record_small(path: Path, inputs: Mapping[str, Seen]) -> None:
    """Record the small ones of these files at once."""
    left = AT_ONCE_BYTES
    found = {}
    for name, seen in sorted(inputs.items(), key=lambda one: one[1]):
        left -= seen[0]
        if seen[0] > SMALL_BYTES or left < 0:
            break
        if (of := _hash_as_seen(name, seen)) is not None:
            found[name] = (*seen, of)
    write_private(path, as_json(found))


def _hash_as_seen(
    name: str, seen: Seen, *, pace: float = 0.0, stop: threading.Event | None = None
) -> str | None:
    if _stat(name) != seen:
        return None
    of = content_hash(name, pace=pace, stop=stop)
    if of and _stat(name) == seen:
        return of
    return None


class Recorder:
    """Records the files of a run while its manager is at work."""

    def __init__(self, inputs: Path, hashes: Path) -> None:
        self._hashes = hashes
        self._inputs_seen = inputs_at(inputs)
        self._doubtful = set[str]()  # files that tasks may have read as they were not
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record, name="contents", daemon=True)
        left = self._left()
        self._is_needed = bool(left)
        if self._is_needed:
            self._thread.start()

    def _left(self) -> dict[str, Seen]:
        known = hashes_at(self._hashes)
        there = self._inputs_seen.items()
        return {name: seen for name, seen in there if known.get(name, _NEVER)[:2] != seen}

    def _record(self) -> None:
        for name, seen in sorted(self._left().items(), key=lambda one: one[1]):
            of = _hash_as_seen(name, seen, pace=BYTES_A_SECOND, stop=self._stop)
            if self._stop.is_set():
                return
            if of is not None:
                with self._writing:
                    self._write({name: (*seen, of)})

    def hear(self, paths: Iterable[Path]) -> None:
        """A task that reads these has finished."""
        for name in map(str, paths):
            seen = self._inputs_seen.get(name)
            if seen is None or name in self._doubtful or _stat(name) == seen:
                continue
            self._doubtful.add(name)
            with self._writing:
                self._write({})

    def _write(self, more: Mapping[str, tuple[int, int, str]]) -> None:
        found = {**hashes_at(self._hashes), **more}
        found = {name: one for name, one in found.items() if name not in self._doubtful}
        with suppress(OSError):
            write_private(self._hashes, as_json(found))

    def close(self, *, is_over: bool) -> None:
        """The manager goes; if the run `is_over`, what is being read may end."""
        if not self._is_needed:
            return
        if is_over:
            self._thread.join(LAST_S)
        self._stop.set()
        self._thread.join()


class Contents:
    """Which files have changed since a run read them."""

    def __init__(
        self, inputs: Path, hashes: Path, here: Callable[[str], str] = lambda path: path
    ) -> None:
        """`here`: what is called so now, if the project was moved."""
        self._before = {here(path): seen for path, seen in inputs_at(inputs).items()}
        self._hashes = {here(path): one for path, one in hashes_at(hashes).items()}
        self._now: dict[str, str] = {}

    def why_changed(self, path: str, called: str, now: Seen, read_s: float) -> str:
        """What to say of this file, which a task read at this time, if it has changed since; else
        nothing. `called`: its name for people."""
        before = self._before.get(path)
        if now[1] <= read_s * 1e9 and before in (None, now):
            return ""
        known = self._hashes.get(path)
        if known is None:
            if before is not None and before[0] == now[0]:
                return f"{called} has another time, and its content was not recorded"
            return f"{called} changed"
        if known[0] != now[0] or self._hash(path) != known[2]:
            return f"{called} changed"
        return ""

    def _hash(self, path: str) -> str:
        if path not in self._now:
            self._now[path] = content_hash(path)
        return self._now[path]
