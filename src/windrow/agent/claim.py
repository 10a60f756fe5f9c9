"""Who may run a job: whoever claims it first, until the run gives it up.

A claim is a file that only one process can make, so a job runs once, even if it was submitted twice or put back into
the queue. It stays: a job that was begun is never begun again, and what it left is planned anew by the manager.

A fence is a file after which the job's agent begins nothing more. A queue may call a job lost whose agent lives on, as
when a node is cut off. The manager makes it before it plans the job's tasks again; the agent looks for it before it
starts any. What runs then may end, and is heard.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from windrow.agent.folder import RunFolder
from windrow.files import about_to_write, create_once, disk_faults

_UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # not there, being written, or cut short


def claim(path: Path, host: str, queue_id: str, at: float, by_job: int | None = None) -> str:
    """Claim the job; `by_job` takes it over where that is another. Empty if it is ours now, else who has it."""
    record = {"host": host, "pid": os.getpid(), "queue_id": queue_id, "at": at, "by_job": by_job}
    with disk_faults(f"{path} cannot be created"):
        if create_once(path, json.dumps(record).encode() + b"\n"):
            return ""
    try:
        holder = json.loads(path.read_bytes())
        return f"queue job {holder['queue_id'] or '(unnamed)'} on {holder['host']}, process {holder['pid']}"
    except _UNREADABLE:
        return "another agent"


def claimant(path: Path) -> str:
    """What the queue called the job that made the claim; empty where there is no claim, or it is unknown."""
    try:
        return str(json.loads(path.read_bytes())["queue_id"])
    except _UNREADABLE:
        return ""


def fence(folder: RunFolder, job: int) -> None:
    """Let no agent begin a further task of this job. May be called again."""
    path = folder.over(job)
    with disk_faults(f"{path} cannot be created"):
        folder.make(job)
        about_to_write(path)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def is_fenced(folder: RunFolder, job: int) -> bool:
    """Whether the run has given this job up. The folder is listed: a network file system then asks its server."""
    path = folder.over(job)
    try:
        return path.name in os.listdir(path.parent)  # noqa: PTH208 - on the way of every task
    except OSError:  # a hiccup says nothing
        return False
