"""Futures of a live queue: the twin with our own jobs as clients, and the past that was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.forecast.queue_starts import expected_starts_s
from tests.unit.sim.test_invariants import random_log

from windrow.forecast.twin import Twin
from windrow.foresight.course import Course, Later, Sampling
from windrow.foresight.live import START_S, Ahead, handovers, with_clients
from windrow.foresight.strategy import Foresight
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Task, Workflow
from windrow.model.site import NodeKind, Site
from windrow.queues.port import OthersJob, Snapshot
from windrow.sim.cluster import Cluster, Event, EventKind
from windrow.strategies import JobPlan, View, Work
from windrow.strategies.base import Decision, OwnJob, decided


def job(
    job_id: str, nodes: int, requested_s: int, started_s: float | None = None, user: str = "u"
) -> OthersJob:
    return OthersJob(job_id, nodes, requested_s, started_s is not None, started_s, 0.0, user)


def snapshot(at_s: float, nodes: int, *jobs: OthersJob) -> Snapshot:
    return Snapshot(at_s, nodes, jobs)


def users(name: str) -> int:
    return int(name.removeprefix("u") or 0)


def test_own_jobs_become_clients() -> None:
    """Of four nodes, three are busy: two by others for 50 s more, one by us; we wait for three,
    others for one."""
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
    assert (
        with_clients(snapshot(0.0, 4, job("a", 3, 10, 0.0), job("b", 3, 10, 0.0)), [], users)
        is None
    )
    assert with_clients(snapshot(0.0, 4, job("wide", 5, 10)), ["wide"], users) is None
    assert with_clients(snapshot(0.0, 0), [], users) is None


@given(st.integers(0, 10**6), st.sampled_from(["conservative", "easy", "fcfs"]))
def test_clients_or_not_the_queue_goes_on_alike(seed: int, policy: str) -> None:
    """Our waiting jobs in a random queue start when the plain twin, which knows nothing of clients,
    says they do."""
    rng = np.random.default_rng(seed)
    log = random_log(seed, 60, 6)
    cluster = Cluster(log, policy=policy, requests="accurate")
    cluster.advance(int(rng.integers(0, log.submit_s[-1] + 1)))
    now = cluster.now_s
    jobs = [
        job(f"r{j.job}", j.nodes, j.requested_s, float(j.expected_end_s - j.requested_s))
        for j in cluster.running()
    ]
    jobs += [job(f"w{j.job}", j.nodes, j.requested_s) for j in cluster.queue()]
    queue = snapshot(float(now), 6, *jobs)
    own = [j.id for j in jobs if j.id.startswith("w") and rng.random() < 0.4]
    ours = with_clients(queue, own, users, policy)
    assert ours is not None
    starts = {
        own[-j.job - 1]: now for j in ours.running() if j.job < 0
    }  # those that the twin could start at once
    starts |= {
        own[-e.job - 1]: now + e.at_s for e in all_events(ours) if e.kind is EventKind.STARTED
    }
    expected = expected_starts_s(queue, policy=policy)
    assert starts == {job_id: expected[job_id] for job_id in own}


def all_events(cluster: Cluster) -> list[Event]:
    events: list[Event] = []
    while found := cluster.advance():
        events += found
    return events


class Changing:
    """A queue that shows what it is told to."""

    def __init__(self) -> None:
        self.jobs: tuple[OthersJob, ...] = ()
        self.now_s = 1000.0

    def snapshot(self) -> Snapshot:
        self.now_s += 10
        return Snapshot(self.now_s, 4, self.jobs)


def one_task() -> View:
    """A task of 1000 s, next to nothing to wait for."""
    workflow = Workflow.from_tasks("one", [Task("a", 1000.0)])
    core = Core(Work(workflow, np.array([1000]), Site.of(4)), Terms())
    return core.view(1000, lambda nodes, _: nodes)


def looks(ahead: Ahead, view: View) -> bool:
    return (
        ahead.futures(view, {}, np.zeros(1, dtype=bool), Terms().requests(Site.of(4))) is not None
    )


def test_there_is_no_look_ahead_before_enough_was_seen_of_others() -> None:
    """Each reading, 110 s after the last, shows another job. Twenty ends are known with the 21st
    reading."""
    queue = Changing()
    ahead, view = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=1.0)), one_task()
    known = []
    for number in range(24):
        queue.jobs = (job(f"j{number}", 1, 1000, queue.now_s),)
        queue.now_s += 100
        known.append(looks(ahead, view))
    # By then 2200 s were watched, more than twice the 1001 s that the task should take.
    assert known == [False] * 20 + [True] * 4


class Clocked(Changing):
    """Readings take no time, and are counted."""

    readings = 0

    def snapshot(self) -> Snapshot:
        self.readings += 1
        return Snapshot(self.now_s, 4, self.jobs)


def test_a_reading_that_does_not_show_our_jobs_is_made_anew() -> None:
    """We are asked because something of ours happened, often within the second in which the queue
    was last read."""
    queue = Clocked()
    ahead, view = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=60.0)), one_task()

    def looks_with(*, is_running: bool) -> bool:
        own = {"mine": OwnJob(0, JobPlan((0,), 1, 1000, 1100), (0,), is_running, 2000)}
        futures = ahead.futures(view, own, np.zeros(1, dtype=bool), Terms().requests(Site.of(4)))
        return futures is not None

    assert looks(ahead, view)
    queue.jobs = (job("mine", 1, 1100),)
    assert looks_with(is_running=False)
    assert queue.readings == 2
    assert looks_with(is_running=False)
    assert queue.readings == 2  # all is as we know it
    queue.jobs = (job("mine", 1, 1100, 1000.0),)
    assert looks_with(is_running=True)
    assert queue.readings == 3


def test_a_long_run_needs_a_long_past() -> None:
    queue = Changing()
    ahead, view = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=1.0)), one_task()
    known = []
    for number in range(60):  # ends come quickly: the 21st reading is at 410 s
        queue.jobs = (job(f"j{number}", 1, 1000, queue.now_s),)
        queue.now_s += 30
        known.append(looks(ahead, view))
    assert known == [False] * 51 + [True] * 9  # 51 steps of 40 s are the first to make up 2002 s


def test_an_empty_queue_needs_no_past_and_a_distrusted_look_is_none() -> None:
    queue = Changing()
    ahead = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=1.0), is_trusted=False)
    assert looks(ahead, one_task())
    for number in range(40):
        queue.jobs = (job(f"j{number}", 1, 1000, queue.now_s),)
        queue.now_s += 100
        assert not looks(ahead, one_task())


def test_between_decisions_the_queue_is_read_seldom() -> None:
    queue = Changing()
    ahead = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=1.0))
    readings = []
    for _ in range(300):
        before = queue.now_s
        ahead.glance([], queue.now_s)
        readings.append(queue.now_s > before)
        queue.now_s = before + 1.0
    assert [second for second, is_read in enumerate(readings) if is_read] == [0, 90, 180, 270]


def chain() -> View:
    """Three levels of two tasks each, each task after the one above it."""
    tasks = [
        Task(f"{level}{side}", 10.0, parents=(f"{level - 1}{side}",) if level else ())
        for level in range(3)
        for side in "ab"
    ]
    core = Core(Work(Workflow.from_tasks("chain", tasks), np.full(6, 10), Site.of(4)), Terms())
    return core.view(1000, lambda nodes, _: 0 * nodes)


def plan(*tasks: int) -> JobPlan:
    return JobPlan(tasks, 2, 10 * len(tasks) // 2, 60)


@pytest.mark.parametrize(
    ("course", "expected"),
    [
        (Course("all levels", (plan(0, 1, 2, 3, 4, 5),)), 0),
        (Course("one and the rest", (plan(0, 1), plan(2, 3, 4, 5))), 1),
        (Course("side by side", (plan(0, 2, 4), plan(1, 3, 5))), 0),
        (Course("one, then the rest", (plan(0, 1),), (Later(1, 2),)), 1),
        (
            Course(
                "level by level",
                (plan(0, 1),),
                (Later(1, 1, "when done"), Later(2, 2, "when done")),
            ),
            2,
        ),
        (Course("task by task", (plan(0), plan(1)), (Later(0, 2, "by task"),)), 2),
        (Course("one, then task by task", (plan(0, 1),), (Later(1, 2, "by task"),)), 2),
        (Course("one, then what is ready", (plan(0, 1),), (Later(1, 2, "dealt"),)), 2),
        (Course("nothing now", (), (Later(0, 2, "when done"),)), 1),
    ],
)
def test_work_is_passed_on(course: Course, expected: int) -> None:
    assert handovers(course, chain()) == expected


def test_passing_work_on_takes_its_time_and_nothing_else_does() -> None:
    queue, view = Clocked(), chain()
    ahead = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=60.0))
    futures = ahead.futures(view, {}, np.zeros(6, dtype=bool), Terms().requests(Site.of(4)))
    assert futures is not None
    drawn = futures(Sampling())
    whole, pair = (
        Course("all levels", (plan(*range(6)),)),
        Course("two", (plan(0, 1), plan(2, 3, 4, 5))),
    )
    assert (
        drawn.play(whole, 0).makespan_s == 30
    )  # two nodes, three levels of 10 s, and nobody else is there
    assert drawn.play(pair, 0).makespan_s == 30 + START_S


@pytest.mark.parametrize("how", ["when started", "when done", "by task", "dealt"])
def test_what_runs_elsewhere_is_done_when_it_should_end(how: Any) -> None:
    """The two tasks of the first level end elsewhere in 100 s; what is left takes two levels of 10
    s."""
    queue, view, end_s = Clocked(), chain(), 1100
    view = replace(view, left=np.arange(6) > 1, ready=(), cap=view.cap + 1, jobs_running=1)
    ahead = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=60.0))
    given = [
        OwnJob(
            0,
            plan(0, 1),
            (0, 1),
            is_running=True,
            expected_end_s=end_s,
            running_since_s={0: 1090, 1: 1090},
        )
    ]
    futures = ahead.futures(view, {}, np.zeros(6, dtype=bool), Terms().requests(Site.of(4)), given)
    assert futures is not None
    drawn, later = futures(Sampling()), (Later(0, view.levels.last, how),)
    assert drawn.play(Course("now", (JobPlan((2, 3, 4, 5), 2, 20, 180),)), 0).makespan_s == 120
    assert drawn.play(Course("hold", (), later), 0).makespan_s == 120 + START_S * handovers(
        Course("", (), later), view
    )


class Closing(Changing):
    """A queue of nobody's jobs, with announced maintenance."""

    closures: tuple[tuple[float, float, int], ...] = ()

    def snapshot(self) -> Snapshot:
        return Snapshot(self.now_s, 8, (), closures=self.closures)


