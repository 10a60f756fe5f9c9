"""Pipelines whose volumes are copied, or not, while disks are wiped at random (figure 3.6), by the
rules that ship."""

import heapq
import random
from collections.abc import Iterator
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
    left = width
    wipes = wiping(mtbf_s, seed, nodes)
    wiped = [next(times) for times in wipes]
    # done, as of the last replica, and whose
    stage = [depth] * nodes
    kept = [0] * nodes
    volume = [""] * nodes
    busy = [(0.0, node, "over", 0.0) for node in range(nodes)]
    end = link = 0.0
    while busy:
        now, node, what, since = heapq.heappop(busy)
        is_wiped = wiped[node] <= now and what in ("task", "copy")
        if is_wiped and what == "task":
            now = max(since, wiped[node])
        while wiped[node] <= now:
            wiped[node] = next(wipes[node])
        replicas.passed(now - since)
        follows = "task", now + RUN_S
        if is_wiped:
            replicas.lost(volume[node])
            stage[node] = kept[node]
            if kept[node]:  # its replica is copied back
                link = max(link, now) + copy_s
                follows = "restored", link
        elif what == "copy":
            kept[node] = stage[node]
            replicas.copied(volume[node], now - since)
        elif what == "task":
            stage[node], end = stage[node] + 1, max(end, now)
            if replicas.wants(volume[node], RUN_S, RUN_S * (depth - stage[node])):
                link = max(link, now) + copy_s
                follows = "copy", link
        if stage[node] == depth:
            if not left:
                continue
            left, stage[node], kept[node], volume[node] = left - 1, 0, 0, str(left)
        heapq.heappush(busy, (follows[1], node, follows[0], now))
    return end
