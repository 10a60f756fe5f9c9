"""The agent in real Slurm jobs: nodes reached through srun, and everything that can end a job."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

from tests.slurm.cluster import SlurmCluster
from tests.unit.agent.jobs import Run, shell, task
from tests.waiting import is_alive, read_pid, wait_until

from windrow.agent.event_file import (
    AgentLeft,
    AgentStarted,
    AttemptLost,
    AttemptStarted,
    TaskDeclined,
)


def submit(slurm: SlurmCluster, run: Run, nodes: int, *, minutes: int = 5) -> str:
    """Submit the agent as the manager does; returns the job's id."""
    script = (
        "#!/bin/sh\nexec "
        f"{shlex.join([sys.executable, '-m', 'windrow.agent', str(run.path), '0'])}\n"
    )
    path = run.path / "script"
    path.write_text(script)
    options = (
        f"--nodes={nodes}",
        f"--time={minutes}",
        "--exclusive",
        "--mem=0",
        "--no-requeue",
        "--parsable",
    )
    return (
        slurm.run("sbatch", *options, f"--output={run.path}/printed", "--chdir=/", str(path))
        .strip()
        .split(";")[0]
    )


def wait_for_end(slurm: SlurmCluster, job: str) -> None:
    wait_until(lambda: slurm.run("squeue", "--noheader", "--jobs", job) == "", patience_s=60)


def printed(run: Run) -> str:
    return (run.path / "printed").read_text()


SLEEPER = "echo $$ > '{folder}/'$SLURMD_NODENAME.pid; while :; do sleep 0.05; done"


def test_one_node(slurm: SlurmCluster, run: Run) -> None:
    run.write(*(shell(n, "echo $SLURMD_NODENAME") for n in range(10)))
    job = submit(slurm, run, 1)
    wait_for_end(slurm, job)
    assert printed(run) == ""
    assert sorted(run.finished()) == list(range(10))
    (started,) = run.of(AgentStarted)
    assert started.queue_id == job
    assert {run.folder.task_out(n, 1).read_text().strip() for n in range(10)} == set(started.hosts)


def test_four_nodes_work_side_by_side(slurm: SlurmCluster, run: Run, tmp_path: Path) -> None:
    """Each of eight tasks, two to a node, ends only when all eight run; a ninth then has two nodes
    of its own."""
    meet = "touch $WINDROW_TASK.here; until test $(ls | grep -c here) -eq 8; do sleep 0.05; done"
    script = f"echo $SLURMD_NODENAME; {meet}"
    tasks = [shell(n, script, children=(8,), workdir=str(tmp_path)) for n in range(8)]
    both = "srun --overlap --nodes=2 --nodelist=$WINDROW_NODES sh -c 'echo $SLURMD_NODENAME' | sort"
    run.write(*tasks, shell(8, both, nodes=2, parents=tuple(range(8))), nodes=4)
    wait_for_end(slurm, submit(slurm, run, 4))
    assert printed(run) == ""
    assert sorted(run.finished()) == list(range(9))
    hosts = run.of(AgentStarted)[0].hosts
    assert len(set(hosts)) == 4
    places = {event.task: event.of.nodes for event in run.of(AttemptStarted)}
    for n in range(8):
        assert run.folder.task_out(n, 1).read_text().strip() == hosts[places[n][0]]
    assert run.folder.task_out(8, 1).read_text().split() == sorted(
        hosts[place] for place in places[8]
    )


def test_odd_characters_travel_to_other_nodes(slurm: SlurmCluster, run: Run) -> None:
    odd = ["a b", "'\"", "$(touch x)", "; rm", "new\nline", "*", "\\", "ü", os.fsdecode(b"\xff")]
    tasks = [task(n, "printf", "%s\\0", *odd, cores=2) for n in range(2)]
    run.write(*tasks, nodes=2)
    wait_for_end(slurm, submit(slurm, run, 2))
    for n in range(2):
        assert run.folder.task_out(n, 1).read_bytes().split(b"\0") == [*map(os.fsencode, odd), b""]


