"""The workflow as a run took it, beside its journal: what is executed does not change when the user's file does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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
    """Write it, whole or not at all; private, since commands may hold what is nobody's business."""
    workflow = runnable.workflow
    content = encoded(_Content(workflow.name, list(workflow), list(workflow.files), list(runnable.steps)))
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
        raise InputError(path, f"cannot be read ({error})", fix="start the workflow anew with windrow run") from error
    return Runnable(Workflow.from_tasks(content.name, content.tasks, content.files), tuple(content.steps))
