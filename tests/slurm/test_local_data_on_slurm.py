"""Files on disks of nodes on a real Slurm: a job of two nodes, whose readers are on both, and nothing left anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.real.works import private
from tests.slurm.cluster import SlurmCluster
from tests.waiting import wait_until

WORKFLOW = """
defaults: {runtime: 2s}
tasks:
  - id: make
    command: seq 1 1000 > {outputs}
    outputs: raw
  - id: use-{n}
    matrix: {n: 1..6}
    command: wc -l < {inputs} > {outputs}; echo $SLURMD_NODENAME > node-{n}; sleep 1
    inputs: raw
    outputs: part-{n}
  - id: all
    command: cat {inputs} > {outputs}
    inputs: part-*
    outputs: all
"""


def test_files_stay_on_the_nodes_of_a_job(slurm: SlurmCluster, tmp_path: Path) -> None:
    slurm.clear()
    work, disk, windrow = tmp_path / "work", tmp_path / "disk", str(Path(sys.executable).parent / "windrow")
    work.mkdir()
    (work / "w.yaml").write_text(WORKFLOW)
    where = {"cwd": work, "env": {**slurm.env, **private(tmp_path), "DISK": str(disk)}, "capture_output": True}
    order = ("run", "w.yaml", "--on", "slurm", "--strategy", "one-job", "--scratch", "$DISK/x")
    done = subprocess.run([windrow, *order], text=True, timeout=120, check=False, **where)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    shared = {path.name for path in work.iterdir()} - {".windrow", "w.yaml"}
    assert (work / "all").read_text().split() == ["1000"] * 6
    assert not [name for name in shared if name.startswith("node-")]  # what is not declared stays where it was made
    (events,) = (work / ".windrow" / "runs" / "w-1" / "jobs").glob("*/events")
    assert len(json.loads(events.read_text().splitlines()[0])["hosts"]) > 1
    assert "raw" in shared  # which was made on one node, and read on another
    told = subprocess.run([windrow, "files", "--json"], text=True, timeout=60, check=True, **where).stdout  # type: ignore[call-overload]
    for file in json.loads(told)["files"]:
        assert file["where"] == ("shared" if file["file"] in shared else "gone"), file
    slurm.wait(slurm.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)
    wait_until(lambda: not any((disk / "x").iterdir()))
