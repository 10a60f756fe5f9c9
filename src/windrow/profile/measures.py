"""Figures of a trace: how much of which files was moved, by stage, direction and role.

Law: traffic counts every byte moved, again and again; unique is the union of the ranges moved, file
by file; static is the whole size of each file touched, the largest that it had. A file counts once
in any sum, so sums of stages are at least their union. Files are those that a read, a write or a
mapping touched. MB are millions of bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import in_python, is_loaded
from windrow.kernels.stack_distance import distances
from windrow.model.graph import Ints
from windrow.model.trace import APART, KIND_OF_OP, KINDS, MAP_READ, MAP_WRITE, READ, WRITE, Trace

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
BLOCK_BYTES = 4096
_FEW_ACCESSES = 20_000  # to blocks, which take less time in Python than to load the compiled kernel
_MOST_ACCESSES = 1 << 25
MILLION = 1 << 20
"""Of instructions, as the thesis counts them."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Files, and bytes; bytes moved are 0 if the tracer saw files only."""

    files: int
    traffic: int
    unique: int
    static: int


def _reach(group: Ints, end: Ints) -> Ints:
    """The furthest end of the group so far, at each range."""
    values, rank = np.unique(end, return_inverse=True)
    ahead = group * len(values)
    return np.asarray(values[np.maximum.accumulate(rank + ahead) - ahead], dtype=np.int64)


