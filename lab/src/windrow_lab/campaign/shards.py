"""A sweep run in shards, each by a process of its own, perhaps on another machine that shares the
folder.

Law 1: which chunks are in shard I of N depends on the campaign and N alone, not on what is
finished. Law 2: shards of one N have no chunk in common, and together have all. So the table is the
same for any N, and a shard that was lost is run again by its number.

Shards lock the folder against any process that wants it alone, not against each other. If a file
system knows no locks they go without: chunks appear complete or not at all, so that two at the same
work lose only time.
"""

import errno
import fcntl
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from windrow.errors import UserError
from windrow_lab.campaign.campaign import Chunk
from windrow_lab.campaign.store import ChunkStore
from windrow_lab.campaign.sweep import Sweep, SweepResults, read_results, write_manifest
from windrow_lab.campaign.workers import Watch, run_missing, worker_count

_NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK}


@dataclass(frozen=True, slots=True)
class Shard:
    """Number `index` of `count`, from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def parse_shard(text: str) -> Shard:
    """The shard meant by `3/16`. UserError if it is not one."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    if match:
        shard = Shard(int(match[1]), int(match[2]))
    else:
        shard = Shard(0, 0)
    if not 1 <= shard.index <= shard.count:
        raise UserError(
            f"{text!r} is not a shard; write which of how many, from 1/N to N/N, like 3/16"
        )
    return shard


def deal(chunks: Sequence[Chunk], count: int) -> list[list[Chunk]]:
    """The chunks in `count` shards of about the same weight: the heaviest first, each to the
    lightest shard."""
    shards: list[list[Chunk]] = [[] for _ in range(count)]
    weights = [0.0] * count
    for chunk in sorted(chunks, key=lambda c: -c.weight):
        lightest = min(range(count), key=lambda k: (weights[k], len(shards[k]), k))
        shards[lightest].append(chunk)
        weights[lightest] += chunk.weight
    return shards


def unfinished_shards(sweep: Sweep, store: ChunkStore, count: int) -> list[int]:
    """The numbers, from 1, of the shards that have something left to run."""
    shards = deal(_distinct(sweep, store), count)
    return [k for k, shard in enumerate(shards, start=1) if not all(map(store.has, shard))]


def run_sweep(
    sweep: Sweep,
    folder: str | Path,
    *,
    shard: Shard | None = None,
    workers: int | None = None,
    watch: Watch | None = None,
) -> SweepResults:
    """Run what is missing, of everything or of one shard, and return what is there then.

    Interrupted at any point, the same call continues: finished chunks in the folder are not run
    again. By default as many workers as there are cores. Any number of shards may run at once; a
    run of everything wants the folder alone.
    """
    count = worker_count(workers)
    store = ChunkStore(folder)
    chunks = _distinct(sweep, store)
    if shard is None:
        mine = chunks
    else:
        mine = deal(chunks, shard.count)[shard.index - 1]
    with store.locked() if shard is None else _shared(store, shard):
        write_manifest(sweep, store)
        run_missing(mine, store, count, watch or (lambda _: None))
    return read_results(folder)


def _distinct(sweep: Sweep, store: ChunkStore) -> list[Chunk]:
    return list({store.path(chunk): chunk for chunk in sweep.chunks()}.values())


@contextmanager
def _shared(store: ChunkStore, shard: Shard) -> Iterator[None]:
    """In the folder with other shards. UserError if all of it is being run, or this very
    shard."""
    alone = f".shard-{shard.index}-of-{shard.count}.lock"
    with (store.folder / ".lock").open("a+") as everyone, (store.folder / alone).open("a+") as own:
        try:
            fcntl.flock(everyone, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{store.folder}: shard {shard} is already running there; wait for it"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
