"""What must hold on any log, under any policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sim.scenarios import POLICIES as ALL_POLICIES
from tests.unit.sim.scenarios import PRIORITIES

from windrow.model import Log
from windrow.sim import simulate


def random_log(seed: int, jobs: int, nodes: int, *, distinct: bool = False) -> Log:
    """A busy log; with `distinct`, arrivals fall on even seconds and ends on odd ones, mostly apart
    from each other."""
    rng = np.random.default_rng(seed)
    wide = np.minimum(rng.geometric(3.0 / nodes, jobs), nodes)
    run = rng.integers(1, 400, jobs) * (1000 if distinct else 1) + (
        rng.integers(0, 500, jobs) * 2 + 1 if distinct else 0
    )
    gaps = rng.exponential(1.1 * (run * wide).mean() / nodes, jobs).astype(np.int64)
    return Log(
        "random",
        nodes,
        job=np.arange(jobs),
        submit_s=np.cumsum(gaps // 2 * 2 if distinct else gaps),
        nodes=wide,
        requested_s=np.maximum(run * rng.choice([1, 1, 2, 5], jobs), 1),
        run_s=run,
        user=rng.integers(0, 5, jobs),
    )


POLICIES = tuple(policy for policy in ALL_POLICIES if policy != "easy-strict")
"""Those that know nodes with identities, too."""
policies = st.sampled_from([*POLICIES, "depth:1"])
placements = st.sampled_from(["count", "count", "leftmost", "contiguous"])


@given(
    st.integers(0, 10**6),
    policies,
    st.sampled_from(sorted(PRIORITIES)),
    st.sampled_from(["batched", "one-by-one", "ends-first"]),
    placements,
    st.sampled_from([None, 1, 3]),
)
def test_no_job_is_lost_and_no_node_is_given_twice(
    seed: int, policy: str, priority: str, events: str, placement: str, cap: int | None
) -> None:
    log = random_log(seed, 150, 70)
    replay = simulate(
        log, policy=policy, priority=priority, events=events, placement=placement, cap=cap
    )
    assert (replay.wait_s >= 0).all()
    assert replay.busy_nodes()[1].max() <= log.machine_nodes
    assert replay.queue_length()[1][-1] == 0
    if cap:
        for user in range(5):
            mine = log.user == user
            begun = np.sort(replay.start_s[mine])
            over = [
                (replay.start_s[mine] <= t).sum() - (replay.end_s[mine] <= t).sum() for t in begun
            ]
            assert max(over) <= cap


@given(st.integers(0, 10**6), st.sampled_from(["count", "leftmost"]))
def test_first_come_first_served_starts_in_order(seed: int, placement: str) -> None:
    replay = simulate(random_log(seed, 150, 70), policy="fcfs", placement=placement)
    assert (np.diff(replay.start_s) >= 0).all()


@given(st.integers(0, 10**6), policies, placements)
def test_order_of_events_does_not_matter_where_none_coincide(
    seed: int, policy: str, placement: str
) -> None:
    log = random_log(seed, 120, 30, distinct=True)
    replays = [
        simulate(log, policy=policy, placement=placement, events=e)
        for e in ("batched", "one-by-one", "ends-first")
    ]
    instants = np.concatenate([log.submit_s, replays[0].end_s])
    if len(np.unique(instants)) == len(instants):
        for other in replays[1:]:
            np.testing.assert_array_equal(replays[0].start_s, other.start_s)


@given(st.integers(0, 10**6), policies)
def test_leftmost_nodes_make_no_difference_to_a_job_that_needs_all(seed: int, policy: str) -> None:
    log = random_log(seed, 60, 8)
    wide = Log(
        "wide", 8, log.job, log.submit_s, np.full(60, 8), log.requested_s, log.run_s, log.user
    )
    a, b = (
        simulate(wide, policy=policy, placement=placement) for placement in ("count", "contiguous")
    )
    np.testing.assert_array_equal(a.start_s, b.start_s)


@pytest.mark.parametrize("policy", POLICIES)
def test_accurate_requests_are_the_runs(policy: str) -> None:
    log = random_log(1, 200, 40)
    a, b = (
        simulate(log, policy=policy, requests="accurate"),
        simulate(log.accurate(), policy=policy),
    )
    np.testing.assert_array_equal(a.start_s, b.start_s)
    assert (a.log.requested_s == np.minimum(log.run_s, log.requested_s)).all()


def test_a_long_queue_makes_room_for_itself() -> None:
    jobs = 3000
    log = Log(
        "burst",
        4,
        job=np.arange(jobs),
        submit_s=np.zeros(jobs, dtype=np.int64),
        nodes=np.ones(jobs, dtype=np.int64),
        requested_s=np.full(jobs, 10),
        run_s=np.full(jobs, 10),
        user=np.zeros(jobs, dtype=np.int64),
    )
    for policy in POLICIES:
        replay = simulate(log, policy=policy)
        assert replay.start_s.tolist() == [10 * (i // 4) for i in range(jobs)]
    assert simulate(log, cap=2).start_s.tolist() == [10 * (i // 2) for i in range(jobs)]
