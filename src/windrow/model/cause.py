"""Why a job or an attempt at a task was lost. Standard library only: agents name causes, too."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """Why a job or an attempt at a task came to nothing. Each has a limit of its own
    (`manager.losses`)."""

    PROGRAM = "program"  # the task's own command failed
    MEMORY = "memory"
    SPACE = "space"  # for files: the disk, a quota or the limit of the run; or no way to the disk
    VOLUME = "volume lost"  # what only it held is made again
    TIME_LIMIT = "time limit"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"  # by someone else
    # the user cancelled the task, or changes it; or what it reads is to be made again
    DISMISSED = "dismissed"
    LOST = "lost"  # the queue no longer knows it
    UNREACHABLE = "unreachable"  # its site has not answered for long
    SUPERSEDED = "superseded"  # another attempt at the same task finished first
    AGENT = (
        "agent"  # the agent could not work, or did nothing: no Python, a full disk, too little time
    )
