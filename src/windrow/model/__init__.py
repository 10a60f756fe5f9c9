"""Values: workflows, tasks, files, nodes, logs, durations. No I/O, no randomness, no clock."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.model.duration import NEVER_S, format_duration, is_never, parse_duration
    from windrow.model.graph import Adjacency, CycleError, order_and_levels
    from windrow.model.log import Log, Repairs
    from windrow.model.resources import NodeShape
    from windrow.model.runnable import Runnable, Step
    from windrow.model.workflow import File, Task, Workflow, WorkflowError

# Names are loaded when first used: compute nodes need `resources` alone, and not numpy.
_MODULES = {
    "duration": ("NEVER_S", "format_duration", "is_never", "parse_duration"),
    "graph": ("Adjacency", "CycleError", "order_and_levels"),
    "log": ("Log", "Repairs"),
    "resources": ("NodeShape",),
    "runnable": ("Runnable", "Step"),
    "workflow": ("File", "Task", "Workflow", "WorkflowError"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "NEVER_S", "Adjacency", "CycleError", "File", "Log", "NodeShape", "Repairs", "Runnable", "Step",
    "Task",
    "Workflow", "WorkflowError", "format_duration", "is_never", "order_and_levels",
    "parse_duration",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'windrow.model' has no attribute {name!r}")
    value: object = getattr(import_module(f"windrow.model.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
