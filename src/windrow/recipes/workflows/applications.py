"""Seven applications of Bent's thesis, measured there: as workflows of pipelines, and as traces of
their I/O.

A pipeline is a chain of stages; many of them run side by side and read the same batch data.
`applications.toml` has the numbers. `application_trace` makes a trace whose figures
(`windrow.profile.measures`) are the rows of tables 2.1 to 2.4: files, traffic, unique and static
bytes by stage and role, traffic by direction, operations by kind; and from which
`windrow.profile.roles` infers the roles again. Sizes of single operations are even, and they are
spread evenly in time; ranges that are moved more often than once are slid over, or scanned again
and again (`pattern`), which the thesis does not tell. Left out: static bytes by direction of SETI,
and 0.13 MB that AMANDA's totals count in another role.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from windrow.files import table_beside
from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.model.trace import READ, WRITE, Files, Stage, Trace
from windrow.model.workflow import Floats
from windrow.recipes.chance import Chance, even_parts
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks

BATCH_FOLDER = "/batch"


@cache
def applications() -> Mapping[str, Mapping[str, Any]]:
    """What is known of each application, by name."""
    return table_beside(__file__)


@cache
def application_trace(name: str, pipelines: int = 1) -> Trace:
    """A trace of `pipelines`, one after another. Files of a pipeline are in /pipeline-N, batch data
    in /batch."""
    application = applications()[name]
    files = Files()
    stages = list[Stage]()
    parts = list[Floats]()
    for pipeline in range(pipelines):
        first = [_number(files, group, pipeline) for group in application["files"]]
        for stage, facts in application["stages"].items():
            rows = np.concatenate(list(_moves(application, stage, first)), axis=1)
            rows = rows[:, np.argsort(rows[0], kind="stable")]
            parts.append(np.vstack([rows, np.full(rows.shape[1], len(stages))]))
            files.sizes |= _sizes(application, stage, len(stages), first)
            stages.append(_stage(stage, pipeline, facts))
        for group, number in zip(application["files"], first, strict=True):
            files.gone[number : number + group["n"]] = [group.get("deleted", False)] * group["n"]
    time_s, *whole = np.concatenate(parts, axis=1)
    op, file, offset, size, stage_of = (column.astype(np.int64) for column in whole)
    return Trace(time_s, np.ones_like(op), stage_of, op, file, offset, size, tuple(stages), files)


def _stage(name: str, pipeline: int, facts: Mapping[str, Any]) -> Stage:
    return Stage(
        name,
        pipeline,
        facts["real_s"],
        minstr=sum(facts["minstr"]),
        memory_bytes=_bytes(sum(facts["memory_mb"])),
    )


def _sizes(
    application: Mapping[str, Any], stage: str, number: int, first: list[int]
) -> dict[tuple[int, int], int]:
    """Of the files that the stage uses, by its number and theirs."""
    found = {}
    for group, first_file in zip(application["files"], first, strict=True):
        if stage in group:
            sizes = even_parts(_bytes(group[stage][0]), group["n"]).tolist()
            for file, size in enumerate(sizes, first_file):
                found[number, file] = size
    return found


def _number(files: Files, group: Mapping[str, Any], pipeline: int) -> int:
    """The number of the first file of the group."""
    if group["role"] == "batch":
        folder = BATCH_FOLDER
    else:
        folder = f"/pipeline-{pipeline + 1}"
    is_written = any(use[2] for use in group.values() if isinstance(use, list))
    made = not group.get("before") and (is_written or group["role"] == "pipeline")
    return min(
        files.number(f"{folder}/{group['name']}-{i + 1}", made=made) for i in range(group["n"])
    )


def _bytes(mb: float) -> int:
    return round(mb * MEGABYTE)


def _moves(application: Mapping[str, Any], stage: str, first: list[int]) -> Iterator[Floats]:
    """Operations of a stage, in pieces: rows of times, kinds, files, offsets and bytes."""
    facts = application["stages"][stage]
    counts = dict(enumerate(facts["ops"]))
    scans = application["pattern"] == "scan"
    for op, column in ((READ, 1), (WRITE, 2)):
        uses = [
            _GroupUse(number, group["n"], *map(_bytes, group[stage][column][:2]))
            for number, group in zip(first, application["files"], strict=True)
            if stage in group and group[stage][column]
        ]
        if not uses:
            continue
        for use, n in zip(uses, _calls(uses, counts.pop(op)), strict=True):
            # Of the time: the last read is after the first write.
            share = (np.arange(n) + (op == READ)) / n
            ranges = _ranges(*use, n, scans=scans)
            yield np.stack([share * facts["real_s"], np.full(n, op), *ranges])
    for op, n in counts.items():
        share = np.arange(n) / max(1, n)
        yield np.stack(np.broadcast_arrays(share * facts["real_s"], op, -1, 0, 0))


class _GroupUse(NamedTuple):
    """What a stage moves of a group of files, the first of which has this number."""

    number: int
    files: int
    traffic: int
    unique: int


def _calls(uses: Sequence[_GroupUse], count: int) -> list[int]:
    """How many of all operations each gets: one for each file, at least, and none longer than
    what is moved of a file; the others by traffic."""
    calls = np.array(
        [use.files * max(1, -(-use.traffic // max(1, use.unique))) for use in uses], dtype=np.int64
    )
    weights = np.array([use.traffic for use in uses]) + 1e-9
    rest = np.maximum((count - calls.sum()) * weights / weights.sum(), 0)
    calls += rest.astype(np.int64)
    calls[np.argmax(weights)] += max(0, count - calls.sum())
    found: list[int] = calls.tolist()
    return found


def _ranges(first: int, count: int, traffic: int, unique: int, calls: int, *, scans: bool) -> Ints:
    """File, offset and bytes of each operation: together they move the traffic, and touch all that
    is unique."""
    found = []
    parts = (even_parts(total, count).tolist() for total in (calls, traffic, min(unique, traffic)))
    for file, (n, moved, touched) in enumerate(zip(*parts, strict=True), first):
        ends = np.arange(n + 1, dtype=np.int64) * moved // n
        begins = ends[:-1]
        sizes = np.diff(ends)
        last = int(sizes[-1])
        offsets = begins * (touched - last) // max(1, moved - last)
        if scans:
            offsets = np.minimum(begins % max(1, touched), touched - sizes)
        found.append(np.stack([np.full(n, file), np.maximum(offsets, 0), sizes]))
    return np.concatenate(found, axis=1)


def build_pipelines(_rng: Chance, tasks: int, *, application: str, length: float) -> Workflow:
    """Pipelines of exactly `tasks` tasks in all; the last one may end early.

    `length` stretches run times and private data; batch data stay as they are.
    """
    require(0 < length <= 1e6, "pipelines", "length must be above 0 and at most 1,000,000")
    facts = applications()[application]
    draft = RecipeDraft(f"{application}-{tasks}")
    stages = facts["stages"]
    numbers = {}
    require_tasks("pipelines", tasks, len(stages))
    for depth, (stage, known) in enumerate(stages.items()):
        many = tasks // len(stages) + (depth < tasks % len(stages))
        numbers[stage] = draft.add(stage, np.full(many, known["real_s"] * length))
    for file in facts["flow"]:
        name = file["name"]
        size = file["mb"] * MEGABYTE
        readers = [numbers[stage] for stage in file["to"]]
        if "batch" in file:
            draft.files(name, size, read_by=np.concatenate(readers), role="batch")
            continue
        writer = numbers.get(file.get("from"))
        if writer is None:
            many = len(readers[0])
        else:
            many = len(writer)
        made = draft.files(numbered(f"{name}_{{}}", many), size * length, written_by=writer)
        for reader in readers:
            draft.reads(reader, made[: len(reader)])
    return draft.workflow()
