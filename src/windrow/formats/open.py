"""From a file's name to the right reader or writer. The suffix decides; `.gz` after it says only that it is packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from windrow.errors import STEERING, InputError, UserError
from windrow.formats.disk import AnyPath, format_suffix
from windrow.model import Log, Runnable, Workflow, WorkflowError

NATIVE_SUFFIXES = (".yaml", ".yml")
"""Suffixes of native workflows, whose tasks all have commands."""


# Each format is loaded where a file has it.


def _native(path: AnyPath) -> Runnable:
    from windrow.formats.native.reader import read_native

    return read_native(path)


def _wfformat(path: AnyPath) -> Workflow:
    from windrow.formats.wfformat.reader import read_wfformat

    return read_wfformat(path)


def _dax(path: AnyPath) -> Workflow:
    from windrow.formats.dax import read_dax

    return read_dax(path)


def _to_wfformat(workflow: Workflow, path: AnyPath) -> None:
    from windrow.formats.wfformat.writer import write_wfformat

    write_wfformat(workflow, path)


WORKFLOW_READERS: Mapping[str, Callable[[AnyPath], Workflow]] = {
    ".json": _wfformat,
    ".dax": _dax,
    ".xml": _dax,
    **dict.fromkeys(NATIVE_SUFFIXES, lambda path: _native(path).workflow),
}
"""Who reads workflows with which suffix."""

WORKFLOW_WRITERS: Mapping[str, Callable[[Workflow, AnyPath], None]] = {".json": _to_wfformat}
"""Who writes workflows with which suffix."""

LOG_SUFFIXES = (".swf", ".txt")
"""Suffixes of logs; all are SWF."""


def read_workflow(path: AnyPath) -> Workflow:
    """The workflow in a WfFormat (`.json`), DAX (`.dax`, `.xml`) or native (`.yaml`, `.yml`) file, packed or not.

    InputError, naming the file and where possible the line, where there is none.
    """
    reader = WORKFLOW_READERS.get(format_suffix(path))
    if reader is None:
        raise _unknown(path, "a workflow", tuple(WORKFLOW_READERS))
    try:
        return _presentable(path, reader(path))
    except WorkflowError as error:
        raise InputError(path, str(error)) from None


def _presentable(path: AnyPath, workflow: Workflow) -> Workflow:
    """The workflow, if its names can be shown. InputError where one could steer a terminal or break a line."""
    names = (("id", workflow.ids), ("kind", workflow.kinds), ("name", (workflow.name,)))
    for what, texts in names:
        if not STEERING.search("".join(texts)):  # one look for all, since there are seldom any
            continue
        found = next(text for text in texts if STEERING.search(text))
        problem = f"the {what} {found[:60]!r} has a control character"
        raise InputError(path, problem, fix="use characters that can be printed")
    return workflow


def read_runnable(path: AnyPath) -> Runnable:
    """The workflow with what to execute for each task; commands of WfFormat and DAX run in the file's folder.

    InputError, as from `read_workflow`, and where tasks have no commands.
    """
    if format_suffix(path) in NATIVE_SUFFIXES:
        runnable = _native(path)
        _presentable(path, runnable.workflow)
        return runnable
    workflow = read_workflow(path)
    try:
        return Runnable.of(workflow, str(Path(path).absolute().parent))
    except WorkflowError as error:
        raise InputError(path, str(error), fix="add commands, or write it as a native workflow") from None


def write_workflow(workflow: Workflow, path: AnyPath) -> None:
    """Write the workflow as WfFormat 1.5 (`.json`, `.json.gz`). The file appears complete or not at all."""
    writer = WORKFLOW_WRITERS.get(format_suffix(path))
    if writer is None:
        raise _unknown(path, "a workflow to write", tuple(WORKFLOW_WRITERS))
    writer(workflow, path)


def read_log(path: AnyPath, *, nodes: int | None = None, keep_cancelled: bool = False) -> Log:
    """The log in an SWF file (`.swf`, `.txt`), cleaned; `nodes` overrides the machine's size. See `swf.reader`."""
    if format_suffix(path) not in LOG_SUFFIXES:
        raise _unknown(path, "a log", LOG_SUFFIXES)
    from windrow.formats.swf import reader

    return reader.read_log(path, nodes=nodes, keep_cancelled=keep_cancelled)


def write_log(log: Log, path: AnyPath, *, header: Mapping[str, str] | None = None) -> None:
    """Write the log as SWF 2.2 (`.swf`, `.txt`), packed or not; `header` adds or overrides header lines."""
    if format_suffix(path) not in LOG_SUFFIXES:
        raise _unknown(path, "a log to write", LOG_SUFFIXES)
    from windrow.formats.swf import reader

    reader.write_log(log, path, header=header)


def _unknown(path: AnyPath, what: str, suffixes: tuple[str, ...]) -> UserError:
    listed = ", ".join(suffixes)
    return UserError(f"{path}: {what} has a name that ends in {listed} (or that and .gz); rename it")
