"""The page of chapter 5: means as its figures have them, and each claim of 5.4 beside ours.

A claim agrees only if it holds in each of the seeds. Tests are paired t-tests over the 16 workflows of a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import chain
from statistics import fmean, stdev
from typing import Any

from windrow.grid.hybrid import WAYS
from windrow.reproductions.charts import grouped_bars
from windrow.reproductions.hybrid.plan import BATCHES, READINGS, SLOWER, STAND_INS, Run, plan_hybrid
from windrow.reproductions.paired import paired_t_test
from windrow.reproductions.paper import Claim, Gallery, Listing, Paper, PaperPlan, Picture, Report, Texts, claims_words

_OTHERS = tuple(way for way in WAYS if way != "hybrid")


class Results:
    """Runs, by world, batch, way and seed; `measure` is what is compared."""

    def __init__(self, found: Sequence[Run], measure: str = "slr") -> None:
        self.runs = list(found)
        self.measure = measure
        self.seeds = sorted({run.seed for run in found})

    def values(
        self, seed: int | None, batch: str, way: str, world: str = "constant", reading: str = "ours"
    ) -> list[float]:
        """One for each workflow, in their order; of all seeds where none is given."""
        return [
            self.value(run)
            for run in self.runs
            if (run.batch, run.way, run.world, run.reading) == (batch, way, world, reading) and seed in (None, run.seed)
        ]

    def value(self, run: Run) -> float:
        """What is compared of a run."""
        return run.slr if self.measure == "slr" else run.turnaround_s / run.longest_s

    def mean(self, seed: int | None, batch: str, way: str) -> float:
        """Over workflows."""
        return fmean(self.values(seed, batch, way))

    def change(self, seed: int, batch: str, way: str) -> float:
        """In percent, against the aggressive batch."""
        return 100 * (self.mean(seed, batch, way) / self.mean(seed, "aggressive", way) - 1)

    def test(self, seed: int, batch: str, other: str) -> tuple[float, bool]:
        """How far the hybrid way is ahead, in percent, and whether that is significant."""
        mine, theirs = self.values(seed, batch, "hybrid"), self.values(seed, batch, other)
        return 100 * (1 - fmean(mine) / fmean(theirs)), paired_t_test(theirs, mine).is_significant()

    def lead(self, seed: int) -> float:
        """The most by which the hybrid way is ahead in any batch, in percent."""
        return max(self.test(seed, batch, other)[0] for batch in BATCHES for other in _OTHERS)


def claims(results: Results) -> list[Claim]:
    """All of 5.4, in its order."""
    found: list[Claim] = []

    def claim(where: str, what: str, print_says: str, ours: Callable[[int], tuple[str, bool]]) -> None:
        each = [ours(seed) for seed in results.seeds]
        agree = sum(holds for _, holds in each)
        words = f"{', '.join(text for text, _ in each)} ({agree} of {len(each)} seeds)"
        found.append(Claim(where, what, print_says, words, agree == len(each)))

    def unloaded(seed: int, way: str) -> float:
        return fmean(results.mean(seed, batch, way) for batch in ("aggressive", "conservative"))

    def against(batch: str, other: str, *, is_significant: bool) -> Callable[[int], tuple[str, bool]]:
        def ours(seed: int) -> tuple[str, bool]:
            ahead, significant = results.test(seed, batch, other)
            return f"{ahead:+.0f} %{'*' * significant}", ahead > 0 and significant is is_significant

        return ours

    def best(seed: int, mean: Callable[[int, str], float]) -> tuple[str, bool]:
        order = sorted(WAYS, key=lambda way: mean(seed, way))
        return order[0], order[0] == "hybrid"

    claim("5.3.3", "most of the work is on the three reserved queues", "majority", lambda seed: _near(results, seed))
    claim("5.6", "hybrid has the lowest mean, unloaded", "hybrid", lambda seed: best(seed, unloaded))
    lead = "between 30 and 60 agrees"
    claim("5.4", f"hybrid is ahead by as much as ({lead})", "45 %", lambda s: _within(results.lead(s), 30, 60))

    def least(seed: int) -> tuple[str, bool]:
        mean = min(unloaded(seed, way) for way in WAYS)
        return f"{mean:.2f}", mean > 1

    claim("5.6", "all means are above 1; the least", "> 1", least)
    for figure, batch in (("5.7", "aggressive"), ("5.8", "conservative")):
        for other in ("dynamic", "static rescheduling"):
            claim(
                figure,
                f"hybrid ahead of {other}, significantly",
                "p < 0.05",
                against(batch, other, is_significant=True),
            )
        words = "hybrid ahead of static, not significantly"
        claim(figure, words, "better, p > 0.05", against(batch, "static", is_significant=False))
    words = "static rescheduling is slower with the conservative trigger (15 to 45 agrees)"
    claim("5.8", words, "30 %", lambda s: _within(results.change(s, "conservative", "static rescheduling"), 15, 45))
    words = "hybrid is all but the same with it (within 5 agrees)"
    claim("5.8", words, "not affected", lambda s: _within(results.change(s, "conservative", "hybrid"), -5, 5))
    claim(
        "5.9",
        "hybrid is best under queue load",
        "hybrid",
        lambda s: best(s, lambda seed, w: results.mean(seed, "queue load", w)),
    )
    for other in _OTHERS:
        claim(
            "5.9",
            f"hybrid ahead of {other}, significantly",
            "p < 0.05",
            against("queue load", other, is_significant=True),
        )
    claim(
        "5.9", "queue load hurts static and dynamic most", "static, dynamic", lambda s: _hurt(results, s, "queue load")
    )
    claim("5.10", "disk load has a smaller effect than queue load", "not as dramatic", lambda s: _smaller(results, s))
    claim(
        "5.10",
        "disk load hurts static rescheduling most",
        "static rescheduling",
        lambda s: _hurt(results, s, "disk load"),
    )
    return found


def _near(results: Results, seed: int) -> tuple[str, bool]:
    far = fmean(r.far for r in results.runs if r.world == "constant" and r.seed == seed and r.reading == "ours")
    return f"{100 * (1 - far):.0f} %", far < 0.5


def _within(percent: float, low: float, high: float) -> tuple[str, bool]:
    return f"{percent:+.0f} %", low <= percent <= high


def _hurt(results: Results, seed: int, batch: str) -> tuple[str, bool]:
    order = sorted(WAYS, key=lambda way: -results.change(seed, batch, way))
    if batch == "queue load":
        return " > ".join(order[:2]), set(order[:2]) == {"static", "dynamic"}
    return order[0], order[0] == "static rescheduling"


def _smaller(results: Results, seed: int) -> tuple[str, bool]:
    disk, queue = (max(results.change(seed, b, way) for way in WAYS) for b in ("disk load", "queue load"))
    return f"{disk:+.0f} / {queue:+.0f} %", disk < queue


def report(plan: PaperPlan, found: Sequence[Any]) -> Report:
    """What the calls gave."""
    everything = list(chain.from_iterable(found))
    runs = [run for run in everything if run.slower == 1]
    results, texts = Results(runs), Texts("hybrid")
    other = Results(runs, "longest")
    said = claims(results)
    head = ("", *WAYS)
    figures = [
        texts.block("means", head, [(b, *(_shown(results.values(None, b, way)) for way in WAYS)) for b in BATCHES]),
        texts.block("longest", head, [(b, *(_shown(other.values(None, b, way)) for way in WAYS)) for b in BATCHES]),
    ]
    if any(run.world == "logs" for run in runs):
        rows = [
            (b, *(_shown(results.values(None, b, way, "logs")) for way in WAYS)) for b in ("aggressive", "conservative")
        ]
        figures.append(texts.block("logs", head, rows))
    rows = []
    for reading in READINGS:
        seeds = {run.seed for run in runs if run.reading == reading != "ours"} or set(results.seeds[:1])
        far = fmean(
            r.far
            for r in runs
            if r.reading == reading and r.way == "hybrid" and r.batch == "aggressive" and r.seed in seeds
        )
        values = (
            [v for s in sorted(seeds) for v in results.values(s, "aggressive", way, reading=reading)]
            for way in ("hybrid", "static")
        )
        rows.append((reading, *map(_shown, values), f"{100 * far:.0f} %"))
    figures.append(texts.block("readings", ("", "hybrid", "static", "on Lonestar"), rows))
    rows = []
    for slower in (1.0, *SLOWER):
        part = Results(
            [run for run in everything if (run.slower, run.world, run.reading) == (slower, "constant", "ours")]
        )
        agree = sum(c.agrees is True for c in claims(part))
        means = (" / ".join(f"{part.mean(None, batch, way):.2f}" for batch in BATCHES) for way in WAYS)
        rows.append((f"{slower:g} times", *means, f"{agree} of {len(said)} ({len(part.seeds)} seeds)"))
    figures.append(texts.block("slower", ("links slower", *WAYS, "claims that agree"), rows))
    bars = {way: [results.mean(None, batch, way) for batch in BATCHES] for way in WAYS}
    drawn = grouped_bars(list(BATCHES), bars, "mean SLR", "Means over workflows and seeds.", lambda v: f"{v:.2f}")
    count = sum(run.reading == "ours" for run in runs)
    lead = f"{count:,} runs of 16 workflows in {len(STAND_INS['seeds'])} seeds, in four batches and four ways."
    agree, differ = (sum(c.agrees is verdict for c in said) for verdict in (True, False))
    return Report(
        plan,
        "Zhang's thesis, chapter 5, run again",
        lead,
        [claims_words(said)],
        "other readings on one seed, slower links and real logs on two. --full runs all.",
        [
            texts.claims(said),
            *figures,
            Gallery("Figures 5.7 to 5.10", "", [Picture(drawn)]),
            Listing("What is ours", texts["ours"]),
        ],
        {
            "agree": agree,
            "differ": differ,
            "claims": [asdict(c) for c in said],
            "runs": [asdict(run) for run in everything],
        },
    )


def _shown(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f} ± {stdev(values):.2f}"


PAPER = Paper(plan_hybrid, report, "own fixed experiments", options=("data",), needs=("matplotlib", "scipy"))
