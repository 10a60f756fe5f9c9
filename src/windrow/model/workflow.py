"""Workflow, Task and File.

Rule 1: a Workflow that exists is valid: ids unique, parents known, no cycle, times and sizes finite
and not negative.
Rule 2: nothing here changes after construction; arrays are read-only.

A workflow is stored as columns (one array per property), a task is one row of them, made when asked
for. So a workflow of a million tasks is some hundred megabytes, and algorithms work on arrays.
"""

from __future__ import annotations

import math
import posixpath
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model.bounds import COUNT_MAX, DURATION_S_MAX, NODES_MAX, SIZE_BYTES_MAX
from windrow.model.graph import Adjacency, CycleError, Ints, order_and_levels
from windrow.model.nodes import Need
from windrow.model.resources import Counts, NodeShape, gpu_type, is_name
from windrow.model.rules import PLAIN, Rules

Floats = NDArray[np.float64]


class WorkflowError(UserError):
    """The workflow is not valid. The message names the offending tasks or files."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that tasks read or write. The tasks say which do. `stays`: the site that it must not
    leave.

    `keep`: False if it is to be deleted once nothing needs it; None: not stated. `role`: as the
    user states it.
    """

    id: str
    size_bytes: int = 0
    stays: str = ""
    keep: bool | None = None
    role: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """One task. `kind` names the program, so that tasks of one kind can be compared; `parents` and
    files are ids.

    `nodes` is 0 for a task that shares a node with others (it requests `cores`), or the number of
    whole nodes it needs. `counts` says how many it needs of each named resource of a node, by name
    in order; GPUs are `gpus`.
    """

    id: str
    runtime_s: float
    kind: str = ""
    parents: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    cores: int = 1
    nodes: int = 0
    memory_bytes: int = 0
    command: tuple[str, ...] = ()
    disk_bytes: int = 0
    counts: Counts = ()
    rules: Rules = PLAIN

    @property
    def need(self) -> Need:
        """What it takes of nodes."""
        return Need(self.cores, self.memory_bytes, self.nodes, self.disk_bytes, self.counts)

    def named_from(self, folder: str) -> Task:
        """The same, whose files are named by their whole paths: so far they were looked for in this
        folder."""
        inputs, outputs = (
            tuple(whole_path(folder, name) for name in names)
            for names in (self.inputs, self.outputs)
        )
        return replace(self, inputs=inputs, outputs=outputs)


