"""A site whose users share nodes: mixed kinds, fake GPUs, partitions that share in every way that
Slurm has, limits in cores, memory and GPUs.

    n1-n4  4 cores, 2 GB    thin
    n5-n6  8 cores, 6 GB    fat,avx   2 GPUs of the type a100
    n7-n8  8 cores, 16 GB   big,avx

Rule 1: `main` gives a core 400 MB unless a job asks otherwise; a core, 2 GB or an eighth of a GPU
cost one billing unit.
Rule 2: the ordinary user is `USER` in the account `science`; `OTHER` has jobs of his own in
`physics`, which as a whole may use eight cores.

`python -m tests.slurm.shared` starts one, prints what to export, and stops it at Ctrl-C.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.other_user import NOBODY
from tests.slurm.cluster import ClusterError, SlurmCluster, serve
from tests.slurm.settings import Kind, Settings

USER = NOBODY if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
OTHER = "games"
KINDS = (
    Kind(4, 4, 2000, features="thin"),
    Kind(2, 8, 6000, gres="gpu:a100:2", features="fat,avx"),
    Kind(2, 8, 16000, features="big,avx"),
)
THIN, GPU, BIG = ("n1", "n2", "n3", "n4"), ("n5", "n6"), ("n7", "n8")
PRICE = 'TRESBillingWeights="CPU=1.0,Mem=0.5G,GRES/gpu=8.0"'
QOS = {
    "cores": "MaxTRESPerUser=cpu=4",
    "core": "MaxTRESPerUser=cpu=1",
    "job": "MaxTRESPerJob=cpu=4",
    "memory": "MaxTRESPerUser=mem=3G",
    "gpu": "MaxTRESPerUser=gres/gpu=1",
    "no-gpu": "MaxTRESPerUser=gres/gpu=0",
    "jobs": "MaxJobsPerUser=2 MaxSubmitJobsPerUser=4",
    "node": "MaxTRESPerJob=node=1",
    "express": "MaxWall=00:03:00",
}
"""What each allows, by name; a user of both accounts may take any of them."""
PARTITIONS = (
    f"whole Nodes=n[1-8] OverSubscribe=EXCLUSIVE MaxTime=600 {PRICE}",
    f"twice Nodes=n[1-4] OverSubscribe=YES:2 MaxTime=600 DefMemPerCPU=200 {PRICE}",
    "forced Nodes=n[1-4] OverSubscribe=FORCE:2 MaxTime=600 DefMemPerCPU=200",
    f"mine Nodes=n[1-4] ExclusiveUser=YES MaxTime=600 DefMemPerCPU=400 {PRICE}",
    "unsaid Nodes=n[1-4] MaxTime=600",
    "gpus Nodes=n[5-6] MaxTime=600 DefMemPerCPU=400 DefMemPerGPU=1000",
    "capped Nodes=n[1-8] MaxTime=600 DefMemPerCPU=400 MaxMemPerCPU=500 MaxCPUsPerNode=2",
    'dear Nodes=n[7-8] MaxTime=600 DefMemPerCPU=400 TRESBillingWeights="CPU=2.0,Mem=1.0G"',
)
"""`whole`: nodes only. `twice`, `forced`: two jobs may have a core, asked or not. `mine`: a node is
one user's. `unsaid`: a job without memory has all of a node. `capped`: little of each node."""

SHARED = Settings(
    nodes=8,
    select="select/cons_tres",
    accounting=True,
    kinds=KINDS,
    main=f"DefMemPerCPU=400 {PRICE}",
    partitions=PARTITIONS,
    accounts=(
        "add account physics set GrpTRES=cpu=8",
        f"add user {USER} account=science,physics defaultaccount=science",
        f"add user {OTHER} account=physics",
        *(f"add qos {name} set {limit}" for name, limit in QOS.items()),
        f"modify account science,physics set qos+={','.join(QOS)}",
    ),
)

BOUND = Settings(nodes=2, cpus=2, select="select/cons_tres", main="DefMemPerCPU=200", binds=True)
"""Two nodes of two cores, to which their jobs are bound: as many cores as any machine has."""


@contextmanager
def reserved(slurm: SlurmCluster, name: str, *options: str) -> Iterator[None]:
    """A reservation, while it lasts; `options` as `scontrol create reservation` takes them. No job
    outlives it."""
    slurm.run("scontrol", "create", "reservation", f"reservation={name}", *options)
    try:
        yield
    finally:
        slurm.cancel_all()
        slurm.run("scontrol", "delete", f"reservation={name}")


def submit(slurm: SlurmCluster, *options: str, user: str = OTHER) -> str:
    """The id of a job of this user, which may be another only if we are root."""
    whose = [f"--uid={user}"] if os.getuid() == 0 else []
    quiet = ("--parsable", "--output=/dev/null", "--chdir=/", "--export=NONE")
    return slurm.run("sbatch", *quiet, *whose, *options).strip()


def told(slurm: SlurmCluster, job: str) -> dict[str, str]:
    """What the controller says of a job, by field; an array has the number of one of its jobs."""
    lines = slurm.run("scontrol", "--oneliner", "show", "job", job).splitlines()
    line = next(line for line in lines if line.startswith(f"JobId={job} "))
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def allocated(slurm: SlurmCluster, job: str) -> dict[str, str]:
    """What a job has been given, by kind of resource: cpu, mem, node, billing, gres/gpu."""
    said = told(slurm, job)
    amounts = said.get("AllocTRES") or said.get("TRES") or said["ReqTRES"]  # TRES before 24.05
    return dict(one.split("=", 1) for one in amounts.split(","))


def main(argv: Sequence[str] | None = None) -> int:
    """Start the site, print what to export, stop it at Ctrl-C."""
    del argv
    try:
        return serve(SHARED)
    except (ClusterError, subprocess.CalledProcessError) as error:
        print(f"shared: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
