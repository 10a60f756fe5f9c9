"""Workflows of sleeps for `shared_nodes.py`, and the ways of running them on a Slurm.

A way writes what it needs into a folder and names a command; when the command has ended and each
task has written its file, the workflow is done. All know the same of a task: how long it should
take. None asks for less than that and a fifth.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.shared_load import CORES

LEVELS = {10: (1, 4, 4, 1), 60: (1, 20, 20, 18, 1), 500: (250, 250)}
"""Tasks by level. A level follows the one before index by index, unless either has one task."""
NODES = {10: 1, 60: 2, 500: 4}
"""What one big job asks for."""
PILOT_MIN = 5
"""The limit of an allocation of pilots."""
TASK = """\
began=$(date +%s.%N)
sleep "$2"
mkdir -p parts
echo "${SLURM_JOB_ID:-0} $began $(date +%s.%N)" > "parts/$1"
mv "parts/$1" "done/$1"
"""


@dataclass(frozen=True, slots=True)
class Task:
    """One core for `takes_s`; `expected_s` is what one knows before."""

    name: str
    level: int
    index: int
    after: tuple[str, ...]
    expected_s: float
    takes_s: float

    @property
    def minutes(self) -> int:
        """What is asked of Slurm for it."""
        return minutes(self.expected_s)

    @property
    def words(self) -> str:
        """What runs."""
        return f"sh task.sh {self.name} {self.takes_s}"


@dataclass(frozen=True, slots=True)
class Work:
    """A workflow, level by level."""

    levels: tuple[tuple[Task, ...], ...]

    @property
    def tasks(self) -> list[Task]:
        """All, parents first."""
        return [task for level in self.levels for task in level]


def minutes(expected_s: float) -> int:
    """Slurm's limit for this much work."""
    return math.ceil(1.2 * expected_s / 60)


def draw_work(tasks: int, seed: int) -> Work:
    """Tasks of 10 to 60 s, which take a bit more or less than expected."""
    chance = random.Random(f"work {tasks} {seed}")
    levels: list[tuple[Task, ...]] = []
    for number, width in enumerate(LEVELS[tasks]):
        above = levels[-1] if levels else ()
        level = []
        for index in range(width):
            expected_s = round(chance.uniform(10, 60), 1)
            takes_s = round(expected_s * min(1.15, chance.lognormvariate(0, 0.1)), 1)
            after = _parents(levels, above, index, width)
            level.append(Task(f"t{number}-{index}", number, index, after, expected_s, takes_s))
        levels.append(tuple(level))
    return Work(tuple(levels))


def _parents(
    levels: Sequence[Sequence[Task]], above: Sequence[Task], index: int, width: int
) -> tuple[str, ...]:
    if width == 1:  # all that no one has followed yet
        followed = {name for level in levels for task in level for name in task.after}
        return tuple(t.name for level in levels for t in level if t.name not in followed)
    if len(above) == 1:
        return (above[0].name,)
    return tuple(task.name for task in above if task.index == index)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a way works: its folder, the kind of site, Windrow as the user starts it, and where
    Snakemake's packages are."""

    folder: Path
    site: str
    windrow: tuple[str, ...]
    snakemake: Path


def prepare(folder: Path) -> None:
    """What all ways need."""
    (folder / "done").mkdir()
    (folder / "task.sh").write_text(TASK)


def windrow(work: Work, place: Place) -> list[str]:
    """Windrow with its defaults, told that users share nodes if they do."""
    if place.site == "shared":
        (place.folder / "windrow.toml").write_text('[queues.slurm]\nshare = "cores"\n')
    rows = [
        {"id": t.name, "command": t.words.split(), "runtime": t.expected_s, "after": t.after}
        for t in work.tasks
    ]
    (place.folder / "workflow.yaml").write_text(json.dumps({"name": "work", "tasks": rows}))
    return [*place.windrow, "run", "workflow.yaml", "--on", "slurm", "--json"]


def one_sbatch_each(work: Work, place: Place) -> list[str]:
    """A job for each task, after those of its parents."""
    lines = ["set -e", "declare -A job"]
    for task in work.tasks:
        parents = ":".join(f"${{job[{name}]}}" for name in task.after)
        after = f'--dependency="afterok:{parents}" ' if parents else ""
        lines.append(
            f"job[{task.name}]=$(sbatch --parsable -n1 -t{task.minutes} -o /dev/null {after}"
            f"--wrap 'exec {task.words}')"
        )
    return _script(place, lines)


