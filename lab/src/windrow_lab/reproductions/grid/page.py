"""Zhang (2009), chapters 3 and 4, run again: schedulers on three grids, EACP, and selection before
scheduling."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from windrow.model.wording import percent
from windrow.report.page import Block
from windrow_lab.reproductions.charts import grouped_bars, short, value_rows
from windrow_lab.reproductions.grid.claims import GENERATED, KINDS, Runs, SlrRows, beside, claims
from windrow_lab.reproductions.grid.plan import (
    FOUR,
    OURS,
    READINGS,
    SELECTIONS,
    STAND_INS,
    Selected,
    SlrRow,
    plan_grid,
)
from windrow_lab.reproductions.paper import (
    Gallery,
    Paper,
    PaperPlan,
    Picture,
    Report,
    Texts,
    claims_words,
)

_TEXTS = Texts("grid")
_WIDTHS = {"below 78": (0, 77), "78 to 305": (78, 305), "above 305": (306, np.inf)}
_EACP = ("heft", "eacp+heft", "lhbs", "eacp+lhbs")


def report(plan: PaperPlan, found: Sequence[Any]) -> Report:
    """What the calls came to."""
    every = list(chain.from_iterable(found))
    all_rows = [r for r in every if isinstance(r, SlrRow)]
    all_runs = [r for r in every if isinstance(r, Selected)]
    by_seed = [_by_experiment(all_rows, seed) for seed in STAND_INS["seeds"]]
    runs = [Runs([r for r in all_runs if r.seed == seed]) for seed in STAND_INS["seeds"]]
    said = claims(
        [(one[OURS], more) for one, more in zip(by_seed, runs, strict=True)],
        full=plan.scale == "full",
    )
    rows = SlrRows([r for r in all_rows if r.experiment == OURS])
    return _TEXTS.report(
        plan,
        [claims_words(said), *_findings(rows)],
        [
            _TEXTS.claims(said),
            _experiments(by_seed),
            _aggregate(rows.of("universal")),
            _readings(rows),
            _growth(runs),
            _gallery(rows, runs),
        ],
        {
            "schedules": int(np.isfinite(SlrRows(all_rows).slr).sum()) + len(all_runs),
            "claims": [
                {"where": c.where, "what": c.what, "ours": c.ours, "agrees": c.agrees} for c in said
            ],
            "rows": [row._asdict() for row in all_rows],
            "runs": [run._asdict() for run in all_runs],
        },
    )


def _by_experiment(rows: Sequence[SlrRow], seed: int) -> dict[str, SlrRows]:
    return {
        name: SlrRows([row for row in rows if (row.seed, row.experiment) == (seed, name)])
        for name in STAND_INS["experiments"]
    }


def _experiments(by_seed: Sequence[Mapping[str, SlrRows]]) -> Block:
    experiments = STAND_INS["experiments"]
    head = ("", "print", *experiments)
    return _TEXTS.block("experiments", head, beside(by_seed), **experiments)


def _findings(rows: SlrRows) -> list[str]:
    count = int(np.isfinite(rows.slr).sum())
    off = rows.of("universal").loss("hhs")
    gain = rows.of("universal", GENERATED, ccr=10).ratio("heft", "eacp+heft")
    loss = rows.of("big-cluster", GENERATED).loss()
    return [
        f"{count:,} schedules of chapter 3. On the universal grid HHS is {off:+.2f} % off HEFT in "
        "mean SLR.",
        f"EACP makes HEFT {gain:.2f} times as good at CCR 10 on the universal grid, and "
        f"{loss:+.1f} % worse on big-cluster.",
    ]


def _aggregate(rows: SlrRows) -> Block:
    lines = []
    worst = rows.slr[:, : len(FOUR)].max(axis=1)
    for name in FOUR:
        column = rows.column(name)
        share = rows.is_best(name).mean(), np.mean(column >= worst * (1 - 1e-12))
        cells = [*np.percentile(column, (10, 25, 75, 90)), column.mean()]
        lines.append((name, *(f"{cell:.2f}" for cell in cells), *map(percent, share)))
    return _TEXTS.block(
        "aggregate", ("", "10 %", "25 %", "75 %", "90 %", "mean", "best", "worst"), lines
    )


def _readings(rows: SlrRows) -> Block:
    tasks = sorted(STAND_INS["chapter_3"]["tasks"])[-2]
    first = next(iter(READINGS))
    there = SlrRows(
        [row for row, slr in zip(rows.rows, rows.column(first), strict=True) if np.isfinite(slr)]
    )
    lines = [
        (
            name,
            *(f"{there.of(ccr=c).mean(name):.2f}" for c in (0.1, 1, 10)),
            f"{there.mean(name):.2f}",
        )
        for name in (*FOUR, *READINGS)
    ]
    return _TEXTS.block("readings", ("", "CCR 0.1", "CCR 1", "CCR 10", "all"), lines, tasks=tasks)


def _growth(runs: Sequence[Runs]) -> Block:
    tenths = zip(
        *([run for run in one.runs if run.selection == "growth"] for one in runs), strict=True
    )
    lines = [
        (
            f"{np.mean([r.hosts for r in same]):,.0f}",
            f"{1000 * np.mean([r.took_s for r in same]):.1f} ms",
        )
        for same in tenths
    ]
    return _TEXTS.block("growth", ("hosts", "time"), lines)


def _gallery(rows: SlrRows, runs: Sequence[Runs]) -> Gallery:
    return Gallery("Figures", "", [*_of_schedulers(rows), *_of_selections(runs)])


def _of_schedulers(rows: SlrRows) -> Iterator[Picture]:
    """Chapter 3: lengths of schedules by kind of workflow and grid, and by what makes them hard."""
    stood = STAND_INS["chapter_3"]
    universal = rows.of("universal", GENERATED)
    by_ccr = _by_ccr(universal)
    by_alpha = {f"alpha {x:g}": universal.of(alpha=x) for x in stood["alpha"]}
    by_width = {name: universal.of(width=width) for name, width in _WIDTHS.items()}
    yield _bars("types", {kind: rows.of("universal", [kind]) for kind in KINDS}, FOUR)
    yield _bars("grids", {grid: rows.of(grid, ["random"]) for grid in stood["grids"]}, FOUR)
    yield _bars("ccr", by_ccr, FOUR)
    yield _bars("alpha", by_alpha, FOUR)
    yield _bars("widths", by_width, FOUR)
    yield _bars("eacp_ccr", by_ccr, _EACP)
    yield _bars("eacp_alpha", by_alpha, _EACP)
    yield _bars("eacp_big", _by_ccr(rows.of("big-cluster", GENERATED)), _EACP)


def _by_ccr(rows: SlrRows) -> dict[str, SlrRows]:
    return {f"ccr {x:g}": rows.of(ccr=x) for x in STAND_INS["chapter_3"]["ccr"]}


def _of_selections(runs: Sequence[Runs]) -> Iterator[Picture]:
    """Chapter 4: how long selection takes, and what it gives beside a selection in one step."""
    kinds = ("eman", "montage")
    took = {
        s: [np.mean([1000 * r.mean(s, lambda x: x.took_s, 0, k) for r in runs]) for k in kinds]
        for s in SELECTIONS
    }
    yield _picture("times", kinds, took)
    ratios = STAND_INS["chapter_4"]["ccr"]
    for name, of in (("makespans", Runs.makespan), ("turnarounds", Runs.turnaround)):
        series = {
            s: [np.mean([of(r, s, x) / of(r, "one-step", x) for r in runs]) for x in ratios]
            for s in SELECTIONS
        }
        yield _picture(name, [f"CCR {x:g}" for x in ratios], series)


def _bars(name: str, groups: Mapping[str, SlrRows], algorithms: Sequence[str]) -> Picture:
    return _picture(
        name,
        list(groups),
        {one: [rows.mean(one) for rows in groups.values()] for one in algorithms},
    )


def _picture(name: str, groups: Sequence[str], series: Mapping[str, Sequence[Any]]) -> Picture:
    title, unit = _TEXTS["figures"][name]
    values = {one: [float(value) for value in row] for one, row in series.items()}
    lines = value_rows(groups, values)
    return Picture(
        grouped_bars(groups, values, unit, title, short),
        Block(title, f"{unit}.", ("", *values), lines),
    )


PAPER = Paper(plan_grid, report, "own grids and workflows", needs=("matplotlib", "scipy"))
