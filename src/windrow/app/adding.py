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
from windrow.app.execute import make_what_is_needed, managed, prepare
from windrow.app.facts import GUESS_S, RunFacts, RunRequest
from windrow.app.requests import ask_to_add
from windrow.app.runs import RunPaths, RunView
from windrow.errors import InputError, UserError
from windrow.forecast.runtimes import DEFAULT_RISK
from windrow.formats import read_addition
from windrow.formats.disk import read_bytes
from windrow.manager.manager import Manager
from windrow.model import Runnable
from windrow.records.runnable_file import RunnableRecord, record_of, write_inputs
from windrow.story.events import EXPANDS, TasksAdded


def prepare_addition(
    told: RunView, file: Path, *, guess_s: float = GUESS_S, risk: float = DEFAULT_RISK
) -> TasksAdded:
    """Read and check what is to be added to a run, against the run as it is. Nothing is changed.

    A file goes by its place and content: the same added twice is added once.
    """
    name = _name(file)
    if (there := told.story.addition(name)) is not None:
        return there.event
    maker = os.environ.get("WINDROW_TASK", "")
    if os.environ.get("WINDROW_RUN") != told.paths.name or maker not in told.runnable.workflow.ids:
        maker = ""
    order = replace(told.facts.request, guess_s=guess_s, risk=risk)
    return replace(_addition(file, told.runnable, order, told.paths), id=name, maker=maker)


def _name(file: Path) -> str:
    """By what an addition of this file goes."""
    return hashlib.sha256(os.fsencode(file.absolute()) + b"\0" + read_bytes(file)).hexdigest()[:16]


def _is_empty(file: Path) -> bool:
    """Whether there is nothing in it."""
    try:
        return not file.stat().st_size
    except OSError:
        return False


def _addition(file: Path, runnable: Runnable, order: RunRequest, paths: RunPaths) -> TasksAdded:
    """The tasks of this file behind those of a run, whose order it is."""
    first = len(runnable.workflow)
    (extended, folder) = read_addition(file, runnable)
    _refuse_own_file(file, extended, first, order.workflow)
    prepared = prepare(replace(order, workflow=file), extended, range(first))
    live_runs.refuse_conflicts(paths.path.parent, order.workflow, extended, paths.name)
    return TasksAdded(int(time.time()), "", record_of(prepared.runnable, first), folder)


class FragmentFiles:
    """The files in which tasks of a run say what comes after them (`manager.expanding`)."""

    def __init__(self, manager: Manager, facts: RunFacts, paths: RunPaths) -> None:
        self._manager = manager
        self._facts = facts
        self._paths = paths

    def _file(self, task: int) -> Path:
        runnable = self._manager.dispatch.runnable
        name = runnable.workflow.rules[task].expands
        return Path(os.path.normpath(Path(runnable.steps[task].workdir, name)))

    def name(self, task: int) -> str:
        """By what it goes, as it is now."""
        file = self._file(task)
        if _is_empty(file):
            return f"{EXPANDS}{self._manager.core.work.workflow.ids[task]}"
        return f"{EXPANDS}{_name(file)}"

    def read(self, task: int) -> TasksAdded:
        """Its tasks; none if it is empty."""
        file = self._file(task)
        runnable = self._manager.dispatch.runnable
        name = self.name(task)
        maker = runnable.workflow.ids[task]
        if _is_empty(file):
            nothing = RunnableRecord(runnable.workflow.name, [], [], [])
            return TasksAdded(int(time.time()), name, nothing, maker=maker)
        found = _addition(file, runnable, self._facts.request, self._paths)
        make_what_is_needed(found.added.steps)
        steps = (*runnable.steps, *found.added.steps)
        write_inputs(self._paths.inputs, Runnable(found.to(runnable.workflow), steps))
        return replace(found, id=name, maker=maker)


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
    make_what_is_needed(added.added.steps)
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
