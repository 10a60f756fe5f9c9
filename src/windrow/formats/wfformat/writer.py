"""Writing WfFormat 1.5, task by task: the text never stands in memory as a whole.

The reader's rule for kinds (`reader`) is used backwards: a kind goes into `name`, if a reader
finds it. Only a kind that is empty or equal to the id cannot be found there, and is then said by
the extra field `category`. Whole nodes, disk and named resources, which the format does not know,
go into extra fields.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import BinaryIO

import msgspec
from msgspec import UNSET

from windrow.formats.disk import AnyPath, replace_bytes
from windrow.formats.wfformat.schema import CommandLine, ExecutedTask, SpecifiedFile, SpecifiedTask
from windrow.model import Adjacency, Workflow

_ITEMS_PER_WRITE = 4096


def write_wfformat(workflow: Workflow, path: AnyPath) -> None:
    """Write the workflow as WfFormat 1.5, one task or file a line; gzip if the name ends in
    `.gz`.

    Reading it back gives an equal workflow. Run times stand under `execution`, if the format
    wants them; that nothing was executed shows in its makespan of 0 and its date of 1970.
    """
    encode = msgspec.json.encode
    with replace_bytes(path) as stream:
        stream.write(
            b'{"name":'
            + encode(workflow.name)
            + b',"description":"Written by Windrow","schemaVersion":"1.5",'
        )
        stream.write(b'"workflow":{"specification":{"tasks":[\n')
        _write_items(stream, _specified_tasks(workflow))
        stream.write(b'\n],"files":[\n')
        _write_items(stream, (SpecifiedFile(file.id, file.size_bytes) for file in workflow.files))
        stream.write(
            b"\n"
            b']},"execution":{"makespanInSeconds":0,"executedAt":"1970-01-01T00:00:00Z","tasks":[\n'
        )
        _write_items(stream, _executed_tasks(workflow))
        stream.write(b"\n]}}}\n")


def _specified_tasks(workflow: Workflow) -> Iterator[SpecifiedTask]:
    file_ids = [file.id for file in workflow.files]
    rows = zip(
        workflow.ids,
        workflow.kinds,
        _names(workflow.parents, workflow.ids),
        _names(workflow.children, workflow.ids),
        _names(workflow.inputs, file_ids),
        _names(workflow.outputs, file_ids),
        strict=True,
    )
    for task_id, kind, parents, children, inputs, outputs in rows:
        plain = kind not in ("", task_id)  # then reading the name alone gives the kind
        name, category = (kind, UNSET) if plain else (task_id, kind)
        yield SpecifiedTask(name, task_id, parents, children, inputs, outputs, category)


def _executed_tasks(workflow: Workflow) -> Iterator[ExecutedTask]:
    rows = zip(workflow.ids, workflow.runtime_s.tolist(), workflow.needs(), strict=True)
    for i, (task_id, runtime_s, (cores, memory_bytes, nodes, disk_bytes, counts)) in enumerate(
        rows
    ):
        words = workflow.commands.get(i)
        if words:
            command = CommandLine(words[0], list(words[1:]))
        else:
            command = None
        needs = (cores, memory_bytes or None, nodes or None, disk_bytes or None, dict(counts))
        yield ExecutedTask(task_id, runtime_s, command, *needs)


def _names(adjacency: Adjacency, ids: Sequence[str]) -> Iterator[list[str]]:
    """For each vertex, the ids of its neighbours. Some thousand vertices at a time become Python
    numbers."""
    for first in range(0, adjacency.vertices, _ITEMS_PER_WRITE):
        start = adjacency.start[first : first + _ITEMS_PER_WRITE + 1]
        numbers = adjacency.index[start[0] : start[-1]].tolist()
        ends = (start - start[0]).tolist()
        for begin, end in pairwise(ends):
            yield [ids[number] for number in numbers[begin:end]]


def _write_items(stream: BinaryIO, items: Iterator[msgspec.Struct]) -> None:
    encode = msgspec.json.Encoder().encode
    separator = b""
    while chunk := [encode(item) for item in islice(items, _ITEMS_PER_WRITE)]:
        stream.write(separator + b",\n".join(chunk))
        separator = b",\n"
