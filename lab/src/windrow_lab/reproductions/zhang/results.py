"""What the campaigns of `zhang` say: waits, relative waits and CPU hours, by cluster, policy,
application and width.

Wait is as in Zhang's thesis, section 7.4.3: turnaround minus the time that the workflow takes with
the cluster to itself. So time lost in a cut counts as wait too, and waits that a run hides do not.
The time alone is taken from `giant`: it is one job on as many nodes as the workflow can use, so its
makespan less its wait is that time. Relative wait is wait over that time, for each run, before any
mean (figure 12). CPU hours are those that jobs held.

Averages over clusters are over the paper's five, each with the same weight.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, permutations, product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.model.usage import Usage, usage_of
from windrow.recipes.logs.clusters import CLUSTERS as FIGURE_11
from windrow_lab.campaign.campaign import Campaign
from windrow_lab.reproductions.paired import PairedTest, paired_t_test
from windrow_lab.reproductions.paper import TableResults, printed
from windrow_lab.reproductions.zhang.plan import (
    CLUSTERS,
    POLICIES,
    STRATEGY_NAMES,
    WIDTHS,
    Configuration,
    ZhangPlan,
)

Floats = NDArray[np.float64]
Chosen = Callable[[Configuration], bool]
Three = tuple[float, ...]
"""Of individual, giant and zhang."""

PRINTED_WAIT_S: dict[str, list[int]] = printed("zhang")["figure_10a"]
"""Figure 10 (a), FCFS: mean waits of individual, giant and hybrid."""

_HOUR_S = 3600


def every_one(_: Configuration) -> bool:
    """Chooses all workflows."""
    return True


def of_application(application: str) -> Chosen:
    """Chooses the workflows of one application."""
    return lambda c: c.application == application


_SIZES: dict[str, Chosen] = {"small": lambda c: not c.is_large, "large": lambda c: c.is_large}


@dataclass(frozen=True, slots=True)
class ZhangFigure:
    """A figure of the paper: one group of bars for each place, one bar for each strategy."""

    figure: str
    caption: str
    unit: str
    groups: tuple[str, ...]
    values: dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class StrategyPair:
    """Two strategies on one cluster under one policy. `by_run` pairs all runs, as the paper does;
    `by_time` pairs the means over all workflows at each submission time, which are nearer to being
    independent."""

    cluster: str
    policy: str
    first: str
    second: str
    by_run: PairedTest
    by_time: PairedTest


@dataclass(frozen=True, slots=True)
class Means:
    """The mean waits of one cluster under one policy, as (individual, giant, zhang), and print's
    if it has them."""

    cluster: str
    policy: str
    wait_h: tuple[float, ...]
    relative_wait: tuple[float, ...]
    cpu_h: tuple[float, ...]
    printed_h: tuple[float, ...] | None

    @property
    def agrees(self) -> bool | None:
        """Whether the three strategies come in print's order; None if print has no numbers."""
        if self.printed_h is None:
            return None
        return ranking(self.wait_h) == ranking(self.printed_h)


@dataclass(frozen=True, slots=True)
class WorkflowGroup:
    """The runs of an application, or of small or large workflows, on the five clusters under one
    policy.

    Means are as (individual, giant, zhang); tests, by run, are of individual and of giant against
    zhang.
    """

    name: str
    policy: str
    wait_h: tuple[float, ...]
    relative_wait: tuple[float, ...]
    cpu_h: tuple[float, ...]
    tests: tuple[PairedTest, ...]


@dataclass(frozen=True, slots=True)
class _Grid:
    """One cluster's runs. Axes: policy, workflow, strategy, submission time; NaN if a run
    failed."""

    wait_s: Floats
    relative_wait: Floats
    cpu_s: Floats
    individually: Floats


