"""HEFT by saga (PyPI: anrg-saga), to hold ours against: the same cases, its makespans and times. A
script of its own.

    python peer_saga.py CASES.json            in an environment that has saga; prints a line of JSON for each case
    python bench/peer_saga.py --figures FILE  the makespans of the 200 cases that tests know; with saga's Python

A case is `speeds` of processors, `bandwidths` between them, `costs` of tasks and `edges` [parent,
child, size]. All processors differ: saga takes the first of equals in the order of a set, which
depends on the hash seed. Its mean time of a transfer counts the way from a processor to itself,
which takes none, among the ways: `order_of` does the same.
"""  # noqa: E501

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

FIGURES = 200
LARGEST_TASKS = 30
LARGEST_PROCESSORS = 8


def random_case(seed: int, tasks: int, processors: int, degree: float = 2.0) -> dict[str, Any]:
    """A case by nothing but `random()`, which gives the same everywhere."""
    drawn = random.Random(seed).random
    speeds = [1 + 3 * drawn() for _ in range(processors)]
    bandwidths = [[1 + 9 * drawn() for _ in range(processors)] for _ in range(processors)]
    for p in range(processors):
        for q in range(p):
            bandwidths[p][q] = bandwidths[q][p]
    edges = [
        [a, b, int(1 + 99 * drawn())]
        for b in range(1, tasks)
        for a in sorted({int(b * drawn()) for _ in range(round(2 * degree * drawn()))})
    ]
    return {
        "speeds": speeds,
        "bandwidths": bandwidths,
        "costs": [1 + 19 * drawn() for _ in range(tasks)],
        "edges": edges,
    }


def figure_cases() -> Iterator[dict[str, Any]]:
    """The cases whose makespans are kept with the tests."""
    for seed in range(FIGURES):
        drawn = random.Random(-1 - seed).random
        yield random_case(
            seed, 2 + int((LARGEST_TASKS - 1) * drawn()), 1 + int(LARGEST_PROCESSORS * drawn())
        )


def scheduled(case: dict[str, Any]) -> tuple[float, float]:
    """Saga's makespan, and the time of the processor that it took."""
    saga = import_module("saga")
    heft = import_module("saga.schedulers.heft")
    count = len(case["speeds"])
    links = [(f"p{p}", f"p{q}", case["bandwidths"][p][q]) for p in range(count) for q in range(p)]
    network = saga.Network.create(
        [(f"p{p}", speed) for p, speed in enumerate(case["speeds"])], links
    )
    tasks = [(f"t{i}", cost) for i, cost in enumerate(case["costs"])]
    graph = saga.TaskGraph.create(
        tasks, [(f"t{a}", f"t{b}", float(size)) for a, b, size in case["edges"]]
    )
    begin = time.process_time()
    made = heft.HeftScheduler().schedule(network, graph)
    return made.makespan, time.process_time() - begin


def main() -> int:
    """As the docstring says."""
    if sys.argv[1] == "--figures":
        makespans = [scheduled(case)[0] for case in figure_cases()]
        Path(sys.argv[2]).write_text(
            json.dumps({"by": "anrg-saga 2.0.2", "makespans": makespans}, indent=1) + "\n"
        )
        return 0
    for case in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        print(json.dumps(scheduled(case)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
