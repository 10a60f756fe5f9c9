"""How long an agent without tasks keeps its nodes: as long as the holder of its run wants, since
tasks may be about to join."""

from __future__ import annotations

from math import inf

from windrow.agent.folder import RunFolder
from windrow.agent.holds import keep_s

_LOOK_S = 0.05
_SLOWEST_S = 1.0
_BACK_OFF = 1.3


class Keeping:
    """The nodes of one agent, while none of its tasks is open. `kept_s`: for how long they were
    kept in all."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._since = self._look_at = inf
        self._pause_s = _LOOK_S
        self._is_held = False
        self.kept_s = 0.0

    @property
    def has_begun(self) -> bool:
        """Whether nodes are kept now."""
        return self._since < inf

    def due_s(self, now: float) -> float | None:
        """Seconds until the next look for tasks; None while nothing is kept."""
        if self.has_begun:
            return max(0.0, self._look_at - now)
        return None

    def lasts(self, now: float) -> bool:
        """There is nothing to do: whether to stay for what may come."""
        if not self.has_begun:
            self._since = self._look_at = now
            self._pause_s = _LOOK_S
        if now >= self._look_at:
            self._is_held = now - self._since < keep_s(self._folder.holds)
            self._look_at = now + self._pause_s
            self._pause_s = min(self._pause_s * _BACK_OFF, _SLOWEST_S)
        if not self._is_held:
            self.over(now)
        return self._is_held

    def over(self, now: float) -> None:
        """There are tasks again, or the agent leaves."""
        if self.has_begun:
            self.kept_s += max(0.0, now - self._since)
            self._since = inf
