"""Tasks that a program hands to a run, as its manager takes them (`app.new_tasks`).

Law: what one more costs does not depend on how many there are. What other live runs write is
looked up when one comes or goes, else every few seconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from windrow.app import live_runs
from windrow.app.facts import RunFacts
from windrow.app.new_tasks import REFUSED, Amendment, Ranking, limited, linked
from windrow.errors import UserError, unknown_name
from windrow.forecast.best_effort import filled
from windrow.formats.disk import replace_text
from windrow.model import Runnable, Step, Task, Workflow
from windrow.records.runnable_file import RunnableRecord, write_inputs
from windrow.story.events import TasksAdded, TasksAmended

if TYPE_CHECKING:
    from windrow.manager.manager import Manager

logger = logging.getLogger(__name__)


class Arrivals:
    """Takes in the tasks that come to one run."""

    def __init__(self, manager: Manager, facts: RunFacts, root: Path) -> None:
        self._manager = manager
        self._facts = facts
        self._others = live_runs.Others(root, manager.folder.path)
        dirs = {step.workdir for step in manager.dispatch.runnable.steps}
        self._folder = str(facts.request.workflow.parent)
        self._are_whole = dirs != {self._folder}

    def take(self, request: Path) -> bool:
        """Do what is asked for, or say why not; False if it has to wait."""
        what, _, name = request.name.rpartition("-")
        content = request.read_bytes()
        try:
            if what == "new" and name not in self._manager.core.additions:
                self._add(name, msgspec.json.decode(content, type=RunnableRecord))
            elif what == "cancel":
                self._cancel(msgspec.json.decode(content, type=list[str]))
            elif what == "rank":
                ranking = msgspec.json.decode(content, type=Ranking)
                tasks = [self._number(name) for name in ranking.tasks]
                self._manager.rank(tasks, ranking.priority)
            elif what == "amend":
                return self._amend(name, msgspec.json.decode(content, type=list[Amendment]))
        except UserError as error:
            replace_text(request.with_name(f"{REFUSED}{name}"), str(error))
        except msgspec.DecodeError as error:
            replace_text(request.with_name(f"{REFUSED}{name}"), f"it cannot be read: {error}")
        return True

    def _number(self, task: str) -> int:
        workflow = self._manager.core.work.workflow
        try:
            return workflow.number(task)
        except KeyError:
            raise unknown_name("task", task, list(workflow.ids[:10_000])) from None

    def _cancel(self, names: Sequence[str]) -> None:
        tasks = [self._number(name) for name in names]
        core = self._manager.core
        self._manager.cancel([task for task in tasks if not core.is_done(task)])

    def _linked(self, task: Task, workflow: Workflow) -> Task:
        """With its inputs as the workflow names them."""
        if self._are_whole:
            task = replace(task, inputs=task.named_from(self._folder).inputs)
        (task,), _ = linked([task], workflow.maker_of)
        return task

    def _amend(self, name: str, changes: Sequence[Amendment]) -> bool:
        runnable = self._manager.dispatch.runnable
        workflow = self._manager.core.work.workflow
        now = []
        steps = []
        for change in changes:
            number = self._number(change.id)
            task, step = change.of(workflow.task(number), runnable.steps[number])
            if change.inputs is not None:
                task = self._linked(task, workflow)
            now.append(task)
            steps.append(step)
        record = RunnableRecord(workflow.name, now, [], steps)
        return self._manager.amend(TasksAmended(int(time.time()), name, record))

    def _refuse_missing(self, read: Iterable[tuple[str, str]]) -> None:
        for task, file in read:
            if not Path(self._folder, file).exists():
                raise UserError(
                    f"task {task} reads {file}, which no task writes and which is not in "
                    f"{self._folder}; create it, or correct the name"
                )

    def _add(self, name: str, record: RunnableRecord) -> None:
        workflow = self._manager.core.work.workflow
        tasks = record.tasks
        if self._are_whole:
            tasks = [task.named_from(self._folder) for task in tasks]
        tasks, outside = linked(tasks, workflow.maker_of)
        self._refuse_missing(outside)
        tasks = self._timed(limited(tasks, self._manager.core.limits.most), record.steps)
        written = [Path(self._folder, file) for task in tasks for file in task.outputs]
        self._others.refuse(written)
        self._manager.add(
            TasksAdded(int(time.time()), name, RunnableRecord(record.name, tasks, [], record.steps))
        )
        if outside:
            write_inputs(self._manager.folder.path / "inputs.json", self._manager.dispatch.runnable)

    def _timed(self, tasks: Sequence[Task], steps: Sequence[Step]) -> list[Task]:
        """The same with the run times that earlier runs have taught, if they state none."""
        if all(step.runtime_known for step in steps):
            return list(tasks)
        plain = [replace(task, parents=(), inputs=(), outputs=()) for task in tasks]
        order = self._facts.request
        alone = Runnable(Workflow.from_tasks(order.workflow.stem, plain), tuple(steps))
        times = filled(alone, order.guess_s, order.risk)[0].workflow.runtime_s.tolist()
        return [replace(task, runtime_s=s) for task, s in zip(tasks, times, strict=True)]
