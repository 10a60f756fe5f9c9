"""Needs of tasks on the queue of this machine: right variables, no GPU shared, not even by two
runs.

`WINDROW_FULL=1` runs every case instead of a sample. GPUs are made up: what is checked is who may
see which.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real.needs import MIB, Case, check, many, run, write
from tests.real.works import IS_FULL, PATIENCE_S, private

from windrow.agent.machine import this_machine
from windrow.model.resources import NodeShape

SETTINGS = '[queues.local]\ngpus = 3\ndisk = "1GiB"\nresources = {lic = 2}\n'
CLUSTER = SETTINGS + "nodes = 2\ncores = 4\n"
MACHINE = this_machine()
HERE = NodeShape(MACHINE.cores, MACHINE.memory_bytes, 1024 * MIB, (("gpus", 3), ("lic", 2)))
NODES = NodeShape(8, None, 2048 * MIB, (("gpus", 6), ("lic", 4)))  # both together
CASES = (
    Case("a GPU each, and tasks without", {**many(4, gpus=1), **many(2)}),
    Case(
        "a retry has a GPU of its own again",
        {"retries-0": {"gpus": 1, "retries": 1}, **many(3, gpus=2)},
    ),
    Case(
        "too many GPUs",
        many(1, gpus=4),
        refused="needs 4 GPUs; windrow.toml allows 3; lower gpus of the task",
    ),
    Case("two and three GPUs", {**many(2, gpus=2), "all": {"gpus": 3}}),
    Case("disk", many(4, disk="600MiB")),
    Case("a named resource", many(4, resources={"lic": 1})),
    Case("the whole machine", {**many(2, nodes=1, gpus=1), **many(2, gpus=1)}),
    Case("tasks that say nothing of GPUs see whatever there is", many(2)),
    Case(
        "too much disk",
        many(1, disk="2GiB"),
        refused="needs 2 GiB of disk; windrow.toml allows 1 GiB; lower disk",
    ),
    Case(
        "a resource that is not there",
        many(1, resources={"x": 1}),
        refused="needs 1 x; windrow.toml allows 0; lower x of the task in case.yaml, or raise "
        "resources.x in",
    ),
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One queue for all runs."""
    return {**os.environ, **private(tmp_path_factory.mktemp("home"))}


PLAYED = tuple(
    replace(case, name=f"{case.name}, on a small cluster played here") for case in CASES[:2]
)


@pytest.mark.parametrize("case", (*CASES, *PLAYED) if IS_FULL else CASES[:1], ids=str)
def test_tasks_get_what_they_need(case: Case, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "windrow.toml").write_text(CLUSTER if case in PLAYED else SETTINGS)
    run(case, tmp_path, "local", env, {"here": NODES if case in PLAYED else HERE})


def test_two_runs_never_have_the_same_gpu(env: dict[str, str], tmp_path: Path) -> None:
    files, runs = [], []
    for name in ("one", "other"):
        (folder := tmp_path / name).mkdir()
        (folder / "windrow.toml").write_text(SETTINGS)
        files.append(write(Case(name, {**many(3, gpus=1), **many(2, gpus=2)}), folder))
        command = [sys.executable, "-P", "-m", "windrow.cli.main", "run", "case.yaml", "--json"]
        runs.append(subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL))
    assert [run.wait(PATIENCE_S) for run in runs] == [0, 0]
    check(files, {"here": HERE})
