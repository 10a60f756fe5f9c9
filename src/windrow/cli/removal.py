"""Runs that go, as `rm` and `clean` tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from windrow.app.removing import Removal


def remove(found: Sequence[Removal], *, as_json: bool, dry: bool = False) -> None:
    """Delete these records, and say what that gave back."""
    from windrow.model.size import format_size

    for one in () if dry else found:
        one.carry_out()
    names = [one.paths.name for one in found]
    size_bytes = sum(one.size_bytes for one in found)
    if as_json:
        terminal.print_json({"removed": [] if dry else names, "size_bytes": size_bytes})
        return
    if not found:
        terminal.say("no run is that old, but for the latest of each workflow; nothing to do")
        return
    what = "would delete" if dry else "deleted"
    terminal.say(f"{what} {count(len(names), 'run')} ({format_size(size_bytes)}): {listed(names)}")
