"""Measures of a workflow's shape: levels, widths, work, critical path, level of parallelism. Pure
functions.

Three measures of how many tasks can run at once, from coarse to exact:

- `width`: the most tasks on one level of the whole workflow.
- `token_parallelism`: Ilyushkin, Ghit and Epema (2015), section III-B. A wave of tokens stands on
  the entry tasks; when all tasks with tokens have completed, it moves to the tasks that become
  eligible by that. Its largest extent is a lower bound of the level of parallelism. Of a workflow
  that has not started, the waves are exactly the levels, because a level is the *longest* hop count
  from an entry; of one under way they are not, as tasks of any level may be eligible.
- `level_of_parallelism`: the most tasks that can ever run at once, exact: the largest set of tasks
  of which none precedes another.

This module loads neither numpy nor numba by itself, so that `import windrow` can have it; the exact
measure loads both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.errors import UserError

if TYPE_CHECKING:
    from windrow.model import Workflow
    from windrow.model.graph import Adjacency

# tasks up to which the exact measure takes less time in Python than to load compiled code
_FEW = 3_000


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain of dependent tasks that takes longest: no number of nodes runs the workflow
    faster."""

    length_s: float
    tasks: tuple[int, ...]
    """Task numbers from an entry on."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A workflow in figures. `widths` and `level_work_s` have one entry per level, from the entries
    on."""

    tasks: int
    edges: int
    files: int
    levels: int
    width: int
    widths: tuple[int, ...]
    work_s: float
    level_work_s: tuple[float, ...]
    critical_path_s: float
    critical_tasks: tuple[str, ...]
    size_bytes: int
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class KindShape:
    """All tasks of one kind, that is, runs of one program."""

    name: str
    tasks: int
    work_s: float
    first_level: int
    last_level: int


def shape(workflow: Workflow) -> Shape:
    """All measures that cost one pass over tasks and edges."""
    widths = [0] * workflow.depth
    work_s = [0.0] * workflow.depth
    for level, runtime_s in zip(workflow.levels.tolist(), workflow.runtime_s.tolist(), strict=True):
        widths[level] += 1
        work_s[level] += runtime_s
    path = critical_path(workflow)
    return Shape(
        tasks=len(workflow),
        edges=workflow.parents.edges,
        files=len(workflow.files),
        levels=workflow.depth,
        width=max(widths),
        widths=tuple(widths),
        work_s=workflow.work_s,
        level_work_s=tuple(work_s),
        critical_path_s=path.length_s,
        critical_tasks=tuple(workflow.ids[v] for v in path.tasks),
        size_bytes=sum(file.size_bytes for file in workflow.files),
        moved_bytes=workflow.moved_bytes,
    )


def kinds(workflow: Workflow) -> tuple[KindShape, ...]:
    """The kinds of task, in the order of their first level, then of first appearance in the
    workflow."""
    levels: dict[str, list[int]] = {}
    times_s: dict[str, list[float]] = {}
    rows = zip(workflow.kinds, workflow.levels.tolist(), workflow.runtime_s.tolist(), strict=True)
    for name, level, runtime_s in rows:
        levels.setdefault(name, []).append(level)
        times_s.setdefault(name, []).append(runtime_s)
    found = (
        KindShape(name, len(on), sum(times_s[name]), min(on), max(on))
        for name, on in levels.items()
    )
    return tuple(sorted(found, key=lambda kind: kind.first_level))


def critical_path(workflow: Workflow) -> CriticalPath:
    """The longest chain by run time; among equals, the one whose tasks come first in the
    workflow."""
    start, index = _lists(workflow.parents)
    end_s = workflow.runtime_s.tolist()  # becomes each task's earliest end, in topological order
    for v in workflow.order.tolist():
        parents = index[start[v] : start[v + 1]]
        if parents:
            end_s[v] += max([end_s[p] for p in parents])
    v = end_s.index(max(end_s))
    path = [v]
    while parents := index[start[v] : start[v + 1]]:
        v = min(parents, key=lambda p: (-end_s[p], p))
        path.append(v)
    return CriticalPath(float(end_s[path[0]]), tuple(reversed(path)))


def token_parallelism(workflow: Workflow, done: Iterable[int] = ()) -> int:
    """The most tasks in any one wave of eligible tasks, when the tasks numbered `done` have
    completed already."""
    start, index = _lists(workflow.children)
    waiting = workflow.parents.degrees().tolist()

    def freed(tasks: Iterable[int]) -> list[int]:
        """What waits for nothing else, once these have completed."""
        reached = []
        for v in tasks:
            for c in index[start[v] : start[v + 1]]:
                waiting[c] -= 1
                if waiting[c] == 0:
                    reached.append(c)
        return reached

    completed = _completed(workflow, done)
    freed(completed)
    widest = 0
    wave = [v for v, count in enumerate(waiting) if count == 0 and v not in completed]
    while wave:
        widest = max(widest, len(wave))
        wave = freed(wave)
    return widest


def level_of_parallelism(workflow: Workflow, done: Iterable[int] = ()) -> int:
    """The most tasks that can ever run at once, when the tasks numbered `done` have completed
    already."""
    return len(largest_antichain(workflow, done))


def largest_antichain(workflow: Workflow, done: Iterable[int] = ()) -> tuple[int, ...]:
    """Numbers, ascending, of as many tasks as can ever run at once: the witness of
    `level_of_parallelism`."""
    import numpy as np  # noqa: PLC0415

    from windrow.kernels import antichain  # noqa: PLC0415
    from windrow.kernels.jit import in_python, is_loaded  # noqa: PLC0415

    remaining = np.ones(len(workflow), dtype=np.bool_)
    remaining[list(_completed(workflow, done))] = False
    with in_python(really=not is_loaded() and len(workflow) <= _FEW):
        members = antichain.largest_antichain(
            workflow.parents, workflow.children, workflow.order, remaining
        )
    return tuple(members.tolist())


def _lists(adjacency: Adjacency) -> tuple[list[int], list[int]]:
    # Element by element, plain lists are several times faster than numpy arrays.
    return adjacency.start.tolist(), adjacency.index.tolist()


def _completed(workflow: Workflow, done: Iterable[int]) -> frozenset[int]:
    completed = frozenset(done)
    for v in sorted(completed):
        for p in workflow.parents.of(v).tolist():
            if p not in completed:
                raise UserError(
                    f"task {workflow.ids[v]} cannot be done: its parent {workflow.ids[p]} is not"
                )
    return completed
