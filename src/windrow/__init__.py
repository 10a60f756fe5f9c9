"""Windrow: scientific workflows on batch-scheduled clusters, and such clusters simulated exactly
and fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Not by name below: a submodule hides a lazy name that is spelled the same. It is light: see its
# own law.
from windrow.shape import shape
from windrow.version import __version__

if TYPE_CHECKING:
    from windrow.api import Run, attach, plan, run, runs
    from windrow.errors import InputError, OutsideError, UserError, WindrowError
    from windrow.formats import read_log, read_workflow, write_log, write_workflow
    from windrow.model import File, Log, NodeShape, Task, Workflow
    from windrow.python.executor import Executor
    from windrow.python.flow import Flow
    from windrow.recipes import generate_log, generate_workflow
    from windrow.sim import Cluster, simulate
    from windrow.trials.compare import compare

# Names are loaded when first used, so that `import windrow` costs next to nothing.
_ROOMS = {
    "windrow.api": ("Run", "attach", "plan", "run", "runs"),
    "windrow.errors": ("InputError", "OutsideError", "UserError", "WindrowError"),
    "windrow.formats": ("read_log", "read_workflow", "write_log", "write_workflow"),
    "windrow.trials.compare": ("compare",),
    "windrow.model": ("File", "Log", "NodeShape", "Task", "Workflow"),
    "windrow.python.executor": ("Executor",),
    "windrow.python.flow": ("Flow",),
    "windrow.recipes": ("generate_log", "generate_workflow"),
    "windrow.sim": ("Cluster", "simulate"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Cluster",
    "Executor",
    "File",
    "Flow",
    "InputError",
    "Log",
    "NodeShape",
    "OutsideError",
    "Run",
    "Task",
    "UserError",
    "WindrowError",
    "Workflow",
    "__version__",
    "attach",
    "compare",
    "generate_log",
    "generate_workflow",
    "plan",
    "read_log",
    "read_workflow",
    "run",
    "runs",
    "shape",
    "simulate",
    "write_log",
    "write_workflow",
]


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    value: object = getattr(import_module(_ROOM_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
