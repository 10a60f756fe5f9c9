"""Pipelines whose volumes are copied, or not, while disks are wiped at random (figure 3.6), by the
rules that ship."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from windrow.agent.data.replicas import Replicas

RUN_S = 60.0


def wiping(mtbf_s: float, seed: int, nodes: int) -> list[Iterator[float]]:
    """When the disk of each node is wiped."""

    def times(draw: random.Random) -> Iterator[float]:
        when = 0.0
        while True:
            when += draw.expovariate(1 / mtbf_s) if mtbf_s else inf
            yield when

    return [times(random.Random(f"{seed} {node}")) for node in range(nodes)]


@dataclass(slots=True)
class _NodeWork:
    """What a node is at: a pipeline, how many of its stages are done and of how many there is a
    replica."""

    volume: str
    done: int
    kept: int


def done_s(
    rule: str,
    copy_s: float,
    mtbf_s: float,
    seed: int,
    *,
    width: int = 64,
    depth: int = 3,
    nodes: int = 16,
) -> float:
    """When all pipelines are done: each node runs one after the other, and its disk is wiped now
    and then.

    Copies go over one link, one after the other. That a disk was wiped is seen at once where a task
    runs, and at the end of a copy.
    """
    replicas = Replicas(rule)
    wipes = [_Wipes(times) for times in wiping(mtbf_s, seed, nodes)]
    at = [_NodeWork("", depth, 0) for _ in range(nodes)]  # as if a pipeline were over
    pipelines = iter(range(width, 0, -1))
    busy = [(0.0, node, "over", 0.0) for node in range(nodes)]
    end = 0.0
    link = 0.0
    while busy:
        now, node, what, since = heapq.heappop(busy)
        mine = at[node]
        now, is_wiped = wipes[node].seen(what, since, now)
        replicas.passed(now - since)
        if what == "task" and not is_wiped:
            end = max(end, now)
        follows = _ended(mine, what, is_wiped, replicas, now - since, depth)
        if mine.done == depth:
            following = next(pipelines, None)
            if following is None:
                continue
            at[node] = _NodeWork(str(following), 0, 0)
        if follows == "task":
            heapq.heappush(busy, (now + RUN_S, node, follows, now))
        else:
            link = max(link, now) + copy_s
            heapq.heappush(busy, (link, node, follows, now))
    return end


def _ended(
    mine: _NodeWork, what: str, is_wiped: bool, replicas: Replicas, took_s: float, depth: int
) -> str:
    """What a node does next, and what is left of its pipeline, when something has ended there."""
    if is_wiped:
        replicas.lost(mine.volume)
        mine.done = mine.kept
        if mine.kept:  # its replica is copied back
            return "restored"
    elif what == "copy":
        mine.kept = mine.done
        replicas.copied(mine.volume, took_s)
    elif what == "task":
        mine.done += 1
        if replicas.wants(mine.volume, RUN_S, RUN_S * (depth - mine.done)):
            return "copy"
    return "task"


class _Wipes:
    """When the disk of a node is wiped next."""

    def __init__(self, times: Iterator[float]) -> None:
        self._times = times
        self._next_s = next(times)

    def seen(self, what: str, since: float, now: float) -> tuple[float, bool]:
        """When something ends that ran since then, and whether the disk was wiped meanwhile."""
        is_wiped = self._next_s <= now and what in ("task", "copy")
        if is_wiped and what == "task":
            now = max(since, self._next_s)
        while self._next_s <= now:
            self._next_s = next(self._times)
        return now, is_wiped
