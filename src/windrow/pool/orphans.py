"""Tasks that outlived their server: only where server and guardian were killed within the same instant.

Every task carries the pool's id in its environment, and passes it on to what it starts. Before a server starts anything
it kills what still carries it, so that no task runs twice at the same time. Linux only, and on this machine only; on
other nodes of an allocation the queue ends what is left.
"""

from __future__ import annotations

import os
import time

from windrow.errors import OutsideError
from windrow.files import kill_marked

VARIABLE = "WINDROW_POOL_ID"
_PATIENCE_S = 10.0


def kill_leftovers(pool_id: str) -> int:
    """Kill every process of an earlier server's tasks; how many there were. OutsideError where one does not go."""
    killed: set[int] = set()
    end = time.monotonic() + _PATIENCE_S
    while found := kill_marked([f"{VARIABLE}={pool_id}".encode()], spared=(os.getpid(), os.getppid())):
        if time.monotonic() > end:
            raise OutsideError(f"process {found[0]}, a task of an earlier server of this pool, cannot be killed")
        killed.update(found)
        time.sleep(0.02)
    return len(killed)
