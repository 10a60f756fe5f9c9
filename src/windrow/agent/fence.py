"""The fence around a job that the run has given up: a file in its folder, after which its agent begins nothing more.

A queue may call a job lost whose agent lives on, as when a node is cut off. The manager makes the file before it plans
the job's tasks again; the agent looks for it before it starts any. What runs then may end, and is heard.
"""

from __future__ import annotations

import os

from windrow.agent.folder import RunFolder
from windrow.files import disk_faults


def fence(folder: RunFolder, job: int) -> None:
    """Let no agent begin a further task of this job. May be called again."""
    path = folder.over(job)
    with disk_faults(f"{path} cannot be created"):
        folder.make(job)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def is_fenced(folder: RunFolder, job: int) -> bool:
    """Whether the run has given this job up. The folder is listed: a network file system then asks its server."""
    path = folder.over(job)
    try:
        return path.name in os.listdir(path.parent)  # noqa: PTH208 - on the way of every task
    except OSError:  # a hiccup says nothing
        return False
