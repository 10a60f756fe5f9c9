"""Genome (Epigenomics): DNA reads mapped to a reference (bioinformatics).

Every lane of reads is split into chunks (fastqSplit), every chunk goes through a pipeline of four
(filterContams, sol2sanger, fastq2bfq, map), and the maps are merged by lane, then overall
(mapMerge), indexed and piled up (maqindex, pileup): nine levels, or eight if there is one lane
and so one merge. Nearly all work is in `map`.

Times follow from sizes and rates, except for map and pileup, which take as long as the reference is
large; means and deviations are those that the Pegasus workflow generator uses. In its published
workflows, too, the reference varies from 1.2 to 5.3 GB, and with it every other kind's share of the
work.

Sizes. L lanes with K chunks in all are 4 K + 2 L + 3 tasks (4 K + 4 for one lane), so the Pegasus
generator gives 47, 249 and 497 tasks where 50, 250 and 500 were asked for. The one to three tasks
left over are met by replacing one chunk by a lane of a single chunk (2 tasks more), or by one such
lane that needs no merge of its own (1 task more).
"""

from dataclasses import dataclass

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes.chance import Chance, around, even_parts, near_even_parts, one_around
from windrow.recipes.draft import RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks

_GIB = 2**30
_EXTRA_LANES = (0, 1, 1, 2)
"""Lanes of a single chunk, by the number of tasks left over."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Chunks of each lane; how many of the last lanes are extra, of a single chunk, and whether the
    very last has no merge of its own; whether lanes are merged overall."""

    chunks: Ints
    extra: int
    last_unmerged: bool
    merge_overall: bool


@dataclass(frozen=True, slots=True)
class _Chunks:
    """One file of every chunk, its size, and the lane it belongs to."""

    files: Ints
    size_bytes: Floats
    lane: Ints


def build_genome(rng: Chance, tasks: int, *, lanes: int) -> Workflow:
    """A Genome of exactly `tasks` tasks."""
    require_tasks("genome", tasks, 12)
    plan = _plan(tasks, lanes)
    draft = RecipeDraft(f"genome-{tasks}")
    reference = rng.uniform(1, 5) * _GIB
    reads = _split(draft, rng, plan)
    maps = _map(draft, rng, reads, reference)
    merged, merged_bytes = _merge(draft, rng, plan, maps)
    _pile_up(draft, rng, merged, merged_bytes, reference)
    return draft.workflow()


