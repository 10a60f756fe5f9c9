"""Agents without processes: the loop, the decisions and the files of real ones, in virtual time.

Rule 1: an agent is `agent.loop.Loop` with a clock and a crew of its own; whatever it reads, decides
and writes is real.
Rule 2: its tasks take time and make the files that the workflow says, half of each at once and the
rest at the end, through `agent.outputs` as real ones; whether they fail is for the world to say.
Rule 3: an agent that is killed says nothing more, and leaves on disk what was there.
Rule 4: a task with checkpoints writes down how far it had come when it was asked, some seconds
later, in one step; then it continues or, if it is one of those that do so, ends.
Rule 5: if jobs use disks of their nodes, each node has one: a folder that goes with it, or with
the job's agent. A copy of a file, to a node or from it, takes some seconds, or none while the agent
leaves; half is written, then all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from math import ceil, inf
from pathlib import Path
from typing import Any

from windrow.agent.claim import is_fenced
from windrow.agent.core import StartAttempt
from windrow.agent.event_file import Writer
from windrow.agent.folder import RunFolder
from windrow.agent.hosts import Hosts
from windrow.agent.job_file import TaskSpec
from windrow.agent.loop import Loop, taken_up
from windrow.agent.order import Order
from windrow.agent.signals import SteadyClock, Wake
from windrow.errors import WindrowError
from windrow.model.resources import NodeShape
from windrow.trials.virtual.crew import Killed, Tasks, VirtualCrew

_SWEEP_EVERY_S = 5.0  # real agents do so every second
_LOOK_EVERY_S = 3.0  # and look after checkpoints


class _Clock(SteadyClock):
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s

    def now(self) -> float:
        return self._now_s()


class _Wake(Wake):
    def __init__(self) -> None:
        self.stop_signal = None
        self.is_noticed = False

    def wait_for_stop(self) -> None:
        pass


class _Loop(Loop):
    """Wakes when something is due, whereas a real one also looks every second."""

    _crew: VirtualCrew

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._begun: dict[int, StartAttempt] = {}  # the last attempt at each task

    def _pause_s(self) -> float:
        now = self._clock.now()
        core = self._core
        looks = self._desk.look_again_s(now)
        dues = (
            core.deadline,
            self._crew.next_s,
            self._desk.take_over_at,
            inf if looks is None else now + looks,
        )
        sync_s = self._desk.sync_due_s()
        files = (
            self._kept.due_s(core.deadline),
            now + self._limit_due_s,
            inf if (kept_s := self._keeping.due_s(now)) is None else now + max(1.0, kept_s),
            inf if sync_s is None else now + sync_s,
            *(at for at, _ in self._to_come),
        )
        sweep_s = now + _SWEEP_EVERY_S
        return (
            min(*dues, *files, sweep_s if self._desk.may_host else max(core.short_at, sweep_s))
            - now
        )

    def _collect(self) -> None:
        self._desk.take_over(self._clock.now())  # which notes that it was not idle until now
        super()._collect()

    def _say(self, text: str) -> None:
        pass

    def _order(self, start: StartAttempt) -> Order:
        self._begun[start.spec.task] = start
        return super()._order(start)

    def beside(self, task: int) -> list[list[TaskSpec]]:
        """What runs on each of the nodes of a task, itself among it."""
        running = self._core._running.items()
        starts = ((self._begun.get(one), attempt) for one, (attempt, _) in running)
        begun = [start for start, attempt in starts if start and start.attempt == attempt]
        return [
            [one.spec for one in begun if place in one.nodes] for place in self._begun[task].nodes
        ]

    def spec(self, task: int) -> TaskSpec:
        """A task as its job's file has it."""
        return self._core.spec(task)

    def begun(self, task: int) -> TaskSpec:
        """A task as its last attempt has it."""
        return self._begun[task].spec

    def is_delayed(self, task: int) -> bool:
        """Whether it waited for files since it had its turn."""
        return bool(self._job.scratch) or self._core.spec(task).checkpoint is not None

    @property
    def left_s(self) -> float:
        """How long it has its nodes yet."""
        return self._core.deadline - self._clock.now()

    @property
    def offered(self) -> set[int]:
        """Tasks that wait for nothing but room."""
        offers = self._core.packing._offered.values()
        return {task for tasks in offers for *_, task in tasks} & self._core._allocation.open

    @property
    def shape(self) -> NodeShape:
        """What each of its nodes has."""
        return self._job.shape

    @property
    def running(self) -> list[int]:
        """The tasks that run."""
        return self._core.running

    def is_at_work(self, task: int) -> bool:
        """Whether an attempt at it runs."""
        return self._crew.is_at_work(task)

    @property
    def at_work(self) -> set[str]:
        """What attempts that run are to make."""
        return {path for run in self._crew._at_work.values() for path in run.order.outputs}

    def heard_s(self, task: int) -> float:
        """What was heard to be done of the task when its job was written."""
        return self._core.spec(task).done_s

    def home_of(self, task: int) -> int:
        """The job in which the task is."""
        return self._core.home_of(task, self._job.job)


