"""Readers of option values that several commands share. A bad value is refused together with the option's name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from windrow.errors import UserError


def duration_s(text: str) -> float:
    """Seconds meant by `90`, `30m`, `4h` or `30d`."""
    from windrow.model import parse_duration

    try:
        return parse_duration(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text) if text.strip().lstrip("+").isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def margin(text: str) -> float:
    """A factor from 1 to 100, by which a requested time exceeds the expected run."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor from 1 to 100")
    return value


def seed(text: str) -> int:
    """A whole number of at least 0."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed; give a whole number of at least 0")
    return int(text)


def assignment(text: str) -> tuple[str, str]:
    """Name and value of `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def once_each(assignments: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The assignments as a mapping. UserError where a name comes twice."""
    found: dict[str, str] = {}
    for name, value in assignments:
        if name in found:
            raise UserError(f"--set {name} is given twice; keep one")
        found[name] = value
    return found
