"""How a pool is served: by which policy, on which nodes. Kept in the journal, so that a restart
needs no options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow.agent.hosts import Hosts, find_hosts
from windrow.model.resources import NodeShape
from windrow.streams import Pool, find_policy, find_selection

DEFAULTS: Mapping[str, Any] = {"policy": "bf", "selection": "random", "seed": 0}


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What a user may choose. `cores` and `memory_bytes` (None: not counted) are those of one
    node."""

    policy: str
    selection: str
    nodes: int
    cores: int
    memory_bytes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        find_policy(self.policy)
        find_selection(self.selection)

    @property
    def slots(self) -> int:
        """Processors of all nodes together."""
        return self.nodes * self.cores

    @property
    def shape(self) -> NodeShape:
        """What one node has."""
        return NodeShape(self.cores, self.memory_bytes)

    def pool(self) -> Pool:
        """A fresh pool, as a simulation would make it. Estimates are the run times that workflows
        came with."""
        return Pool(
            self.slots,
            find_policy(self.policy),
            selection=find_selection(self.selection),
            seed=self.seed,
        )


def _of_allocation(hosts: Hosts, environ: Mapping[str, str]) -> dict[str, Any]:
    """What Slurm says of the nodes on which this runs."""
    found: dict[str, Any] = {"nodes": len(hosts.names)}
    if (cores := environ.get("SLURM_CPUS_ON_NODE", "")).isdecimal():
        found["cores"] = int(cores)
    if (memory_mb := environ.get("SLURM_MEM_PER_NODE", "")).isdecimal() and int(memory_mb) > 0:
        found["memory_bytes"] = int(memory_mb) * 1024**2
    return found


def choose(
    wanted: Mapping[str, Any], kept: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[PoolSettings, Hosts]:
    """What the user wants now, else what the pool had, else what fits this place; and the nodes to
    do it on.

    Inside an allocation the nodes are the allocation's, whatever the pool had elsewhere.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    hosts = find_hosts(1, environ)
    here = _of_allocation(hosts, environ) if hosts.is_cluster else {}
    fallback = {"nodes": 1, "cores": len(os.sched_getaffinity(0)), "memory_bytes": None}
    settings = PoolSettings(**{**fallback, **DEFAULTS, **kept, **here, **given})
    return settings, find_hosts(settings.nodes, environ)
