"""FCFS in SimPy, as its user would write it: nodes are a Container, a job is a process. A script of
its own.

    python peer_simpy.py JOBS.json fcfs

JOBS.json holds `nodes` and `jobs`, a list of [submit, nodes, run]. Prints one line of JSON. Timed
is the simulation of jobs already in memory.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import simpy

Steps = Generator[Any, Any, None]


def job(env: Any, machine: Any, nodes: int, run_s: int, waits_s: list[float]) -> Steps:
    """A job waits for its nodes, in the order of arrival, holds them, and gives them back."""
    submitted = env.now
    yield machine.get(nodes)
    waits_s.append(env.now - submitted)
    yield env.timeout(run_s)
    yield machine.put(nodes)


def arrivals(env: Any, machine: Any, jobs: list[list[int]], waits_s: list[float]) -> Steps:
    """Every job arrives at its time."""
    for submit_s, nodes, run_s in jobs:
        if submit_s > env.now:
            yield env.timeout(submit_s - env.now)
        env.process(job(env, machine, nodes, run_s, waits_s))


def replay(nodes: int, jobs: list[list[int]]) -> list[float]:
    """The wait of each job, in the order of starting."""
    env = simpy.Environment()
    waits_s: list[float] = []
    env.process(arrivals(env, simpy.Container(env, capacity=nodes, init=nodes), jobs, waits_s))
    env.run()
    return waits_s


def main() -> None:
    """Time three replays and print the median."""
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    times_s = []
    for _ in range(3):
        begin = time.perf_counter()
        waits_s = replay(given["nodes"], given["jobs"])
        times_s.append(time.perf_counter() - begin)
    answer = {
        "wall_s": statistics.median(times_s),
        "jobs": len(waits_s),
        "mean_wait_s": statistics.fmean(waits_s),
    }
    print(json.dumps({**answer, "version": simpy.__version__}))


if __name__ == "__main__":
    main()
