"""What is measured of each claim, by its name in `printed.toml`; print's bounds are there.

Law: a claim agrees if its measure is within the bounds under every seed; under each it is measured
by itself. One that `needs` what a run does not have is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from windrow_lab.reproductions.grid.plan import (
    FOUR,
    READINGS,
    SELECTIONS,
    STAND_INS,
    WITH_EACP,
    Selected,
    SlrRow,
)
from windrow_lab.reproductions.paired import paired_t_test
from windrow_lab.reproductions.paper import (
    NOT_APPLICABLE,
    Claim,
    bounded_claims,
    printed,
    range_shown,
)

Floats = NDArray[np.float64]
NAMES = (*FOUR, *WITH_EACP, *READINGS)
GENERATED = tuple(STAND_INS["chapter_3"]["types"])
KINDS = (*GENERATED, "eman", "montage")
PAIRS = tuple(combinations(FOUR, 2))
LONG_S = 60.0
"""Scheduling that takes less has nothing to gain from a selection: print's took hours."""


@dataclass(frozen=True)
class SlrRows:
    """Rows of chapter 3."""

    rows: Sequence[SlrRow]

    @cached_property
    def slr(self) -> Floats:
        """A column for each algorithm."""
        return np.array([row.slr for row in self.rows], dtype=np.float64).reshape(-1, len(NAMES))

    def of(
        self,
        grid: str = "",
        kinds: Sequence[str] = KINDS,
        width: tuple[float, float] = (0, inf),
        **same: float,
    ) -> SlrRows:
        """Those on one grid, of these types, within widths, and of one alpha or CCR."""
        there = [row for row in self.rows if row.grid == (grid or row.grid) and row.kind in kinds]
        there = [
            row for row in there if all(getattr(row, name) == value for name, value in same.items())
        ]
        return SlrRows([row for row in there if width[0] <= row.width <= width[1]])

    def column(self, algorithm: str) -> Floats:
        """Its SLRs."""
        return self.slr[:, NAMES.index(algorithm)]

    def mean(self, algorithm: str) -> float:
        """Its mean SLR; NaN if there are no rows."""
        if self.rows:
            return float(self.column(algorithm).mean())
        return np.nan

    def ratio(self, first: str, second: str) -> float:
        """Of two means."""
        return self.mean(first) / self.mean(second)

    def loss(self, first: str = "eacp+heft", second: str = "heft") -> float:
        """How much worse one is than the other in the mean, in percent."""
        return 100 * (self.ratio(first, second) - 1)

    @property
    def spread(self) -> float:
        """The worst of the four means by the best."""
        means = [self.mean(name) for name in FOUR]
        return max(means) / min(means)

    def p(self, first: str, second: str) -> float:
        """Of a paired t-test; 1 if nothing can be said."""
        found = paired_t_test(self.column(first), self.column(second)).p
        if found is None:
            return 1.0
        return found

    def is_best(self, algorithm: str) -> NDArray[np.bool_]:
        """Where it has the least SLR of the four, or shares it."""
        least: Floats = self.slr[:, : len(FOUR)].min(axis=1)
        return np.asarray(self.column(algorithm) <= least * (1 + 1e-12))

    def equal(self) -> float:
        """How often HEFT and HHS have the same SLR, in percent."""
        return 100 * float(np.mean(np.isclose(self.column("heft"), self.column("hhs"), rtol=1e-12)))


