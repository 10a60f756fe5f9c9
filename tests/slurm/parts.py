"""Parts of nodes: what a run may ask of a site whose users share nodes, case by case, and how it is
held against what Slurm gave and charged.

Law 1: what tasks of a job need at one time is within what Slurm gave that job: cores, memory, GPUs,
node by node for jobs of one node.
Law 2: a job has no GPU that a running job of others has.
Law 3: a job that is a part of nodes has no more cores and GPUs than all its tasks together.

Each case names the nodes where its tasks may run, and what its jobs may have in sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real import needs
from tests.real.needs import MIB, Ran, many
from tests.slurm.cluster import SlurmCluster
from tests.slurm.shared import BIG, GPU, KINDS, THIN, USER, allocated, told

from windrow.model.resources import NodeShape
from windrow.queues.slurm.text import parse_gres

UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
SHAPES = {
    name: NodeShape(kind.cpus, kind.memory_mib * MIB, 0, parse_gres(kind.gres))
    for names, kind in zip((THIN, GPU, BIG), KINDS, strict=True)
    for name in names
}
Amount = float | tuple[float, float]


@dataclass(frozen=True)
class Case(needs.Case):
    """`queue`: keys of the queue's table. `others`: jobs that others have while it runs, as sbatch
    takes them. `where`: the nodes where its tasks may run; by the beginning of their names if it is
    a table. `bill`: what its jobs may have in sum, as Slurm counts it: a figure, or the least and
    the most. `parts`: its jobs must be parts of nodes (or whole ones, if False). `reservation`:
    nodes that are reserved for the user. `core_mib`: memory that the partition gives with a core at
    most."""

    queue: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    where: tuple[str, ...] | Mapping[str, tuple[str, ...]] = (*THIN, *GPU, *BIG)
    bill: Mapping[str, Amount] = field(default_factory=dict)
    parts: bool | None = None
    reservation: str = ""
    core_mib: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> str:
        """The text of windrow.toml."""
        lines = [f"{key} = {_toml(value)}" for key, value in self.queue.items()]
        return "\n".join(["[queues.slurm]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"'


@dataclass(frozen=True)
class Held:
    """What Slurm gave a job: its nodes; cores, MiB, GPUs and the like in sum; the GPUs by index."""

    job: str
    nodes: tuple[str, ...]
    amounts: Mapping[str, float]


def last_job(slurm: SlurmCluster) -> int:
    """The number of the last job that Slurm knows of."""
    return max((int(job) for job in _jobs(slurm)), default=0)


def _jobs(slurm: SlurmCluster) -> list[str]:
    lines = slurm.run("scontrol", "--oneliner", "show", "job").splitlines()
    return [line.split()[0].removeprefix("JobId=") for line in lines if line.startswith("JobId=")]


def held_since(slurm: SlurmCluster, last: int) -> list[Held]:
    """The user's jobs after that one which have had nodes."""
    found = []
    for job in _jobs(slurm):
        if int(job) > last:
            said = told(slurm, job)
            if said["UserId"].startswith(f"{USER}(") and said["NodeList"] != "(null)":
                nodes = slurm.run("scontrol", "show", "hostnames", said["NodeList"]).split()
                found.append(Held(job, tuple(nodes), _amounts(allocated(slurm, job))))
    return found


def _amounts(amounts: Mapping[str, str]) -> dict[str, float]:
    """Memory in MiB."""
    counts = {name: float(text) for name, text in amounts.items() if text[-1].isdecimal()}
    sizes = {name: text for name, text in amounts.items() if name not in counts}
    return counts | {name: float(text[:-1]) * UNITS[text[-1]] for name, text in sizes.items()}


