"""How a partition of Slurm shares its nodes, and what jobs there take of them.

Rule 1: parts of nodes can be had if the controller counts cores (`select/cons_tres`) and the
partition does not give whole nodes (`OverSubscribe=EXCLUSIVE`).
Rule 2: a job without a word on memory gets what the site says goes with a core; if it says nothing,
Slurm gives all memory of the node, so the job asks for an even share.
Rule 3: others' jobs are counted in parts like ours: by their cores, or by the cores that their
memory takes from others if that is more; a job that shares its nodes with no one, by whole nodes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

from windrow.model.parts import Billing, Sharing
from windrow.model.resources import NodeShape
from windrow.model.site import kinds_of
from windrow.queues.port import OthersJob, PastJob
from windrow.queues.slurm.text import SlurmNode
from windrow.queues.slurm.tres import Bound, name_of_gres

_COUNTS_CORES = ("cons_tres", "cons_res")
LONG_S = 300.0
"""So long must all other nodes be in use before tasks take nodes with GPUs or large memory that
they do not need."""
_GIB = 1 << 30
_UNITS = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def why_whole(config: Mapping[str, str], partition: Mapping[str, str]) -> str:
    """Why jobs there have whole nodes, in Slurm's words; empty if they can have parts."""
    select = config.get("SelectType", "")
    if not select.endswith(_COUNTS_CORES):
        return f"SelectType={select}"
    if (shares := partition.get("OverSubscribe", "")) == "EXCLUSIVE":
        return f"OverSubscribe={shares} of partition {partition['PartitionName']}"
    return ""


