"""Tasks that need GPUs, memory, disk and named resources, on real queues: where each ran, what it
saw, and with whom.

Law: what a task writes down of itself (its node, its times, its variables) is held against what its
node has and what it asked for: it fits the node, all that run there at one time fit together, and
no two have the same GPU.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.works import PATIENCE_S, WINDROW

from windrow.formats import read_runnable
from windrow.model.nodes import Need
from windrow.model.resources import NodeShape

MIB = 1024**2
SEEN_BY = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
PROBE = """\
began=$(date +%s.%N)
sleep 0.3
cpus=$(grep Cpus_allowed_list /proc/self/status | cut -f2)
{ env; echo PROBE_CPUS=$cpus; echo PROBE_BEGAN=$began; echo PROBE_ENDED=$(date +%s.%N); } > ran.$WINDROW_TASK.$WINDROW_ATTEMPT
test "$1" != once || test $WINDROW_ATTEMPT != 1
"""  # noqa: E501

Needs = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A workflow: of each task what it needs, in the words of a file. `refused`: what is said
    instead of running it. `words`: further options of `windrow run`."""

    name: str
    tasks: Mapping[str, Needs]
    strategy: str = "one-job"
    defaults: Needs = field(default_factory=dict)
    refused: str = ""
    jobs: int | None = None
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def many(count: int, **needs: Any) -> dict[str, Needs]:
    """Tasks that need the same."""
    return {f"{'-'.join(needs) or 'plain'}-{i}": needs for i in range(count)}


def run(
    case: Case,
    folder: Path,
    on: str,
    env: Mapping[str, str],
    shapes: Mapping[str, NodeShape],
    windrow: Sequence[str] = WINDROW,
) -> list[Ran]:
    """Run the case as a user would, and hold what its tasks wrote down against what nodes have, by
    name. `windrow`: how the command is started. Returns what ran."""
    path = write(case, folder)
    command = [*windrow, "run", path.name, "--json", "--on", on]
    command += ["--strategy", case.strategy, *case.words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if case.refused:
        assert (done.returncode, done.stdout) == (2, "")
        assert case.refused in done.stderr
        return []
    assert done.returncode == 0, done.stderr + done.stdout
    said = json.loads(done.stdout)
    assert said["state"] == "complete", said
    assert case.jobs is None or case.jobs == len(
        list((folder / ".windrow" / "runs").glob("*/jobs/*/claim"))
    )
    return check([path], shapes)


def write(case: Case, folder: Path) -> Path:
    """The workflow file, and what its tasks run."""
    (folder / "probe.sh").write_text(PROBE)
    path = folder / "case.yaml"
    tasks = []
    for name, needs in case.tasks.items():
        word = "once" if needs.get("retries") else "well"
        tasks.append({"id": name, "command": ["sh", "probe.sh", word], "runtime": "1s", **needs})
    path.write_text(json.dumps({"name": "case", "defaults": dict(case.defaults), "tasks": tasks}))
    return path


@dataclass(frozen=True)
class Ran:
    """An attempt as it saw itself."""

    task: str
    need: Need
    env: Mapping[str, str]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its nodes; `here` where no batch system names them."""
        if self.need.nodes:
            return (
                tuple(self.env["WINDROW_NODES"].split(","))
                if "SLURM_JOB_ID" in self.env
                else ("here",)
            )
        return (self.env.get("SLURMD_NODENAME", "here"),)

    @property
    def times(self) -> tuple[float, float]:
        """From when to when it ran."""
        return float(self.env["PROBE_BEGAN"]), float(self.env["PROBE_ENDED"])


def check(files: list[Path], shapes: Mapping[str, NodeShape]) -> list[Ran]:
    """Hold what was written down against needs and nodes."""
    ran: list[Ran] = []
    for file in files:
        workflow = read_runnable(file).workflow
        for task in workflow:
            found = sorted(file.parent.glob(f"ran.{task.id}.*"))
            assert len(found) == (
                2 if "retries" in file.read_text() and task.id.startswith("retries") else 1
            ), task.id
            for record in found:
                lines = (line.partition("=") for line in record.read_text().splitlines())
                ran.append(Ran(task.id, task.need, {name: value for name, _, value in lines}))
                _check_environment(ran[-1], shapes, counts_gpus="gpus" in workflow.counts)
    for one in ran:
        assert all(one.need.fits(shapes[node]) for node in one.nodes), (one.task, one.nodes)
        assert len(set(one.nodes)) == max(1, one.need.nodes)
        others = [
            other
            for other in ran
            if other is not one and other.times[0] <= one.times[0] < other.times[1]
        ]
        for node in one.nodes:
            _check_company(one, [other for other in others if node in other.nodes], shapes[node])
    return ran


def _check_environment(one: Ran, shapes: Mapping[str, NodeShape], *, counts_gpus: bool) -> None:
    need, env = one.need, one.env
    shape = shapes[one.nodes[0]]
    there = dict(shape.counts) if need.nodes else {}
    counts = {
        **dict(need.counts),
        **{name: there.get(name, 0) for name in dict(need.counts) if need.nodes},
    }
    assert env.get("WINDROW_GPUS", "0") == str(counts.get("gpus", 0))
    assert env.get("WINDROW_MEMORY_BYTES", "0") == str(need.memory_bytes)
    assert env.get("WINDROW_DISK_BYTES", "0") == str(need.disk_bytes)
    for name, count in counts.items():
        assert name.startswith("gpus") or env[f"WINDROW_RESOURCE_{name.upper()}"] == str(count)
    if counts_gpus and not need.nodes:
        for variable in SEEN_BY:
            assert len(names(env[variable])) == counts.get("gpus", 0), (
                one.task,
                variable,
                env[variable],
            )
    if need.nodes and counts.get("gpus") and "SLURM_JOB_ID" in env:
        assert len(names(env["CUDA_VISIBLE_DEVICES"])) == there["gpus"]


def _check_company(one: Ran, others: list[Ran], shape: NodeShape) -> None:
    together = [one, *others]
    if any(other.need.nodes for other in together):
        assert not others, (one.task, [other.task for other in others])
    there = shape.amounts()
    for name in there:
        assert sum(other.need.amounts().get(name, 0) for other in together) <= there[name], (
            one.task,
            name,
        )
    mine = (
        names(one.env.get("CUDA_VISIBLE_DEVICES", ""))
        if dict(one.need.counts).get("gpus")
        else set()
    )
    for other in others:
        if dict(other.need.counts).get("gpus"):
            assert not mine & names(other.env["CUDA_VISIBLE_DEVICES"]), (one.task, other.task)


def names(said: str) -> set[str]:
    return set(filter(None, said.split(",")))
