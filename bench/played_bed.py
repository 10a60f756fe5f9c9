"""What the simulator says of the loads of the test bed: `windrow_lab.storage.flows`, and the
policies of the caches.

It is told the speed of the link to home, and what the smallest request takes there; all else is the
load itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.loads import STANDALONE, Way, Work
from windrow.agent.data.blocks import Deal
from windrow.agent.data.cache import LRU, CacheIndex
from windrow.model.graph import Adjacency
from windrow_lab.storage.allocations import ALL_BATCH, Environment, PipelineWorkload
from windrow_lab.storage.flows import (
    DataFlow,
    FlowSimulation,
    Played,
    alone,
    canonical,
    play,
    through_home,
)

MB = 1_000_000
_DISK = 1e9  # bytes a second of a node's own disk, which is memory on the bed


def played(work: Work, way: Way, where: Environment, *, is_warm: bool = False) -> Played:
    """The load, done this way."""
    return play(flow_of(work, way, where.nodes, is_warm=is_warm), ALL_BATCH, where)


def environment(nodes: int, rate: float, latency_s: float, local: float = _DISK) -> Environment:
    """Of a bed: its link to home in MB/s."""
    return Environment(nodes, 10**15, rate * MB, local, latency_s=latency_s)


def flow_of(work: Work, way: Way, nodes: int, *, is_warm: bool = False) -> DataFlow:
    """A load as the simulator knows it."""
    depth = len(work.stages)
    width = work.width
    sizes = np.array([0, *(stage.written for stage in work.stages)], dtype=np.float64)
    chain = canonical(PipelineWorkload(width, depth, 1, 1, 1.0))
    reads = np.tile([0, *(stage.reads for stage in work.stages[1:])], width)
    flow = replace(
        chain,
        run_s=np.array(work.run_s).ravel(),
        volumes=np.array(
            [0 if is_warm else stage.batch for stage in work.stages], dtype=np.float64
        ),
        files=np.tile(sizes, width),
        inputs=Adjacency(np.append(0, np.cumsum(reads)), np.repeat(chain.inputs.index, reads)),
    )
    if way is STANDALONE:
        return replace(alone(flow, nodes), is_kept=flow.is_kept | flow.is_written)
    return through_home(flow, is_local=way.reads_disk, is_cached=way.is_cached)


def scans(volume: int, turns: Sequence[int], members: int, room: int) -> list[int]:
    """Blocks that cross for each turn, in which all members read one volume: what the policies of
    the caches say.

    Of a cache with room for `room` blocks at each member, which has only what it is the primary of.
    """
    names = {f"n{n}": room for n in range(members)}
    deal = Deal("all", 4 * volume, names)
    caches = {name: CacheIndex(room) for name in names}
    for name, cache in caches.items():
        own = sum(deal.primary(n) == name for n in range(4 * volume))
        cache.allocate("all", min(own, room), LRU)
    missed = []
    for turn in turns:
        missed.append(0)
        for block in range(turn * volume, (turn + 1) * volume):
            cache = caches[str(deal.primary(block))]
            if not cache.use("all", block):
                missed[-1] += 1
                cache.put("all", block, 1, is_primary=True)
    return missed


def played_scans(
    volume: int, turns: Sequence[int], missed: Sequence[int], block: int, where: Environment
) -> Played:
    """As one chain of jobs on each node. A turn whose blocks all cross reads a new volume, another
    one an old one."""
    latest = dict[int, int]()
    index = list[int]()
    fetched = 0
    for turn, count in zip(turns, missed, strict=True):
        assert count in (0, volume), "a part of a volume crosses, which this cannot tell"
        if count:
            latest[turn] = fetched
            fetched = fetched + 1
        index.append(latest[turn])
    chain = canonical(PipelineWorkload(where.nodes, len(turns), 1, 0))
    each = np.tile(index, where.nodes)
    batch = Adjacency(np.arange(len(each) + 1), each)
    return play(
        replace(chain, batch=batch, volumes=np.full(fetched, float(volume * block))),
        ALL_BATCH,
        where,
    )


def home_bytes(flow: DataFlow, where: Environment, times_s: Sequence[float]) -> list[float]:
    """What has crossed by each of these times."""
    run = FlowSimulation(flow, ALL_BATCH, where, (np.zeros(0), np.zeros(0, dtype=np.int64)))
    return [run.played(run.advance(max(0.0, when))).moved for when in times_s]
