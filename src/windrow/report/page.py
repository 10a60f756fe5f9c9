"""The frame of every page: head, style, sections, tables. One file, readable in light and dark, on
paper and phones.

Series colours are those of Okabe and Ito, which people with any colour vision can tell apart,
darkened or lightened to stand out from the ground; marks differ in shape as well.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Self

from windrow.model.wording import span, unit_for
from windrow.report.script import policy, script
from windrow.report.script import style as script_style
from windrow.version import __version__


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Lively:
    """What makes a page more than a printout: data for its script (`report.script`), packed as text
    without markup, and after how many seconds to look again (0: never)."""

    data: str
    every_s: float = 0.0


def page(title: str, lead: str, sections: Iterable[str], lively: Lively | None = None) -> str:
    """A whole document; `title` and `lead` are plain text, sections are HTML.

    Its policy forbids whatever is not in the page, all scripts but the one of `lively` included.
    """
    body = "\n".join(sections)
    text = style = attributes = scripts = ""
    if lively is not None:
        text = script()
        style = script_style()
        attributes = f' data-every="{lively.every_s:g}"'
        scripts = (
            f'<script type="application/octet-stream" id="data">{lively.data}</script>\n'
            f"<script>{text}</script>\n"
        )
    if lead:
        lead = f'<p class="lead">{escape(lead)}</p>\n'
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(text)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_style()}{style}</style>
</head>
<body{attributes}>
<h1>{escape(title)}</h1>
{lead}<main>
{body}
</main>
<footer>Made by Windrow {escape(__version__)}. This page is one file and needs nothing else.</footer>
{scripts}</body>
</html>
"""  # noqa: E501


def section(title: str, *parts: str, plain: bool = False) -> str:
    """A part of the page under its own heading, which can be linked to. `plain`: only a page
    without scripts shows it."""
    css = ""
    if plain:
        css = ' class="plain"'
    anchor = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return "\n".join(
        [f'<section id="{anchor}"{css}><h2>{escape(title)}</h2>', *parts, "</section>"]
    )


def figure(svg: str, caption: str, legend: str = "") -> str:
    """A picture with the sentence that says how to read it."""
    return (
        f'<figure>{legend}<div class="scroll">{svg}</div>\n'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values, as plain text, in two columns; a line break in a value breaks the line."""
    rows = (
        f"<dt>{escape(k)}</dt><dd>{'<br>'.join(map(escape, v.splitlines()))}</dd>" for k, v in pairs
    )
    return f"<dl>{''.join(rows)}</dl>"


def note(words: str) -> str:
    """A paragraph in small print."""
    return f'<p class="note">{escape(words)}</p>'


def notes(lines: Sequence[str]) -> str:
    """A short list in small print, or nothing if there are no lines."""
    if lines:
        return (
            '<ul class="notes">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
        )
    return ""


class Cell(str):
    """The HTML of one cell of a table."""


class Time(str):
    """A duration in a table, where a column has one unit. As a text it is in its own."""

    __slots__ = ("before", "seconds")

    def __new__(cls, seconds: float, before: str = "") -> Self:
        """`before` stands before it, such as a plus."""
        made = super().__new__(cls, before + span(seconds))
        made.seconds = seconds
        made.before = before
        return made

    seconds: float
    before: str


def _in_one_unit(rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """The rows, with the durations of each column in the unit of the longest."""
    kept = [list(row) for row in rows]
    longest: dict[int, float] = {}
    for row in kept:
        for place, value in enumerate(row):
            if isinstance(value, Time):
                longest[place] = max(longest.get(place, 0.0), abs(value.seconds))
    for row in kept:
        for place, value in enumerate(row):
            if isinstance(value, Time):
                row[place] = value.before + unit_for(longest[place]).short(value.seconds)
        yield row


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], hidden: int = 0, words: str = ""
) -> str:
    """A table of plain text and of what `cell` made; the first of each row names it. A note tells
    of `hidden` rows."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "\n".join("<tr>" + "".join(map(_as_cell, row)) + "</tr>" for row in _in_one_unit(rows))
    shown = (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
    if hidden:
        shown += note(f"And {hidden:,} more{words}.")
    return shown


def _as_cell(value: str) -> Cell:
    if isinstance(value, Cell):
        return value
    return cell(value)


def cell(value: str, small: str = "", *, best: bool = False) -> Cell:
    """One cell: plain text, with a second, smaller one beside it if given."""
    if best:
        css = ' class="best"'
    else:
        css = ""
    beside = ""
    if small:
        beside = f"<small>{escape(small)}</small>"
    return Cell(f"<td{css}>{escape(value)}{beside}</td>")


@dataclass(frozen=True, slots=True)
class Block:
    """A table with its heading, as plain text; `best` are the places (row, column) to set in
    bold."""

    title: str
    words: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()


def html_table(b: Block) -> str:
    """The table as HTML."""
    rows = [
        [cell(v, best=(i, k) in b.best) for k, v in enumerate(row)] for i, row in enumerate(b.rows)
    ]
    return table(b.head, rows)


def markdown_table(b: Block) -> str:
    """The table as Markdown."""

    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(escape(v, quote=False).replace("|", "\\|") for v in values) + " |"

    rule = "| --- |" + " ---: |" * (len(b.head) - 1)
    marked = [
        [f"**{v}**" if (i, k) in b.best else v for k, v in enumerate(row)]
        for i, row in enumerate(b.rows)
    ]
    return "\n".join([line(b.head), rule, *map(line, marked)])
