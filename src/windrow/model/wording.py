"""Numbers with their nouns and units, as sentences need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.model.duration import format_duration


def count(number: int, what: str) -> str:
    """`1 task`, `2 tasks`, `1,000 tasks`."""
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c`; of many the first few, and how many more there are."""
    if len(names) > most:
        more = f" and {len(names) - most:,} more"
    else:
        more = ""
    return ", ".join(names[:most]) + more


def shortened(words: str, most: int) -> str:
    """At most that many characters; what is cut ends in an ellipsis."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def percent(share: float) -> str:
    """`25 %`."""
    return f"{100 * share:.0f} %"


def span(seconds: float) -> str:
    """A duration for people; below a second, hundredths are enough."""
    return format_duration(round(seconds, 2) if abs(seconds) < 1 else seconds)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time for all numbers of a column."""

    name: str
    long_name: str
    seconds: int
    least_s: int
    """From which longest time on it is used."""

    def write(self, seconds: float) -> str:
        """A time in this unit, such as `12.3 h`."""
        return f"{seconds / self.seconds:,.1f} {self.name}"

    def short(self, seconds: float) -> str:
        """The same for what is measured: whole seconds, and of what is far below the unit only that
        it is."""
        if self.seconds == 1:
            return span(seconds)
        if 0 < abs(seconds) < 0.05 * self.seconds:
            return f"< 0.1 {self.name}"
        return self.write(seconds)


_UNITS = (
    Unit("d", "days", 86400, 10 * 86400),
    Unit("h", "hours", 3600, 2 * 3600),
    Unit("min", "minutes", 60, 120),
    Unit("s", "seconds", 1, 0),
)


def unit_for(longest_s: float) -> Unit:
    """Seconds, minutes, hours or days, whichever suits times of up to this one."""
    return next(unit for unit in _UNITS if longest_s >= unit.least_s)


def node_span(node_s: float) -> str:
    """Node time for people, in the unit that fits: `12 node-s`, `3.5 node-min`, `1,204 node-h`."""
    if node_s < 120:
        if node_s >= 1:
            return f"{node_s:.0f} node-s"
        return f"{node_s:.2g} node-s"
    if node_s < 7200:
        return f"{node_s / 60:.1f} node-min"
    return f"{node_s / 3600:,.1f} node-h"
