"""Whether someone keeps a run open for tasks to come, by the files in which holders renew their
leases (`agent.holds`)."""

from __future__ import annotations

from pathlib import Path

from windrow.agent.holds import Hold, holds_in
from windrow.deletion import discard
from windrow.errors import OutsideError
from windrow.files import disk_faults
from windrow.story import events as e

_LOOK_EVERY_S = 0.5


class Holding:
    """The holders of one run. Times are by the steady clock of its manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._renewed: dict[str, tuple[Hold, float]] = {}  # each hold, and when it was seen first
        self._next_s = float("-inf")
        self._lease = ""

    def look(
        self, told: e.RunHeld | None, at_s: int, steady_s: float, *, at_once: bool = False
    ) -> e.RunHeld | e.RunClosed | None:
        """What is new since `told`, which the journal has. A hold that was not renewed in time is
        ended."""
        if steady_s < self._next_s and not at_once:
            return None
        self._next_s = steady_s + _LOOK_EVERY_S
        silent = self._renew(steady_s)
        for name in silent:
            self._end(name)
        if self._renewed:
            holds = [hold for hold, _ in self._renewed.values()]
            who = ", ".join(sorted({hold.who for hold in holds}))
            now = e.RunHeld(at_s, who, max(hold.keep_s for hold in holds))
            if told is not None and (told.who, told.keep_s) == (now.who, now.keep_s):
                return None
            return now
        if told is None:
            return None
        if silent:
            return e.RunClosed(at_s, f"{told.who} has not been heard of for {self._lease}")
        return e.RunClosed(at_s)

    def end_all(self) -> None:
        """The run stops: send all holders away."""
        for name in holds_in(self._folder):
            self._end(name)
        self._renewed.clear()

    def _renew(self, steady_s: float) -> list[str]:
        """Take note of what holders wrote; which of them have been silent for too long."""
        found = holds_in(self._folder)
        for name, hold in found.items():
            before = self._renewed.get(name)
            if before is None or (hold is not None and hold != before[0]):
                self._renewed[name] = hold or Hold(name), steady_s
        self._renewed = {name: seen for name, seen in self._renewed.items() if name in found}
        silent = [name for name, (hold, s) in self._renewed.items() if steady_s - s > hold.lease_s]
        for name in silent:
            self._lease = f"{self._renewed.pop(name)[0].lease_s:g} s"
        return silent

    def _end(self, name: str) -> None:
        try:
            with disk_faults(f"{self._folder / name} cannot be removed"):
                discard(self._folder / name)
        except OutsideError:  # then it is silent again at the next look
            pass
