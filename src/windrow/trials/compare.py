"""Strategies side by side: the same workflow on the same cluster at the same times, once by each
strategy.

One warm cluster is moved through the submission times and cloned for every trial, so that nothing
is simulated twice. What a row holds is measured as that of a real run is (`story.figures`), in
whole seconds, without telling its story (`trials.figures`); summaries are plain statistics over
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windrow.app.strategies import STRATEGIES, find_strategy
from windrow.errors import UserError
from windrow.formats.failure_log import read_failures
from windrow.formats.parquet import need_parquet
from windrow.model import Log, NodeShape, Workflow
from windrow.model.failures import Failures
from windrow.story.figures import NODE_TIME
from windrow.strategies import Strategy
from windrow.trials.figures import Figures, trial_figures
from windrow.trials.scenario import Scenario, embedded_log, submission_times

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]
Tell = Callable[[int, int], None]
"""Told, now and then, how many trials are done and how many there are."""

_HOUR_S = 3600


@dataclass(frozen=True)
class Comparison:
    """The results. `rows` has one plain dict per submission time and strategy, in that order."""

    scenario: Scenario
    times_s: tuple[int, ...]
    strategies: tuple[str, ...]
    rows: list[Row]

    def column(self, strategy: str, name: str) -> NDArray[np.float64]:
        """One measure of one strategy, in the order of the submission times."""
        return np.array(
            [row[name] for row in self.rows if row["strategy"] == strategy], dtype=np.float64
        )

    def summaries(self) -> list[Row]:
        """One dict per strategy: means and spread over the submission times."""
        return [self._summary(name) for name in self.strategies]

    def wins(self) -> dict[str, int]:
        """At how many submission times each strategy had the shortest makespan; ties count for
        each."""
        makespans = np.stack([self.column(name, "makespan_s") for name in self.strategies])
        best = (makespans == makespans.min(axis=0)).sum(axis=1)
        return dict(zip(self.strategies, best.tolist(), strict=True))

    def best(self) -> str:
        """The strategy with the shortest mean makespan; ties go to fewer node-hours, then to the
        first."""
        return str(
            min(self.summaries(), key=lambda s: (s["makespan_s_mean"], s["allocated_node_h_mean"]))[
                "strategy"
            ]
        )

    def to_table(self) -> pyarrow.Table:
        """The rows as an Arrow table; `.to_table().to_pandas()` is a data frame if pandas is
        installed."""
        need_parquet("an Arrow table")
        import pyarrow  # noqa: PLC0415  (heavy, and seldom wanted)

        return pyarrow.Table.from_pylist(self.rows)

    def _summary(self, name: str) -> Row:
        makespan = self.column(name, "makespan_s")
        p10, median, p90 = np.percentile(makespan, [10, 50, 90]).tolist()
        keys = self.rows[0].keys() - {"at_s", "strategy"}
        mean = {key: float(self.column(name, key).mean()) for key in keys}
        summary: Row = {
            "strategy": name,
            "runs": len(makespan),
            "makespan_s_mean": mean["makespan_s"],
            "makespan_s_median": median,
            "makespan_s_p10": p10,
            "makespan_s_p90": p90,
            "visible_wait_s_mean": mean["visible_wait_s"],
            "hidden_wait_s_mean": mean["hidden_wait_s"],
            **{f"{part}_node_h_mean": mean[f"{part}_node_s"] / _HOUR_S for part in NODE_TIME},
            "jobs_mean": mean["jobs"],
            "killed_jobs_mean": mean["killed_jobs"],
        }
        if self.scenario.failures:
            summary["node_failures_mean"] = mean["node_failures"]
        return summary


def compare(
    workflow: Workflow,
    log: Log | None = None,
    *,
    times: Iterable[int] | None = None,
    strategies: Iterable[str | Strategy] | None = None,
    cap: int = 16,
    requests: str = "actual",
    policy: str = "conservative",
    margin: float = 1.1,
    shape: NodeShape | None = None,
    noise: float = 0.0,
    seed: int = 0,
    priority: str = "arrival",
    placement: str = "count",
    failures: str | Failures = "none",
    tell: Tell | None = None,
) -> Comparison:
    """Run the workflow with each strategy at each time (seconds from the log's first submission).

    By default: a synthetic log of 128 nodes, all strategies, and every six hours from day 1 to day
    7. A strategy is a name, or your own object; `failures` are like `nodes=30d,repair=4h`. A trial
    takes a millisecond, or some 100 ms if the strategy looks ahead.
    """
    if shape is None:
        shape = NodeShape()
    if log is None:
        base = embedded_log()
    else:
        base = log
    if isinstance(failures, str):
        fails = read_failures(failures)
    else:
        fails = failures
    scenario = Scenario(
        workflow,
        base,
        requests,
        policy,
        cap,
        margin,
        shape,
        noise,
        seed,
        priority,
        placement,
        fails,
    )
    return compare_in(scenario, times, strategies, tell)


def compare_in(
    scenario: Scenario,
    times: Iterable[int] | None = None,
    strategies: Iterable[str | Strategy] | None = None,
    tell: Tell | None = None,
) -> Comparison:
    """The same, for a scenario that is already put together."""
    chosen = [
        find_strategy(s) if isinstance(s, str) else s
        for s in (STRATEGIES if strategies is None else strategies)
    ]
    names = [strategy.name for strategy in chosen]
    if not names or len(set(names)) < len(names):
        raise UserError(
            f"strategies to compare need names that differ, at least one; given: {', '.join(names)}"
        )
    when = tuple(
        submission_times(scenario.log) if times is None else sorted({int(time) for time in times})
    )
    if not when:
        raise UserError("a comparison needs at least one submission time")
    rows = _rows(scenario, chosen, when, tell or (lambda _done, _total: None))
    return Comparison(scenario, when, tuple(names), rows)


def _rows(
    scenario: Scenario, strategies: Sequence[Strategy], times: Sequence[int], tell: Tell
) -> list[Row]:
    scenario.warm(scenario.cluster(), times[-1])  # refuses times beyond the log before any trial
    cluster = scenario.cluster()
    rows = []
    for at_s in times:
        scenario.warm(cluster, at_s)
        given = scenario.given(at_s)
        for strategy in strategies:
            run = trial_figures(cluster.clone(), scenario.workflow, strategy, **given)
            rows.append({"at_s": at_s, "strategy": strategy.name, **measured(run)})
            if scenario.failures:
                rows[-1]["node_failures"] = run.node_failures
            tell(len(rows), len(times) * len(strategies))
    return rows


def measured(run: Figures) -> Row:
    """What one run counts for in a comparison."""
    told: Row = {
        name: getattr(run, name) for name in ("makespan_s", "visible_wait_s", "hidden_wait_s")
    }
    return told | run.node_time.parts() | {"jobs": run.jobs, "killed_jobs": run.killed_jobs}
