"""The queue contract on a real Slurm, without accounting and with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster
from tests.slurm.harness import slurm_harness
from tests.unit.queues.contract import CommandContract, Harness, QueueContract, WalltimeContract


class TestSlurm(QueueContract, WalltimeContract, CommandContract):
    @pytest.fixture
    def harness(self, slurm: SlurmCluster, tmp_path: Path) -> Harness:
        return slurm_harness(slurm, tmp_path)


class TestSlurmWithAccounting(QueueContract, CommandContract):
    @pytest.fixture
    def harness(self, slurm_with_accounting: SlurmCluster, tmp_path: Path) -> Harness:
        return slurm_harness(slurm_with_accounting, tmp_path)
