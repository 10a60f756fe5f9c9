"""Which processes belong to a private Slurm, and how to end them: read from /proc, by environment
and parent.

A job's tasks leave their daemon's process group and session, so groups do not find them.
Environments do: daemons carry a mark, and whatever a job started has the cluster's SLURM_CONF
beside a job id.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

END_TIMEOUT_S = 10.0


def of_cluster(mark: str, directory: str, slurm_conf: str) -> list[int]:
    """The processes of the cluster in `directory`: daemons, their descendants, and whatever its
    jobs started."""
    environments = {pid: _environment(pid) for pid in _pids()}
    ours = {pid for pid, env in environments.items() if _belongs(env, mark, directory, slurm_conf)}
    parents = {pid: _parent(pid) for pid in environments}
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
        ours |= children
        grown = bool(children)
    return sorted(ours - {os.getpid()})


def of_node(pids: Collection[int], node: str) -> list[int]:
    """Those of the processes that run on this node."""
    marks = {f"WINDROW_TEST_NODE={node}".encode(), f"SLURMD_NODENAME={node}".encode()}
    return [pid for pid in pids if marks & _environment(pid)]


def end(pids: Collection[int]) -> None:
    """Kill these processes and wait until they are gone (a zombie counts as gone: its parent has
    yet to look)."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + END_TIMEOUT_S
    while any(_is_alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"processes {sorted(p for p in pids if _is_alive(p))} survived SIGKILL"
            )
        time.sleep(0.02)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _belongs(env: frozenset[bytes], mark: str, directory: str, slurm_conf: str) -> bool:
    if f"{mark}={directory}".encode() in env:
        return True
    return f"SLURM_CONF={slurm_conf}".encode() in env and any(
        v.startswith(b"SLURM_JOB_ID=") for v in env
    )


def _environment(pid: int) -> frozenset[bytes]:
    try:
        return frozenset(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:  # gone, or another user's
        return frozenset()


def _stat(pid: int) -> list[str]:
    """State, parent, ... of a process: what follows the name, which may itself hold spaces and
    brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _is_alive(pid: int) -> bool:
    return _stat(pid)[0] not in ("X", "Z")
