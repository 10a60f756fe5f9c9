"""A workload laid out for the compiled simulation: the tables of `kernels/streams.py` as they are
before the start."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Adjacency, Ints
from windrow.model.workflow import Floats
from windrow.streams.selection import Selection, first_draw
from windrow_lab.kernels import streams as kernel


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables; those that a simulation changes are copied for it."""

    tasks: Ints
    flows: Ints
    edges: Ints
    runtime_s: Floats


def lay_out(workflows: Sequence[Workflow], selection: Selection, seed: int) -> Layout:
    """All workflows end to end, with the ranks that the selection gives to their tasks, or with
    draws from a seed."""
    counts = np.array([len(w) for w in workflows], dtype=np.int64)
    first = np.cumsum(counts) - counts
    parents = _joined([w.parents for w in workflows], first)
    children = _joined([w.children for w in workflows], first)
    tasks = np.zeros((counts.sum() + 1, kernel.TASK_COLUMNS), dtype=np.int64)
    tasks[:, kernel.PARENTS] = parents.start
    tasks[:, kernel.CHILDREN] = children.start + parents.edges
    _describe(tasks[:-1], workflows, parents, selection)
    flows = np.zeros((len(workflows), kernel.FLOW_COLUMNS), dtype=np.int64)
    flows[:, kernel.FIRST] = first
    flows[:, kernel.TASKS] = counts
    flows[:, kernel.DRAW] = [first_draw(seed, number) for number in range(len(workflows))]
    edges = np.concatenate([parents.index, children.index])
    return Layout(tasks, flows, edges, np.concatenate([w.runtime_s for w in workflows]))


def _describe(
    tasks: Ints, workflows: Sequence[Workflow], parents: Adjacency, selection: Selection
) -> None:
    """What each task is by itself: whose, how wide, of which level and rank."""
    levels = np.concatenate([w.levels for w in workflows])
    tasks[:, kernel.CORES] = np.concatenate([w.cores for w in workflows])
    tasks[:, kernel.OWNER] = np.repeat(np.arange(len(workflows)), [len(w) for w in workflows])
    tasks[:, kernel.RANK] = np.concatenate([_ranks(w, selection) for w in workflows])
    tasks[:, kernel.GENERATION] = levels
    tasks[:, kernel.SUPPORT] = _support(parents, levels)


def _ranks(workflow: Workflow, selection: Selection) -> Ints:
    """Those of its tasks; -1 if they are drawn."""
    ranks = selection(workflow)
    if ranks is None:
        return np.full(len(workflow), -1)
    return np.array(ranks)


def _support(parents: Adjacency, levels: Ints) -> Ints:
    """How many parents each task has on the level just above."""
    child = parents.sources()
    above = child[levels[parents.index] == levels[child] - 1]
    return np.bincount(above, minlength=parents.vertices)


def _joined(lists: Sequence[Adjacency], first: Ints) -> Adjacency:
    edges = np.cumsum([0, *(a.edges for a in lists)])
    start = np.concatenate(
        [[0], *(a.start[1:] + e for a, e in zip(lists, edges[:-1], strict=True))]
    )
    index = np.concatenate([a.index + f for a, f in zip(lists, first, strict=True)])
    return Adjacency(start.astype(np.int64), index.astype(np.int64))
