"""What a paper is to us, and the one way to run it and to write down what came out.

A `Paper` turns what a user wishes into a `PaperPlan`: campaigns, and calls for whatever is no
campaign. What these give, in the plan's order, becomes a `Report`: findings in sentences, tables,
pictures, and the same numbers for programs. The report is written as one page, as Markdown and as
JSON, here and nowhere else.

Rule: every number that print has stands beside it, and every such row says whether they agree.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from windrow.errors import UserError
from windrow.formats.disk import replace_text
from windrow.report.page import Block, facts, html_table, markdown_table, note, notes, page, section
from windrow_lab.stream.page import plain

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow_lab.campaign.campaign import Campaign

_COLUMNS = 120

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a user asks for: everything or a sample, on what is in the folder `data`, with options
    of that paper."""

    full: bool = False
    data: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PaperPlan:
    """What to run. `stand_ins` says in words what is not the paper's own data; `variant` is part of
    folder names."""

    scale: str
    campaigns: tuple[Campaign, ...] = ()
    stand_ins: tuple[str, ...] = ()
    calls: tuple[Callable[[], Any], ...] = ()
    calls_are: str = ""
    """What the calls do, while they do it."""
    variant: str = ""

    def campaign_facts(self) -> Iterator[Fact]:
        """What each campaign was, under which digest it is kept."""
        for campaign in self.campaigns:
            yield (
                f"campaign {campaign.name}",
                f"{campaign.trials:,} trials, digest {campaign.digest()}",
            )


@dataclass(frozen=True, slots=True)
class Claim:
    """What a text says, what our runs say, and whether they agree; `agrees` is None if ours
    cannot say, and `unsaid` is what the page has there instead."""

    where: str
    what: str
    printed: str
    ours: str
    agrees: bool | None
    unsaid: str = "open"

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.agrees is None:
            return self.unsaid
        return AGREEMENT[self.agrees]


AGREEMENT = {True: "agrees", False: "differs", None: "open"}
NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure, and the table that stands for it if nothing can be drawn."""

    html: str
    block: Block | None = None


@dataclass(frozen=True, slots=True)
class Gallery:
    """Pictures under one heading."""

    title: str
    words: str
    pictures: Sequence[Picture]


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences under one heading, or names with their values."""

    title: str
    lines: Sequence[str | Fact]


Part = Block | Gallery | Listing
"""Of a page."""