class ZhangResults(TableResults):
    """Looks up runs by cluster, policy and strategy."""

    def __init__(self, plan: ZhangPlan, tables: Sequence[pa.Table]) -> None:
        super().__init__(tables)
        self.plan = plan
        self.clusters = tuple(log.name for log in plan.logs)
        pairs = zip(plan.campaigns, tables, strict=True)
        self._grids = {campaign.logs[0].name: _grid(campaign, table) for campaign, table in pairs}

    def runs(
        self, what: str, cluster: str, policy: str, strategy: str, chosen: Chosen = every_one
    ) -> NDArray[np.float64]:
        """wait_s, relative_wait, cpu_s or individually of each chosen workflow (rows) and
        submission time (columns)."""
        kept = [i for i, c in enumerate(self.plan.configurations) if chosen(c)]
        values: Floats = getattr(self._grids[cluster], what)
        return values[list(POLICIES).index(policy), kept, STRATEGY_NAMES.index(strategy)]

    def mean(
        self,
        what: str,
        clusters: Sequence[str],
        policy: str,
        strategy: str,
        chosen: Chosen = every_one,
    ) -> float:
        """The mean of `runs`, for each cluster, then over clusters; NaN if no run is left."""
        return float(
            np.mean(
                [_mean(self.runs(what, cluster, policy, strategy, chosen)) for cluster in clusters]
            )
        )

    def means(self) -> list[Means]:
        """Every cluster under every policy."""
        found = []
        for policy, cluster in product(POLICIES, self.clusters):
            if policy == "FCFS":
                there = PRINTED_WAIT_S.get(cluster)
            else:
                there = None
            found.append(
                Means(
                    cluster,
                    policy,
                    *self._three((cluster,), policy),
                    _hours(there) if there else None,
                )
            )
        return found

    def _three(
        self, clusters: Sequence[str], policy: str, chosen: Chosen = every_one
    ) -> tuple[Three, Three, Three]:
        """Mean waits in hours, relative waits and CPU hours, each of the three strategies."""
        wait_h, relative, cpu_h = (
            tuple(
                self.mean(what, clusters, policy, s, chosen) / _UNITS[what][1]
                for s in STRATEGY_NAMES
            )
            for what in ("wait_s", "relative_wait", "cpu_s")
        )
        return wait_h, relative, cpu_h

    def groups(self) -> list[WorkflowGroup]:
        """Every application, then small and large workflows, under every policy."""
        parts = {app: of_application(app) for app in WIDTHS} | _SIZES
        found = []
        for policy, (name, chosen) in product(POLICIES, parts.items()):
            each = [
                [self.runs("wait_s", c, policy, s, chosen).ravel() for c in CLUSTERS]
                for s in STRATEGY_NAMES
            ]
            individual, giant, zhang = (np.concatenate(waits) for waits in each)
            tests = (paired_t_test(individual, zhang), paired_t_test(giant, zhang))
            found.append(WorkflowGroup(name, policy, *self._three(CLUSTERS, policy, chosen), tests))
        return found

    def comparisons(self) -> list[StrategyPair]:
        """Every pair of strategies on every cluster under every policy."""
        cells = product(POLICIES, self.clusters, combinations(STRATEGY_NAMES, 2))
        return [self.compare(cluster, policy, *pair) for policy, cluster, pair in cells]

    def compare(
        self, cluster: str, policy: str, first: str, second: str, chosen: Chosen = every_one
    ) -> StrategyPair:
        """The paired t-tests of two strategies' waits, in seconds."""
        a, b = (
            self.runs("wait_s", cluster, policy, strategy, chosen) for strategy in (first, second)
        )
        at_once = paired_t_test(a, b)
        # A mean over workflows is only taken where all of them ran: another set would be another
        # quantity.
        return StrategyPair(
            cluster, policy, first, second, at_once, paired_t_test(a.mean(axis=0), b.mean(axis=0))
        )

    def leaders(self, cluster: str, policy: str) -> tuple[str, ...]:
        """The strategies that none beats there: no other's mean wait is less with p below 0.05, by
        run."""
        tests = {
            pair: self.compare(cluster, policy, *pair).by_run
            for pair in permutations(STRATEGY_NAMES, 2)
        }
        beaten = {
            other
            for (_, other), test in tests.items()
            if test.difference < 0 and test.is_significant()
        }
        return tuple(s for s in STRATEGY_NAMES if s not in beaten)

    def figures(self) -> list[ZhangFigure]:
        """Every bar chart of the paper, in its order; figure 10 (a) as printed, too."""
        every = [((cluster,), every_one) for cluster in self.clusters]
        waits = [
            self._bars(
                f"10 ({part})", f"Mean wait under {p}.", "wait_s", [(*c, c, p, e) for c, e in every]
            )
            for p, part in zip(POLICIES, "abc", strict=True)
        ]
        ada = [(p, ("Ada",), p, every_one) for p in POLICIES]
        held = [(*c, c, "FS", e) for c, e in every]
        sizes = [
            (f"{p}, {size}", ("RTC",), p, chosen)
            for size, chosen in _SIZES.items()
            for p in POLICIES
        ]
        applications = [(app, CLUSTERS, "FL", of_application(app)) for app in WIDTHS]
        return [
            _figure_10_a_in_print(),
            *waits,
            self._bars("12", _FIGURE_12, "relative_wait", ada),
            self._bars("13", "Mean CPU hours that jobs held, under FS.", "cpu_s", held),
            self._bars("14", _FIGURE_14, "wait_s", sizes),
            self._bars("15", _FIGURE_15, "wait_s", applications),
        ]

    def _bars(
        self,
        figure: str,
        caption: str,
        what: str,
        places: Sequence[tuple[str, Sequence[str], str, Chosen]],
    ) -> ZhangFigure:
        """A group of bars for each place: its name, clusters, policy and workflows."""
        unit, scale = _UNITS[what]
        values = {
            s: tuple(self.mean(what, c, p, s, of) / scale for _, c, p, of in places)
            for s in STRATEGY_NAMES
        }
        return ZhangFigure(figure, caption, unit, tuple(place[0] for place in places), values)


