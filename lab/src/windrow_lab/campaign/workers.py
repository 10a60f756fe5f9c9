"""Runs campaigns on all cores: chunks that are not there yet, the heaviest first, each written when
it is done.

Law: the table does not depend on the number of workers, nor on how often the campaign was stopped
and continued (`wall_s` apart). An interruption leaves nothing behind but finished chunks
(`windrow.trials.processes`).
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa

from windrow.errors import OutsideError, UserError
from windrow.trials.processes import no_interruption, worker_processes
from windrow_lab.campaign.campaign import Campaign, Chunk
from windrow_lab.campaign.rows import rows_of
from windrow_lab.campaign.store import ChunkStore, write_rows


@dataclass(frozen=True, slots=True)
class CampaignProgress:
    """How far a run is. `found` trials were there from before; `left_s` is None until something is
    done."""

    trials: int
    done: int
    found: int
    failed: int
    gone_s: float
    left_s: float | None


Watch = Callable[[CampaignProgress], None]
Kind = tuple[str, ...]
"""The strategies of a chunk."""
Finished = Generator[tuple[Chunk, int, float, int], None, None]
"""A chunk, how many of its trials failed, how long it took, and which process ran it."""


def run_campaigns(
    campaigns: Sequence[Campaign],
    folder: str | Path,
    *,
    workers: int | None = None,
    watch: Watch | None = None,
) -> list[pa.Table]:
    """Run what is missing and return the table of each campaign; `watch` hears of every finished
    chunk.

    Interrupted at any point, the same call continues: finished chunks in the folder are not run
    again. By default as many workers as there are cores; with one, all runs in this process.
    """
    count = worker_count(workers)
    store = ChunkStore(folder)
    with store.locked():
        chunks = list(
            {
                store.path(chunk): chunk for campaign in campaigns for chunk in campaign.chunks()
            }.values()
        )
        run_missing(chunks, store, count, watch or (lambda _: None))
        return [store.finish(campaign) for campaign in campaigns]


def worker_count(wanted: int | None) -> int:
    """How many processes to run: by default one for each core that this one may use. UserError for
    less than one."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    if (count := cores if wanted is None else wanted) < 1:
        raise UserError(f"a campaign needs at least 1 worker, not {count}")
    return count


def run_missing(chunks: Sequence[Chunk], store: ChunkStore, workers: int, watch: Watch) -> None:
    """Run those of the chunks that are not in the store; `watch` hears of every finished one."""
    there = [chunk for chunk in chunks if store.has(chunk)]
    missing = [chunk for chunk in chunks if not store.has(chunk)]
    missing.sort(key=lambda chunk: (-chunk.weight, chunk.name, chunk.digest()))
    at_work = max(1, min(workers, len(missing)))
    tally = _Tally(chunks, there, sum(map(store.failures, there)), at_work)
    watch(tally.progress())
    if at_work == 1:
        finished: Finished = ((chunk, *run_chunk(chunk, store.path(chunk))) for chunk in missing)
    else:
        finished = _pooled(missing, store, at_work)
    with closing(finished):  # an interruption ends the workers now, not with the garbage
        for chunk, failed, took_s, worker in finished:
            tally.add(chunk, failed, took_s, worker)
            watch(tally.progress())


def _pooled(chunks: Sequence[Chunk], store: ChunkStore, workers: int) -> Finished:
    with worker_processes(workers) as pool:
        with no_interruption():  # submitting starts the workers
            futures = {pool.submit(run_chunk, chunk, store.path(chunk)): chunk for chunk in chunks}
        try:
            for future in as_completed(futures):
                yield futures[future], *future.result()
        except BrokenProcessPool:
            again = "finished chunks are kept: run the same again to continue"
            raise OutsideError(f"a worker process died, possibly out of memory; {again}") from None


def run_chunk(chunk: Chunk, path: Path) -> tuple[int, float, int]:
    """Run the chunk, keep its rows at `path`; how many trials failed, how many seconds it took, in
    which process."""
    began = time.monotonic()
    table = rows_of(chunk)
    write_rows(table, path)
    column = table.column("error")
    return len(column) - int(column.null_count), time.monotonic() - began, os.getpid()


_STEP = 0.3


class _Tally:
    """Counts trials, and estimates the time left from how long chunks of the same strategies took,
    by their weight.

    Strategies differ in cost by a factor of a hundred. Those of which nothing is done yet are taken
    to be like others. The first chunk of each process is not counted: it loads or compiles what the
    others only use. What is shown moves towards each new estimate by a part of the way, so that one
    odd chunk does not make it jump.
    """

    def __init__(
        self, chunks: Sequence[Chunk], there: Sequence[Chunk], failed: int, workers: int
    ) -> None:
        self.began = time.monotonic()
        self.workers = workers
        self.trials = sum(c.trials for c in chunks)
        self.found = self.done = sum(c.trials for c in there)
        self.failed = failed
        self.left = defaultdict[Kind, float](float)
        self.paces = defaultdict[Kind, list[float]](list)
        self.warm: set[int] = set()
        self.end_s: float | None = None
        for sign, some in ((1, chunks), (-1, there)):
            for chunk in some:
                self.left[_kind(chunk)] += sign * chunk.weight

    def add(self, chunk: Chunk, failed: int, took_s: float, worker: int) -> None:
        kind = _kind(chunk)
        self.done += chunk.trials
        self.failed += failed
        self.left[kind] -= chunk.weight
        if worker in self.warm:
            self.paces[kind].append(took_s / chunk.weight)
            left_s = self._left_s()
            end_s = time.monotonic() + left_s
            before_s = end_s if self.end_s is None else self.end_s
            # Smoothed, but not behind the facts where the machine has become slower.
            self.end_s = max(before_s + _STEP * (end_s - before_s), end_s - left_s / 2)
        self.warm.add(worker)

    def _left_s(self) -> float:
        """By the paces seen so far, whatever was said before."""
        paces = {name: median(found) for name, found in self.paces.items()}
        usual = median(paces.values())
        work_s = sum(weight * paces.get(name, usual) for name, weight in self.left.items())
        return work_s / self.workers

    def progress(self) -> CampaignProgress:
        now = time.monotonic()
        if self.end_s is None:
            left_s = None
        elif self.done >= self.trials:
            left_s = 0.0
        else:
            left_s = max(0.0, self.end_s - now)
        return CampaignProgress(
            self.trials, self.done, self.found, self.failed, now - self.began, left_s
        )


def _kind(chunk: Chunk) -> Kind:
    return tuple(strategy.name for strategy in chunk.strategies)
