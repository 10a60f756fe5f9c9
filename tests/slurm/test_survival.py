"""Real runs on a real Slurm, broken in every way that a cluster offers, and resumed."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples import some
from tests.slurm.cluster import PATH, SlurmCluster
from tests.survival import odd
from tests.survival.added import grow
from tests.survival.world import World, braid, check_race
from tests.waiting import is_alive, wait_until

from windrow.agent.event_file import AgentStarted, Tail
from windrow.app.runs import RunView
from windrow.queues.script import tag_of
from windrow.queues.slurm.queue import SlurmQueue
from windrow.queues.slurm.text import array_index


@pytest.fixture
def world(slurm: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    """A folder and a history of their own on an empty cluster."""
    yield from slurm_world(slurm, tmp_path)


@pytest.fixture
def odd_world(slurm: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    """The same in a folder with a name of its own kind."""
    yield from slurm_world(slurm, tmp_path / odd.FOLDER)


def slurm_world(slurm: SlurmCluster, folder: Path) -> Iterator[World]:
    slurm.clear()
    made = World(folder / "here", folder / "elsewhere", on="slurm", env=dict(slurm.env))
    queue = SlurmQueue(env=slurm.env)

    def tags() -> list[str]:
        told = RunView(made.latest)
        told.close()
        every = [tag_of(row.name, array_index(row.status.id)) for row in queue._squeue()]
        return [tag for tag in every if tag is not None and told.facts.uid in tag]

    made.tags = tags
    made.left = lambda: slurm.run("squeue", "--noheader", "--format=%i").split()
    yield made
    made.clean()
    slurm.clear()


def test_one_of_two_jobs_hangs(world: World) -> None:
    check_race(world, "--strategy", "one-job")


@pytest.mark.parametrize("strategy", some("individual", "glume"))
def test_the_manager_is_killed_again_and_again(world: World, strategy: str) -> None:
    chance = random.Random(1)
    world.write(braid(work_s=0.2))
    words: tuple[str, ...] = ("run", "workflow.yaml", "--on", "slurm", "--strategy", strategy)
    kills = 0
    while kills < 5 and not world.kill_after(
        words, chance.randint(1, 3), chance.choice([0.0, 0.02, 0.2])
    ):
        words = ("resume",)
        kills += 1
    assert kills > 1
    code, said = world.windrow("resume")
    assert code == 0, said
    world.check_complete()


@pytest.mark.parametrize(
    "script",
    [
        ': > {begun}; sleep 2; exec {real} "$@"',
        '{real} "$@"; code=$?; : > {begun}; sleep 2; exit $code',
    ],
)
def test_killed_while_a_submission_is_under_way(world: World, script: str) -> None:
    """Slurm has not heard of the job yet, or has taken it. The manager dies before it knows, and is
    replaced."""
    real = subprocess.run(
        ["which", "sbatch"], capture_output=True, text=True, check=True
    ).stdout.strip()
    slow = world.state / "bin" / "sbatch"
    slow.parent.mkdir(parents=True)
    begun = world.state / "begun"
    testing = f'case "$*" in *--test-only*) exec {real} "$@";; esac\n'
    slow.write_text(f"#!/bin/sh\n{testing}{script.format(real=real, begun=begun)}\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    world.env["PATH"] = f"{slow.parent}:{PATH}"
    world.write(braid())
    with world.start("run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job") as process:
        world.wait_for(begun.exists)
        process.kill()
        process.wait()
        world.env["PATH"] = PATH
        code, said = world.windrow("resume")
        process.communicate()
    assert code == 0, said
    assert len(world.tags()) == 1
    world.check_complete()


def started(world: World) -> AgentStarted:
    """The first word of the agent that runs."""
    for events in sorted(world.latest.folder.jobs.glob("*/events")):
        words = Tail(events).read()
        if words and isinstance(words[0], AgentStarted) and "job-ended" not in events.read_text():
            return words[0]
    raise AssertionError("no agent runs")


def begun_run(world: World, *more: str) -> subprocess.Popen[str]:
    """A run in one job whose first task is done, and in the midst of the next ones; they wait until
    it `ends_well`."""
    world.write(braid(gated=True))
    process = world.start("run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job", *more)
    world.wait_for(lambda: len(world.at_gate()) >= 2)
    return process


def ends_well(world: World, process: subprocess.Popen[str]) -> str:
    """Wait for the end of the run, which must be a good one; what was said."""
    world.open_gate()
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    world.check_complete()
    return out


def test_the_agent_is_killed(world: World) -> None:
    with begun_run(world) as process:
        orphans = world.waiting_tasks()
        assert len(orphans) >= 2
        os.kill(started(world).pid, signal.SIGKILL)
        wait_until(lambda: not any(is_alive(pid) for pid in orphans))  # else they may pass the gate
        assert "killed: its agent ended with code 137" in ends_well(world, process)


def test_the_node_of_an_agent_is_killed(world: World, slurm: SlurmCluster) -> None:
    with begun_run(world, "--max-nodes", "1") as process:
        node = started(world).hosts[0]
        slurm.kill_node(node)
        try:
            assert "killed: a node failed" in ends_well(world, process)
        finally:
            slurm.start_node(node)


def test_another_node_is_killed(world: World, slurm: SlurmCluster) -> None:
    """What runs on the node of the agent ends well; the rest is done in another job."""
    with begun_run(world) as process:
        node = started(world).hosts[1]
        slurm.kill_node(node)
        try:
            ends_well(world, process)
        finally:
            slurm.start_node(node)


def test_a_job_is_cancelled_by_hand(world: World, slurm: SlurmCluster) -> None:
    with begun_run(world) as process:
        slurm.run("scancel", started(world).queue_id)
        assert "killed: it was cancelled by someone else" in ends_well(world, process)


def test_the_controller_is_down_for_a_while(world: World, slurm: SlurmCluster) -> None:
    """Level by level, so that the manager has something to submit in the meantime."""
    world.write(braid(work_s=1.0))
    with world.start(
        "run", "workflow.yaml", "--on", "slurm", "--strategy", "level-by-level"
    ) as process:
        world.wait_for(lambda: world.has_run("first"))
        slurm.stop_controller()
        try:
            world.wait_for(lambda: "does not answer" in RunView(world.latest).trouble_with_queue)
            assert process.poll() is None
        finally:
            slurm.start_controller()
        assert "the queue does not answer" in ends_well(world, process)


def test_nobody_is_there_when_the_controller_is_down(world: World, slurm: SlurmCluster) -> None:
    """A manager that cannot ask at its very start says so; the next one goes on."""
    world.write(braid())
    assert not world.kill_after(("run", "workflow.yaml", "--on", "slurm"), 2, 0.0)
    slurm.stop_controller()
    try:
        code, said = world.windrow("resume")
        assert code == 1
        assert "Unable to contact slurm controller" in said
    finally:
        slurm.start_controller()
    assert world.windrow("resume")[0] == 0
    world.check_complete()


def test_the_walltime_ends_in_mid_task(world: World) -> None:
    """The first time the task would take far longer than the minute that was asked for."""
    text = (
        "name: slow\ntasks:\n  - {id: quick, command: echo quick >> ran, runtime: 1s}\n  - "
        "id: slow\n"
    )
    text += (
        "    command: if test -e again; then echo slow >> ran; else touch again; sleep 600; fi\n"
    )
    world.write(text + "    after: quick\n    runtime: 1s\n")
    code, said = world.run("--strategy", "one-job")
    assert code == 0, said
    assert "killed: its time was up" in said
    world.check_complete(tasks=2)


@pytest.mark.parametrize("strategy", some("individual", "one-job"))
def test_odd_names_arguments_and_folders(odd_world: World, strategy: str) -> None:
    """Over sbatch, job arrays and steps on other nodes: programs get what the file says, shells get
    nothing."""
    tasks = odd.write(odd_world)
    code, said = odd_world.run("--strategy", strategy)
    assert code == 0, said
    odd.check(odd_world, tasks)
    odd_world.check_nothing_left()
    odd.check_private(odd_world.latest.folder.path)


@pytest.mark.parametrize("kill_s", [0.2])
def test_tasks_join_a_run_while_it_goes_on_and_when_it_is_over(
    world: World, kill_s: float | None
) -> None:
    world.write(braid(gated=True))
    grow(world, kill_s=kill_s)
