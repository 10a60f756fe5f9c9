"""Everybody's past jobs, from the accounts of a real Slurm."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster

from windrow.app.runs import RunView, find_run
from windrow.foresight.observed_file import ObservedFile
from windrow.foresight.observer import Observer
from windrow.queues.port import JobSpec
from windrow.queues.slurm.queue import SlurmQueue


def submit(cluster: SlurmCluster, nodes: int, seconds: int) -> str:
    options = (
        f"--nodes={nodes}",
        "--time=2",
        "--exclusive",
        "--mem=0",
        "--output=/dev/null",
        "--chdir=/",
    )
    return cluster.run("sbatch", "--parsable", *options, f"--wrap=exec sleep {seconds}").strip()


def test_accounts_tell_of_all_jobs_but_our_own(slurm_with_accounting: SlurmCluster) -> None:
    """One job ends, one runs, one waits, one is cancelled before it ran, and one is of a run of our
    own."""
    cluster = slurm_with_accounting
    cluster.clear()
    queue = SlurmQueue(env=cluster.env)
    began = time.time()
    ended, runs = submit(cluster, 2, 1), submit(cluster, 4, 60)
    waits, cancelled = submit(cluster, 8, 60), submit(cluster, 8, 60)
    queue.submit(JobSpec("windrow-0123abcd-0", 1, 60, ("sleep", "1"), "/", "/dev/null"))
    cluster.run("scancel", cancelled)
    cluster.wait(
        lambda: _is_settled(queue, began, ended, runs),
        "word of the jobs in the accounts",
        "slurmdbd",
        90.0,
    )
    jobs = {job.id: job for job in queue.past_jobs(began - 1) or []}
    assert set(jobs) == {ended, runs, waits}
    assert (jobs[ended].nodes, jobs[ended].requested_s, jobs[ended].user) == (
        2,
        120,
        cluster.place.user,
    )
    assert jobs[ended].run_s == pytest.approx(1, abs=2)
    assert jobs[runs].started_s is not None
    assert jobs[runs].ended_s is None
    assert jobs[waits].started_s is None
    assert all(began - 2 <= job.submitted_s <= time.time() for job in jobs.values())
    later = (
        life for life in queue.lives(began - 1) or [] if int(life.job) >= int(ended)
    )  # not of an earlier test
    lives = {life.job: life for life in later if life.nodes > 1}
    assert set(lives) == {ended, runs}
    assert (lives[ended].cause, len(lives[ended].hosts)) == (None, 2)
    assert lives[ended].run_s == jobs[ended].run_s
    assert lives[runs].ended_s == pytest.approx(time.time(), abs=5)
    watch = Observer(accounts=queue)
    watch.look(queue.snapshot(), ())
    assert watch.observed.jobs[ended] == jobs[ended]
    assert not watch.needs_readings
    cluster.clear()


def _is_settled(queue: SlurmQueue, since_s: float, ended: str, runs: str) -> bool:
    jobs = {job.id: job for job in queue.past_jobs(since_s - 1) or []}
    return (
        ended in jobs
        and jobs[ended].ended_s is not None
        and runs in jobs
        and jobs[runs].started_s is not None
    )


def test_without_accounts_nothing_is_remembered(slurm: SlurmCluster) -> None:
    queue = SlurmQueue(env=slurm.env)
    assert queue.past_jobs(0.0) is None
    watch = Observer(accounts=queue)
    watch.look(queue.snapshot(), ())
    assert watch.needs_readings


WORKFLOW = """\
name: two
tasks:
  - {id: a, command: [sleep, "1"], runtime: 1}
  - {id: b, command: [sleep, "1"], runtime: 1, after: [a]}
"""


def test_a_run_looks_ahead_with_what_the_accounts_tell(
    slurm_with_accounting: SlurmCluster, tmp_path: Path
) -> None:
    """Before it, 24 jobs have come and gone; beside it, one of others runs. What was seen is there
    for the next run."""
    cluster = slurm_with_accounting
    cluster.clear()
    queue = SlurmQueue(env=cluster.env)
    began = time.time()
    for _ in range(24):
        submit(cluster, 2, 1)
    cluster.wait(lambda: _ends(queue, began) >= 24, "24 ends in the accounts", "slurmdbd", 120.0)
    submit(cluster, 2, 120)
    (tmp_path / "two.yaml").write_text(WORKFLOW)
    places = {"XDG_STATE_HOME": tmp_path / "state", "XDG_DATA_HOME": tmp_path / "data"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "windrow.cli.main", "run", "two.yaml", "--on", "slurm", "--strategy", "foresight"],  # noqa: E501
        cwd=tmp_path, env={**cluster.env, **{key: str(path) for key, path in places.items()}},
        capture_output=True, text=True, timeout=600, check=False,  # it may have to compile first
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = RunView(find_run(None, tmp_path / ".windrow" / "runs"))
    assert "futures" in told.story.decisions[0].decision.why
    assert told.facts.promise is not None
    assert told.facts.promise.took_s > 1.0
    told.close()
    kept = ObservedFile(queue.place, tmp_path / "state" / "windrow" / "seen").load()
    assert kept.ends >= 24
    cluster.clear()


def _ends(queue: SlurmQueue, since_s: float) -> int:
    return sum(job.run_s is not None for job in queue.past_jobs(since_s - 1) or [])
