"""Small runs in virtual time (`windrow.trials.virtual`), which tests break at places of their own
choice."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path

from windrow.forecast.base import AtOnce
from windrow.model import Runnable, Step, Task, Workflow
from windrow.strategies import Strategy
from windrow.trials.virtual.shell import VirtualRun
from windrow.trials.virtual.world import BEGIN_S, Fate, World, empty_queue

__all__ = ["BEGIN_S", "Fate", "VirtualRun", "abandoned", "braid", "toy"]


def braid(width: int = 3, runtime_s: int = 3) -> Runnable:
    """First, then `width` chains of two that meet, then last: four levels."""
    ups = [f"up-{i}" for i in range(width)]
    downs = [f"down-{i}" for i in range(width)]
    tasks = [
        Task("first", runtime_s),
        *(Task(name, runtime_s, parents=("first",)) for name in ups),
        *(Task(name, runtime_s, parents=(up,)) for name, up in zip(downs, ups, strict=True)),
        Task("last", runtime_s, parents=tuple(downs)),
    ]
    return Runnable(
        Workflow.from_tasks("braid", tasks), tuple(Step(("true",), "/", ()) for _ in tasks)
    )


def toy(
    path: Path,
    strategy: str | Strategy = "individual",
    runnable: Runnable | None = None,
    *,
    nodes: int = 4,
    memory_s: float = inf,
    takes_s: Callable[[int], float] = lambda _: 3.0,
    failure: Callable[[int], str] = lambda _: "",
) -> VirtualRun:
    """A run of a braid on a small cluster of its own, where nobody expects to wait."""
    queue = empty_queue(nodes)
    queue.memory_s = memory_s
    return VirtualRun(
        path, World(queue, takes_s, failure), runnable or braid(), strategy, forecasters=[AtOnce()]
    )


def abandoned(path: Path) -> list[int]:
    """The tasks that agents were told not to wait for."""
    return [json.loads(line)["task"] for line in path.read_text().splitlines()]