def merged(group: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """The union of the ranges of each group, as ranges that neither touch nor overlap, in order."""
    order = np.lexsort((start, group))
    group = group[order]
    start = start[order]
    end = end[order]
    reach = _reach(group, end) if len(end) else end
    begins = np.ones(len(end), dtype=bool)
    begins[1:] = (group[1:] != group[:-1]) | (start[1:] > reach[:-1])
    at = np.flatnonzero(begins)
    return group[at], start[at], reach[np.append(at[1:], len(end))[: len(at)] - 1]


class Measures:
    """The figures of one trace. `uses` are its combinations of stage, file and direction."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        op = trace.op
        is_move = (op == READ) | (op == WRITE) | (op >= MAP_READ)
        self.rows = np.flatnonzero(is_move & (trace.file >= 0))
        """Which records touch files."""
        writes = (op[self.rows] == WRITE) | (op[self.rows] == MAP_WRITE)
        self._files = max(1, len(trace.files.paths))
        key = (trace.stage[self.rows] * self._files + trace.file[self.rows]) * 2 + writes
        keys, use = np.unique(key, return_inverse=True)
        self.use_of_row: Ints = use
        self.stage = keys // 2 // self._files
        self.file = keys // 2 % self._files
        self.is_write: Mask = keys % 2 == 1
        moved = np.maximum(trace.bytes[self.rows], 0)
        self.traffic = np.bincount(use, moved, len(keys)).astype(np.int64)
        self._ranges = _ranges(use, trace.offset[self.rows], moved)
        pairs = zip(self.stage.tolist(), self.file.tolist(), strict=True)
        self.static = np.array([trace.files.sizes.get(pair, 0) for pair in pairs], dtype=np.int64)
        pipelines = np.array([stage.pipeline for stage in trace.stages], dtype=np.int64)
        self.pipeline = pipelines[self.stage]

    @property
    def everything(self) -> Mask:
        """All uses."""
        return np.ones(len(self.file), dtype=bool)

    def amount(self, chosen: Mask) -> Amount:
        """What these uses come to: files and bytes are unions over them."""
        files, at = np.unique(self.file[chosen], return_inverse=True)
        static = np.zeros(len(files), dtype=np.int64)
        np.maximum.at(static, at, self.static[chosen])
        use, start, end = self._ranges
        kept = chosen[use]
        _, low, high = merged(self.file[use[kept]], start[kept], end[kept])
        return Amount(
            len(files), int(self.traffic[chosen].sum()), int((high - low).sum()), int(static.sum())
        )

    def files(self) -> dict[str, Ints]:
        """Of each file, by its number: bytes read and written, unique and static, and in how many
        uses which way."""
        use, start, end = self._ranges
        of, low, high = merged(self.file[use], start, end)
        static = np.zeros(self._files, dtype=np.int64)
        np.maximum.at(static, self.file, self.static)
        found = {"unique_bytes": np.bincount(of, high - low, self._files), "static_bytes": static}
        for way, chosen in (("read", ~self.is_write), ("written", self.is_write)):
            found[f"{way}_bytes"] = np.bincount(
                self.file[chosen], self.traffic[chosen], self._files
            )
            found[f"{way}_uses"] = np.bincount(self.file[chosen], minlength=self._files)
        return {name: column.astype(np.int64) for name, column in found.items()}

    def kinds(self, stages: Ints | Sequence[int]) -> dict[str, int]:
        """Operations by kind, without those on what is not a file."""
        rows = np.isin(self.trace.stage, stages) & (self.trace.file != APART)
        counts = np.bincount(KIND_OF_OP[self.trace.op[rows]], minlength=len(KINDS))
        return dict(zip(KINDS, counts.tolist(), strict=True))

    @cached_property
    def by_file(self) -> dict[int, dict[str, int]]:
        """Operations by kind, for each file."""
        rows = self.trace.file >= 0
        key = self.trace.file[rows] * len(KINDS) + KIND_OF_OP[self.trace.op[rows]]
        keys, counts = np.unique(key, return_counts=True)
        found: dict[int, dict[str, int]] = {}
        for each, count in zip(keys.tolist(), counts.tolist(), strict=True):
            found.setdefault(each // len(KINDS), {})[KINDS[each % len(KINDS)]] = count
        return found

    def sizes(self, chosen: Mask) -> tuple[Ints, Ints]:
        """Bytes that one operation moved, ascending, and how many operations moved at most that."""
        rows = self.rows[chosen[self.use_of_row]]
        calls = rows[self.trace.op[rows] <= WRITE]
        values, counts = np.unique(self.trace.bytes[calls], return_counts=True)
        return values, np.cumsum(counts)

    def cache_curve(self, chosen: Mask) -> tuple[Ints, Floats]:
        """Bytes of LRU caches, from one block on, and the share of accesses to blocks that hit in
        them.

        Blocks are of 4 kB, and larger if there would be more accesses than memory should hold.
        """
        rows = self.rows[chosen[self.use_of_row]]
        rows = rows[self.trace.bytes[rows] > 0]
        if not len(rows):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        start = self.trace.offset[rows]
        size = self.trace.bytes[rows]
        block = BLOCK_BYTES << max(0, int(size.sum()) // BLOCK_BYTES // _MOST_ACCESSES).bit_length()
        first = start // block
        end = (start + size - 1) // block + 1
        found = _distances(self.trace.file[rows], first, end)
        most = int(np.flatnonzero(found).max(initial=0)) + 1
        return np.arange(1, most + 1) * block, np.cumsum(found[:most]) / int((end - first).sum())

    def timeline(self, chosen: Mask, times: Floats, edges: Floats) -> Floats:
        """Bytes moved between each two neighbouring edges of time; `times`: of all records."""
        rows = self.rows[chosen[self.use_of_row]]
        return np.histogram(times[rows], edges, weights=np.maximum(self.trace.bytes[rows], 0))[
            0
        ].astype(np.float64)


def _ranges(use: Ints, start: Ints, moved: Ints) -> tuple[Ints, Ints, Ints]:
    """What each use moved, as the union of its ranges."""
    some = moved > 0
    return merged(use[some], start[some], start[some] + moved[some])


def _distances(file: Ints, first: Ints, end: Ints) -> Ints:
    """How many accesses to blocks there are of each stack distance, if blocks from `first` to `end`
    of these files are accessed one after the other."""
    numbers, blocks = _numbered(file, first, end)
    total = int((end - first).sum())
    found = np.zeros(blocks + 1, dtype=np.int64)
    room = np.zeros(blocks + total + 1, dtype=np.int64)
    with in_python(really=not is_loaded() and total < _FEW_ACCESSES):
        distances(numbers, end - first, room[:blocks], room[blocks:], found)
    return found


def _numbered(file: Ints, first: Ints, end: Ints) -> tuple[Ints, int]:
    """The first blocks by numbers that blocks which are used, however far apart, have one by one;
    and how many these are."""
    of, low, high = merged(file, first, end)
    at = np.searchsorted(of * end.max() + low, file * end.max() + first, side="right") - 1
    before = np.cumsum(high - low)
    return (before - high)[at] + first, int(before[-1])
