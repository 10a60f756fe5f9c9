"""Bent (2005): chapters 2 to 4 and appendix A, ours beside print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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


def report(plan: paper.PaperPlan, found: Sequence[Any]) -> paper.Report:
    """What the calls came to."""
    played = _Played.of(found)
    numbers = _numbers(played)
    said = paper.bounded_claims(_PRINTED["claims"]["said"], partial(_measured, numbers))
    ways = ("simulation", "Bent's model", "as printed")
    first = "; ".join(f"{way} {numbers[f'loss any three {way}'][0]:.1f} %" for way in ways)
    figures = [_picture(name, work, played.points) for name in SWEEPS for work in BASELINES]
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
            _baselines_block(played),
            _losses_block(numbers),
            _failures_block(played),
            _bound_block(numbers),
            _roles_block(played),
            paper.Gallery("Figures 4.20 to 4.27", "", figures),
            paper.Listing("What cannot be checked", _TEXTS["open"]["lines"]),
        ],
        _facts(said, numbers, played.points),
    )


@dataclass(frozen=True)
class _Played:
    """What the calls gave, by what they were for (see `plan_bent`)."""

    points: Sequence[Point]
    baselines: Mapping[str, Times]
    failing: Sequence[Times]
    counted: Mapping[str, float]
    measured: Times

    @staticmethod
    def of(found: Sequence[Any]) -> _Played:
        """In the order of the calls."""
        *rest, counted, measured = found
        sweeps = len(SWEEPS) * len(BASELINES)
        failures = sweeps + len(BASELINES)
        return _Played(
            points=[point for each in rest[:sweeps] for point in each],
            baselines=dict(zip(BASELINES, rest[sweeps:failures], strict=True)),
            failing=rest[failures:],
            counted=counted,
            measured=measured,
        )


def _numbers(played: _Played) -> dict[str, list[float]]:
    """All that claims may name."""
    single = (
        *played.counted.items(),
        *arithmetic(played.measured),
        *exact(),
        *lost(played.points),
        *crossovers(played.failing),
    )
    numbers = {name: [value] for name, value in single}
    for work, each in played.baselines.items():
        numbers |= {f"time {work} {one}": [*times] for one, times in each.items()}
    return numbers


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
                point.losses
                for point in points
                if sweep in (point.sweep, "any")
                and point.workload in names
                and len(point.times) > 1
            ]
            for choice in CHOICES:
                greatest = max((losses[choice] for losses in some), default=0.0)
                yield f"loss {sweep} {kind} {choice}", greatest


def crossovers(failing: Sequence[Times]) -> Iterator[tuple[str, float]]:
    """From which rate on AllBatch is ahead of Slice, in simulation and in the model."""
    mixed = BASELINES["mixed"]
    places = [replace(WHERE, failures_per_s=rate) for rate in RATES]
    seen = [np.mean(each[SLICE]) > np.mean(each[ALL_BATCH]) for each in failing]
    modelled = [
        run_time_s(SLICE, mixed, where) > run_time_s(ALL_BATCH, mixed, where) for where in places
    ]
    for name, is_behind in (("4.28 crossover", seen), ("4.28 model", modelled)):
        rates = (rate for rate, behind in zip(RATES, is_behind, strict=True) if behind)
        yield name, 1e6 * min(rates, default=inf)


def arithmetic(measured: Times) -> Iterator[tuple[str, float]]:
    """Chapter 2 from the tables that are printed."""
    yield from _roles(measured)
    yield from _tables(measured)
    yield from _ratios()
    yield from _widths()


def _roles(measured: Times) -> Iterator[tuple[str, float]]:
    """Table 2.4, and caches (figures 2.3 to 2.5)."""
    rows = [(measured[name], _PRINTED["roles"][name]) for name in measured if name != "amanda"]
    pairs = (pair for ours, said in rows for pair in zip(ours, said, strict=False))
    yield "2.4 difference", max(abs(ours - said) for ours, said in pairs)
    for name, row in measured.items():
        what = (f"2.3 {name} 1", f"2.3 {name} 256", f"2.4 {name} 1", f"2.5 {name}")
        yield from zip(what, row[12:16], strict=True)


def _ratios() -> Iterator[tuple[str, float]]:
    """Table 2.5: what is printed of ratios follows from what is printed of counts."""
    rows = _PRINTED["ratios"].values()
    off = [max(0.0, abs(instr / mb - ratio) - 1) / ratio for instr, mb, _, ratio, _ in rows]
    yield "2.5 cpu/io", 100 * max(off)
    wrong = [int(instr * 2**20 / ops / 1000) != k for instr, _, ops, _, k in rows]
    yield "2.5 instr/op", float(sum(wrong))


def _widths() -> Iterator[tuple[str, float]]:
    """Figure 2.7: how many nodes keep links of these rates busy, of the application with fewest."""
    real: list[float] = []
    cpu: list[float] = []
    for name, facts in applications().items():
        endpoint = _PRINTED["roles"][name][1]
        stages = facts["stages"].values()
        real.append(sum(stage["real_s"] for stage in stages) / endpoint)
        cpu.append(sum(sum(stage["minstr"]) for stage in stages) / 2000 / endpoint)
    for base, nodes in (("real", real), ("cpu", cpu)):
        for rate in (1, 12, 1500):
            yield f"2.7 {base} {rate}", rate * min(nodes)


def _tables(measured: Times) -> Iterator[tuple[str, float]]:
    """Tables 2.1 to 2.3: the greatest difference of any application."""
    volumes = []
    operations = []
    all_volumes = []
    all_kinds = []
    for name, row in measured.items():
        ratios = _PRINTED["ratios"][f"{name}-{_PRINTED['totals'][name]}"]
        volume = row[16:28]
        kinds = row[28:]
        volumes.append(abs(volume[1] - ratios[1]))
        operations.append(abs(sum(kinds) / ratios[2] - 1))
        pairs = zip(volume, _PRINTED["volumes"][name], strict=True)
        all_volumes += [abs(ours - said) for ours, said in pairs if said >= 0]
        pairs = zip(kinds, _PRINTED["operations"][name], strict=True)
        all_kinds += [abs((ours - said) / sum(kinds)) for ours, said in pairs]
    yield "2.1 difference", max(volumes)
    yield "2.1 operations", 100 * max(operations)
    yield "2.2 difference", max(all_volumes)
    yield "2.3 difference", 100 * max(all_kinds)


def _baselines_block(played: _Played) -> Block:
    rows = [_row(work, times, work, 0.0) for work, times in played.baselines.items()]
    return _TEXTS.block("baselines", ("", *_SHOWN), rows)


def _losses_block(numbers: Mapping[str, Sequence[float]]) -> Block:
    rows = []
    for one, said in SWEEPS.items():
        for work in BASELINES:
            losses = (f"{numbers[f'loss {one} {work} {by}'][0]:.1f}" for by in CHOICES)
            rows.append((f"{said['figure']} {work}", f"{said['most']}", *losses))
    return _TEXTS.block("losses", ("", "print", *CHOICES), rows)


def _failures_block(played: _Played) -> Block:
    rows = [
        _row(f"{1e6 * rate:g}", times, "mixed", rate)
        for rate, times in zip(RATES, played.failing, strict=True)
    ]
    return _TEXTS.block("failures", ("rate", *_SHOWN), rows, runs=len(played.failing[0][SLICE]))


def _bound_block(numbers: Mapping[str, Sequence[float]]) -> Block:
    ways = ("remote", "standalone", "standalone warm", "both", "both warm")
    rows = []
    for name in applications():
        for link in ("far", "near"):
            cells = (f"{numbers[f'3.7 {name} {way} {link}'][0] / 3600:,.1f}" for way in ways)
            rows.append((f"{name}, home {link}", *cells))
    return _TEXTS.block("bound", ("", *ways), rows)


def _roles_block(played: _Played) -> Block:
    rows = []
    for name, ours in played.measured.items():
        said = _PRINTED["roles"][name]
        rows.append((name, *(f"{ours[k]:,.2f} / {said[k]:,.2f}" for k in (1, 5, 9))))
    return _TEXTS.block("roles", ("", "endpoint", "pipeline", "batch"), rows)


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
    shown = _rates(here)

    def draw(axes: Axes) -> None:
        axes.set_xscale("linear" if 0 in said["x"] else "log")
        for mark, (one, values) in zip(MARKERS, shown.items(), strict=False):
            axes.plot([point.x for point in here], values, marker=mark, label=one)

    title = texts["title"].format(figure=said["figure"], workload=workload)
    lines = tuple(
        (f"{point.x:g}", *(_short(values[k]) for values in shown.values()))
        for k, point in enumerate(here)
    )
    words = texts["words"].format(axis=said["axis"])
    block = Block(title, words, (said["axis"], *shown), lines)
    return paper.Picture(chart(draw, title, x=said["axis"], y="jobs per hour"), block)


def _short(value: float) -> str:
    return "–" if np.isnan(value) else short(value)


def _rates(points: Sequence[Point]) -> dict[str, list[float]]:
    """Jobs an hour at each point, under each allocation that is possible at one of them."""
    rates = {
        one: [3600 * p.jobs / p.times[one] if one in p.times else np.nan for p in points]
        for one in ALLOCATIONS
    }
    return {one: values for one, values in rates.items() if not np.isnan(values).all()}


PAPER = paper.Paper(plan_bent, report, "own workloads and environment", needs=("matplotlib",))
