"""The trials of `foresight` for people and programs: one page, the same as Markdown, the same as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from textwrap import fill

from windrow.report.block import Block, html_table, markdown_table
from windrow.report.page import facts, note, notes, page, section
from windrow.reproductions.foresight.plots import frontiers
from windrow.reproductions.foresight.results import BEST_KNOWN, COST, OURS, Cell, Results
from windrow.reproductions.foresight.tables import Group, blocks, count, groups, percent

TITLE = "Foresight, put to the test"
_COLUMNS = 120


def foresight_page(results: Results) -> str:
    """The page as one HTML document."""
    sections = [section("In short", notes(summary(results)))]
    for block in blocks(results):
        pictures = frontiers(results) if block.title == "Objectives" else ()
        sections.append(section(block.title, note(block.words), html_table(block), *pictures))
    sections.append(section("What was run", facts(_what(results))))
    return page(TITLE, _lead(results), sections)


def foresight_markdown(results: Results) -> str:
    """The same numbers as Markdown, in lines as long as those of the documentation, which has them from here."""
    parts = [f"# {TITLE}", fill(_lead(results), _COLUMNS), _list(summary(results))]
    for block in blocks(results):
        parts += [f"## {block.title}", fill(block.words, _COLUMNS), markdown_table(block)]
    parts += ["## What was run", _list(f"{name}: {words}" for name, words in _what(results))]
    return "\n\n".join(parts) + "\n"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(fill(line, _COLUMNS, initial_indent="- ", subsequent_indent="  ") for line in lines)


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
        "cells": {name: [_numbers(cell) for cell in cells] for name, cells in results.cells.items()},
        "ablation": [asdict(change) for change in results.changes("ablation")],
        "decisions": [asdict(pace) for pace in results.paces],
    }


def _numbers(cell: Cell) -> dict[str, object]:
    return {
        "log": cell.log,
        "requests": cell.requests,
        "policy": cell.policy,
        "length": cell.length,
        "runs": len(cell.runs),
        "best_fixed": cell.best,
        "makespan_s": {name: cell.makespan_s(name) for name in cell.names},
        "node_h": {name: cell.node_h(name) for name in cell.names},
        "jobs": {name: cell.jobs(name) for name in cell.names},
        "wins": {name: cell.wins(OURS, name) for name in cell.names if name != OURS},
    }


def summary(results: Results) -> list[str]:
    """The findings, in sentences."""
    lines = [line for group in groups(results) for line in _findings(group)]
    lines += _distances(results)
    if results.paces:
        lines.append(f"The longest decision took {max(s for p in results.paces for s in p.decisions_s):.1f} s.")
    lines += results.plan.stand_ins
    if results.plan.scale == "quick":
        lines.append("A quick run: seven times in the week. --full runs more.")
    if results.failed:
        lines.append(f"WARNING: {results.failed:,} of {results.trials:,} trials failed and are left out.")
    return lines


def _findings(group: Group) -> Iterator[str]:
    cells, name = [cell for _, cell in group.cells], group.name
    ahead = fmean(cell.against(name, cell.best) for cell in cells)
    dearest = max(cell.cost(name) for cell in cells)
    yield (
        f"{group.title}: at most 1 % above the best fixed strategy in {count([c.is_within(name) for c in cells])} "
        f"cells, {percent(ahead)} on average; at most {COST} times the node-hours of glume in "
        f"{count([c.is_cheap(name) for c in cells])}, {dearest:.2f} times in the worst."
    )
    if group.is_printed:
        lost_in_print = [(text, c) for text, c in group.cells if c.glume_loses_in_print]
        yield _where("Where glume loses to zhang in print", lost_in_print, name)
    if name == OURS and (lost := [(text, c) for text, c in group.cells if c.glume_loses]):
        yield _where(f"{group.title}, and glume loses to zhang here", lost, name)


def _where(place: str, cells: Sequence[tuple[str, Cell]], name: str) -> str:
    each = ", ".join(f"{text} {percent(cell.against(name, 'glume'))}" for text, cell in cells)
    return f"{place}: 5 % better than glume in {count([c.is_better(name) for _, c in cells])} cells ({each})."


def _distances(results: Results) -> Iterator[str]:
    for campaign, what in (("hindsight", "hindsight"), ("oracle", BEST_KNOWN)):
        if cells := results.cells[campaign]:
            ours = fmean(cell.against(OURS, what) for cell in cells)
            glumes = fmean(cell.against("glume", what) for cell in cells)
            words = "hindsight" if what == "hindsight" else "the best known run"
            yield f"Above {words}, as the mean over cells: foresight {percent(ours)}, glume {percent(glumes)}."


def _lead(results: Results) -> str:
    return (
        f"{results.trials:,} trials ({results.plan.scale}): foresight against the best of five fixed strategies, where "
        "it was tuned and where it was not, and what is left of it without each of its ingredients."
    )


def _what(results: Results) -> Iterator[tuple[str, str]]:
    for c in results.plan.campaigns:
        logs, policies = ", ".join(log.name for log in c.logs), ", ".join(rules.label for rules in c.rules)
        yield (
            c.name,
            f"{c.trials:,} trials: workflows {len(c.workflows)}, times {len(c.submit_s)}, strategies "
            f"{len(c.strategies)}; {logs}, {policies}, {', '.join(c.requests)} requests; digest {c.digest()}",
        )


__all__ = ["TITLE", "Block", "blocks", "foresight_json", "foresight_markdown", "foresight_page", "summary"]
