"""How fast workloads that move data are played: the compiled simulation beside its law in plain
Python, and by size.

    python bench/flows.py [--quick]

Fairness. The law (`tests/lab/storage/flow_law.py`) is written to be read, and looks at everything
at each step: a plain event loop would be many times as fast. Both take the same arrays, and must
find the same end; the tables of the simulation are built each time. The shortest of a few rounds
counts.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder's name

from tests.lab.storage.flow_law import Law

from bench.tables import console, seconds, table
from windrow_lab.reproductions.bent.baselines import BASELINES, WHERE
from windrow_lab.storage.allocations import ALL_BATCH, MINIMAL, SLICE
from windrow_lab.storage.flows import canonical, play

MIXED = BASELINES["mixed"]
TARGET_S = 0.005


def shortest(width: int, nodes: int, allocation: str, rounds: int) -> tuple[float, float]:
    """Of these rounds the shortest time, and when the run ends; space and wide area grow with the
    width."""
    factor = width / MIXED.width
    where = replace(
        WHERE, nodes=nodes, storage=round(WHERE.storage * factor), remote=WHERE.remote * factor
    )
    took = float("inf")
    end_s = 0.0
    for _ in range(rounds):
        began = time.perf_counter()
        end_s = play(canonical(replace(MIXED, width=width), 1), allocation, where).time_s
        took = min(took, time.perf_counter() - began)
    return took, end_s


def main() -> int:
    """Measure and print; 1 where the two do not agree."""
    parser = argparse.ArgumentParser(prog="flows.py", description="Times the simulation of flows.")
    parser.add_argument("--quick", action="store_true", help="one round, and not the law")
    quick = parser.parse_args().quick
    shortest(20, 5, SLICE, 1)  # compiles
    rows = []
    wrong = 0
    for allocation in (ALL_BATCH, SLICE, MINIMAL):
        took, end_s = shortest(MIXED.width, WHERE.nodes, allocation, 9)
        began = time.perf_counter()
        law_s = Law(canonical(MIXED, 1), allocation, WHERE).run() if not quick else end_s
        law = time.perf_counter() - began
        wrong += abs(law_s / end_s - 1) > 1e-9
        ratio = [seconds(law), f"{law / took:,.0f} x"] if not quick else ["-", "-"]
        rows.append([allocation, seconds(took), *ratio, "yes" if took <= TARGET_S else "no"])
    heads = [
        "mixed workload, 1,750 jobs, 50 nodes",
        "simulation",
        "law in plain Python",
        "ratio",
        "at most 5 ms",
    ]
    console().print(table("Workloads that move data", heads, rows))
    rows = []
    for width, nodes in ((350, 50), (3500, 50), (20_000, 50), (20_000, 1000)):
        times = [
            shortest(width, nodes, allocation, 1 if quick else 5)[0]
            for allocation in (ALL_BATCH, SLICE, MINIMAL)
        ]
        each = [f"{1e6 * one / width / MIXED.depth:.2f} µs" for one in times]
        rows.append([f"{width * MIXED.depth:,}", f"{nodes:,}", *map(seconds, times), *each])
    names = [ALL_BATCH, SLICE, MINIMAL]
    console().print(
        "", table("By size", ["jobs", "nodes", *names, *(f"{one}, a job" for one in names)], rows)
    )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
