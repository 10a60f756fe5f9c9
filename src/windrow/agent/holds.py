"""Who keeps a run open for tasks to come: a small file for each holder in the run's folder.

Rule 1: a hold lasts while its holder renews it; how often it did is in the file, so that clocks of
different machines need not agree. Rule 2: its holder or the run's manager ends it by deleting the
file; a holder that finds none has been sent away, and does not make another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from windrow.files import disk_faults

LEASE_S = 30.0
"""A holder that has not been heard of for so long is gone."""
KEEP_S = 120.0
"""How long nodes without tasks are kept for a run that waits for more, if its holder says nothing
else."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One holder: what people call it, how often it has renewed its hold, and what it wants."""

    who: str
    beat: int = 0
    lease_s: float = LEASE_S
    keep_s: float = KEEP_S


def write_hold(path: Path, hold: Hold, *, is_first: bool = False) -> bool:
    """Say that this hold continues. False if someone has ended it, unless it `is_first`."""
    flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT if is_first else 0)
    content = json.dumps(asdict(hold)).encode("ascii") + b"\n"
    with disk_faults(f"{path} cannot be written"):
        try:
            opened = os.open(path, flags, 0o600)
        except FileNotFoundError:
            if is_first:
                raise
            return False
        try:
            os.pwrite(opened, content, 0)  # a beat more never makes it shorter
        finally:
            os.close(opened)
    return True


def holds_in(folder: Path) -> Mapping[str, Hold | None]:
    """The holds in this folder, by the names of their files; None for one that is being written."""
    found: dict[str, Hold | None] = {}
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:  # no one has held this run
        return found
    for name in names:
        try:
            found[name] = Hold(**json.loads(Path(folder, name).read_bytes()))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError):
            found[name] = None
    return found


def keep_s(folder: Path) -> float:
    """How long nodes without tasks are to be kept now; 0: no one holds the run."""
    return max((hold.keep_s for hold in holds_in(folder).values() if hold is not None), default=0.0)
