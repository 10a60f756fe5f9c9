"""What the manager's machine sees late of what agents write, as with the caches of a file system.

While that lasts, an events file ends for the manager where it ended some seconds ago. Rule 1: it is
cut while the manager is at work, and whole again when time goes by: agents see and write all of it.
Rule 2: what was seen once is not unseen.
Rule 3: caches know nothing of lines: of what is not seen whole yet, half may be.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from pathlib import Path


class LateView:
    """The events files below these folders as one machine sees them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.folders: list[Path] = []
        self._now_s = now_s
        self._late_s = 0.0
        self._until_s = 0.0
        self._sizes: dict[Path, list[tuple[float, int]]] = {}  # since when, the latest last
        self._hidden: dict[Path, bytes] = {}
        self._is_at_work = False
        self.cuts = 0
        """How often something was there that could not be seen."""

    def begin(self, late_s: float, length_s: float) -> None:
        """For this time, what is written from now on is seen that much later."""
        self._late_s = late_s
        self._until_s = self._now_s() + length_s
        self._sizes = {path: [(-inf, path.stat().st_size)] for path in self._files()}

    def end(self) -> None:
        """Everything is seen again at once."""
        self._until_s = 0.0

    def enter(self) -> None:
        """The manager is at work."""
        self._is_at_work = True
        self.hide()

    def leave(self) -> None:
        """It is gone."""
        self._is_at_work = False
        self.show()

    def note(self) -> None:
        """Agents may have written something."""
        if self._now_s() < self._until_s:
            for path in self._files():
                known = self._sizes.setdefault(path, [(-inf, 0)])
                size = path.stat().st_size
                if known[-1][1] != size:
                    known.append((self._now_s(), size))

    def hide(self) -> None:
        """Cut what cannot be seen yet, while the manager is at work."""
        now_s = self._now_s()
        for path in self._files() if self._is_at_work and now_s < self._until_s else ():
            known = self._sizes.get(path, [(-inf, 0)])
            seen = self._seen(known, now_s)
            if seen < path.stat().st_size:
                self.cuts += 1
                self._hidden[path] = path.read_bytes()[seen:]
                os.truncate(path, seen)

    def _seen(self, known: list[tuple[float, int]], now_s: float) -> int:
        """Where the file ends for one who sees late: in the middle of what was written next."""
        sizes = [size for at_s, size in known if at_s + self._late_s <= now_s]
        later = [size for _, size in known[len(sizes) :]]
        if not later:
            return sizes[-1]
        return sizes[-1] + (later[0] - sizes[-1]) // 2

    def show(self) -> None:
        """All is there."""
        for path, data in self._hidden.items():
            with path.open("ab") as file:
                file.write(data)
        self._hidden = {}

    def _files(self) -> list[Path]:
        return [path for folder in self.folders for path in sorted(folder.glob("jobs/*/events"))]
