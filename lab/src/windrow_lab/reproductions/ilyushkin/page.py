"""Ilyushkin, Ghit and Epema (2015), run again: four policies to share a pool, their tables and
figures next to ours."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from windrow.report.page import Block
from windrow_lab.reproductions.ilyushkin.beyond import UTILIZATION
from windrow_lab.reproductions.ilyushkin.plan import (
    POLICIES,
    IlyushkinResults,
    gathered,
    plan_ilyushkin,
)
from windrow_lab.reproductions.ilyushkin.plots import galleries
from windrow_lab.reproductions.ilyushkin.readings import READINGS, RULES
from windrow_lab.reproductions.paper import Paper, PaperPlan, Report, Texts, printed
from windrow_lab.stream.metrics import StreamFigures
from windrow_lab.stream.workload import SIZES, WORKLOADS

PRINTED = printed("ilyushkin")
PRINTED_MAXIMAL: dict[str, dict[str, float]] = {
    policy: dict(zip(WORKLOADS, row, strict=True)) for policy, row in PRINTED["table_1"].items()
}
"""Table I, by policy and workload."""

NEAR = 0.05
"""How far a maximal utilization may be from print to agree."""

_TEXTS = Texts("ilyushkin")


def report(plan: PaperPlan, found: Sequence[Any]) -> Report:
    """What the calls came to."""
    results = gathered(plan, found)
    return _TEXTS.report(
        plan,
        findings(results),
        [*blocks(results), *galleries(results)],
        {
            "repetitions": results.repetitions,
            "table_1": [
                {
                    "policy": policy,
                    "workload": workload,
                    "printed": PRINTED_MAXIMAL[policy][workload],
                    "ours": results.maximal(workload, policy),
                    "saturation": results.saturation(workload, policy),
                }
                for policy in POLICIES
                for workload in WORKLOADS
            ],
            "curves": [asdict(curve) for curve in results.curves],
            "parallelism": [asdict(p) for p in results.pictures.parallelism],
            "duels": [asdict(duel) for duel in results.duels],
            "readings": [asdict(reading) for reading in results.readings],
        },
    )


def findings(results: IlyushkinResults) -> list[str]:
    """The findings, in sentences."""
    agree = [_agrees(results, p, w) for p in POLICIES for w in WORKLOADS]
    pairs = [*_ordered_pairs(results)]
    missed = max(p.most_missed for p in results.pictures.parallelism)
    return [
        f"Table I: {sum(agree)} of {len(agree)} maximal utilizations within {NEAR} of print.",
        f"Of the pairs of policies that print tells apart on a workload, {sum(pairs)} of "
        f"{len(pairs)} come in the same order here.",
        f"Figure 2: tokens miss the exact level of parallelism by at most {missed} processors.",
        _due(results),
    ]


def _due(results: IlyushkinResults) -> str:
    """Mean slowdowns with and without due dates."""
    means = {
        kind: float(np.mean([d.figures.slowdown for d in results.duels if d.estimates == kind]))
        for kind in ("", "exact", "noisy", "learned")
    }
    due = ", ".join(f"{mean:.2f} with {kind} estimates" for kind, mean in means.items() if kind)
    plain = f"mean slowdown {means['']:.2f} under bf"
    return f"At {UTILIZATION} on the mixture, {plain}; under due {due}."


def _ordered_pairs(results: IlyushkinResults) -> Iterator[bool]:
    """Whether two policies come in the same order here, of the pairs that print tells apart on a
    workload."""
    for workload in WORKLOADS:
        for a, b in combinations(POLICIES, 2):
            printed = PRINTED_MAXIMAL[a][workload] - PRINTED_MAXIMAL[b][workload]
            if printed:
                ours = results.saturation(workload, a) - results.saturation(workload, b)
                yield printed * ours > 0


def blocks(results: IlyushkinResults) -> list[Block]:
    """Every table of the page."""
    parallelism = _TEXTS.table("parallelism", ((p,) for p in results.pictures.parallelism))
    duels = ((duel, duel.figures, duel.estimates or "none") for duel in results.duels)
    fought = _TEXTS.table("duels", duels, utilization=UTILIZATION)
    saturated = ((p, *(f"{results.saturation(w, p):.3f}" for w in WORKLOADS)) for p in POLICIES)
    saturation = _TEXTS.block("saturation", ("policy", *WORKLOADS), tuple(saturated))
    found = [_maximal(results), saturation, _times(results), parallelism, fought]
    if results.readings:
        return [*found, _readings(results), _nearest(results)]
    return found


def _agrees(results: IlyushkinResults, policy: str, workload: str) -> bool:
    return abs(results.maximal(workload, policy) - PRINTED_MAXIMAL[policy][workload]) <= NEAR + 1e-9


def _maximal(results: IlyushkinResults) -> Block:
    rows = []
    for policy in POLICIES:
        signs = ["" if _agrees(results, policy, workload) else " *" for workload in WORKLOADS]
        pairs = [
            (there, results.maximal(w, policy)) for w, there in PRINTED_MAXIMAL[policy].items()
        ]
        cells = (
            f"{there:.2f} / {here:.2f}{sign}"
            for (there, here), sign in zip(pairs, signs, strict=True)
        )
        rows.append((policy, *cells))
    return _TEXTS.block("maximal", ("policy", *WORKLOADS), rows, near=NEAR)


def _times(results: IlyushkinResults) -> Block:
    points = results.mean_at("mixture", "bf", 0.05)
    empty = _beside(PRINTED["empty"]["makespan_s"], _means(points, "empty_s"))
    rows = [("empty system", "", *("-",) * 3, *empty)]
    for policy in POLICIES:
        utilization = results.maximal("mixture", policy)
        points = results.mean_at("mixture", policy, utilization)
        ours = [*_means(points, "wait_s"), *_means(points, "makespan_s")]
        rows.append((policy, f"{utilization:.2f}", *_beside(PRINTED["table_2"][policy], ours)))
    head = ("policy", "at", *(f"wait {s}" for s in SIZES), *(f"makespan {s}" for s in SIZES))
    return _TEXTS.block("times", head, rows)


def _means(points: Sequence[StreamFigures], what: str) -> list[float]:
    return [
        float(np.mean([getattr(p.sizes[k], what) for p in points])) if points else np.nan
        for k in range(len(SIZES))
    ]


def _beside(printed: Sequence[float], ours: Sequence[float]) -> list[str]:
    return [f"{p:,.0f} / {o:,.0f}" for p, o in zip(printed, ours, strict=True)]


def _readings(results: IlyushkinResults) -> Block:
    found = {(r.workload, r.reading, r.policy): r.saturation for r in results.readings}
    rows = []
    for workload in WORKLOADS:
        rows.append((f"{workload}: print", *(f"{PRINTED_MAXIMAL[p][workload]:.2f}" for p in RULES)))
        rows += [
            (f"{workload}: {r}", *(f"{found[workload, r, p]:.3f}" for p in RULES)) for r in READINGS
        ]
    return _TEXTS.block("readings", ("reading", *RULES), rows)


def _nearest(results: IlyushkinResults) -> Block:
    rows = []
    for name in READINGS:
        off = [
            abs(r.step - PRINTED_MAXIMAL[r.policy][r.workload])
            for r in results.readings
            if r.reading == name
        ]
        rows.append(
            (name, f"{sum(o <= NEAR + 1e-9 for o in off)} of {len(off)}", f"{max(off):.2f}")
        )
    return _TEXTS.block("nearest", ("reading", "near", "worst"), rows, near=NEAR)


PAPER = Paper(plan_ilyushkin, report, "own workloads", needs=("matplotlib",))
