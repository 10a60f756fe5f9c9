"""A workflow with its commands as a run or a pool took it: it does not change when the user's file
does.

And, in a file of its own, how what a run reads and does not make was when the run began.
"""

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path, PurePath

import msgspec

from windrow.errors import InputError, UserError
from windrow.formats.disk import replace_bytes
from windrow.model import File, Runnable, Step, Task, Workflow
from windrow.records.compact import as_json


class RunnableRecord(msgspec.Struct, frozen=True):
    """The file as it is written. `submitted_s` is in that of a pool only."""

    name: str
    tasks: list[Task]
    files: list[File]
    steps: list[Step]
    submitted_s: float = 0.0


def record_of(
    runnable: Runnable, first: int = 0, end: int | None = None, submitted_s: float = 0.0
) -> RunnableRecord:
    """The tasks from `first` on, up to `end`, with all that is needed to run them after those
    before."""
    workflow = runnable.workflow
    tasks = [workflow.task(number) for number in range(len(workflow))[first:end]]
    if len(tasks) < len(workflow):
        named = {name for task in tasks for name in (*task.inputs, *task.outputs)}
    else:
        named = None
    files = [file for file in workflow.files if named is None or file.id in named]
    return RunnableRecord(workflow.name, tasks, files, list(runnable.steps[first:end]), submitted_s)


def runnable_json(runnable: Runnable, submitted_s: float = 0.0) -> bytes:
    """The content of the file. UserError as for `as_json`."""
    return as_json(record_of(runnable, submitted_s=submitted_s))


def write_runnable(path: Path, runnable: Runnable, tasks: int | None = None) -> None:
    """Write it, or its first `tasks` tasks."""
    write_private(path, as_json(record_of(runnable, end=tasks)))


def read_runnable(path: Path, fix: str = "start the workflow again with windrow run") -> Runnable:
    """Read what `write_runnable` wrote. InputError if it cannot be used."""
    return read_submission(path, fix)[0]


def read_submission(path: Path, fix: str = "submit the workflow again") -> tuple[Runnable, float]:
    """Read it, and when it was submitted. InputError if it cannot be used."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=RunnableRecord)
        workflow = Workflow.from_tasks(content.name, content.tasks, content.files)
    except (OSError, msgspec.DecodeError, UserError) as error:
        raise InputError(path, f"cannot be read ({error})", fix=fix) from error
    return Runnable(workflow, tuple(content.steps)), content.submitted_s


def write_private(path: Path, content: bytes) -> None:
    """Whole or not at all; private, since commands may hold secrets."""
    with replace_bytes(path) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)


def outside_inputs(
    runnable: Runnable, task: int, made: Container[str] = ()
) -> Iterator[tuple[str, Path]]:
    """The files that the task reads and no task makes: their names in the workflow, and where they
    are."""
    workflow = runnable.workflow
    for f in workflow.inputs.of(task).tolist():
        name = workflow.files[f].id
        if not any(str(place) in made for place in (PurePath(name), *PurePath(name).parents)):
            yield name, Path(runnable.steps[task].workdir, name)


def write_inputs(path: Path, runnable: Runnable) -> None:
    """Write down size and time of all outside inputs, so that a change is seen however old the new
    file is.

    What was written down before stays.
    """
    before = inputs_at(path)
    found = dict[str, tuple[int, int]]()
    made = made_files(runnable)
    for task in range(len(runnable.workflow)):
        for _, place in outside_inputs(runnable, task, made):
            with suppress(OSError):
                seen = place.stat()
                found[str(place)] = (seen.st_size, seen.st_mtime_ns)
    write_private(path, as_json(found | before))


def inputs_at(path: Path) -> dict[str, tuple[int, int]]:
    """What was written down; nothing if that cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[int, int]])
    except (OSError, msgspec.DecodeError):
        return {}


def made_files(runnable: Runnable) -> frozenset[str]:
    """The names of all files that tasks make."""
    workflow = runnable.workflow
    return frozenset(workflow.files[f].id for f in workflow.outputs.index.tolist())
