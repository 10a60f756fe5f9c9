"""Bent (2005): chapters 2 to 4 and appendix A, ours beside print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.recipes.workflows.applications import applications
from windrow.report.page import Block
from windrow_lab.reproductions import paper
from windrow_lab.reproductions.bent.baselines import BASELINES, WHERE, exact
from windrow_lab.reproductions.bent.plan import CHOICES, RATES, SWEEPS, Point, plan_bent
from windrow_lab.reproductions.charts import MARKERS, chart, short
from windrow_lab.storage.allocations import ALL_BATCH, ALLOCATIONS, MINIMAL, SLICE, run_time_s

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TEXTS = paper.Texts("bent")
_PRINTED = paper.printed("bent")
_SHOWN = (ALL_BATCH, SLICE, MINIMAL)
Times = Mapping[str, Sequence[float]]
Failing = Sequence[Times]


def report(plan: paper.PaperPlan, found: Sequence[Any]) -> paper.Report:
    """What the calls came to."""
    cut = len(SWEEPS) * len(BASELINES)
    many = len(BASELINES)
    points = [point for each in found[:cut] for point in each]
    baselines = dict(zip(BASELINES, found[cut : cut + many], strict=True))
    failing = found[cut + many : -2]
    counted = found[-2]
    measured = found[-1]
    numbers = {name: [value] for name, value in (*counted.items(), *arithmetic(measured))}
    numbers |= {
        f"time {work} {one}": times
        for work, each in baselines.items()
        for one, times in each.items()
    }
    numbers |= {name: [value] for name, value in (*exact(), *lost(points), *crossovers(failing))}
    said = paper.bounded_claims(_PRINTED["claims"]["said"], partial(_measured, numbers))
    ways = ("simulation", "Bent's model", "as printed")
    first = "; ".join(f"{way} {numbers[f'loss any three {way}'][0]:.1f} %" for way in ways)
    figures = [_picture(name, work, points) for name in SWEEPS for work in BASELINES]
    title, lead = _TEXTS["head"]
    return paper.Report(
        plan,
        title,
        lead,
        [
            paper.claims_words(said),
            f"Greatest loss of a choice over all points of figures 4.20 to 4.27: {first}.",
        ],
        "every third point and few seeds. --full runs them all.",
        [
            _TEXTS.claims(said),
            *_blocks(numbers, baselines, failing, measured),
            paper.Gallery("Figures 4.20 to 4.27", "", figures),
            paper.Listing("What cannot be checked", _TEXTS["open"]["lines"]),
        ],
        _facts(said, numbers, points),
    )


def _measured(numbers: Mapping[str, list[float]], one: Mapping[str, Any]) -> list[float]:
    """The values of a claim: of what it names, or by how many percent they are less than others."""
    values = numbers[one["of"]]
    others = numbers.get(one.get("less", ""), ())
    if others:
        return [100 * (1 - a / b) for a, b in zip(values, others, strict=True)]
    return values


def _facts(
    said: Sequence[paper.Claim], numbers: Mapping[str, list[float]], points: Sequence[Any]
) -> dict[str, Any]:
    """What is kept beside the page."""
    return {
        "claims": [
            {"where": c.where, "what": c.what, "ours": c.ours, "agrees": c.agrees} for c in said
        ],
        "numbers": {n: values for n, values in numbers.items() if all(map(isfinite, values))},
        "points": [point._asdict() for point in points],
    }


def lost(points: Sequence[Point]) -> Iterator[tuple[str, float]]:
    """The greatest loss of each way to choose, by figure and workload, if there is a choice."""
    kinds = {**{name: [name] for name in BASELINES}, "all": [*BASELINES], "three": [*BASELINES][1:]}
    for sweep in (*SWEEPS, "any"):
        for kind, names in kinds.items():
            some = [
                p
                for p in points
                if sweep in (p.sweep, "any") and p.workload in names and len(p.times) > 1
            ]
            for choice in CHOICES:
                yield (
                    f"loss {sweep} {kind} {choice}",
                    max((p.losses[choice] for p in some), default=0.0),
                )


def crossovers(failing: Failing) -> Iterator[tuple[str, float]]:
    """From which rate on AllBatch is ahead of Slice, in simulation and in the model."""
    mixed = BASELINES["mixed"]
    places = [replace(WHERE, failures_per_s=rate) for rate in RATES]
    seen = [np.mean(each[SLICE]) > np.mean(each[ALL_BATCH]) for each in failing]
    told = [
        run_time_s(SLICE, mixed, where) > run_time_s(ALL_BATCH, mixed, where) for where in places
    ]
    for name, behind in (("4.28 crossover", seen), ("4.28 model", told)):
        yield (
            name,
            1e6
            * min((rate for rate, is_so in zip(RATES, behind, strict=True) if is_so), default=inf),
        )


def arithmetic(measured: Times) -> Iterator[tuple[str, float]]:
    """Chapter 2 from the tables that are printed."""
    rows = [(measured[name], _PRINTED["roles"][name]) for name in measured if name != "amanda"]
    yield (
        "2.4 difference",
        max(abs(a - b) for ours, said in rows for a, b in zip(ours, said, strict=False)),
    )
    for name, row in measured.items():
        yield from zip(
            (f"2.3 {name} 1", f"2.3 {name} 256", f"2.4 {name} 1", f"2.5 {name}"),
            row[12:16],
            strict=True,
        )
    yield from _tables(measured)
    ratios = _PRINTED["ratios"].values()
    yield (
        "2.5 cpu/io",
        100
        * max(max(0.0, abs(instr / mb - ratio) - 1) / ratio for instr, mb, _, ratio, _ in ratios),
    )
    yield (
        "2.5 instr/op",
        float(sum(int(instr * 2**20 / ops / 1000) != k for instr, _, ops, _, k in ratios)),
    )
    nodes: dict[str, list[float]] = {"real": [], "cpu": []}
    for name, facts in applications().items():
        endpoint = _PRINTED["roles"][name][1]
        real_s = sum(stage["real_s"] for stage in facts["stages"].values())
        instructions = sum(sum(stage["minstr"]) for stage in facts["stages"].values())
        nodes["real"].append(real_s / endpoint)
        nodes["cpu"].append(instructions / 2000 / endpoint)
    yield from (
        (f"2.7 {base} {rate}", rate * min(nodes[base])) for base in nodes for rate in (1, 12, 1500)
    )


def _tables(measured: Times) -> Iterator[tuple[str, float]]:
    """Tables 2.1 to 2.3: the greatest difference of any application."""
    volumes, operations, totals = (_PRINTED[one] for one in ("volumes", "operations", "totals"))
    ratios = {name: _PRINTED["ratios"][f"{name}-{stage}"] for name, stage in totals.items()}
    moved = {name: (row[16:28], row[28:]) for name, row in measured.items()}
    yield (
        "2.1 difference",
        max(abs(volume[1] - ratios[name][1]) for name, (volume, _) in moved.items()),
    )
    yield (
        "2.1 operations",
        100 * max(abs(sum(ops) / ratios[name][2] - 1) for name, (_, ops) in moved.items()),
    )
    pairs = (
        (a, b)
        for name, (volume, _) in moved.items()
        for a, b in zip(volume, volumes[name], strict=True)
    )
    yield "2.2 difference", max(abs(a - b) for a, b in pairs if b >= 0)
    kinds = (
        (a - b, sum(ops))
        for name, (_, ops) in moved.items()
        for a, b in zip(ops, operations[name], strict=True)
    )
    yield "2.3 difference", 100 * max(abs(off) / total for off, total in kinds)


def _blocks(
    numbers: Mapping[str, Sequence[float]],
    baselines: Mapping[str, Times],
    failing: Failing,
    measured: Times,
) -> Iterator[Block]:
    rows = [_row(work, times, work, 0.0) for work, times in baselines.items()]
    yield _TEXTS.block("baselines", ("", *_SHOWN), rows)
    rows = []
    for one, said in SWEEPS.items():
        for work in BASELINES:
            losses = (f"{numbers[f'loss {one} {work} {by}'][0]:.1f}" for by in CHOICES)
            rows.append((f"{said['figure']} {work}", f"{said['most']}", *losses))
    yield _TEXTS.block("losses", ("", "print", *CHOICES), rows)
    rows = [
        _row(f"{1e6 * rate:g}", times, "mixed", rate)
        for rate, times in zip(RATES, failing, strict=True)
    ]
    yield _TEXTS.block("failures", ("rate", *_SHOWN), rows, runs=len(failing[0][SLICE]))
    ways = ("remote", "standalone", "standalone warm", "both", "both warm")
    rows = []
    for name, link in ((name, link) for name in applications() for link in ("far", "near")):
        cells = (f"{numbers[f'3.7 {name} {way} {link}'][0] / 3600:,.1f}" for way in ways)
        rows.append((f"{name}, home {link}", *cells))
    yield _TEXTS.block("bound", ("", *ways), rows)
    both = [(name, row, _PRINTED["roles"][name]) for name, row in measured.items()]
    rows = [
        (name, *(f"{ours[k]:,.2f} / {said[k]:,.2f}" for k in (1, 5, 9)))
        for name, ours, said in both
    ]
    yield _TEXTS.block("roles", ("", "endpoint", "pipeline", "batch"), rows)


def _row(label: str, times: Times, workload: str, rate: float) -> tuple[str, ...]:
    """In thousands of seconds: mean, deviation, and the model."""
    cells = []
    where = replace(WHERE, failures_per_s=rate)
    for one in _SHOWN:
        model = run_time_s(one, BASELINES[workload], where) / 1000
        mean, spread = (float(of(times.get(one, (0.0,)))) / 1000 for of in (np.mean, np.std))
        told = f"{mean:,.0f} ± {spread:,.0f} ({model:,.0f})".replace("inf", "–")
        cells.append(told if one in times else "–")
    return label, *cells


def _picture(name: str, workload: str, points: Sequence[Point]) -> paper.Picture:
    said = SWEEPS[name]
    texts = _TEXTS["figures"]
    here = [point for point in points if (point.sweep, point.workload) == (name, workload)]
    rates: dict[str, list[float]] = {one: [] for one in ALLOCATIONS}
    for point in here:
        for one, values in rates.items():
            values.append(3600 * point.jobs / point.times[one] if one in point.times else np.nan)
    shown = {one: values for one, values in rates.items() if not np.isnan(values).all()}

    def draw(axes: Axes) -> None:
        axes.set_xscale("linear" if 0 in said["x"] else "log")
        for mark, (one, values) in zip(MARKERS, shown.items(), strict=False):
            axes.plot([point.x for point in here], values, marker=mark, label=one)

    title = texts["title"].format(figure=said["figure"], workload=workload)
    lines = tuple(
        (f"{p.x:g}", *("–" if np.isnan(v[k]) else short(v[k]) for v in shown.values()))
        for k, p in enumerate(here)
    )
    block = Block(title, texts["words"].format(axis=said["axis"]), (said["axis"], *shown), lines)
    return paper.Picture(chart(draw, title, x=said["axis"], y="jobs per hour"), block)


PAPER = paper.Paper(plan_bent, report, "own workloads and environment", needs=("matplotlib",))
