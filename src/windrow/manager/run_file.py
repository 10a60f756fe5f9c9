"""The workflow as a run took it, beside its journal: what is executed does not change when the user's file does."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

import msgspec

from windrow.errors import InputError, UserError
from windrow.formats.disk import replace_bytes
from windrow.model import File, Runnable, Step, Task, Workflow


@dataclass(frozen=True, slots=True)
class _Content:
    name: str
    tasks: list[Task]
    files: list[File]
    steps: list[Step]


def write_runnable(path: Path, runnable: Runnable) -> None:
    """Write it."""
    workflow = runnable.workflow
    _write(path, encoded(_Content(workflow.name, list(workflow), list(workflow.files), list(runnable.steps))))


def outside_inputs(runnable: Runnable, task: int, made: Container[str] = ()) -> Iterator[tuple[str, Path]]:
    """The files that the task reads and no task makes: their names in the workflow, and where they are."""
    workflow = runnable.workflow
    for f in workflow.inputs.of(task).tolist():
        name = workflow.files[f].id
        if not any(str(place) in made for place in (PurePath(name), *PurePath(name).parents)):
            yield name, Path(runnable.steps[task].workdir, name)


def write_inputs(path: Path, runnable: Runnable) -> None:
    """Write down size and time of all outside inputs, so that a change is seen however old the new file is."""
    found: dict[str, tuple[int, int]] = {}
    made = made_files(runnable)
    for task in range(len(runnable.workflow)):
        for _, place in outside_inputs(runnable, task, made):
            with suppress(OSError):
                seen = place.stat()
                found[str(place)] = (seen.st_size, seen.st_mtime_ns)
    _write(path, encoded(found))


def made_files(runnable: Runnable) -> frozenset[str]:
    """The names of all files that tasks make."""
    workflow = runnable.workflow
    return frozenset(workflow.files[f].id for f in workflow.outputs.index.tolist())


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all; private, since commands may hold what is nobody's business."""
    with replace_bytes(path) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)


def encoded(content: object) -> bytes:
    """As JSON. UserError where a text in it is none: names of files and folders may be any bytes."""
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError as error:
        raise UserError(f"{error.object!a} has bytes that are not UTF-8; rename it, or run it from elsewhere") from None


def read_runnable(path: Path) -> Runnable:
    """Read what `write_runnable` wrote."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_Content)
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(path, f"cannot be read ({error})", fix="start the workflow again with windrow run") from error
    return Runnable(Workflow.from_tasks(content.name, content.tasks, content.files), tuple(content.steps))
