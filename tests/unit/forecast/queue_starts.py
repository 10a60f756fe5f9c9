"""When jobs of a queue start, by playing the whole of it: what the twin's estimates are held
against."""

from windrow.forecast.twin import _entries, _unhurried, waiting_jobs
from windrow.queues.port import Snapshot
from windrow.sim.cluster import Cluster


def expected_starts_s(snapshot: Snapshot, *, policy: str = "conservative") -> dict[str, float]:
    """When each waiting job starts, by its id, in seconds since the epoch; those that do not fit
    are absent.

    The whole queue is played to its end, everybody running as long as requested and nobody
    arriving.
    """
    waiting = waiting_jobs(snapshot)
    if not waiting:
        return {}
    with _unhurried(snapshot):
        cluster = Cluster.of_queue(
            snapshot.nodes, _entries(snapshot, waiting), policy=policy, record=True
        )
        cluster.advance()
    starts = cluster.log_starts_s[-len(waiting) :].tolist()
    return {job.id: snapshot.at_s + start for job, start in zip(waiting, starts, strict=True)}
