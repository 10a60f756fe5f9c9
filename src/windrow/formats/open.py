"""From a file's name to the right reader or writer. The suffix decides; `.gz` after it says only
that it is packed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.errors import STEERING, InputError, UserError
from windrow.formats.disk import AnyPath, format_suffix
from windrow.model import Runnable, Workflow, WorkflowError

if TYPE_CHECKING:
    from windrow.model import Log
    from windrow.model.checkpoint import Checkpoint
    from windrow.model.volume import VolumeMount

_WORKFLOWS = (".json", ".dax", ".xml", ".yaml", ".yml")
_LOGS = (".swf", ".txt")  # all are SWF


def read_workflow(path: AnyPath) -> Workflow:
    """The workflow in a WfFormat (`.json`), DAX (`.dax`, `.xml`) or native (`.yaml`, `.yml`) file,
    packed or not.

    InputError, naming the file and where possible the line, if there is none.
    """
    return read_simulated(path)[0]


def read_simulated(
    path: AnyPath,
) -> tuple[Workflow, dict[int, Checkpoint], dict[int, tuple[VolumeMount, ...]]]:
    """The same, and which of its tasks are continued from checkpoints, and which mount volumes."""
    found = _read(path)
    if not isinstance(found, Runnable):
        return found, {}, {}
    kept = ((task, step.checkpoint) for task, step in enumerate(found.steps))
    mounts = {task: step.mounts for task, step in enumerate(found.steps) if step.mounts}
    return (
        found.workflow,
        {task: checkpoint for task, checkpoint in kept if checkpoint is not None},
        mounts,
    )


def read_runnable(path: AnyPath, values: Mapping[str, str] | None = None) -> Runnable:
    """The workflow with what to execute for each task; commands of WfFormat and DAX run in the
    file's folder. `values`: what names in `vars` of a native file stand for, in place of what it
    says.

    InputError, as from `read_workflow`, and if tasks have no commands.
    """
    found = _read(path, values=values)
    if isinstance(found, Runnable):
        return found
    try:
        runnable = Runnable.of(found, str(Path(path).absolute().parent))
        _refuse_places(path, runnable)
        return runnable
    except WorkflowError as error:
        raise InputError(
            path, str(error), fix="add commands, or write it as a native workflow"
        ) from None


def read_addition(path: AnyPath, run: Runnable) -> tuple[Runnable, str]:
    """A run with the tasks of this file behind its own, which they may name as parents; what
    `Runnable.extended` says.

    Native files need not name the tasks whose outputs they read. InputError, as from
    `read_runnable`, and if the tasks do not go with those of the run.
    """
    found = _read(path, run)
    own = len(run.workflow)
    try:
        if not isinstance(found, Runnable):
            found = Runnable.of(found, str(Path(path).absolute().parent), outside=own)
            _refuse_places(path, found)
        tasks = [found.workflow.task(number) for number in range(len(found.steps))]
        return run.extended(tasks, found.workflow.files, found.steps)
    except WorkflowError as error:
        raise InputError(path, str(error), fix="correct the file; nothing was added") from None


def _refuse_places(path: AnyPath, found: Runnable) -> None:
    """InputError if a task would write where tasks may not. Native files say it with a line."""
    from windrow.formats.native.places import Places

    places = Places(path)
    workflow = found.workflow
    for task, step in enumerate(found.steps):
        for name in [workflow.files[f].id for f in workflow.outputs.of(task).tolist()]:
            why, fix = places.why_not(os.path.normpath(Path(step.workdir, name)), outside=False)
            if why:
                fix = fix.replace("write", "write it as a native workflow, with")
                raise InputError(path, f"{workflow.ids[task]} writes {name}, {why}", fix=fix)


def _read(
    path: AnyPath, run: Runnable | None = None, values: Mapping[str, str] | None = None
) -> Workflow | Runnable:
    """What the file holds, if its names can be shown. InputError if one could steer a terminal
    or break a line."""
    try:
        found = _parsed(path, run, values)
    except WorkflowError as error:
        raise InputError(path, str(error)) from None
    if isinstance(found, Runnable):
        workflow = found.workflow
    else:
        workflow = found
    for what, texts in (("id", workflow.ids), ("kind", workflow.kinds), ("name", (workflow.name,))):
        if STEERING.search("".join(texts)):  # one look for all, since there are seldom any
            bad = next(text for text in texts if STEERING.search(text))
            problem = f"the {what} {bad[:60]!r} has a control character"
            raise InputError(path, problem, fix="use characters that can be printed")
    return found


def _parsed(
    path: AnyPath, run: Runnable | None, values: Mapping[str, str] | None = None
) -> Workflow | Runnable:
    """Each format is loaded if a file has it. If it adds to a `run`, that one's tasks are
    behind its own."""
    outside = () if run is None else run.workflow.ids
    if values and format_suffix(path) not in (".yaml", ".yml"):
        fix = "write it as a native workflow"
        raise InputError(path, "has no vars that could be set", fix=fix)
    match format_suffix(path):
        case ".json":
            from windrow.formats.wfformat.reader import read_wfformat

            return read_wfformat(path, outside)
        case ".dax" | ".xml":
            from windrow.formats.dax import read_dax

            return read_dax(path, outside)
        case ".yaml" | ".yml":
            from windrow.formats.native.reader import read_native

            return read_native(path, run, values)
    from windrow.extensions import IMPORTERS, loaded

    suffix = format_suffix(path).lstrip(".")
    read = loaded(IMPORTERS, suffix) if suffix else None
    if read is None:
        raise _unknown(path, "a workflow", _WORKFLOWS)
    found: Workflow | Runnable = read(Path(path))
    return found


def write_workflow(workflow: Workflow, path: AnyPath) -> None:
    """Write the workflow as WfFormat 1.5 (`.json`, `.json.gz`). The file appears complete or not at
    all."""
    if format_suffix(path) != ".json":
        raise _unknown(path, "a workflow to write", (".json",))
    from windrow.formats.wfformat.writer import write_wfformat

    write_wfformat(workflow, path)


def read_log(path: AnyPath, *, nodes: int | None = None, keep_cancelled: bool = False) -> Log:
    """The log in an SWF file (`.swf`, `.txt`), cleaned; `nodes` overrides the machine's size. See
    `swf.reader`."""
    if format_suffix(path) not in _LOGS:
        raise _unknown(path, "a log", _LOGS)
    from windrow.formats.swf import reader

    return reader.read_log(path, nodes=nodes, keep_cancelled=keep_cancelled)


def write_log(log: Log, path: AnyPath, *, header: Mapping[str, str] | None = None) -> None:
    """Write the log as SWF 2.2 (`.swf`, `.txt`), packed or not; `header` adds or overrides header
    lines."""
    if format_suffix(path) not in _LOGS:
        raise _unknown(path, "a log to write", _LOGS)
    from windrow.formats.swf import reader

    reader.write_log(log, path, header=header)


def _unknown(path: AnyPath, what: str, suffixes: tuple[str, ...]) -> UserError:
    listed = ", ".join(suffixes)
    return UserError(
        f"{path}: {what} has a name that ends in {listed} (or that and .gz); rename it"
    )
