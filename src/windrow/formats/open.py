"""From a file's name to the right reader or writer. The suffix decides; `.gz` after it says only that it is packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windrow.errors import InputError, UserError
from windrow.formats import swf
from windrow.formats.dax import read_dax
from windrow.formats.disk import AnyPath, format_suffix
from windrow.formats.wfformat import read_wfformat
from windrow.formats.wfformat_write import write_wfformat
from windrow.model import Log, Workflow, WorkflowError

WORKFLOW_READERS: Mapping[str, Callable[[AnyPath], Workflow]] = {
    ".json": read_wfformat,
    ".dax": read_dax,
    ".xml": read_dax,
}
"""Who reads workflows with which suffix."""

WORKFLOW_WRITERS: Mapping[str, Callable[[Workflow, AnyPath], None]] = {".json": write_wfformat}
"""Who writes workflows with which suffix."""

LOG_SUFFIXES = (".swf", ".txt")
"""Suffixes of logs; all are SWF."""


def read_workflow(path: AnyPath) -> Workflow:
    """The workflow in a WfFormat (`.json`) or DAX (`.dax`, `.xml`) file, packed or not.

    InputError, naming the file and where possible the line, where there is none.
    """
    reader = WORKFLOW_READERS.get(format_suffix(path))
    if reader is None:
        raise _unknown(path, "a workflow", tuple(WORKFLOW_READERS))
    try:
        return reader(path)
    except WorkflowError as error:
        raise InputError(path, str(error)) from None


def write_workflow(workflow: Workflow, path: AnyPath) -> None:
    """Write the workflow as WfFormat 1.5 (`.json`, `.json.gz`). The file appears complete or not at all."""
    writer = WORKFLOW_WRITERS.get(format_suffix(path))
    if writer is None:
        raise _unknown(path, "a workflow to write", tuple(WORKFLOW_WRITERS))
    writer(workflow, path)


def read_log(path: AnyPath, *, nodes: int | None = None, keep_cancelled: bool = False) -> Log:
    """The log in an SWF file (`.swf`, `.txt`), cleaned; `nodes` overrides the machine's size. See formats/swf.py."""
    if format_suffix(path) not in LOG_SUFFIXES:
        raise _unknown(path, "a log", LOG_SUFFIXES)
    return swf.read_log(path, nodes=nodes, keep_cancelled=keep_cancelled)


def write_log(log: Log, path: AnyPath, *, header: Mapping[str, str] | None = None) -> None:
    """Write the log as SWF 2.2 (`.swf`, `.txt`), packed or not; `header` adds or overrides header lines."""
    if format_suffix(path) not in LOG_SUFFIXES:
        raise _unknown(path, "a log to write", LOG_SUFFIXES)
    swf.write_log(log, path, header=header)


def _unknown(path: AnyPath, what: str, suffixes: tuple[str, ...]) -> UserError:
    listed = ", ".join(suffixes)
    return UserError(f"{path}: {what} has a name that ends in {listed} (or that and .gz); rename it")