class Workflow:
    """A DAG of tasks, as columns. Tasks are numbered 0..n-1 in the order in which they were
    given."""

    def __init__(
        self,
        name: str,
        *,
        ids: Sequence[str],
        runtime_s: Floats,
        parents: Adjacency,
        kinds: Sequence[str] | None = None,
        cores: Ints | None = None,
        nodes: Ints | None = None,
        memory_bytes: Ints | None = None,
        disk_bytes: Ints | None = None,
        counts: Mapping[str, Ints] | None = None,
        files: Sequence[File] = (),
        inputs: Adjacency | None = None,
        outputs: Adjacency | None = None,
        commands: Mapping[int, tuple[str, ...]] | None = None,
        rules: Mapping[int, Rules] | None = None,
        mended_run_times: int = 0,
        guessed_run_times: int = 0,
    ) -> None:
        """From columns; `Workflow.from_tasks` is the friendlier way. WorkflowError if they are
        not valid."""
        n = len(ids)
        if kinds is None:
            kinds = ("",) * n
        self.name = name
        self.ids: tuple[str, ...] = tuple(ids)
        self.kinds: tuple[str, ...] = tuple(kinds)
        self.runtime_s = _column(runtime_s, np.float64)
        self.cores = _column_or(1, cores, n)
        self.nodes = _column_or(0, nodes, n)
        self.memory_bytes = _column_or(0, memory_bytes, n)
        self.disk_bytes = _column_or(0, disk_bytes, n)
        self.counts = {
            resource: _column(amounts, np.int64)
            for resource, amounts in sorted((counts or {}).items())
        }
        """How many of each named resource tasks need; a name is here only if some task needs
        it."""
        self.parents = parents
        self._order_known: tuple[Ints, Ints] | None = None
        self.files: tuple[File, ...] = tuple(files)
        self.inputs = _adjacency_or_none(inputs, n)
        self.outputs = _adjacency_or_none(outputs, n)
        self.commands: Mapping[int, tuple[str, ...]] = dict(commands or {})
        """What tasks run, by number; and tasks of workflows that this one has grown into."""
        self.rules: Mapping[int, Rules] = dict(rules or {})
        """Of tasks that have some, by number; and, as with commands, of more."""
        self.mended_run_times = mended_run_times
        """How many run times of its source lay slightly below zero and were read as 0."""
        self.guessed_run_times = guessed_run_times
        """How many run times its source does not state: placeholders stand for them."""
        self._check()
        self._sorted()

    @cached_property
    def children(self) -> Adjacency:
        """The tasks that wait for each task."""
        return self.parents.reversed()

    @property
    def order(self) -> Ints:
        """Task numbers in a topological order."""
        return self._sorted()[0]

    @property
    def levels(self) -> Ints:
        """Each task's level: the longest hop count from an entry."""
        return self._sorted()[1]

    def _sorted(self) -> tuple[Ints, Ints]:
        if self._order_known is None:
            order, levels = self._order_and_levels()
            self._order_known = _column(order, np.int64), _column(levels, np.int64)
        return self._order_known

    def _order_and_levels(self) -> tuple[Ints, Ints]:
        try:
            return order_and_levels(self.parents, self.children)
        except CycleError as error:
            names = [self.ids[v] for v in error.cycle]
        shown = names
        if len(names) > 8:
            shown = [*names[:7], f"({len(names) - 7} more)"]
        circle = " -> ".join([*shown, names[0]])
        raise WorkflowError(f"tasks depend on each other in a cycle: {circle}")

    @staticmethod
    def from_tasks(name: str, tasks: Iterable[Task], files: Iterable[File] = ()) -> Workflow:
        """From tasks that name their parents and files. A file that only tasks name has size 0."""
        rows = list(tasks)
        number = {task.id: i for i, task in enumerate(rows)}
        _refuse_duplicates("task", [task.id for task in rows], len(number))
        known = _with_named(files, rows)
        file_number = {file_id: i for i, file_id in enumerate(known)}
        return Workflow(
            name,
            ids=[task.id for task in rows],
            kinds=[task.kind for task in rows],
            runtime_s=np.array([task.runtime_s for task in rows], dtype=np.float64),
            cores=_ints(task.cores for task in rows),
            nodes=_ints(task.nodes for task in rows),
            memory_bytes=_ints(task.memory_bytes for task in rows),
            disk_bytes=_ints(task.disk_bytes for task in rows),
            counts=_count_columns(rows),
            parents=Adjacency.from_lists([_numbers(task, task.parents, number) for task in rows]),
            files=list(known.values()),
            inputs=Adjacency.from_lists([[file_number[f] for f in task.inputs] for task in rows]),
            outputs=Adjacency.from_lists([[file_number[f] for f in task.outputs] for task in rows]),
            commands={i: task.command for i, task in enumerate(rows) if task.command},
            rules={i: task.rules for i, task in enumerate(rows) if task.rules != PLAIN},
        )

    def extended(
        self, tasks: Iterable[Task], files: Iterable[File] = (), folder: str = ""
    ) -> Workflow:
        """The same workflow with more tasks after its own; they may depend on those and read their
        files.

        `folder`: where the files so far are looked for; from here on they are named by their full
        paths. WorkflowError if an id is taken, a parent unknown, a file written twice, or a cycle
        closed.
        """
        if folder:
            renamed = [replace(file, id=whole_path(folder, file.id)) for file in self.files]
            before = Workflow.from_tasks(
                self.name, (task.named_from(folder) for task in self), renamed
            )
            return before.extended(tasks, files)
        new = list(tasks)
        names = self._names
        if names.size != (len(self), len(self.files)):  # it has grown into another workflow, too
            names = _WorkflowNames(self)
        for task in new:
            _refuse_second_writer(task, names, self)
        own = {task.id for task in new}
        _refuse_duplicates("task", [*(t for t in own if t in names.tasks), *own], len(own))
        inside = [replace(t, parents=tuple(p for p in t.parents if p in own)) for t in new]
        more = Workflow.from_tasks(self.name, inside, (f for f in files if f.id not in names.files))
        first = len(self)
        number = {task.id: first + i for i, task in enumerate(new)}
        known = ChainMap(number, names.tasks)
        parents = [_numbers(task, task.parents, known) for task in new]
        _refuse_parents_twice(new)
        return self._with(more, parents, names)

    def _count(self, name: str) -> Ints:
        """What each task takes of a named resource."""
        return self.counts.get(name, np.zeros(len(self), dtype=np.int64))

    def _with(
        self, more: Workflow, parents: Sequence[Sequence[int]], names: _WorkflowNames
    ) -> Workflow:
        """This workflow with the tasks of another behind its own, which have these parents.

        Both are valid. It costs little however large this one is: no column of it is looked
        through, and its names are known to both.
        """
        grown = object.__new__(Workflow)
        grown.name = self.name
        grown.ids = self.ids + more.ids
        grown.kinds = self.kinds + more.kinds
        for column in ("runtime_s", "cores", "nodes", "memory_bytes", "disk_bytes"):
            setattr(grown, column, _joined(getattr(self, column), getattr(more, column)))
        grown.counts = {
            name: _joined(self._count(name), more._count(name))
            for name in sorted({*self.counts, *more.counts})
        }
        grown.parents = self.parents.followed_by(parents)
        new = [file for file in more.files if file.id not in names.files]
        grown.files = self.files + tuple(new)
        places = dict(zip((file.id for file in new), count(len(self.files)), strict=False))
        at = ChainMap(places, names.files)

        def numbers(used: Adjacency) -> list[list[int]]:
            """The files of each new task, as they are numbered now."""
            tasks = range(len(more))
            return [[at[more.files[f].id] for f in used.of(task).tolist()] for task in tasks]

        grown.inputs = self.inputs.followed_by(numbers(more.inputs))
        grown.outputs = self.outputs.followed_by(numbers(more.outputs))
        names.add_rows(more, len(self))
        grown.commands = names.commands
        grown.rules = names.rules
        grown.mended_run_times = self.mended_run_times
        grown.guessed_run_times = self.guessed_run_times
        grown._order_known = None
        names.add(grown, len(self), len(self.files))
        grown.__dict__["_names"] = names
        return grown

    def amended(self, tasks: Iterable[Task]) -> Workflow:
        """The same with other needs, commands, parents and inputs of some of its tasks.

        WorkflowError if one is not there, writes something else, or now depends on itself.
        """
        now: dict[int, Task] = {}
        for task in tasks:
            if self._names.tasks.get(task.id, len(self)) >= len(self):
                raise WorkflowError(f"there is no task {task.id}")
            number = self.number(task.id)
            if tuple(task.outputs) != self.task(number).outputs:
                raise WorkflowError(f"{task.id} must write what it wrote so far")
            now[number] = task
        every = (now.get(number) or self.task(number) for number in range(len(self)))
        return Workflow.from_tasks(self.name, every, self.files)

    def with_times(self, runtime_s: Floats) -> Workflow:
        """The same workflow with other run times."""
        return self.changed(runtime_s=runtime_s)

    def changed(self, **columns: Any) -> Workflow:
        """The same workflow with other columns, by the names that they have in the constructor."""
        kept = (
            "ids kinds runtime_s parents cores nodes memory_bytes disk_bytes counts files "
            "inputs outputs commands rules"
        )
        return Workflow(self.name, **{name: getattr(self, name) for name in kept.split()} | columns)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"<Workflow {self.name!r}: {len(self)} tasks, {self.parents.edges} edges, "
            f"{self.depth} levels>"
        )

    def __iter__(self) -> Iterator[Task]:
        return (self.task(i) for i in range(len(self)))

    def task(self, number: int) -> Task:
        """The task with this number (its place in `ids`)."""
        return Task(
            id=self.ids[number],
            runtime_s=float(self.runtime_s[number]),
            kind=self.kinds[number],
            parents=tuple(self.ids[p] for p in self.parents.of(number)),
            inputs=tuple(self.files[f].id for f in self.inputs.of(number)),
            outputs=tuple(self.files[f].id for f in self.outputs.of(number)),
            cores=int(self.cores[number]),
            nodes=int(self.nodes[number]),
            memory_bytes=int(self.memory_bytes[number]),
            command=self.commands.get(number, ()),
            disk_bytes=int(self.disk_bytes[number]),
            counts=self._counts_of(number),
            rules=self.rules.get(number, PLAIN),
        )

    def loose_parents(self, number: int) -> frozenset[int]:
        """Those of which it is enough for this task that they are over."""
        rules = self.rules.get(number)
        if rules is None or not rules.loose:
            return frozenset()
        loose = set(rules.loose)
        return frozenset(p for p in self.parents.of(number).tolist() if self.ids[p] in loose)

    def failing_parents(self, number: int) -> frozenset[int]:
        """Those that must not succeed, or else this task is skipped."""
        rules = self.rules.get(number)
        if rules is None or not rules.if_failed:
            return frozenset()
        names = set(rules.if_failed)
        return frozenset(p for p in self.parents.of(number).tolist() if self.ids[p] in names)

    def _counts_of(self, number: int) -> Counts:
        return tuple(
            (name, int(column[number])) for name, column in self.counts.items() if column[number]
        )

    def needs(self, tasks: Ints | slice = slice(None)) -> list[Need]:
        """What these tasks take of nodes, or all."""
        columns = (self.cores, self.memory_bytes, self.nodes, self.disk_bytes)
        rows = zip(*(column[tasks].tolist() for column in columns), strict=True)
        plain = [Need(cores, memory, nodes, disk) for cores, memory, nodes, disk in rows]
        if not self.counts:
            return plain
        named = self._named_counts(tasks)
        return [need._replace(counts=of_each) for need, of_each in zip(plain, named, strict=True)]

    def _named_counts(self, tasks: Ints | slice) -> Iterator[tuple[tuple[str, int], ...]]:
        """Of each task, those that it needs."""
        counts = zip(*(column[tasks].tolist() for column in self.counts.values()), strict=True)
        for row in counts:
            yield tuple((name, n) for name, n in zip(self.counts, row, strict=True) if n)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """What tasks need of nodes beside cores and memory: `disk`, if some does, and named
        resources."""
        if self.disk_bytes.any():
            return ("disk", *self.counts)
        return tuple(self.counts)

    def fits(self, shape: NodeShape) -> NDArray[np.bool_]:
        """Which tasks an empty node of this shape could hold, or be one of their nodes; as
        `Need.fits`."""
        there = shape.amounts()
        fits = (self.nodes > 0) | (
            (self.cores <= there["cores"]) & (self.memory_bytes <= there["memory"])
        )
        for name, column in {"disk": self.disk_bytes, **self.counts}.items():
            fits &= column <= there.get(name, 0)
        return fits

    def cores_held(self, shape: NodeShape) -> Ints:
        """How many cores each task keeps from others on such nodes: its own, or what the rest of it
        stands for."""
        cores = self.cores
        columns = {"memory": self.memory_bytes, "disk": self.disk_bytes, **self.counts}
        for name, there in shape.amounts().items():
            if name in columns and 0 < there < math.inf:
                cores = np.maximum(
                    cores, -(-columns[name] * shape.cores // int(there))
                )  # rounded up
        return np.where(self.nodes > 0, self.nodes * shape.cores, cores)

    def number(self, task_id: str) -> int:
        """The number of the task with this id. KeyError if there is none."""
        found = self._names.tasks[task_id]
        if found >= len(self):  # of a workflow that this one has grown into
            raise KeyError(task_id)
        return found

    def maker(self, file: int) -> int | None:
        """The task that writes this file, the last one if several do; None: no task does."""
        found = self._names.makers.get(file)
        if found is None or found < len(self):
            return found
        return next((task for task in range(len(self)) if file in self.outputs.of(task)), None)

    def maker_of(self, name: str) -> str | None:
        """The id of the task that writes the file of this name; None: no task does."""
        file = self._names.files.get(name, len(self.files))
        if file >= len(self.files) or (task := self.maker(file)) is None:
            return None
        return self.ids[task]

    @cached_property
    def _names(self) -> _WorkflowNames:
        return _WorkflowNames(self)

    @property
    def has_temporary(self) -> bool:
        """Whether a file is not to be kept."""
        return self._names.has_temporary

    @property
    def has_bound(self) -> bool:
        """Whether a file must not leave its site."""
        return self._names.has_bound

    @cached_property
    def writers(self) -> Ints:
        """Of each file the task that writes it, or -1."""
        found = np.full(len(self.files), -1, dtype=np.int64)
        found[self.outputs.index] = self.outputs.sources()
        return found

    @cached_property
    def edge_bytes(self) -> Ints:
        """For each edge, as `parents.index` has them: the sizes, in all, of the files that go from
        parent to child."""
        sizes = np.array([file.size_bytes for file in self.files], dtype=np.float64)
        writer = self.writers
        edges = np.append(self.parents.sources() * len(self) + self.parents.index, -1)
        read = self.inputs.sources() * len(self) + writer[self.inputs.index]
        at = _places(edges, read)
        known = (edges[at] == read) & (writer[self.inputs.index] >= 0)
        total = np.bincount(at[known], sizes[self.inputs.index[known]], minlength=len(edges))
        return _column(total[:-1], np.int64)

    def repairs(self) -> list[str]:
        """What was repaired while it was read, for people; nothing if it was clean."""
        n = self.mended_run_times
        if n:
            plural = "" if n == 1 else "s"
            return [f"repaired: {n:,} run time{plural} below zero, read as 0"]
        return []

    @property
    def depth(self) -> int:
        """How many levels."""
        if len(self):
            return int(self.levels.max()) + 1
        return 0

    @property
    def work_s(self) -> float:
        """The sum of all run times: the time on one core, for the papers' one-core tasks."""
        return float(self.runtime_s.sum())

    @property
    def moved_bytes(self) -> int:
        """What tasks read of what others wrote, over all dependencies: a file counts once for each
        of its readers."""
        return int(self.edge_bytes.sum())

    def ccr(self, s_per_byte: float) -> float:
        """Communication to computation: the time to move those bytes, by all run times; 0 if
        these take none."""
        if self.work_s:
            return self.moved_bytes * s_per_byte / self.work_s
        return 0.0

    def _check_sizes(self) -> None:
        bad = [file.id for file in self.files if not file.size_bytes >= 0]
        if bad:
            raise WorkflowError(f"file size must not be negative: {_some(bad)}")

    def _check(self) -> None:
        if not self.ids:
            raise WorkflowError(f"workflow {self.name!r} has no tasks")
        _refuse_duplicates("task", self.ids, len(set(self.ids)))
        files = [file.id for file in self.files]
        _refuse_duplicates("file", files, len(set(files)))
        self._check_lengths()
        self._check_times()
        self._check_needs()
        self._check_counts()
        self._check_sizes()
        self._check_numbers("parent", self.parents, len(self))
        self._check_numbers("file", self.inputs, len(self.files))
        self._check_numbers("file", self.outputs, len(self.files))
        self._refuse_double_parents()

    def _check_lengths(self) -> None:
        lengths = [
            len(self.kinds),
            len(self.runtime_s),
            len(self.cores),
            len(self.nodes),
            len(self.memory_bytes),
            len(self.disk_bytes),
            *(len(amounts) for amounts in self.counts.values()),
            self.parents.vertices,
            self.inputs.vertices,
            self.outputs.vertices,
        ]
        n = len(self)
        if any(length != n for length in lengths):
            raise WorkflowError(
                f"workflow {self.name!r}: every column must have one entry for each of the {n} "
                "tasks"
            )

    def _check_times(self) -> None:
        times = self.runtime_s
        self._refuse(~np.isfinite(times), times, "run time must be a number")
        self._refuse(times < 0, times, "run time must not be negative")
        longest = f"run time must be at most {DURATION_S_MAX:,} s (31 years)"
        self._refuse(times > DURATION_S_MAX, times, longest)

    def _check_needs(self) -> None:
        self._refuse(self.cores < 1, self.cores, "a task needs at least one core")
        self._refuse(self.cores > COUNT_MAX, self.cores, f"a task has at most {COUNT_MAX:,} cores")
        self._refuse(self.nodes > NODES_MAX, self.nodes, f"a task has at most {NODES_MAX:,} nodes")
        self._refuse(self.nodes < 0, self.nodes, "number of nodes must not be negative")
        for what, column in (("memory", self.memory_bytes), ("disk", self.disk_bytes)):
            self._refuse(column > SIZE_BYTES_MAX, column, f"{what} must be at most 9 PB")
            self._refuse(column < 0, column, f"{what} must not be negative")

    def _check_counts(self) -> None:
        for name, amounts in self.counts.items():
            if not is_name(name) and not gpu_type(name):
                self._refuse(amounts != 0, amounts, f"{name!r} cannot be the name of a resource")
            is_out = (amounts < 0) | (amounts > COUNT_MAX)
            self._refuse(is_out, amounts, f"{name} must be from 0 to {COUNT_MAX:,}")

    def _check_numbers(self, what: str, adjacency: Adjacency, size: int) -> None:
        if adjacency.edges and (adjacency.index.min() < 0 or adjacency.index.max() >= size):
            raise WorkflowError(f"workflow {self.name!r}: a {what} number is out of range")

    def _refuse(self, bad: NDArray[np.bool_], values: NDArray[np.generic], rule: str) -> None:
        if bad.any():
            found = [f"{self.ids[i]} ({values[i]})" for i in np.flatnonzero(bad)[:5]]
            raise WorkflowError(f"{rule}: {_some(found, int(bad.sum()))}")

    def _refuse_double_parents(self) -> None:
        child = self.parents.sources()
        parent = self.parents.index
        edge = np.sort(child * len(self) + parent)
        twice = edge[1:][edge[1:] == edge[:-1]]
        if len(twice):
            found = [
                f"{self.ids[e // len(self)]} after {self.ids[e % len(self)]}"
                for e in twice[:5].tolist()
            ]
            raise WorkflowError(f"a dependency is given twice: {_some(found, len(twice))}")


class _WorkflowNames:
    """Tasks and files of a workflow by name, and of those that it has grown into: an entry stays
    true, so that each needs to be made once."""

    def __init__(self, workflow: Workflow) -> None:
        self.tasks: dict[str, int] = {}
        self.files: dict[str, int] = {}
        self.makers: dict[int, int] = {}
        """The last task that writes each file, by numbers."""
        self.commands = {
            task: words for task, words in workflow.commands.items() if task < len(workflow)
        }
        self.rules = {task: one for task, one in workflow.rules.items() if task < len(workflow)}
        self.has_temporary = False
        self.has_bound = False
        self.size = (0, 0)
        self.add(workflow, 0, 0)

    def add_rows(self, more: Workflow, first: int) -> None:
        """What few tasks have, of those that another workflow adds from this number on."""
        self.commands.update((first + task, words) for task, words in more.commands.items())
        self.rules.update((first + task, one) for task, one in more.rules.items())

    def add(self, workflow: Workflow, task: int, file: int) -> None:
        """The workflow has these and more: its tasks and files from these numbers on are new."""
        self.tasks.update(zip(workflow.ids[task:], count(task), strict=False))
        for number, one in enumerate(workflow.files[file:], file):
            self.files[one.id] = number
            self.has_temporary |= one.keep is False
            self.has_bound |= bool(one.stays)
        self.makers |= _makers(workflow.outputs, task)
        self.size = (len(workflow), len(workflow.files))


def _joined(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    column = np.concatenate([before, after])
    column.flags.writeable = False
    return column


def _column(values: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
    column = np.array(values, dtype=dtype)
    column.flags.writeable = False
    return column


def _column_or(usual: int, values: Ints | None, tasks: int) -> Ints:
    if values is None:
        return _column(np.full(tasks, usual), np.int64)
    return _column(values, np.int64)


def _adjacency_or_none(found: Adjacency | None, tasks: int) -> Adjacency:
    if found is None:
        return Adjacency(np.zeros(tasks + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return found


def _count_columns(tasks: Sequence[Task]) -> dict[str, Ints]:
    """How many of each named resource the tasks need, one column for each."""
    counts: dict[str, Ints] = {}
    for i, task in enumerate(tasks):
        for resource, amount in task.counts:
            counts.setdefault(resource, np.zeros(len(tasks), dtype=np.int64))[i] = amount
    return counts


def _refuse_second_writer(task: Task, names: _WorkflowNames, workflow: Workflow) -> None:
    """No task may write what another of the workflow writes already, or into its folder if it does
    not follow it: that one may replace the folder, and all that is in it."""

    def writer(file: str) -> str | None:
        made_by = names.makers.get(names.files.get(file, -1))
        return None if made_by is None else workflow.ids[made_by]

    for file in task.outputs:
        if (other := writer(file)) is not None:
            raise WorkflowError(f"{task.id} writes {file}, and so does {other}")
        folders = map(str, PurePosixPath(file).parents)
        made = next((folder for folder in folders if writer(folder)), None)
        if made is not None and writer(made) not in task.parents:
            raise WorkflowError(
                f"{task.id} writes {file} in {made}, which {writer(made)} makes, but is not "
                "after it"
            )


def _refuse_parents_twice(tasks: Iterable[Task]) -> None:
    for task in tasks:
        if len(set(task.parents)) < len(task.parents):
            twice = next(p for p in task.parents if task.parents.count(p) > 1)
            raise WorkflowError(f"a dependency is given twice: {task.id} after {twice}")


def whole_path(folder: str, name: str) -> str:
    """The path of a file that is looked for in this folder; the name as it is if there is none.
    By text alone."""
    if folder:
        return posixpath.normpath(posixpath.join(folder, name))
    return name


def _numbers(task: Task, parents: Sequence[str], number: Mapping[str, int]) -> list[int]:
    unknown = [p for p in parents if p not in number]
    if unknown:
        raise WorkflowError(f"task {task.id} has unknown parents: {_some(unknown)}")
    return [number[p] for p in parents]


def _refuse_duplicates(what: str, ids: Sequence[str], distinct: int) -> None:
    if distinct < len(ids):
        seen: set[str] = set()
        twice = [i for i in ids if i in seen or seen.add(i)]  # type: ignore[func-returns-value]
        raise WorkflowError(f"{what} ids must be unique, given more than once: {_some(twice)}")


def _some(names: Sequence[str], total: int | None = None) -> str:
    if total is None:
        total = len(names)
    shown = ", ".join(names[:5])
    if total > 5:
        return f"{shown} and {total - 5} more"
    return shown


def _places(sought_in: Ints, values: Ints) -> Ints:
    """Where each value stands, if it does, else anywhere."""
    order = np.argsort(sought_in)
    found = np.searchsorted(sought_in, values, sorter=order).clip(max=len(sought_in) - 1)
    return np.asarray(order[found], dtype=np.int64)


def _makers(outputs: Adjacency, first: int) -> dict[int, int]:
    """The task that makes each file, of tasks from the first on."""
    begin = int(outputs.start[first])
    writers = np.repeat(np.arange(first, outputs.vertices), np.diff(outputs.start[first:]))
    return dict(zip(outputs.index[begin:].tolist(), writers.tolist(), strict=True))


def _with_named(files: Iterable[File], tasks: Iterable[Task]) -> dict[str, File]:
    """These files, and those that tasks name, by their ids."""
    known = {file.id: file for file in files}
    for task in tasks:
        for file_id in (*task.inputs, *task.outputs):
            known.setdefault(file_id, File(file_id))
    return known


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)
