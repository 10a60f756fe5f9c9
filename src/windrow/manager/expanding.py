"""Tasks that say which tasks come after them: each writes a workflow file (`Rules.expands`), whose
tasks join the run when it has finished.

Law: the same file of the same task is taken in once, however often the task finishes or the manager
dies. If the task runs again in its run, since a file was lost, it must say the same: other tasks
take the place of these in a new run (`app.continuing`), since a run never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from windrow.agent.order import absolute
from windrow.errors import NothingBegun, UserError
from windrow.story import events as e
from windrow.story.journal import Record

if TYPE_CHECKING:
    from windrow.manager.manager import Manager

_AGAIN_S = 10.0


class Fragments(Protocol):
    """The files that say it. UserError if one cannot be used, NothingBegun if that may pass."""

    def name(self, task: int) -> str:
        """What an addition of the file, as it is now, goes by."""

    def read(self, task: int) -> e.TasksAdded:
        """The tasks of the file, checked against the run."""


class Expanding:
    """Of one run, the tasks that have finished and whose files were not taken in yet."""

    def __init__(self, manager: Manager, fragments: Fragments) -> None:
        self._manager = manager
        self._fragments = fragments
        self._jobs: dict[int, int] = {}  # in which each such task ran last
        self._pending: dict[int, int] = {}
        self._read: set[str] = set()  # tasks whose file was taken in
        self._again_s = float("-inf")

    @property
    def is_waiting(self) -> bool:
        """Whether a file is still to be taken in."""
        core = self._manager.core
        return bool(self._pending) and not (core.is_stopped or core.trouble)

    def note(self, event: e.Event) -> None:
        """One of its tasks, or of the tasks that came of it."""
        if isinstance(event, e.TasksAdded):
            if event.is_expansion:
                self._read.add(event.maker)
                self._pending.pop(self._manager.core.work.workflow.number(event.maker), None)
            return
        if isinstance(event, e.TaskStarted):
            self._jobs[event.task] = event.job
        elif isinstance(event, e.TaskFinished):
            self._pending[event.task] = self._jobs.get(event.task, 0)
        elif isinstance(event, e.TaskKept):
            if self._manager.core.work.workflow.ids[event.task] not in self._read:
                self._pending[event.task] = 0
        elif isinstance(event, e.TaskUndone | e.TaskFailed | e.DiskRefused):
            self._pending.pop(event.task, None)

    def step(self) -> bool:
        """Take in what can be. Returns whether anything happened."""
        if not self.is_waiting or self._manager.steady_s() < self._again_s:
            return False
        came = [task for task in sorted(self._pending) if self._is_home(task)]
        return sum(self._take(task) for task in came) > 0

    def _is_home(self, task: int) -> bool:
        manager = self._manager
        workflow = manager.core.work.workflow
        name = workflow.rules[task].expands
        if name in manager.dispatch.local.at:
            return False
        if manager.transfers is None:
            return True
        folder = manager.dispatch.runnable.steps[task].workdir
        return manager.transfers.is_home(*absolute(folder, [name]))

    def _take(self, task: int) -> bool:
        manager = self._manager
        workflow = manager.core.work.workflow
        maker = workflow.ids[task]
        try:
            name = self._fragments.name(task)
            if name in manager.core.additions:  # it has finished once more
                del self._pending[task]
                return False
            if maker in self._read:
                raise UserError(
                    f"{maker} has run again and its file says something else now: windrow resume "
                    "replaces the tasks that came of it"
                )
            manager.add(self._fragments.read(task))
        except NothingBegun:
            self._again_s = manager.steady_s() + _AGAIN_S
            return False
        except UserError as error:
            now = manager.now_s()
            refused = e.DiskRefused(int(now), self._pending[task], task, str(error), is_final=True)
            manager.take_in([Record(refused, at_s=now)])
        return True
