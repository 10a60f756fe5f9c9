"""What others ask of a run's manager, by files in the run's folder: to stop, to run tasks again, to
add tasks.

A request is whole or not there. It is gone when it is in the journal, or when it cannot be
followed: who asked looks into the journal. One that is made twice is followed once.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from windrow.app.runs import RunPaths, RunView
from windrow.deletion import discard, put
from windrow.errors import OutsideError, UserError
from windrow.files import disk_faults, patiently
from windrow.manager.manager import Manager
from windrow.records.compact import as_json
from windrow.story.events import TasksAdded
from windrow.story.states import TaskState

if TYPE_CHECKING:
    from windrow.app.arrivals import Arrivals

NEW = "new-"
AMEND = "amend-"
CANCEL = "cancel-"
RANK = "rank-"
"""How requests of programs about their tasks begin (`app.new_tasks`)."""
_RETRY = "retry-"
_ADD = "add-"
_TAKEN_IN = (NEW, AMEND, CANCEL, RANK)
_REQUESTS = (_RETRY, _ADD, *_TAKEN_IN)
REQUEST_S = 0.02
"""How often one looks for requests, and for whether they were followed, of a run that is held."""


def is_request(name: str) -> bool:
    """Whether a file of this name in a run's folder asks its manager for something."""
    return name.startswith(_REQUESTS)


def follow_requests(manager: Manager, arrivals: Callable[[], Arrivals]) -> bool:
    """Do what others have asked of the run's manager; whether they have. `arrivals`: who takes
    tasks of programs."""
    folder = manager.folder.path
    asked = [folder / name for name in sorted(filter(is_request, _names_in(folder)))]
    for request in asked:
        if request.name.startswith(_TAKEN_IN):
            if not arrivals().take(request):
                continue
        elif request.name.startswith(_ADD):
            with suppress(UserError):  # who asked sees that it was not added, and looks why
                manager.add(msgspec.json.decode(request.read_bytes(), type=TasksAdded))
        else:
            names = msgspec.json.decode(request.read_bytes(), type=list[str])
            manager.run_again([manager.core.work.workflow.number(name) for name in names])
        discard(request)
    return bool(asked)


def _names_in(folder: Path) -> list[str]:
    """OutsideError if the folder is gone, with all that the run could be known by."""
    with disk_faults(f"{folder} cannot be read"):
        try:
            return patiently(lambda: os.listdir(folder))  # noqa: PTH208  (fifty times a second, while a run is held)
        except FileNotFoundError:
            raise OutsideError(
                f"{folder}: the run's folder was deleted or moved by someone while the run was "
                "managed; its jobs end by themselves. Start again with windrow run"
            ) from None


def ask_to_stop(paths: RunPaths) -> None:
    """Ask the manager of the run to stop it."""
    with disk_faults(f"{paths.stop} cannot be written"):
        paths.stop.touch(mode=0o600)


def ask_to_retry(told: RunView, tasks: Sequence[int]) -> bool:
    """Ask the manager of the run to run these tasks again; whether it was heard before its manager
    left. UserError if that cannot be now."""
    return was_heard(told, leave_retry(told, tasks))


def ask_to_add(told: RunView, added: TasksAdded) -> bool:
    """Ask the manager of the run to add these tasks; whether it was heard before its manager
    left."""
    return was_heard(told, leave_addition(told, added))


def leave_retry(told: RunView, tasks: Sequence[int]) -> Path:
    """Leave the request that these tasks run again, for the manager that there is or will be.

    UserError if one that needs them is in a job already.
    """
    workflow = told.runnable.workflow
    states = [task.state for task in told.story.tasks]
    in_a_job = (TaskState.SUBMITTED, TaskState.RUNNING)
    if busy := [task for task in workflow.children.below(tasks) if states[task] in in_a_job]:
        raise UserError(
            f"task {workflow.ids[min(busy)]} depends on what is to run again, and is already in "
            "a job; "
            f"wait for it, or stop the run first (windrow cancel {told.paths.name})"
        )
    names = [workflow.ids[task] for task in tasks]
    return _leave(told, f"{_RETRY}{secrets.token_hex(4)}", as_json(names))


def leave_addition(told: RunView, added: TasksAdded) -> Path:
    """Leave the request that these tasks join the run."""
    return _leave(told, f"{_ADD}{added.id}", as_json(added))


def _leave(told: RunView, name: str, content: bytes) -> Path:
    request = told.paths.path / name
    with disk_faults(f"{request} cannot be written"):
        half = told.paths.path / f".{name}"
        half.write_bytes(content)
        put(half, request)
    return request


def was_heard(told: RunView, request: Path) -> bool:
    """Wait until the request is gone; whether the manager took it before it left."""
    while request.exists():
        told.refresh()
        if told.holder is None:
            discard(request)
            return False
        time.sleep(0.1 if told.story.held is None else REQUEST_S)
    told.refresh()
    return True
