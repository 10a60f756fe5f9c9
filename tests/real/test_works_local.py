"""Real workflows on the queue of this machine: they end, and what they wrote is what a serial run
writes.

`WINDROW_FULL=1` runs every shape by every strategy instead of a sample.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.real.works import QUEUES, Case, cases, check, private, sample
from tests.real_workflows import RECIPES

from windrow.app.strategies import STRATEGIES

SETTINGS = '[queues.local]\nnodes = 4\ncores = 1\nmemory = "1GiB"\n'
"""More nodes than most small machines have cores: tasks are short, and jobs on several nodes are
what is tested."""


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One queue, and one history, for all runs."""
    return {**os.environ, **private(tmp_path_factory.mktemp("home"))}


@pytest.mark.parametrize("case", cases("local"), ids=str)
def test_a_run_writes_what_a_serial_run_writes(
    case: Case, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "windrow.toml").write_text(SETTINGS)
    check(case, on="local", folder=tmp_path, env=env)


def test_the_sample_has_every_strategy_here_and_on_a_slurm_and_every_shape() -> None:
    here, *slurms = (sample(queue) for queue in QUEUES)
    assert {case.strategy for case in here} == set(STRATEGIES)
    assert sorted(case.strategy for cases in slurms for case in cases) == sorted(STRATEGIES)
    assert {case.recipe for cases in (here, *slurms) for case in cases} == set(RECIPES)
