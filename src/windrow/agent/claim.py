"""Claims: a job runs once, even if it was submitted twice or put back into the queue.

The claim is a file that only one process can make. It stays: a job that was begun is never begun again, and what it
left is planned anew by the manager.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from windrow.files import create_once, disk_faults


def claim(path: Path, host: str, queue_id: str, at: float, by_job: int | None = None) -> str:
    """Claim the job; `by_job` takes it over where that is another. Empty if it is ours now, else who has it."""
    record = {"host": host, "pid": os.getpid(), "queue_id": queue_id, "at": at, "by_job": by_job}
    with disk_faults(f"{path} cannot be created"):
        is_ours = create_once(path, json.dumps(record).encode() + b"\n")
    return "" if is_ours else _holder(path)


def claimant(path: Path) -> str:
    """What the queue called the job that made the claim; empty where nobody made it, or that cannot be told."""
    try:
        return str(json.loads(path.read_bytes())["queue_id"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, or cut short
        return ""


def _holder(path: Path) -> str:
    try:
        record = json.loads(path.read_bytes())
        return f"queue job {record['queue_id'] or '(unnamed)'} on {record['host']}, process {record['pid']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is being written, or was cut short
        return "another agent"
