"""What the launchers of parallel programs see of a job: the nodes and cores of one task.

`srun`, and the `mpirun` and `mpiexec` of Open MPI and MPICH, read from the environment which nodes
there are. A job has many tasks side by side, so each gets an environment of its own:

Rule 1: a task that has less than a whole Slurm job finds its own nodes in the variables that name
those of a job. Open MPI and MPICH need nothing else.
Rule 2: srun lets the controller choose among all nodes of the job, whatever these variables say. So
if the job has others, the first `srun` on PATH is a script that excludes them.
Rule 3: who calls srun by its full path, as Open MPI 4 may, finds the same nodes in SLURM_HOSTFILE.
The script takes that variable away, since srun then also counts ranks by the file.
Rule 4: what a step of ours left in the environment is not passed on; it describes the step, and not
the task.
Rule 5: steps of tasks that share a node may overlap, so none waits for another, and ranks there are
not bound to cores: each launcher would begin with the first one.
"""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from windrow.agent.guard import remove_in_the_end
from windrow.agent.hosts import is_in_slurm, listed_by_slurm
from windrow.agent.order import Order
from windrow.errors import OutsideError
from windrow.files import disk_faults

_UNBOUND = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
_HOST_FILES = ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile")
_OF_STEPS = re.compile(
    r"SLURM_(STEPID|STEP_(ID|NODELIST|NUM_NODES|NUM_TASKS|TASKS_PER_NODE|LAUNCHER_PORT|RESV_PORTS)|SRUN_\w+|CPU_BIND\w*"
    r"|MEM_BIND\w*|NTASKS|NPROCS|NTASKS_PER_NODE|DISTRIBUTION|HOSTFILE|LAUNCH_NODE_IPADDR|\w+_PACK_GROUP_0)"
)
_SCRIPT = """\
#!/bin/sh
# Keeps the steps of a Windrow task on the nodes of this task. A host file of the task's own is respected.
if [ -n "$SLURM_JOB_ID" ] && [ "$SLURM_HOSTFILE" = "$WINDROW_HOSTFILE" ]; then
    unset SLURM_HOSTFILE
    exec {srun} --exclude="$WINDROW_OTHER_NODES" "$@"
fi
exec {srun} "$@"
"""  # noqa: E501


class Launchers:
    """Environments of the tasks that start on this node, which has this one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._of_job = {
            name: value for name, value in environ.items() if not _OF_STEPS.fullmatch(name)
        }
        self._is_in_slurm = is_in_slurm(environ)
        self._has_queue = self._is_in_slurm or "SLURM_JOB_ID" in environ or "PBS_JOBID" in environ
        self._nodes: dict[str, int] = {}
        """All nodes of the Slurm job with their processors, in the order in which Slurm lists
        them."""
        self._folder: Path | None = None
        self._files: dict[str, Path] = {}
        self._srun = ""

    def environment(self, order: Order) -> dict[str, str]:
        """What the command of this order gets. OutsideError if Slurm does not answer, or a file
        cannot be made."""
        if not order.hosts:
            return {**self._environ, **order.env}
        if self._is_in_slurm:
            return self._in_slurm(order)
        env = {**_UNBOUND, **self._environ, **order.env}
        if (
            order.is_whole and not self._has_queue
        ):  # all nodes are this machine, whatever they are called
            file = self._file(f"localhost slots={order.cores * len(order.hosts)}\n")
            env = dict.fromkeys(_HOST_FILES, str(file)) | env
        return env

    def _in_slurm(self, order: Order) -> dict[str, str]:
        if not self._nodes:
            self._nodes = _processors(listed_by_slurm(self._environ), self._environ)
        own = {
            host: self._nodes.get(host, 1) if order.is_whole else order.cores
            for host in order.hosts
        }
        others = [host for host in self._nodes if host not in own]
        if order.is_whole and not others:  # it has the job for itself
            return {**self._environ, **order.env}
        if order.is_whole:
            shared = {}
        else:
            shared = {"SLURM_OVERLAP": "1", **_UNBOUND}
        env = {**shared, **self._of_job, **_as_job(own), **order.env}
        if others:
            return env | self._srun_env(own, others, env.get("PATH", ""))
        return env

    def _srun_env(self, own: Mapping[str, int], others: Sequence[str], path: str) -> dict[str, str]:
        """What keeps srun on these nodes."""
        rounds = range(max(own.values()))
        lines = [f"{host}\n" for n in rounds for host, processors in own.items() if n < processors]
        file = str(self._file("".join(lines)))
        script = self._script()
        return {
            "SLURM_HOSTFILE": file,
            "WINDROW_HOSTFILE": file,
            "WINDROW_OTHER_NODES": ",".join(others),
            "PATH": f"{script.parent}:{path}" if path else str(script.parent),
        }

    def _script(self) -> Path:
        srun = shutil.which("srun", path=self._environ.get("PATH"))
        if srun is None:
            raise OutsideError("srun is not on PATH on this node of a Slurm job")
        return self._file(_SCRIPT.format(srun=srun), name="srun")

    def _file(self, text: str, name: str = "") -> Path:
        """A file of this node with this text; one for all tasks that need the same."""
        if text not in self._files:
            with disk_faults(f"no file can be made in {tempfile.gettempdir()}"):
                if self._folder is None:
                    self._folder = Path(tempfile.mkdtemp(prefix=".windrow-launch-"))
                    remove_in_the_end(str(self._folder))
                path = self._folder / (name or f"hosts-{len(self._files)}")
                path.write_text(text)
                path.chmod(0o700 if name else 0o600)
            self._files[text] = path
        return self._files[text]


def _as_job(own: Mapping[str, int]) -> dict[str, str]:
    """The variables of a job that has these nodes, with that many processors each, and starts on
    the first."""
    nodes = ",".join(own)
    runs = [(count, len(list(run))) for count, run in itertools.groupby(own.values())]
    processors = ",".join(
        f"{count}(x{times})" if times > 1 else str(count) for count, times in runs
    )
    return {
        "SLURM_JOB_NODELIST": nodes,
        "SLURM_NODELIST": nodes,
        "SLURM_JOB_NUM_NODES": str(len(own)),
        "SLURM_NNODES": str(len(own)),
        "SLURM_JOB_CPUS_PER_NODE": processors,
        "SLURM_TASKS_PER_NODE": processors,
        "SLURM_CPUS_ON_NODE": str(next(iter(own.values()))),
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_GTIDS": "0",
    }


def _processors(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, int]:
    """What each node has; Slurm writes `4(x2),8` for three nodes."""
    counts: list[int] = []
    for count, times in re.findall(
        r"(\d+)(?:\(x(\d+)\))?", environ.get("SLURM_JOB_CPUS_PER_NODE", "")
    ):
        counts += [int(count)] * int(times or 1)
    counts += [1] * (len(names) - len(counts))
    return dict(zip(names, counts))  # noqa: B905  (`strict` came with Python 3.10)
