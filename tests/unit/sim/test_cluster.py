"""The cluster as its clients see it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.sim.scenarios import small_log

from windrow.errors import UserError
from windrow.model import Log
from windrow.sim.cluster import Cluster, Event, EventKind, RunningJob, WaitingJob
from windrow.sim.replay import simulate
from windrow.sim.settings import ClusterSettings, parse_policy, parse_priority


def test_a_job_starts_ends_and_is_killed() -> None:
    cluster = Cluster(nodes=4)
    short, endless = cluster.submit(2, 100, run_s=30), cluster.submit(4, 50)
    assert cluster.advance() == [Event(0, EventKind.STARTED, short)]
    assert cluster.advance() == [
        Event(30, EventKind.ENDED, short),
        Event(30, EventKind.STARTED, endless),
    ]
    assert cluster.advance() == [Event(80, EventKind.KILLED, endless)]
    assert cluster.advance() == []
    assert cluster.now_s == 80


def test_a_client_ends_and_cancels_jobs() -> None:
    cluster = Cluster(nodes=1, start_s=1000)
    first, second, third = (cluster.submit(1, 600) for _ in range(3))
    cluster.advance()
    assert [job.planned_s for job in cluster.queue()] == [1600, 2200]
    assert cluster.cancel(second)
    assert cluster.advance(1100) == [Event(1000, EventKind.CANCELLED, second)]
    assert cluster.advance(1100) == []
    assert [job.planned_s for job in cluster.queue()] == [1600]
    assert cluster.end(first)
    assert cluster.advance() == [
        Event(1100, EventKind.ENDED, first),
        Event(1100, EventKind.STARTED, third),
    ]
    assert not cluster.cancel(second)
    assert not cluster.end(first)


def test_what_anyone_may_see() -> None:
    cluster = Cluster(nodes=3, policy="easy")
    a, b = cluster.submit(2, 60, run_s=5, user=7), cluster.submit(2, 70, user=8)
    cluster.advance()
    assert cluster.running() == [RunningJob(a, 2, 60, 7, 60)]
    assert cluster.queue() == [WaitingJob(b, 2, 70, 8, None)]
    assert cluster.free_nodes == 1


def test_estimates_believe_requests() -> None:
    cluster = Cluster(nodes=4)
    cluster.submit(3, 100, run_s=1)
    assert cluster.estimate([1, 2, 4], [10, 10, 10]).tolist() == [0, 100, 100]
    assert cluster.estimate(1, [5, 500]).tolist() == [0, 0]
    assert cluster.advance()[0].kind is EventKind.STARTED


def test_starting_in_the_middle_of_a_log() -> None:
    columns = ([1, 2, 3], [0, 50, 90], [2, 2, 2], [100, 100, 100], [100, 9, 9], [0, 0, 0])
    job, submit, nodes, requested, run, user = (np.array(c) for c in columns)
    log = Log("three", 2, job, submit, nodes, requested, run, user)
    assert simulate(log).start_s.tolist() == [0, 100, 109]
    late = simulate(log, from_s=40)
    assert (late.log.job.tolist(), late.start_s.tolist()) == ([2, 3], [50, 90])
    cluster = Cluster(log, start_s=60)
    assert cluster.estimate([2], [10]).tolist() == [60]
    cluster.advance(95)
    assert cluster.running()[0].job == 2


def failing(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def test_a_job_that_loses_a_node_is_over_and_the_node_is_out() -> None:
    """Job a has nodes 0 and 1, b node 2; node 3 is idle. Then node 1 fails, then the idle one,
    which nobody misses."""
    cluster = Cluster(nodes=4, failures=failing((10, 1, 100), (20, 3, 30)))
    a, b = cluster.submit(2, 60), cluster.submit(1, 50)
    cluster.advance()
    whole = cluster.submit(4, 5, run_s=5)
    cluster.advance(5)
    assert cluster.queue()[0].planned_s == 60
    assert cluster.advance() == [Event(10, EventKind.FAILED, a)]
    assert (cluster.free_nodes, cluster.jobs_running, cluster.clients_there()) == (
        2,
        1,
        {b: True, whole: False},
    )
    assert cluster.queue()[0].planned_s == 100  # a promise that cannot be kept
    assert cluster.estimate([2, 3, 4], [5, 5, 5]).tolist() == [10, 50, 105]
    assert cluster.advance() == [Event(50, EventKind.KILLED, b)]
    assert cluster.advance() == [Event(100, EventKind.STARTED, whole)]


def test_a_log_job_that_loses_a_node_runs_again() -> None:
    """It goes to the end of the queue, and needs its whole time; a clone sees the same failures."""
    columns = ([1, 2], [0, 5], [2, 2], [50, 50], [40, 10], [0, 0])
    job, submit, nodes, requested, run, user = (np.array(c) for c in columns)
    log = Log("two", 2, job, submit, nodes, requested, run, user)
    cluster = Cluster(log, failures=failing((30, 0, 35)), record=True)
    twin = cluster.clone()
    cluster.advance()
    assert cluster.log_starts_s.tolist() == [45, 35]
    assert cluster.now_s == 85
    twin.advance()
    assert twin.now_s == 85


def test_what_ends_when_a_node_fails_has_ended() -> None:
    cluster = Cluster(nodes=1, failures=failing((10, 0, 20)))
    job, late = cluster.submit(1, 10, run_s=10), cluster.submit(1, 5, run_s=5)
    assert [e.kind for e in [*cluster.advance(), *cluster.advance()]] == [
        EventKind.STARTED,
        EventKind.ENDED,
    ]
    assert cluster.advance() == [Event(20, EventKind.STARTED, late)]
    assert job == -1


def test_failures_that_cannot_be_are_refused() -> None:
    for rows in (((5, 2, 9),), ((5, -1, 9),), ((5, 0, 5),), ((5, 0, 9), (4, 1, 9))):
        with pytest.raises(UserError, match="failures go by time, concern nodes 0 to 1"):
            Cluster(nodes=2, failures=failing(*rows))


def test_what_is_refused() -> None:
    cluster = Cluster(nodes=4)
    cluster.advance(10)
    for call in (
        lambda: cluster.submit(5, 10),
        lambda: cluster.submit(0, 10),
        lambda: cluster.submit(1, 0),
        lambda: cluster.submit(1, 10, run_s=0),
        lambda: cluster.submit(1, 10, user=-1),
        lambda: cluster.estimate([1, 9], [10, 10]),
        lambda: cluster.cancel(3),
        lambda: cluster.advance(9),
        Cluster,
        lambda: Cluster(nodes=4, requests="guessed"),
    ):
        with pytest.raises(UserError):
            call()


@pytest.mark.parametrize(
    ("setting", "value", "hint"),
    [
        ("policy", "esay", "did you mean easy?"),
        ("policy", "depth:0", "from 1 to 1,000,000"),
        ("policy", "easy:3", "known: fcfs"),
        ("priority", "large", "known: arrival"),
        ("priority", "wait=x", "needs a number"),
        ("priority", "colour=1", "known: wait"),
        ("priority", "share=1,half_life=0", "above zero"),
        ("priority", "user:me=5", "like user:17=500"),
        ("priority", "user:2=5,user:2=6", "given twice"),
        ("priority", "user:2", "known: arrival"),
        ("events", "batch", "did you mean batched?"),
        ("placement", "left", "did you mean leftmost?"),
        ("cap", 0, "from 1 to 1,000,000"),
    ],
)
def test_settings_are_checked(setting: str, value: object, hint: str) -> None:
    with pytest.raises(UserError, match=hint.replace("?", r"\?")):
        ClusterSettings(**{setting: value})  # type: ignore[arg-type]


def test_names_and_weights() -> None:
    assert parse_policy("depth:inf") == parse_policy("conservative-replan")
    own = parse_priority("wait=1, nodes^64=10, share=2, half_life=12")
    assert own is not None
    assert (own.wait, own.nodes, own.nodes_cap, own.share, own.half_life_h) == (1, 10, 64, 2, 12)
    assert own.changes
    assert parse_priority("arrival") is None
    asked = parse_priority("requested^48=-3,user:17=500,user:-1=-4")
    assert asked is not None
    assert (asked.requested, asked.requested_cap) == (-3, 48)
    assert asked.users == ((17, 500), (-1, -4))
    assert not asked.changes


def four_users() -> Log:
    """One runs; one after the other the others submit a job of the same size."""
    rows = [(0, 4, 10, 10, 0), *((1, 4, 10 - user, 5, user) for user in (1, 2, 3))]
    return small_log(rows, 4)


@pytest.mark.parametrize(
    ("priority", "order"),
    [
        ("arrival", [1, 2, 3]),
        ("wait=1,requested=-1", [1, 2, 3]),
        ("requested=-1000", [3, 2, 1]),
        ("user:4=1,user:3=0.5", [3, 2, 1]),
        ("wait=1,share=0.001,user:2=-5", [2, 3, 1]),
    ],
)
def test_jobs_of_some_users_and_short_requests_go_first(priority: str, order: list[int]) -> None:
    cluster = Cluster(four_users(), policy="fcfs", priority=priority, record=True)
    cluster.advance()
    assert np.argsort(cluster.log_starts_s)[1:].tolist() == order


def test_a_user_of_a_priority_must_be_in_the_log() -> None:
    with pytest.raises(UserError, match="no user 9 in the log"):
        Cluster(four_users(), priority="user:9=1")
    with pytest.raises(UserError, match="no user 1 in the log"):
        Cluster(nodes=4, priority="user:1=1")


def test_what_passes_the_head_ends_before_it_if_the_rule_is_strict() -> None:
    """Two of four nodes run for 10 s; the head wants three, and one would be left for longer."""
    log = small_log([(0, 2, 10, 10, 0), (0, 3, 5, 5, 0), (0, 1, 20, 20, 0), (0, 1, 8, 8, 0)], 4)
    starts = {}
    for policy in ("easy", "easy-strict"):
        cluster = Cluster(log, policy=policy, record=True)
        cluster.advance()
        starts[policy] = cluster.log_starts_s.tolist()
    assert starts == {"easy": [0, 10, 0, 0], "easy-strict": [0, 10, 10, 0]}
