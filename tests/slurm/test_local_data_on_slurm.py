"""Files on disks of nodes on a real Slurm: what stays on those of a job, and what jobs pass on."""

from __future__ import annotations

import json
import re
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


SHARED = """
volumes:
  db: {from: db, size: 5MB}
tasks:
  - id: read-{n}
    matrix: {n: 1..3}
    command: cksum < $WINDROW_VOLUME_DB/x > {outputs}; sleep 4
    outputs: out-{n}
    mounts: [db]
    cores: 2
    runtime: 20s
"""


def windrow(slurm: SlurmCluster, folder: Path, *words: str) -> str:
    """What the command prints, in the folder `work` with a disk beside it."""
    command = [str(Path(sys.executable).parent / "windrow"), *words]
    env = {**slurm.env, **private(folder), "DISK": str(folder / "disk")}
    done = subprocess.run(
        command,
        cwd=folder / "work",
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_jobs_of_one_node_share_what_all_read(slurm: SlurmCluster, tmp_path: Path) -> None:
    slurm.clear()
    (tmp_path / "work" / "db").mkdir(parents=True)
    (tmp_path / "work" / "db" / "x").write_bytes(b"x" * 5_000_000)
    (tmp_path / "work" / "w.yaml").write_text(SHARED)
    (tmp_path / "work" / "windrow.toml").write_text('[data]\nscratch = "$DISK"\nshare = "peer"\n')
    windrow(slurm, tmp_path, "run", "w.yaml", "--on", "slurm", "--strategy", "individual")
    said = [path.read_text() for path in tmp_path.glob("work/.windrow/runs/w-1/jobs/*/output")]
    came = [
        re.findall(r"in total (\d+) bytes from home, (\d+) from other nodes", text)[-1]
        for text in said
    ]
    assert sorted(came) == [("0", "5000000"), ("0", "5000000"), ("5000000", "0")]
    assert len({(tmp_path / "work" / f"out-{n}").read_text() for n in (1, 2, 3)}) == 1
    assert not list(tmp_path.glob("work/.windrow/runs/w-1/caches/*"))


def test_files_stay_on_the_nodes_of_a_job(slurm: SlurmCluster, tmp_path: Path) -> None:
    slurm.clear()
    work, disk = tmp_path / "work", tmp_path / "disk"
    work.mkdir()
    (work / "w.yaml").write_text(WORKFLOW)
    windrow(
        slurm,
        tmp_path,
        "run",
        "w.yaml",
        "--on",
        "slurm",
        "--strategy",
        "one-job",
        "--scratch",
        "$DISK/x",
    )
    shared = {path.name for path in work.iterdir()} - {".windrow", "w.yaml"}
    assert (work / "all").read_text().split() == ["1000"] * 6
    assert not [
        name for name in shared if name.startswith("node-")
    ]  # what is not declared stays where it was made
    (events,) = (work / ".windrow" / "runs" / "w-1" / "jobs").glob("*/events")
    assert len(json.loads(events.read_text().splitlines()[0])["hosts"]) > 1
    assert "raw" in shared  # which was made on one node, and read on another
    for file in json.loads(windrow(slurm, tmp_path, "files", "--json"))["files"]:
        assert file["where"] == ("shared" if file["file"] in shared else "gone"), file
    slurm.wait(slurm.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)
    wait_until(lambda: not any((disk / "x").iterdir()))
