"""What `windrow run`, and `plan` for a real queue, take where the command line says nothing: a
profile, WINDROW_ON, the table [run] of windrow.toml, in this order.

Rule: what is said there is read as if it had been typed, by the same parser, so that the same
values are right and the same messages come; these name the place.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.cli.options import COPIES, ON_VARIABLE, SPACE
from windrow.errors import UserError, unknown_name

USUAL = frozenset(
    (
        *("on", "strategy", "objective", "deadline", "think", "cap", "margin", "max_nodes"),
        *("copies", *COPIES, "delete_intermediate", *SPACE, "risk", "guess"),
    )
)
"""What windrow.toml may say in place of the command line (`settings.RunTable`)."""


@dataclass(frozen=True, slots=True)
class Usual:
    """An option that a place gives: its name as a field, the value, and where it was said."""

    name: str
    value: Any
    place: str

    @property
    def words(self) -> list[str]:
        """As it would be typed."""
        option = f"--{self.name.replace('_', '-')}"
        if self.value is True:
            return [option]
        if self.value is False:
            return []
        return [f"{option}={self.value}"]


def usual(profile: str | None, given: Collection[str] = ()) -> list[Usual]:
    """What is said beside the command line, which has `given` these. UserError if there is no such
    profile."""
    found: dict[str, Usual] = {}
    for one in _said(profile):
        if one.name not in given:
            found.setdefault(one.name, one)
    return list(found.values())


def _said(profile: str | None) -> Iterator[Usual]:
    """All of it, what counts first."""
    from windrow.app.settings import settings_of

    settings = settings_of()
    if profile is not None:
        if profile not in settings.profiles:
            raise unknown_name("profile", profile, settings.profiles)
        yield from _of_table(
            settings.profiles[profile].said(), f"[profiles.{profile}] of {settings.file}"
        )
    if on := os.environ.get(ON_VARIABLE):
        yield Usual("on", on, ON_VARIABLE)
    yield from _of_table(settings.run.said(), f"[run] of {settings.file}")


def _of_table(table: Mapping[str, Any], place: str) -> Iterator[Usual]:
    return (Usual(name, value, place) for name, value in table.items())


def with_usual(
    parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str], args: argparse.Namespace
) -> None:
    """Put into `args`, which are what the command line says by itself, what is said elsewhere.

    `argv` begins with the command, whose parser says which options are usual; `parser` makes a new
    one, since a parser takes each option once. A command that does not take the queue from there
    takes the rest only for a queue that was named.
    """
    if "on" not in args.takes_usual and args.on is None:
        return
    for one in usual(args.profile, args.given):
        if one.name not in args.takes_usual:
            continue
        try:
            more, _ = parser().parse_known_args([argv[0], *one.words, *argv[1:]])
        except UserError as error:
            raise UserError(f"{one.place}: {error}") from None
        setattr(args, one.name, getattr(more, one.name))
