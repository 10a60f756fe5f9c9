"""Futures of a live queue: the twin with our own jobs as clients, and the past that was seen."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.sim.test_invariants import random_log

from windrow.forecast.ahead import Ahead, Seen, with_clients
from windrow.forecast.twin import Twin, expected_starts_s
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Task, Workflow
from windrow.queues.port import OthersJob, Snapshot
from windrow.sim.cluster import Cluster, Event, EventKind
from windrow.strategies import Work


def job(job_id: str, nodes: int, requested_s: int, started_s: float | None = None, user: str = "u") -> OthersJob:
    return OthersJob(job_id, nodes, requested_s, started_s is not None, started_s, 0.0, user)


def snapshot(at_s: float, nodes: int, *jobs: OthersJob) -> Snapshot:
    return Snapshot(at_s, nodes, jobs)


def users(name: str) -> int:
    return int(name.removeprefix("u") or 0)


def test_own_jobs_become_clients() -> None:
    """Of four nodes, three are busy: two by others for 50 s more, one by us; we wait for three, others for one."""
    queue = snapshot(
        100.0,
        4,
        job("a", 2, 100, 50.0),
        job("mine", 1, 60, 90.0),
        job("wide", 3, 30),
        job("other", 2, 10),
    )
    cluster = with_clients(queue, ["mine", "wide"], users)
    assert cluster is not None
    assert {j.job for j in cluster.running()} == {0, -1}
    assert {j.job for j in cluster.queue()} == {-2, 3}
    assert cluster.end(-1)  # our running job gives its node back
    events = cluster.advance(50)  # at 50 the others end, and our wide job starts
    assert [(e.at_s, e.kind, e.job) for e in events] == [(0, EventKind.ENDED, -1)]
    assert [(e.at_s, e.kind, e.job) for e in cluster.advance(50)] == [(50, EventKind.STARTED, -2)]
    assert [(e.kind, e.job) for e in cluster.advance(200)] == [(EventKind.KILLED, -2)]


def test_what_a_running_job_has_asked_for_is_known() -> None:
    cluster = with_clients(snapshot(100.0, 4, job("a", 2, 100, 50.0, "u3")), [], users)
    assert cluster is not None
    (running,) = cluster.running()
    assert (running.requested_s, running.expected_end_s, running.user) == (100, 50, 3)


def test_a_queue_that_cannot_be_told_has_no_futures() -> None:
    assert with_clients(snapshot(0.0, 4, job("a", 3, 10, 0.0), job("b", 3, 10, 0.0)), [], users) is None
    assert with_clients(snapshot(0.0, 4, job("wide", 5, 10)), ["wide"], users) is None
    assert with_clients(snapshot(0.0, 0), [], users) is None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["conservative", "easy", "fcfs"]))
def test_clients_or_not_the_queue_goes_on_alike(seed: int, policy: str) -> None:
    """Our waiting jobs in a random queue start when the plain twin, which knows nothing of clients, says they do."""
    rng = np.random.default_rng(seed)
    log = random_log(seed, 60, 6)
    cluster = Cluster(log, policy=policy, requests="accurate")
    cluster.advance(int(rng.integers(0, log.submit_s[-1] + 1)))
    now = cluster.now_s
    jobs = [
        job(f"r{j.job}", j.nodes, j.requested_s, float(j.expected_end_s - j.requested_s)) for j in cluster.running()
    ]
    jobs += [job(f"w{j.job}", j.nodes, j.requested_s) for j in cluster.queue()]
    queue = snapshot(float(now), 6, *jobs)
    own = [j.id for j in jobs if j.id.startswith("w") and rng.random() < 0.4]
    ours = with_clients(queue, own, users, policy)
    assert ours is not None
    starts = {own[-j.job - 1]: now for j in ours.running() if j.job < 0}  # those that the twin could start at once
    starts |= {own[-e.job - 1]: now + e.at_s for e in all_events(ours) if e.kind is EventKind.STARTED}
    expected = expected_starts_s(queue, policy=policy)
    assert starts == {job_id: expected[job_id] for job_id in own}


def all_events(cluster: Cluster) -> list[Event]:
    events: list[Event] = []
    while found := cluster.advance():
        events += found
    return events


def test_the_past_is_what_was_seen() -> None:
    seen = Seen()
    seen.look(snapshot(100.0, 4, job("a", 2, 100, 40.0, "x"), job("b", 1, 50, 90.0, "y")))
    seen.look(snapshot(120.0, 4, job("b", 1, 50, 90.0, "y")))  # a was there at 100, and is gone at 120
    seen.look(snapshot(500.0, 4))  # nobody looked for long: b has run no longer than it asked for
    past = seen.past(500.0)
    assert past.run_s.tolist() == [80, 50]
    assert past.requested_s.tolist() == [100, 50]
    assert past.submit_s.tolist() == [-460, -410]
    assert past.user.tolist() == [seen.user("x"), seen.user("y")]
    assert seen.past(500.0).since_s == -400


class Changing:
    """A queue that shows what it is told to."""

    def __init__(self) -> None:
        self.jobs: tuple[OthersJob, ...] = ()
        self.now_s = 1000.0

    def snapshot(self) -> Snapshot:
        self.now_s += 10
        return Snapshot(self.now_s, 4, self.jobs)


def test_there_is_no_look_ahead_before_others_were_seen_to_end() -> None:
    queue = Changing()
    ahead = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=1.0))
    workflow = Workflow.from_tasks("one", [Task("a", 10.0)])
    core = Core(Work(workflow, np.array([10]), NodeShape(), 4), Terms(4))
    view = core.view(1000, lambda nodes, _: nodes)
    known = []
    for number in range(30):
        queue.jobs = (job(f"j{number}", 1, 100, queue.now_s),)
        queue.now_s += 4000
        known.append(ahead.futures(view, {}, np.zeros(1, dtype=bool), Terms(4).requests()) is not None)
    # Twenty are gone with the twenty-first reading; a day has gone by with the twenty-third.
    assert known == [False] * 22 + [True] * 8
