"""Readers of option values that several commands share. A bad value is refused together with the
option's name.

Rule: every number that a user can give has a range, and what lies outside is refused with it
(`model/bounds.py`).
"""

import argparse
import math
import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from windrow.errors import UserError
from windrow.model import parse_duration
from windrow.model.bounds import COUNT_MAX, DURATION_S_MAX, NAME_BYTES_MAX, NODES_MAX, SEED_MAX
from windrow.model.size import parse_size

_CLOCK = re.compile(r"([01]?\d|2[0-3]):[0-5]\d")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,30}\s*")


def whole(least: int, most: int) -> Callable[[str], int]:
    """The reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if _WHOLE.fullmatch(text):
            value = int(text)
        else:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{_shown(text)} is not a whole number from {least:,} to {most:,}"
            )
        return value

    return read


node_count = whole(1, NODES_MAX)
positive = whole(1, COUNT_MAX)
seed = whole(0, SEED_MAX)


def number(
    least: float, most: float, *, above: bool = False, what: str = "a number"
) -> Callable[[str], float]:
    """The reader of numbers from `least` (or above it) to `most`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or (above and value == least):
            if above:
                span = f"above {least:g} and at most {most:g}"
            else:
                span = f"from {least:g} to {most:g}"
            raise argparse.ArgumentTypeError(f"{_shown(text)} is not {what} {span}")
        return value

    return read


margin = number(1, 100, what="a factor")
"""By which a requested time exceeds the expected run."""


def duration_s(text: str) -> float:
    """Seconds meant by `90`, `30m`, `4h` or `30d`."""
    try:
        return parse_duration(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def some_time_s(text: str) -> float:
    """The same, and at least a second."""
    seconds = duration_s(text)
    if seconds < 1:
        raise argparse.ArgumentTypeError(
            f"{_shown(text)} is not a time from 1s to {DURATION_S_MAX // 86400:,}d"
        )
    return seconds


def instant(text: str) -> Callable[[float], float]:
    """What turns now into the moment meant by `18h` (from now), `08:00` (the next) or
    `2030-05-01 08:00` (local time)."""
    if _CLOCK.fullmatch(text):
        return lambda now_s: _next(text, now_s)
    if _DATE.match(text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{_shown(text)}: {error}") from None
        return lambda _: moment.timestamp()
    try:
        seconds = parse_duration(text)
    except UserError:
        raise argparse.ArgumentTypeError(
            f"{_shown(text)} is no time: 18h (from now), 08:00, or 2030-05-01 08:00"
        ) from None
    return lambda now_s: now_s + seconds


def _next(clock: str, now_s: float) -> float:
    now = datetime.fromtimestamp(now_s)
    today = datetime.combine(now.date(), datetime.strptime(clock, "%H:%M").time())
    return (today if today > now else today + timedelta(days=1)).timestamp()


def size_bytes(text: str) -> int:
    """Bytes meant by `4096`, `256GB`, `1.5T` or `64GiB`."""
    try:
        return parse_size(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def place(text: str) -> str:
    """The name or path of a run, a pool or a folder: short enough for a file system to be asked for
    it."""
    if (
        not text
        or any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in text.split("/"))
        or len(text) > 4000
    ):
        raise argparse.ArgumentTypeError(f"{_shown(text)} cannot be the name of a file or folder")
    return text


def output_file(text: str) -> str:
    """Where a file will be written: refused before the work if that cannot be."""
    from windrow.formats.disk import check_writable

    check_writable(place(text))
    return text


def output_folder(text: str) -> str:
    """The same of a folder for files."""
    from windrow.formats.disk import check_folder

    check_folder(place(text))
    return text


def assignment(text: str) -> tuple[str, str]:
    """Name and value of `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def count_of(text: str) -> tuple[str, int]:
    """Name and number of `NAME=N`."""
    name, value = assignment(text)
    return name, whole(0, COUNT_MAX)(value)


def once_each(assignments: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The assignments as a mapping. UserError if a name comes twice."""
    found: dict[str, str] = {}
    for name, value in assignments:
        if name in found:
            raise UserError(f"--set {name} is given twice; keep one")
        found[name] = value
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
