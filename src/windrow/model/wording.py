"""Numbers with their nouns and units, as sentences need them."""

from __future__ import annotations

from collections.abc import Sequence

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


def node_span(node_s: float) -> str:
    """Node time for people, in the unit that fits: `12 node-s`, `3.5 node-min`, `1,204 node-h`."""
    if node_s < 120:
        if node_s >= 1:
            return f"{node_s:.0f} node-s"
        return f"{node_s:.2g} node-s"
    if node_s < 7200:
        return f"{node_s / 60:.1f} node-min"
    return f"{node_s / 3600:,.1f} node-h"
