"""A limit on space on a real Slurm: one job of several nodes keeps to it, and deletes what its
tasks have read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.real.works import private
from tests.slurm.cluster import SlurmCluster

WORKFLOW = """
defaults: {keep: false, runtime: 2s}
tasks:
  - id: make-{n}
    matrix: {n: 1..6}
    command: head -c 1000000 /dev/zero > {outputs}
    outputs: {"raw-{n}": 1MB}
  - id: use-{n}
    matrix: {n: 1..6}
    command: ls -1 | grep -c ^raw > {outputs}; sleep 0.2; test -s {inputs}
    inputs: raw-{n}
    outputs: {"seen-{n}": {size: 10B, keep: true}}
"""


def test_files_stay_within_a_limit(slurm: SlurmCluster, tmp_path: Path) -> None:
    slurm.clear()
    work = tmp_path / "work"
    work.mkdir()
    (work / "w.yaml").write_text(WORKFLOW)
    command = [
        str(Path(sys.executable).parent / "windrow"),
        "run",
        "w.yaml",
        "--on",
        "slurm",
        "--space",
        "2.1MB",
    ]
    done = subprocess.run(
        command,
        cwd=work,
        env={**slurm.env, **private(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in work.iterdir()) == [
        ".windrow",
        *(f"seen-{n}" for n in range(1, 7)),
        "w.yaml",
    ]
    assert {int((work / f"seen-{n}").read_text()) for n in range(1, 7)} <= {1, 2}
    assert len(list((work / ".windrow" / "runs" / "w-1" / "jobs").iterdir())) == 1
    slurm.wait(slurm.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)
