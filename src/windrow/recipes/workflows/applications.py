"""Seven applications of Bent's thesis, measured there: as workflows of pipelines, and as traces of their I/O.

A pipeline is a chain of stages; many of them run side by side and read the same batch data. `applications.toml` has the
numbers. `application_trace` makes a trace whose figures (`windrow.profile.measures`) are the rows of tables 2.1 to 2.4:
files, traffic, unique and static bytes by stage and role, traffic by direction, operations by kind; and from which
`windrow.profile.roles` infers the roles again. Sizes of single operations are even, and they are spread evenly in time;
ranges that are moved more often than once are slid over, or scanned again and again (`pattern`), which the thesis does
not tell. Left out: static bytes by direction of SETI, and 0.13 MB that AMANDA's totals count in another role.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from windrow.files import table_beside
from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.model.trace import KINDS, READ, WRITE, Files, Stage, Trace
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks

BATCH_FOLDER = "/batch"


@cache
def applications() -> Mapping[str, Mapping[str, Any]]:
    """What is known of each application, by name."""
    return table_beside(__file__)


@dataclass(frozen=True, slots=True)
class _Use:
    """A stage moves bytes of a group of files, one way."""

    group: int
    count: int
    traffic: int
    unique: int

    @property
    def least(self) -> int:
        """How many operations it takes at least: one for each file, none longer than what is moved of a file."""
        return self.count * max(1, -(-self.traffic // max(1, self.unique)))


def application_trace(name: str, pipelines: int = 1) -> Trace:
    """A trace of so many pipelines, one after another. Files of a pipeline are in /pipeline-N, batch data in /batch."""
    application = applications()[name]
    groups, files = application["files"], Files()
    parts: dict[str, list[Any]] = {column: [] for column in ("time_s", "stage", "op", "file", "offset", "bytes")}
    stages: list[Stage] = []
    for pipeline in range(pipelines):
        first = [_number(files, group, pipeline) for group in groups]
        for stage, facts in application["stages"].items():
            memory = int(sum(facts["memory_mb"]) * MEGABYTE)
            known = Stage(stage, pipeline, facts["real_s"], 0.0, sum(facts["minstr"]), memory)
            columns = [np.concatenate(column) for column in zip(*_moves(application, stage, first), strict=True)]
            order = np.argsort(columns[0], kind="stable")
            for column, values in zip(("time_s", "op", "file", "offset", "bytes"), columns, strict=True):
                parts[column].append(values[order])
            parts["stage"].append(np.full(len(order), len(stages)))
            for group, number in zip(groups, first, strict=True):
                for i in range(group["n"]) if stage in group else ():
                    files.sizes[len(stages), number + i] = int(_split(_bytes(group[stage][0]), group["n"])[i])
            stages.append(known)
        for group, number in zip(groups, first, strict=True):
            files.gone[number : number + group["n"]] = [group.get("deleted", False)] * group["n"]
    whole: dict[str, Any] = {column: np.concatenate(values) for column, values in parts.items()}
    return Trace(pid=np.ones_like(whole["op"]), stages=tuple(stages), files=files, **whole)


def _number(files: Files, group: Mapping[str, Any], pipeline: int) -> int:
    """The number of the first file of the group."""
    folder = BATCH_FOLDER if group["role"] == "batch" else f"/pipeline-{pipeline + 1}"
    is_written = any(use[2] for use in group.values() if isinstance(use, list))
    made = not group.get("before") and (is_written or group["role"] == "pipeline")
    return min(files.number(f"{folder}/{group['name']}-{i + 1}", made=made) for i in range(group["n"]))


def _bytes(mb: float) -> int:
    return round(mb * MEGABYTE)


def _split(total: int, parts: int) -> Ints:
    """`total` in so many parts that differ by at most one."""
    return np.diff(np.arange(parts + 1, dtype=np.int64) * total // parts)


def _moves(application: Mapping[str, Any], stage: str, first: list[int]) -> Iterator[tuple[Any, ...]]:
    """Operations of a stage, in pieces: times, kinds, files, offsets and bytes."""
    facts = application["stages"][stage]
    counts = dict(zip(range(len(KINDS)), facts["ops"], strict=True))
    for op, column in ((READ, 1), (WRITE, 2)):
        uses = [
            _Use(number, group["n"], *map(_bytes, group[stage][column]))
            for number, group in zip(first, application["files"], strict=True)
            if stage in group and group[stage][column]
        ]
        calls = np.array([use.least for use in uses], dtype=np.int64)
        weights = np.array([use.traffic for use in uses], dtype=np.float64) + 1e-9
        if uses:
            more = np.floor((counts[op] - calls.sum()) * weights / weights.sum()).astype(np.int64)
            calls += np.maximum(more, 0)
            calls[np.argmax(weights)] += max(0, counts[op] - calls.sum())
        for use, n in zip(uses, calls.tolist(), strict=True):
            share = (np.arange(n) + (op == READ)) / n  # of the time: the last read is after the first write
            yield share * facts["real_s"], np.full(n, op), *_ranges(use, n, application["pattern"] == "scan")
        counts[op] = 0 if uses else counts[op]
    for op, n in counts.items():
        nothing = np.zeros(n, dtype=np.int64)
        yield np.arange(n) / max(1, n) * facts["real_s"], np.full(n, op), nothing - 1, nothing, nothing


def _ranges(use: _Use, calls: int, scans: bool) -> tuple[Ints, Ints, Ints]:
    """File, offset and bytes of each operation: together they move the traffic, and touch all that is unique."""
    found: list[tuple[Ints, Ints, Ints]] = []
    parts = (_split(total, use.count).tolist() for total in (calls, use.traffic, min(use.unique, use.traffic)))
    for i, (n, traffic, unique) in enumerate(zip(*parts, strict=True)):
        ends = np.arange(n + 1, dtype=np.int64) * traffic // n
        begins, sizes = ends[:-1], np.diff(ends)
        last = int(sizes[-1])
        if scans:
            offsets = np.minimum(begins % max(1, unique), unique - sizes)
        else:
            offsets = begins * (unique - last) // max(1, traffic - last)
        found.append((np.full(n, use.group + i), np.maximum(offsets, 0), sizes))
    file, offset, size = (np.concatenate(column) for column in zip(*found, strict=True))
    return file, offset, size


def build_pipelines(_rng: Chance, tasks: int, *, application: str, length: float) -> Workflow:
    """Pipelines of exactly `tasks` tasks in all; the last one may end early. Groups of files are one file each.

    Left out are files that only one stage uses, and writes, which are not the workflow's, and those below 5 kB, which
    are printed as 0.00 MB. What is changed in place is an input and an output. `length` stretches run times and private
    data; batch data stay as they are.
    """
    require(0 < length <= 1e6, "pipelines", "length must be above 0 and at most 1,000,000")
    facts, draft = applications()[application], RecipeDraft(f"{application}-{tasks}")
    stages = list(facts["stages"])
    require_tasks("pipelines", tasks, len(stages))
    many = {stage: tasks // len(stages) + (depth < tasks % len(stages)) for depth, stage in enumerate(stages)}
    numbers = {s: draft.add(s, np.full(many[s], facts["stages"][s]["real_s"] * length)) for s in stages}
    for group in facts["files"]:
        if "copy_of" not in group:
            copies = [other for other in facts["files"] if other.get("copy_of") == group["name"]]
            readers, writers = (
                [s for s in stages if any(s in each and each[s][i] for each in (group, *copies))] for i in (1, 2)
            )
            size = max(use[0] for use in group.values() if isinstance(use, list)) * MEGABYTE
            if size:
                _add_group(draft, numbers, group, readers, writers, size * (1 if group["role"] == "batch" else length))
    return draft.workflow()


def _add_group(
    draft: RecipeDraft,
    numbers: Mapping[str, Ints],
    group: Mapping[str, Any],
    readers: list[str],
    writers: list[str],
    size_bytes: float,
) -> None:
    """A group as one file of each pipeline, or of all; what is changed in place as an input and an output."""
    name, role, stages = group["name"], group["role"], list(numbers)
    if role == "batch":
        draft.files(name, size_bytes, read_by=np.concatenate([numbers[stage] for stage in readers]), role=role)
        return
    if role == "endpoint" and readers and (group.get("before") or not writers):
        inputs = draft.files(numbered(f"{name}_{{}}", len(numbers[readers[0]])), size_bytes)
        for stage in readers:
            draft.reads(numbers[stage], inputs[: len(numbers[stage])])
    after = [stage for stage in readers if writers and stages.index(stage) > stages.index(writers[0])]
    if writers and (role == "endpoint" or after):
        writer = numbers[writers[-1 if role == "endpoint" else 0]]
        outputs = draft.files(numbered(f"{name}_out_{{}}", len(writer)), size_bytes, written_by=writer)
        for stage in after if role == "pipeline" else ():
            draft.reads(numbers[stage], outputs[: len(numbers[stage])])
