"""Runs campaigns on all cores: chunks that are not there yet, the heaviest first, each written when it is done.

Law: the table does not depend on the number of workers, nor on how often the campaign was stopped and continued
(`wall_s` apart). Workers are fresh processes (spawned); they leave Ctrl-C to their parent, and end when it ends,
whichever way that happens.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from windrow.errors import OutsideError, UserError
from windrow.lab.campaign import Campaign, Chunk
from windrow.lab.rows import chunk_table
from windrow.lab.store import Store, write_chunk


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `found` trials were there from before; `left_s` is None until something is done."""

    trials: int
    done: int
    found: int
    failed: int
    gone_s: float
    left_s: float | None


Watch = Callable[[Progress], None]
Finished = Generator[tuple[Chunk, int], None, None]


def run_campaigns(
    campaigns: Sequence[Campaign], folder: str | Path, *, workers: int | None = None, watch: Watch | None = None
) -> list[pa.Table]:
    """Run what is missing and return the table of each campaign; `watch` hears of every finished chunk.

    Interrupted at any point, the same call continues: finished chunks in the folder are not run again. By default as
    many workers as there are cores; with one, all runs in this process.
    """
    count = cores() if workers is None else workers
    if count < 1:
        raise UserError(f"a campaign needs at least 1 worker, not {count}")
    store = Store(folder)
    with store.locked():
        chunks = list({store.path(chunk): chunk for campaign in campaigns for chunk in campaign.chunks()}.values())
        run_missing(chunks, store, count, watch or (lambda _: None))
        return [store.finish(campaign) for campaign in campaigns]


def run_campaign(
    campaign: Campaign, folder: str | Path, *, workers: int | None = None, watch: Watch | None = None
) -> pa.Table:
    """As `run_campaigns`, for one."""
    return run_campaigns([campaign], folder, workers=workers, watch=watch)[0]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_missing(chunks: Sequence[Chunk], store: Store, workers: int, watch: Watch) -> None:
    """Run those of the chunks that are not in the store; `watch` hears of every finished one."""
    missing = sorted((c for c in chunks if not store.has(c)), key=lambda c: (-c.weight, c.name, c.digest()))
    there = [c for c in chunks if store.has(c)]
    tally = _Tally(chunks, there, sum(map(store.failures, there)))
    watch(tally.progress())
    finished = _here(missing, store) if min(workers, len(missing)) <= 1 else _pooled(missing, store, workers)
    with closing(finished):  # an interruption in here must end the workers now, not when the garbage is collected
        for chunk, failed in finished:
            tally.add(chunk, failed)
            watch(tally.progress())


def _here(chunks: Sequence[Chunk], store: Store) -> Finished:
    for chunk in chunks:
        yield chunk, run_chunk(chunk, store.path(chunk))


def _pooled(chunks: Sequence[Chunk], store: Store, workers: int) -> Finished:
    with _pool(min(workers, len(chunks))) as pool:
        futures = {pool.submit(run_chunk, chunk, store.path(chunk)): chunk for chunk in chunks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            again = "finished chunks are kept: run the same again to continue"
            raise OutsideError(f"a worker process died, perhaps for want of memory; {again}") from None


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that are gone when the body is left, at once where it is left early."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)
    is_done = False
    try:
        yield pool
        is_done = True
    finally:
        pool.shutdown(wait=is_done, cancel_futures=True)
        if not is_done:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot say so, and its workers would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def run_chunk(chunk: Chunk, path: Path) -> int:
    """Run the chunk, keep its rows at `path`, and return how many trials failed."""
    table = chunk_table(chunk)
    write_chunk(table, path)
    column = table.column("error")
    return len(column) - int(column.null_count)


class _Tally:
    """Counts trials, and reckons the time left from the weight of what this run has done."""

    def __init__(self, chunks: Sequence[Chunk], there: Sequence[Chunk], failed: int) -> None:
        self.began = time.monotonic()
        self.trials = sum(c.trials for c in chunks)
        self.found = self.done = sum(c.trials for c in there)
        self.failed = failed
        self.weight_left = sum(c.weight for c in chunks) - sum(c.weight for c in there)
        self.weight_done = 0.0

    def add(self, chunk: Chunk, failed: int) -> None:
        self.done += chunk.trials
        self.failed += failed
        self.weight_done += chunk.weight
        self.weight_left -= chunk.weight

    def progress(self) -> Progress:
        gone = time.monotonic() - self.began
        left = gone * self.weight_left / self.weight_done if self.weight_done else None
        return Progress(self.trials, self.done, self.found, self.failed, gone, left)
