"""Whether a site can be used: each thing that a run needs of it is tried, one after the other, and
left as it was."""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow.app.far import connection, porter, settle
from windrow.app.queues import open_queue
from windrow.app.settings import KINDS, settings_of
from windrow.app.settings import NAME as SETTINGS
from windrow.app.sites import site_of
from windrow.data.catalogue import HOME
from windrow.data.rsync import MoveFiles, Rsync
from windrow.deletion import discard
from windrow.errors import InputError, UserError, WindrowError
from windrow.forecast.guard import closed_soon, hidden_jobs
from windrow.model import format_duration
from windrow.model.site import Site
from windrow.model.size import format_size
from windrow.model.wording import count
from windrow.queues.port import Checked, Limits, QueueError

CLOCK_S = 60.0
_TRIED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """What was tried and what came of it. `fix`: what to do; empty if all is well."""

    what: str
    said: str
    fix: str = ""


def examine(name: str) -> Iterator[Finding]:
    """All that a run needs of this site, in the order in which it would meet it; nothing more after
    what is vital."""
    try:
        queue = open_queue(name)
        limits = queue.limits()
        if isinstance(queue, Checked):
            queue.check()
    except WindrowError as error:
        yield Finding("queue", str(error), _fix_of(name, error))
        return
    if limits.max_walltime_s is None:
        longest = "any time"
    else:
        longest = f"{format_duration(limits.max_walltime_s)} each"
    if limits.max_jobs is None:
        jobs = ""
    else:
        jobs = f", at most {limits.max_jobs} jobs"
    site = site_of(name, limits, queue)
    yield Finding("queue", f"{_nodes(limits)}, {longest}{jobs}", limits.closed)
    if not limits.from_settings:
        with suppress(QueueError):
            reading = queue.snapshot()
            told = {"jobs of others": hidden_jobs(reading), "maintenance": closed_soon(reading)}
            yield from (Finding(what, words) for what, words in told.items() if words)
    if site.host:
        yield Finding(
            "login", f"{connection(site.host, site.setup).user} at {site.host}, without a prompt"
        )
    if site.files:
        yield from _files(site)


def _fix_of(name: str, error: WindrowError) -> str:
    """What to do about a queue that cannot be opened."""
    if isinstance(error, InputError):
        return f"correct {error.file}"
    if not isinstance(error, UserError):
        return "is the site up, and its batch system?"
    if name in (*KINDS, *settings_of().tables):
        return "do what it says, then try again"
    return f"choose one of these, or describe it in {SETTINGS}"


def _nodes(limits: Limits) -> str:
    """How many nodes there are, and what they have; of several kinds, each."""
    nodes = count(limits.nodes, "node")
    if len(limits.kinds) < 2:
        return f"{nodes} of {limits.shape}"
    return f"{nodes}: {'; '.join(f'{kind.count} of {kind.shape}' for kind in limits.kinds)}"


def _files(site: Site) -> Iterator[Finding]:
    try:
        place = settle(site, f"doctor-{secrets.token_hex(4)}")
        ask = porter(place)
        told = ask({"hello": True})
    except WindrowError as error:
        yield Finding("folder", str(error), "set folder and setup of the site in windrow.toml")
        return
    try:
        yield Finding(
            "folder", f"{Path(place['there']).parents[1]}, {format_size(told['free'] or 0)} free"
        )
        yield Finding("Python", f"{told['python']}, {place['agent'][0]}")
        off_s = told["now"] - time.time()
        is_off = abs(off_s) > CLOCK_S
        if is_off:
            fix = "Windrow corrects for it; ask the administrators to set the clock"
        else:
            fix = ""
        yield Finding(
            "clock",
            f"{abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} this machine's",
            fix,
        )
        yield from _both_ways(site, place, told)
    finally:
        ask({"remove": True})


def _both_ways(site: Site, place: dict[str, Any], told: dict[str, Any]) -> Iterator[Finding]:
    absent = [
        where
        for where, there in (("here", shutil.which("rsync")), (site.name, told["rsync"]))
        if not there
    ]
    if absent:
        yield Finding(
            "rsync",
            f"not found: {', '.join(absent)}",
            "install rsync, or load it in setup of the site",
        )
        return
    with tempfile.TemporaryDirectory() as home:
        tried = Path(home, "tried")
        content = os.urandom(_TRIED_BYTES)
        tried.write_bytes(content)
        mover = Rsync(
            home, {site.files: (connection(place["data_host"], ""), f"{place['there']}/files")}
        )
        for origin, to in ((HOME, site.files), (site.files, HOME)):
            moved = mover.move(MoveFiles(("tried",), origin, to))
            way = f"{format_size(_TRIED_BYTES)} from {origin or 'here'} to {to or 'here'}"
            if moved.why:
                fix = (
                    "rsync needs a login shell that prints nothing; change the shell's profile "
                    "there, or set data_host"
                )
            else:
                fix = ""
            yield Finding("a file", f"{way}: {moved.why or f'{moved.took_s:.1f} s'}", fix)
            if moved.why:
                return
            is_same = not tried.exists() or tried.read_bytes() == content
            discard(tried)
        yield Finding(
            "checksum",
            "the same" if is_same else "another",
            "" if is_same else "ask the administrators",
        )
