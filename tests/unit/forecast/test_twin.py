"""The twin of a queue: exact against the cluster that it was read from, sparing with the queue, and
never at a loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.forecast.queue_starts import expected_starts_s
from tests.unit.sim.scenarios import small_log

from windrow.errors import UserError
from windrow.forecast.base import Ints, Prediction, predict
from windrow.forecast.twin import OVERDUE_S, Twin, left_out, simulated
from windrow.formats import read_log
from windrow.model import NEVER_S, Log
from windrow.queues.port import OthersJob, QueueError, Snapshot
from windrow.sim import Cluster, simulate
from windrow.sim.cluster import EventKind

NOW_S = 1_700_000_000.5
EXACT = ("fcfs", "easy", "depth:2", "conservative", "conservative-replan")


def running(nodes: int, requested_s: int, left_s: float, name: str = "r") -> OthersJob:
    return OthersJob(name, nodes, requested_s, True, NOW_S + left_s - requested_s, 0.0, "someone")


def waiting(nodes: int, requested_s: int, name: str = "w", priority: float = 0.0) -> OthersJob:
    return OthersJob(name, nodes, requested_s, False, None, priority, "someone")


class Board:
    """A queue that shows what it is told to show, and counts who looks."""

    def __init__(self, nodes: int, *jobs: OthersJob) -> None:
        self.shown = Snapshot(NOW_S, nodes, jobs)
        self.looks = 0
        self.is_down = False
        self.now_s = NOW_S

    def snapshot(self) -> Snapshot:
        self.looks += 1
        if self.is_down:
            raise QueueError("the controller does not answer")
        return self.shown

    def clock(self) -> float:
        return self.now_s


def waits(
    board: Board,
    *jobs: tuple[int, int],
    policy: str = "conservative",
    priority: float | None = None,
) -> list[int]:
    twin = Twin(board, board.clock, policy=policy, priority=priority)
    nodes, requested = np.array(jobs).T
    return [int(wait) for wait in twin.waits_s(nodes, requested)]


def seen(cluster: Cluster) -> Snapshot:
    """What a batch system on this cluster would show of itself."""
    now = cluster.now_s
    runs = [
        OthersJob(
            str(j.job),
            j.nodes,
            j.requested_s,
            True,
            NOW_S + j.expected_end_s - j.requested_s - now,
            0.0,
            "u",
        )
        for j in cluster.running()
    ]
    waits = [
        OthersJob(str(j.job), j.nodes, j.requested_s, False, None, 0.0, "u")
        for j in cluster.queue()
    ]
    return Snapshot(NOW_S, cluster.nodes, (*runs, *waits))


@st.composite
def logs_and_clusters(
    draw: st.DrawFn, *, policies: tuple[str, ...], requests: str
) -> tuple[Log, Cluster]:
    """A random log, and a cluster in the middle of it."""
    nodes = draw(st.integers(1, 8))
    size, time = st.integers(1, 8), st.integers(1, 20)
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 4), size, time, time, st.just(0)), min_size=1, max_size=30
        )
    )
    log = small_log(rows, nodes)
    cluster = Cluster(log, policy=draw(st.sampled_from(policies)), requests=requests)
    cluster.advance(draw(st.integers(0, 60)))
    return log, cluster


def assert_exact(cluster: Cluster, sizes: Ints | None = None, times: Ints | None = None) -> None:
    sizes = np.arange(1, cluster.nodes + 1) if sizes is None else sizes
    times = np.array([1, 2, 3, 5, 8, 13, 30]) if times is None else times
    nodes, requested = (grid.ravel() for grid in np.meshgrid(sizes, times))
    board = Board(1)
    board.shown = seen(cluster)
    found = Twin(board, board.clock, policy=cluster.settings.policy).waits_s(nodes, requested)
    assert (
        found.tolist() == (cluster.estimate(nodes, requested, exact=True) - cluster.now_s).tolist()
    )


@pytest.mark.slow
@given(logs_and_clusters(policies=EXACT, requests="accurate"))
def test_the_twin_knows_what_the_cluster_knows(found: tuple[Log, Cluster]) -> None:
    assert_exact(found[1])


@given(
    logs_and_clusters(
        policies=("fcfs", "easy", "depth:2", "conservative-replan"), requests="actual"
    )
)
def test_without_promises_of_old_it_knows_it_under_padded_requests_too(
    found: tuple[Log, Cluster],
) -> None:
    assert_exact(found[1])


@given(logs_and_clusters(policies=EXACT, requests="accurate"))
def test_waiting_jobs_start_when_they_would_if_nobody_came(found: tuple[Log, Cluster]) -> None:
    log, cluster = found
    starts = expected_starts_s(seen(cluster), policy=cluster.settings.policy)
    arrived = log.submit_s <= cluster.now_s
    columns = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
    alone = replace(log, **{name: getattr(log, name)[arrived] for name in columns})
    played = simulate(alone, policy=cluster.settings.policy, requests="accurate").start_s
    queued = [job.job for job in cluster.queue()]
    assert starts == {str(job): NOW_S + int(played[job]) - cluster.now_s for job in queued}


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["conservative", "easy", "fcfs"])
def test_a_real_log_at_many_times(logs: Path, policy: str) -> None:
    log = read_log(logs / "KTH-SP2-1996-2.1-cln.swf.gz")
    cluster = Cluster(log, policy=policy, requests="accurate")
    queued = 0
    for day in range(5, 305, 3):
        cluster.advance(day * 86400 + 12 * 3600)
        queued += len(cluster.queue())
        assert_exact(cluster, np.array([1, 3, 10, 50, 100]), np.array([60, 3600, 14400]))
    assert queued > 100  # otherwise nothing was put to the test


def test_backfilling_is_seen_where_slurms_own_estimate_does_not_see_it() -> None:
    """Eight nodes busy for ten more minutes, a 4-node job queued: a 2-node job starts beside it, in
    ten minutes.

    Slurm's `--test-only` puts it at twenty: it adds the waiting job's work to the ten minutes.
    """
    board = Board(8, running(8, 3600, 600), waiting(4, 1200))
    for policy in ("conservative", "easy", "fcfs"):
        assert waits(board, (2, 300), policy=policy) == [600]
    assert waits(board, (4, 300), (5, 300), (8, 300)) == [600, 1800, 1800]


def test_a_short_job_slips_through_and_a_long_one_does_not() -> None:
    board = Board(4, running(2, 1000, 1000), waiting(4, 500))
    assert waits(board, (2, 1000), (2, 1001), (1, 5000)) == [0, 1500, 1500]
    assert waits(board, (2, 1000), policy="fcfs") == [1500]


def test_what_cannot_end_before_maintenance_starts_after_it() -> None:
    """In 1000 s three of four nodes are closed for 500 s: what fits on the fourth is not
    concerned."""
    board = Board(4, running(2, 300, 300))
    board.shown = replace(board.shown, closures=((NOW_S + 1000, NOW_S + 1500, 3),))
    assert waits(board, (2, 1000), (2, 1001), (1, 5000), (4, 700), (4, 701)) == [
        0,
        1500,
        0,
        300,
        1500,
    ]
    board.shown = replace(board.shown, jobs=(running(2, 1400, 1400), waiting(4, 400)))
    assert waits(board, (2, 1000), (2, 1001), (4, 1)) == [0, 1900, 1900]  # so do others
    board.now_s += 1600
    board.shown = replace(board.shown, at_s=board.now_s, jobs=())
    twin = Twin(board, board.clock)
    assert twin.waits_s(np.array([4]), np.array([9999])).tolist() == [0]  # it is over


def test_a_full_cluster_has_room_for_closures_in_its_tables() -> None:
    """Each node has a job, and so has each closure."""
    board = Board(64, *(running(1, 500, 500, f"r{n}") for n in range(64)), waiting(64, 700))
    closures = ((NOW_S + 1000, NOW_S + 1500, 64), (NOW_S + 3000, NOW_S + 3600, 32))
    board.shown = replace(board.shown, closures=closures)
    assert waits(board, (64, 500), (64, 501), (32, 5000), (33, 801)) == [500, 2200, 2200, 3600]
    cluster = simulated(board.shown)
    assert cluster is not None
    ends = cluster.roomy_clone(500)
    while ends.advance(100_000):
        pass
    assert (ends.jobs_running, ends.jobs_waiting, ends.free_nodes) == (0, 0, 64)


def test_what_runs_keeps_running_whatever_it_asked_for() -> None:
    half_a_second_left = running(1, 100, 0.5)
    assert waits(Board(1, half_a_second_left), (1, 10)) == [1]
    assert waits(Board(1, running(1, 100, 0)), (1, 10)) == [OVERDUE_S]
    assert waits(Board(1, running(1, 100, -5000)), (1, 10)) == [OVERDUE_S]
    unknown_start = OthersJob("r", 1, 100, True, None, 0.0, "u")
    assert waits(Board(1, unknown_start), (1, 10)) == [100]


def test_running_jobs_do_not_wait_behind_each_other() -> None:
    cluster = simulated(
        Board(4, *(running(1, 50 + i, 10 + i) for i in range(4)), waiting(2, 9)).shown
    )
    assert cluster is not None
    assert (len(cluster.running()), len(cluster.queue()), cluster.now_s) == (4, 1, 0)


def test_nodes_that_are_drained() -> None:
    wide = waiting(6, 100, "wide")
    board = Board(4, running(4, 100, 50), wide, waiting(4, 70, "fits"))
    assert left_out(board.shown) == [wide]
    assert waits(board, (1, 10), (4, 10), (5, 10)) == [120, 120, NEVER_S]
    assert list(expected_starts_s(board.shown)) == ["fits"]
    assert waits(Board(0, wide), (1, 10)) == [NEVER_S]
    assert expected_starts_s(Board(0, wide).shown) == {}


def test_more_nodes_held_than_usable_errs_on_the_late_side() -> None:
    board = Board(4, running(3, 100, 10), running(3, 100, 40))
    assert waits(board, (1, 5), (2, 5), (4, 5)) == [10, 40, 40]


def test_an_own_priority_passes_those_below_it() -> None:
    board = Board(2, running(2, 100, 100), waiting(2, 50, "high", 9.0), waiting(2, 70, "low", 1.0))
    assert waits(board, (2, 10)) == [220]
    assert waits(board, (2, 10), priority=5.0) == [150]
    assert waits(board, (2, 10), priority=9.0) == [150]  # equals are served in order
    assert waits(board, (2, 10), priority=10.0) == [100]


def test_one_look_serves_for_a_while() -> None:
    board = Board(2, running(2, 100, 100), waiting(1, 50))
    twin = Twin(board, board.clock, refresh_s=30)
    one, ten = np.array([1]), np.array([10])
    assert (twin.waits_s(one, ten).tolist(), board.looks) == ([100], 1)
    board.now_s += 29
    assert (twin.waits_s(one, ten).tolist(), board.looks) == ([71], 1)
    board.now_s += 1
    board.shown = Snapshot(board.now_s, 2, ())
    assert (twin.waits_s(one, ten).tolist(), board.looks) == ([0], 2)
    board.now_s -= 3600  # the clock was set back
    assert (twin.waits_s(one, ten).tolist(), board.looks) == ([0], 3)
    twin.forget()
    assert twin.snapshot() is board.shown
    assert board.looks == 4


def test_the_twin_lives_on_between_looks() -> None:
    board = Board(2, running(2, 100, 20), waiting(2, 50))
    twin = Twin(board, board.clock, refresh_s=1000)
    assert twin.waits_s(np.array([2]), np.array([10])).tolist() == [70]
    board.now_s += 65.7
    assert twin.waits_s(np.array([2]), np.array([10])).tolist() == [5]
    board.now_s += 10
    assert twin.waits_s(np.array([2]), np.array([10])).tolist() == [0]


def test_own_jobs_count_as_soon_as_they_are_submitted() -> None:
    board = Board(2, running(2, 100, 100))
    twin = Twin(board, board.clock)
    two, ten = np.array([2]), np.array([10])
    twin.waits_s(two, ten)
    twin.add(1, 60)
    twin.add(99, 60)  # wider than what is usable: it will not be in the way
    assert (twin.waits_s(two, ten).tolist(), twin.waits_s(two - 1, ten).tolist()) == ([160], [100])
    board.now_s += 5
    assert (twin.waits_s(two, ten).tolist(), board.looks) == ([155], 1)


def test_a_controller_that_is_down_for_a_while() -> None:
    board = Board(1, running(1, 1000, 900))
    twin = Twin(board, board.clock, refresh_s=30, stale_s=100)
    one = np.array([1])
    board.is_down = True
    for looks in (1, 2):  # nothing read yet: each question tries
        with pytest.raises(QueueError):
            twin.waits_s(one, one)
        assert board.looks == looks
    board.is_down = False
    assert twin.waits_s(one, one).tolist() == [900]
    board.is_down = True
    board.now_s += 90
    assert (twin.waits_s(one, one).tolist(), board.looks) == ([810], 4)
    assert (twin.waits_s(one, one).tolist(), board.looks) == ([810], 4)  # no new try at once
    board.now_s += 90
    with pytest.raises(QueueError):
        twin.waits_s(one, one)


def test_requests_without_end_do_not_overflow() -> None:
    board = Board(1, running(1, 2**62, 2**62), *(waiting(1, 2**62, str(i)) for i in range(50)))
    [wait] = waits(board, (1, 10))
    assert 51 * 10 * 364 * 86400 < wait < NEVER_S


def test_wrong_arguments_are_refused_at_once() -> None:
    board = Board(1)
    with pytest.raises(UserError, match="did you mean easy"):
        Twin(board, board.clock, policy="esay")
    with pytest.raises(UserError, match="at least 1 s"):
        waits(board, (1, 0))


def test_an_empty_queue_and_no_candidates() -> None:
    board = Board(3)
    twin = Twin(board, board.clock)
    assert twin.waits_s(np.array([3, 4]), np.array([5, 5])).tolist() == [0, NEVER_S]
    none = np.zeros(0, dtype=np.int64)
    assert twin.waits_s(none, none).tolist() == []
    assert expected_starts_s(twin.snapshot()) == {}


def test_a_prediction_says_when() -> None:
    board = Board(8, running(8, 3600, 600), waiting(4, 1200))
    [found, wide] = predict(
        Twin(board, board.clock), np.array([2, 9]), np.array([300, 300]), board.now_s
    )
    assert found == Prediction("twin", 2, 300, 600, NOW_S)
    assert found.start_s == NOW_S + 600
    assert wide is None


def test_starts_of_a_queue_by_hand() -> None:
    board = Board(
        4, running(4, 500, 100), waiting(3, 50, "a"), waiting(4, 10, "b"), waiting(1, 60, "c")
    )
    starts = expected_starts_s(Twin(board, board.clock).snapshot())
    assert {name: start - NOW_S for name, start in starts.items()} == {"a": 100, "b": 150, "c": 160}
    log = Log(
        "same",
        4,
        *np.array([[1, 2, 3, 4], [0] * 4, [4, 3, 4, 1], *([[100, 50, 10, 60]] * 2), [0] * 4]),
    )
    assert simulate(log).start_s.tolist() == [0, 100, 150, 160]


def slurm_formula(snapshot: Snapshot, nodes: Ints, requested: Ints) -> Ints:
    """What `sbatch --test-only` does, as its source says: running jobs alone, then all waiting work
    spread evenly."""
    runs = simulated(replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.is_running)))
    assert runs is not None
    work = sum(job.nodes * job.requested_s for job in snapshot.jobs if not job.is_running)
    return runs.estimate(nodes, requested) + work // snapshot.nodes


def actual_wait_s(cluster: Cluster, nodes: int, requested_s: int) -> int:
    """Submit the job, let the log go on, and see."""
    world = cluster.clone()
    job = world.submit(nodes, requested_s, requested_s)
    while True:
        started = [
            event.at_s
            for event in world.advance()
            if event.job == job and event.kind is EventKind.STARTED
        ]
        if started:
            return started[0] - cluster.now_s


@pytest.mark.slow
def test_on_a_real_log_the_twin_errs_far_less_than_slurms_formula(logs: Path) -> None:
    """KTH under EASY, real requests, later arrivals included: the setting of the table in
    docs/theory/forecasts.md."""
    cluster = Cluster(read_log(logs / "KTH-SP2-1996-2.1-cln.swf.gz"), policy="easy")
    nodes, requested = np.array([1, 4, 16, 50, 4, 16, 50]), np.array([3600] * 4 + [14400] * 3)
    errors: dict[str, list[Ints]] = {"easy": [], "conservative": [], "formula": []}
    for hour in range(10 * 24, 300 * 24, 37):
        cluster.advance(hour * 3600)
        snapshot = seen(cluster)
        if all(job.is_running for job in snapshot.jobs):
            continue
        pairs = zip(nodes.tolist(), requested.tolist(), strict=True)
        actual = np.array([actual_wait_s(cluster, n, r) for n, r in pairs])
        errors["formula"].append(slurm_formula(snapshot, nodes, requested) - actual)
        for policy in ("easy", "conservative"):
            twin = simulated(snapshot, policy=policy)
            assert twin is not None
            errors[policy].append(twin.estimate(nodes, requested) - actual)
    median = {
        name: float(np.median(np.abs(np.concatenate(found)))) for name, found in errors.items()
    }
    assert len(errors["easy"]) > 100
    assert median["easy"] < median["conservative"] < median["formula"] / 3


def test_how_long_jobs_that_wait_will_wait_yet() -> None:
    board = Board(
        4, running(4, 600, 100), waiting(4, 50, "a"), waiting(2, 70, "b"), waiting(4, 10, "c")
    )
    twin = Twin(board, lambda: board.now_s, policy="conservative")
    assert twin.waits_of(["a", "b", "c", "gone"]) == {"a": 100, "b": 150, "c": 220}
    assert twin.waits_of(["b"]) == {"b": 150}
    assert twin.waits_of([]) == {}
    board.now_s += 3
    assert twin.waits_of(["a"]) == {"a": 97}
