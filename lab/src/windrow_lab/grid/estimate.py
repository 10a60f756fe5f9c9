"""What a workflow would take on each of several batch queues, and which of them to use (Zhang
5.2.1).

A task is some iterations and some megabytes to write; on a queue it takes start + iterations · s +
megabytes · s (5.3.2), after a wait. `Model` is what is believed of all queues; monitors change it
with a fading memory (5.2.2).

Figures 5.2 and 5.3 as they must have been meant. A level takes as long as its longest task, its
wait included (`waits`: the prose says so, the figure leaves it out); a queue with fewer nodes than
tasks takes it in rounds if it is alone (exclusive), or once and moves all that the level writes
(collaborative). The best queue is that of least time; others join until there are more nodes than
the width. The prose stops sooner only if the pool's time would grow, and since that time is the
lesser of the old one and the new queue's, it never does. `stops`: the figure's code continues only
while a queue's collaborative time is less than the estimate so far, which begins with the exclusive
time of the best (`begins`; if it began with its power, no other could join).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Bools, Floats, Grid

MB = 1e6
FADING = 0.7
DISK_SHARE = 0.05
"""A task tells of a disk only if it is expected to write for at least this part of its run: what a
task that writes little took too long would else be booked on a few megabytes."""


@dataclass(frozen=True, eq=False)
class LoopWork:
    """A workflow whose tasks are iterations and megabytes to write."""

    workflow: Workflow
    iterations: Floats
    written_mb: Floats

    @property
    def moved_mb(self) -> Floats:
        """Along each edge, as the workflow's `parents` have them."""
        return self.workflow.edge_bytes / MB


@dataclass(frozen=True, eq=False)
class Model:
    """What is believed of queues: nodes, what tasks take and how long they wait there, and what
    moving data takes."""

    nodes: Ints
    start_s: Floats
    iteration_s: Floats
    s_per_mb: Floats
    wait_s: Floats
    link_s_per_mb: Floats

    @staticmethod
    def of(grid: Grid) -> Model:
        """What a grid's clusters have as attributes (the recipe `four-queues`)."""
        start_s, iteration_s, s_per_mb, wait_s = (
            np.array([float(cluster.attributes[name]) for cluster in grid.clusters])
            for name in ("start_s", "iteration_s", "s_per_mb", "wait_s")
        )
        links = np.where(np.eye(len(grid.nodes)), 0.0, MB * grid.s_per_byte)
        return Model(grid.nodes, start_s, iteration_s, s_per_mb, wait_s, links)

    def copy(self) -> Model:
        """One that monitors may change."""
        return replace(
            self,
            **{
                name: getattr(self, name).copy() for name in ("wait_s", "s_per_mb", "link_s_per_mb")
            },
        )

    def run_s(self, work: LoopWork) -> Floats:
        """Of each task on each queue."""
        return (
            self.start_s
            + np.outer(work.iterations, self.iteration_s)
            + np.outer(work.written_mb, self.s_per_mb)
        )

    def saw(self, queue: int, wait_s: float, run_s: float, iterations: float, mb: float) -> None:
        """A task waited and ran so long: the wait, and what a megabyte takes to write, move towards
        it."""
        _fade(self.wait_s, queue, wait_s)
        computing_s = self.start_s[queue] + self.iteration_s[queue] * iterations
        writing_s = self.s_per_mb[queue] * mb
        if writing_s > DISK_SHARE * (computing_s + writing_s):
            _fade(self.s_per_mb, queue, max(0.0, float(run_s - computing_s) / mb))

    def saw_move(self, link: tuple[int, int], mb: float, took_s: float) -> None:
        """Data were moved; seconds per megabyte are smoothed, as files differ in size."""
        if mb:
            _fade(self.link_s_per_mb, link, took_s / mb)


def _fade(values: Floats, at: int | tuple[int, int], seen: float) -> None:
    values[at] = FADING * values[at] + (1 - FADING) * seen


def estimate(
    work: LoopWork, model: Model, left: Bools | None = None, *, waits: bool = True
) -> tuple[Floats, Floats]:
    """Exclusive and collaborative time on each queue, of all tasks or of those that are left."""
    tasks = _chosen(left)
    levels = work.workflow.levels[tasks]
    run_s = model.run_s(work)[tasks]
    written = work.written_mb[tasks]
    wait_s = model.wait_s if waits else np.zeros(len(model.nodes))
    exclusive = np.zeros(len(model.nodes))
    collaborative = np.zeros(len(model.nodes))
    neighbours = max(1, len(model.nodes) - 1)
    s_per_mb = model.link_s_per_mb.sum(axis=1) / neighbours  # in the mean
    for level in np.unique(levels):
        here = levels == level
        longest = run_s[here].max(axis=0) + wait_s
        rounds = -(-int(here.sum()) // model.nodes)
        exclusive += longest * rounds
        collaborative += longest + np.where(rounds > 1, written[here].sum() * s_per_mb, 0.0)
    return exclusive, collaborative


def _chosen(left: Bools | None) -> Bools | slice:
    """Which tasks count: all, or those that are left."""
    if left is None:
        return slice(None)
    return left


def choose(
    work: LoopWork,
    model: Model,
    left: Bools | None = None,
    *,
    waits: bool = True,
    stops: str = "width",
    begins: str = "exclusive",
) -> list[int]:
    """The queues to use for all tasks, or for those that are left; the best first."""
    exclusive, collaborative = estimate(work, model, left, waits=waits)
    power = np.minimum(exclusive, collaborative)
    order: list[int] = np.argsort(power, kind="stable").tolist()
    width = np.bincount(work.workflow.levels[_chosen(left)]).max()
    pool = order[:1]
    if begins == "exclusive":
        best = exclusive[order[0]]
    else:
        best = power[order[0]]
    for queue in order[1:]:
        if model.nodes[pool].sum() > width:
            break
        if stops == "better" and not collaborative[queue] < best:
            break
        pool.append(queue)
        best = min(best, collaborative[queue])
    return pool


def combined(chosen: list[int], old: list[int]) -> list[int]:
    """Equation 5.1: a part of the old pool replaces it; what is new joins it."""
    if set(chosen) <= set(old):
        return chosen
    return sorted({*chosen, *old})
