"""Workloads that move data, played on a cluster within a limit of space: the Python face of
`kernels.flows`.

A `DataFlow` is what a simulation knows of a workload: of a canonical one (compute times drawn from
a seed), or of any workflow. There, jobs that files or dependencies connect are one pipeline; a file
that no job writes is a batch volume if several read it, and an input from home if one does.

Law: the same data flow, allocation, environment and seed give the same answer, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from windrow.model import Workflow
from windrow.model.graph import Adjacency
from windrow.storage.roles import Role, roles
from windrow_lab.kernels.flows import advance as kernel
from windrow_lab.kernels.flows import state as at
from windrow_lab.kernels.flows.state import Floats, Ints
from windrow_lab.storage.allocations import (
    ALL,
    ALL_BATCH,
    ALL_PRIVATE,
    ALLOCATIONS,
    MINIMAL,
    SLICE,
    Environment,
    PipelineWorkload,
)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DataFlow:
    """Jobs of one pipeline stand together, level by level, the first of pipeline p at `pipes[p]`;
    lists are by job."""

    pipes: Ints
    level: Ints
    run_s: Floats
    parents: Adjacency
    batch: Adjacency
    inputs: Adjacency
    outputs: Adjacency
    volumes: Floats
    files: Floats
    is_kept: NDArray[np.bool_]

    @cached_property
    def pipe_of(self) -> Ints:
        """The pipeline of each job."""
        return np.repeat(np.arange(len(self.pipes) - 1), np.diff(self.pipes))

    @cached_property
    def is_written(self) -> NDArray[np.bool_]:
        """Of each file; the others come from home."""
        return np.isin(np.arange(len(self.files)), self.outputs.index)

    @cached_property
    def batch_need(self) -> float:
        """The most space for batch volumes, one job after another, level by level."""
        return float(self._held(self.by_level, ((self.batch,), self.volumes)).max())

    @cached_property
    def by_level(self) -> Ints:
        """Jobs in order: level by level."""
        return np.argsort(self.level, kind="stable")

    @cached_property
    def peaks(self) -> Floats:
        """The most space that each pipeline needs for its own files, one job after another, level
        by level."""
        held = self._held(np.arange(len(self.level)), ((self.inputs, self.outputs), self.files))
        return np.maximum.reduceat(held, self.pipes[:-1])

    def per_job(self, lists: Adjacency, values: Floats) -> Floats:
        """The sum of the values in each job's list."""
        return np.bincount(lists.sources(), values[lists.index], len(self.level)).astype(np.float64)

    def least_storage(self, allocation: str) -> float:
        """The least space in which the allocation is possible."""
        if allocation == SLICE:
            files = ((self.inputs, self.outputs), self.files)
            return float(self._held(self.by_level, files, ((self.batch,), self.volumes)).max())
        batch = self.batch_need
        if allocation in (ALL, ALL_BATCH):
            batch = self.volumes.sum()
        private = self.peaks.max()
        if allocation in (ALL, ALL_PRIVATE):
            private = self.files.sum()
        return float(batch + private)

    def _held(self, order: Ints, *kinds: tuple[tuple[Adjacency, ...], Floats]) -> Floats:
        """The space held while each job runs, one at a time in this order: of all from its first
        use to its last."""
        place = np.argsort(order)
        change = np.zeros(len(order) + 1)
        for lists, sizes in kinds:
            item = np.concatenate([each.index for each in lists])
            when = place[np.concatenate([each.sources() for each in lists])]
            first = np.full(len(sizes), len(order))
            until = np.full(len(sizes), 0)
            np.minimum.at(first, item, when)
            np.maximum.at(until, item, when + 1)
            until[until == 0] = len(order)  # never used, and held from the end on
            np.add.at(change, first, sizes)
            np.subtract.at(change, until, sizes)
        return np.cumsum(change[:-1])

    @cached_property
    def uses(self) -> Ints:
        """How many need each file: its readers, and home if it is a result."""
        return np.bincount(self.inputs.index, minlength=len(self.files)) + self.is_kept

    @cached_property
    def own(self) -> Floats:
        """What space each job needs when it starts: for its inputs from home, and for all that it
        writes."""
        return self.per_job(self.inputs, self.files * ~self.is_written) + self.per_job(
            self.outputs, self.files
        )


