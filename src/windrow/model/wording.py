"""Numbers with their nouns, as sentences need them."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, what: str) -> str:
    """`1 task`, `2 tasks`, `1,000 tasks`."""
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def listed(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c`; of many the first few, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