def test_a_cancelled_job_leaves_nothing_running_and_everything_recorded(
    slurm: SlurmCluster, run: Run, tmp_path: Path
) -> None:
    tasks = [shell(n, SLEEPER.format(folder=tmp_path), cores=2, retries=3) for n in range(4)]
    run.write(*tasks, nodes=3, grace_s=1.0)
    job = submit(slurm, run, 3)
    run.wait_for_start(0, 1, 2)
    pids = [read_pid(tmp_path / f"{host}.pid") for host in run.of(AgentStarted)[0].hosts]
    slurm.run("scancel", job)
    wait_for_end(slurm, job)
    wait_until(lambda: not any(map(is_alive, pids)))
    assert sorted(event.task for event in run.of(AttemptLost)) == [0, 1, 2]
    assert [event.task for event in run.of(TaskDeclined)] == [3]
    assert run.failed() == []
    assert run.of(AgentLeft)


def test_a_killed_agent_ends_the_job_and_its_tasks_on_all_nodes(
    slurm: SlurmCluster, run: Run, tmp_path: Path
) -> None:
    run.write(*(shell(n, SLEEPER.format(folder=tmp_path), cores=2) for n in range(3)), nodes=3)
    job = submit(slurm, run, 3)
    run.wait_for_start(0, 1, 2)
    pids = [read_pid(tmp_path / f"{host}.pid") for host in run.of(AgentStarted)[0].hosts]
    os.kill(run.agent_pid(), signal.SIGKILL)
    wait_for_end(slurm, job)
    wait_until(lambda: not any(map(is_alive, pids)))
    assert run.of(AgentLeft) == []


def test_a_step_that_is_lost_drains_the_job(slurm: SlurmCluster, run: Run, tmp_path: Path) -> None:
    script = (
        f"echo $$ > '{tmp_path}/'$SLURMD_NODENAME.pid; until test -e '{tmp_path}/go'; do "
        "sleep 0.05; done"
    )
    run.write(*(shell(n, script, cores=2) for n in range(4)), nodes=2)
    job = submit(slurm, run, 2)
    run.wait_for_start(0, 1)
    host = run.of(AgentStarted)[0].hosts[1]
    pid = read_pid(tmp_path / f"{host}.pid")
    slurm.run("scancel", f"{job}.0")
    wait_until(lambda: bool(run.of(AttemptLost)))
    (tmp_path / "go").touch()
    wait_for_end(slurm, job)
    assert not is_alive(pid)
    assert [event.why for event in run.of(AttemptLost)] == [f"node {host} was lost"]
    assert len(run.finished()) == 1
    assert [event.task for event in run.of(TaskDeclined)] == [2, 3]


def test_a_dead_node_loses_its_task_and_nothing_runs_on(
    slurm: SlurmCluster, run: Run, tmp_path: Path
) -> None:
    run.write(
        *(shell(n, SLEEPER.format(folder=tmp_path), cores=2, retries=3) for n in range(4)),
        nodes=3,
        grace_s=1.0,
    )
    job = submit(slurm, run, 3)
    run.wait_for_start(0, 1, 2)
    hosts = run.of(AgentStarted)[0].hosts
    pids = [read_pid(tmp_path / f"{host}.pid") for host in hosts]
    slurm.kill_node(hosts[1])
    try:
        wait_for_end(slurm, job)
        wait_until(lambda: not any(map(is_alive, pids)))
    finally:
        slurm.start_node(hosts[1])
    assert sorted(event.task for event in run.of(AttemptLost)) == [0, 1, 2]
    assert run.failed() == []
    assert run.finished() == []


def test_a_job_submitted_twice_runs_once(slurm: SlurmCluster, run: Run, tmp_path: Path) -> None:
    run.write(shell(0, f"echo x >> '{tmp_path}/runs'; sleep 0.5"))
    jobs = [submit(slurm, run, 1), submit(slurm, run, 1)]
    for job in jobs:
        wait_for_end(slurm, job)
    assert (tmp_path / "runs").read_text() == "x\n"
    assert len(run.of(AgentStarted)) == 1
