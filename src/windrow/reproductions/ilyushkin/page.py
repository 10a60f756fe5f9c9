"""Ilyushkin, Ghit and Epema (2015), run again: four policies to share a pool, their tables and figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from windrow.lab.stream.metrics import StreamFigures
from windrow.lab.stream.workload import SIZES, WORKLOADS
from windrow.report.block import Block
from windrow.reproductions.ilyushkin.beyond import UTILIZATION
from windrow.reproductions.ilyushkin.plan import POLICIES, IlyushkinResults, gathered, plan_ilyushkin
from windrow.reproductions.ilyushkin.plots import galleries
from windrow.reproductions.ilyushkin.readings import READINGS, RULES, Reading
from windrow.reproductions.paper import Paper, PaperPlan, Report, printed

PRINTED = printed("ilyushkin")
PRINTED_MAXIMAL: dict[str, list[float]] = PRINTED["table_1"]
"""Table I; workloads in the order of `WORKLOADS`."""

NEAR = 0.05
"""How far a maximal utilization may be from print to agree."""


def report(plan: PaperPlan, found: Sequence[Any]) -> Report:
    """What the calls came to."""
    results = gathered(plan, found)
    return Report(
        plan,
        "Streams of workflows with unknown run times, run again",
        "Ilyushkin, Ghit and Epema (2015): four policies to share a pool, their tables and figures beside ours.",
        findings(results),
        "one repetition. --full runs three, and other readings of the reservations.",
        [*blocks(results), *galleries(results)],
        {
            "repetitions": results.repetitions,
            "table_1": [
                {
                    "policy": policy,
                    "workload": workload,
                    "printed": PRINTED_MAXIMAL[policy][k],
                    "ours": results.maximal(workload, policy),
                    "saturation": results.saturation(workload, policy),
                }
                for policy in POLICIES
                for k, workload in enumerate(WORKLOADS)
            ],
            "curves": [asdict(curve) for curve in results.curves],
            "parallelism": [asdict(p) for p in results.pictures.parallelism],
            "duels": [asdict(duel) for duel in results.duels],
            "readings": [asdict(reading) for reading in results.readings],
        },
    )


def findings(results: IlyushkinResults) -> list[str]:
    """The findings, in sentences."""
    agree = [_agrees(results, p, k) for p in POLICIES for k in range(len(WORKLOADS))]
    lines = [f"Table I: {sum(agree)} of {len(agree)} maximal utilizations within {NEAR} of print."]
    order = _same_order(results)
    lines.append(f"Of the pairs of policies that print tells apart on a workload, {order} come in the same order here.")
    missed = max(p.most_missed for p in results.pictures.parallelism)
    lines.append(f"Figure 2: tokens miss the exact level of parallelism by at most {missed} processors.")
    lines.append(_due_words(results))
    return lines


def blocks(results: IlyushkinResults) -> list[Block]:
    """Every table of the page."""
    found = [_maximal(results), _saturation(results), _times(results), _parallelism(results), _duels(results)]
    return [*found, _readings(results), _nearest(results)] if results.readings else found


def _agrees(results: IlyushkinResults, policy: str, k: int) -> bool:
    workload = list(WORKLOADS)[k]
    return abs(results.maximal(workload, policy) - PRINTED_MAXIMAL[policy][k]) <= NEAR + 1e-9


def _same_order(results: IlyushkinResults) -> str:
    """How often two policies that differ in print differ the same way here."""
    same = told = 0
    for k, workload in enumerate(WORKLOADS):
        ours = [results.saturation(workload, p) for p in POLICIES]
        for i, a in enumerate(POLICIES):
            for j, b in enumerate(POLICIES[:i]):
                printed = PRINTED_MAXIMAL[a][k] - PRINTED_MAXIMAL[b][k]
                told += printed != 0
                same += printed * (ours[i] - ours[j]) > 0
    return f"{same} of {told}"


def _maximal(results: IlyushkinResults) -> Block:
    rows = []
    for policy in POLICIES:
        cells = []
        for k, workload in enumerate(WORKLOADS):
            sign = "" if _agrees(results, policy, k) else " *"
            cells.append(f"{PRINTED_MAXIMAL[policy][k]:.2f} / {results.maximal(workload, policy):.2f}{sign}")
        rows.append((policy, *cells))
    words = (
        "Print / here: the highest utilization, in steps of 0.05, at which the pool keeps up. "
        f"* differs by more than {NEAR}."
    )
    return Block("Table I: maximal utilization", words, ("policy", *WORKLOADS), tuple(rows))


def _saturation(results: IlyushkinResults) -> Block:
    rows = tuple((p, *(f"{results.saturation(w, p):.3f}" for w in WORKLOADS)) for p in POLICIES)
    words = (
        "The same without steps: the utilization while all workflows are there from the start and a backlog remains."
    )
    return Block("What the pool can take", words, ("policy", *WORKLOADS), rows)


def _times(results: IlyushkinResults) -> Block:
    points = results.mean_at("mixture", "bf", 0.05)
    rows = [("empty system", "", *("-",) * 3, *_beside(PRINTED["empty"]["makespan_s"], _means(points, "empty_s")))]
    for policy in POLICIES:
        utilization = results.maximal("mixture", policy)
        points = results.mean_at("mixture", policy, utilization)
        ours = [*_means(points, "wait_s"), *_means(points, "makespan_s")]
        rows.append((policy, f"{utilization:.2f}", *_beside(PRINTED["table_2"][policy], ours)))
    head = ("policy", "at", *(f"wait {s}" for s in SIZES), *(f"makespan {s}" for s in SIZES))
    words = (
        "Mixture, each policy at its own maximal utilization; seconds, print / here. Waits near saturation are noisy."
    )
    return Block("Table II: waits and makespans by size", words, head, tuple(rows))


def _means(points: Sequence[StreamFigures], what: str) -> list[float]:
    return [
        float(np.mean([getattr(p.sizes[k], what) for p in points])) if points else np.nan for k in range(len(SIZES))
    ]


def _beside(printed: Sequence[float], ours: Sequence[float]) -> list[str]:
    return [f"{p:,.0f} / {o:,.0f}" for p, o in zip(printed, ours, strict=True)]


def _parallelism(results: IlyushkinResults) -> Block:
    rows = tuple(
        (p.workload, str(p.tasks), f"{p.exact:.1f}", f"{p.tokens:.1f}", str(p.most_missed))
        for p in results.pictures.parallelism
    )
    head = ("workflow", "tasks", "exact", "tokens", "most missed")
    return Block("Figure 2: level of parallelism", "Means over workflows not yet begun.", head, rows)


def _duels(results: IlyushkinResults) -> Block:
    rows = []
    for duel in results.duels:
        f = duel.figures
        rows.append(
            (
                f"seed {duel.seed}: {f.policy}",
                duel.estimates or "none",
                f"{f.slowdown:.3f}",
                *(f"{s.slowdown:.2f}" for s in f.sizes),
                f"{f.slowdown_p99:.2f}",
                f"{f.slowdown_max:.1f}",
                f"{f.wait_s_max:,.0f} s",
            )
        )
    head = ("policy", "estimates", "mean slowdown", *SIZES, "99 % below", "worst", "longest wait")
    words = f"Mixture at a utilization of {UTILIZATION}. The patience of due was chosen on other seeds."
    return Block("Beyond the paper: due against bf", words, head, tuple(rows))


def _due_words(results: IlyushkinResults) -> str:
    means = {
        kind: float(np.mean([d.figures.slowdown for d in results.duels if d.estimates == kind]))
        for kind in ("", "exact", "noisy", "learnt")
    }
    told = ", ".join(f"{means[kind]:.2f} with {kind} estimates" for kind in ("exact", "noisy", "learnt"))
    return f"At {UTILIZATION} on the mixture, mean slowdown {means['']:.2f} under bf; under due {told}."


def _readings(results: IlyushkinResults) -> Block:
    found = {(r.workload, r.reading, r.policy): r.saturation for r in results.readings}
    rows = []
    for k, workload in enumerate(WORKLOADS):
        rows.append((f"{workload}: print", *(f"{PRINTED_MAXIMAL[p][k]:.2f}" for p in RULES)))
        rows += [(f"{workload}: {r}", *(f"{found[workload, r, p]:.3f}" for p in RULES)) for r in READINGS]
    words = (
        "What the pool can take under other readings of the reservations, 150 workflows each. None fits all of print."
    )
    return Block("Looking for the cause", words, ("reading", *RULES), tuple(rows))


def _nearest(results: IlyushkinResults) -> Block:
    rows = []
    for name in READINGS:
        off = [abs(r.step - _printed(r)) for r in results.readings if r.reading == name]
        near = sum(o <= NEAR + 1e-9 for o in off)
        rows.append((name, f"{near} of {len(off)}", f"{max(off):.2f}"))
    words = f"Of the cells above, in steps of {NEAR} as print has them: how many are within {NEAR}, and the worst."
    return Block("How near each reading comes", words, ("reading", "near", "worst"), tuple(rows))


def _printed(reading: Reading) -> float:
    return PRINTED_MAXIMAL[reading.policy][list(WORKLOADS).index(reading.workload)]


PAPER = Paper(plan_ilyushkin, report, "own workloads", needs=("matplotlib",))