def check(case: Case, slurm: SlurmCluster, ran: Sequence[Ran], jobs: Sequence[Held]) -> None:
    """Hold what ran against what Slurm gave, and that against the case."""
    by_id = {held.job: held for held in jobs}
    taken = gpus_of_others(slurm)
    for one in ran:
        held = by_id[one.env["SLURM_JOB_ID"]]
        assert set(one.nodes) <= set(held.nodes), (one.task, one.nodes, held)
        assert set(one.nodes) <= set(_places(case, one.task)), (one.task, one.nodes)
        own = needs.names(one.env.get("CUDA_VISIBLE_DEVICES", ""))
        if one.need.counts and dict(one.need.counts).get("gpus"):
            assert not any((node, gpu) in taken for node in one.nodes for gpu in own), one.task
        _check_within(one, ran, held)
    for held in jobs:
        if is_part(held):
            mine = [one for one in ran if one.env["SLURM_JOB_ID"] == held.job]
            _check_modest(case, mine, held)
    if case.parts is not None:
        assert [is_part(held) for held in jobs] == [case.parts] * len(jobs), jobs
    for name, amount in case.bill.items():
        total = len(jobs) if name == "jobs" else sum(held.amounts.get(name, 0) for held in jobs)
        least, most = amount if isinstance(amount, tuple) else (amount, amount)
        assert least <= total <= most, (name, total, amount, jobs)


def _places(case: Case, task: str) -> tuple[str, ...]:
    if isinstance(case.where, tuple):
        return case.where
    return next(nodes for start, nodes in case.where.items() if task.startswith(start))


def is_part(held: Held) -> bool:
    """Whether it leaves a core of one of its nodes to others."""
    return held.amounts["cpu"] < sum(SHAPES[node].cores for node in held.nodes)


def _check_within(one: Ran, ran: Iterable[Ran], held: Held) -> None:
    """All that ran in its job when it began has room in what the job has."""
    if one.need.nodes:
        return  # whole nodes: `needs` looks at them
    at_s = one.times[0]
    beside = [
        other
        for other in ran
        if other.env["SLURM_JOB_ID"] == held.job and other.times[0] <= at_s < other.times[1]
    ]
    assert sum(other.need.cores for other in beside) <= held.amounts["cpu"], (one.task, held)
    memory = sum(other.need.memory_bytes for other in beside) / MIB
    assert memory <= held.amounts["mem"], (one.task, memory, held)
    gpus = sum(dict(other.need.counts).get("gpus", 0) for other in beside)
    assert gpus <= held.amounts.get("gres/gpu", 0), (one.task, held)


def _check_modest(case: Case, ran: Sequence[Ran], held: Held) -> None:
    """It has no more than all its tasks need together."""
    assert held.amounts["cpu"] <= sum(_cores(case, one) for one in ran), held
    gpus = sum(dict(one.need.counts).get("gpus", 0) for one in ran)
    assert held.amounts.get("gres/gpu", 0) <= gpus, held