@dataclass(frozen=True)
class Runs:
    """Runs of chapter 4: means over workflows that every selection had hosts for."""

    runs: Sequence[Selected]

    @cached_property
    def second_per_step(self) -> float:
        """What a host and a task or edge take the one-step scheduler, by the one number that is
        calibrated."""
        widest = max(
            (run for run in self.runs if run.selection == "growth"), key=lambda run: run.hosts
        )
        return (
            float(STAND_INS["calibrated"]["one_step_largest_h"])
            * 3600
            / (widest.hosts * widest.size)
        )

    def mean(
        self, selection: str, what: Callable[[Selected], float], ccr: float = 0, kind: str = ""
    ) -> float:
        """Of something, over workflows of one CCR and type, or all."""
        found = [r for r in self.runs if r.ccr == (ccr or r.ccr) and r.kind == (kind or r.kind)]
        shared = set.intersection(
            *({r[1:4] for r in found if r.selection == one} for one in SELECTIONS)
        )
        return float(
            np.mean([what(r) for r in found if r.selection == selection and r[1:4] in shared])
        )

    def makespan(self, selection: str, ccr: float) -> float:
        """In the mean."""
        return self.mean(selection, lambda run: run.makespan_s, ccr)

    def by(self, ccr: float, selection: str, *others: str) -> float:
        """Its makespan by that of the best of others."""
        return self.makespan(selection, ccr) / min(self.makespan(one, ccr) for one in others)

    def turnaround(self, selection: str, ccr: float) -> float:
        """Makespan and scheduling, at the calibrated speed, in the mean."""
        return self.mean(
            selection, lambda run: run.makespan_s + self.second_per_step * run.hosts * run.size, ccr
        )

    def gains(self, ccr: float) -> list[float]:
        """Turnaround of each decoupled one by that of one-step."""
        return [
            self.turnaround(one, ccr) / self.turnaround("one-step", ccr) for one in SELECTIONS[1:]
        ]

    @cached_property
    def longest_s(self) -> float:
        """How long scheduling on all hosts took at most."""
        return max(run.took_s for run in self.runs if run.selection == "one-step")

    def time_share(self, kind: str) -> float:
        """What selecting one TightBag and scheduling on it take of what one-step scheduling takes,
        in percent."""
        tight, one_step = (
            self.mean(name, lambda r: r.took_s, 0, kind) for name in ("one TightBag", "one-step")
        )
        return 100 * tight / one_step

    def linear(self) -> float:
        """How much of the variance of one-step times a line over hosts explains, in percent."""
        grown = [(run.hosts, run.took_s) for run in self.runs if run.selection == "growth"]
        return 100 * float(np.corrcoef(np.array(grown).T)[0, 1] ** 2)


def _growth(rows: SlrRows, name: str) -> float:
    """The least factor by which the spread grows from one value to the next."""
    spreads = [rows.of(**{name: value}).spread for value in STAND_INS["chapter_3"][name]]
    return min(b / a for a, b in pairwise(spreads))


def _range(values: Floats) -> float:
    return float(values.max() / values.min())


def _significant(tests: Sequence[float]) -> float:
    return 100 * float(np.mean(np.array(tests) < 0.05))


def _on_grids(rows: SlrRows, algorithm: str) -> float:
    by = {
        grid: rows.of(grid, ["random"]).ratio(algorithm, "heft")
        for grid in STAND_INS["chapter_3"]["grids"]
    }
    return by.pop("universal") / max(by.values())


def _tested(rows: SlrRows, **by: Sequence[str]) -> list[float]:
    """p of every pair on each grid or type, but for those that print excepts."""
    excepted = {
        ("heft", "hhs", "level"),
        ("heft", "hhs", "eman"),
        ("greedy", "lhbs", "big-cluster"),
    }
    return [
        rows.of(**{name: value if name == "grid" else [value]}).p(a, b)  # type: ignore[arg-type]
        for name, values in by.items()
        for value in values
        for a, b in PAIRS
        if (a, b, value) not in excepted
    ]


def _big_widths(rows: SlrRows) -> float:
    """Where EACP takes the first two clusters together or more than two, against elsewhere."""
    ranges = ((39, 55), (127, inf))
    others = ((0, 38), (56, 126))
    lossy, rest = (
        [row for one in some for row in rows.of(width=one).rows] for some in (ranges, others)
    )
    return SlrRows(lossy).loss() - SlrRows(rest).loss()


