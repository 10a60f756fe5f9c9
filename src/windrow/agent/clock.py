"""A clock that never steps: seconds since the epoch when it was made, and steady from then on."""

from __future__ import annotations

import time


class SteadyClock:
    """Tells the time. A step of the system's clock does not move it."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch, to the microsecond."""
        return round(self._offset + time.monotonic(), 6)