def sharing_of(
    config: Mapping[str, str],
    partition: Mapping[str, str],
    nodes: Sequence[SlurmNode],
    bounds: Iterable[Bound],
) -> Sharing:
    """How these nodes of a partition are shared. `bounds` limit what the user may have."""
    every = list(bounds)
    parameters = partition.get("SelectTypeParameters", "NONE")
    if parameters in ("NONE", "(null)"):
        parameters = config.get("SelectTypeParameters", "")
    cores = sum(node.shape.cores for node in nodes)
    even = sum(node.shape.memory_bytes or 0 for node in nodes) // max(1, cores)
    least = min((node.shape.memory_bytes or 0) // node.shape.cores for node in nodes)
    given = _mib(partition.get("DefMemPerCPU", "")) or _mib(config.get("DefMemPerCPU", ""))
    most = _mib(partition.get("MaxMemPerCPU", "")) or _mib(config.get("MaxMemPerCPU", ""))
    return Sharing(
        core_bytes=min(given or least, least) or 1,
        even_bytes=max(even, 1),
        most_core_bytes=most or None,
        counts_memory="MEMORY" in parameters.upper(),
        most_cores=_least([_number(partition.get("MaxCPUsPerNode", "")), *_of(every, "cpu", True)]),
        most_nodes=_least([_number(partition.get("MaxNodes", "")), *_of(every, "node", False)]),
        bounds=tuple(_bounds(every)),
        billing=_billing(config, partition),
        by_user=partition.get("ExclusiveUser") == "YES",
    )


def _of(bounds: Iterable[Bound], resource: str, is_per_node: bool) -> Iterator[int]:
    return (
        one.amount for one in bounds if one.resource == resource and one.is_per_node == is_per_node
    )


def _bounds(bounds: Iterable[Bound]) -> Iterator[tuple[str, int, str]]:
    """Those on cores, memory and devices, by our names for these."""
    names = {"cpu": "cores", "mem": "memory"}
    for one in bounds:
        kind, _, name = one.resource.partition("/")
        if not one.is_per_node and (kind == "gres" or kind in names):
            yield names.get(one.resource) or name_of_gres(name), one.amount, one.name


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def _number(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    return None


def _mib(text: str) -> int:
    """Bytes of a number of mebibytes; 0 if there is none."""
    if text.isdecimal():
        return int(text) << 20
    return 0


_CHARGED = {"cpu": "core", "mem": "gib", "gres/gpu": "gpu"}


def _billing(config: Mapping[str, str], partition: Mapping[str, str]) -> Billing:
    """What a partition charges; without a word on it, for each core."""
    weights = partition.get("TRESBillingWeights", "")
    if not weights or weights == "(null)":
        return Billing()
    found = {"core": 0.0, "gib": 0.0, "gpu": 0.0}
    for one in weights.split(","):
        name, _, value = one.partition("=")
        match = re.fullmatch(r"([\d.]+)([KMGT]?)", value)
        if match is not None and (what := _CHARGED.get(name.lower())):
            found[what] = float(match[1])
            if what == "gib":
                found[what] *= _GIB / _UNITS[match[2]]
    takes_most = "MAX_TRES" in config.get("PriorityFlags", "")
    return Billing(**found, takes_most=takes_most)


class Counted:
    """A partition's nodes and jobs, counted in parts that are all like ours.

    `nodes` are all of the partition; `names` those that our jobs may have. `is_any`: also those
    with devices or memory that such parts do not need.
    """

    def __init__(
        self,
        sharing: Sharing,
        part: NodeShape,
        nodes: Sequence[SlurmNode],
        names: Iterable[str],
        *,
        is_any: bool = False,
    ) -> None:
        self.sharing = sharing
        self.part = part
        self._blocks = sharing.blocks_cores(part.cores, part.memory_bytes or 0)
        allowed = frozenset(names)
        kinds = kinds_of(node.shape for node in nodes if node.name in allowed)
        self._ours = {
            node.name: node
            for node in nodes
            if node.name in allowed
            and (
                sharing.parts_on(part, node.shape)
                if is_any
                else sharing.is_for(part, node.shape, kinds)
            )
        }
        self._cores = {node.name: node.shape.cores for node in nodes}

    @property
    def others(self) -> list[str]:
        """The nodes of which such parts are not to be had, although our jobs may have them."""
        return sorted(set(self._cores) - set(self._ours))

    def parts(self, *, is_open: bool = False) -> int:
        """How many there are on nodes that are usable, or open to new jobs."""
        return sum(
            self.sharing.parts_on(self.part, node.shape)
            for node in self._ours.values()
            if (node.is_open if is_open else node.is_usable)
        )

    def most(self) -> int:
        """How many a job may have, whatever state the nodes are in."""
        kinds = kinds_of(node.shape for node in self._ours.values())
        return self.sharing.parts_of_job(self.part, kinds)

    def jobs(self, jobs: Iterable[OthersJob], me: str) -> list[OthersJob]:
        """The same jobs with the parts that they take from us, without those that take none; of
        running ones never more in all than there are.

        Each is rounded so that the sum of all so far is right. Our own come first: of them each
        counts in full.
        """
        found = list[OthersJob]()
        room = self.parts()
        exact = 0.0
        counted = 0
        for job in sorted(jobs, key=lambda job: (not job.is_running, job.user != me)):
            taken = self._blocked_cores(job, me) / self._blocks
            if not job.is_running:
                found.append(replace(job, nodes=max(1, round(taken))))
                continue
            exact += taken
            nodes = min(room, round(exact)) - counted
            if nodes > 0:
                counted += nodes
                found.append(replace(job, nodes=nodes))
        return found

    def free_in_s(self, jobs: Iterable[OthersJob], me: str, now_s: float) -> float:
        """How long at least until one of these parts is free, if running jobs take what they
        requested; 0: one is."""
        running = [job for job in self.jobs(jobs, me) if job.is_running]
        if self.parts(is_open=True) > sum(job.nodes for job in running):
            return 0.0
        ends = ((job.started_s or now_s) + job.requested_s for job in running)
        return max(0.0, min(ends, default=inf) - now_s)

    def past(self, jobs: Iterable[PastJob]) -> list[PastJob]:
        """The same for jobs of the past."""
        found = list[PastJob]()
        for job in jobs:
            cores = self.sharing.blocks_cores(job.cores or job.nodes, job.memory_bytes)
            found.append(replace(job, nodes=max(1, round(cores / self._blocks))))
        return found

    def _blocked_cores(self, job: OthersJob, me: str) -> float:
        alone = job.is_alone or (self.sharing.by_user and job.user != me)
        if job.is_running and job.hosts:
            ours = [name for name in job.hosts if name in self._ours]
            if alone:
                return float(sum(self._cores[name] for name in ours))
            part = len(ours) / len(job.hosts)
        else:
            each = [node.shape.cores for node in self._ours.values()]
            if alone and each:
                return max(job.cores, job.nodes * sum(each) / len(each))
            part = 1.0
        return part * self.sharing.blocks_cores(job.cores or 1, job.memory_bytes)
