"""The tables of `pays.py`, in Markdown, from what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from windrow.forecast.ledger import PastPrediction, StartAccuracy, accuracies

STRATEGIES = ("individual", "one-job", "level-by-level", "zhang", "glume")
OVERLAPPING = ("zhang", "glume")
FIXED = ("individual", "level-by-level")
POLICIES = ("conservative-replan", "easy")
"""What is taken for Slurm in the simulator; the first one plans as Slurm's backfilling does, and
counts."""
SLACK_S = 5.0
"""By how much a start may be late and still count as no later than said."""
CLEAR = 0.1
"""Two makespans differ clearly where the shorter one is at least this part below the longer one."""


@dataclass(frozen=True)
class Cell:
    """What one strategy made of one case. Times are makespans; `simulated_s` is by policy."""

    case: str
    strategy: str
    real_s: float
    simulated_s: dict[str, int]
    jobs: int
    simulated_jobs: int
    node_s: float
    simulated_node_s: int
    begun_s: float
    late_s: float
    predictions: list[PastPrediction] = field(repr=False, default_factory=list)


def report(cells: Sequence[Cell]) -> list[str]:
    """Every table, with what follows from it."""
    return [
        f"{len(cells)} runs. No job of the load was submitted more than "
        f"{max(c.late_s for c in cells):.1f} s late.",
        "",
        *_makespans(cells),
        "",
        *(line for policy in POLICIES for line in _agreement(cells, policy)),
        "",
        *_starts(cells),
    ]


def means(cells: Sequence[Cell]) -> list[str]:
    """Means by strategy over the cases that all of them ended, and the makespan of each run."""
    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    by_case: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_case.setdefault(cell.case, {})[cell.strategy] = cell
    whole = [found for found in by_case.values() if len(found) == len(strategies)]
    rows = [_mean_row(name, [found[name] for found in whole]) for name in strategies]
    head = (
        "strategy",
        "runs",
        "mean makespan, s",
        "simulated, s",
        "node-s",
        "jobs",
        "first submission, s",
    )
    each = [
        (case, *(_seconds(found.get(name)) for name in strategies))
        for case, found in by_case.items()
    ]
    return [*markdown(head, rows), "", *markdown(("case", *strategies), each)]


def _mean_row(strategy: str, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Means of one strategy; the first submission counts from the load's beginning."""
    real, node_s, jobs, begun = np.mean(
        [(c.real_s, c.node_s, c.jobs, c.begun_s) for c in cells], axis=0
    )
    model = [c.simulated_s[POLICIES[0]] for c in cells if c.simulated_s]
    simulated = f"{np.mean(model):.0f}" if len(model) == len(cells) else "-"
    return (
        strategy,
        str(len(cells)),
        f"{real:.1f}",
        simulated,
        f"{node_s:.0f}",
        f"{jobs:.1f}",
        f"{begun:.1f}",
    )


def _seconds(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell.real_s:.0f}"


def _makespans(cells: Sequence[Cell]) -> list[str]:
    rows = [
        (
            *(c.case, c.strategy, f"{c.real_s:.0f}", *(str(c.simulated_s[p]) for p in POLICIES)),
            *(str(c.jobs), str(c.simulated_jobs), f"{c.node_s:.0f}", str(c.simulated_node_s)),
        )
        for c in cells
    ]
    simulated_by = tuple(f"simulated, {policy}" for policy in POLICIES)
    columns = (
        "case",
        "strategy",
        "real s",
        *simulated_by,
        "jobs",
        "simulated",
        "node-s",
        "simulated",
    )
    return markdown(columns, rows)


def _agreement(cells: Sequence[Cell], policy: str) -> list[str]:
    """In how far the two worlds put the strategies in the same order."""
    pairs = list(_pairs(cells, policy))
    clear = [pair for pair in pairs if pair.is_clear]
    claims = [p for p in clear if p.better in OVERLAPPING and p.worse in FIXED]
    ranks = [
        f"{name} {_rank_correlation(cells, name, policy):.2f}"
        for name in dict.fromkeys(c.case for c in cells)
    ]
    return [
        f"- {policy}: rank correlation of the makespans: {', '.join(ranks)}",
        f"  - pairs of strategies in the same order: {_share(pairs)}; of those simulated "
        f"{CLEAR:.0%} apart or more: "
        f"{_share(clear)}",
        f"  - of these, zhang or glume before individual or level-by-level: {_share(claims)}",
    ]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two strategies on one case, the better one by the simulator first."""

    better: str
    worse: str
    is_clear: bool
    is_kept: bool


def _pairs(cells: Sequence[Cell], policy: str) -> Iterable[Pair]:
    for name in dict.fromkeys(cell.case for cell in cells):
        for pair in combinations([cell for cell in cells if cell.case == name], 2):
            better, worse = sorted(pair, key=lambda cell: cell.simulated_s[policy])
            short = better.simulated_s[policy]
            long = worse.simulated_s[policy]
            if short < long:
                is_clear = short <= (1 - CLEAR) * long
                yield Pair(better.strategy, worse.strategy, is_clear, better.real_s < worse.real_s)


def _share(pairs: Sequence[Pair]) -> str:
    return f"{sum(pair.is_kept for pair in pairs)} of {len(pairs)}"


def _rank_correlation(cells: Sequence[Cell], case: str, policy: str) -> float:
    """Spearman's, ties by their mean rank."""
    own = [cell for cell in cells if cell.case == case]
    real, model = (
        _ranks(values) for values in ([c.real_s for c in own], [c.simulated_s[policy] for c in own])
    )
    return float(np.corrcoef(real, model)[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(v < x for v in values) + (sum(v == x for v in values) - 1) / 2 for x in values]


def _starts(cells: Sequence[Cell]) -> list[str]:
    """How good each source of forecasts was on the jobs of which both `twin` and `system` had a
    word."""
    kinds = {"all": STRATEGIES, "individual": ("individual",), "the others": STRATEGIES[1:]}
    rows = []
    for kind, strategies in kinds.items():
        said = [p for cell in cells if cell.strategy in strategies for p in cell.predictions]
        both = {p.tag for p in said if p.source == "twin"} & {
            p.tag for p in said if p.source == "system"
        }
        counted = [p for p in said if p.tag in both]
        for one in accuracies(counted, last=len(said) + 1):
            errors = [
                p.error_s for p in counted if p.source == one.source and p.error_s is not None
            ]
            rows.append(_accuracy_row(kind, one, [error >= -SLACK_S for error in errors]))
    columns = (
        "jobs of",
        "source",
        "starts",
        "median error s",
        "bias s",
        f"no later than said, within {SLACK_S:.0f} s",
    )
    return markdown(columns, rows)


def _accuracy_row(of: str, one: StartAccuracy, kept: Sequence[bool]) -> tuple[str, ...]:
    if one.median_error_s is None or one.bias_s is None:
        return of, one.source, str(one.starts), "-", "-", "-"
    figures = (f"{one.median_error_s:.1f}", f"{one.bias_s:+.1f}", f"{sum(kept) / len(kept):.0%}")
    return of, one.source, str(one.starts), *figures


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, numbers to the right."""
    lines = [
        tuple(columns),
        tuple(
            "---" if name in ("case", "strategy", "jobs of", "source") else "---:"
            for name in columns
        ),
    ]
    return [f"| {' | '.join(line)} |" for line in [*lines, *rows]]
