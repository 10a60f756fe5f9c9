"""The page of chapter 5: means as its figures have them, and each claim of 5.4 beside ours
(`printed.toml`).

A claim agrees only if it holds in each of the seeds. Tests are paired t-tests over the 16 workflows
of a seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from statistics import fmean, stdev
from typing import Any

from windrow.model.wording import percent
from windrow.report.page import Block
from windrow_lab.grid.hybrid import WAYS
from windrow_lab.reproductions import paper
from windrow_lab.reproductions.charts import grouped_bars
from windrow_lab.reproductions.hybrid.plan import BATCHES, READINGS, SLOWER, Timed, plan_hybrid
from windrow_lab.reproductions.paired import paired_t_test

Verdict = tuple[str, bool]
_TEXTS = paper.Texts("hybrid")


class Results:
    """Runs of one world and one reading. Each judgement is of one seed: what ours is, and whether
    it holds."""

    def __init__(
        self,
        runs: Sequence[Timed],
        world: str = "constant",
        reading: str = "ours",
        slower: float = 1.0,
    ) -> None:
        self.runs = [
            run for run in runs if (run.world, run.reading, run.slower) == (world, reading, slower)
        ]
        self.seeds = sorted({run.seed for run in self.runs})

    def values(self, seed: int | None, batch: str, way: str, measure: str = "slr") -> list[float]:
        """One for each workflow, in their order; of all seeds if none is given."""
        mine = (
            run
            for run in self.runs
            if (run.batch, run.way) == (batch, way) and seed in (None, run.seed)
        )
        return [getattr(run, measure) for run in mine]

    def mean(self, seed: int | None, way: str, *batches: str) -> float:
        """Over workflows and batches."""
        return fmean(fmean(self.values(seed, batch, way)) for batch in batches)

    def changed(self, seed: int, batch: str, way: str) -> float:
        """In percent, against the aggressive batch."""
        return 100 * (self.mean(seed, way, batch) / self.mean(seed, way, "aggressive") - 1)

    def near(self, seed: int) -> Verdict:
        """Where the work is."""
        far = fmean(run.far for run in self.runs if run.seed == seed)
        return percent(1 - far), far < 0.5

    def best(self, seed: int, *batches: str) -> Verdict:
        """Which way has the lowest mean."""
        best = min(WAYS, key=lambda way: self.mean(seed, way, *batches))
        return best, best == "hybrid"

    def above(self, seed: int, *batches: str) -> Verdict:
        """Whether all means are above 1."""
        least = min(self.mean(seed, way, *batches) for way in WAYS)
        return f"{least:.2f}", least > 1

    def ahead(self, seed: int, batch: str, other: str, significant: bool = True) -> Verdict:
        """How far hybrid is ahead."""
        mine = self.values(seed, batch, "hybrid")
        theirs = self.values(seed, batch, other)
        ahead = 100 * (1 - fmean(mine) / fmean(theirs))
        found = paired_t_test(theirs, mine).is_significant()
        return f"{ahead:+.0f} %{'*' * found}", ahead > 0 and found is significant

    def lead(self, seed: int, low: float, high: float) -> Verdict:
        """The most by which hybrid is ahead in any batch."""
        pairs = (
            (self.mean(seed, "hybrid", batch), self.mean(seed, way, batch))
            for batch in BATCHES
            for way in WAYS
        )
        return _within(max(100 * (1 - mine / theirs) for mine, theirs in pairs), low, high)

    def change(self, seed: int, batch: str, way: str, low: float, high: float) -> Verdict:
        """How much slower a way is in a batch."""
        return _within(self.changed(seed, batch, way), low, high)

    def hurt(self, seed: int, batch: str, *ways: str) -> Verdict:
        """Which ways lose most."""
        order = sorted(WAYS, key=lambda way: -self.changed(seed, batch, way))[: len(ways)]
        return " > ".join(order), set(order) == set(ways)

    def smaller(self, seed: int, batch: str, than: str) -> Verdict:
        """Whether the largest loss in a batch is below that in another."""
        one, two = (max(self.changed(seed, each, way) for way in WAYS) for each in (batch, than))
        return f"{one:+.0f} / {two:+.0f} %", one < two


def _within(percent: float, low: float, high: float) -> Verdict:
    return f"{percent:+.0f} %", low <= percent <= high


def _over_seeds(texts: Sequence[str]) -> str:
    """The least and the most of numbers, or all words that there are."""
    try:
        ends = sorted(sorted(set(texts)), key=lambda text: float(text.split()[0]))
    except ValueError:
        return ", ".join(sorted(set(texts)))
    return " to ".join(dict.fromkeys((ends[0], ends[-1])))


def claims(results: Results) -> list[paper.Claim]:
    """What the text says, each beside ours."""
    found = []
    for where, what, says, judge, *about in paper.printed("hybrid")["claims"]:
        each = [getattr(results, judge)(seed, *about) for seed in results.seeds]
        agree = sum(holds for _, holds in each)
        ours = f"{_over_seeds([text for text, _ in each])} ({agree}/{len(each)})"
        found.append(paper.Claim(where, what, says, ours, agree == len(each)))
    return found


def report(plan: paper.PaperPlan, found: Sequence[Any]) -> paper.Report:
    """What the calls gave."""
    runs: list[Timed] = list(chain.from_iterable(found))
    ours = Results(runs)
    said = claims(ours)
    bars = {way: [ours.mean(None, way, batch) for batch in BATCHES] for way in WAYS}
    drawn = grouped_bars(
        list(BATCHES), bars, "mean SLR", "Means over workflows and seeds.", "{:.2f}".format
    )
    parts: list[paper.Part] = [
        _TEXTS.claims(said),
        _means("means", ours),
        _means("longest", ours, "by_longest"),
        *_on_logs(Results(runs, "logs")),
        _readings(runs),
        _slower(runs, len(said)),
        paper.Gallery("Figures 5.7 to 5.10", "", [paper.Picture(drawn)]),
        paper.Listing("What is ours", _TEXTS["ours"]),
    ]
    words = [paper.claims_words(said)]
    kept = _kept(said, runs)
    return _TEXTS.report(plan, words, parts, kept, runs=len(runs), seeds=len(ours.seeds))


def _kept(said: Sequence[paper.Claim], runs: Sequence[Timed]) -> dict[str, Any]:
    """What stands beside the page, for programs."""
    return {
        "agree": sum(c.agrees is True for c in said),
        "differ": sum(c.agrees is False for c in said),
        "claims": [asdict(c) for c in said],
        "runs": [asdict(run) for run in runs],
    }


def _on_logs(logs: Results) -> Iterator[Block]:
    """If there are runs on real logs."""
    if logs.runs:
        yield _means("logs", logs)
        yield _TEXTS.claims(claims(logs), "claims_on_logs")


def _means(name: str, results: Results, measure: str = "slr") -> Block:
    rows = [
        (batch, *(_shown(results.values(None, batch, way, measure)) for way in WAYS))
        for batch in BATCHES
    ]
    return _TEXTS.block(name, ("", *WAYS), rows)


def _readings(runs: Sequence[Timed]) -> Block:
    """What the hybrid way gives if the text is read otherwise."""
    rows = []
    for reading in READINGS:
        part = Results(runs, reading=reading)
        shown = [
            _shown(part.values(part.seeds[0], "aggressive", way)) for way in ("hybrid", "static")
        ]
        far = fmean(
            run.far for run in part.runs if (run.way, run.batch) == ("hybrid", "aggressive")
        )
        rows.append((reading, *shown, percent(far)))
    return _TEXTS.block("readings", ("", "hybrid", "static", "on Lonestar"), rows)


def _slower(runs: Sequence[Timed], checked: int) -> Block:
    """The same on slower links."""
    rows = []
    for by in (1.0, *SLOWER):
        part = Results(runs, slower=by)
        means = (
            " / ".join(f"{part.mean(None, way, batch):.2f}" for batch in BATCHES) for way in WAYS
        )
        agree = sum(c.agrees is True for c in claims(part))
        rows.append((f"{by:g} times", *means, f"{agree} of {checked} ({len(part.seeds)} seeds)"))
    return _TEXTS.block("slower", ("links slower", *WAYS, "claims that agree"), rows)


def _shown(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f} ± {stdev(values):.2f}"


PAPER = paper.Paper(
    plan_hybrid, report, "own fixed experiments", options=("data",), needs=("matplotlib", "scipy")
)
