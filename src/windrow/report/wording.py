"""Numbers with their nouns, as sentences need them."""

from __future__ import annotations


def count(number: int, what: str) -> str:
    """`1 task`, `2 tasks`, `1,000 tasks`."""
    return f"{number:,} {what}" + ("s" if number != 1 else "")
