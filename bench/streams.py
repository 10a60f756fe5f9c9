"""How fast streams of workflows are simulated: task events per second, compiled and by the pool
itself.

    python bench/streams.py

An event is the arrival of a workflow or the end of a task. The plain pool is the very object that
serves a real one.
"""

from __future__ import annotations

import time

from windrow.streams import Pool, find_policy
from windrow_lab.stream.simulation import Simulator, run_by_pool
from windrow_lab.stream.workload import draw_workload

SLOTS = 100
WORKFLOWS = 3000
FEW = 150
POLICIES = ("bf", "fes:1", "slop:0.2", "sr", "due:1")


def main() -> None:
    """Print one line for each policy."""
    workload, few = (draw_workload("mixture", workflows=n, seed=1) for n in (WORKFLOWS, FEW))
    simulator = Simulator(workload, SLOTS)
    arrival_s = workload.arrivals_s(0.6, SLOTS)
    print(
        f"\nStreams: {WORKFLOWS:,} workflows of the mixture on {SLOTS} processors, offered 0.6, "
        "one process"
    )
    print(
        f"{'policy':<10}{'task events':>12}{'takes':>10}{'events/s':>14}{'plain pool, events/s':>24}{'ratio':>8}"  # noqa: E501
    )
    for name in POLICIES:
        policy = find_policy(name)
        simulator.run(policy, arrival_s)  # compiles
        began = time.perf_counter()
        events = simulator.run(policy, arrival_s).events
        compiled = events / (time.perf_counter() - began)
        began = time.perf_counter()
        starts, _ = run_by_pool(Pool(SLOTS, policy), few, few.arrivals_s(0.6, SLOTS).tolist())
        plain = (FEW + sum(map(len, starts))) / (time.perf_counter() - began)
        rates = f"{compiled:>14,.0f}{plain:>24,.0f}{compiled / plain:>7.0f}x"
        print(f"{name:<10}{events:>12,}{events / compiled:>9.3f}s{rates}")


if __name__ == "__main__":
    main()
