"""Nodes without processes: tasks that take time and write files, and the disks of nodes (rules 2 to
5 of `agents`)."""

# ruff: noqa: D102 (what methods without a text do, `Crew` says)
from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from windrow.agent.crew import Crew
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import JobFile
from windrow.agent.order import Committed, Order
from windrow.agent.outputs import Outputs
from windrow.files import about_to_write, is_of_disk
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.trials.virtual.content import HALF, content, made
from windrow.trials.virtual.kinds import Kind

if TYPE_CHECKING:
    from windrow.trials.virtual.agents import VirtualAgent

_WRITES_S = 4.0
_SHOWS_UP_S = 3.0  # an agent waits a little longer for a file to show up


class Killed(BaseException):
    """A process is gone, as after kill -9. No `except` for errors may stop it."""


class Tasks(Protocol):
    """What becomes of attempts."""

    copies_s: float
    """How long a copy of a file to or from a node takes."""

    def begins(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """An attempt begins."""

    def reads(self, order: Order, path: str, text: str | None) -> None:
        """An attempt reads this there, as the input of that path; None: there is nothing."""

    def omits(self, order: Order) -> Kind | None:
        """What the attempt that begins now does to its outputs that it should not."""

    def finished(self, order: Order, ran_s: float) -> None:
        """An attempt has made its outputs."""

    def came(self, paths: Iterable[str]) -> None:
        """These have come from a node to the shared files."""

    def ended(self, agent: VirtualAgent, attempt: Attempt) -> None:
        """This came of an attempt."""

    def discarded(self, order: Order) -> None:
        """The outputs of an attempt without success were discarded."""

    def was_not_committed(self, agent: VirtualAgent, task: int) -> None:
        """An agent hears that an output of this task cannot leave its node."""

    def killed(self, agent: VirtualAgent) -> None:
        """An agent is gone, with what it had under way."""

    def saves(self, agent: VirtualAgent, order: Order) -> None:
        """An attempt is about to write its checkpoint."""

    def saved(self, order: Order, done_s: float) -> None:
        """It has, and so much of the task is done by that."""

    def ends_saved(self, task: int) -> bool:
        """Whether an attempt at this task ends when it has written its checkpoint."""

    def takes_s(self, task: int) -> float:
        """How long the attempt that begins now will take."""

    def failure(self, task: int) -> str:
        """Why the attempt that ends now has failed; empty if it has not."""

    def home_s(self) -> float:
        """When the shared files can be reached again; 0 if they can be. OSError if they say
        so themselves."""

    def copies(self, agent: VirtualAgent) -> None:
        """Half of a file has been copied to or from a node."""


@dataclass(slots=True)
class _Copy:
    """Files are on their way from or to this node; `order` waits for them, before it starts or
    after it has ended."""

    due_s: float
    place: int
    do: Callable[[], None]
    order: Order | None = None
    is_ahead: bool = False


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
    read: dict[str, str | None] = field(default_factory=dict)
    """What it has read, by the paths of its inputs: every other one at its start, the rest at its
    end."""
    omits: Kind | None = None
    """What it does to its last output that it should not."""
    kept: str = ""
    """What it found in its checkpoint of what was read by those before it."""


def state_file(order: Order) -> Path:
    """The checkpoint of a task: how much is done."""
    return Path(order.workdir, f"state-{order.task}-1")


def _kept_read(order: Order) -> str:
    """What the attempts before had read, by the checkpoint that is there."""
    if kept_s(order):
        return state_file(order).read_text().split()[1]
    return ""


def kept_s(order: Order) -> float:
    """How much is done by the checkpoint that is there."""
    file = state_file(order)
    if order.has_checkpoints and file.exists():
        return float(file.read_text().split()[0])
    return 0.0


class VirtualCrew(Crew):
    """Nodes on which tasks only take time."""

    def __init__(
        self, agent: VirtualAgent, names: tuple[str, ...], tasks: Tasks, now_s: Callable[[], float]
    ) -> None:
        self.names = names
        self._agent = agent
        self._tasks = tasks
        self._now_s = now_s
        self.is_noticed = False
        self._at_work: dict[int, _Pretended] = {}
        self._results: list[Attempt] = []
        self.disk: Path | None = None
        """Where nodes of the job have files of their own."""
        self._place: dict[int, int] = {}  # of the last attempt at each task
        self._made: dict[str, tuple[int, Order]] = {}  # what is on a node alone
        self._copies: list[_Copy] = []
        self._committed: list[Committed] = []
        self._lost: list[tuple[int, list[int]]] = []
        self._is_leaving = False

    def use_disks(self, folder: RunFolder, job: JobFile) -> None:  # noqa: ARG002
        self.disk = Path(job.scratch, self._agent.queue_id)
        for place in range(len(self.names)):
            (self.disk / str(place)).mkdir(parents=True)

    def inside(self, path: str, task: int) -> str:
        """Where a file is for this task: on the disk of its node, if it uses that."""
        if self.disk is None:
            return path
        return f"{self.disk}/{self._place[task]}/{Path(path).name}"

    def source(self, path: str, order: Order) -> str:
        """From where an attempt that is to start gets this input."""
        if self.disk is None:
            return path
        near = self.inside(path, order.task)
        if self._seen(order) is str:
            if self._made_at(path) == self._place[order.task]:
                return near
            return path
        if Path(near).exists():
            return near
        return path

    def _seen(self, order: Order) -> Callable[[str], str]:
        is_inside = self.disk is not None and order.local is not None
        if is_inside:
            return partial(self.inside, task=order.task)
        return str

    def _later(
        self,
        place: int,
        do: Callable[[], None],
        order: Order | None = None,
        *,
        is_ahead: bool = False,
    ) -> None:
        due_s = self._now_s() + self._tasks.copies_s
        self._copies.append(_Copy(due_s, place, do, order, is_ahead))

    def _copy(self, source: str, target: str) -> None:
        """As `agent.data.carrier` does. OSError; one of the two is among the shared files, which
        may be out of reach."""
        if self._home_s() > self._now_s():  # only if the agent leaves, which does not wait for that
            raise OSError(errno.ETIMEDOUT, "Connection timed out")
        about_to_write(target)
        part = Path(f"{target}.part")
        part.write_text(HALF)
        self._tasks.copies(self._agent)
        part.write_text(Path(source).read_text())
        part.rename(target)

    def _home_s(self) -> float:
        """When the shared files can be reached, by the clock of this node."""
        return self._tasks.home_s() + self._agent.clock_s

    def _stage(self, order: Order) -> OSError | None:
        """What an order reads comes to where it reads it, and what was made there leaves; why that
        failed."""
        seen = self._seen(order)
        if seen is str:
            here = self._place[order.task]
            return self._commit([path for path in order.inputs if self._made_at(path) == here])
        try:
            for path in order.inputs:
                if not Path(seen(path)).exists() and Path(path).exists():
                    self._copy(path, seen(path))
        except OSError as error:
            return error
        return None

    def _made_at(self, path: str) -> int | None:
        if path in self._made:
            return self._made[path][0]
        return None

    def commit(self, place: int, paths: Sequence[str]) -> None:
        for path in paths:
            self._later(place, partial(self._commit_one, path))

    def _commit_one(self, path: str) -> None:
        error = self._commit([path])
        if error is not None:
            self._tasks.was_not_committed(self._agent, self._made[path][1].task)
        why, number = ("", 0) if error is None else (str(error), error.errno or 0)
        self._committed.append(Committed(path, why, number))

    def _commit(self, paths: Sequence[str]) -> OSError | None:
        """Bring these to the shared files, as a real node does; why that failed."""
        if not (paths := [path for path in paths if path in self._made]):
            return None
        place, order = self._made[paths[0]]
        outputs = Outputs(order, paths)
        try:
            outputs.go_elsewhere()
            for path in paths:
                self._copy(f"{self.disk}/{place}/{Path(path).name}", outputs.places[path])
            outputs.keep()
        except OSError as error:
            with contextlib.suppress(OSError):
                outputs.discard()
            return error
        for path in paths:
            del self._made[path]
        self._tasks.came(paths)
        return None

    def take_committed(self) -> list[Committed]:
        self._do_copies()
        committed = self._committed
        self._committed = []
        return committed

    def _do_copies(self) -> None:
        """Those that are due; who cannot reach the shared files waits."""
        now = self._now_s()
        for copy in [copy for copy in self._copies if copy.due_s <= now]:
            try:
                away_s = self._home_s()
            except OSError:  # the process that copies hears it, too
                away_s = 0.0
            if away_s > now and not self._is_leaving:
                copy.due_s = away_s
            else:
                self._copies.remove(copy)
                copy.do()

    def drop(self, paths: Sequence[str]) -> None:
        for path in paths:
            place, _ = self._made.pop(path, (None, None))
            if place is not None:
                Path(f"{self.disk}/{place}/{Path(path).name}").unlink(missing_ok=True)

    def lose(self, place: int) -> None:
        """The node at this place is gone, with what runs and is there; of what it was told nothing
        is heard."""
        gone = [task for task, run in self._at_work.items() if self._place[task] == place]
        gone += [copy.order.task for copy in self._copies if copy.place == place and copy.order]
        self._at_work = {task: run for task, run in self._at_work.items() if task not in gone}
        self._copies = [copy for copy in self._copies if copy.place != place]
        self._made = {path: made for path, made in self._made.items() if made[0] != place}
        shutil.rmtree(f"{self.disk}/{place}")
        self._lost.append((place, sorted(gone)))

    @property
    def next_s(self) -> float:
        """When the next task ends."""
        times = [min(run.end_s, run.saves[0]) for run in self._at_work.values()]
        times += [copy.due_s for copy in self._copies]
        if self._results or self._lost:
            return self._now_s()
        return min(times, default=inf)

    def is_at_work(self, task: int) -> bool:
        """Whether an attempt at it runs."""
        return task in self._at_work

    @property
    def is_busy(self) -> bool:
        """Whether anything runs or is copied."""
        return bool(self._at_work or self._copies or self._results)

    def reach(self) -> None:
        pass

    def start(self, place: int, order: Order) -> None:
        self._place[order.task] = place if self.disk is not None else 0
        self._tasks.begins(self._agent, order.task, order)
        seen = self._seen(order)
        here = self._place[order.task]
        if seen is str:
            is_copied = any(self._made_at(path) == here for path in order.inputs)
        else:
            is_copied = any(not Path(seen(path)).exists() for path in order.inputs)
        if is_copied:
            self._later(here, partial(self._staged, order), order, is_ahead=True)
        else:
            self._spawn(order)

    def _staged(self, order: Order) -> None:
        if (why := self._stage(order)) is not None:
            self._results.append(
                self._ended(order, None, f"its inputs cannot be copied: {why}", cause=Cause.SPACE)
            )
        else:
            self._spawn(order)

    def _spawn(self, order: Order) -> None:
        seen = self._seen(order)
        inputs, made = (tuple(map(seen, paths)) for paths in (order.inputs, order.outputs))
        folder = order.workdir if seen is str else f"{self.disk}/{self._place[order.task]}"
        outputs = (
            Outputs(replace(order, workdir=folder, inputs=inputs, outputs=made))
            if order.outputs
            else None
        )
        omits = self._tasks.omits(order)
        try:
            if outputs is not None:
                outputs.prepare()
                _write(outputs, lambda _: HALF, omits)
        except OSError as error:
            why = f"cannot prepare its outputs: {error.strerror}"
            self._results.append(self._ended(order, outputs, why, cause=_of_disk(error)))
            return
        now = self._now_s()
        done_s = kept_s(order)
        left_s = max(1.0, self._tasks.takes_s(order.task) - done_s)
        run = _Pretended(order, outputs, now + left_s, now, done_s, omits=omits)
        run.kept = _kept_read(order)
        self._read(run, order.inputs[::2])
        if None in run.read.values():  # it says so at once
            run.end_s = now + 1
        self._at_work[order.task] = run

    def _read(self, run: _Pretended, paths: Sequence[str]) -> None:
        """It reads these of its inputs where it runs."""
        seen = self._seen(run.order)
        for path in paths:
            run.read[path] = content(seen(path))
            self._tasks.reads(run.order, path, run.read[path])

    def ask(self, keys: Collection[int]) -> None:
        for run in (self._at_work[key] for key in keys if key in self._at_work):
            if None in run.read.values():
                continue
            now = self._now_s()
            run.saves = now + _WRITES_S, run.done_s + now - run.begun_s

    def _save(self, run: _Pretended) -> None:
        """Write the checkpoint; who ends with it does."""
        file = state_file(run.order)
        _, done_s = run.saves
        run.saves = (inf, 0.0)
        with contextlib.suppress(OSError):
            about_to_write(file)
            self._tasks.saves(self._agent, run.order)
            read = run.kept or _digest(run)
            file.write_text(f"{done_s} {read} {self._agent.queue_id} {run.order.attempt}")
            self._tasks.saved(run.order, done_s)
        if self._tasks.ends_saved(run.order.task):
            self._results.append(
                self._ended(self._at_work.pop(run.order.task).order, run.outputs, "exit code 75")
            )

    def collect(self) -> list[Attempt]:
        self._do_copies()
        for run in [
            run for run in self._at_work.values() if run.saves[0] <= min(run.end_s, self._now_s())
        ]:
            self._save(run)
        due = [task for task, run in self._at_work.items() if run.end_s <= self._now_s()]
        for task in sorted(due, key=lambda task: (self._at_work[task].end_s, task)):
            run = self._at_work[task]
            if run.omits is Kind.LATE_OUTPUT:  # it has ended, and its last output will show up
                run.omits = None
                run.end_s = self._now_s() + _SHOWS_UP_S
            else:
                self._finish(self._at_work.pop(task))
        results = self._results
        self._results = []
        return results

    def _finish(self, run: _Pretended) -> None:
        order = run.order
        self._read(run, order.inputs[1::2])
        missing = [path for path in order.inputs if run.read[path] is None]
        why = self._tasks.failure(order.task)
        cause = Cause.PROGRAM
        why = f"its input {missing[0]} is missing" if missing else why
        try:
            if run.outputs is not None and not why:
                _write(run.outputs, partial(_result, run), run.omits)
                if self._seen(order) is str:
                    _write_note(order, run.outputs)
                why = self._why_not_kept(run.outputs)
        except OSError as error:
            why = f"its outputs cannot be put in place: {error.strerror}"
            cause = _of_disk(error)
        if not why:
            self._tasks.finished(order, self._now_s() - run.begun_s)
            if self._seen(order) is str:
                self._tasks.came(order.outputs)
        if not why and self._seen(order) is not str:
            here = self._place[order.task]
            self._made |= dict.fromkeys(order.outputs, (here, order))
            if not set(order.outputs).issubset(order.local or ()):
                self._later(here, partial(self._keep, order), order)
                return
        self._results.append(self._ended(order, run.outputs, why, cause=cause))

    def _why_not_kept(self, outputs: Outputs) -> str:
        """Bring these into place, as `agent.runner` does; why not, if they are not all there."""
        missing = next((path for path in outputs.written if not Path(path).exists()), None)
        if why := outputs.why_not_made(missing):
            return why
        if not outputs.may_keep():
            return "another attempt finished first"
        outputs.keep()
        return ""

    def _keep(self, order: Order) -> None:
        """What may not stay on its node leaves it, and with that its attempt has finished."""
        error = self._commit([path for path in order.outputs if path not in (order.local or ())])
        why = f"its outputs cannot be put in place: {error}" if error is not None else ""
        self._results.append(self._ended(order, None, why, cause=_of_disk(error)))

    def _ended(
        self,
        order: Order,
        outputs: Outputs | None,
        why: str,
        signal: int | None = None,
        cause: Cause = Cause.PROGRAM,
    ) -> Attempt:
        try:
            if outputs is not None and why:
                outputs.discard()
                self._tasks.discarded(order)
        except OSError as error:
            why = f"{why}; what it left cannot be removed: {error.strerror}"
        if signal:
            exit_code = None
        elif why:
            exit_code = 1
        else:
            exit_code = 0
        if outputs is not None and outputs.is_beaten:
            cause = Cause.SUPERSEDED
        if not why:
            local = tuple(path for path in order.outputs if path in self._made)
        else:
            local = ()
        attempt = Attempt(
            order.task, order.attempt, exit_code, signal, why, cause=cause, local=local
        )
        self._tasks.ended(self._agent, attempt)
        return attempt

    def stop(self, keys: Collection[int], number: int) -> None:
        for run in [self._at_work.pop(key) for key in keys if key in self._at_work]:
            self._results.append(self._ended(run.order, run.outputs, "stopped", number))
        for copy in [
            copy
            for copy in self._copies
            if copy.is_ahead and copy.order and copy.order.task in keys
        ]:
            self._copies.remove(copy)
            assert copy.order is not None
            self._results.append(self._ended(copy.order, None, "stopped before it started", number))

    def take_lost(self) -> list[tuple[int, list[int]]]:
        lost = self._lost
        self._lost = []
        return lost

    def end(  # they go at once
        self,
        patience_s: float,  # noqa: ARG002
        take: Callable[[Attempt], None],
        meanwhile: Callable[[], bool] = lambda: False,
    ) -> None:
        runs = self._at_work
        self._at_work = {}
        self._is_leaving = True
        for run in runs.values():
            take(self._ended(run.order, run.outputs, "killed by signal SIGTERM", 15))
        for copy in [copy for copy in self._copies if copy.order]:
            self._copies.remove(copy)
            assert copy.order is not None
            take(self._ended(copy.order, None, "it was stopped before its files were copied", 15))
        while meanwhile() and self._copies:  # else the agent would wait for nothing
            for copy in self._copies:
                copy.due_s = 0.0

    def kill(self) -> None:
        self.end(0.0, lambda _: None)


def _of_disk(error: OSError | None) -> Cause:
    """As `agent.runner` has it."""
    return Cause.SPACE if error is not None and is_of_disk(error.errno) else Cause.PROGRAM


def _digest(run: _Pretended) -> str:
    """Of what it read at its start, for its checkpoint."""
    return made((), [run.read[path] or "" for path in run.order.inputs[::2]], "").split()[1]


def _result(run: _Pretended, name: str) -> str:
    """What the attempt writes into its output of this name; what it continued from is in it."""
    read = [run.read[path] or "" for path in run.order.inputs]
    return made(
        run.order.command, read if run.kept in ("", _digest(run)) else [*read, run.kept], name
    )


def _write(outputs: Outputs, text: Callable[[str], str], omits: Kind | None = None) -> None:
    """Write all outputs, or all but the last."""
    places = list(outputs.places.items())
    for path, written in places[:-1] if omits else places:
        about_to_write(written)
        Path(written).write_text(text(Path(path).name))


def note_of(task: int) -> str:
    """The name of a file that a task leaves beside its outputs, and that no one declared."""
    return f"note-{task}"


def _write_note(order: Order, outputs: Outputs) -> None:
    hidden = [written for path, written in outputs.places.items() if written != path]
    if hidden:
        Path(hidden[0]).with_name(note_of(order.task)).write_text("note")
