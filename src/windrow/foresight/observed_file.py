"""What was seen of a queue, kept across runs: one small file per queue in the user's state folder.

Rule 1: many managers may keep at once. Each reads, merges and replaces the file under a lock;
readers need none, since a file is replaced whole. Rule 2: a file that cannot be understood is
reported once and started again: it is a convenience.
Rule 3: it holds who submitted what and when, so it is for its owner alone.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import get_args

import msgspec

from windrow.errors import OutsideError
from windrow.files import disk_faults, held, replacing
from windrow.foresight.observed import Observed, Span
from windrow.places import user_folder
from windrow.queues.port import PastJob

FORMAT = 1

logger = logging.getLogger(__name__)
Say = Callable[[str], None]

_Row = tuple[str, str, int, int, float, float | None, float | None]
_IN_ORDER = attrgetter(*[field.name for field in fields(PastJob)][: len(get_args(_Row))])


class _ObservedRecord(msgspec.Struct):
    """The file as it is written. Rows are the fields of a PastJob in their order, without the last
    ones: jobs that share nodes are kept in parts like ours."""

    format: int
    place: str
    spans: tuple[Span, ...]
    jobs: tuple[_Row, ...]


class ObservedFile:
    """The file of one queue. `place` says which queue of which cluster it is."""

    def __init__(self, place: str, folder: Path | None = None, say: Say = logger.warning) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", place).strip(".-") or "queue"
        self.place = place
        self.path = (folder or default_folder()) / f"{name}.json"
        self._say = say

    def load(self) -> Observed:
        """What was kept; nothing if there is no file, or none that can be understood.
        OutsideError: unreadable."""
        try:
            content = msgspec.json.decode(self.path.read_bytes(), type=_ObservedRecord)
        except FileNotFoundError:
            return Observed()
        except OSError as error:
            raise OutsideError(f"{self.path}: {error.strerror}") from None
        except msgspec.DecodeError:
            self._say(f"{self.path} is broken; observations of this queue start again")
            return Observed()
        if (content.format, content.place) != (FORMAT, self.place):
            self._say(
                f"{self.path} is of another queue or version; observations of this queue start "
                "again"
            )
            return Observed()
        jobs = [PastJob(*row) for row in content.jobs]
        return Observed({job.id: job for job in jobs}, content.spans)

    def keep(self, observed: Observed) -> None:
        """Add this to the file, and to `observed` what others have added since. OutsideError if
        that cannot be."""
        with disk_faults(f"{self.path}: cannot be written"):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with held(self.path.with_suffix(".lock")):
                observed.merge(self.load())
                rows = tuple(map(_IN_ORDER, observed.jobs.values()))
                with replacing(self.path, lasting=False) as file:
                    file.write(
                        msgspec.json.encode(
                            _ObservedRecord(FORMAT, self.place, observed.spans, rows)
                        )
                    )


def default_folder() -> Path:
    """Where the files are: `windrow/seen` in the user's state folder."""
    return user_folder("state") / "seen"