THREE: Mapping[str, Callable[[SlrRows], float]] = {
    "least": lambda s: float(s.slr[:, :4].min()),
    "greatest": lambda s: float(s.slr[:, :4].max()),
    "greedy_universal": lambda s: _on_grids(s, "greedy"),
    "lhbs_universal": lambda s: _on_grids(s, "lhbs"),
    "p_big_lhbs": lambda s: s.of("big-cluster", ["random"]).p("greedy", "lhbs"),
    "grids_significant": lambda s: _significant(
        _tested(s.of(kinds=["random"]), grid=STAND_INS["chapter_3"]["grids"])
    ),
    "eacp_big": lambda s: s.of("big-cluster", GENERATED).loss(),
    "eacp_big_widths": lambda s: _big_widths(s.of("big-cluster", GENERATED)),
}
"""Over all grids."""
UNIVERSAL: Mapping[str, Callable[[SlrRows], float]] = {
    "hhs_off": lambda s: s.loss("hhs"),
    "p_heft_hhs": lambda s: s.p("heft", "hhs"),
    "p_others": lambda s: max(s.p(a, b) for a, b in PAIRS[1:]),
    "bulk": lambda s: _range(np.percentile(s.slr[:, :3], 75, axis=0)),
    "outliers": lambda s: float(
        (np.percentile(s.slr[:, :4], 90, axis=0) / np.median(s.slr[:, :4], axis=0)).min()
    ),
    "lhbs_worst": lambda s: s.mean("lhbs") / max(s.mean(name) for name in FOUR[:3]),
    "best_sum": lambda s: 100 * sum(float(s.is_best(name).mean()) for name in FOUR),
    "equal_choke": lambda s: (
        s.of(kinds=["choke"]).equal() - s.of(kinds=["random", "level"]).equal()
    ),
    "eman_spread": lambda s: s.of(kinds=["eman"]).spread,
    "p_level": lambda s: s.of(kinds=["level"]).p("heft", "hhs"),
    "p_eman": lambda s: s.of(kinds=["eman"]).p("heft", "hhs"),
    "types_significant": lambda s: _significant(_tested(s, kinds=KINDS)),
}
"""On the universal grid, all types."""
WIDE: Mapping[str, Callable[[SlrRows], float]] = {
    "spread_by_ccr": lambda s: _growth(s, "ccr"),
    "lhbs_at_10": lambda s: (
        min(map(s.of(ccr=10).mean, FOUR[2:])) / max(map(s.of(ccr=10).mean, FOUR[:2]))
    ),
    "spread_by_alpha": lambda s: _growth(s, "alpha"),
    "spread_below_78": lambda s: s.of(width=(78, 305)).spread / s.of(width=(0, 77)).spread,
    "spread_above_305": lambda s: s.of(width=(78, 305)).spread / s.of(width=(306, inf)).spread,
    "eacp_at_01": lambda s: max(s.of(ccr=0.1).ratio(a, f"eacp+{a}") for a in ("heft", "lhbs")),
    "eacp_heft_1": lambda s: s.of(ccr=1).ratio("heft", "eacp+heft"),
    "eacp_lhbs_1": lambda s: s.of(ccr=1).ratio("lhbs", "eacp+lhbs"),
    "eacp_heft_10": lambda s: s.of(ccr=10).ratio("heft", "eacp+heft"),
    "eacp_lhbs_10": lambda s: s.of(ccr=10).ratio("lhbs", "eacp+lhbs"),
    "eacp_any": lambda s: (
        min(map(s.of(ccr=10).mean, FOUR)) / max(map(s.of(ccr=10).mean, WITH_EACP))
    ),
    "eacp_wide": lambda s: s.of(alpha=5).ratio("heft", "eacp+heft"),
    "eacp_narrow": lambda s: max(
        s.of(alpha=alpha).ratio("heft", "eacp+heft") for alpha in (0.5, 1)
    ),
}
"""On the universal grid, the three generated types."""
FOURTH: Mapping[str, Callable[[Runs], float]] = {
    "linear": Runs.linear,
    "time_eman": lambda s: s.time_share("eman"),
    "time_montage": lambda s: s.time_share("montage"),
    "tight_worst": lambda s: (
        s.makespan("one TightBag", 0.1) / max(s.makespan(x, 0.1) for x in ("simple", "LooseBag"))
    ),
    "simple_best": lambda s: s.by(0.1, "simple", *SELECTIONS[2:]),
    "simple_off": lambda s: 100 * (s.by(0.1, "simple", "one-step") - 1),
    "turnaround_01": lambda s: max(s.gains(0.1)),
    "tight_best": lambda s: s.by(10, "one TightBag", "one-step", "simple", "LooseBag"),
    "tight_gain": lambda s: 100 * (1 - s.gains(10)[1]),
    "tight_gain_makespan": lambda s: 100 * (1 - s.by(10, "one TightBag", "one-step")),
    "turnaround_balanced": lambda s: max(max(s.gains(ccr)) for ccr in (0.5, 1, 2)),
    "largest_gain": lambda s: 100 * (1 - min(min(s.gains(ccr)) for ccr in (0.5, 1, 2))),
    "simple_by_tight_05": lambda s: s.by(0.5, "simple", "one TightBag"),
    "simple_by_tight_2": lambda s: s.by(2, "simple", "one TightBag"),
    "loose": lambda s: min(s.by(x, "LooseBag", *SELECTIONS[1:3]) for x in (0.5, 1, 2)),
    "never_lost": lambda s: max(
        1 / s.by(x, "one-step", *SELECTIONS[1:]) for x in STAND_INS["chapter_4"]["ccr"]
    ),
}
"""Of chapter 4."""


