"""Which nodes the queue gave to this job, and how to start something on each.

Slurm says it in its environment, with the number of parts that a job of parts of nodes has on each.
If no queue is known, every node is this machine. So it is in a job of the local queue, wherever
that runs: inside an allocation the environment has the names of both, and the inner one counts.

One command is asked here and not through `queues.command`, since this runs on compute nodes with
nothing but the standard library: `scontrol show hostnames`, which spells out a list of nodes and
asks no server.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from socket import gethostname

from windrow.errors import OutsideError, UserError

_LIST_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Hosts:
    """The nodes of this job, or the machines of its parts of nodes; the agent is on the first.

    `are_here`: all of them are this machine. `is_cluster`: files may have been written on other
    machines. `has_steps`: the queue can start something on this node as well (`launch`), and tells
    it when it will take the nodes away. `cores`: of each part, if the job has parts of nodes; 0: it
    has whole ones.
    """

    names: tuple[str, ...]
    are_here: bool
    is_cluster: bool
    has_steps: bool = False
    cores: int = 0

    @property
    def has_parts(self) -> bool:
        """Whether others have parts of the same machines."""
        return self.cores > 0

    def machine(self, place: int) -> int:
        """The first place on the machine of this one: all of them have one process there."""
        if self.has_parts:
            return self.names.index(self.names[place])
        return place

    def before(self, place: int) -> int:
        """How many places come before it on the same machine."""
        if self.are_here:
            return place
        if self.has_parts:
            return self.names[:place].count(self.names[place])
        return 0

    def launch(self, place: int) -> tuple[str, ...]:
        """What to put before a command so that it runs on this node, once, for as long as the job
        wants it.

        Steps of tasks themselves may share the node (`--overlap`), and the step has all of it. It
        is not a rank of an MPI program, whatever the site's default, or programs below it would
        take themselves for one (`--mpi=none`). (Not `--cpu-bind=none`: if binding is not
        configured, srun complains of it. The node undoes any binding.)

        A step of a job of parts has all cores that the job has there, and stays bound to them.
        """
        options: tuple[str, ...] = (
            "--nodes=1",
            "--ntasks=1",
            "--mem=0",
            "--overlap",
            "--mpi=none",
            "--quiet",
            "--unbuffered",
        )
        if self.has_parts:
            options += (f"--cpus-per-task={self.cores * self.names.count(self.names[place])}",)
        return ("srun", *options, f"--nodelist={self.names[place]}")


def queue_id(environ: Mapping[str, str]) -> str:
    """The id of this job in its queue, as the queue writes it; empty if no queue is known."""
    if _is_local(environ):
        return environ.get("WINDROW_JOB_ID", "")
    if array := environ.get("SLURM_ARRAY_JOB_ID"):
        return f"{array}_{environ.get('SLURM_ARRAY_TASK_ID')}"
    return environ.get("SLURM_JOB_ID") or environ.get("PBS_JOBID", "")


def find_hosts(nodes: int, environ: Mapping[str, str], part_cores: int = 0) -> Hosts:
    """The nodes of this job, or its parts of nodes, each with that many cores. OutsideError if the
    queue gave fewer than `nodes`."""
    is_local = _is_local(environ)
    if is_in_slurm(environ) and part_cores:
        hosts = _slurm_parts(environ, part_cores)
    elif is_in_slurm(environ):
        hosts = _slurm(environ)
    elif "PBS_JOBID" in environ and not is_local:
        if nodes > 1:
            raise UserError(
                "jobs of several nodes are not supported under PBS yet; cut into jobs of one node"
            )
        hosts = Hosts((gethostname(),), True, True)
    else:
        if is_local:
            given = environ.get("WINDROW_JOB_NODES")
        else:
            given = None
        hosts = Hosts((gethostname(),) * int(given or nodes), True, False)
    if len(hosts.names) < nodes:
        raise OutsideError(
            f"this job needs {nodes} nodes, but the queue gave it {len(hosts.names)}"
        )
    return hosts


def _is_local(environ: Mapping[str, str]) -> bool:
    return environ.get("WINDROW_QUEUE") == "local"


def is_in_slurm(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of Slurm, and not one of a local queue that runs in such a job."""
    return "SLURM_JOB_ID" in environ and not _is_local(environ)


def listed_by_slurm(environ: Mapping[str, str]) -> list[str]:
    """The nodes of this Slurm job, in the order of Slurm. OutsideError if it does not say."""
    listed = environ.get("SLURM_JOB_NODELIST", "")
    try:
        command = ("scontrol", "show", "hostnames", listed)
        answer = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_LIST_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise OutsideError(f"Slurm did not say which nodes are in {listed!r}: {error}") from error
    return answer.stdout.split()


def _slurm_parts(environ: Mapping[str, str], cores: int) -> Hosts:
    """The machine of each part: Slurm counts parts as its tasks, and writes `2(x2),1` for those on
    three machines."""
    machines = listed_by_slurm(environ)
    counts: list[int] = []
    for count, times in re.findall(
        r"(\d+)(?:\(x(\d+)\))?", environ.get("SLURM_TASKS_PER_NODE", "")
    ):
        counts += [int(count)] * int(times or 1)
    here = environ.get("SLURMD_NODENAME", machines[0] if machines else "")
    pairs = sorted(zip(machines, counts), key=lambda pair: pair[0] != here)  # noqa: B905  (`strict` came with Python 3.10)
    names = tuple(name for name, count in pairs for _ in range(count))
    return Hosts(names, len(set(names)) == 1, True, True, cores)


def _slurm(environ: Mapping[str, str]) -> Hosts:
    names = listed_by_slurm(environ)
    here = environ.get("SLURMD_NODENAME", names[0] if names else "")
    names.sort(key=lambda name: name != here)  # stable: this node first, the others as listed
    return Hosts(tuple(names), len(names) == 1, True, True)
