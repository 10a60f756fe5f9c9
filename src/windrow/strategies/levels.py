"""The part of a workflow that is still to be put into jobs, by levels, and how long any run of
levels takes.

Levels are those of the sub-graph of tasks that are left: parents outside it count as done. Run
times come from list scheduling on each number of nodes and are kept, since a campaign asks for the
same ones thousands of times. Few of them are worked out in Python: to load numba, or even to
compile, takes longer than a small workflow is worth.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model import NEVER_S, Adjacency, NodeShape, Workflow, order_and_levels
from windrow.model.allocation import Member, lasting_s
from windrow.model.nodes import Need, Nodes, lacking
from windrow.model.parts import parts_of
from windrow.model.resources import amount_text, meet
from windrow.model.runnable import Step
from windrow.model.site import NodeKind, Site

if TYPE_CHECKING:
    from windrow.storage.demand import SpaceLimit

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_STEPS = 100_000
"""Tasks, once for each number of nodes, that are list-scheduled in Python before it is worth while
to load numba."""


def whole_seconds(workflow: Workflow, speed: float = 1.0) -> Ints:
    """The workflow's run times if tasks run `speed` times as fast, rounded up to whole
    seconds."""
    seconds: Ints = np.maximum(1, np.ceil(workflow.runtime_s / speed)).astype(np.int64)
    return seconds


def works(
    workflow: Workflow,
    sites: Sequence[Site],
    able: Sequence[int] | Mask,
    space: SpaceLimit | None = None,
) -> list[Work]:
    """The workflow as it would run at each of the sites.

    `able` says of each task at which site it is to run, or, with a row for each site, which tasks
    may run there.
    """
    given = np.asarray(able)
    works = []
    for n, site in enumerate(sites):
        if len(sites) == 1:
            mine = None
        elif given.ndim == 2:
            mine = given[n]
        else:
            mine = given == n
        works.append(Work(workflow, whole_seconds(workflow, site.speed), site, mine, space))
    return works


def levels_text(first: int, last: int) -> str:
    """Levels as people say them: `level 0`, `levels 0-3`. They count from 0 among those that are
    left."""
    if first == last:
        return f"level {first}"
    return f"levels {first}-{last}"


class Levels:
    """Tasks that are left, level by level. `first` and `last` below are level numbers, both
    included."""

    def __init__(self, work: Work, left: Mask) -> None:
        self.work = work
        self.tasks: Ints = np.flatnonzero(left)
        parents = _within(work.workflow.parents, left)
        _, level = order_and_levels(parents, parents.reversed())
        self.level: Ints = level
        if len(level):
            self.count = int(level.max()) + 1
        else:
            self.count = 0
        self._run_s: dict[tuple[int, int], Ints] = {}
        self._run_on_s: dict[tuple[int, int, int], int] = {}
        self._needed = [
            work.nodes_needed(self.tasks[level == number]) for number in range(self.count)
        ]

    @property
    def last(self) -> int:
        """The number of the last level."""
        return self.count - 1

    def between(self, first: int, last: int) -> Ints:
        """The tasks of these levels."""
        return self.tasks[(self.level >= first) & (self.level <= last)]

    def usable(self, first: int, last: int) -> int:
        """The most nodes that a job of these levels can use: what its widest level needs, within
        the cluster."""
        work = self.work
        needed = max(self._needed[first : last + 1])
        if len(work.kinds) == 1:
            most = work.cluster_nodes
        else:
            most = work.nodes_for(self.between(first, last))[1]
        return min(most, needed)

    def run_s(self, first: int, last: int) -> Ints:
        """How long these levels run on 1, 2, ... `usable` nodes."""
        if (first, last) not in self._run_s:
            self._run_s[first, last] = self.work.run_s(
                self.between(first, last), self.usable(first, last)
            )
        return self._run_s[first, last]

    def run_on_s(self, first: int, last: int, nodes: int) -> int:
        """How long these levels run on this number of nodes, without working out all other numbers
        of nodes."""
        if (first, last) in self._run_s:
            return int(self._run_s[first, last][nodes - 1])
        key = (first, last, nodes)
        if key not in self._run_on_s:
            self._run_on_s[key] = int(self.work.run_s(self.between(first, last), nodes, nodes)[0])
        return self._run_on_s[key]


class Work:
    """A workflow with expected task times in whole seconds, and the site on which it is to run."""

    def __init__(
        self,
        workflow: Workflow,
        expected_s: Ints,
        site: Site,
        mine: Mask | None = None,
        space: SpaceLimit | None = None,
    ) -> None:
        """`mine` marks the tasks that are to run there; None: all. UserError if one of them
        never could.

        `space`: the most that files may take. No kernel knows of it: such work is estimated by the
        rules themselves.
        """
        self.space = space
        self.workflow = workflow
        self.mine = mine
        self.expected_s = expected_s
        self.site = site
        self.kinds = self._kinds()
        """The kinds of nodes, or of parts of nodes, without what no task needs."""
        self.shape = meet(kind.shape for kind in self.kinds)
        """What every node has."""
        self.cluster_nodes = self._job_nodes()
        """The most nodes of a job now, or parts of nodes."""
        self._levels: dict[bytes, Levels] = {}
        self._steps_left = _STEPS
        self.kept_runs: dict[tuple[bool, NodeShape], Ints] = {}  # for `compiled`
        self._held = [self._holds(kind.shape) for kind in self.kinds]
        self._is_alike = _alike(workflow, np.arange(len(workflow)))
        self._narrower: dict[int, Work] = {}
        self._refuse_misfits()

    def _kinds(self) -> tuple[NodeKind, ...]:
        kinds = self.site.kinds
        if self.site.sharing is not None:
            if self.mine is None:
                tasks = np.arange(len(self.workflow))
            else:
                tasks = np.flatnonzero(self.mine)
            kinds = parts_of(self.workflow.needs(tasks), kinds, self.site.sharing) or kinds
        resources = self.workflow.resources
        return tuple(replace(kind, shape=kind.shape.only(resources)) for kind in kinds)

    def _holds(self, shape: NodeShape) -> Mask:
        """Which tasks such nodes or parts hold; parts with devices only those that need some."""
        held = self.workflow.fits(shape)
        if self.site.sharing is not None:
            there = dict(shape.counts)
            for name, needed in self.workflow.counts.items():
                held &= (needed > 0) == (there.get(name, 0) > 0)
        return held

    def _job_nodes(self) -> int:
        if self.site.sharing is None:
            return self.site.job_nodes
        most = max(kind.count for kind in self.kinds)
        return most if self.site.max_nodes is None else min(most, self.site.max_nodes)

    def part_of(self, tasks: Ints) -> NodeShape | None:
        """What a job of these tasks has in place of each whole node; None: whole nodes."""
        if self.site.sharing is None:
            return None
        return self.job_shape(tasks)[0]

    def expecting(self, expected_s: Ints) -> Work:
        """The same with other expected times."""
        return Work(self.workflow, expected_s, self.site, self.mine, self.space)

    def needing(self, memory_bytes: Ints) -> Work:
        """The same if tasks need this much memory."""
        workflow = self.workflow.changed(memory_bytes=memory_bytes)
        return Work(workflow, self.expected_s, self.site, self.mine, self.space)

    def most_memory_bytes(self, need: Need) -> int:
        """What a node could give at most to a task with this need. 0 if that is unknown, or it has
        whole nodes anyway."""
        if need.nodes:
            return 0
        least = need._replace(memory_bytes=0)
        able = (kind.shape for kind in self.site.kinds if least.fits(kind.shape))
        return max((shape.memory_bytes or 0 for shape in able), default=0)

    def extended(self, workflow: Workflow, join: Mask | None = None) -> Work:
        """The same with the tasks that its workflow has got since; `join`: those of them that may
        run here."""
        more_s = whole_seconds(workflow, self.site.speed)[len(self.expected_s) :]
        mine = None
        if self.mine is not None:
            mine = np.append(self.mine, np.ones(len(more_s), dtype=bool) if join is None else join)
        return Work(
            workflow, np.concatenate([self.expected_s, more_s]), self.site, mine, self.space
        )

    def amended(self, workflow: Workflow, tasks: Ints) -> Work:
        """The same with its workflow as it is now, of which these tasks have changed."""
        expected_s = self.expected_s.copy()
        expected_s[tasks] = whole_seconds(workflow, self.site.speed)[tasks]
        return Work(workflow, expected_s, self.site, self.mine, self.space)

    def within(self, nodes: int) -> Work:
        """The same if jobs can have no more than these nodes now, if that is less."""
        if nodes >= self.cluster_nodes:
            return self
        if nodes not in self._narrower:
            narrow = copy(self)
            narrow.cluster_nodes = nodes
            narrow._levels = {}
            self._narrower[nodes] = narrow
        return self._narrower[nodes]

    def nodes_for(self, tasks: Ints) -> tuple[NodeShape, int]:
        """What the nodes of a job of these tasks have at least, and how many it can have: those
        that hold every task.

        If no kind of nodes does, all nodes; the tasks then never end on them (see `by_kind`).
        """
        if len(self.kinds) == 1:
            return self.shape, self.cluster_nodes
        able = [
            kind for kind, held in zip(self.kinds, self._held, strict=True) if held[tasks].all()
        ]
        if self.site.sharing is not None and able:  # parts of the same nodes: they do not add up
            most = max(kind.count for kind in able)
            return meet(kind.shape for kind in able), min(self.cluster_nodes, most)
        if len(able) in (0, len(self.kinds)):
            return self.shape, self.cluster_nodes
        return meet(kind.shape for kind in able), min(
            self.cluster_nodes, sum(kind.count for kind in able)
        )

    def by_kind(self, tasks: Ints) -> list[Ints]:
        """The tasks in as few groups as are seen at once, each of which one kind of nodes holds."""
        groups: list[Ints] = []
        while len(tasks):
            held = max((held[tasks] for held in self._held), key=lambda mask: int(mask.sum()))
            if not held.any():
                break
            groups.append(tasks[held])
            tasks = tasks[~held]
        return groups

    def job_shape(self, tasks: Ints) -> tuple[NodeShape, Need]:
        """What each node gives to a job of these tasks, and what the job must ask for to get such
        nodes.

        That is disk and counts that its tasks need, and cores and memory if not every node has
        so much.
        """
        shape = self.nodes_for(tasks)[0]
        w = self.workflow
        counts = tuple(
            (name, count if w.counts[name][tasks].any() else 0) for name, count in shape.counts
        )
        shape = replace(
            shape, disk_bytes=shape.disk_bytes if w.disk_bytes[tasks].any() else None, counts=counts
        )
        cores = shape.cores if shape.cores > self.shape.cores else 0
        memory = 0 if shape.memory_bytes == self.shape.memory_bytes else shape.memory_bytes
        asked = tuple((name, count) for name, count in counts if count)
        return shape, Need(cores, memory or 0, 0, shape.disk_bytes or 0, asked)

    def levels(self, left: Mask) -> Levels:
        """The levels of the tasks that are left; the same answer for the same tasks, so that run
        times are kept."""
        key = np.packbits(left).tobytes()
        if key not in self._levels:
            self._levels[key] = Levels(self, left)
        return self._levels[key]

    def run_s(self, tasks: Ints, most_nodes: int, least_nodes: int = 1) -> Ints:
        """How long the tasks run on `least_nodes` to `most_nodes` nodes; parents not among them
        count as done.

        A number of nodes that cannot hold some task takes forever.
        """
        steps = len(tasks) * (most_nodes - least_nodes + 1)
        if self.space is not None or ("numba" not in sys.modules and steps <= self._steps_left):
            self._steps_left -= steps
            return self._played_s(tasks, range(least_nodes, most_nodes + 1))
        from windrow.strategies import compiled  # noqa: PLC0415  (a run on this machine calls no kernel)

        if len(self.workflow) > compiled.MOST_TASKS:
            return self._played_s(tasks, range(least_nodes, most_nodes + 1))
        answers = compiled.run_times_s(self, tasks, least_nodes, most_nodes)
        answers[answers < 0] = NEVER_S
        return answers

    def _played_s(self, tasks: Ints, nodes: range) -> Ints:
        """The same by the rules themselves (`allocation`), of which the kernel is a copy."""
        members = self.members(tasks)
        shape = self.nodes_for(tasks)[0]
        played: list[float | None] = [None]
        if self.space is not None:
            from windrow.storage.demand import demand_of  # noqa: PLC0415  (few runs have a limit)

            demand = demand_of(self.workflow, members)
            order = demand.order()
            plays = [partial(lasting_s, count, shape, members) for count in nodes]
            played = [play(self.space.admission(demand, order, play)) for play in plays]
        if None in played:  # or the space will not do any more; the agent tells what cannot start
            played = [lasting_s(count, shape, members) for count in nodes]
        return np.array([NEVER_S if one is None else one for one in played], dtype=np.int64)

    def members(self, tasks: Ints) -> dict[int, Member]:
        """These tasks as an allocation of their own would know them."""
        w = self.workflow
        left = np.zeros(len(w), dtype=bool)
        left[tasks] = True
        parents = _within(w.parents, left)
        children = parents.reversed()
        first = children.start.tolist()
        names = tasks.tolist()
        ends = [names[child] for child in children.index.tolist()]
        return {
            names[v]: Member(need, expected, waits_for, ends[first[v] : first[v + 1]])
            for v, (need, expected, waits_for) in enumerate(
                zip(
                    w.needs(tasks),
                    self.expected_s[tasks].tolist(),
                    parents.degrees().tolist(),
                    strict=True,
                )
            )
        }

    def space_over_time(self, tasks: Ints, nodes: int) -> list[tuple[float, int]]:
        """What files take if these tasks run on this many nodes: from each of these times on."""
        from windrow.storage.demand import demand_of  # noqa: PLC0415
        from windrow.storage.timeline import over_time  # noqa: PLC0415

        members = self.members(tasks)
        spans = list[tuple[int, float, float]]()
        demand = demand_of(self.workflow, members)
        play = partial(lasting_s, nodes, self.nodes_for(tasks)[0], members)
        if self.space is None:
            space = None
        else:
            space = self.space.admission(demand, demand.order(), play)
        play(space, lambda *span: spans.append(span))
        return over_time(demand, spans)

    def are_alike(self, tasks: Ints) -> bool:
        """Whether all these tasks need the same, and none a whole node."""
        return self._is_alike or _alike(self.workflow, tasks)

    def nodes_needed(self, tasks: Ints) -> int:
        """How many nodes let all these tasks run at once: tasks put one by one on the first node
        with room."""
        w = self.workflow
        shape = self.nodes_for(tasks)[0]
        whole = int(w.nodes[tasks].sum())
        small = tasks[w.nodes[tasks] == 0]
        cores = w.cores[small]
        if not len(small):
            return whole
        if (cores == cores[0]).all() and not w.memory_bytes[small].any() and not w.resources:
            return whole - (-len(small) // max(1, shape.cores // int(cores[0])))
        return whole + _first_fit(w.needs(small), shape)

    def _refuse_misfits(self) -> None:
        tasks = [t for t in misfits(self.workflow, self.site) if self.mine is None or self.mine[t]]
        if tasks:
            others = len(tasks) - 1
            task = self.workflow.task(tasks[0])
            key, needs, has = missing(task.need, self.site)
            if key == "nodes":
                owner = "a job can have"
            else:
                owner = "a node has"
            if others:
                more = f" ({others:,} other tasks do not fit either)"
            else:
                more = ""
            raise UserError(
                f"task {task.id} needs {needs}, but {owner} {has}{more}; request less, or use a "
                "larger cluster"
            )


def misfits(workflow: Workflow, site: Site) -> list[int]:
    """The tasks that could not run even if all nodes of the site were empty."""
    if site.sharing is not None:
        needs = workflow.needs()
        held = {need: site.sharing.holds(need, site.kinds) for need in set(needs)}
        return [task for task, need in enumerate(needs) if need.nodes or not held[need]]
    able = sum(
        (kind.count * workflow.fits(kind.shape) for kind in site.kinds),
        np.zeros(len(workflow), dtype=np.int64),
    )
    found: list[int] = np.flatnonzero(
        np.minimum(able, site.job_nodes) < np.maximum(1, workflow.nodes)
    ).tolist()
    return found


def able(workflow: Workflow, site: Site, steps: Sequence[Step] = (), first: int = 0) -> Mask:
    """Which tasks may run at the site: some nodes there hold them, and no file of theirs has to
    stay elsewhere.

    And the condition in a task's step, if it has one, holds for every node there that could get
    it. `steps` are those of the tasks from `first` on.
    """
    found = np.ones(len(workflow), dtype=bool)
    found[misfits(workflow, site)] = False
    for where in dict.fromkeys(step.where for step in steps if step.where):
        mine = [n for n, step in enumerate(steps, first) if step.where == where]
        found[mine] &= ~_refused(workflow, site, where)[mine]
    if workflow.has_bound:
        away = np.array(
            [bool(file.stays) and file.stays != site.name for file in workflow.files], dtype=bool
        )
        for files in (workflow.inputs, workflow.outputs):
            found[files.sources()[away[files.index]]] = False
    return found


def _refused(workflow: Workflow, site: Site, where: str) -> Mask:
    """The tasks that could get a node of the site for which this condition does not hold."""
    from windrow.model.conditions import parse_condition  # noqa: PLC0415  (few tasks have one)

    condition = parse_condition(where)
    refused = np.zeros(len(workflow), dtype=bool)
    for kind, words in zip(site.kinds, site.described(), strict=True):
        if not condition.holds(words):
            refused |= workflow.fits(kind.shape)
    return refused


def missing(need: Need, site: Site) -> tuple[str, str, str]:
    """What a misfit needs and the site has not: its name, how much is needed, and how much there
    is, in words."""
    able = sum(kind.count for kind in site.kinds if need.fits(kind.shape))
    if need.nodes > site.job_nodes:
        return "nodes", f"{need.nodes:,} nodes", f"{site.job_nodes:,}"
    if able:
        with_ = ", ".join(
            amount_text(name, amount) for name, amount in need.amounts().items() if amount
        )
        return "nodes", f"{need.nodes:,} nodes with {with_}", f"{able:,}"
    return lacking(need, [kind.shape for kind in site.kinds])


def _alike(w: Workflow, tasks: Ints) -> bool:
    """Whether all these tasks need the same, and none a whole node."""
    columns = (
        column[tasks] for column in (w.cores, w.memory_bytes, w.disk_bytes, *w.counts.values())
    )
    return not w.nodes[tasks].any() and all((column == column[:1]).all() for column in columns)


def _first_fit(needs: Iterable[Need], shape: NodeShape) -> int:
    nodes = Nodes([])
    for i, need in enumerate(sorted(needs, reverse=True)):
        nodes.take(i, need, nodes.room(need) or nodes.add(shape))
    return len(nodes)


def _within(parents: Adjacency, left: Mask) -> Adjacency:
    """The parent lists of the tasks that are left, renumbered, without parents outside."""
    number = np.cumsum(left) - 1
    child = parents.sources()
    parent = parents.index
    kept = left[child] & left[parent]
    return Adjacency.from_edges(int(left.sum()), number[child[kept]], number[parent[kept]])
