"""Agents without processes: the loop, the decisions and the files of real ones, in virtual time.

Rule 1: an agent is `agent.loop.Loop` with a clock and a crew of its own; whatever it reads, decides and writes is real.
Rule 2: its tasks take time and make the files that the workflow says, half of each at once and the rest at the end,
through `agent.outputs` as real ones; whether they fail is for the world to say.
Rule 3: an agent that is killed says nothing more, and leaves on disk what was there.
Rule 4: a task with checkpoints writes down how far it had come when it was asked, some seconds later, in one step; then
it continues or, if it is one of those that do so, ends.
Rule 5: where jobs use disks of their nodes, all nodes of a job have one disk: a folder that goes with the job's agent.
Staging takes no time; a commit that is asked for takes some seconds, or none while the agent leaves.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path
from typing import Protocol

from windrow.agent.crew import Crew
from windrow.agent.event_file import Writer
from windrow.agent.folder import RunFolder
from windrow.agent.hosts import Hosts
from windrow.agent.job_file import JobFile
from windrow.agent.loop import Loop, taken_up
from windrow.agent.order import Order, Result
from windrow.agent.outputs import Outputs
from windrow.agent.signals import SteadyClock, Wake
from windrow.errors import WindrowError
from windrow.files import about_to_write
from windrow.model.cause import Cause

WHOLE = "whole"
_SWEEP_EVERY_S = 5.0  # real agents do so every second
_LOOK_EVERY_S = 3.0  # and look after checkpoints
_WRITES_S = 4.0
_COMMITS_S = 3.0


class Killed(BaseException):
    """A process is gone, as after kill -9. No `except` for errors may stop it."""


class Tasks(Protocol):
    """What becomes of attempts."""

    def begins(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """An attempt begins."""

    def saves(self, agent: VirtualAgent, order: Order) -> None:
        """An attempt is about to write its checkpoint."""

    def takes_s(self, task: int) -> float:
        """How long the attempt that begins now will take."""

    def failure(self, task: int) -> str:
        """Why the attempt that ends now has failed; empty where it has not."""


class _Clock(SteadyClock):
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s

    def now(self) -> float:
        return self._now_s()


class _Wake(Wake):
    def __init__(self) -> None:
        self.stop_signal, self.is_noticed = None, False

    def wait_for_stop(self) -> None:
        pass


@dataclass(slots=True)
class _Pretended:
    order: Order
    outputs: Outputs | None
    end_s: float
    begun_s: float
    done_s: float
    """What was done of it when it began."""
    saves: tuple[float, float] = (inf, 0.0)
    """When it writes its next checkpoint, and how much is done by that."""


def state_file(order: Order) -> Path:
    """The checkpoint of a task: how much is done."""
    return Path(order.workdir, f"state-{order.task}-1")


def kept_s(order: Order) -> float:
    """How much is done by the checkpoint that is there."""
    file = state_file(order)
    return float(file.read_text().split()[0]) if order.has_checkpoints and file.exists() else 0.0


class _Crew(Crew):
    """Nodes on which tasks only take time."""

    def __init__(self, agent: VirtualAgent, names: tuple[str, ...], tasks: Tasks, now_s: Callable[[], float]) -> None:
        self.names, self._agent, self._tasks, self._now_s = names, agent, tasks, now_s
        self.is_noticed = False
        self._at_work: dict[int, _Pretended] = {}
        self._results: list[Result] = []
        self.disk: Path | None = None
        """Where the job has files of its own."""
        self._made: dict[str, Order] = {}  # what is there alone
        self._commits: dict[str, float] = {}
        self._committed: list[tuple[str, str]] = []

    def use_disks(self, folder: RunFolder, job: JobFile) -> None:  # noqa: ARG002
        self.disk = Path(job.scratch, self._agent.queue_id)
        self.disk.mkdir(parents=True)

    def inside(self, path: str) -> str:
        """Where a file is on the disk of the job."""
        return path if self.disk is None else f"{self.disk}/{Path(path).name}"

    def _stage(self, order: Order) -> Order:
        """Inputs come to the disk; the order as it is executed there."""
        if self.disk is None or order.local is None:
            for path in [path for path in order.inputs if path in self._made]:
                self._commit([path])
            return order
        for path in order.inputs:
            if not Path(self.inside(path)).exists() and Path(path).exists():
                Path(self.inside(path)).write_text(Path(path).read_text())
        inputs, outputs = (tuple(map(self.inside, paths)) for paths in (order.inputs, order.outputs))
        return replace(order, workdir=str(self.disk), inputs=inputs, outputs=outputs)

    def commit(self, place: int, paths: Sequence[str]) -> None:  # noqa: ARG002
        self._commits |= dict.fromkeys(paths, self._now_s() + _COMMITS_S)

    def _commit(self, paths: Sequence[str]) -> str:
        """Bring these to the shared files, as a real node does; why that failed."""
        if not (paths := [path for path in paths if path in self._made]):
            return ""
        outputs = Outputs(self._made[paths[0]], paths)
        try:
            about_to_write(paths)
            outputs.go_elsewhere()
            for path in paths:
                about_to_write(path)
                Path(outputs.places[path]).write_text(Path(self.inside(path)).read_text())
            outputs.keep()
        except OSError as error:
            with contextlib.suppress(OSError):
                outputs.discard()
            return str(error)
        for path in paths:
            del self._made[path]
        return ""

    def take_committed(self) -> list[tuple[str, str]]:
        for path in [path for path, due_s in self._commits.items() if due_s <= self._now_s()]:
            del self._commits[path]
            self._committed.append((path, self._commit([path])))
        committed, self._committed = self._committed, []
        return committed

    def drop(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._made.pop(path, None)
            Path(self.inside(path)).unlink(missing_ok=True)

    @property
    def next_s(self) -> float:
        """When the next task ends."""
        times = [*(min(run.end_s, run.saves[0]) for run in self._at_work.values()), *self._commits.values()]
        return self._now_s() if self._results else min(times, default=inf)

    def is_at_work(self, task: int) -> bool:
        """Whether an attempt at it runs."""
        return task in self._at_work

    def reach(self) -> None:
        pass

    def start(self, place: int, order: Order) -> None:  # noqa: ARG002  (all nodes are alike)
        self._tasks.begins(self._agent, order.task, order)
        seen = self._stage(order)
        outputs = Outputs(seen) if order.outputs else None
        try:
            if outputs is not None:
                outputs.prepare()
                _write(outputs, "half")
        except OSError as error:
            self._results.append(self._ended(order, outputs, f"cannot prepare its outputs: {error.strerror}"))
            return
        now, done_s = self._now_s(), kept_s(order)
        left_s = max(1.0, self._tasks.takes_s(order.task) - done_s)
        self._at_work[order.task] = _Pretended(order, outputs, now + left_s, now, done_s)

    def ask(self, keys: Collection[int]) -> None:
        for run in (self._at_work[key] for key in keys if key in self._at_work):
            now = self._now_s()
            run.saves = now + _WRITES_S, run.done_s + now - run.begun_s

    def _save(self, run: _Pretended) -> None:
        """Write the checkpoint; who ends with it does."""
        file, (_, done_s), run.saves = state_file(run.order), run.saves, (inf, 0.0)
        with contextlib.suppress(OSError):
            about_to_write(file)
            self._tasks.saves(self._agent, run.order)
            file.write_text(f"{done_s} {self._agent.queue_id} {run.order.attempt}")
        if run.order.task % 2:
            self._results.append(self._ended(self._at_work.pop(run.order.task).order, run.outputs, "exit code 75"))

    def collect(self) -> list[Result]:
        for run in [run for run in self._at_work.values() if run.saves[0] <= min(run.end_s, self._now_s())]:
            self._save(run)
        due = [task for task, run in self._at_work.items() if run.end_s <= self._now_s()]
        for task in sorted(due, key=lambda task: (self._at_work[task].end_s, task)):
            self._results.append(self._finished(self._at_work.pop(task)))
        results, self._results = self._results, []
        return results

    def _finished(self, run: _Pretended) -> Result:
        order = run.order
        seen = self.inside if self.disk is not None and order.local is not None else lambda path: path
        missing = [path for path in order.inputs if not Path(seen(path)).exists()]
        why = f"its input {missing[0]} is missing" if missing else self._tasks.failure(run.order.task)
        try:
            if run.outputs is not None and not why:
                _write(run.outputs, WHOLE)
                if run.outputs.may_keep():
                    run.outputs.keep()
                    if self.disk is not None and order.local is not None:
                        self._made |= dict.fromkeys(order.outputs, order)
                        if failed := self._commit([path for path in order.outputs if path not in order.local]):
                            return self._ended(order, None, f"its outputs cannot be put in place: {failed}")
                else:
                    why = "another attempt finished first"
        except OSError as error:
            why = f"its outputs cannot be put in place: {error.strerror}"
        return self._ended(order, run.outputs, why)

    def _ended(self, order: Order, outputs: Outputs | None, why: str, signal: int | None = None) -> Result:
        try:
            if outputs is not None and why:
                outputs.discard()
        except OSError as error:
            why = f"{why}; what it left cannot be removed: {error.strerror}"
        exit_code = None if signal else 1 if why else 0
        cause = Cause.SUPERSEDED if outputs is not None and outputs.is_beaten else Cause.PROGRAM
        local = tuple(path for path in order.outputs if path in self._made) if not why else ()
        return Result(order.task, order.attempt, exit_code, signal, why, cause=cause, local=local)

    def stop(self, keys: Collection[int], number: int) -> None:
        for run in [self._at_work.pop(key) for key in keys if key in self._at_work]:
            self._results.append(self._ended(run.order, run.outputs, "stopped", number))

    def take_lost(self) -> list[tuple[int, list[int]]]:
        return []

    def end(  # they go at once
        self,
        patience_s: float,  # noqa: ARG002
        take: Callable[[Result], None],
        meanwhile: Callable[[], bool] = lambda: False,
    ) -> None:
        runs, self._at_work = self._at_work, {}
        for run in runs.values():
            take(self._ended(run.order, run.outputs, "killed by signal SIGTERM", 15))
        while meanwhile():
            self._commits = dict.fromkeys(self._commits, 0.0)

    def kill(self) -> None:
        self.end(0.0, lambda _: None)


def _write(outputs: Outputs, text: str) -> None:
    for path in outputs.written:
        about_to_write(path)
        Path(path).write_text(text)


class _Loop(Loop):
    """Wakes when something is due, where a real one also looks every second."""

    _crew: _Crew

    def _pause_s(self) -> float:
        now, core = self._clock.now(), self._core
        looks = self._desk.look_again_s(now)
        dues = core.deadline, self._crew.next_s, self._desk.take_over_at, inf if looks is None else now + looks
        files = self._kept.due_s(core.deadline), *(at for at, _ in self._to_come)
        sweep_s = now + _SWEEP_EVERY_S
        return min(*dues, *files, sweep_s if self._desk.may_host else max(core.short_at, sweep_s)) - now

    def _collect(self) -> None:
        self._desk.take_over(self._clock.now())  # which notes that it was not idle until now
        super()._collect()

    def _say(self, text: str) -> None:
        pass

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
        self.folder, self.number, self.queue_id, self.hosts = folder, number, queue_id, hosts
        self._tasks, self._now_s, self._wake = tasks, now_s, _Wake()
        self.loop: _Loop | None = None
        self.exit_code: int | None = None
        """How it ended; None while it lives."""
        self.is_turned_away = False
        self.next_s: float = now_s()

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
            job = taken_up(self.folder, self.number, self.hosts[0], self.queue_id, self._now_s())
            if isinstance(job, str):
                self.exit_code, self.is_turned_away = 0, True
                return
            writer = Writer(self.folder.events(self.number), sync_every_s=inf)
            hosts = Hosts(self.hosts, are_here=True, is_cluster=False)
            crew = _Crew(self, self.hosts, self._tasks, self._now_s)
            clock, named = _Clock(self._now_s), self.queue_id
            self.loop = _Loop(self.folder, job, hosts, writer, self._wake, clock=clock, crew=crew, named=named)
            self.loop._kept.look_every_s = _LOOK_EVERY_S
            self._turns = iter(self.loop.turns())
        pause_s = next(self._turns, None)
        if pause_s is None:
            self.exit_code = self.loop.exit_code
            self._clear()
        else:
            self.next_s = self._now_s() + max(1, ceil(pause_s))

    def tell(self, signal: int = 15) -> None:
        """It is asked to stop, and does so in good order."""
        self._wake.stop_signal = signal
        self.turn()
        if self.exit_code is None:  # it heard of it while it was about to do something else
            self.turn()

    def notice(self) -> None:
        """A step hears that the nodes will be taken away."""
        if self.loop is not None:
            self.loop._crew.is_noticed, self.next_s = True, self._now_s()

    def kill(self) -> None:
        """Kill -9."""
        self._clear()
        self.exit_code, self.loop = 137, None

    def _clear(self) -> None:
        """What a job had on disks of nodes goes with it."""
        if self.loop is not None and self.loop._crew.disk is not None:
            shutil.rmtree(self.loop._crew.disk, ignore_errors=True)

    def has(self, path: str) -> bool:
        """Whether the job has this file on disks of its nodes."""
        return self.loop is not None and Path(self.loop._crew.inside(path)).exists()
