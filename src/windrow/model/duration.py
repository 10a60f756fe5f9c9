"""Durations as people write them, in files and on the command line: `90`, `90s`, `30m`, `4h`,
`30d`, `1.5h`."""

from __future__ import annotations

import math
import re

from windrow.errors import UserError
from windrow.model.bounds import DURATION_S_MAX

NEVER_S = 2**40
"""Some 35,000 years: stands for a duration without end, and is safe to add run times to."""
_LONGEST_S = (
    2**33
)  # some 270 years: what is longer never comes, or is a mean with something that never comes
_DURATION = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?) ?([smhdw]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds_in(text: str) -> float:
    """Seconds meant by `text`: a number with an optional unit s, m, h, d or w. NaN if it is not a
    duration."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        return math.nan
    return float(match[1]) * _SECONDS[match[2]]


def parse_duration(text: str) -> float:
    """Seconds meant by `text`. UserError if it is not a duration, or too long a one."""
    value = seconds_in(text)
    if math.isnan(value):
        shown = repr(text if len(text) <= 40 else f"{text[:37]}...")
        raise UserError(
            f"{shown} is not a duration; write seconds or a number with a unit, like 90, 30m, 4h "
            "or 30d"
        )
    if value > DURATION_S_MAX:
        raise UserError(
            f"{text[:40]!r} is too long; a time is at most {DURATION_S_MAX // 86400:,}d (31 years)"
        )
    return value


def is_never(seconds: float) -> bool:
    """Whether this stands for a duration without end."""
    return seconds >= _LONGEST_S


def format_duration(seconds: float) -> str:
    """A short text for people: `45 s`, `12.3 min`, `3.4 h`, `5.6 d`, `never`."""
    size = abs(seconds)
    if is_never(size):
        return "never"
    if size < 120:
        if size < 1:
            return f"{seconds:.3g} s"
        return f"{seconds:.0f} s"
    if size < 2 * 3600:
        return f"{seconds / 60:.1f} min"
    if size < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} d"
