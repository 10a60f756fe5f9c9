"""A manager that sees the shared folder late, beside nodes that see it at once: real Slurm, real
FUSE mount."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_survival import slurm_world
from tests.survival.world import braid

# What it starts sees its folder through a file system that keeps what it saw for a while. It goes
# with its manager.
LATE = """
folder=$PWD; cd /
setpriv --pdeathsig KILL bindfs -f -o "attr_timeout=$0,entry_timeout=$0,negative_timeout=$0,ac_attr_timeout=$0" \
    "$folder" "$folder" &
until mountpoint -q "$folder"; do kill -0 $! || exit 70; sleep 0.05; done
cd "$folder"; "$@"; code=$?
cd /; kill $!; exit $code
"""  # noqa: E501
CACHE_S = 40 if os.environ.get("WINDROW_FULL") else 6


def missing() -> str:
    """Why such a mount cannot be made here."""
    if os.getuid() != 0:
        return "a mount namespace needs root"
    absent = [
        name
        for name in ("bindfs", "unshare", "setpriv", "mountpoint")
        if shutil.which(name) is None
    ]
    if absent:
        return f"not installed: {', '.join(absent)} (tests/slurm/install)"
    return "" if os.access("/dev/fuse", os.W_OK) else "no FUSE here (/dev/fuse)"


def test_a_manager_that_sees_files_late_submits_nothing_twice(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    if reason := missing():
        pytest.skip(f"no late file system: {reason}")
    worlds = slurm_world(slurm, tmp_path)
    world = next(worlds)
    world.prefix = ("unshare", "-m", "--propagation", "private", "sh", "-c", LATE, str(CACHE_S))
    world.write(braid(work_s=0.2, width=2, runtime_s=5))
    code, said = world.run("--strategy", "level-by-level", "--max-nodes", "2")
    world.prefix = ()
    assert code == 0, said
    world.check_complete(tasks=6)
    jobs = world.status()["jobs"]
    assert Counter(job["state"] for job in jobs) == {"ended": 4}, jobs
    next(worlds, None)
