"""Adding tasks to a run, while it runs or after it has ended. They are checked against the run as
it is by then.

`prepare_addition` reads a file; a program that makes tasks by other means makes a `TasksAdded` of
them (`Runnable.extended`, `records.runnable_file.record_of`), and hands it to `add_tasks`, or to
`Manager.add` if it is the run's manager.
"""

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path

from windrow.app import live_runs
from windrow.app.execute import managed, prepare
from windrow.app.facts import GUESS_S
from windrow.app.requests import ask_to_add
from windrow.app.runs import RunView
from windrow.errors import InputError, UserError
from windrow.forecast.runtimes import DEFAULT_RISK
from windrow.formats import read_addition
from windrow.formats.disk import read_bytes
from windrow.model import Runnable
from windrow.records.runnable_file import record_of, write_inputs
from windrow.story.events import TasksAdded


def prepare_addition(
    told: RunView, file: Path, *, guess_s: float = GUESS_S, risk: float = DEFAULT_RISK
) -> TasksAdded:
    """Read and check what is to be added to a run, against the run as it is. Nothing is changed.

    A file goes by its place and content: the same added twice is added once.
    """
    name = hashlib.sha256(os.fsencode(file.absolute()) + b"\0" + read_bytes(file)).hexdigest()[:16]
    if (there := told.story.addition(name)) is not None:
        return there.event
    first = len(told.runnable.workflow)
    (extended, folder) = read_addition(file, told.runnable)
    _refuse_own_file(file, extended, first, told.facts.request.workflow)
    order = replace(told.facts.request, workflow=file, guess_s=guess_s, risk=risk)
    prepared = prepare(order, extended, range(first))
    live_runs.refuse_conflicts(
        told.paths.path.parent, told.facts.request.workflow, extended, told.paths.name
    )
    return TasksAdded(int(time.time()), name, record_of(prepared.runnable, first), folder)


def _refuse_own_file(file: Path, extended: Runnable, first: int, workflow: Path) -> None:
    """InputError if an added task writes the workflow file of the run that it joins."""
    for task in range(first, len(extended.steps)):
        folder = extended.steps[task].workdir
        for f in extended.workflow.outputs.of(task).tolist():
            name = extended.workflow.files[f].id
            if os.path.normpath(Path(folder, name)) == str(workflow):
                problem = (
                    f"{extended.workflow.ids[task]} writes {name}, the workflow file of the run"
                )
                raise InputError(file, problem, fix="give it another name")


def add_tasks(told: RunView, added: TasksAdded, *, wait_s: float = 0.0) -> bool:
    """Add tasks to a run, through its manager if it has one, else here. Whether it has one.

    UserError if they do not go with the run, as it is by now; then nothing has changed.
    """
    is_heard = told.holder is not None and ask_to_add(told, added)
    if not is_heard:
        with managed(told.paths, wait_s=wait_s) as manager:
            manager.add(added)
        told.refresh()
    if told.story.addition(added.id) is None:
        why = "its manager did not take the tasks"
        try:
            added.to(told.story.workflow)
        except UserError as error:
            why = str(error)
        raise UserError(f"{told.paths.name} has changed meanwhile: {why}; nothing was added")
    write_inputs(told.paths.inputs, told.runnable)
    return is_heard
