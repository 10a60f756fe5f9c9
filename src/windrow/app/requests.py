"""What others ask of a run's manager, by files in the run's folder: to stop, to run tasks again, to add tasks.

A request is whole or not there. It is gone when it is in the journal, or when it cannot be followed: who asked
looks into the journal. One that is made twice is followed once.
"""

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from windrow.app.runs import RunPaths, RunView
from windrow.errors import UserError
from windrow.files import disk_faults
from windrow.manager.events import TasksAdded
from windrow.manager.manager import Manager
from windrow.records.runnable_file import as_json

_RETRY, _ADD = "retry-", "add-"


def follow_requests(manager: Manager) -> None:
    """Do what others have asked of the run's manager."""
    for request in sorted(manager.folder.path.glob(f"{_RETRY}*")):
        names = msgspec.json.decode(request.read_bytes(), type=list[str])
        manager.run_again([manager.core.work.workflow.number(name) for name in names])
        request.unlink(missing_ok=True)
    for request in sorted(manager.folder.path.glob(f"{_ADD}*")):
        with suppress(UserError):  # who asked sees that it was not added, and looks why
            manager.add(msgspec.json.decode(request.read_bytes(), type=TasksAdded))
            manager.run_again(())
        request.unlink(missing_ok=True)


def ask_to_stop(paths: RunPaths) -> None:
    """Ask the manager of the run to stop it."""
    with disk_faults(f"{paths.stop} cannot be written"):
        paths.stop.touch(mode=0o600)


def ask_to_retry(told: RunView, tasks: Sequence[str]) -> bool:
    """Ask the manager of the run to run these tasks again; whether it was heard before its manager left."""
    return _was_heard(told, f"{_RETRY}{secrets.token_hex(4)}", as_json(list(tasks)))


def ask_to_add(told: RunView, added: TasksAdded) -> bool:
    """Ask the manager of the run to add these tasks; whether it was heard before its manager left."""
    return _was_heard(told, f"{_ADD}{added.id}", as_json(added))


def _was_heard(told: RunView, name: str, content: bytes) -> bool:
    """Leave a request for the run's manager, and wait until it is gone."""
    request = told.paths.path / name
    with disk_faults(f"{request} cannot be written"):
        half = told.paths.path / f".{name}"
        half.write_bytes(content)
        half.rename(request)
    while request.exists():
        told.refresh()
        if told.holder is None:
            request.unlink(missing_ok=True)
            return False
        time.sleep(0.1)
    told.refresh()
    return True
