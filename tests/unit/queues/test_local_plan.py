"""The planning of the local queue, against the simulated cluster: same jobs, same starts."""

from __future__ import annotations

import heapq
import random

import pytest

from windrow.queues.local.plan import expected_starts, jobs_to_start
from windrow.queues.local.store import Held, Wanted
from windrow.sim import Cluster
from windrow.sim.cluster import EventKind

Job = tuple[int, int, int, int]  # submitted, nodes, requested, run


def random_jobs(random_: random.Random, nodes: int) -> list[Job]:
    """Few distinct times, so that many things happen at once."""
    submits = sorted(random_.randrange(30) for _ in range(random_.randint(1, 25)))
    return [
        (
            at,
            random_.randint(1, nodes),
            (asked := random_.randint(1, 12)),
            random_.randint(1, asked),
        )
        for at in submits
    ]


def simulated_starts(policy: str, nodes: int, jobs: list[Job]) -> dict[int, int]:
    cluster = Cluster(nodes=nodes, policy=policy)
    starts: dict[int, int] = {}

    def go_on(until_s: int | None) -> None:
        while events := cluster.advance(until_s):
            starts.update({-e.job - 1: e.at_s for e in events if e.kind is EventKind.STARTED})

    for at, wide, asked, run in jobs:
        go_on(max(at - 1, cluster.now_s))
        if at > cluster.now_s:
            go_on(at)
        cluster.submit(wide, asked, run)
    go_on(None)
    return starts


def planned_starts(policy: str, nodes: int, jobs: list[Job]) -> dict[int, int]:
    """The loop of a queue: at each instant ends, then arrivals, then a pass."""
    starts: dict[int, int] = {}
    ends: list[tuple[int, int]] = []
    instants = sorted({at for at, *_ in jobs})
    while instants or ends:
        now = min([*instants[:1], *(end for end, _ in ends[:1])])
        instants = [at for at in instants if at > now]
        while ends and ends[0][0] <= now:
            heapq.heappop(ends)
        held = [Held(jobs[i][1], starts[i] + jobs[i][2]) for _, i in ends]
        waiting = [
            Wanted(i, j[1], j[2]) for i, j in enumerate(jobs) if j[0] <= now and i not in starts
        ]
        for wanted in jobs_to_start(policy, nodes, held, waiting, now):
            starts[wanted.job] = now
            heapq.heappush(ends, (now + jobs[wanted.job][3], wanted.job))
    return starts


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_jobs_start_as_on_the_simulated_cluster(policy: str) -> None:
    for seed in range(300):
        random_ = random.Random(seed)
        nodes = random_.randint(1, 9)
        jobs = random_jobs(random_, nodes)
        assert planned_starts(policy, nodes, jobs) == simulated_starts(policy, nodes, jobs), (
            f"seed {seed}"
        )


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_estimates_are_those_of_the_simulated_cluster(policy: str) -> None:
    for seed in range(150):
        random_ = random.Random(seed)
        nodes = random_.randint(1, 9)
        cluster = Cluster(nodes=nodes, policy=policy)
        for _ in range(random_.randint(0, 15)):
            asked = random_.randint(1, 12)
            cluster.submit(random_.randint(1, nodes), asked, asked)
        cluster.advance(0)
        held = [Held(job.nodes, job.expected_end_s) for job in cluster.running()]
        waiting = [Wanted(job.job, job.nodes, job.requested_s) for job in cluster.queue()]
        wide, asked = random_.randint(1, nodes), random_.randint(1, 12)
        starts = expected_starts(policy, nodes, held, [*waiting, Wanted(0, wide, asked)], 0)
        assert starts[0] == cluster.estimate(wide, asked)[0], f"seed {seed}"


def test_a_job_that_overstays_blocks_its_nodes_but_not_the_plan() -> None:
    overdue = [Held(2, 5.0)]
    head, small = Wanted(1, 4, 10), Wanted(2, 2, 1)
    assert jobs_to_start("easy", 4, overdue, [head, small], 9.0) == []
    assert expected_starts("easy", 4, overdue, [head, small], 9.0) == {1: 9.0, 2: 19.0}
