"""The loss of one node of a job on a real Slurm: it costs what was on that node, and nothing of the
others."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.settings import Settings
from tests.slurm.test_survival import slurm_world
from tests.survival.world import World
from tests.waiting import wait_until

from windrow.agent.event_file import (
    AgentStarted,
    AttemptFinished,
    AttemptStarted,
    OutputsCommitted,
    Tail,
)

NODES = 3
LINES = [
    "tasks:",
    '  - id: "make-{n}"',
    f"    matrix: {{n: 1..{NODES}}}",
    '    command: "echo make-{n} >> LOG; head -c SIZE /dev/zero > {outputs}"',
    '    outputs: "raw-{n}"',
    "    cores: 2",
    "    runtime: 5s",
    '  - id: "use-{n}"',
    f"    matrix: {{n: 1..{NODES}}}",
    '    command: "echo use-{n} >> LOG; until [ -e GO ]; do sleep 0.1; done; wc -c < {inputs} > '
    '{outputs}"',
    '    inputs: "raw-{n}"',
    '    outputs: "used-{n}"',
    "    cores: 2",
    "    runtime: 60s",
    "  - id: all",
    '    command: "cat {inputs} > {outputs}"',
    '    inputs: "used-*"',
    "    outputs: all",
    "    runtime: 5s",
    "",
]


@pytest.fixture(scope="module")
def with_disks() -> Iterator[SlurmCluster]:
    """Nodes with disks of their own."""
    if reason := missing() or ("disks of their own need root" if os.getuid() else ""):
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=NODES, disk_mib=64)) as cluster:
        yield cluster


@pytest.fixture
def world(with_disks: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    yield from slurm_world(with_disks, tmp_path)


def nodes_of(words: list[object]) -> dict[int, str]:
    """On which node each task was started."""
    hosts = next(word.hosts for word in words if isinstance(word, AgentStarted))
    return {
        word.task: hosts[word.of.nodes[0]] for word in words if isinstance(word, AttemptStarted)
    }


def log_of(world: World) -> Path:
    """What tasks write when they start: not in their folder, of which each node has its own
    view."""
    return world.state / "log"


def go_of(world: World) -> Path:
    """Tasks end when this is there."""
    return world.state / "go"


def pipelines(world: World, slurm: SlurmCluster, size: int) -> subprocess.Popen[str]:
    """Three pipelines at work, one on each node of one job: their first tasks are done, their
    second ones run."""
    world.state.mkdir(exist_ok=True)
    text = (
        "\n".join(LINES)
        .replace("LOG", str(log_of(world)))
        .replace("GO", str(go_of(world)))
        .replace("SIZE", str(size))
    )
    (world.folder / "workflow.yaml").write_text(text)
    scratch = str(slurm.place.disk)
    words = ("run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job", "--scratch", scratch)
    process = world.start(*words, "--max-nodes", str(NODES))
    log = log_of(world)
    world.wait_for(
        lambda: (
            process.poll() is not None or (log.exists() and log.read_text().count("use-") == NODES)
        )
    )
    return process


def has_told_of_all(words: list[object], tail: Tail) -> bool:
    """Whether the agent has said that all that is small is in the shared folder. (Its word is what
    counts once its node is gone.)"""
    words.extend(tail.read())
    return sum(isinstance(word, OutputsCommitted) for word in words) >= NODES


@pytest.mark.parametrize("which", ["another", "first"])
def test_what_was_on_other_nodes_stays_done(
    with_disks: SlurmCluster, world: World, which: str
) -> None:
    """If the first node is lost, the job is, and only what is small has left its nodes before."""
    slurm = with_disks
    size = 2_000_000 if which == "another" else 1000
    with pipelines(world, slurm, size) as process:
        words: list[object] = []
        tail = Tail(world.latest.folder.events(0))

        def is_at_work() -> bool:
            words.extend(tail.read())
            return sum(isinstance(word, AttemptStarted) for word in words) == 2 * NODES

        wait_until(is_at_work)
        assert sum(isinstance(word, AttemptFinished) for word in words) == NODES
        if which == "first":
            wait_until(lambda: has_told_of_all(words, tail))
        started = nodes_of(words)
        first = next(word.hosts[0] for word in words if isinstance(word, AgentStarted))
        lost = (
            first if which == "first" else next(node for node in started.values() if node != first)
        )
        gone = [task for task, node in started.items() if node == lost]
        slurm.kill_node(lost)
        slurm.run("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=dead")
        go_of(world).touch()
        try:
            out, err = process.communicate(timeout=240)
        finally:
            slurm.start_node(lost)
    assert process.returncode == 0, out + err
    assert (world.folder / "all").read_text().split() == [str(size)] * NODES
    ran = Counter(log_of(world).read_text().split())
    job = world.status()["jobs"][0]
    assert job["cause"] in (("node failed",) if which == "another" else ("node failed", "agent"))
    if which == "first":
        assert not [name for name, times in ran.items() if name.startswith("make") and times > 1]
    if which == "another":
        ids = [f"{kind}-{n}" for kind in ("make", "use") for n in range(1, NODES + 1)]
        again = {ids.index(name) for name, times in ran.items() if times > 1}
        assert again == set(gone), f"only what was on {lost} runs again: {ran}"
        assert lost in job["why"]
