"""Sizes in bytes as people read them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def format_bytes(size_bytes: float) -> str:
    """A short text in powers of 1000: `512 B`, `1.5 MB`, `38 GB`."""
    size, unit = float(size_bytes), 0
    while size >= 999.5 and unit + 1 < len(_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}" if unit else f"{size:.0f} B"
