"""Who may run a job: the agent that claims it first, until the run gives it up. And who may bring
outputs into place.

A claim is a file that only one process can make, so a job runs once, even if it was submitted twice
or put back into the queue. It stays: a job that was started is never started again, and what it
left is planned again by the manager.

A fence is a file after which the job's agent begins nothing more. A queue may call a job lost whose
agent lives on, as when a node is cut off. The manager makes it before it plans the job's tasks
again; the agent looks for it before it starts any. What runs then may end, and is heard.

If a task runs in several jobs at the same time, each attempt that has succeeded asks for the
task's *commit* before it touches the outputs' places: a file that only one can make, with the
number of its job. One that finds it made by another job throws away what it wrote, and was
superseded. A commit that fails (a full disk) is given back.

A job may die between its claim and the end of its commit. Then the task is not finished, and no
attempt that shares the claim can bring it into place: those that still run are superseded, and drop
the task. So it comes back to the manager, which plans it again with the next name for its claim,
since this one's job is over (`manager.dispatch`); the attempt that wins there first undoes what was
half done (`outputs`). A task that is undone later gets a new name.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from windrow.agent.folder import RunFolder
from windrow.files import about_to_write, create_once, disk_faults, sync

_UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # not there, being written, or cut short


def claim(path: Path, host: str, queue_id: str, at: float, by_job: int | None = None) -> str:
    """Claim the job; `by_job` takes it over if that is another. Empty if it is ours now, else
    who has it."""
    record = {"host": host, "pid": os.getpid(), "queue_id": queue_id, "at": at, "by_job": by_job}
    with disk_faults(f"{path} cannot be created"):
        if create_once(path, json.dumps(record).encode() + b"\n"):
            return ""
    try:
        holder = json.loads(path.read_bytes())
        return (
            f"queue job {holder['queue_id'] or '(unnamed)'} on {holder['host']}, process "
            f"{holder['pid']}"
        )
    except _UNREADABLE:
        return "another agent"


def claimant(path: Path) -> str:
    """What the queue called the job that made the claim; empty if there is no claim, or it is
    unknown."""
    try:
        return str(json.loads(path.read_bytes())["queue_id"])
    except _UNREADABLE:
        return ""


def commit(path: str, job: int) -> bool:
    """Claim the outputs of a task for a job. True also if it has the claim: it runs one attempt
    at a time."""
    return create_once(Path(path), b"%d\n" % job) or holder(path) == job


def holder(path: str | Path) -> int | None:
    """The job that has claimed a task's outputs; None if there is no claim, or its maker died
    before it had said."""
    try:
        return int(Path(path).read_bytes())
    except (OSError, ValueError):
        return None


def fence(folder: RunFolder, job: int) -> None:
    """Let no agent begin a further task of this job. May be called again."""
    path = folder.over(job)
    with disk_faults(f"{path} cannot be created"):
        folder.make(job)
        about_to_write(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            sync(
                descriptor
            )  # its tasks are about to be planned again: a crash must not bring the job back
        finally:
            os.close(descriptor)


def is_fenced(folder: RunFolder, job: int) -> bool:
    """Whether the run has given this job up. The folder is listed: a network file system then asks
    its server."""
    path = folder.over(job)
    try:
        return path.name in os.listdir(path.parent)  # noqa: PTH208 - on the way of every task
    except OSError:  # a hiccup says nothing
        return False
