"""What the GLUME campaigns say, beside what the thesis prints: table 7.1, its figures, and the
claims of its text.

Improvement is as in the thesis, section 5.2: for each submission the percentage by which a
strategy's makespan is below that of `zhang`, then the mean over submissions. One strategy beats
another on a workflow if that mean is 5 % or more (chapter 7); below -5 %, Zhang beats it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow_lab.reproductions.cases import BEATS, PRINTED_WINS
from windrow_lab.reproductions.glume.plan import BEAT_SWEEP, RIVALS, VERSIONS, GlumePlan
from windrow_lab.reproductions.paper import TableResults, printed

Floats = NDArray[np.float64]

DECISIVE = 3
"""A difference in wins that print must be matched on; smaller ones may be chance."""


@dataclass(frozen=True, slots=True)
class WinsCell:
    """One cell of table 7.1. Wins are (GLUME's, Zhang's); `near` counts workflows within a point of
    the 5 % line."""

    log: str
    requests: str
    length: str
    printed: tuple[int, int]
    ours: tuple[int, int]
    of: int
    near: int
    agrees: bool | None
    verdict: str


@dataclass(frozen=True, slots=True)
class GlumeFigure:
    """A figure of the thesis: mean improvement over Zhang in percent, for each workflow and
    strategy."""

    figure: str
    log: str
    requests: str
    cap: int
    configurations: tuple[str, ...]
    improvement: dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Enhancement:
    """Section 5.3: how often a version of Zhang differs from the plain one, and by how much if
    it improves."""

    log: str
    length: str
    version: str
    cap: int
    runs: int
    improved: int
    worsened: int
    improvement: float
    """Mean of the improved runs, in percent."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a strategy takes, over all runs with a cap of 16."""

    strategy: str
    makespan_h: float
    visible_wait_h: float
    unused_share: float
    jobs: float


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of one workflow on one cluster by one strategy, in the order of submission; NaN
    if one failed."""

    makespan_s: Floats
    jobs: Floats
    individually: NDArray[np.bool_]


class GlumeResults(TableResults):
    """Looks up runs by (log, requests, cap, workflow, strategy)."""

    def __init__(self, plan: GlumePlan, tables: Sequence[pa.Table]) -> None:
        super().__init__(tables)
        self.plan = plan
        self.table = pa.concat_tables(tables[:2])
        self.runs = {key: runs for table in tables for key, runs in _grouped(table).items()}

    @property
    def is_synthetic(self) -> bool:
        """Whether a generated log stands in for a real one."""
        return any(log.model for log in self.plan.cap_16.logs)

    def gains(
        self, log: str, requests: str, cap: int, workflow: str, strategy: str, base: str = "zhang"
    ) -> Floats:
        """The improvement over `base` at each submission, in percent, without those where either
        failed."""
        theirs = self.runs[log, requests, cap, workflow, base].makespan_s
        gain = (
            (theirs - self.runs[log, requests, cap, workflow, strategy].makespan_s) / theirs * 100
        )
        return gain[~np.isnan(gain)]

    def improvement(self, log: str, requests: str, cap: int, workflow: str, strategy: str) -> float:
        """The mean of `gains`; NaN if no run is left."""
        gains = self.gains(log, requests, cap, workflow, strategy)
        if len(gains):
            return float(gains.mean())
        return float("nan")

    def workflows(self, part: str) -> tuple[str, ...]:
        """The workflows that were run whose name holds `part`, like -250- or -short."""
        return tuple(w.name for w in self.plan.cap_16.workflows if part in w.name)

    def cells(self) -> list[WinsCell]:
        """Table 7.1."""
        return [self._cell(*place, wins) for place, wins in PRINTED_WINS.items()]

    def _cell(self, log: str, requests: str, length: str, there: tuple[int, int]) -> WinsCell:
        names = self.workflows(f"-{length}")
        gain = np.array([self.improvement(log, requests, 16, name, "glume") for name in names])
        ours = int((gain >= BEATS).sum()), int((gain <= -BEATS).sum())
        near = int((np.abs(np.abs(gain) - BEATS) < 1).sum())
        agrees, words = compare_wins(there, ours)
        if self.is_synthetic:
            agrees = None
            words = "a synthetic log: not to be compared"
        return WinsCell(log, requests, length, there, ours, len(names), near, agrees, words)

    def figures(self) -> list[GlumeFigure]:
        """Every bar chart of the thesis, in its order."""
        found = []
        for figure, log, requests, cap, part in printed("glume")["figures"]:
            rivals = (
                RIVALS[:-1] if part == "-250-" else RIVALS
            )  # chapter 5 and appendix A are without glume
            names = self.workflows(part)
            values = {
                s: tuple(self.improvement(log, requests, cap, name, s) for name in names)
                for s in rivals
            }
            found.append(GlumeFigure(figure, log, requests, cap, names, values))
        return found

    def enhancements(self) -> list[Enhancement]:
        """Section 5.3: every version under every cap."""
        logs = [log.name for log in self.plan.enhancements.logs]
        versions = [version for version in VERSIONS if version != "none"]
        lengths = ("short", "medium", "long")
        caps = self.plan.enhancements.caps
        return [self._enhancement(*part) for part in product(logs, lengths, versions, caps)]

    def _enhancement(self, log: str, length: str, version: str, cap: int) -> Enhancement:
        names = [w.name for w in self.plan.enhancements.workflows if w.name.endswith(length)]
        pair = VERSIONS[version].name, VERSIONS["none"].name
        gain = np.concatenate([self.gains(log, "accurate", cap, name, *pair) for name in names])
        better = gain[gain > 0]
        worse = int((gain < 0).sum())
        mean = float(better.mean()) if len(better) else 0.0
        return Enhancement(log, length, version, cap, len(gain), len(better), worse, mean)

    def beats(self) -> list[tuple[str, str, float, int, int, float]]:
        """For each log, kind of requests and `beat`: wins of glume and of zhang, and the mean
        improvement."""
        names = self.workflows("")
        there = {one.name for one in self.plan.campaigns[3].strategies}
        sweep = {0.0: "glume"} | {
            beat: one.name for beat, one in BEAT_SWEEP.items() if one.name in there
        }
        found = []
        logs = [log.name for log in self.plan.cap_16.logs]
        for log, requests, (beat, strategy) in product(logs, ("accurate", "actual"), sweep.items()):
            gain = np.array([self.improvement(log, requests, 16, n, strategy) for n in names])
            wins = int((gain >= BEATS).sum()), int((gain <= -BEATS).sum())
            found.append((log, requests, beat, *wins, float(np.nanmean(gain))))
        return found

    def averages(self) -> dict[tuple[str, str, str], dict[str, float]]:
        """For each cell of table 7.1 the mean improvement of each strategy over its workflows; none
        of `zhang`."""
        found = {}
        for log, requests, length in PRINTED_WINS:
            names = self.workflows(f"-{length}")
            means = {
                s: float(np.mean([self.improvement(log, requests, 16, n, s) for n in names]))
                for s in RIVALS
            }
            found[log, requests, length] = {"zhang": 0.0, **means}
        return found

    def costs(self) -> list[Cost]:
        """What each strategy takes, as means over all runs with a cap of 16."""
        import pyarrow.compute as pc  # noqa: PLC0415  (loads for a while; only reports need it)

        found = []
        for strategy in ("zhang", *RIVALS):
            rows = self.table.filter((pc.field("strategy") == strategy) & (pc.field("cap") == 16))
            means = (
                pc.mean(rows[name]).as_py() for name in ("makespan_s", "visible_wait_s", "jobs")
            )
            makespan_s, wait_s, jobs = means
            unused = (
                1 - pc.sum(rows["used_node_s"]).as_py() / pc.sum(rows["allocated_node_s"]).as_py()
            )
            found.append(Cost(strategy, makespan_s / 3600, wait_s / 3600, unused, jobs))
        return found


def compare_wins(there: tuple[int, int], here: tuple[int, int]) -> tuple[bool | None, str]:
    """Whether the same side wins in print, and in words. None if print shows too small a
    difference to tell."""
    if there == here:
        return True, "the same count"
    print_side, side = (
        ("neither", "GLUME", "Zhang")[int(np.sign(wins[0] - wins[1]))] for wins in (there, here)
    )
    if print_side == side:
        return (
            True,
            "neither wins more, in both"
            if side == "neither"
            else f"{side} wins more often in both",
        )
    if abs(there[0] - there[1]) < DECISIVE:
        return None, f"print shows {print_side} by less than {DECISIVE}; here {side}"
    return False, f"print shows {print_side}; here {side}"


def _grouped(table: pa.Table) -> dict[tuple[str, str, int, str, str], _Runs]:
    """Rows come sorted, so the runs of one strategy lie together, by submission time."""
    names = ("log", "requests", "cap", "workflow", "strategy")
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    makespan = table.column("makespan_s").cast(pa.float64()).to_numpy()
    jobs = table.column("jobs").cast(pa.float64()).to_numpy()
    alone = np.array([bool(x) for x in table.column("individually").to_pylist()], dtype=bool)
    begins = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    runs = (slice(*ends) for ends in pairwise([*begins, len(keys)]))
    return {keys[of.start]: _Runs(makespan[of], jobs[of], alone[of]) for of in runs}
