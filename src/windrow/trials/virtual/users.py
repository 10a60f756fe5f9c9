"""What people do to a run while it goes: they cancel tasks, change them, run them again, and hold
the run open for tasks to come.

Rule 1: what is asked stays asked until a manager has done it or it cannot be done any more, as with
the files by which real users ask (`app.requests`). Rule 2: nothing is asked that commands refuse.
Rule 3: what was cancelled is wanted again at last, so that every run can be complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.agent.folder import RunFolder
from windrow.agent.holds import Hold, write_hold
from windrow.app.new_tasks import Amendment
from windrow.errors import UserError
from windrow.manager.manager import Manager
from windrow.model import Runnable
from windrow.records.runnable_file import RunnableRecord
from windrow.story.events import TasksAmended
from windrow.trials.virtual.content import perfect
from windrow.trials.virtual.kinds import Fault, Kind

if TYPE_CHECKING:
    from windrow.trials.virtual.world import World

_LEASE_S = 30.0
_RENEWS_EVERY_S = 10
_KEEPS_S = (0.0, 40.0, 120.0)
_HEARD_S = 2
_LASTS = 3
"""A run is held this many times as long as the fault is drawn to last."""


@dataclass
class UserWishes:
    """What is asked of one run, and what has come of it."""

    world: World
    whole: Runnable | None = None
    """The workflow as it is now, with tasks that have not joined yet."""
    asked: list[Fault] = field(default_factory=list)
    """What is to be done, the first first."""
    cancelled_s: dict[int, float] = field(default_factory=dict)
    """Tasks that no one wants for now, and since when a manager knows."""
    repeated: set[int] = field(default_factory=set)
    """Tasks that had finished or were cancelled, and were to run again."""
    changed: set[int] = field(default_factory=set)
    """Tasks that were changed."""
    held_until_s: float = 0.0
    """When the last holder will have left, or fallen silent."""
    held_since_s: float = 0.0
    keep_s: float = 0.0
    """The longest that nodes were to be kept."""
    _wanted: list[int] = field(default_factory=list)  # what was cancelled, and is wanted again
    _changes: dict[Fault, TasksAmended] = field(default_factory=dict)
    _holds: int = 0

    @property
    def is_held(self) -> bool:
        """Whether someone keeps the run open."""
        return self.world.now_s < self.held_until_s

    def follow(self, manager: Manager) -> None:
        """Let the manager hear what is asked."""
        acts: dict[Kind, Callable[[Manager, Fault], bool]] = {
            Kind.CANCELS: self._cancel,
            Kind.AMENDS: self._amend,
            Kind.REPEATS: self._repeat,
        }
        for fault in list(self.asked):
            if acts[fault.kind](manager, fault):
                self.asked.remove(fault)
            self.tell_agents()
        self._wanted = [task for task in self._wanted if not self._run_again(manager, task)]

    def want_all(self, manager: Manager) -> list[int]:
        """The run has ended without them: what is to run again with its next beginning."""
        core = manager.core
        changing = {task.id for change in self._waiting() for task in change.now.tasks}
        again = sorted(t for t in core.cancelled if core.work.workflow.ids[t] not in changing)
        self._again(again)
        return again

    def _waiting(self) -> list[TasksAmended]:
        """The changes that no manager has made yet."""
        return [self._changes[fault] for fault in self.asked if fault in self._changes]

    def tell_agents(self) -> None:
        """Let agents look soon for what was cancelled: real ones do so every second."""
        for agent in self.world.agents.values():
            agent.next_s = min(agent.next_s, self.world.now_s + _HEARD_S)

    def _again(self, tasks: Iterable[int]) -> None:
        for task in tasks:
            self.repeated.add(task)
            self.cancelled_s.pop(task, None)
            self._wanted = [other for other in self._wanted if other != task]

    def _cancel(self, manager: Manager, fault: Fault) -> bool:
        core = manager.core
        tasks = [t for t in range(len(core.job_of)) if not (core.is_done(t) or t in core.cancelled)]
        running = [t for t in tasks if any(t in job.running_since_s for job in core.jobs.values())]
        if fault.pick % 3 and running:  # of others it is not seen whether they end
            tasks = running
        if tasks:
            task = tasks[fault.pick % len(tasks)]
            manager.cancel([task])
            self.cancelled_s[task] = self.world.now_s
            if fault.pick % 4 == 0:  # they regret it
                due_s = self.world.now_s + fault.length_s
                self.world.dues.append((due_s, lambda: self._wanted.append(task)))
        return True

    def _repeat(self, manager: Manager, fault: Fault) -> bool:
        core = manager.core
        tasks = [task for task in range(len(core.job_of)) if core.is_done(task)]
        return not tasks or self._run_again(manager, tasks[fault.pick % len(tasks)])

    def _run_again(self, manager: Manager, task: int) -> bool:
        """As `windrow retry` does; False while a task that needs it is in a job."""
        core = manager.core
        below = core.work.workflow.children.below([task])
        if any(core.job_of[other] is not None for other in below):
            return False
        if core.is_done(task) or task in core.failed:
            self._again([task])
            manager.run_again([task])
        return True

    def _amend(self, manager: Manager, fault: Fault) -> bool:
        change = self._changes.get(fault) or self._change(manager, fault)
        if change is None:
            return True
        self._changes[fault] = change
        try:
            if not manager.amend(change):
                return False
        except UserError:  # it has started meanwhile
            return True
        assert self.whole is not None
        now = change.now
        self.whole = Runnable(
            self.whole.workflow.amended(now.tasks), self.whole.with_steps(now.tasks, now.steps)
        )
        self.world.expected.update(perfect(self.whole))
        numbers = [self.whole.workflow.number(task.id) for task in now.tasks]
        self.changed.update(numbers)
        for number in numbers:
            self.cancelled_s.pop(number, None)
        return True

    def _change(self, manager: Manager, fault: Fault) -> TasksAmended | None:
        """Another command for a task that has not started; None if there is none, or someone of
        whom the run does not know may do what it was before."""
        core = manager.core
        workflow = core.work.workflow
        ever = set(self.world.finished_s)
        tasks = [
            task
            for task in range(len(core.job_of))
            if ever.isdisjoint([task, *workflow.children.below([task])])
            and not any(task in core.jobs[n].running_since_s for n in core.copies.jobs_of(task))
            and task not in self.world.started
        ]
        if not tasks or self.world.was_unseen:
            return None
        number = tasks[fault.pick % len(tasks)]
        task = workflow.task(number)
        step = manager.dispatch.runnable.steps[number]
        command = (*step.command, f"version {len(self._changes)}")
        if fault.pick % 3:
            change = Amendment(id=task.id, command=command)
        else:
            change = Amendment(id=task.id, command=command, runtime=2 * task.runtime_s)
        now, how = change.of(task, step)
        record = RunnableRecord(workflow.name, [now], [], [how])
        return TasksAmended(self.world.now_s, f"change-{len(self._changes)}", record)

    def hold(self, fault: Fault) -> None:
        """Someone keeps the run open for a while, and then says so, or falls silent."""
        until_s = self.world.now_s + _LASTS * fault.length_s
        folder = RunFolder.at(self.world.view.folders[0]).holds
        folder.mkdir(exist_ok=True)
        keep_s = _KEEPS_S[fault.pick % len(_KEEPS_S)]
        path = folder / f"hold-{self._holds}"
        self._holds += 1
        if not self.is_held:
            self.held_since_s = self.world.now_s
        self.held_until_s = max(self.held_until_s, until_s)
        self.keep_s = max(self.keep_s, keep_s)
        write_hold(path, Hold("someone", 0, _LEASE_S, keep_s), is_first=True)

        def renew(beat: int) -> None:
            if self.world.now_s < until_s:
                if write_hold(path, Hold("someone", beat, _LEASE_S, keep_s)):
                    due_s = min(self.world.now_s + _RENEWS_EVERY_S, until_s)
                    self.world.dues.append((due_s, lambda: renew(beat + 1)))
            elif fault.pick % 2:
                path.unlink(missing_ok=True)

        self.world.dues.append((self.world.now_s + _RENEWS_EVERY_S, lambda: renew(1)))
