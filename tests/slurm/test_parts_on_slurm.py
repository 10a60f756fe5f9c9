"""Parts of nodes on a real Slurm, as an ordinary user: where tasks run, what they see, and what
Slurm charges (`parts`).

`WINDROW_FULL=1` runs every case instead of a sample.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.other_user import as_nobody, python_for_all, python_path
from tests.real import needs, works
from tests.real.needs import MIB, many
from tests.real.works import IS_FULL, private
from tests.real_workflows import RECIPES
from tests.slurm import parts
from tests.slurm.cluster import SlurmCluster
from tests.slurm.parts import CASES, PARTS, REFUSED, SHAPES, WHOLE, Case
from tests.slurm.shared import OTHER, USER, reserved, submit, told
from tests.slurm.test_slurm_sites import copy_compiled

from windrow.app.strategies import STRATEGIES
from windrow.model.resources import NodeShape

SAMPLE = (PARTS[0], PARTS[9], PARTS[19], WHOLE[3], WHOLE[9], REFUSED[1], REFUSED[13])


@dataclass(frozen=True)
class Home:
    """Where the ordinary user has what is compiled, and how that user starts the command."""

    folder: Path
    python: str
    before: tuple[str, ...] = ()

    @property
    def windrow(self) -> tuple[str, ...]:
        """The command."""
        return (*self.before, self.python, "-P", "-m", "windrow.cli.main")

    def room(self) -> Path:
        """An empty folder of that user."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        self.give(folder)
        return folder

    def give(self, folder: Path) -> None:
        """Make all that is in the folder that user's."""
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", USER, folder], check=True)


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """In /tmp, since another user may not look into folders of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="windrow-parts-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        copy_compiled(folder / "cache")
        made = Home(folder, sys.executable)
        if os.getuid() == 0:
            made = Home(folder, python_for_all(os.environ), tuple(as_nobody()))
        made.give(folder)
        yield made
    finally:
        shutil.rmtree(folder)


def test_there_are_enough_cases() -> None:
    """Each has a name of its own, and says something that can be wrong."""
    assert len({case.name for case in CASES}) == len(CASES) >= 60
    assert sum(case.parts is True for case in CASES) >= 20
    assert sum(case.parts is False for case in CASES) >= 10
    assert all(case.refused or case.bill or case.parts is not None for case in CASES)


@pytest.mark.parametrize("case", CASES if IS_FULL else SAMPLE, ids=str)
def test_a_run_has_the_parts_that_it_needs(case: Case, shared: SlurmCluster, home: Home) -> None:
    folder = home.room()
    parts.written(case, folder)
    with ExitStack() as stack:
        if case.reservation:
            nodes, _, whose = case.reservation.partition(" of ")
            user = f"users={OTHER if whose else USER}"
            when = ("starttime=now", "duration=60")
            stack.enter_context(reserved(shared, "ours", *when, f"nodes={nodes}", user))
        for one in case.others:
            submit(shared, "--wrap=exec sleep 600", "--time=60", *one.split(), user=_payer(one))
        shared.wait(lambda: _is_busy(shared, len(case.others)), "jobs of others", "slurmctld")
        last = parts.last_job(shared)
        env = _environment(shared, home, folder)
        ran = needs.run(case, folder, "slurm", env, SHAPES, home.windrow)
        jobs = parts.held_since(shared, last)
        if case.refused:
            assert parts.last_job(shared) == last
        parts.check(case, shared, ran, jobs)


IN_PARTS = [
    works.Case(recipe, 50 if IS_FULL else 30, strategy)
    for recipe in RECIPES
    for strategy in STRATEGIES
]


@pytest.mark.parametrize("case", IN_PARTS if IS_FULL else IN_PARTS[9:40:29], ids=str)
def test_real_workflows_write_what_a_serial_run_writes(
    case: works.Case, shared: SlurmCluster, home: Home
) -> None:
    folder = home.room()
    parts.written(Case("real", {}), folder)
    env = _environment(shared, home, folder)
    works.check(case, on="slurm", folder=folder, env=env, who=home)


BOUND_CASES = (
    (Case("two jobs of a core each on a node", many(4), "individual"), 1),
    (Case("a job of two cores", many(1, cores=2)), 2),
)


@pytest.mark.parametrize(("case", "cores"), BOUND_CASES, ids=str)
def test_tasks_keep_to_the_cores_that_their_job_is_bound_to(
    case: Case, cores: int, bound: SlurmCluster, home: Home
) -> None:
    """Slurm binds a job to its cores; what the agent starts must not be let out again."""
    folder = home.room()
    parts.written(case, folder)
    shapes = {node: NodeShape(2, 1000 * MIB) for node in bound.nodes}
    ran = needs.run(case, folder, "slurm", _environment(bound, home, folder), shapes, home.windrow)
    owned = {one.task: parts.numbers(one.env["PROBE_CPUS"]) for one in ran}
    assert {len(numbers) for numbers in owned.values()} == {cores}
    for one in ran:
        for other in ran:
            beside = one.times[0] <= other.times[0] < one.times[1]
            if other is not one and other.nodes == one.nodes and beside:
                assert not owned[one.task] & owned[other.task]
    bound.clear()


def _environment(slurm: SlurmCluster, home: Home, folder: Path) -> dict[str, str]:
    env = {**slurm.env, **python_path(), **private(folder), "HOME": str(folder)}
    return {**env, "WINDROW_CACHE": str(home.folder / "cache")}


def _payer(options: str) -> str:
    """Others are root where it does not matter: they may have an account with a limit."""
    if "physics" in options:
        return OTHER
    return "root"


def _is_busy(slurm: SlurmCluster, jobs: int) -> bool:
    running = slurm.run("squeue", "-h", "-t", "running", "-o", "%A").split()
    return len(running) == jobs and all(
        told(slurm, job)["JobState"] == "RUNNING" for job in running
    )