def canonical(work: PipelineWorkload, seed: int = 0) -> DataFlow:
    """Of its six variables; compute times are normal, drawn for each job by itself, never below
    0."""
    width = work.width
    depth = work.depth
    drawn = np.random.default_rng(seed).standard_normal((width, depth))
    run_s = np.maximum(0.0, work.run_s * (1 + work.variation * drawn)).ravel()
    jobs = np.arange(width * depth)
    stage = np.tile(np.arange(depth), width)
    first = jobs + jobs // depth  # of each job's two files in the pipeline's chain of one more
    one_each = np.arange(len(jobs) + 1)
    later = jobs[stage > 0]
    is_last = np.zeros((width, depth + 1), dtype=np.bool_)
    is_last[:, depth] = work.private > 0
    return DataFlow(
        pipes=np.arange(width + 1) * depth,
        level=stage,
        run_s=run_s,
        parents=Adjacency.from_edges(len(jobs), later, later - 1),
        batch=Adjacency(one_each, stage),
        inputs=Adjacency(one_each, first),
        outputs=Adjacency(one_each, first + 1),
        volumes=np.full(depth, float(work.batch)),
        files=np.full(is_last.size, float(work.private)),
        is_kept=is_last.ravel(),
    )


def of_workflow(workflow: Workflow) -> DataFlow:
    """Of any workflow, with its run times and sizes as they are."""
    sizes = np.array([file.size_bytes for file in workflow.files], dtype=np.float64)
    is_batch, is_kept = _parts_played(workflow, sizes)
    parents = _parents(workflow, len(sizes))
    pipe = _components(parents)
    order = np.lexsort((np.arange(len(pipe)), workflow.levels, pipe))
    place = np.argsort(order)

    def lists(edges: Adjacency, chosen: Mask) -> Adjacency:
        """Of the chosen items, which are numbered without the others; jobs in their new places."""
        kept = chosen[edges.index]
        number = np.cumsum(chosen) - 1
        source = place[edges.sources()[kept]]
        return Adjacency.from_edges(len(pipe), source, number[edges.index[kept]])

    return DataFlow(
        pipes=np.flatnonzero(np.diff(pipe[order], prepend=-1, append=pipe.max() + 1)),
        level=workflow.levels[order],
        run_s=workflow.runtime_s[order],
        parents=Adjacency.from_edges(len(pipe), place[parents.sources()], place[parents.index]),
        batch=lists(workflow.inputs, is_batch),
        inputs=lists(workflow.inputs, ~is_batch),
        outputs=lists(workflow.outputs, ~is_batch),
        volumes=sizes[is_batch],
        files=sizes[~is_batch],
        is_kept=is_kept[~is_batch],
    )


def _parts_played(workflow: Workflow, sizes: Floats) -> tuple[Mask, Mask]:
    """Which files are batch volumes, and which are results that go home."""
    found, _ = roles(workflow)
    readers = np.bincount(workflow.inputs.index, minlength=len(sizes))
    is_written = np.isin(np.arange(len(sizes)), workflow.outputs.index)
    is_called_batch = np.array([role == Role.BATCH for role in found], dtype=np.bool_)
    is_endpoint = np.array([role == Role.ENDPOINT for role in found], dtype=np.bool_)
    is_batch = ~is_written & ((readers > 1) | is_called_batch)
    return is_batch, is_written & is_endpoint & (sizes > 0)


def through_home(flow: DataFlow, *, is_local: bool, is_cached: bool) -> DataFlow:
    """The same work if each job fetches its batch data by itself, and files go from job to job
    by way of home, unless data are cached or kept where they were made.
    """
    jobs = len(flow.level)
    none = np.zeros(0, dtype=np.int64)
    batch = flow.batch
    inputs = flow.inputs
    kept = flow.is_kept
    readers = [none]
    sizes = [np.zeros(0)]
    if not is_cached:
        readers.append(batch.sources())
        sizes.append(flow.volumes[batch.index])
        batch = Adjacency.from_edges(jobs, none, none)
    if not is_local:
        made = flow.is_written[inputs.index]
        readers.append(inputs.sources()[made])
        sizes.append(flow.files[inputs.index[made]])
        inputs = Adjacency.from_edges(jobs, inputs.sources()[~made], inputs.index[~made])
        kept = kept | flow.is_written
    fetched = np.concatenate(sizes)
    reader = np.concatenate([inputs.sources(), *readers])
    file = np.append(inputs.index, len(flow.files) + np.arange(len(fetched)))
    return replace(
        flow,
        batch=batch,
        inputs=Adjacency.from_edges(jobs, reader, file),
        files=np.append(flow.files, fetched),
        is_kept=np.append(kept, np.zeros(len(fetched), dtype=np.bool_)),
    )


