"""Seven applications of Bent's thesis, measured there: as workflows of pipelines, and as traces of their I/O.

A pipeline is a chain of stages; many of them run side by side and read the same batch data. `applications.toml` has the
numbers. `application_trace` makes a trace whose figures (`windrow.profile.measures`) are the rows of tables 2.1 to 2.4:
files, traffic, unique and static bytes by stage and role, traffic by direction, operations by kind; and from which
`windrow.profile.roles` infers the roles again. Sizes of single operations are even, and they are spread evenly in time;
ranges that are moved more often than once are slid over, or scanned again and again (`pattern`), which the thesis does
not tell. Left out: static bytes by direction of SETI, and 0.13 MB that AMANDA's totals count in another role.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

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


def application_trace(name: str, pipelines: int = 1) -> Trace:
    """A trace of `pipelines`, one after another. Files of a pipeline are in /pipeline-N, batch data in /batch."""
    application, files = applications()[name], Files()
    stages, parts = list[Stage](), list[Floats]()
    for pipeline in range(pipelines):
        first = [_number(files, group, pipeline) for group in application["files"]]
        for stage, facts in application["stages"].items():
            rows = np.concatenate(list(_moves(application, stage, first)), axis=1)
            parts.append(np.vstack([rows[:, np.argsort(rows[0], kind="stable")], np.full(rows.shape[1], len(stages))]))
            for group, number in zip(application["files"], first, strict=True):
                sizes = even_parts(_bytes(group[stage][0]), group["n"]).tolist() if stage in group else []
                files.sizes |= {(len(stages), number + i): size for i, size in enumerate(sizes)}
            memory = _bytes(sum(facts["memory_mb"]))
            stages.append(Stage(stage, pipeline, facts["real_s"], minstr=sum(facts["minstr"]), memory_bytes=memory))
        for group, number in zip(application["files"], first, strict=True):
            files.gone[number : number + group["n"]] = [group.get("deleted", False)] * group["n"]
    time_s, *whole = np.concatenate(parts, axis=1)
    op, file, offset, size, stage_of = (column.astype(np.int64) for column in whole)
    return Trace(time_s, np.ones_like(op), stage_of, op, file, offset, size, tuple(stages), files)


def _number(files: Files, group: Mapping[str, Any], pipeline: int) -> int:
    """The number of the first file of the group."""
    folder = BATCH_FOLDER if group["role"] == "batch" else f"/pipeline-{pipeline + 1}"
    is_written = any(use[2] for use in group.values() if isinstance(use, list))
    made = not group.get("before") and (is_written or group["role"] == "pipeline")
    return min(files.number(f"{folder}/{group['name']}-{i + 1}", made=made) for i in range(group["n"]))


def _bytes(mb: float) -> int:
    return round(mb * MEGABYTE)


def _moves(application: Mapping[str, Any], stage: str, first: list[int]) -> Iterator[Floats]:
    """Operations of a stage, in pieces: rows of times, kinds, files, offsets and bytes."""
    facts = application["stages"][stage]
    counts = dict(enumerate(facts["ops"]))
    for op, column in ((READ, 1), (WRITE, 2)):
        uses = [
            (number, group["n"], _bytes(group[stage][column][0]), _bytes(group[stage][column][1]))
            for number, group in zip(first, application["files"], strict=True)
            if stage in group and group[stage][column]
        ]
        # One operation for each file, at least, and none longer than what is moved of a file; the others by traffic.
        calls = np.array([n * max(1, -(-traffic // max(1, unique))) for _, n, traffic, unique in uses], dtype=np.int64)
        weights = np.array([traffic for _, _, traffic, _ in uses]) + 1e-9
        if uses:
            calls += np.maximum((counts[op] - calls.sum()) * weights / weights.sum(), 0).astype(np.int64)
            calls[np.argmax(weights)] += max(0, counts.pop(op) - calls.sum())
        for use, n in zip(uses, calls.tolist(), strict=True):
            share = (np.arange(n) + (op == READ)) / n  # of the time: the last read is after the first write
            ranges = _ranges(*use, n, scans=application["pattern"] == "scan")
            yield np.stack([share * facts["real_s"], np.full(n, op), *ranges])
    for op, n in counts.items():
        yield np.stack(np.broadcast_arrays(np.arange(n) / max(1, n) * facts["real_s"], op, -1, 0, 0))


def _ranges(first: int, count: int, traffic: int, unique: int, calls: int, *, scans: bool) -> Ints:
    """File, offset and bytes of each operation: together they move the traffic, and touch all that is unique."""
    found = []
    parts = (even_parts(total, count).tolist() for total in (calls, traffic, min(unique, traffic)))
    for file, (n, moved, touched) in enumerate(zip(*parts, strict=True), first):
        ends = np.arange(n + 1, dtype=np.int64) * moved // n
        begins, sizes = ends[:-1], np.diff(ends)
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
    facts, draft = applications()[application], RecipeDraft(f"{application}-{tasks}")
    stages, numbers = facts["stages"], {}
    require_tasks("pipelines", tasks, len(stages))
    for depth, (stage, known) in enumerate(stages.items()):
        many = tasks // len(stages) + (depth < tasks % len(stages))
        numbers[stage] = draft.add(stage, np.full(many, known["real_s"] * length))
    for file in facts["flow"]:
        name, size, readers = file["name"], file["mb"] * MEGABYTE, [numbers[stage] for stage in file["to"]]
        if "batch" in file:
            draft.files(name, size, read_by=np.concatenate(readers), role="batch")
            continue
        writer = numbers.get(file.get("from"))
        many = len((readers[:1] if writer is None else [writer])[0])
        made = draft.files(numbered(f"{name}_{{}}", many), size * length, written_by=writer)
        for reader in readers:
            draft.reads(reader, made[: len(reader)])
    return draft.workflow()
