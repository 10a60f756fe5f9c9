"""Rows of text in columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def aligned(
    rows: Sequence[tuple[str, ...]], heads: tuple[str, ...], numbers: Collection[str]
) -> Iterator[str]:
    """The rows under their heads. By hand: a library's table takes seconds for tens of thousands of
    rows."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        cells = (
            cell.rjust(width) if head in numbers else cell.ljust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()
