"""Five ways to give space to a canonical batch-pipeline workload, and models of how long it runs
(Bent, chapter 4).

W pipelines of D jobs each. Job d of every pipeline reads batch volume d and one private volume, and
writes one; all batch volumes have one size, and so have all private ones. A storage allocation says
which volumes have space when:

    All         every volume, from the start
    AllPrivate  all private volumes; batch volumes one after another, so jobs meet at barriers
    AllBatch    all batch volumes, and two private ones for each pipeline at work
    Slice       one batch volume, a private one for each pipeline, and one more for each job at work
    Minimal     pipelines in groups, each group a Slice, so that batch volumes are fetched again for each group

Law: All implies AllBatch and AllPrivate, AllPrivate implies Slice, and each implies Minimal. Units
are the caller's; sizes are whole numbers, so that how many volumes fit is exact.

The models: `bent` divides by bandwidths and caps what runs at once by the nodes within the mean of
eq. 4.25; as printed (`is_printed`) that mean is capped by the width alone. Neither knows that flows
share the wide area.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf

ALL, ALL_PRIVATE, ALL_BATCH, SLICE, MINIMAL = ALLOCATIONS = (
    "All",
    "AllPrivate",
    "AllBatch",
    "Slice",
    "Minimal",
)
KEEPS_BATCH = (ALL, ALL_BATCH)


@dataclass(frozen=True, slots=True)
class PipelineWorkload:
    """A canonical workload by its six variables: W, D, B, P, R and v. `variation` is a share of
    `run_s`."""

    width: int
    depth: int
    batch: int
    private: int
    run_s: float = 0.0
    variation: float = 0.0

    @property
    def jobs(self) -> int:
        """Of all pipelines."""
        return self.width * self.depth


@dataclass(frozen=True, slots=True)
class Environment:
    """Where it runs: C nodes with `storage` in all, bandwidths to home and within, failures of all;
    a node's memory."""

    nodes: int
    storage: int
    remote: float
    local: float
    failures_per_s: float = 0.0
    latency_s: float = 0.0
    memory: int = 0

    @property
    def through(self) -> float:
        """The bandwidth of both in series (eq. 4.9)."""
        return 1 / (1 / self.remote + 1 / self.local)


def least_storage(allocation: str, work: PipelineWorkload) -> int:
    """The least space in which it is possible (eqs. 4.1 to 4.5)."""
    w = work.width
    d = work.depth
    b = work.batch
    p = work.private
    return {
        ALL: d * b + (d + 1) * p * w,
        ALL_PRIVATE: b + (d + 1) * p * w,
        ALL_BATCH: d * b + 2 * p,
        SLICE: b + p * w + p,
        MINIMAL: b + 2 * p,
    }[allocation]


def possible(work: PipelineWorkload, storage: int) -> tuple[str, ...]:
    """The allocations for which there is space."""
    return tuple(one for one in ALLOCATIONS if least_storage(one, work) <= storage)


def at_once(allocation: str, work: PipelineWorkload, storage: int) -> int:
    """How many pipelines can run at the same time (V_Exec), whatever the nodes; of Slice, while no
    depth begins."""
    room = storage - work.batch * (work.depth if allocation == ALL_BATCH else 1)
    if allocation in (ALL, ALL_PRIVATE) or not work.private:
        return work.width
    if allocation == SLICE:
        return min(work.width, (room - work.private * work.width) // work.private)
    return min(work.width, room // (2 * work.private))


def groups(allocation: str, work: PipelineWorkload, storage: int) -> list[int]:
    """The widths of what runs one after another: batch volumes are fetched once for each."""
    if allocation != MINIMAL:
        return [work.width]
    most = at_once(MINIMAL, work, storage)
    whole, rest = divmod(work.width, most)
    sizes = [most] * whole
    if rest:
        sizes.append(rest)
    return sizes


def run_time_s(
    allocation: str, work: PipelineWorkload, where: Environment, *, is_printed: bool = False
) -> float:
    """What the model says; infinite if the allocation is not possible, or if failures never
    let it end."""
    if least_storage(allocation, work) > where.storage:
        return inf
    total = 0.0
    left = work.width
    is_warm = False
    while left:
        now = replace(work, width=left)
        took = sum(
            _one_group_s(allocation, replace(now, width=width), where, is_warm, is_printed)
            for width in groups(allocation, now, where.storage)
        )
        total += took
        busy = min(left, at_once(allocation, now, where.storage), where.nodes)
        failed = int(where.failures_per_s * took * busy / where.nodes)
        if failed >= left:
            return inf
        left = failed
        is_warm = allocation in KEEPS_BATCH
    return total


def _one_group_s(
    allocation: str, work: PipelineWorkload, where: Environment, is_warm: bool, is_printed: bool
) -> float:
    """Without failures, of pipelines that begin together (figs. 4.10 to 4.13)."""
    depth = work.depth
    if allocation == MINIMAL:
        allocation = SLICE
    private_s = 2 * (work.private / where.through + work.private * (depth - 1) / where.local)
    run_s = work.run_s * (1 + work.variation / _batch_volumes(allocation, work, where.storage))
    rest_s = private_s + run_s * depth
    warm_s = depth * work.batch / where.local + rest_s
    together = max(1.0, _mean_at_once(allocation, work, where, is_printed))
    phases = ceil(work.width / together - 1e-9)
    if is_warm:
        return phases * warm_s
    cold_s = depth * work.batch / where.through + rest_s
    return cold_s + (phases - 1) * warm_s


def _batch_volumes(allocation: str, work: PipelineWorkload, storage: int) -> float:
    """How many there is space for at once: the more, the less a barrier holds up. Infinite without
    barriers."""
    if allocation in KEEPS_BATCH:
        return inf
    if allocation == ALL_PRIVATE:
        private = (work.depth + 1) * work.width
    else:
        private = work.width + at_once(SLICE, work, storage)
    return max(1, min(work.depth, (storage - private * work.private) // max(1, work.batch)))


def _mean_at_once(
    allocation: str, work: PipelineWorkload, where: Environment, is_printed: bool
) -> float:
    """Pipelines at work, by which phases are counted; Slice has more of them at both ends (eq.
    4.25)."""
    if allocation != SLICE:
        return min(at_once(allocation, work, where.storage), where.nodes)
    jobs = work.jobs
    (wide, steady) = (at_once(one, work, where.storage) for one in (MINIMAL, SLICE))
    ends = min(wide, jobs // 2)
    if not is_printed:
        wide = min(wide, where.nodes)
        steady = min(steady, where.nodes)
    return min((2 * ends * wide + (jobs - 2 * ends) * steady) / jobs, where.nodes)


def best(work: PipelineWorkload, where: Environment, *, is_printed: bool = False) -> str | None:
    """The allocation that the model would take, the first of equals; None if none is possible,
    or would end."""
    times = {
        one: run_time_s(one, work, where, is_printed=is_printed)
        for one in possible(work, where.storage)
    }
    return min(
        (one for one, time_s in times.items() if time_s < inf), key=times.__getitem__, default=None
    )
