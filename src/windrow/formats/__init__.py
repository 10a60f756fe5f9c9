"""Files in and out: workflows (native, WfFormat, DAX) and logs (SWF), packed or not, and the logs'
archive."""

from windrow.formats.open import (
    read_addition,
    read_log,
    read_runnable,
    read_workflow,
    write_log,
    write_workflow,
)

__all__ = [
    "read_addition",
    "read_log",
    "read_runnable",
    "read_workflow",
    "write_log",
    "write_workflow",
]
