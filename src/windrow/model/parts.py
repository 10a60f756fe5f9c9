"""Parts of nodes: what jobs ask for where users share nodes, and how many parts there are.

On a site that gives whole nodes a job is nodes and time. Where a node is many users', it is parts
and time: a number of cores with their memory and devices, on whichever nodes have room.

Rule 1: all parts of one job are alike, and each holds any task of the job; so a job of one-core
tasks costs one core for each that runs at a time.
Rule 2: a part has the memory that its task states, or what goes with its cores. What does not make
the site take more cores for it is added for the agent.
Rule 3: a part blocks its cores, or as many as go with its memory, if that is more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from windrow.model.nodes import Need
from windrow.model.resources import GPUS, Counts, NodeShape, gpu_type
from windrow.model.site import NodeKind

AGENT_BYTES = 64 << 20
"""What an agent takes itself, about."""
_MIB = 1 << 20
_LARGE = 2
"""So many times the memory of others has a node of large memory, for each core."""
_RARE = 0.5
"""And such nodes are left to those who need them if they have no more than this of the cores of
others."""
_MOST_KINDS = 8
"""Kinds of parts of one workflow, of which only the memory differs: beyond these it is rounded
up."""


@dataclass(frozen=True, slots=True)
class Billing:
    """What a site charges for a part for as long as a job has it: a price for each core, GiB and
    GPU; by the sum of these or, if `takes_most`, by the largest."""

    core: float = 1.0
    gib: float = 0.0
    gpu: float = 0.0
    takes_most: bool = False

    def of(self, part: NodeShape) -> float:
        """What is charged for one part."""
        each = (
            self.core * part.cores,
            self.gib * (part.memory_bytes or 0) / (1 << 30),
            self.gpu * dict(part.counts).get(GPUS, 0),
        )
        if self.takes_most:
            return max(each)
        return sum(each)


@dataclass(frozen=True, slots=True)
class Sharing:
    """How users share the nodes of a site.

    `core_bytes`: the memory that a job gets with each core unless it states another, and
    `even_bytes` what nodes have for each core, on average. `most_core_bytes`: the most that a job
    may have for each of its cores; who needs more gets more cores. `counts_memory`: whether jobs
    take memory from each other. `most_cores`: of one node, for one job. `most_nodes`: of one job.
    `bounds`: what all jobs of this user may have at a time, by resource, with the words of who says
    so. `by_user`: a node has jobs of one user at a time.
    """

    core_bytes: int
    even_bytes: int
    most_core_bytes: int | None = None
    counts_memory: bool = True
    most_cores: int | None = None
    most_nodes: int | None = None
    bounds: tuple[tuple[str, int, str], ...] = ()
    billing: Billing = Billing()
    by_user: bool = False

    def part_for(self, need: Need) -> NodeShape:
        """What a job asks for, for each task with this need that is to run at a time."""
        cores = max(1, need.cores)
        memory = need.memory_bytes
        if memory and self.most_core_bytes:
            cores = max(cores, math.ceil(memory / self.most_core_bytes))
        free = cores * self.core_bytes
        if not memory:
            memory = free
        elif memory < free:
            memory = min(memory + AGENT_BYTES, free)
        return NodeShape(cores, math.ceil(memory / _MIB) * _MIB, need.disk_bytes, _counts(need))

    def blocks_cores(self, cores: float, memory_bytes: int) -> float:
        """The cores that others cannot have if a job has this."""
        if not self.counts_memory:
            return cores
        return max(cores, memory_bytes / self.even_bytes)

    def parts_on(self, part: NodeShape, node: NodeShape) -> int:
        """How many of these parts a job can have of a node."""
        if self.most_cores is not None:
            node = replace(node, cores=min(node.cores, self.most_cores))
        if not self.counts_memory:
            node = replace(node, memory_bytes=None)
        there = node.amounts()
        wanted = (pair for pair in part.amounts().items() if 0 < pair[1] < math.inf)
        return int(min(there.get(name, 0) // amount for name, amount in wanted))

    def parts_of_job(self, part: NodeShape, kinds: Sequence[NodeKind]) -> int:
        """How many of these parts one job can have of all these nodes, if they are empty; those
        with devices are on one node."""
        each = sorted(
            ((self.parts_on(part, kind.shape), kind.count) for kind in kinds), reverse=True
        )
        left = sum(count for _, count in each)
        if self.most_nodes is not None:
            left = self.most_nodes
        if _devices(part):
            left = 1
        found = 0
        for parts, count in each:
            found += parts * min(count, left)
            left -= min(count, left)
        most = self.most_parts(part)
        return found if most is None else min(found, most[0])

    def is_for(self, part: NodeShape, node: NodeShape, kinds: Iterable[NodeKind]) -> bool:
        """Whether such parts are to be had of this node: one with devices or rare memory that they
        do not need is left to others, unless there is nothing else."""
        if not self.parts_on(part, node):
            return False
        able = [kind for kind in kinds if self.parts_on(part, kind.shape)]
        plain = [kind for kind in able if not _devices(kind.shape) - _devices(part)]
        if plain and _devices(node) - _devices(part):
            return False
        return not (self.counts_memory and _has_rare_memory(part, node, plain or able))

    def refusal(self, need: Need, kinds: Iterable[NodeKind]) -> str:
        """Why no job may have a part for this need although some node has it; empty if one may, or
        none has."""
        part = self.part_for(need)
        if not any(replace(self, most_cores=None).parts_on(part, kind.shape) for kind in kinds):
            return ""
        if self.most_cores is not None and part.cores > self.most_cores:
            return f"a job may have {self.most_cores} cores of a node"
        most = self.most_parts(part)
        if most is None or most[0]:
            return ""
        return most[1]

    def holds(self, need: Need, kinds: Sequence[NodeKind]) -> bool:
        """Whether a job may have a part for this need."""
        return self.parts_of_job(self.part_for(need), kinds) > 0

    def less(self, used: Mapping[str, int]) -> Sharing:
        """The same, if this much of what its `bounds` allow is in use, by their words."""
        left = ((name, max(0, amount - used.get(why, 0)), why) for name, amount, why in self.bounds)
        return replace(self, bounds=tuple(left))

    def most_parts(self, part: NodeShape) -> tuple[int, str] | None:
        """How many such parts a user may have at a time, and who says so; None: any number."""
        there = part.amounts()
        found = [
            (amount // int(there[name]), why)
            for name, amount, why in self.bounds
            if there.get(name, 0)
        ]
        return min(found, default=None)


def parts_of(
    needs: Iterable[Need], kinds: Sequence[NodeKind], sharing: Sharing
) -> tuple[NodeKind, ...]:
    """The kinds of parts for tasks with these needs, and how many of each a job may have; a need
    that no node holds has none.

    Needs with the same devices have one part for all of them besides, if a node holds it: so a job
    can have tasks of several kinds.
    """
    distinct = sorted({need._replace(nodes=0) for need in needs})
    by_devices: dict[Counts, list[NodeShape]] = {}
    for need in distinct:
        by_devices.setdefault(_counts(need), []).append(sharing.part_for(need))
    found = list[NodeKind]()
    for parts in by_devices.values():
        found += _of_devices(_few(parts), kinds, sharing)
    return tuple(found)


def _of_devices(
    parts: Sequence[NodeShape], kinds: Sequence[NodeKind], sharing: Sharing
) -> list[NodeKind]:
    found = list[NodeKind]()
    for part in dict.fromkeys([*parts, _joined(parts)]):
        able = [kind for kind in kinds if sharing.is_for(part, kind.shape, kinds)]
        if count := sharing.parts_of_job(part, able):
            found.append(NodeKind(part, count))
    return found


def _few(parts: Sequence[NodeShape]) -> list[NodeShape]:
    """At most that many of them: those with the same cores and little less memory have what the
    largest has."""
    distinct = list(dict.fromkeys(parts))
    while len(distinct) > _MOST_KINDS:
        pairs = pairwise(sorted(distinct, key=lambda part: (part.cores, part.memory_bytes or 0)))
        less, more = min(pairs, key=lambda pair: _growth(*pair))
        distinct = [part for part in distinct if part not in (less, more)]
        distinct.append(_joined((less, more)))
    return distinct


def _growth(less: NodeShape, more: NodeShape) -> float:
    """How many times as large the first becomes if it is to be as large as both."""
    both = _joined((less, more))
    return both.cores / less.cores + (both.memory_bytes or 0) / max(1, less.memory_bytes or 0)


def _joined(parts: Sequence[NodeShape]) -> NodeShape:
    """What holds each of them."""
    return replace(
        parts[0],
        cores=max(part.cores for part in parts),
        memory_bytes=max(part.memory_bytes or 0 for part in parts),
        disk_bytes=max(part.disk_bytes or 0 for part in parts),
    )


def _has_rare_memory(part: NodeShape, node: NodeShape, kinds: Iterable[NodeKind]) -> bool:
    """Whether the node has much memory as few of these have, and such a part needs no more of it
    than others have."""
    least = _core_bytes(node) / _LARGE
    usual = 0
    large = 0
    for kind in kinds:
        cores = kind.count * kind.shape.cores
        if _core_bytes(part) <= _core_bytes(kind.shape) <= least:
            usual += cores
        elif _core_bytes(kind.shape) > least:
            large += cores
    return large <= _RARE * usual


def _core_bytes(shape: NodeShape) -> float:
    """Its memory for each core."""
    return (shape.memory_bytes or 0) / shape.cores


def _devices(shape: NodeShape) -> set[str]:
    """Named resources that there are; GPUs of whatever type are one of them."""
    return {name for name, count in shape.counts if count and not gpu_type(name)}


def _counts(need: Need) -> Counts:
    return tuple((name, count) for name, count in need.counts if count)
