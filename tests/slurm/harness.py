"""The private Slurm as the queue contract sees it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.cluster import SlurmCluster

from windrow.queues.slurm.queue import SlurmQueue


@dataclass
class SlurmHarness:
    """A Slurm queue under test. Slurm tells times in whole seconds and walltimes in whole
    minutes."""

    cluster: SlurmCluster
    nodes: int
    folder: Path
    queue: SlurmQueue
    tick_s: float = 1.0
    smallest_walltime_s: int = 60
    patience_s: float = 150.0

    def sleeping(self, ticks: float) -> tuple[str, ...]:
        """A command that runs for so many ticks and succeeds."""
        return ("sleep", str(ticks * self.tick_s))

    def failing(self, code: int) -> tuple[str, ...]:
        """A command that ends at once with this exit code."""
        return ("sh", "-c", f"exit {code}")

    def pause(self) -> None:
        """Let time go by: less than a tick, since asking the private Slurm costs nothing."""
        time.sleep(0.25)

    def now_s(self) -> float:
        """The time by the queue's clock."""
        return time.time()


def slurm_harness(cluster: SlurmCluster, folder: Path) -> SlurmHarness:
    """A harness on an empty queue."""
    cluster.clear()
    return SlurmHarness(cluster, cluster.settings.nodes, folder, SlurmQueue(env=cluster.env))