def arrays(work: Work, place: Place) -> list[str]:
    """An array for each level; task follows task of the same index."""
    lines = ["set -e"]
    for number, level in enumerate(work.levels):
        (place.folder / f"level{number}").write_text("".join(f"{t.words}\n" for t in level))
        one = f'exec $(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" level{number})'
        after = ""
        if number:
            kind = "afterok" if 1 in (len(level), len(work.levels[number - 1])) else "aftercorr"
            longer = len(work.levels[number - 1]) < len(work.levels[number - 2]) and number > 1
            more = f":$job{number - 2}" if kind == "afterok" and longer else ""
            after = f'--dependency="{kind}:$job{number - 1}{more}" '
        limit = max(task.minutes for task in level)
        lines.append(
            f"job{number}=$(sbatch --parsable -n1 -t{limit} -o /dev/null "
            f"--array=0-{len(level) - 1} {after}--wrap '{one}')"
        )
    return _script(place, lines)


def one_job(work: Work, place: Place) -> list[str]:
    """One job of whole nodes, level by level; a level is dealt to the cores in turn."""
    nodes = NODES[len(work.tasks)]
    lines, total_s = ["#!/bin/bash", "set -e"], 0.0
    for number, level in enumerate(work.levels):
        ranks = min(len(level), nodes * CORES)
        for rank in range(ranks):
            own = level[rank::ranks]
            file = place.folder / f"level{number}.{rank}"
            file.write_text("".join(f"{task.words}\n" for task in own))
        total_s += max(sum(t.expected_s for t in level[rank::ranks]) for rank in range(ranks))
        lines.append(f"srun -n{ranks} sh -c 'exec sh -e level{number}.$SLURM_PROCID'")
    (place.folder / "job.sh").write_text("\n".join([*lines, ""]))
    shape = f"-N{nodes} --exclusive --mem=0 --ntasks-per-node={CORES} -t{minutes(total_s)}"
    return _script(place, [f"sbatch {shape} -o job.out job.sh"])


SNAKEFILE = """\
import json
WORK = json.load(open("work.json"))
rule all:
    input: [f"done/{name}" for name in WORK]
rule task:
    input: lambda wildcards: [f"done/{name}" for name in WORK[wildcards.name]["after"]]
    output: "done/{name}"
    resources: runtime=lambda wildcards: WORK[wildcards.name]["minutes"]
    params: seconds=lambda wildcards: WORK[wildcards.name]["takes_s"]
    shell: "sh task.sh {wildcards.name} {params.seconds}"
"""


def snakemake(work: Work, place: Place) -> list[str]:
    """Snakemake and its plugin for Slurm; two minutes at least, since each job starts it twice."""
    rows = {
        t.name: {"after": t.after, "minutes": max(2, t.minutes), "takes_s": t.takes_s}
        for t in work.tasks
    }
    (place.folder / "work.json").write_text(json.dumps(rows))
    (place.folder / "Snakefile").write_text(SNAKEFILE)
    python = place.windrow[: place.windrow.index("-P")]
    shape = ("slurm_partition=main", "slurm_account=science", "mem_mb=400", "cpus_per_task=1")
    options = ("--executor", "slurm", "--jobs", "500", "--latency-wait", "10", "--quiet", "all")
    env = f"PYTHONPATH={place.snakemake}"
    return [
        *python[:-1],
        env,
        python[-1],
        "-m",
        "snakemake",
        *options,
        "--default-resources",
        *shape,
    ]


def pilots(work: Work, place: Place) -> list[str]:
    """Workers that come as jobs while tasks wait, as HyperQueue allocates (`shared_pilots`)."""
    rows = {
        t.name: {"after": t.after, "words": t.words.split(), "expected_s": t.expected_s}
        for t in work.tasks
    }
    (place.folder / "work.json").write_text(json.dumps(rows))
    file = Path(__file__).with_name("shared_pilots.py")
    python = place.windrow[: place.windrow.index("-P")]
    shape = {"shared": f"-n1 -c{CORES}", "whole": "-N1 --exclusive --mem=0"}[place.site]
    return [*python, "-S", str(file), "serve", str(CORES), str(PILOT_MIN), *shape.split()]


def _script(place: Place, lines: Sequence[str]) -> list[str]:
    (place.folder / "submit.sh").write_text("\n".join([*lines, ""]))
    start = place.windrow.index("env") + 1 if "env" in place.windrow else 0
    return [*place.windrow[:start], "bash", "submit.sh"]


WAYS: dict[str, Callable[[Work, Place], list[str]]] = {
    "windrow": windrow,
    "sbatch each": one_sbatch_each,
    "arrays": arrays,
    "one job": one_job,
    "snakemake": snakemake,
    "pilots": pilots,
}
MINE = "windrow"

if __name__ == "__main__":
    sys.exit("this is a part of shared_nodes.py")
