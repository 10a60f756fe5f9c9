"""Real workflows on a real Slurm, without and with accounting: they end, and write what a serial
run writes.

`WINDROW_FULL=1` runs every shape by every strategy instead of a sample.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.real.works import Case, cases, check, private
from tests.slurm.cluster import SlurmCluster


@pytest.mark.parametrize("case", cases("slurm"), ids=str)
def test_without_accounting(case: Case, slurm: SlurmCluster, tmp_path: Path) -> None:
    _check(case, slurm, tmp_path)


@pytest.mark.parametrize("case", cases("slurm with accounting"), ids=str)
def test_with_accounting(case: Case, slurm_with_accounting: SlurmCluster, tmp_path: Path) -> None:
    _check(case, slurm_with_accounting, tmp_path)


def _check(case: Case, cluster: SlurmCluster, tmp_path: Path) -> None:
    cluster.clear()
    work = tmp_path / "work"
    work.mkdir()
    check(case, on="slurm", folder=work, env={**cluster.env, **private(tmp_path)})
    # The run is over when its last job has said so; nodes are free a moment later, and no job was
    # forgotten.
    cluster.wait(cluster.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)
