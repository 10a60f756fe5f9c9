"""The trials of `foresight`: what was asked of it beside what came out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from windrow_lab.reproductions.foresight.plan import plan_wished
from windrow_lab.reproductions.foresight.results import (
    BEST_KNOWN,
    COST,
    OURS,
    ForesightResults,
    RunsCell,
)
from windrow_lab.reproductions.foresight.tables import (
    TEXTS,
    CellGroup,
    blocks,
    count,
    frontier,
    groups,
    percent,
)
from windrow_lab.reproductions.paper import (
    Fact,
    Gallery,
    Listing,
    Paper,
    PaperPlan,
    Picture,
    Report,
)


def report(plan: PaperPlan, found: Sequence[Any]) -> Report:
    """What campaigns and timed decisions came to."""
    return report_of(ForesightResults(plan, found[:-1], found[-1]))


def report_of(results: ForesightResults) -> Report:
    """The same, of results that were read."""
    plan = results.plan
    return TEXTS.report(
        plan,
        _all_findings(results),
        [
            *blocks(results),
            Gallery(
                "Objectives, drawn",
                "",
                [Picture(frontier(cell)) for cell in results.by_log("objectives")],
            ),
            Listing("What was run", [*_what(plan)]),
        ],
        {
            "cells": {
                name: [_numbers(cell) for cell in cells] for name, cells in results.cells.items()
            },
            "ablation": [asdict(change) for change in results.changes("ablation")],
            "decisions": [asdict(times) for times in results.decisions],
        },
        results.counted,
        trials=results.trials,
        scale=plan.scale,
    )


def _numbers(cell: RunsCell) -> dict[str, object]:
    told = {name: getattr(cell, name) for name in ("log", "requests", "policy", "length")}
    return told | {
        "runs": len(cell.runs),
        "best_fixed": cell.best,
        "makespan_s": {name: cell.makespan_s(name) for name in cell.names},
        "node_h": {name: cell.node_h(name) for name in cell.names},
        "jobs": {name: cell.jobs(name) for name in cell.names},
        "wins": {name: cell.wins(OURS, name) for name in cell.names if name != OURS},
    }


def _all_findings(results: ForesightResults) -> list[str]:
    lines = [line for group in groups(results) for line in _findings(group)]
    for campaign, what, words in (
        ("hindsight", "hindsight", "hindsight"),
        ("oracle", BEST_KNOWN, "the best known run"),
    ):
        if cells := results.cells[campaign]:
            ours, glumes = (
                fmean(cell.against(name, what) for cell in cells) for name in (OURS, "glume")
            )
            means = f"foresight {percent(ours)}, glume {percent(glumes)}"
            lines.append(f"Above {words}, as the mean over cells: {means}.")
    if results.decisions:
        lines.append(
            "The longest decision took "
            f"{max(s for d in results.decisions for s in d.decisions_s):.1f} s."
        )
    return lines


def _findings(group: CellGroup) -> Iterator[str]:
    name = group.name
    yield _overall(group)
    if group.is_printed:
        lost_in_print = [(text, c) for text, c in group.cells if c.glume_loses_in_print]
        yield _where("Where glume loses to zhang in print", lost_in_print, name)
    if name == OURS and (lost := [(text, c) for text, c in group.cells if c.glume_loses]):
        yield _where(f"{group.title}, and glume loses to zhang here", lost, name)


def _overall(group: CellGroup) -> str:
    """Makespans and node-hours over all cells of the group."""
    cells = [cell for _, cell in group.cells]
    name = group.name
    within = count([cell.is_within(name) for cell in cells])
    ahead = percent(fmean(cell.against(name, cell.best) for cell in cells))
    cheap = count([cell.is_cheap(name) for cell in cells])
    dearest = max(cell.cost(name) for cell in cells)
    return (
        f"{group.title}: at most 1 % above the best fixed strategy in {within} "
        f"cells, {ahead} on average; at most {COST} times the node-hours of glume in "
        f"{cheap}, {dearest:.2f} times in the worst."
    )


def _where(place: str, cells: Sequence[tuple[str, RunsCell]], name: str) -> str:
    each = ", ".join(f"{text} {percent(cell.against(name, 'glume'))}" for text, cell in cells)
    return (
        f"{place}: 5 % better than glume in {count([c.is_better(name) for _, c in cells])} "
        f"cells ({each})."
    )


def _what(plan: PaperPlan) -> Iterator[Fact]:
    for c in plan.campaigns:
        logs = ", ".join(log.name for log in c.logs)
        policies = ", ".join(rules.label for rules in c.rules)
        yield (
            c.name,
            f"{c.trials:,} trials: workflows {len(c.workflows)}, times {len(c.submit_s)}, "
            "strategies "
            f"{len(c.strategies)}; {logs}, {policies}, {', '.join(c.requests)} requests; digest "
            f"{c.digest()}",
        )


PAPER = Paper(
    plan_wished, report, "own fixed experiments", options=("data",), needs=("matplotlib",)
)