@dataclass(frozen=True, slots=True)
class Report:
    """Results. `quick` is said of a run that is not full; the first block is shown on the
    terminal."""

    plan: PaperPlan
    title: str
    lead: str
    findings: Sequence[str]
    quick: str
    parts: Sequence[Part]
    numbers: Mapping[str, object]
    trials: int = 0
    failed: int = 0

    @property
    def summary(self) -> list[str]:
        """The findings, and what is to be known about them."""
        lines = [*self.findings, *self.plan.stand_ins]
        if self.plan.scale == "quick":
            lines.append(f"A quick run: {self.quick}")
        if self.failed:
            lines.append(
                f"WARNING: {self.failed:,} of {self.trials:,} trials failed and are left out."
            )
        return lines

    @property
    def blocks(self) -> list[Block]:
        """The tables, without those that stand for pictures."""
        return [part for part in self.parts if isinstance(part, Block)]

    def html(self) -> str:
        """The page as one document."""
        return page(
            self.title,
            self.lead,
            [section("In short", notes(self.summary)), *map(_section, self.parts)],
        )

    def markdown(self) -> str:
        """The same numbers as Markdown, in lines as long as those of the documentation; figures
        become tables."""
        galleries = [part for part in self.parts if isinstance(part, Gallery)]
        drawn = [
            picture.block for gallery in galleries for picture in gallery.pictures if picture.block
        ]
        parts = [f"# {self.title}", fill(self.lead, _COLUMNS), _listed(self.summary)]
        for b in (*self.blocks, *drawn):
            parts += [f"## {b.title}", fill(b.words, _COLUMNS), markdown_table(b)]
        for part in self.parts:
            if isinstance(part, Listing):
                parts += [f"## {part.title}", _listed(part.lines)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def json(self) -> dict[str, object]:
        """The same numbers for programs; a mean over no run is null."""
        told: dict[str, object] = {"scale": self.plan.scale}
        if self.plan.campaigns:
            told |= {
                "trials": self.trials,
                "failed": self.failed,
                "stand_ins": list(self.plan.stand_ins),
            }
            told["digests"] = {campaign.name: campaign.digest() for campaign in self.plan.campaigns}
        return {name: plain(value) for name, value in (told | dict(self.numbers)).items()}


@dataclass(frozen=True, slots=True)
class Paper:
    """`options` are those of the command that it takes; of others it `has_own`. `needs` are modules
    of the extra."""

    plan: Callable[[Wishes], Any]
    report: Callable[[Any, Sequence[Any]], Report]
    has_own: str
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


class TableResults:
    """The tables of a plan's campaigns, in its order."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self.trials = sum(len(t) for t in tables)
        self.failed = sum(len(t) - t.column("error").null_count for t in tables)
        self.counted = self.trials, self.failed


def find_paper(name: str) -> Paper:
    """The paper in that folder. UserError if what it needs is not installed."""
    try:
        paper: Paper = import_module(f"windrow_lab.reproductions.{name}.page").PAPER
        missing = next((module for module in paper.needs if find_spec(module) is None), None)
    except ModuleNotFoundError as error:
        if (error.name or "windrow").startswith("windrow"):
            raise
        missing = error.name
    if missing:
        raise UserError(
            f"windrow reproduce {name} needs {missing}, which is not installed; pip install "
            "windrow-lab"
        )
    return paper


def printed(name: str, file: str = "printed") -> dict[str, Any]:
    """The numbers that a paper prints: `printed.toml` in its folder."""
    return tomllib.loads(
        files(__package__).joinpath(name, f"{file}.toml").read_text(encoding="utf-8")
    )


class Texts(dict[str, Any]):
    """What a page says about its parts: `texts.toml` in the folder of the paper. A table has a
    title and words."""

    def __init__(self, name: str) -> None:
        super().__init__(printed(name, "texts"))

    def block(
        self,
        name: str,
        head: tuple[str, ...],
        rows: Iterable[tuple[str, ...]],
        best: Iterable[tuple[int, int]] = (),
        **values: object,
    ) -> Block:
        """The table of that name, with the values that its texts ask for."""
        title, words = (text.format(**values) for text in self[name])
        return Block(title, words, head, tuple(rows), frozenset(best))

    def table(self, name: str, rows: Iterable[tuple[Any, ...]], **values: object) -> Block:
        """The table of that name, whose texts also say of each column its head, and how it writes
        what a row holds."""
        title, words, columns = self[name]
        lines = tuple(tuple(form.format(*row) for _, form in columns) for row in rows)
        return Block(title, words.format(**values), tuple(head for head, _ in columns), lines)

    def report(
        self,
        plan: PaperPlan,
        findings: Sequence[str],
        parts: Sequence[Part],
        numbers: Mapping[str, object],
        counted: tuple[int, int] = (0, 0),
        **values: object,
    ) -> Report:
        """All of it, under the title, the lead and the words about a quick run; `counted`: trials,
        and failed ones."""
        title, lead, quick = (text.format(**values) for text in self["page"])
        return Report(plan, title, lead, findings, quick, parts, numbers, *counted)

    def claims(self, said: Iterable[Claim], world: str = "") -> Block:
        """The claims of a text, each beside what our runs say; in another world than print's, if
        it is named."""
        rows = ((f"{c.where}: {c.what}", c.printed, c.ours, c.verdict) for c in said)
        head = ("", "print", "here", "")
        if world:
            return self.block(world, head, rows)
        return Block("Claims of the text", self["claims"], head, tuple(rows))


def write_report(report: Report, stem: Path) -> dict[str, str]:
    """Write its three forms beside each other; the files by what is in them."""
    name = stem.name
    numbers = json.dumps({"reproduction": name} | report.json(), indent=2, allow_nan=False) + "\n"
    stem.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        "page": ("html", report.html()),
        "text": ("md", report.markdown()),
        "numbers": ("json", numbers),
    }
    for suffix, text in texts.values():
        replace_text(stem.with_suffix(f".{suffix}"), text)
    return {what: f"{stem}.{suffix}" for what, (suffix, _) in texts.items()}


def claims_words(said: Sequence[Claim]) -> str:
    """How many of them agree, in a sentence."""
    agree, differ = (sum(c.agrees is verdict for c in said) for verdict in (True, False))
    left = len(said) - agree - differ
    rest = f"; {left} cannot be judged by this run" if left else ""
    return f"The text: {agree} of {len(said)} claims agree, {differ} differ{rest}."


def bounded_claims(
    said: Iterable[Mapping[str, Any]], measure: Callable[[Mapping[str, Any]], Sequence[float]]
) -> list[Claim]:
    """Claims with what print says and the bounds `between` which it agrees; `measure` gives a value
    for each seed."""
    found = []
    for one in said:
        values = measure(one)
        (low, high) = one["between"]
        agree = sum(low <= value <= high for value in values)
        if agree in (0, len(values)):
            some = ""
        else:
            some = f"; {agree} of {len(values)} seeds"
        if any(map(isnan, values)):
            verdict = None
        else:
            verdict = agree == len(values)
        ours = range_shown(values, one.get("unit", ""))
        found.append(Claim(one["where"], one["what"], one["printed"], f"{ours}{some}", verdict))
    return found


def range_shown(values: Sequence[float], unit: str) -> str:
    """The least and the greatest."""
    if len(values) > 1:
        values = (min(values), max(values))
    form = "{:.2f}"
    if unit:
        form = "{:.1g}" if unit == "p" else f"{{:.1f}} {unit}"
    return " to ".join(form.format(value) for value in values)


def _section(part: Part) -> str:
    match part:
        case Block():
            return section(part.title, note(part.words), html_table(part))
        case Gallery():
            words = [note(part.words)] if part.words else []
            numbers = "<details><summary>the numbers</summary>{}</details>"
            drawn = [
                p.html + (numbers.format(html_table(p.block)) if p.block else "")
                for p in part.pictures
            ]
            return section(part.title, *words, *drawn)
    pairs = [line for line in part.lines if not isinstance(line, str)]
    return section(
        part.title,
        facts(pairs) if pairs else notes([line for line in part.lines if isinstance(line, str)]),
    )


def _listed(lines: Iterable[str | Fact]) -> str:
    texts = (line if isinstance(line, str) else ": ".join(line) for line in lines)
    return "\n".join(
        fill(text, _COLUMNS, initial_indent="- ", subsequent_indent="  ") for text in texts
    )
