"""A table with a heading, as plain text, written as HTML or as Markdown: what pages of reproductions are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from windrow.report.page import cell, table


@dataclass(frozen=True, slots=True)
class Block:
    """A table with its heading, as plain text; `best` are the places (row, column) to set in bold."""

    title: str
    words: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()


def html_table(b: Block) -> str:
    """The table as HTML."""
    rows = [[cell(v, best=(i, k) in b.best) for k, v in enumerate(row)] for i, row in enumerate(b.rows)]
    return table(b.head, rows)


def markdown_table(b: Block) -> str:
    """The table as Markdown."""

    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(escape(v, quote=False).replace("|", "\\|") for v in values) + " |"

    rule = "| --- |" + " ---: |" * (len(b.head) - 1)
    marked = [[f"**{v}**" if (i, k) in b.best else v for k, v in enumerate(row)] for i, row in enumerate(b.rows)]
    return "\n".join([line(b.head), rule, *map(line, marked)])
