"""Sizes as people write them: `4096`, `256GB`, `1.5T`, `64GiB`."""

from __future__ import annotations

import re
from decimal import Decimal

from windrow.errors import UserError
from windrow.model.bounds import SIZE_BYTES_MAX

_POWERS = {"": 1, **{f"{p}{i}": b**k for i, b in (("", 1000), ("i", 1024)) for k, p in enumerate("kmgtp", 1)}}
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def parse_size(text: str) -> int:
    """Bytes meant by `text`. UserError where it is no size of at least one byte."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgtp]?i?)b?", text.strip().lower())
    size = Decimal(match[1]) * _POWERS[match[2]] if match and match[2] in _POWERS else 0
    if size < 1:
        raise UserError(f"{text[:40]!r} is not a size; write bytes or a number with a unit, like 256GB")
    if size > SIZE_BYTES_MAX:
        raise UserError(f"{text[:40]!r} is too large; a size is at most {SIZE_BYTES_MAX:,} bytes (9 PB)")
    return int(size)


def size_option(size_bytes: int) -> str:
    """As one would write it, in a few digits and never less: `4MB`, `2.01MB`."""
    power = max(p for p in (0, 3, 6, 9, 12) if 10**p <= max(1, size_bytes))
    step = 10 ** max(0, power - 2)
    return f"{Decimal(-(-size_bytes // step) * step) / 10**power:f}{_UNITS[power // 3]}"


def format_memory(size_bytes: float) -> str:
    """A size in the units in which memory is sold: `512 MiB`, `23.5 GiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.1f}".removesuffix(".0") + f" {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f}".removesuffix(".0") + " TiB"


def format_size(size_bytes: float) -> str:
    """A short text in powers of 1000: `512 B`, `1.5 MB`, `38 GB`."""
    size, unit = float(size_bytes), 0
    while size >= 999.5 and unit + 1 < len(_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}" if unit else f"{size:.0f} B"
