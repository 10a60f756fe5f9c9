"""A workflow with its commands as a run or a pool took it: it does not change when the user's file does."""

import os
from functools import reduce
from pathlib import Path

import msgspec

from windrow.errors import InputError, UserError
from windrow.formats.disk import replace_bytes
from windrow.model import File, Runnable, Step, Task, Workflow

LEFT_OUT = (
    *(b',"where":""', b',"stays":""', b',"keep":null', b',"role":""', b',"replicas":1', b',"checkpoint":null'),
    *(b',"mounts":[]', b',"extracts":[]'),
)
"""What most tasks do not have is not written. In a text the quotes would be escaped."""


class RunnableRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file as it is written. `submitted_s` is in that of a pool only."""

    name: str
    tasks: list[Task]
    files: list[File]
    steps: list[Step]
    submitted_s: float = 0.0


def record_of(runnable: Runnable, first: int = 0, end: int | None = None, submitted_s: float = 0.0) -> RunnableRecord:
    """The tasks from `first` on, up to `end`, with all that is needed to run them after those before."""
    workflow = runnable.workflow
    tasks = [workflow.task(number) for number in range(len(workflow))[first:end]]
    named = {name for task in tasks for name in (*task.inputs, *task.outputs)} if len(tasks) < len(workflow) else None
    files = [file for file in workflow.files if named is None or file.id in named]
    return RunnableRecord(workflow.name, tasks, files, list(runnable.steps[first:end]), submitted_s)


def runnable_json(runnable: Runnable, submitted_s: float = 0.0) -> bytes:
    """The content of the file. UserError as for `as_json`."""
    # What most tasks do not need is left out, as it always was; in a text the quotes would be escaped.
    return as_json(record_of(runnable, submitted_s=submitted_s)).replace(b',"disk_bytes":0,"counts":[]', b"")


def write_runnable(path: Path, runnable: Runnable, tasks: int | None = None) -> None:
    """Write it, or its first `tasks` tasks."""
    write_private(path, as_json(record_of(runnable, end=tasks)))


def read_runnable(path: Path, fix: str = "start the workflow again with windrow run") -> Runnable:
    """Read what `write_runnable` wrote. InputError where it cannot be used."""
    return read_submission(path, fix)[0]


def read_submission(path: Path, fix: str = "submit the workflow again") -> tuple[Runnable, float]:
    """Read it, and when it was submitted. InputError where it cannot be used."""
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


def as_json(content: object) -> bytes:
    """As JSON. UserError where a text in it is none: names of files and folders may be any bytes."""
    try:
        return reduce(lambda text, usual: text.replace(usual, b""), LEFT_OUT, msgspec.json.encode(content))
    except UnicodeEncodeError as error:
        raise UserError(f"{error.object!a} has bytes that are not UTF-8; rename it, or run it from elsewhere") from None
