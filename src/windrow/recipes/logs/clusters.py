"""Stand-ins for the five clusters of Y. Zhang, C. Koelbel and K. Cooper, "Batch Queue Resource
Scheduling for Workflow Applications", 2009, whose logs are private: calibrated to that paper's
figure 11, as long as in its figure 8.

Given by the paper: cluster size, jobs per day, mean width, mean run time, actual and requested
load. All of these hold at once, because loads fix two more means: width times run time (so how the
two are correlated) and width times requested time. The paper prints the latter as well, as the
request size: it agrees to its last digit, but for Ada (25 printed, 25.67 follows from the requested
load; cut, not rounded). Loads win.

Chosen by us, for the paper does not say: the laws' shapes (`calibration`), the queue's limits,
users, the daily cycle (that of the Lublin-Feitelson model), half the arrivals on weekends (45 to 57
% on four public logs), and gaps that are log-normal, so that with the cycles they vary as much as
on those logs.

Rule: jobs are sampled evenly, not independently. Their quantiles are spread over [0, 1) with a
random start and then shuffled, and from 1,000 jobs on the run-time law is corrected for what was
drawn. So each log, not only the mean of many, has the table's means.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from windrow.errors import UserError
from windrow.files import table_beside
from windrow.model import Log
from windrow.model.graph import Ints
from windrow.model.usage import Usage
from windrow.model.workflow import Floats
from windrow.recipes.logs.arrivals import DAY_S, Cycle, arrive, daily_cycle, weekly_cycle
from windrow.recipes.logs.calibration import WidthLaw, WidthShape, fit_runs, fit_widths
from windrow.recipes.logs.lublin import PUBLISHED, refuse_too_many
from windrow.recipes.logs.requests import draw_users, overestimate_for, requested_times

WEEKEND = 0.5
_LOG_GAP_SPREAD = 1.4
# Two irrational steps: multiples of them, modulo one, fill the unit square evenly.
_RUN_STEP = (5**0.5 - 1) / 2
_REQUEST_STEP = 2**0.5 - 1
_CORRECTIONS = 20
_CLOSE_ENOUGH = 1e-5
_CORRECT_FROM_JOBS = 1000


@dataclass(frozen=True, slots=True)
class ClusterProfile(Usage):
    """A row of figure 11 with that of figure 8 (`site`, `days`), and what we chose for it."""

    name: str
    site: str
    days: int
    shape: WidthShape
    limit_h: int

    @property
    def work_node_h(self) -> float:
        """Mean width times run time, as the actual load implies it."""
        return self.actual_load * self.nodes * 24 / self.jobs_per_day

    @property
    def correlation(self) -> float:
        """Mean work over the product of mean width and mean run time; 1 if these are
        independent."""
        return self.work_node_h / (self.width * self.run_h)


def _cluster(name: str, shape: Mapping[str, float], **row: Any) -> ClusterProfile:
    return ClusterProfile(name=name, shape=WidthShape(**shape), **row)


CLUSTERS: Mapping[str, ClusterProfile] = {
    name: _cluster(name, **row) for name, row in table_beside(__file__).items()
}


def cluster_log(
    cluster: ClusterProfile,
    name: str,
    stream: Callable[[str], Generator],
    *,
    nodes: int,
    jobs: int | None,
    days: float | None,
    load: float,
    users: int,
) -> Log:
    """A log of `jobs` jobs or of `days` days (one of them at least).

    With both, these jobs come in these days. With one, jobs come as often as it takes for `load` on
    a machine of `nodes`: on the cluster's own nodes and load, as often as the table says.
    """
    rate = cluster.jobs_per_day * (load / cluster.actual_load) * (nodes / cluster.nodes)
    if jobs is None:
        refuse_too_many(rate * (days or 0))
        jobs = max(1, round(rate * (days or 0)))
    span_s = DAY_S * (jobs / rate if days is None else days)
    widths, runs, requests = _jobs(cluster, _widths(cluster, nodes), jobs, stream)
    gaps = np.exp(_LOG_GAP_SPREAD * stream("gaps").standard_normal(jobs - 1))
    return Log(
        name=name,
        machine_nodes=nodes,
        job=np.arange(1, jobs + 1),
        submit_s=arrive(gaps, _cycle(), span_s),
        nodes=widths,
        requested_s=requests,
        run_s=runs,
        user=draw_users(stream("users"), jobs, users),
    )


def _widths(cluster: ClusterProfile, nodes: int) -> WidthLaw:
    law = fit_widths(cluster.shape, nodes, cluster.width)
    if law is None:
        least = nodes
        enough = cluster.nodes
        while (
            enough - least > 1
        ):  # the machine of `enough` nodes always does, that of `least` never
            middle = (least + enough) // 2
            least, enough = (
                (middle, enough)
                if fit_widths(cluster.shape, middle, cluster.width) is None
                else (least, middle)
            )
        raise UserError(
            f"the jobs of {cluster.name} are {cluster.width} nodes wide on average, "
            f"which does not fit a machine of {nodes}; give at least {enough} nodes"
        )
    return law


def _jobs(
    cluster: ClusterProfile, law: WidthLaw, jobs: int, stream: Callable[[str], Generator]
) -> tuple[Ints, Ints, Ints]:
    """Widths, run times and requested times in random order, evenly sampled."""
    limit_s = cluster.limit_h * 3600
    start = stream("jobs").random(3)
    rank = np.arange(jobs)
    widths = law.quantile((rank + start[0]) / jobs)
    runs = _runs(cluster, law, widths, (rank * _RUN_STEP + start[1]) % 1)
    draw = (rank * _REQUEST_STEP + start[2]) % 1
    ratio = cluster.requested_load / cluster.actual_load
    requests = requested_times(
        runs, draw, overestimate_for(runs, draw, widths, limit_s, ratio), limit_s
    )
    order = stream("order").permutation(jobs)
    return widths[order], runs[order], requests[order]


def _runs(cluster: ClusterProfile, law: WidthLaw, widths: Ints, draw: Floats) -> Ints:
    """Run times whose mean, and whose mean product with the widths, are those of the table on these
    very draws."""
    target_s = cluster.run_h * 3600
    target_work = cluster.work_node_h * 3600
    mean_s = target_s
    correlation = cluster.correlation
    runs = fit_runs(law, mean_s, correlation, cluster.limit_h * 3600).quantile(widths, draw)
    for _ in range(_CORRECTIONS if len(widths) >= _CORRECT_FROM_JOBS else 0):
        run_short = target_s / float(runs.mean())
        work_short = target_work / float((widths * runs).mean())
        if max(abs(run_short - 1), abs(work_short - 1)) < _CLOSE_ENOUGH:
            break
        mean_s *= run_short
        correlation *= work_short / run_short
        runs = fit_runs(law, mean_s, correlation, cluster.limit_h * 3600).quantile(widths, draw)
    return runs


def _cycle() -> Cycle:
    """Of the week: each day as published, fewer jobs at weekends."""
    numbers = PUBLISHED["batch"]
    return weekly_cycle(daily_cycle(numbers.day_shape, numbers.day_scale), WEEKEND)
