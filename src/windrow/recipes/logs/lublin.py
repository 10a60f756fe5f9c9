"""The workload model of U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers:
modeling the characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63(11),
2003, with its published numbers.

Sizes: serial with one probability, a power of two with another, else any size; log2 of a parallel
size is uniform in two stages. Run times: the logarithm follows one of two gamma distributions, the
first with probability pa * size + pb, cut at 12 (45 hours). Arrivals: the logarithm of a gap
follows a gamma distribution, cut at 13 (5 days), and the time of day stretches gaps (`arrivals`).

Deviations, each for a reason:
- The published numbers fit 128 nodes. For other machines the upper end of the sizes moves with log2
  of the nodes and the change of stage keeps its distance below it. On few nodes (below 16 for
  batch, 32 for all) it would fall under the smallest parallel job; there it stands half way, as the
  authors advise. No size exceeds the machine: a power of two that would is halved. The line for the
  two gammas stays as published, so above 233 nodes (batch) all runs are long.
- The first job arrives at time 0, and times are cut to whole seconds once, not gap by gap.
- Requested times and users, which the model lacks, come from `requests`; the queue's limit is 48 h.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from windrow.errors import UserError
from windrow.model import Log
from windrow.model.bounds import LOG_JOBS_MAX
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes.logs.arrivals import DAY_S, SLOT_S, arrive, daily_cycle
from windrow.recipes.logs.requests import draw_users, requested_times

LIMIT_S = 48 * 3600
_LOG_RUN_MAX = 12.0
_LOG_GAP_MAX = 13.0

JobDraw = Callable[[int], tuple[Ints, Ints]]
"""Draws sizes and run times of a number of jobs."""


@dataclass(frozen=True, slots=True)
class LublinNumbers:
    """One published set. `medium_below` and `high_below` count from log2 of the widest job and of
    the machine."""

    serial: float
    power_of_two: float
    low: float
    medium_below: float
    high_below: float
    first_stage: float
    run_shapes: tuple[float, float]
    run_scales: tuple[float, float]
    run_slope: float
    run_offset: float
    gap_shape: float
    gap_scale: float
    day_shape: float
    day_scale: float


PUBLISHED: Mapping[str, LublinNumbers] = {
    "batch": LublinNumbers(
        serial=0.2927, power_of_two=0.6686, low=1.2, medium_below=2.0, high_below=0.0,
        first_stage=0.875,
        run_shapes=(6.57, 639.1), run_scales=(0.823, 0.0156), run_slope=-0.003, run_offset=0.6986,
        gap_shape=6.0415 * 1.0519, gap_scale=0.8531, day_shape=6.1271, day_scale=5.2740,
    ),
    "interactive": LublinNumbers(
        serial=0.1541, power_of_two=0.625, low=1.0, medium_below=2.5, high_below=1.5,
        first_stage=0.705,
        run_shapes=(3.8351, 7.073), run_scales=(0.6605, 0.6856), run_slope=-0.0118,
        run_offset=0.9156,
        gap_shape=6.5510 * 0.9797, gap_scale=0.6621, day_shape=8.9186, day_scale=3.6680,
    ),
    "all": LublinNumbers(
        serial=0.244, power_of_two=0.576, low=0.8, medium_below=2.5, high_below=0.0,
        first_stage=0.86,
        run_shapes=(4.2, 312.0), run_scales=(0.94, 0.03), run_slope=-0.0054, run_offset=0.78,
        gap_shape=10.2303 * 1.0225, gap_scale=0.4871, day_shape=8.1737, day_scale=3.9631,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SizeRange:
    """log2 of parallel sizes: the two stages are low..medium and medium..high."""

    low: float
    medium: float
    high: float


def size_range(numbers: LublinNumbers, nodes: int) -> SizeRange:
    """The stages on a machine of `nodes`; on 128 the published ones."""
    high = max(math.log2(nodes) - numbers.high_below, min(1.0, math.log2(nodes)))
    medium = max(high - numbers.medium_below, high / 2)
    return SizeRange(min(numbers.low, medium / 2), medium, high)


def draw_sizes(rng: Generator, numbers: LublinNumbers, nodes: int, jobs: int) -> Ints:
    """Nodes of each job, 1 to `nodes`."""
    stages = size_range(numbers, nodes)
    kind = rng.random(jobs)
    first = rng.random(jobs) < numbers.first_stage
    place = rng.random(jobs)
    start = np.where(first, stages.low, stages.medium)
    end = np.where(first, stages.medium, stages.high)
    log_size = start + (end - start) * place
    rounded = np.clip(np.floor(log_size + 0.5), 1, max(1, math.floor(math.log2(nodes))))
    log_size = np.where(kind <= numbers.serial + numbers.power_of_two, rounded, log_size)
    parallel = np.maximum(np.floor(np.exp2(log_size) + 0.5), 2)
    sizes: Floats = np.where(kind <= numbers.serial, 1, np.minimum(parallel, nodes))
    return sizes.astype(np.int64)


def draw_runs(rng: Generator, numbers: LublinNumbers, sizes: Ints) -> Ints:
    """Run times in whole seconds. A draw beyond the cut is drawn again, the choice of gamma
    included."""
    short = np.clip(numbers.run_slope * sizes + numbers.run_offset, 0, 1)
    log_run = np.full(len(sizes), np.inf)
    shapes = np.array(numbers.run_shapes)
    scales = np.array(numbers.run_scales)
    left = np.arange(len(sizes))
    while len(left):
        gamma = (rng.random(len(left)) >= short[left]).astype(np.intp)
        log_run[left] = rng.gamma(shapes[gamma], scales[gamma])
        left = left[log_run[left] > _LOG_RUN_MAX]
    run_s: Ints = np.exp(log_run).astype(np.int64)
    return run_s


def draw_gaps(rng: Generator, numbers: LublinNumbers, jobs: int) -> Floats:
    """Seconds between arrivals, before the time of day stretches them. A draw beyond the cut is
    drawn again."""
    log_gap = rng.gamma(numbers.gap_shape, numbers.gap_scale, jobs)
    left = np.flatnonzero(log_gap > _LOG_GAP_MAX)
    while len(left):
        log_gap[left] = rng.gamma(numbers.gap_shape, numbers.gap_scale, len(left))
        left = left[log_gap[left] > _LOG_GAP_MAX]
    return np.asarray(np.exp(log_gap), dtype=np.float64)


def lublin_log(
    name: str,
    stream: Callable[[str], Generator],
    *,
    nodes: int,
    jobs: int | None,
    days: float | None,
    kind: str,
    load: float,
    widest: int,
    overestimate: float,
    users: int,
) -> Log:
    """A log of `jobs` jobs or of `days` days (one of them at least), at `load`, or with published
    gaps if it is 0.

    With both, `load` is not used: these jobs come in these days. With `days` alone, jobs are added
    until their work makes up the load, so it is met to within one job. `widest`, unless 0, stands
    for the machine if sizes are drawn. `stream` gives a random generator per column.
    """
    numbers = PUBLISHED[kind]
    size_rng = stream("sizes")
    run_rng = stream("runs")

    def draw(count: int) -> tuple[Ints, Ints]:
        sizes = draw_sizes(size_rng, numbers, min(nodes, widest or nodes), count)
        return sizes, draw_runs(run_rng, numbers, sizes)

    sizes, runs, submits = _columns(
        numbers, draw, stream("gaps"), jobs=jobs, days=days, capacity=load * nodes
    )
    return Log(
        name=name,
        machine_nodes=nodes,
        job=np.arange(1, len(sizes) + 1),
        submit_s=submits,
        nodes=sizes,
        requested_s=requested_times(
            runs, stream("requests").random(len(runs)), overestimate, LIMIT_S
        ),
        run_s=runs,
        user=draw_users(stream("users"), len(runs), users),
    )


def _columns(
    numbers: LublinNumbers,
    draw: JobDraw,
    rng: Generator,
    *,
    jobs: int | None,
    days: float | None,
    capacity: float,
) -> tuple[Ints, Ints, Ints]:
    """Sizes, run times and submissions. `capacity` is the work to offer per second; 0 leaves gaps
    as published."""
    cycle = daily_cycle(numbers.day_shape, numbers.day_scale)
    span_s = None if days is None else days * DAY_S
    if jobs is None and span_s is not None and capacity == 0:
        gaps = _gaps_for_points(rng, numbers, cycle.points(span_s))
        sizes, runs = draw(len(gaps) + 1)
        return sizes, runs, arrive(gaps, cycle)
    sizes, runs = draw(jobs) if jobs is not None else _jobs_for_work(draw, capacity * (span_s or 0))
    if span_s is None and capacity > 0:
        span_s = float((sizes * runs).sum()) / capacity
    return sizes, runs, arrive(draw_gaps(rng, numbers, len(sizes) - 1), cycle, span_s)


def _jobs_for_work(draw: JobDraw, work_s: float) -> tuple[Ints, Ints]:
    """As many jobs as it takes to make up `work_s` node-seconds."""
    sizes, runs = draw(1000)
    while float((sizes * runs).sum()) < work_s:
        more_sizes, more_runs = draw(_twice(len(sizes)))
        sizes = np.concatenate((sizes, more_sizes))
        runs = np.concatenate((runs, more_runs))
    jobs = int(np.searchsorted(np.cumsum(sizes * runs), work_s)) + 1
    return sizes[:jobs], runs[:jobs]


def _gaps_for_points(rng: Generator, numbers: LublinNumbers, points: float) -> Floats:
    """As many gaps as end within `points`."""
    gaps = draw_gaps(rng, numbers, 1000)
    while gaps.sum() / SLOT_S < points:
        gaps = np.concatenate((gaps, draw_gaps(rng, numbers, _twice(len(gaps)))))
    return gaps[: int(np.searchsorted(np.cumsum(gaps) / SLOT_S, points))]


def _twice(jobs: int) -> int:
    """How many more to draw after `jobs`: as many again, up to the most a log may have."""
    refuse_too_many(jobs + 1)
    return min(jobs, LOG_JOBS_MAX - jobs)


def refuse_too_many(jobs: float) -> None:
    """UserError if a log would not fit into memory."""
    if jobs > LOG_JOBS_MAX:
        raise UserError(
            f"a log of more than {LOG_JOBS_MAX:,} jobs is not generated; request fewer days or "
            "fewer jobs"
        )
