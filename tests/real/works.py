"""Real workflows run to their end, as users run them; what they wrote is compared with a serial
run.

    check(Case("montage", 50, "glume"), on="slurm", folder=tmp_path, env=slurm.env)

Law: what a task writes depends on its id and its inputs alone (see tests/real_workflows.py). Equal
checksums say that each task ran on whole inputs; the journal says that each ran once. How many jobs
a strategy makes of a workflow is known without running it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from tests.real_workflows import RECIPES, output_checksums, run_serially, write_real

from windrow.app.runs import RunView, find_run
from windrow.app.strategies import STRATEGIES
from windrow.formats import read_runnable

QUEUES = ("local", "slurm", "slurm with accounting")
IS_FULL = bool(os.environ.get("WINDROW_FULL"))
"""Whether every shape meets every strategy on every queue; else a sample runs that is quick."""
LARGE = 500
PATIENCE_S = 1800.0 if IS_FULL else 300.0


WINDROW = (sys.executable, "-P", "-m", "windrow.cli.main")


class Runner(Protocol):
    """Another user: the Python of that one, how it starts the command, and is given a folder."""

    @property
    def python(self) -> str: ...

    @property
    def windrow(self) -> tuple[str, ...]: ...

    def give(self, folder: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A shape, how many tasks are asked for, and the strategy."""

    recipe: str
    tasks: int
    strategy: str

    def __str__(self) -> str:
        return f"{self.recipe}-{self.tasks}-{self.strategy}"


def cases(queue: str) -> list[Case]:
    """What runs on this queue."""
    return _full(queue) if IS_FULL else sample(queue)


def sample(queue: str) -> list[Case]:
    """Each strategy on this machine, and once on one of the Slurms. Shapes go on from queue to
    queue: all are met."""
    names = list(STRATEGIES)
    here = names + names[: len(RECIPES) - 2 * len(names)]
    of_queue = {"local": here, "slurm": names[::2], "slurm with accounting": names[1::2]}
    shape = sum(len(of_queue[earlier]) for earlier in QUEUES[: QUEUES.index(queue)])
    shapes = [RECIPES[(shape + i) % len(RECIPES)] for i in range(len(of_queue[queue]))]
    return [
        Case(shape, _small(shape), strategy)
        for shape, strategy in zip(shapes, of_queue[queue], strict=True)
    ]


def _full(queue: str) -> list[Case]:
    """Every shape by every strategy; then each strategy once more on a large workflow."""
    small = [Case(shape, _small(shape), strategy) for shape in RECIPES for strategy in STRATEGIES]
    return small + [Case(case.recipe, LARGE, case.strategy) for case in sample(queue)]


def _small(shape: str) -> int:
    if not IS_FULL:
        return 39 if shape == "fft" else 30
    return 80 if shape == "fft" else 50  # fft comes in few sizes, and the one next to 50 is 39


def check(
    case: Case, *, on: str, folder: Path, env: Mapping[str, str], who: Runner | None = None
) -> None:
    """Run the case in this folder with `windrow run`, and verify all that can be. `who`: another
    user than we are."""
    python = who.python if who else sys.executable
    path = write_real(case.recipe, case.tasks, folder, work_s=0.01, python=python)
    if who:
        who.give(folder)
    said = windrow_run(path, case.strategy, on, env, who.windrow if who else WINDROW)
    assert said["state"] == "complete", said
    assert output_checksums(path) == serial_checksums(case.recipe, case.tasks)
    told = RunView(find_run(None, folder / ".windrow" / "runs"))
    ran = [[attempt.outcome for attempt in task.attempts] for task in told.story.tasks]
    assert ran == [["finished"]] * len(told.runnable.workflow)
    assert {job.outcome for job in told.story.jobs.values()} == {"ended"}
    least, most = jobs_expected(case.strategy, path)
    assert least <= len(told.story.jobs) <= most
    told.close()


def windrow_run(
    path: Path, strategy: str, on: str, env: Mapping[str, str], windrow: Sequence[str] = WINDROW
) -> dict[str, Any]:
    """What `windrow run` says at the end; `windrow`: how the command is started."""
    command = [*windrow, "run", path.name, "--json", "--on", on]
    done = subprocess.run(
        [*command, "--strategy", strategy],
        cwd=path.parent,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def jobs_expected(strategy: str, path: Path) -> tuple[int, int]:
    """The fewest and most jobs into which the strategy may cut the workflow."""
    workflow = read_runnable(path).workflow
    tasks, levels = len(workflow), workflow.depth
    exactly = {"individual": tasks, "giant": 1, "one-job": 1, "level-by-level": levels}
    return (exactly[strategy], exactly[strategy]) if strategy in exactly else (1, tasks)


@cache
def serial_checksums(recipe: str, tasks: int) -> dict[str, str]:
    """What the tasks write when they run one after the other, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_real(recipe, tasks, Path(folder), work_s=0.01)
        run_serially(path)
        return output_checksums(path)


def private(folder: Path) -> dict[str, str]:
    """Variables that keep what runs learn, and the queue of this machine, in this folder."""
    homes = ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    return {
        **{name: str(folder / name) for name in homes},
        "WINDROW_HISTORY": str(folder / "history.sqlite"),
    }