def _cores(case: Case, one: Ran) -> int:
    """What a task costs at the least, be it for its memory."""
    if not case.core_mib:
        return one.need.cores
    return max(one.need.cores, -(-one.need.memory_bytes // (case.core_mib * MIB)))


def gpus_of_others(slurm: SlurmCluster) -> set[tuple[str, str]]:
    """Nodes with the indices of GPUs that running jobs of others have."""
    found = set()
    for job in slurm.run("squeue", "-h", "-t", "running", "-o", "%A").split():
        text = slurm.run("scontrol", "--details", "show", "job", job)
        if f"UserId={USER}(" not in text:
            for nodes, gpus in re.findall(r"Nodes=(\S+).*GRES=gpu\S*\(IDX:(\S+)\)", text):
                for node in slurm.run("scontrol", "show", "hostnames", nodes).split():
                    found |= {(node, str(gpu)) for gpu in numbers(gpus)}
    return found


def numbers(text: str) -> set[int]:
    """`0-1,3` is 0, 1 and 3."""
    ends = [part.partition("-") for part in text.split(",")]
    return {i for first, _, last in ends for i in range(int(first), int(last or first) + 1)}


def written(case: Case, folder: Path) -> None:
    """The settings of the case, in the folder where it runs."""
    (folder / "windrow.toml").write_text(case.settings)


FULL_THIN = "-N4 --exclusive --mem=0 -w n[1-4]"
FULL_BIG = "-N2 --exclusive --mem=0 -w n[7-8]"
ONE_ON_EACH = tuple(f"-n1 -w n{node}" for node in range(1, 9))
"""A job of one core on each node: no whole node is free."""
THREE_ON_THIN = tuple(f"-N1 -n3 -w n{node}" for node in range(1, 5))
CHAIN = {f"link-{i}": {"after": f"link-{i - 1}"} if i else {} for i in range(5)}
CPUS = (*THIN, *BIG)
"""Where tasks without GPUs belong."""

PARTS = (
    Case("a task of a core costs a core", many(1), where=THIN, parts=True, bill={"cpu": 1, "billing": 1, "mem": (1, 600), "jobs": 1}),  # noqa: E501
    Case("three tasks of a core, one by one", many(3), "individual", where=THIN, parts=True, bill={"cpu": 3, "billing": 3, "jobs": 3}),  # noqa: E501
    Case("three cores", many(1, cores=3), where=THIN, parts=True, bill={"cpu": 3, "billing": 3}),
    Case("five cores, which thin nodes have not", many(1, cores=5), where=BIG, parts=True, bill={"cpu": 5, "gres/gpu": 0}),  # noqa: E501
    Case("seven cores twice", many(2, cores=7), where=BIG, parts=True, bill={"cpu": (7, 14), "gres/gpu": 0}),  # noqa: E501
    Case("memory of most of a thin node", many(1, memory="1500MiB"), where=THIN, parts=True, bill={"cpu": 1, "mem": (1500, 2000)}),  # noqa: E501
    Case("more memory than thin nodes have", many(1, memory="3000MiB"), where=BIG, parts=True, bill={"cpu": 1, "mem": (3000, 4000), "gres/gpu": 0}),  # noqa: E501
    Case("much memory and one core", many(1, memory="12000MiB"), where=BIG, parts=True, bill={"cpu": 1, "mem": (12000, 14000)}),  # noqa: E501
    Case("memory that fits twice into a thin node", many(4, memory="900MiB"), where=THIN, parts=True, bill={"cpu": (1, 4), "mem": (900, 4400)}),  # noqa: E501
    Case("a GPU costs a core and a GPU", many(1, gpus=1), where=GPU, parts=True, bill={"cpu": 1, "gres/gpu": 1, "billing": 9}),  # noqa: E501
    Case("two GPUs and one core", many(1, gpus=2), where=GPU, parts=True, bill={"cpu": 1, "gres/gpu": 2, "billing": 17}),  # noqa: E501
    Case("a GPU of a type", many(1, gpus="a100:1"), where=GPU, parts=True, bill={"cpu": 1, "gres/gpu:a100": 1}),  # noqa: E501
    Case("a GPU of a type that no node has", many(1, gpus="h100:1"), refused="h100"),
    Case("a GPU each, one by one", many(3, gpus=1), "individual", where=GPU, parts=True, bill={"cpu": 3, "gres/gpu": 3, "jobs": 3}),  # noqa: E501
    Case("a GPU and two cores", many(2, gpus=1, cores=2), where=GPU, parts=True, bill={"cpu": (2, 4), "gres/gpu": (1, 2)}),  # noqa: E501
    Case("a GPU and memory", many(1, gpus=1, memory="2000MiB"), where=GPU, parts=True, bill={"cpu": 1, "gres/gpu": 1, "mem": (2000, 3000)}),  # noqa: E501
    Case("GPUs beside tasks without", {**many(2, gpus=1), **many(4)}, "individual", where={"gpus": GPU, "plain": THIN}, parts=True, bill={"cpu": 6, "gres/gpu": 2}),  # noqa: E501
    Case("GPUs for one step of a chain", {"a": {}, "gpus-b": {"after": "a", "gpus": 1}, "c": {"after": "gpus-b"}}, "individual", where={"gpus": GPU, "": THIN}, bill={"cpu": 3, "gres/gpu": 1}),  # noqa: E501
    Case("the GPU that others leave", many(1, gpus=1), others=("-n1 -w n5 --gres=gpu:1", "-n1 -w n6 --gres=gpu:2"), where=("n5",), parts=True, bill={"gres/gpu": 1}),  # noqa: E501
    Case("the cores that others leave, on every node", many(4), others=ONE_ON_EACH, where=THIN, parts=True, bill={"cpu": (1, 4)}),  # noqa: E501
    Case("three cores that others leave", many(1, cores=3), others=ONE_ON_EACH, where=THIN, parts=True, bill={"cpu": 3}),  # noqa: E501
    Case("memory that others leave", many(1, memory="1000MiB"), others=tuple(f"-n1 --mem=900 -w n{i}" for i in range(1, 5)), where=CPUS, parts=True, bill={"cpu": 1}),  # noqa: E501
    Case("thin nodes are full: large ones, not those with GPUs", many(2), others=(FULL_THIN,), where=BIG, parts=True, bill={"cpu": (1, 2), "gres/gpu": 0}),  # noqa: E501
    Case("all others are full for long: a core of a GPU node", many(1), others=(FULL_THIN, FULL_BIG), where=GPU, parts=True, bill={"cpu": 1, "gres/gpu": 0}),  # noqa: E501
    Case("a rare node of large memory is left to others", many(8), queue={"extra": ["--exclude=n8"]}, others=THREE_ON_THIN, where=THIN, parts=True, bill={"cpu": (1, 4)}),  # noqa: E501
    Case("a rare node of large memory for who needs it", many(1, memory="3000MiB"), queue={"extra": ["--exclude=n8"]}, where=("n7",), parts=True, bill={"cpu": 1}),  # noqa: E501
    Case("CPU tasks that need avx leave GPU nodes alone", many(2), queue={"constraint": "avx"}, where=BIG, parts=True, bill={"cpu": (1, 2), "gres/gpu": 0}),  # noqa: E501
    Case("a feature of GPU nodes alone", many(1), queue={"constraint": "fat"}, where=GPU, parts=True, bill={"cpu": 1, "gres/gpu": 0}),  # noqa: E501
    Case("two features", many(1), queue={"constraint": "big&avx"}, where=BIG, parts=True, bill={"cpu": 1}),  # noqa: E501
    Case("either of two features", many(1), queue={"constraint": "thin|big"}, where=CPUS, parts=True, bill={"cpu": 1}),  # noqa: E501
    Case("a node that is named", many(2), queue={"extra": ["--nodelist=n3"]}, where=("n3",), parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("nodes that are left out", many(2), queue={"extra": ["--exclude=n1,n2"]}, where=("n3", "n4"), parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("within a reservation", many(2), queue={"extra": ["--reservation=ours"]}, reservation="n2,n7", where=("n2", "n7"), parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("beside a reservation of others", many(2), reservation="n1,n2 of others", where=("n3", "n4"), parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("a partition that may give a core twice", many(2), queue={"partition": "twice"}, where=THIN, parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("a partition that does give a core twice", many(2), queue={"partition": "forced"}, where=THIN, parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("a partition whose nodes are one user's", many(2), queue={"partition": "mine"}, where=THIN, parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("a partition where others have a core of every node", many(1), queue={"partition": "mine"}, others=ONE_ON_EACH[:3], where=("n4",), parts=True, bill={"cpu": 1}),  # noqa: E501
    Case("a partition where a job has all memory unless it asks", many(2), "individual", queue={"partition": "unsaid"}, where=THIN, parts=True, bill={"cpu": 2, "mem": (2, 2000)}),  # noqa: E501
    Case("memory by GPU is the partition's", many(1, gpus=1), queue={"partition": "gpus"}, where=GPU, parts=True, bill={"cpu": 1, "gres/gpu": 1}),  # noqa: E501
    Case("a partition that bounds memory by core", many(1, memory="900MiB"), queue={"partition": "capped"}, parts=True, core_mib=500, bill={"cpu": 2}),  # noqa: E501
    Case("a partition that charges double", many(1), queue={"partition": "dear"}, where=BIG, parts=True, bill={"cpu": 1, "billing": 2}),  # noqa: E501
    Case("a user may have four cores", many(8), queue={"qos": "cores"},  bill={"cpu": (1, 8)}),
    Case("a user may have one core", many(3), queue={"qos": "core"}, where=THIN, parts=True, bill={"cpu": (1, 3)}),  # noqa: E501
    Case("a job may have four cores", many(2, cores=2), queue={"qos": "job"}, bill={"cpu": (2, 4)}),
    Case("a user may have 3 GB", many(4, memory="1000MiB"), queue={"qos": "memory"}, where=CPUS, bill={"mem": (1000, 5000)}),  # noqa: E501
    Case("a user may have one GPU", many(3, gpus=1), queue={"qos": "gpu"}, where=GPU, parts=True, bill={"gres/gpu": (1, 3)}),  # noqa: E501
    Case("tasks without GPUs where a user may have none", many(3), queue={"qos": "no-gpu"}, where=THIN, bill={"gres/gpu": 0}),  # noqa: E501
    Case("two jobs at a time", many(6), "individual", queue={"qos": "jobs"}, where=THIN, parts=True, bill={"cpu": 6, "jobs": 6}),  # noqa: E501
    Case("a job on one node", many(6), queue={"qos": "node"}, bill={"cpu": (1, 8), "node": 1}),
    Case("an account that has eight cores", many(10), queue={"account": "physics"}, where=CPUS, bill={"cpu": (1, 10)}),  # noqa: E501
    Case("an account of which others use most", many(2), queue={"account": "physics"}, others=("-n7 -A physics",), where=CPUS, parts=True, bill={"cpu": 1}),  # noqa: E501
    Case("a chain in one slot", CHAIN, where=THIN, parts=True, bill={"cpu": 1, "jobs": 1}),
    Case("sixteen tasks in one job", many(16), where=CPUS, bill={"cpu": (1, 16), "jobs": 1, "gres/gpu": 0}),  # noqa: E501
    Case("eight tasks for the least bill", many(8), "foresight", words=("--objective", "node-hours"), where=CPUS, bill={"cpu": (1, 8)}),  # noqa: E501
    Case("cores, though the partition is whole", many(2), queue={"share": "cores"}, where=CPUS, parts=True, bill={"cpu": (1, 2)}),  # noqa: E501
    Case("by the default strategy", many(6), "auto", where=CPUS, bill={"cpu": (1, 8), "gres/gpu": 0}),  # noqa: E501
    Case("GPUs by the default strategy", {**many(2, gpus=1), **many(4)}, "auto", where={"gpus": GPU, "plain": CPUS}, bill={"gres/gpu": (1, 2)}),  # noqa: E501
)  # fmt: skip
"""Jobs that are parts of nodes."""

WHOLE = (
    Case("nodes as the user says: a task of a core", many(1), queue={"share": "nodes"}, where=THIN, parts=False, bill={"cpu": 4, "mem": 2000}),  # noqa: E501
    Case("nodes as the user says: tasks that fill one", many(4), queue={"share": "nodes"}, where=THIN, parts=False, bill={"cpu": (4, 16)}),  # noqa: E501
    Case("nodes as the user says, with GPUs", many(2, gpus=1), queue={"share": "nodes"}, where=GPU, parts=False, bill={"gres/gpu": (2, 4)}),  # noqa: E501
    Case("nodes as the site says: a task of a core", many(1), queue={"partition": "whole"}, where=THIN, parts=False, bill={"cpu": 4, "mem": 2000}),  # noqa: E501
    Case("nodes as the site says: a wide level", many(12), queue={"partition": "whole"}, where=CPUS, parts=False, bill={"gres/gpu": 0}),  # noqa: E501
    Case("nodes as the site says: tasks one by one", many(3), "individual", queue={"partition": "whole"}, parts=False, bill={"jobs": 3}),  # noqa: E501
    Case("nodes as the site says: a GPU", many(1, gpus=1), queue={"partition": "whole"}, where=GPU, parts=False, bill={"gres/gpu": 2}),  # noqa: E501
    Case("nodes as the site says: much memory", many(1, memory="7000MiB"), queue={"partition": "whole"}, where=BIG, parts=False, bill={"cpu": 8}),  # noqa: E501
    Case("a task that is alone on a node", many(1, nodes=1), where=THIN, parts=False, bill={"node": 1}),  # noqa: E501
    Case("a task on two nodes", many(1, nodes=2), where=THIN, parts=False, bill={"node": 2, "cpu": 8}),  # noqa: E501
    Case("a task on four nodes", many(1, nodes=4), where=THIN, parts=False, bill={"node": 4, "cpu": 16}),  # noqa: E501
    Case("a task on both nodes with GPUs", many(1, nodes=2, gpus=2), where=GPU, parts=False, bill={"gres/gpu": 4, "node": 2}),  # noqa: E501
    Case("all cores and all memory of a node", many(1, cores=8, memory="15000MiB"), where=BIG, parts=False, bill={"cpu": 8, "mem": (15000, 16000)}),  # noqa: E501
    Case("a whole node by its name", many(1, nodes=1), queue={"extra": ["--nodelist=n4"]}, where=("n4",), parts=False, bill={"cpu": 4}),  # noqa: E501
    Case("whole nodes of a reservation", many(1, nodes=1), queue={"extra": ["--reservation=ours"]}, reservation="n2,n7", where=("n2", "n7"), parts=False),  # noqa: E501
    Case("whole nodes with a feature", many(1, nodes=2), queue={"constraint": "big"}, where=BIG, parts=False, bill={"node": 2}),  # noqa: E501
)  # fmt: skip
"""Jobs of whole nodes."""

REFUSED = (
    Case("nine cores", many(1, cores=9), refused="needs 9 cores; a node of slurm has 8"),
    Case("three GPUs", many(1, gpus=3), refused="needs 3 GPUs; a node of slurm has 2"),
    Case("17 GB", many(1, memory="17000MiB"), refused="needs 16.6 GiB of memory; a node of slurm has 15.6 GiB"),  # noqa: E501
    Case("a resource that no node has", many(1, resources={"fpga": 1}), refused="needs 1 fpga"),
    Case("nine nodes", many(1, nodes=9), refused="needs 9 nodes"),
    Case("three nodes with GPUs", many(1, nodes=3, gpus=1), refused="needs 3 nodes"),
    Case("a GPU and 8 GB", many(1, gpus=1, memory="8000MiB"), refused="a node of slurm has not"),
    Case("GPUs where nodes have none", many(1, gpus=1), queue={"constraint": "thin"}, refused="needs 1 GPU"),  # noqa: E501
    Case("GPUs on a node that is named and has none", many(1, gpus=1), queue={"extra": ["--nodelist=n1"]}, refused="needs 1 GPU"),  # noqa: E501
    Case("five cores in a partition of thin nodes", many(1, cores=5), queue={"partition": "twice"}, refused="needs 5 cores"),  # noqa: E501
    Case("GPUs in a partition without", many(1, gpus=1), queue={"partition": "mine"}, refused="needs 1 GPU"),  # noqa: E501
    Case("longer than the QOS allows", many(1, runtime="4m"), queue={"qos": "express"}, refused="allows a job at most 3.0 min"),  # noqa: E501
    Case("two nodes where a job may have one", many(1, nodes=2), queue={"qos": "node"}, refused="node"),  # noqa: E501
    Case("two cores where a user may have one", many(1, cores=2), queue={"qos": "core"}, refused="MaxTRESPerUser cpu=1 of QOS core"),  # noqa: E501
    Case("five cores where a job may have four", many(1, cores=5), queue={"qos": "job"}, refused="cpu=4"),  # noqa: E501
    Case("4 GB where a user may have three", many(1, memory="4000MiB"), queue={"qos": "memory"}, refused="mem=3G"),  # noqa: E501
    Case("two GPUs where a user may have one", many(1, gpus=2), queue={"qos": "gpu"}, refused="gres/gpu=1"),  # noqa: E501
    Case("a GPU where a user may have none", many(1, gpus=1), queue={"qos": "no-gpu"}, refused="gres/gpu=0"),  # noqa: E501
    Case("three cores where a job may have two of a node", many(1, cores=3), queue={"partition": "capped"}, refused="2"),  # noqa: E501
    Case("three nodes where an account may have eight cores", many(1, nodes=3), queue={"account": "physics"}, refused="cpu=8"),  # noqa: E501
    Case("an account of others", many(1), queue={"account": "nosuch"}, refused="account"),
    Case("a reservation that there is not", many(1), queue={"extra": ["--reservation=nosuch"]}, refused="reservation"),  # noqa: E501
)  # fmt: skip
"""What can never run is refused before anything is submitted."""

CASES = PARTS + WHOLE + REFUSED
