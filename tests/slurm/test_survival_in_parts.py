"""What `test_survival` breaks, broken where users share nodes: by an ordinary user, whose jobs have
parts of nodes.

`WINDROW_FULL=1` breaks all of it instead of a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.real.works import IS_FULL
from tests.slurm import parts
from tests.slurm import test_survival as broken
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_losses_on_slurm import ordinary_world
from tests.survival.world import World

Breaking = Callable[[World, SlurmCluster], object]
ALL: dict[str, Breaking] = {
    "an agent is killed": lambda world, _: broken.test_the_agent_is_killed(world),
    "a job is cancelled": broken.test_a_job_is_cancelled_by_hand,
    "a node is killed": broken.test_the_node_of_an_agent_is_killed,
    "the controller is down": broken.test_the_controller_is_down_for_a_while,
    "the manager is killed": lambda world, _: broken.test_the_manager_is_killed_again_and_again(
        world, "individual"
    ),
    "the time is up": lambda world, _: broken.test_the_walltime_ends_in_mid_task(world),
}
"""Each ends with all tasks done once, and nothing left."""


@pytest.fixture
def ordinary(shared: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    """A world of an ordinary user on shared nodes."""
    yield from ordinary_world(shared, tmp_path)


@pytest.mark.parametrize("what", ALL if IS_FULL else list(ALL)[1:2])
def test_a_run_in_parts_of_nodes_survives(what: str, ordinary: World, shared: SlurmCluster) -> None:
    last = parts.last_job(shared)
    ALL[what](ordinary, shared)
    jobs = parts.held_since(shared, last)
    assert jobs
    assert all(parts.is_part(held) for held in jobs)