def measured(name: str, rows: SlrRows, runs: Runs) -> float:
    """A measure under one seed."""
    if name in FOURTH:
        return FOURTH[name](runs)
    if name in THREE:
        return THREE[name](rows)
    universal = rows.of("universal")
    if name in UNIVERSAL:
        return UNIVERSAL[name](universal)
    return WIDE[name](universal.of(kinds=GENERATED))


def beside(seeds: Sequence[Mapping[str, SlrRows]]) -> list[tuple[str, ...]]:
    """The claims of chapter 3, of the generated types alone, in every experiment: what print says,
    and what is here."""
    found = []
    for said in printed("grid")["claims"]:
        name = said["measure"]
        if name in FOURTH or name in ("eman_spread", "p_eman", "types_significant"):
            continue
        (low, high) = said["between"]
        cells = []
        for experiment in STAND_INS["experiments"]:
            rows = [seed[experiment].of(kinds=GENERATED) for seed in seeds]
            values = [measured(name, each, Runs(())) for each in rows]
            mark = " *" if all(low <= value <= high for value in values) else ""
            cells.append(range_shown(values, said.get("unit", "")) + mark)
        found.append((f"{said['where']}: {said['what']}", said["printed"], *cells))
    return found


def claims(seeds: Sequence[tuple[SlrRows, Runs]], *, full: bool = True) -> list[Claim]:
    """Every claim, by what is measured under each seed, unless this run cannot judge it."""
    said = printed("grid")["claims"]
    found = bounded_claims(said, lambda one: [measured(one["measure"], *seed) for seed in seeds])
    has = {
        "": True,
        "thousands of pairs": full,
        "scheduling that takes long": min(runs.longest_s for _, runs in seeds) >= LONG_S,
    }
    return [
        claim
        if has[one.get("needs", "")]
        else replace(claim, agrees=None, unsaid=f"{NOT_APPLICABLE}: needs {one['needs']}")
        for one, claim in zip(said, found, strict=True)
    ]