def decided_before(queue: Closing, *levels: int) -> Decision:
    """What foresight does now with levels of so many tasks of three minutes, all after all."""
    tasks = list[Task]()
    above: tuple[str, ...] = ()
    for number, count in enumerate(levels):
        ids = tuple(f"{number}-{n}" for n in range(count))
        tasks += [Task(one, 180.0, parents=above) for one in ids]
        above = ids
    work = Work(Workflow.from_tasks("w", tasks), np.full(len(tasks), 180), Site.of(8, cap=8))
    twin = Twin(queue, lambda: queue.now_s)
    view = Core(work, Terms()).view(int(queue.now_s), twin.waits_s)
    futures = Ahead(twin).futures(
        view, {}, np.zeros(len(tasks), dtype=bool), Terms().requests(Site.of(8))
    )
    return decided(Foresight(), replace(view, futures=futures))


def test_what_ends_before_maintenance_is_done_before_it() -> None:
    """Two levels of three minutes; six minutes are too short for both with what jobs ask for."""
    queue = Closing()
    assert len(decided_before(queue, 8, 8).jobs[0].tasks) == 16
    queue.closures = ((queue.now_s + 360, queue.now_s + 3960, 8),)
    (first,) = decided_before(queue, 8, 8).jobs
    assert first.tasks == tuple(range(8))
    assert first.requested_s <= 360


