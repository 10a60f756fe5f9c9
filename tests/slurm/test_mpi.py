"""Parallel programs side by side in one job: each finds its own nodes, whatever starts its
ranks."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.other_user import as_nobody, python_for_all
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_agent_on_slurm import printed, submit, wait_for_end
from tests.slurm.test_limits_on_slurm import windrow
from tests.unit.agent.jobs import Run, shell

from windrow.agent.event_file import AgentStarted, AttemptStarted

pytestmark = pytest.mark.slow

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANK = "tr '\\0' '\\n' < /proc/$PPID/environ | sed -n 's/^SLURMD_NODENAME=//p'"
"""The node of a rank: all nodes are this machine, and some launchers give ranks the environment of
the first."""
OWN = "echo $SLURMD_NODENAME"
LAUNCHERS = {
    "srun": (f"srun -n 4 sh -c '{OWN}'", 2),
    "srun by nodes": (f"srun --nodes=2 --ntasks=2 sh -c '{OWN}'", 1),
    "srun by ranks of a node": (f"srun --ntasks-per-node=2 sh -c '{OWN}'", 2),
    "srun that is told all": (
        f"srun --overlap --nodes=2 --nodelist=$WINDROW_NODES sh -c '{OWN}'",
        1,
    ),
    "srun by its path": (f"{shutil.which('srun')} -n 4 sh -c '{OWN}'", 2),
    "mpirun.openmpi": ('mpirun.openmpi -n 4 "$RANK"', 2),
    "mpirun.openmpi by its path": (f'{shutil.which("mpirun.openmpi")} "$RANK"', 2),
    "mpiexec.mpich": ('mpiexec.mpich -n 4 "$RANK"', 2),
}


@pytest.fixture
def rank(tmp_path: Path) -> Path:
    """A program that says on which node it is, started by a launcher's daemon there."""
    program = tmp_path / "rank"
    program.write_text(f"#!/bin/sh\n{RANK}\n")
    program.chmod(0o700)
    return program


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here (as root on Debian or Ubuntu: tests/slurm/install)")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_three_tasks_of_two_nodes_each_find_their_own(
    slurm: SlurmCluster, run: Run, tmp_path: Path, rank: Path, launcher: str
) -> None:
    needs(launcher.split(maxsplit=1)[0])
    command, ranks = LAUNCHERS[launcher]
    meet = (
        f"touch {tmp_path}/$WINDROW_TASK.here; until test $(ls {tmp_path} | grep -c here) -eq "
        "3; do sleep 0.05; done"
    )
    env = {**AS_ROOT, "RANK": str(rank)}
    run.write(*(shell(n, f"{meet}; {command}", nodes=2, env=env) for n in range(3)), nodes=6)
    wait_for_end(slurm, submit(slurm, run, 6))
    assert printed(run) == ""
    assert sorted(run.finished()) == [0, 1, 2]
    hosts = run.of(AgentStarted)[0].hosts
    places = {event.task: event.of.nodes for event in run.of(AttemptStarted)}
    found = {n: sorted(run.folder.task_out(n, 1).read_text().split()) for n in range(3)}
    assert found == {n: sorted([hosts[place] for place in places[n]] * ranks) for n in range(3)}


@pytest.mark.parametrize("launcher", ["srun", "mpirun.openmpi", "mpiexec.mpich"])
def test_tasks_that_share_nodes_start_their_ranks_where_they_are(
    slurm: SlurmCluster, run: Run, tmp_path: Path, rank: Path, launcher: str
) -> None:
    """Two tasks to a node, all at once: no step waits for another, and none leaves its node."""
    needs(launcher)
    meet = (
        f"touch {tmp_path}/$$.here; until test $(ls {tmp_path} | grep -c here) -eq 4; do "
        "sleep 0.05; done"
    )
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{meet}\n{OWN if launcher == 'srun' else RANK}\n")
    program.chmod(0o700)
    run.write(*(shell(n, f"{launcher} -n 1 {program}", env=AS_ROOT) for n in range(4)), nodes=2)
    wait_for_end(slurm, submit(slurm, run, 2))
    assert printed(run) == ""
    assert sorted(run.finished()) == [0, 1, 2, 3]
    hosts = run.of(AgentStarted)[0].hosts
    places = {event.task: event.of.nodes for event in run.of(AttemptStarted)}
    for n in range(4):
        assert run.folder.task_out(n, 1).read_text().split() == [hosts[places[n][0]]]


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_three_launchers_side_by_side_in_one_job_of_an_ordinary_user(slurm: SlurmCluster) -> None:
    """Plain srun, Open MPI and MPICH at once, each on two of six nodes: as the how-to writes it."""
    commands = {
        "a": f"srun --ntasks-per-node=2 sh -c '{OWN}'",
        "b": "mpirun.openmpi -n 4 ./rank",
        "c": "mpiexec.mpich -n 4 ./rank",
    }
    for command in commands.values():
        needs(command.split(maxsplit=1)[0])
    slurm.clear()
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o777)
        (folder / "rank").write_text(f"#!/bin/sh\n{RANK}\n")
        (folder / "rank").chmod(0o755)
        meet = "touch {id}.here; until test $(ls | grep -c here) -eq 3; do sleep 0.05; done"
        own = "echo $WINDROW_NODES $SLURM_JOB_NODELIST > {id}.nodes"
        tasks = "".join(
            f"  - id: {name}\n    nodes: 2\n    runtime: 1m\n    command: |\n"
            f"      {meet.format(id=name)}\n      {own.format(id=name)}\n"
            f"      {command} > {name}.ranks\n"
            for name, command in commands.items()
        )
        (folder / "w.yaml").write_text(f"name: w\ntasks:\n{tasks}")
        before = [*as_nobody(), python_for_all(slurm.env)]
        run = ("run", "w.yaml", "--on", "slurm", "--strategy", "giant")
        done = windrow(slurm, folder, *run, before=before)
        out = [path.read_text() for path in folder.glob(".windrow/runs/w-1/out/*")]
        assert done.returncode == 0, (done.stderr, out)
        seen = list[str]()
        for name in commands:
            mine, listed = (folder / f"{name}.nodes").read_text().split()
            assert listed == mine
            assert sorted((folder / f"{name}.ranks").read_text().split()) == sorted(
                2 * mine.split(",")
            )
            seen += mine.split(",")
        assert len(set(seen)) == 6
    finally:
        slurm.clear()
        shutil.rmtree(folder)