_FIGURE_12 = "Mean relative wait on Ada: wait over the time that the workflow takes alone."
_FIGURE_14 = "Mean wait on RTC of small workflows, up to 128 wide, and of large ones."
_FIGURE_15 = "Mean wait by application, over the five clusters, under FL."
_UNITS = {
    "wait_s": ("mean wait, h", _HOUR_S),
    "cpu_s": ("mean CPU hours", _HOUR_S),
    "relative_wait": ("mean relative wait", 1),
}


def _figure_10_a_in_print() -> ZhangFigure:
    there = {
        s: _hours([PRINTED_WAIT_S[c][i] for c in CLUSTERS]) for i, s in enumerate(STRATEGY_NAMES)
    }
    words = "Mean wait under FCFS, as printed."
    return ZhangFigure("10 (a) in print", words, "mean wait, h", CLUSTERS, there)


def ranking(values: Sequence[float]) -> tuple[str, ...]:
    """The strategies from the least to the largest value."""
    return tuple(STRATEGY_NAMES[i] for i in sorted(range(len(values)), key=values.__getitem__))


def _grid(campaign: Campaign, table: pa.Table) -> _Grid:
    """Rows come sorted by their key and all are there: they fill a box, whose sides are put in the
    campaign's order."""
    strategies = [s.name for s in campaign.strategies]
    assert tuple(strategies) == STRATEGY_NAMES, "strategies are looked up by their place"
    sides = [[r.label for r in campaign.rules], [w.name for w in campaign.workflows], strategies]
    shape = (*map(len, sides), len(campaign.submit_s))
    order = np.ix_(*(np.argsort(np.argsort(side)) for side in sides), np.arange(shape[-1]))

    def column(name: str) -> Floats:
        values = table.column(name).cast(pa.float64()).to_numpy()
        return np.asarray(values, dtype=np.float64).reshape(shape)[order]

    makespan = column("makespan_s")
    queued = column("queue_wait_s")
    giant = strategies.index("giant")
    alone = (makespan - queued)[:, :, giant : giant + 1]
    wait = makespan - alone
    return _Grid(wait, wait / alone, column("allocated_node_s"), column("individually"))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    if len(known):
        return float(known.mean())
    return float("nan")


def _hours(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(s / _HOUR_S for s in seconds)


def figure_11(plan: ZhangPlan) -> Iterator[tuple[str, Usage, Usage | None]]:
    """For each cluster of the plan its name, our row, and the printed one if there is one."""
    for source in plan.logs:
        yield source.name, usage_of(source.load("actual")), printed_usage(source.name)


def printed_usage(cluster: str) -> Usage | None:
    """The row that the paper prints; None for a cluster that it does not have."""
    row = FIGURE_11.get(cluster.lower())
    if row is None:
        return None
    return Usage(**{field.name: getattr(row, field.name) for field in fields(Usage)})
