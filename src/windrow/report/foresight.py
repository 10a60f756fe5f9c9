"""The trials of `foresight` for people and programs: one page, the same as Markdown, the same as JSON.

Rule: what was asked of it stands beside what came out, and every cell says in words whether it was kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean

from windrow.lab.foresight_results import Cell, Results
from windrow.report import plot
from windrow.report.axis import Axis
from windrow.report.block import Block, html_table, markdown_table
from windrow.report.page import facts, figure, note, notes, page, section
from windrow.report.plot import Frame

TITLE = "Foresight, put to the test"

_WITHIN = 0.01  # the part by which it may end later than the best fixed strategy
_COST = 1.1  # times glume's node-hours
_BETTER = 0.05  # the part by which it must beat glume where that is not the best

_WORDS = {
    "grid": "Days 1-7 of both logs: the days it was tuned on. hindsight is foresight that knows the future.",
    "logs": "Logs that were not used for tuning.",
    "easy": "Days 1-7 under EASY backfilling.",
    "noise": "Days 1-7, with task times off by 20 %, which foresight is told.",
    "weeks": "Weeks that were not used for tuning.",
}


def foresight_page(results: Results) -> str:
    """The page as one HTML document."""
    sections = [
        section("In short", notes(summary(results))),
        *(section(b.title, note(b.words), html_table(b)) for b in blocks(results)),
        section("Makespan and node-hours", figure(*_frontier(results))),
        section("What was run", facts(_what(results))),
    ]
    return page(TITLE, _lead(results), sections)


def foresight_markdown(results: Results) -> str:
    """The same numbers as Markdown."""
    parts = [f"# {TITLE}", _lead(results), "\n".join(f"- {line}" for line in summary(results))]
    for b in blocks(results):
        parts += [f"## {b.title}", b.words, markdown_table(b)]
    parts += ["## What was run", "\n".join(f"- {k}: {v}" for k, v in _what(results))]
    return "\n\n".join(part for part in parts if part) + "\n"


def foresight_json(results: Results) -> dict[str, object]:
    """The same numbers for programs."""
    plan = results.plan
    return {
        "reproduction": "foresight",
        "scale": plan.scale,
        "trials": results.trials,
        "failed": results.failed,
        "stand_ins": list(plan.stand_ins),
        "digests": {campaign.name: campaign.digest() for campaign in plan.campaigns},
        "cells": {name: [asdict(c) | {"best": c.best} for c in cells] for name, cells in _compared(results).items()},
        "totals": {name: results.total(name) for name in ("objectives", "ablation")},
    }


def summary(results: Results) -> list[str]:
    """The findings, in sentences."""
    lines = []
    for name, cells in _compared(results).items():
        kept = sum(_keeps(c) for c in cells)
        mean = fmean(c.against("foresight", "glume") for c in cells)
        lines.append(
            f"{name}: no more than 1 % behind the best fixed strategy in {kept} of {len(cells)} cells; "
            f"{_percent(mean)} against glume on average, with {fmean(c.cost('foresight') for c in cells):.2f} times "
            "its node-hours."
        )
    grid = results.cells["grid"]
    lost = [c for c in grid if c.best != "glume"]
    if lost:
        better = sum(c.against("foresight", "glume") <= -_BETTER for c in lost)
        lines.append(f"Where glume is not the best on the grid: 5 % better than it in {better} of {len(lost)} cells.")
    gap = fmean(c.against("foresight", "hindsight") for c in grid)
    lines.append(f"Distance to hindsight on the grid: {_percent(gap)}.")
    lines += results.plan.stand_ins
    if results.plan.scale == "quick":
        lines.append("A quick run: one submission a day, and no workflow of 500 tasks. --full runs more.")
    if results.failed:
        lines.append(f"WARNING: {results.failed:,} of {results.trials:,} trials failed and are left out.")
    return lines


def blocks(results: Results) -> list[Block]:
    """Every table of the page."""
    tables = [_cells_block(name, cells) for name, cells in _compared(results).items()]
    return [*tables, _totals("Objectives", "objectives", results), _totals("Ablation", "ablation", results)]


def _compared(results: Results) -> dict[str, list[Cell]]:
    """The campaigns in which foresight meets all fixed strategies."""
    return {name: cells for name, cells in results.cells.items() if name not in ("objectives", "ablation")}


def _keeps(cell: Cell) -> bool:
    return cell.against("foresight", cell.best) <= _WITHIN


def _cells_block(name: str, cells: Sequence[Cell]) -> Block:
    rows = []
    for c in cells:
        label = f"{c.log} {c.requests} {c.length}" + ("" if c.policy == "conservative" else f" {c.policy}")
        gap = _percent(c.against("foresight", "hindsight")) if "hindsight" in c.makespan_s else ""
        rows.append(
            (
                label,
                f"{c.makespan_s['foresight'] / 3600:.2f}",
                c.best,
                _percent(c.against("foresight", c.best)),
                _percent(c.against("foresight", "glume")),
                f"{c.wins[0]}/{c.wins[1]}",
                f"{c.cost('foresight'):.2f}",
                gap,
                "kept" if _keeps(c) and c.cost("foresight") <= _COST else "not kept",
            )
        )
    head = ("cell", "hours", "best fixed", "against it", "against glume", "wins", "node-hours", "to hindsight", "asked")
    words = _WORDS.get(name.split("-", maxsplit=1)[0], "")
    return Block(f"Cells: {name}", f"{words} Asked: at most 1 % and 1.1 times glume's node-hours.", head, tuple(rows))


def _totals(title: str, campaign: str, results: Results) -> Block:
    totals = results.total(campaign)
    rows = tuple((name, _percent(m - 1), f"{cost:.2f}") for name, (m, cost) in totals.items())
    words = "Means over the cells of log and length, actual requests, days 1-7; glume is the measure."
    return Block(title, words, ("strategy", "makespan against glume", "node-hours"), rows)


def _frontier(results: Results) -> tuple[str, str, str]:
    """Makespan over node-hours for the objectives, both relative to glume: a picture, its caption and its legend."""
    totals = {n: v for n, v in results.total("objectives").items() if v[0] < 10}
    costs, spans = [c for _, c in totals.values()], [m for m, _ in totals.values()]
    frame = Frame(74, 22, 620, 300, _around(costs, "node-hours, times glume's"), _around(spans, "makespan"))
    marks = [
        plot.markers(frame, [cost], [m], k, [f"{name}: {m:.2f}, {cost:.2f}"])
        for k, (name, (m, cost)) in enumerate(totals.items())
    ]
    svg = plot.picture(720, 370, "Makespan over node-hours by objective", [plot.axes(frame), *marks])
    caption = "Mean makespan and node-hours of each objective, as parts of glume's; lower and further left is better."
    return svg, caption, plot.legend(list(totals))


def _around(values: Sequence[float], title: str) -> Axis:
    """From a tenth below the least value to a tenth above the greatest, with a tick at every tenth or so."""
    low, high = int(10 * min(values)) - 1, int(10 * max(values)) + 2
    step = max(1, (high - low) // 6)
    ticks = tuple((k / 10, f"{k / 10:.1f}") for k in range(low, high + 1, step))
    return Axis(low / 10, high / 10, ticks, title)


def _lead(results: Results) -> str:
    return (
        f"{results.trials:,} trials ({results.plan.scale}): foresight against the best of five fixed strategies, where "
        "it was tuned and where it was not, and what is left of it without each of its ingredients."
    )


def _what(results: Results) -> list[tuple[str, str]]:
    return [
        (c.name, f"{c.trials:,} trials: {len(c.workflows)} workflows at {len(c.submit_s)} times, "
        f"{', '.join(log.name for log in c.logs)}, {', '.join(r.label for r in c.rules)}")
        for c in results.plan.campaigns
    ]  # fmt: skip


def _percent(part: float) -> str:
    return f"{100 * part:+.1f} %"