def alone(flow: DataFlow, nodes: int) -> DataFlow:
    """The same work if each node has a cache of its own: pipelines are dealt to nodes, and share
    data there only."""
    index = flow.batch.index * nodes + flow.pipe_of[flow.batch.sources()] % nodes
    return replace(
        flow, batch=Adjacency(flow.batch.start, index), volumes=np.repeat(flow.volumes, nodes)
    )


def _parents(workflow: Workflow, files: int) -> Adjacency:
    """Whom each task waits for: its parents, and the writers of what it reads."""
    n = len(workflow)
    writer = np.full(files, -1)
    writer[workflow.outputs.index] = workflow.outputs.sources()
    made = writer[workflow.inputs.index] >= 0
    read = workflow.inputs.sources()[made] * n + writer[workflow.inputs.index[made]]
    edge = np.union1d(workflow.parents.sources() * n + workflow.parents.index, read)
    return Adjacency.from_edges(n, edge // n, edge % n)


def _components(parents: Adjacency) -> Ints:
    """The number of each vertex's component, in the order of their first vertices."""
    least = np.arange(parents.vertices)
    child = parents.sources()
    parent = parents.index
    while True:  # labels spread along edges and by halving paths: a few rounds, whatever the depth
        before = least.copy()
        np.minimum.at(least, child, before[parent])
        np.minimum.at(least, parent, before[child])
        least = least[least]
        if (least == before).all():
            return np.unique(least, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What came out: bytes by what they were, and when each job started and ended. Infinite if
    it did not end."""

    allocation: str
    time_s: float
    start_s: Floats
    end_s: Floats
    fetches: int
    hits: int
    moved: float
    of_batch: float
    of_inputs: float
    of_results: float
    most_used: float


class FlowSimulation:
    """One run, which can be taken to any time and cloned there."""

    def __init__(
        self, flow: DataFlow, allocation: str, where: Environment, failures: tuple[Floats, Ints]
    ) -> None:
        self.allocation = allocation
        self.where = where
        self._flow = flow
        self._tables, words = _tables(flow, allocation, where, failures)
        self._state = np.zeros(words, dtype=np.int64)
        kernel.begin(*self._arrays)

    @property
    def _arrays(self) -> tuple[Ints, Floats, Ints, Floats]:
        return (
            self._tables,
            self._tables.view(np.float64),
            self._state,
            self._state.view(np.float64),
        )

    def clone(self) -> FlowSimulation:
        """Another that continues from here by itself."""
        other = object.__new__(FlowSimulation)
        other.__dict__.update(self.__dict__, _state=self._state.copy())
        return other

    def advance(self, until_s: float = inf) -> int:
        """Advance to then, or to the end: OVER, PAUSED, STUCK or FAILURES_END of the kernel."""
        return int(kernel.advance(*self._arrays, until_s))

    def played(self, outcome: int) -> Played:
        """What there is to tell by now."""
        state = self._state
        numbers = self._arrays[3]
        jobs = len(self._flow.level)
        begins, ends = (
            numbers[self._tables[one] :][:jobs].copy() for one in (at.START_S, at.END_S)
        )
        if outcome in (kernel.OVER, kernel.PAUSED):
            time_s = float(numbers[at.NOW])
        else:
            time_s = inf
        places = (at.MOVED, at.OF_BATCH, at.OF_INPUTS, at.OF_RESULTS, at.MOST_USED)
        sums = [float(numbers[one]) for one in places]
        return Played(
            self.allocation,
            time_s,
            begins,
            ends,
            int(state[at.FETCHES]),
            int(state[at.HITS]),
            *sums,
        )


def _tables(
    flow: DataFlow, allocation: str, where: Environment, failures: tuple[Floats, Ints]
) -> tuple[Ints, int]:
    keeps = allocation in (ALL, ALL_BATCH)
    if keeps:
        order = np.arange(len(flow.level))
    else:
        order = flow.by_level
    counts = {
        at.TASKS: len(order),
        at.VOLUMES: len(flow.volumes),
        at.FILES: len(flow.files),
        at.PIPES: len(flow.pipes) - 1,
        at.FAILURES: len(failures[0]),
        at.IS_GROUPED: not keeps,
        at.IS_BOUNDED: allocation == MINIMAL,
        at.KEEPS_BATCH: keeps,
    }
    numbers = {
        at.STORAGE: where.storage,
        at.REMOTE: where.remote,
        at.LOCAL: where.local,
        at.LATENCY: where.latency_s,
        at.BATCH_NEED: flow.batch_need,
    }
    regions = _regions(flow, order, _guarantee(flow, allocation), failures)
    return at.tables(numbers, counts, regions, where.nodes)


def _guarantee(flow: DataFlow, allocation: str) -> Floats:
    """The space for its own files that each pipeline has to itself when it starts."""
    pipes = len(flow.pipes) - 1
    if allocation in (ALL, ALL_PRIVATE):
        return np.bincount(flow.pipe_of, flow.own, pipes).astype(np.float64)
    if allocation == ALL_BATCH:
        return flow.peaks
    return np.zeros(pipes)


def play(flow: DataFlow, allocation: str, where: Environment, seed: int = 0) -> Played:
    """The whole run; `seed` draws failures: times apart are exponential, each hits any node."""
    if where.failures_per_s:
        many = 64
    else:
        many = 0
    while True:
        apart, node = (np.random.default_rng([seed, one]) for one in (1, 2))
        if many:
            when = np.cumsum(apart.exponential(1 / where.failures_per_s, many))
        else:
            when = np.zeros(0)
        run = FlowSimulation(flow, allocation, where, (when, node.integers(0, where.nodes, many)))
        outcome = run.advance()
        if outcome != kernel.FAILURES_END or many >= 1 << 16:  # with this many it never ends
            return run.played(outcome)
        many *= 4


def play_all(
    flow: DataFlow, where: Environment, seed: int = 0, able: Sequence[str] | None = None
) -> dict[str, Played]:
    """Under each allocation that is possible, or under those that are known to be."""
    if able is None:
        able = [one for one in ALLOCATIONS if flow.least_storage(one) <= where.storage]
    return {one: play(flow, one, where, seed) for one in able}


def _regions(
    flow: DataFlow, order: Ints, guarantee: Floats, failures: tuple[Floats, Ints]
) -> dict[int, Ints | Floats]:
    """The arrays that the kernel reads."""
    kids = flow.parents.reversed()
    return {
        at.RUN: flow.run_s, at.PIPE_OF: flow.pipe_of, at.RANK: np.argsort(order), at.ORDER: order,
        at.PARENTS: flow.parents.degrees(), at.BATCH_AT: flow.batch.start,
        at.BATCH: flow.batch.index,
        at.IN_AT: flow.inputs.start, at.IN: flow.inputs.index,
        at.OUT_AT: flow.outputs.start, at.OUT: flow.outputs.index, at.KIDS_AT: kids.start,
        at.KIDS: kids.index, at.PIPE_AT: flow.pipes, at.VOLUME_SIZE: flow.volumes,
        at.SIZE: flow.files, at.USES: flow.uses, at.IS_KEPT: flow.is_kept.astype(np.int64),
        at.GUARANTEE: guarantee,
        at.PEAK: flow.peaks, at.FAIL_S: failures[0], at.FAIL_NODE: failures[1],
        at.FAR: flow.per_job(flow.inputs, flow.files * ~flow.is_written),
        at.NEAR: flow.per_job(flow.inputs, flow.files * flow.is_written) + flow.per_job(flow.outputs, flow.files),  # noqa: E501
        at.OWN: flow.own, at.RESULTS: flow.per_job(flow.outputs, flow.files * flow.is_kept),
    }  # fmt: skip
