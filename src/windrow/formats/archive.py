"""Logs of the Parallel Workloads Archive: which we know, how to get them, what one holds.

Each log is known by the SHA-256 of its unpacked text, so that a copy counts as the same log however
it was packed. A download is checked before it gets its name: what `fetch` returns is the log,
complete, or nothing is left behind.

Further logs of the archive can be read as well; they are just not in this table.
"""

import hashlib
import http.client
import os
import re
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from windrow.deletion import put
from windrow.errors import InputError, OutsideError, UserError
from windrow.files import draft_beside
from windrow.formats.disk import AnyPath, bare_name, open_bytes
from windrow.formats.swf.reader import read_log, read_swf_header
from windrow.model import Log, format_duration
from windrow.model.usage import accuracy_of, usage_of
from windrow.model.wording import percent

BASE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload/"
"""Where the archive lives."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and, if the server says it, the bytes to come in all."""

_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class ArchiveLog:
    """One log of the archive. `name` is what a user types, `file` what the archive calls it."""

    name: str
    title: str
    nodes: int
    processors: int
    jobs: int
    start: str
    end: str
    file: str
    folder: str
    sha256: str

    @property
    def url(self) -> str:
        """Where it can be downloaded."""
        return f"{BASE_URL}{self.folder}/{self.file}"


_TABLE = tomllib.loads(Path(__file__).with_name("archive.toml").read_text())
ARCHIVE = tuple(ArchiveLog(**entry) for entry in _TABLE["logs"])
"""The logs this version knows."""


def find(name: str) -> ArchiveLog:
    """The log of that name (`KTH-SP2`, in any case, or the name of its file). UserError if there
    is none."""
    wanted = name.lower()
    for log in ARCHIVE:
        if wanted in (log.name.lower(), log.file.lower(), bare_name(log.file).lower()):
            return log
    raise UserError(
        f"no log is called {name!r}; known logs: {', '.join(log.name for log in ARCHIVE)}"
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be created ({error.strerror}); give another folder"
        ) from None


def fetch(
    name: str,
    folder: AnyPath,
    *,
    base_url: str = BASE_URL,
    timeout_s: float = 30.0,
    progress: Progress | None = None,
) -> Path:
    """The log's file in `folder`, downloaded if it is not there yet, its checksum verified either
    way.

    OutsideError if the archive cannot be reached or sends something else; then nothing is left
    behind.
    """
    log = find(name)
    place = Path(folder) / log.file
    if place.exists() and _is_the_log(place, log):
        return place
    url = f"{base_url.rstrip('/')}/{log.folder}/{log.file}"
    _make_folder(place.parent)
    with draft_beside(place) as beside:
        with _failures_explained(url, place):
            _download(url, beside, timeout_s, progress)
        if not _is_the_log(beside, log):
            raise OutsideError(
                f"{url}: the download is not {log.file} (wrong checksum); try again later, or "
                "elsewhere"
            )
        put(beside, place)
    return place


def content_sha256(path: AnyPath) -> str:
    """The SHA-256 of the file's unpacked content."""
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a log: from the table if only a name was given, from the file itself
    if there is one."""

    name: str
    title: str
    nodes: int
    jobs: int
    start: str
    end: str
    url: str
    notice: str = ""
    log: Log | None = None

    def lines(self) -> list[str]:
        """The same for people, with what was repaired if the file was read."""
        title = self.name
        if self.title:
            title += f": {self.title}"
        recorded = f"recorded: {self.jobs:,} jobs"
        if self.start:
            recorded += f", {self.start} to {self.end}"
        lines = [title, f"machine: {self.nodes:,} nodes (processors)", recorded]
        if (log := self.log) is not None:
            usable = f"usable: {len(log):,} jobs of {int(log.user.max()) + 1:,} users"
            span = f"submitted over {format_duration(int(log.submit_s[-1]))}"
            widest = f"widest {int(log.nodes.max()):,} nodes"
            lines.append(f"{usable}, {span}, load {log.load:.3f}, {widest}")
            lines += _usage_lines(log)
            lines += log.repairs.lines()
        if self.url:
            lines.append(f"source: {self.url}")
        if self.notice:
            lines.append("notice: " + " ".join(self.notice.split()))
        return lines


def _usage_lines(log: Log) -> list[str]:
    """What jobs are like in the mean, and how well their requests tell how long they run."""
    usage = usage_of(log)
    known = accuracy_of(log)
    return [
        f"on average: {usage.jobs_per_day:,.4g} jobs a day, of {usage.width:.3g} nodes and "
        f"{usage.run_h:.3g} h, which request {usage.request_node_h:,.4g} node-hours",
        f"load as requested {usage.requested_load:.3f}, as used {usage.actual_load:.3f}",
        f"requests: {known.over_request_h:.2f} h more than needed on average; jobs run for "
        f"{percent(known.mean)} of what they request (half of them for at most "
        f"{percent(known.median)})",
    ]


def describe(name_or_path: AnyPath, *, nodes: int | None = None) -> Description:
    """What is known of an archive log by name, or of any SWF file by path (`nodes` as in
    read_log)."""
    path = name_or_path
    if not Path(path).is_file() and os.sep not in str(path):
        try:
            entry = find(str(path))
        except UserError as error:
            raise UserError(f"{error}; and there is no such file") from None
        return Description(
            entry.name, entry.title, entry.processors, entry.jobs, entry.start, entry.end, entry.url
        )
    log = read_log(path, nodes=nodes)
    header = read_swf_header(path)
    places = [header.get(label, "").splitlines()[:1] for label in ("Computer", "Installation")]
    found = Description(
        name=log.name,
        title=", ".join(line for lines in places for line in lines),
        nodes=log.machine_nodes,
        jobs=len(log) + log.repairs.dropped,
        start=header.get("StartTime", ""),
        end=header.get("EndTime", "unknown"),
        url="",
        notice=header.get("Copyright", ""),
        log=log,
    )
    checksum = content_sha256(path)
    for entry in ARCHIVE:
        if entry.sha256 == checksum:
            return replace(
                found,
                name=entry.name,
                title=entry.title,
                start=entry.start,
                end=entry.end,
                url=entry.url,
            )
    return found


@contextmanager
def _failures_explained(url: str, place: Path) -> Iterator[None]:
    by_hand = f"check the connection, or download it by hand and save it as {place}"
    try:
        yield
    except urllib.error.HTTPError as error:
        raise OutsideError(
            f"{url}: the server answers {error.code} {error.reason}; {by_hand}"
        ) from None
    except urllib.error.URLError as error:
        raise OutsideError(f"{url}: cannot be reached ({error.reason}); {by_hand}") from None
    except (OSError, http.client.HTTPException) as error:
        raise OutsideError(
            f"{url}: the download failed ({error or type(error).__name__}); {by_hand}"
        ) from None


def _download(url: str, place: Path, timeout_s: float, progress: Progress | None) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "windrow"})
    with urllib.request.urlopen(request, timeout=timeout_s) as answer, place.open("xb") as file:
        length = answer.headers.get("Content-Length", "")
        if re.fullmatch("[0-9]+", length):
            total = int(length)
        else:
            total = None
        received = 0
        while block := answer.read(_BLOCK_BYTES):
            file.write(block)
            received += len(block)
            if progress is not None:
                progress(received, total)


def _is_the_log(place: Path, log: ArchiveLog) -> bool:
    try:
        return content_sha256(place) == log.sha256
    except InputError:  # cut off, or not gzip at all
        return False
