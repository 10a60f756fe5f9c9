"""Sizes as people write them, in files and on the command line: `4096`, `256GB`, `1.5T`, `64GiB`.

`kB`, `MB`, `GB` are powers of 1000; `KiB`, `MiB`, `GiB`, and `K`, `M`, `G` as Slurm means them,
powers of 1024.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from windrow.errors import UserError
from windrow.model.bounds import SIZE_BYTES_MAX

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kmgtp])(b|ib?)?|b)?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def size_in(text: str) -> Decimal | None:
    """Bytes meant by `text`, however many. None if it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, prefix, kind = match.groups(default="")
    if kind.lower() == "b":
        base = Decimal(1000)
    else:
        base = Decimal(1024)
    return Decimal(number) * base ** _POWERS[prefix.lower()]


def parse_size(text: str) -> int:
    """Bytes meant by `text`. UserError unless it is a size of at least one byte."""
    size = size_in(text)
    if not size:
        raise UserError(
            f"{text[:40]!r} is not a size; write bytes or a number with a unit, like 256GB"
        )
    if size > SIZE_BYTES_MAX:
        raise UserError(
            f"{text[:40]!r} is too large; a size is at most {SIZE_BYTES_MAX:,} bytes (9 PB)"
        )
    return math.ceil(size)


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
    size = float(size_bytes)
    unit = 0
    while size >= 999.5 and unit + 1 < len(_UNITS):
        size = size / 1000
        unit = unit + 1
    if unit:
        return f"{size:.3g} {_UNITS[unit]}"
    return f"{size:.0f} B"