def _plan(tasks: int, lanes: int) -> _Plan:
    count = lanes or _usual_lanes(tasks)
    if count == 1 and tasks % 4 == 0:
        return _Plan(
            np.array([(tasks - 4) // 4]), extra=0, last_unmerged=False, merge_overall=False
        )
    most = next((most for most in range(tasks // 6, 1, -1) if _spare_chunks(tasks, most) >= 0), 1)
    require(1 <= count <= most, "genome", f"{tasks} tasks can have 1 to {most} lanes, not {count}")
    spare = _spare_chunks(tasks, count)
    left_over = _left_over(tasks, count)
    extra = _EXTRA_LANES[left_over]
    chunks = np.concatenate([even_parts(spare + count, count), np.ones(extra, dtype=np.int64)])
    return _Plan(chunks, extra, last_unmerged=left_over in (1, 3), merge_overall=True)


def _left_over(tasks: int, lanes: int) -> int:
    return (tasks - 3 - 2 * lanes) % 4


def _spare_chunks(tasks: int, lanes: int) -> int:
    """Chunks beyond one for each lane and for each extra lane of a single chunk; below 0: too many
    lanes."""
    return (tasks - 3 - 2 * lanes) // 4 - lanes - _EXTRA_LANES[_left_over(tasks, lanes)]


def _usual_lanes(tasks: int) -> int:
    """The most lanes that can have equally many chunks, five or more, with at most three tasks left
    over; else one."""
    for lanes in range(tasks // 4, 1, -1):
        per_lane, left_over = divmod(tasks - 3 - 2 * lanes, 4 * lanes)
        if per_lane >= 5 and left_over <= 3:
            return lanes
    return 1


def _split(draft: RecipeDraft, rng: Chance, plan: _Plan) -> _Chunks:
    """The fastqSplit tasks. Returns the chunks that they cut."""
    lanes = len(plan.chunks)
    lane_bytes = around(rng, 351_024_866, 147_899_296, lanes)
    lane_bytes[lanes - plan.extra :] /= plan.chunks[0]  # their one chunk is like the others'
    tasks = draft.add("fastqSplit_chr21", lane_bytes / around(rng, 7_663_927, 2_375_099, lanes))
    draft.files(numbered("chr21_{}.sfq", lanes), lane_bytes, read_by=tasks)
    lane = np.repeat(np.arange(lanes), plan.chunks)
    parts = zip(lane_bytes, plan.chunks.tolist(), strict=True)
    sizes = np.concatenate(
        [near_even_parts(rng, int(size), count, 0.1) for size, count in parts]
    ).astype(np.float64)
    files = draft.files(numbered("chr21_chunk_{}.sfq", len(lane)), sizes, written_by=tasks[lane])
    return _Chunks(files, sizes, lane)


def _map(draft: RecipeDraft, rng: Chance, reads: _Chunks, reference: float) -> _Chunks:
    """The four steps of every chunk. Returns the maps."""
    n = len(reads.files)
    chunk_bytes = reads.size_bytes
    clean_bytes = chunk_bytes * rng.uniform(0.475, 0.525, n)
    filtering = draft.add("filterContams_chr21", chunk_bytes / around(rng, 8_474_777, 5_002_153, n))
    draft.reads(filtering, reads.files)
    draft.files(
        numbered("chr21_chunk_{}.contam.sfq", n), chunk_bytes - clean_bytes, written_by=filtering
    )
    file = draft.files(
        numbered("chr21_chunk_{}.nocontam.sfq", n), clean_bytes, written_by=filtering
    )

    fastq_bytes = clean_bytes / around(rng, 1.32, 0.316, n)
    binary_bytes = fastq_bytes / around(rng, 4.24, 0.4, n)
    steps = (
        (
            "sol2sanger_chr21",
            clean_bytes / around(rng, 15_073_990, 3_556_068, n),
            "fq",
            fastq_bytes,
        ),
        (
            "fastq2bfq_chr21",
            fastq_bytes / around(rng, 6_797_391, 1_110_361, n),
            "bfq",
            binary_bytes,
        ),
        ("map_chr21", reference / around(rng, 369_552, 114_235, n), "map", binary_bytes / 0.92),
    )
    for kind, times, suffix, sizes in steps:
        tasks = draft.add(kind, times)
        draft.reads(tasks, file)
        file = draft.files(
            numbered(f"chr21_chunk_{{}}.nocontam.{suffix}", n), sizes, written_by=tasks
        )
    draft.files("chr21.BS.bfa", reference, read_by=tasks)
    return _Chunks(file, binary_bytes / 0.92, reads.lane)


def _merge(draft: RecipeDraft, rng: Chance, plan: _Plan, maps: _Chunks) -> tuple[Ints, float]:
    """The mapMerge tasks, by lane and, if planned, overall. Returns the one map and its size."""
    own = len(plan.chunks) - plan.last_unmerged
    lane_bytes = np.bincount(maps.lane, maps.size_bytes)[:own]
    tasks = draft.add("mapMerge_chr21", lane_bytes / around(rng, 2_267_233, 329_008, own))
    covered = maps.lane < own
    draft.reads(tasks[maps.lane[covered]], maps.files[covered])
    if plan.merge_overall:
        names = numbered("chr21_{}.nocontam.map", own)
    else:
        names = ["chr21.nocontam.map"]
    merged = draft.files(names, lane_bytes / 1.06, written_by=tasks)
    total = float(lane_bytes.sum() / 1.06)
    if not plan.merge_overall:
        return merged, total
    total += float(maps.size_bytes[~covered].sum())
    last = draft.add("mapMerge_chr21", total / one_around(rng, 2_267_233, 329_008))
    draft.reads(last, merged)
    draft.reads(last, maps.files[~covered])
    return draft.files("chr21.nocontam.map", total / 1.06, written_by=last), total / 1.06


def _pile_up(
    draft: RecipeDraft, rng: Chance, merged: Ints, merged_bytes: float, reference: float
) -> None:
    index_bytes = merged_bytes / one_around(rng, 64.25, 25.4)
    index = draft.add("maqindex_chr21", index_bytes / one_around(rng, 17_679_204, 4_724_464))
    draft.reads(index, merged)
    pileup = draft.add("pileup_chr21", reference / one_around(rng, 881_356, 94_638))
    draft.files("chr21.nocontam.chr.map", index_bytes, written_by=index, read_by=pileup)
    draft.files("chr21.BSnull.bfa", reference, read_by=pileup)
    draft.files("chr21.nocontam.chr.pileup", index_bytes * rng.uniform(0, 10), written_by=pileup)
