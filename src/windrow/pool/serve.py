"""Puts a server together: the only place that names folder, lock, journal, guardian and server at once."""

from __future__ import annotations

import os
import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from windrow.agent.guard import guarded
from windrow.agent.signals import Wake
from windrow.pool.folder import PoolFolder
from windrow.pool.journal import PoolJournal
from windrow.pool.server import PoolServer
from windrow.pool.settings import choose
from windrow.records.lock import RunLock
from windrow.version import __version__

_LOCK_WAIT_S = 5.0


def serve(folder: PoolFolder, wanted: Mapping[str, Any], say: Callable[[str], None]) -> int:
    """Serve the pool in this process until it is told to stop; the exit code. Makes the pool where there is none.

    Where there is a guardian (see `agent.guard`) this returns in two processes, each of which must end then. The lock
    is taken before they part: as long as one of them lives nobody else can serve the pool, so no second server can
    begin while tasks of the first are still being killed.
    """
    folder.make()
    stop = f"windrow pool {shlex.quote(folder.address)} --stop"
    running = f"pool {folder.name} is already running"
    lock = RunLock(folder.lock, _LOCK_WAIT_S, lambda holder: f"{running} ({holder}); {stop} stops it")
    facts = {"id": secrets.token_hex(8), "created_s": time.time(), "version": __version__}
    with closing(PoolJournal.create(folder.journal, facts)) as journal:
        kept = journal.facts().get("settings", {})
    settings, hosts = choose(wanted, kept, os.environ)
    code = guarded(lambda: PoolServer(folder, settings, hosts, Wake(), say).run())
    lock.release()
    return code
