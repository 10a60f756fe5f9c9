"""The simulated queue keeps the contract, and shows the log beside its own jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.queues.contract import Harness, QueueContract, WalltimeContract, spec

from windrow.errors import UserError
from windrow.queues.port import JobSpec, JobState, SpecError
from windrow.queues.simulated import JobRun, SimulatedQueue
from windrow.recipes import generate_log
from windrow.sim import Cluster


def play(job: JobSpec) -> JobRun:
    """Commands of the harness: sleep SECONDS, or exit CODE."""
    verb, number = job.command
    return JobRun(run_s=int(number)) if verb == "sleep" else JobRun(run_s=1, exit_code=int(number))


@dataclass
class SimulatedHarness:
    queue: SimulatedQueue
    folder: Path
    nodes: int = 4
    tick_s: float = 1.0
    smallest_walltime_s: int = 10
    patience_s: float = 500.0

    def sleeping(self, ticks: float) -> tuple[str, ...]:
        return ("sleep", str(math.ceil(ticks)))

    def failing(self, code: int) -> tuple[str, ...]:
        return ("exit", str(code))

    def pause(self) -> None:
        self.queue.advance(1)

    def now_s(self) -> float:
        return float(self.queue.now_s)


def make(policy: str, folder: Path) -> SimulatedHarness:
    return SimulatedHarness(SimulatedQueue(Cluster(nodes=4, policy=policy), play=play), folder)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
class TestSimulated(QueueContract, WalltimeContract):
    @pytest.fixture
    def harness(self, policy: str, tmp_path: Path) -> Harness:
        return make(policy, tmp_path)


def test_a_job_runs_until_somebody_ends_it(tmp_path: Path) -> None:
    queue = SimulatedQueue(Cluster(nodes=2))
    job = queue.submit(JobSpec("t-1", 2, 100, ("anything",), str(tmp_path), "out"))
    queue.advance(30)
    assert queue.status([job])[job].state is JobState.RUNNING
    queue.end(job, 5)
    over = queue.status([job])[job]
    assert (over.state, over.exit_code, over.ended_s) == (JobState.ENDED, 5, 30.0)
    queue.end(job, 6)
    assert queue.status([job])[job].exit_code == 5


def test_the_jobs_of_the_log_are_shown_but_not_ours(tmp_path: Path) -> None:
    log = generate_log("lublin", nodes=32, days=2, seed=3)
    cluster = Cluster(log, policy="easy", start_s=0)
    cluster.advance(86_400)
    queue = SimulatedQueue(cluster, play=play)
    seen = queue.snapshot()
    assert seen.jobs
    assert len(seen.jobs) == len(cluster.running()) + len(cluster.queue())
    assert sum(job.nodes for job in seen.jobs if job.is_running) == 32 - cluster.free_nodes
    assert dict(queue.status([job.id for job in seen.jobs])) == {}
    expected_s = queue.probe(32, 600)
    assert expected_s is not None
    assert expected_s >= queue.now_s


def test_a_second_job_with_the_same_tag_is_refused(tmp_path: Path) -> None:
    harness = make("easy", tmp_path)
    one = spec(harness, harness.sleeping(1))
    harness.queue.submit(one)
    with pytest.raises(SpecError, match="its own tag"):
        harness.queue.submit(one)


def test_a_probe_of_what_can_never_run_is_refused() -> None:
    with pytest.raises(SpecError, match="1 to 2"):
        SimulatedQueue(Cluster(nodes=2)).probe(3, 60)


def test_time_goes_forward_only() -> None:
    with pytest.raises(UserError, match="cannot go back"):
        SimulatedQueue(Cluster(nodes=1)).advance(-1)
