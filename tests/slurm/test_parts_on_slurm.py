"""Parts of nodes on a real Slurm, as an ordinary user: where tasks run, what they see, and what
Slurm charges (`parts`).

`WINDROW_FULL=1` runs every case instead of a sample.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from tests.real import needs, works
from tests.real.needs import MIB, many
from tests.real.works import IS_FULL
from tests.real_workflows import RECIPES
from tests.slurm import parts
from tests.slurm.cluster import SlurmCluster
from tests.slurm.home import Home
from tests.slurm.parts import CASES, PARTS, REFUSED, SHAPES, WHOLE, Case
from tests.slurm.shared import OTHER, USER, reserved, submit, told

from windrow.app.strategies import STRATEGIES
from windrow.model.resources import NodeShape

SAMPLE = (PARTS[0], PARTS[9], PARTS[19], WHOLE[3], WHOLE[9], REFUSED[1], REFUSED[13])


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
        env = home.environment(shared, folder)
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
    env = home.environment(shared, folder)
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
    ran = needs.run(case, folder, "slurm", home.environment(bound, folder), shapes, home.windrow)
    owned = {one.task: parts.numbers(one.env["PROBE_CPUS"]) for one in ran}
    assert {len(numbers) for numbers in owned.values()} == {cores}
    for one in ran:
        for other in ran:
            beside = one.times[0] <= other.times[0] < one.times[1]
            if other is not one and other.nodes == one.nodes and beside:
                assert not owned[one.task] & owned[other.task]
    bound.clear()


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
