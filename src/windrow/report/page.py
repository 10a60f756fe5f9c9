"""The frame of every page: head, style, sections, tables. One file, readable in light and dark, on paper and phones.

Series colours are those of Okabe and Ito, which people with any colour vision can tell apart, darkened or lightened to
stand out from the ground; marks differ in shape as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from windrow.version import __version__

_STYLE = """
:root { color-scheme: light dark; --ground: #fdfdfc; --ink: #1d2126; --soft: #5c6570; --rule: #dfe3e7; --veil: #8883;
  --c0: #0072b2; --c1: #d55e00; --c2: #00845f; --c3: #b0508a; --c4: #a87400; --c5: #3a3f9e; --c6: #bf1e3c;
  --c7: #7b8087; }
@media (prefers-color-scheme: dark) { :root { --ground: #15181c; --ink: #e6e8ea; --soft: #9aa4af; --rule: #30363d;
  --veil: #8884; --c0: #56b4e9; --c1: #f0803c; --c2: #2cc79b; --c3: #e29cc3; --c4: #e6b94d; --c5: #a3a8f5;
  --c6: #ff7d92; --c7: #959ba3; } }
html { background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
body { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 3rem 0 .3rem; padding-top: .9rem; border-top: 1px solid var(--rule); }
p, ul, dl { max-width: 52rem; }
.lead { color: var(--soft); font-size: 1.08rem; margin: 0 0 1.4rem; }
.note { color: var(--soft); font-size: .92rem; }
.notes { color: var(--soft); font-size: .92rem; padding-left: 1.2rem; margin: .6rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 1rem 0; font-size: .95rem; }
dt { color: var(--soft); } dd { margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0 .5rem; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .32rem 1.1rem .32rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; font-weight: normal; }
thead th { font-weight: 600; border-bottom: 1.5px solid var(--soft); vertical-align: bottom; }
thead th:first-child { color: var(--soft); }
td small { color: var(--soft); margin-left: .45em; }
td.best { font-weight: 650; }
figure { margin: 1rem 0 0; }
figure > .scroll > svg { display: block; width: 100%; min-width: 40rem; height: auto; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 52rem; margin-top: .4rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0;
  margin: .4rem 0; font-size: .95rem; max-width: none; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.key { width: 14px; height: 14px; }
svg text { font-size: 12.5px; fill: var(--soft); } svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .name { font-weight: 600; fill: var(--ink); font-size: 13px; } svg .title { font-size: 12.5px; }
svg .strong { fill: var(--ink); }
.grid { stroke: var(--rule); } .axis, .tick { stroke: var(--soft); } .veil { fill: var(--veil); }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; } .thin { stroke-width: 1; }
.area { fill: var(--c); fill-opacity: .16; } .mark { fill: var(--c); stroke: var(--c); }
.bar, .task { fill: var(--c); } .task { stroke: var(--ground); stroke-width: 1; }
.edge { fill: none; stroke: var(--soft); stroke-opacity: .3; }
.critical { stroke: var(--ink); stroke-opacity: .9; stroke-width: 1.6; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
footer { margin-top: 3.5rem; padding-top: .8rem; border-top: 1px solid var(--rule);
  color: var(--soft); font-size: .88rem; }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
"""


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    """A whole document; `title` and `lead` are plain text, sections are HTML."""
    body = "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{body}
<footer>Made by Windrow {escape(__version__)}. This page is one file and needs nothing else.</footer>
</body>
</html>
"""


def section(title: str, *parts: str) -> str:
    """A part of the page under its own heading."""
    return "\n".join([f"<section><h2>{escape(title)}</h2>", *parts, "</section>"])


def figure(svg: str, caption: str, legend: str = "") -> str:
    """A picture with the sentence that says how to read it."""
    return f'<figure>{legend}<div class="scroll">{svg}</div>\n<figcaption>{escape(caption)}</figcaption></figure>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values, as plain text, in two columns; a line break in a value breaks the line."""
    rows = (f"<dt>{escape(k)}</dt><dd>{'<br>'.join(map(escape, v.splitlines()))}</dd>" for k, v in pairs)
    return f"<dl>{''.join(rows)}</dl>"


def note(words: str) -> str:
    """A paragraph in small print."""
    return f'<p class="note">{escape(words)}</p>'


def notes(lines: Sequence[str]) -> str:
    """A short list in small print, or nothing where there are no lines."""
    return '<ul class="notes">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; head is plain text, cells are HTML (see `cell`), the first of each row names it."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "\n".join("<tr>" + "".join(row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def cell(value: str, small: str = "", *, best: bool = False) -> str:
    """One cell: plain text, with a second, smaller one beside it where given."""
    css = ' class="best"' if best else ""
    return f"<td{css}>{escape(value)}" + (f"<small>{escape(small)}</small>" if small else "") + "</td>"
