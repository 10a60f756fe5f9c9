"""What a run keeps of its queue: readings become a log that can be replayed."""

from __future__ import annotations

from pathlib import Path

from windrow.foresight.seen import MOST_JOBS, WatchedQueue, read_seen
from windrow.model import NodeShape
from windrow.model.site import Site
from windrow.queues.port import OthersJob, Snapshot

START_S = 1_000_000.0


class Readings:
    """A queue that is read to be in these states, one after the other."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self.left = list(snapshots)

    def snapshot(self) -> Snapshot:
        return self.left.pop(0)


def job(name: str, nodes: int, requested_s: int, since_s: float | None = None) -> OthersJob:
    return OthersJob(name, nodes, requested_s, since_s is not None, since_s, 0.0, "ann")


def watch(path: Path, *snapshots: Snapshot) -> WatchedQueue:
    site = Site.of(4, NodeShape(cores=8), max_nodes=3)
    watched = WatchedQueue(Readings(*snapshots), path, site, "easy")
    for snapshot in snapshots:
        assert watched.snapshot() is snapshot
    watched.keep()
    return watched


def test_readings_become_a_log_without_our_own_jobs(tmp_path: Path) -> None:
    """`a` runs and is seen to end, `b` runs on, `c` waits, starts and ends, `d` comes later."""
    path = tmp_path / "queue.json"
    a = job("a", 2, 3600, START_S - 100)
    b = job("b", 1, 600, START_S - 200)
    watch(
        path,
        Snapshot(START_S, 4, (a, b, job("c", 2, 500))),
        Snapshot(START_S + 50, 4, (b, job("c", 2, 500, START_S + 40), job("ours", 1, 60))),
        Snapshot(START_S + 150, 4, (b, job("d", 3, 700))),
    )
    seen = read_seen(path)
    assert seen is not None
    log = seen.log({"ours"})
    rows = [(one.submit_s, one.nodes, one.requested_s, one.run_s) for one in log]
    assert rows == [
        (0, 2, 3500, 25),  # gone between the readings at 0 and 50 s
        (0, 1, 400, 400),  # not seen to end: all that it may
        (0, 2, 500, 60),
        (150, 3, 700, 700),
    ]
    assert (seen.nodes, seen.policy, seen.until_s) == (4, "easy", START_S + 150)
    site = seen.site(cap=5, max_nodes=None)
    assert (site.nodes, site.job_nodes, site.shape.cores, site.cap) == (4, 3, 8, 5)


def test_a_manager_that_takes_over_continues_the_file(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    a = job("a", 2, 3600, START_S - 100)
    watch(path, Snapshot(START_S, 4, (a,)))
    watch(path, Snapshot(START_S + 100, 4, (a, job("b", 1, 60))), Snapshot(START_S + 150, 4, ()))
    seen = read_seen(path)
    assert seen is not None
    assert seen.at_s == START_S
    assert [one[0] for one in seen.first] == ["a"]
    assert [one.run_s for one in seen.log(())] == [125, 60]
    assert list(seen.held(())) == [
        (START_S, START_S - 100, START_S + 125, 2),
        (START_S + 99, None, None, 1),  # came before it was seen
    ]


def test_what_cannot_be_replayed_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    crowd = tuple(job(f"{i}", 1, 60) for i in range(MOST_JOBS + 1))
    watch(path, Snapshot(START_S, 4, crowd))
    assert not path.exists()
    two_on_a_node = (job("a", 3, 60, START_S), job("b", 2, 60, START_S))
    watch(path, Snapshot(START_S, 4, two_on_a_node))
    assert not path.exists()
    path.write_text("{}")
    assert read_seen(path) is None