def test_so_is_a_part_of_a_level_that_would_not_end_before_it() -> None:
    """Sixty-four tasks take 24 minutes on eight nodes; a quarter of an hour is left."""
    queue = Closing()
    queue.closures = ((queue.now_s + 900, queue.now_s + 3960, 8),)
    jobs = decided_before(queue, 64).jobs
    assert 0 < sum(len(job.tasks) for job in jobs) < 64
    assert all(job.requested_s <= 900 for job in jobs)


def test_a_task_that_only_larger_nodes_hold_ends_in_futures_too() -> None:
    kinds = (NodeKind(NodeShape(4, 2000), 4), NodeKind(NodeShape(8, 6000), 2))
    site = Site(name="s", kinds=kinds)
    workflow = Workflow.from_tasks("w", [Task("a", 180.0, memory_bytes=5000, cores=6)])
    view = Core(Work(workflow, np.array([180]), site), Terms()).view(
        1000, lambda nodes, _: 0 * nodes
    )
    queue = Clocked()
    ahead = Ahead(Twin(queue, lambda: queue.now_s, refresh_s=60.0))
    futures = ahead.futures(view, {}, np.zeros(1, dtype=bool), Terms().requests(site))
    assert futures is not None
    course = Course("all levels", (JobPlan((0,), 1, 180, 300),))
    assert futures(Sampling()).play(course, 0).makespan_s == 180


class Lone(Changing):
    """Nobody is there, on so many nodes."""

    nodes = 1

    def snapshot(self) -> Snapshot:
        return Snapshot(self.now_s, self.nodes, ())


def test_alone_on_one_node_there_is_nothing_to_look_ahead_to() -> None:
    """With a second node there is."""
    for nodes in (1, 2):
        queue = Lone()
        queue.nodes = nodes
        twin = Twin(queue, lambda: 1000.0)
        work = Work(Workflow.from_tasks("w", [Task("t", 60.0)]), np.full(1, 60), Site.of(nodes))
        view = Core(work, Terms()).view(1000, twin.waits_s)
        requests = Terms().requests(Site.of(nodes))
        found = Ahead(twin).futures(view, {}, np.zeros(1, dtype=bool), requests)
        assert (found is None) == (nodes == 1)
