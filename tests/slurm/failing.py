"""A private Slurm whose nodes fail by a schedule drawn from a seed: the same for every run that is
compared.

What happens: a node is killed with all that runs there and is back after a moment (*killed*), a job
of another user preempts one (*preempted*, where the cluster has such partitions), and one node
kills whatever it is given (*deadly*).
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.slurm.cluster import ClusterError, SlurmCluster

FOUND_S, BACK_S = 1.0, 3.0
"""How long after its death a node is found dead (sites watch their nodes: Slurm alone takes
minutes), and is back."""
_LOOK_S = 0.3


@dataclass
class Failing:
    """Lets nodes of a cluster fail, every `every_s` on average."""

    cluster: SlurmCluster
    seed: int
    every_s: float
    kinds: Sequence[str] = ("killed",)
    deadly: str = ""
    """The node that always kills."""
    met: Counter[str] = field(default_factory=Counter)
    """What happened, by kind."""
    _dead: dict[str, float] = field(default_factory=dict)
    _down: dict[str, float] = field(default_factory=dict)

    def until(self, is_over: Callable[[], bool]) -> Counter[str]:
        """Let it happen until then, in this thread: daemons die with the thread that started them.
        What happened."""
        chance, began = random.Random(self.seed), time.monotonic()
        at_s = chance.expovariate(1 / self.every_s)
        while not is_over():
            time.sleep(_LOOK_S)
            now = time.monotonic()
            self._look(now)
            while began + at_s <= now:
                kind, node = chance.choice(self.kinds), chance.choice(self.cluster.nodes)
                if kind == "preempted":
                    self._preempt()
                else:
                    self._kill(node, kind)
                at_s += chance.expovariate(1 / self.every_s)
        for node in (*self._dead, *self._down):
            self.cluster.start_node(node, waits=False)
        return self.met

    def _look(self, now: float) -> None:
        """Nodes are found dead, and nodes are back; the deadly one does what it does."""
        for node in [node for node, died in self._dead.items() if now >= died + FOUND_S]:
            self._down[node] = self._dead.pop(node) + BACK_S
            with suppress(ClusterError):
                self.cluster.run(
                    "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=dead"
                )
        for node in [node for node, until in self._down.items() if now >= until]:
            del self._down[node]
            self.cluster.start_node(node, waits=False)
        if self.deadly and self._is_used(self.deadly):
            self._kill(self.deadly, "deadly")

    def _kill(self, node: str, kind: str) -> None:
        if node in (*self._dead, *self._down):
            return
        self.met[kind] += 1
        self.cluster.kill_node(node)
        self._dead[node] = time.monotonic()

    def _is_used(self, node: str) -> bool:
        with suppress(ClusterError):
            return bool(self.cluster.run("squeue", "-h", "-t", "R", "-w", node, "-o", "%i").strip())
        return False

    def _preempt(self) -> None:
        words = (
            "--partition=high",
            "--nodes=1",
            "--exclusive",
            "--time=1",
            "--output=/dev/null",
            "--chdir=/",
        )
        with suppress(ClusterError):
            self.cluster.run("sbatch", *words, "--wrap=sleep 1")
            self.met["preempted"] += 1


def chokes(stages: int, width: int, wide_s: float, choke_s: float) -> str:
    """A workflow file: in each stage tasks side by side, and one that needs them all; each adds up
    what it reads."""
    rows = ["name: chokes", "tasks:"]
    for stage in range(stages):
        before = [f"c{stage - 1}.txt"] if stage else []
        names = [f"w{stage}-{lane}" for lane in range(width)]
        rows += [_row(name, before, lane, wide_s) for lane, name in enumerate(names)]
        rows.append(_row(f"c{stage}", [f"{name}.txt" for name in names], 0, choke_s))
    return "\n".join([*rows, ""])


def _row(name: str, inputs: Sequence[str], number: int, sleep_s: float) -> str:
    read = "cat {inputs}" if inputs else "echo 0"
    made = f"{read} | awk '{{{{s += $1}}}} END {{{{print s + {number}}}}}' > {{outputs}}"
    command = f"sleep {sleep_s:g}; {made}"
    files = f"inputs: {list(inputs)}, outputs: [{name}.txt]"
    return f"  - {{id: {name}, command: {command!r}, {files}, runtime: {sleep_s:g}s}}"


def right(folder: Path, stages: int, width: int) -> bool:
    """Whether every file has what it must: a number that depends on all before it, once."""
    total = 0
    for stage in range(stages):
        wide = [total + lane for lane in range(width)]
        found = [(folder / f"w{stage}-{lane}.txt").read_text() for lane in range(width)]
        total = sum(wide)
        if (
            found != [f"{n}\n" for n in wide]
            or (folder / f"c{stage}.txt").read_text() != f"{total}\n"
        ):
            return False
    return True
