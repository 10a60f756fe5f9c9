"""How numbers are printed: three digits that matter, and units that fit them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 140
"""Columns of text where stdout is no terminal, so that a table in a file is not squeezed."""

_LEFT = (
    "log",
    "policy",
    "strategy",
    "tool",
    "state",
    "result",
    "target met",
    "series",
    "note",
    "reads as",
)


def console() -> Console:
    """Where tables go: stdout."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=WIDE)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()
) -> Table:
    """A table with its title above and its notes below; numbers stand to the right."""
    grid = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        caption=Text("\n".join(notes)) if notes else None,
        caption_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="bold",
    )
    for name in columns:
        grid.add_column(name, justify="left" if name in _LEFT else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell, style=_style(cell)) for cell in row))
    return grid


def seconds(value: float | None) -> str:
    """A time in the unit that suits it; a dash where there is none."""
    if value is None:
        return "-"
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e-6)} µs"


def ratio(value: float) -> str:
    """How many times as long."""
    return f"{_digits(value)} x"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _style(cell: str) -> str:
    if cell.startswith(("MISSED", "WRONG")):
        return "bold red"
    return "green" if cell.startswith("met") else ""
