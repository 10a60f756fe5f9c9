"""What stays wrong in a virtual world until someone repairs it, and what it keeps from being done.

Someone repairs it when the run has given up, or after some hours. Until then a run may neither
submit jobs nor begin attempts without end (`bounds`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from windrow.queues.simulated import Mood
from windrow.trials.virtual.kinds import Fault, Kind

LASTS_S = 4 * 3600
"""After how long someone repairs what does not make a run give up."""
_REFUSALS = (
    *(errno.EACCES, errno.EOPNOTSUPP, errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT),
    errno.EINVAL,
)


class Lasting:
    """What is wrong now. `names`: the files that tasks make, by their last names."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self._now: dict[Kind, Fault] = {}
        self._refused: set[str] = set()
        self.bites = 0
        """How often it kept something from being done."""

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self._now)

    def begin(self, fault: Fault) -> None:
        """This is wrong from now on."""
        self._now[fault.kind] = fault
        if fault.kind is Kind.NO_COMMIT:
            names = sorted(self._names())
            is_one = fault.pick % 2 == 1 and len(names) > 0
            self._refused = {names[fault.pick % len(names)]} if is_one else set(names)

    def mend(self, kind: Kind | None = None) -> None:
        """All is well again, or this is."""
        for over in [kind] if kind is not None else list(self._now):
            self._now.pop(over, None)

    def mood(self, call: str, usual: Mood) -> Mood:
        """How the queue takes this call."""
        refusal = self._now.get(Kind.NO_SUBMISSION)
        silence = self._now.get(Kind.NO_ANSWER)
        if refusal is not None and call == "submit":
            self.bites += 1
            return (Mood.REFUSED, Mood.DOWN)[refusal.pick % 2]
        if silence is not None and call in ("status", "find", "snapshot")[: 1 + silence.pick % 3]:
            self.bites += 1
            return Mood.DOWN
        return usual

    def holds(self, job_id: str) -> bool:
        """Whether a limit keeps this job from its start."""
        limit = self._now.get(Kind.LIMIT)
        is_held = limit is not None and int(job_id[1:]) % 3 == limit.pick % 3
        self.bites += is_held
        return is_held

    def refuses(self, what: object, disk: Path | None) -> None:
        """OSError if this may not be written among the shared files by one with this disk."""
        fault = self._now.get(Kind.NO_COMMIT)
        if fault is None:
            return
        for path in what if isinstance(what, tuple) else (what,):
            is_near = disk is not None and str(path).startswith(f"{disk}/")
            if Path(str(path)).name in self._refused and not is_near:
                self.bites += 1
                number = _REFUSALS[fault.pick // 2 % len(_REFUSALS)]
                raise OSError(number, os.strerror(number))

    @property
    def why_not_moved(self) -> str:
        """Why files cannot move; empty if they can."""
        is_wrong = Kind.NO_MOVE in self._now
        self.bites += is_wrong
        return "Permission denied" if is_wrong else ""
