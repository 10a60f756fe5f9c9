"""Values: workflows, tasks, files, nodes, logs, durations. No I/O, no randomness, no clock."""

from windrow.model.duration import format_duration, parse_duration
from windrow.model.graph import Adjacency, CycleError, order_and_levels
from windrow.model.log import Log, Repairs
from windrow.model.resources import NodeShape
from windrow.model.workflow import File, Task, Workflow, WorkflowError

__all__ = [
    "Adjacency",
    "CycleError",
    "File",
    "Log",
    "NodeShape",
    "Repairs",
    "Task",
    "Workflow",
    "WorkflowError",
    "format_duration",
    "order_and_levels",
    "parse_duration",
]
