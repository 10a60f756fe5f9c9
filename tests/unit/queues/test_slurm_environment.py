"""What of the environment reaches Slurm's commands, and through sbatch the jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from windrow.queues.command import Answer
from windrow.queues.port import QueueError
from windrow.queues.slurm import SlurmQueue


def test_the_variables_of_an_outer_job_do_not_reach_the_jobs_that_it_submits() -> None:
    seen: list[Mapping[str, str]] = []

    def run(argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float) -> Answer:
        del argv, stdin, timeout_s
        seen.append(env)
        return Answer(1, "", "nobody answers here")

    outer = {"WINDROW_QUEUE": "local", "WINDROW_JOB_ID": "7", "WINDROW_JOB_NODES": "a b", "PATH": "/bin"}
    with pytest.raises(QueueError):
        SlurmQueue(env=outer, run=run).snapshot()
    assert seen
    assert all("PATH" in env and not any(key.startswith("WINDROW_") for key in env) for env in seen)
