"""Which nodes the queue gave to this job, and how to start something on each.

Slurm says it in its environment. If no queue is known, every node is this machine. So it is in a
job of the local queue, wherever that runs: inside an allocation the environment has the names of
both, and the inner one counts.

One command is asked here and not through `queues.command`, since this runs on compute nodes with
nothing but the standard library: `scontrol show hostnames`, which spells out a list of nodes and
asks no server.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from socket import gethostname

from windrow.errors import OutsideError, UserError

_LIST_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Hosts:
    """The nodes of this job; the agent is on the first.

    `are_here`: all of them are this machine. `is_cluster`: files may have been written on other
    machines. `has_steps`: the queue can start something on this node as well (`launch`), and tells
    it when it will take the nodes away.
    """

    names: tuple[str, ...]
    are_here: bool
    is_cluster: bool
    has_steps: bool = False

    def launch(self, place: int) -> tuple[str, ...]:
        """What to put before a command so that it runs on this node, once, for as long as the job
        wants it.

        Steps of tasks themselves may share the node (`--overlap`), and the step has all of it. It
        is not a rank of an MPI program, whatever the site's default, or programs below it would
        take themselves for one (`--mpi=none`). (Not `--cpu-bind=none`: if binding is not
        configured, srun complains of it. The node undoes any binding.)
        """
        options = (
            "--nodes=1",
            "--ntasks=1",
            "--mem=0",
            "--overlap",
            "--mpi=none",
            "--quiet",
            "--unbuffered",
        )
        return ("srun", *options, f"--nodelist={self.names[place]}")


def queue_id(environ: Mapping[str, str]) -> str:
    """The id of this job in its queue, as the queue writes it; empty if no queue is known."""
    if _is_local(environ):
        return environ.get("WINDROW_JOB_ID", "")
    if array := environ.get("SLURM_ARRAY_JOB_ID"):
        return f"{array}_{environ.get('SLURM_ARRAY_TASK_ID')}"
    return environ.get("SLURM_JOB_ID") or environ.get("PBS_JOBID", "")


def find_hosts(nodes: int, environ: Mapping[str, str]) -> Hosts:
    """The nodes of this job. OutsideError if the queue gave fewer than `nodes`."""
    is_local = _is_local(environ)
    if is_in_slurm(environ):
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


def _slurm(environ: Mapping[str, str]) -> Hosts:
    names = listed_by_slurm(environ)
    here = environ.get("SLURMD_NODENAME", names[0] if names else "")
    names.sort(key=lambda name: name != here)  # stable: this node first, the others as listed
    return Hosts(tuple(names), len(names) == 1, True, True)