class VirtualAgent:
    """One job that has nodes, from its start to its end."""

    def __init__(
        self,
        folder: RunFolder,
        number: int,
        queue_id: str,
        hosts: tuple[str, ...],
        tasks: Tasks,
        now_s: Callable[[], float],
    ) -> None:
        """Nothing happens before its first turn."""
        self.folder = folder
        self.number = number
        self.queue_id = queue_id
        self.hosts = hosts
        self._tasks = tasks
        self._now_s = now_s
        self._wake = _Wake()
        self.loop: _Loop | None = None
        self.exit_code: int | None = None
        """How it ended; None while it lives."""
        self.is_turned_away = False
        self.clock_s = 0.0
        """How far the clock of its node is off."""
        self.begun_s = self.next_s = now_s()

    def turn(self) -> None:
        """Do what is due. Killed, it is gone."""
        try:
            self._turn()
        except Killed:
            self.kill()
        except WindrowError as error:
            self.exit_code = error.exit_code

    def _turn(self) -> None:
        if self.loop is None:
            now_s = self._wall_s
            job = taken_up(self.folder, self.number, self.hosts[0], self.queue_id, now_s())
            if isinstance(job, str):
                self.exit_code = 0
                self.is_turned_away = True
                return
            writer = Writer(self.folder.events(self.number), now_s=now_s)
            hosts = Hosts(self.hosts, are_here=not job.scratch, is_cluster=False)
            crew = VirtualCrew(self, self.hosts, self._tasks, now_s)
            clock = _Clock(now_s)
            named = self.queue_id
            self.loop = _Loop(
                self.folder, job, hosts, writer, self._wake, clock=clock, crew=crew, named=named
            )
            self.loop._kept.look_every_s = _LOOK_EVERY_S
            self._turns = iter(self.loop.turns())
        pause_s = next(self._turns, None)
        if pause_s is None:
            self.exit_code = self.loop.exit_code
            self._clear()
        else:
            self.next_s = self._now_s() + max(1, ceil(pause_s))

    def _wall_s(self) -> float:
        """The time by the clock of its node."""
        return self._now_s() + self.clock_s

    @property
    def is_given_up(self) -> bool:
        """Whether the run has given its job up."""
        return self.loop is not None and is_fenced(self.folder, self.number)

    def tell(self, signal: int = 15) -> None:
        """It is asked to stop, and does so in good order."""
        self._wake.stop_signal = signal
        self.turn()
        if self.exit_code is None:  # it heard of it while it was about to do something else
            self.turn()

    def notice(self) -> None:
        """A step hears that the nodes will be taken away."""
        if self.loop is not None:
            self.loop._crew.is_noticed = True
            self.next_s = self._now_s()

    def kill(self) -> None:
        """Kill -9."""
        self._tasks.killed(self)
        self._clear()
        self.exit_code = 137
        self.loop = None

    def _clear(self) -> None:
        """What a job had on disks of nodes goes with it."""
        if self.disk is not None:
            shutil.rmtree(self.disk, ignore_errors=True)

    def runs(self, task: int) -> bool:
        """Whether an attempt at this task runs."""
        return self.loop is not None and self.loop.is_at_work(task)

    @property
    def is_busy(self) -> bool:
        """Whether its nodes do anything."""
        return self.loop is not None and self.loop._crew.is_busy

    def source(self, path: str, order: Order) -> str:
        """From where an attempt that is to start gets this input."""
        if self.loop is None:
            return path
        return self.loop._crew.source(path, order)

    @property
    def nodes(self) -> list[int]:
        """The places of the nodes that it could do without, if each has a disk."""
        if self.loop is None:
            crew = None
        else:
            crew = self.loop._crew
        if crew is None or crew.disk is None:
            return []
        return [place for place in range(1, len(self.hosts)) if (crew.disk / str(place)).exists()]

    def lose_node(self, place: int) -> None:
        """One of these is gone."""
        assert self.loop is not None
        self.loop._crew.lose(place)
        self.next_s = self._now_s()

    @property
    def disk(self) -> Path | None:
        """Where its nodes have files of their own."""
        if self.loop is None:
            return None
        return self.loop._crew.disk
