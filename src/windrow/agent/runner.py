"""Starts processes on this node and waits for them.

Rule 1: one thread. A task's process is in its own process group and has nothing of the agent's but
its environment.
Rule 2: what an attempt writes becomes its outputs only if it succeeds (`outputs`).
Rule 3: peak memory is what the kernel says of the process and its waited-for children. The kernel
counts the moment before the program is loaded, when the child still is the agent: a peak below the
agent's own is unknown, and is 0.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.agent.data import mounts
from windrow.agent.holding import LOOK_S, Cores, Memory
from windrow.agent.launchers import Launchers
from windrow.agent.machine import MemoryKills, shown, takers
from windrow.agent.order import Committed, Order
from windrow.agent.outputs import Outputs
from windrow.agent.piped import RESET
from windrow.agent.workers import Workers, set_up
from windrow.deletion import discard
from windrow.files import NO_SPACE, disk_faults, free_bytes, is_of_disk, patiently
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.model.size import format_memory

if TYPE_CHECKING:
    from windrow.agent.data.node_data import FileMove, NodeData

TAIL_BYTES = 2048
TAIL_LINES = 20
LOOK_EVERY_S = 0.1
DYING_S = 0.5  # how long killed processes are waited for
# Colours and their like, then every other control character but the tab.
_STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class _Running:
    order: Order
    out: int
    outputs: Outputs | None


@dataclass(slots=True)
class _Ready:
    """All is in place for an attempt: its command, what it sees, and where it prints.

    `before` is what leads it to its files, `cwd` where it runs. `signal`: what it was sent while
    its worker had not started it yet; 0: nothing.
    """

    order: Order
    command: tuple[str, ...]
    env: dict[str, str]
    out: int
    outputs: Outputs | None
    before: tuple[str, ...]
    cwd: str
    printed: str
    signal: int = 0


@dataclass(frozen=True, slots=True)
class _Awaited:
    """Files that are not there yet, and what to do when they are, or the patience is at its end.

    `to_start` is the order that begins then; None if an attempt has run, and its outputs are
    waited for. `move`: copies that are waited for; what they failed of is then said in place of
    what is missing.
    """

    paths: tuple[str, ...]
    until: float
    then: Callable[[str | None], None]
    to_start: Order | None
    move: FileMove | None = None

    def missing(self) -> str | None:
        """What is not there yet; None: nothing."""
        if self.move is None:
            return _first_missing(self.paths)
        return self.move.why or (
            None if self.move.is_over else "it was stopped before its files were copied"
        )


class Runner:
    """The processes of this node."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._running: dict[int, _Running] = {}
        self._awaited: list[_Awaited] = []
        self._results: list[Attempt] = []
        self._programs: dict[tuple[str, str], str] = {}
        self._own_peak_kib = 0
        self._memory_kills = MemoryKills()
        self._memory = Memory()
        self._cores = Cores(environ)
        self._look_at = 0.0
        self._launchers = Launchers(self._environ)
        self._workers = Workers[_Ready]()
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.data: NodeData | None = None
        """The node's own disk, if the job uses it."""
        self._commits: list[tuple[str, FileMove]] = []
        self._fetch_s: dict[
            int, float
        ] = {}  # by task: how long it waited for its inputs, until it has ended

    def start(self, order: Order) -> None:
        """Start it, at once or when its inputs have shown up. OutsideError if its output file
        cannot be made."""
        if order.patience_s:
            if self.data is None:
                inputs = order.inputs
            else:
                inputs = self.data.not_here(order.inputs)
            self._when_there(inputs, order.patience_s, lambda _: self._stage(order), order)
        else:
            self._stage(order)

    def commit(self, paths: Iterable[str]) -> None:
        """Copy these files, which were made here, to the shared file system."""
        if self.data is not None:
            self._commits += [(path, self.data.commit([path])) for path in paths]

    def take_committed(self) -> list[Committed]:
        """Files for which that has ended since the last call, each with what went wrong, if
        anything did."""
        shown = str if self.data is None else self.data.shown
        over = [
            Committed(path, shown(move.why), move.errno)
            for path, move in self._commits
            if move.is_over
        ]
        self._commits = [one for one in self._commits if not one[1].is_over]
        return over

    def drop(self, paths: Sequence[str]) -> None:
        """Nothing needs these files of this node any more."""
        if self.data is not None:
            self.data.drop(paths)

    @property
    def said(self) -> list[Any]:
        """What the mover of this node said to others, and was not passed on yet."""
        if self.data is None:
            return []
        return self.data.said

    def hear(self, place: int, what: Any) -> None:
        """What the mover of the node at this place said."""
        if self.data is not None:
            self.data.hear(place, what)

    def look_again_s(self) -> float | None:
        """Seconds until `collect` should be called though no child ended; None for whenever one
        does."""
        if self._results:
            return 0.0
        if self._awaited or self._commits or self._workers.waiting:
            return LOOK_EVERY_S
        if self._memory.is_watching:
            return max(0.0, self._look_at - time.monotonic())
        return None

    def collect(self) -> list[Attempt]:
        """The attempts that have ended since the last call."""
        self._hear_workers()
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid not in self._running and self._workers.waiting:
                self._hear_workers()  # its number was said before it began
            if pid in self._running:
                self._reaped(pid, os.waitstatus_to_exitcode(status), usage)
        now = time.monotonic()
        if self._memory.is_watching and now >= self._look_at:
            self._look_at = now + LOOK_S
            for group in self._memory.look():
                _kill_group(group)
        if self.data is not None:
            self.data.collect()
        awaited = self._awaited
        self._awaited = []
        for entry in awaited:
            missing = entry.missing()
            if (
                missing is None
                or now >= entry.until
                or (entry.move is not None and entry.move.is_over)
            ):
                entry.then(missing)
            else:
                self._awaited.append(entry)
        results = self._results
        self._results = []
        if self.data is None:
            return results
        fetched = [(result, round(self._fetch_s.pop(result.task, 0.0), 3)) for result in results]
        return [
            self.data.told(replace(result, fetch_s=took_s) if took_s else result)
            for result, took_s in fetched
        ]

    def signal(self, number: int, tasks: Iterable[int] | None = None) -> None:
        """Send a signal to the process groups of these tasks, or of all.

        One that waits for its inputs will not start any more: it ends as if the signal had ended
        it.
        """
        if tasks is None:
            chosen = None
        else:
            chosen = frozenset(tasks)
        awaited = self._awaited
        self._awaited = []
        for entry in awaited:
            if (order := entry.to_start) is not None and (chosen is None or order.task in chosen):
                self._results.append(_stopped(order, number))
            else:
                self._awaited.append(entry)
        for ready in self._workers.waiting:
            if chosen is None or ready.order.task in chosen:
                ready.signal = int(number)
        for pid, running in self._running.items():
            if chosen is None or running.order.task in chosen:
                # Its leader is not reaped, so the number is still its own.
                _signal_group(pid, number)

    def ask(self, tasks: Iterable[int]) -> None:
        """Ask these tasks for checkpoints: the leader of each one's group, or, if that takes no
        such signal (a shell around a program), those of the group that do. Who takes none yet would
        die of it, and is left alone.
        """
        asked = {
            r.order.task: (pid, r.order.ask) for pid, r in self._running.items() if r.order.ask
        }
        for leader, number in [asked[task] for task in tasks if task in asked]:
            for pid in takers(leader, number):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def end(self) -> list[Attempt]:
        """Kill whatever runs, wait for no file any more, and leave nothing half written; what came
        of it.

        A process that does not die at once keeps its unfinished outputs; the next attempt throws
        them away.
        """
        self.signal(signal.SIGKILL)
        self._workers.kill()
        results = self.collect()
        until = time.monotonic() + DYING_S
        while (self._running or self._workers.waiting) and time.monotonic() < until:
            time.sleep(0.005)
            results += self.collect()
        awaited = self._awaited
        self._awaited = []
        for entry in awaited:
            entry.then(entry.missing())
        return results + self.collect()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and nothing that has ended waits to be collected."""
        busy = self._running or self._awaited or self._results or self._workers.waiting
        return not busy

    def _stage(self, order: Order) -> None:
        """Let its files come to where it reads them, then start it."""
        if self.data is None:
            return self._spawn(order)
        try:
            move = self.data.stage(order)
        except OSError as error:
            return self._staged(order, _reason(error), _of_disk(error))
        if move.is_over:
            return self._staged(order, move.why or None)
        since = time.monotonic()
        then = partial(self._fetched, order, since)
        return self._awaited.append(_Awaited((), inf, then, order, move))

    def _fetched(self, order: Order, since: float, why: str | None) -> None:
        self._fetch_s[order.task] = time.monotonic() - since
        self._staged(order, why)

    def _staged(self, order: Order, why: str | None, cause: str = Cause.SPACE) -> None:
        if why is None:
            self._spawn(order)
        else:
            why = f"its inputs cannot be copied: {why}"
            self._results.append(Attempt(order.task, order.attempt, None, None, why, cause=cause))

    def _spawn(self, order: Order) -> None:
        """Start it, or say why that cannot be done."""
        given = order if self.data is None else self.data.with_volumes(order)
        data = self._data_for(given)
        order = given if data is None else data.seen(given)
        out = _opened(order.out)
        env = self._launchers.environment(order)
        if order.gpus is not None:
            env |= shown(self._environ, order.gpus)
        outputs = None
        if order.outputs:
            outputs = Outputs(order)
        if lost := self._lost_volume(order, data):
            self._not_started(order, out, None, lost, Cause.VOLUME)
            return
        try:
            command = _prepared(order, outputs, env, data)
        except (OSError, ValueError) as error:
            if Path(order.workdir).is_dir():
                why = f"cannot prepare its outputs: {_reason(error)}"
                self._not_started(order, out, None, why, _of_disk(error))
            else:
                self._not_started(order, out, 127, _cannot_start(order, error), _of_disk(error))
            return
        before: tuple[str, ...] = ()
        if data is not None:
            before = data.view.entering(given.workdir)
        ready = _Ready(given, command, env, out, outputs, before, order.workdir, order.out)
        try:
            if order.worker and not before:
                self._hand_to_worker(ready)
            else:
                self._start(ready)
        except (OSError, ValueError) as error:
            self._cannot_start(ready, error)

    def _start(self, ready: _Ready) -> None:
        """A process for it. OSError if there can be none."""
        order = ready.order
        with (
            self._cores.bound(order.task, order.cores)
            if order.is_held
            else contextlib.nullcontext()
        ):
            pid = self._started(ready.command, ready.env, ready.out, ready.before)
        self._began(ready, pid)

    def _hand_to_worker(self, ready: _Ready) -> None:
        """Let a worker start it. OSError if its program is not there."""
        order = ready.order
        program = self._program(ready.command[0], ready.env.get("PATH", os.defpath))
        needed = set_up(order.worker, ready.cwd, order.env)
        cores = self._cores.take(order.task, order.cores) if order.is_held else []
        self._workers.give(needed, program, ready.command, ready.env, ready.printed, cores, ready)

    def _hear_workers(self) -> None:
        """What workers have started runs; what they have not is started here."""
        for answer in self._workers.answers():
            ready = answer.given
            if answer.pid:
                self._began(ready, answer.pid)
                if ready.signal:
                    _signal_group(answer.pid, ready.signal)
            elif ready.signal:
                self._cores.end(ready.order.task)
                ended = _stopped(ready.order, ready.signal)
                os.close(ready.out)
                _remove(ready.printed)
                self._results.append(replace(ended, why=ended.why + _discarded(ready.outputs)))
            else:
                self._cores.end(ready.order.task)
                note = f"windrow: not started by its worker: {answer.why_not}\n"
                os.write(ready.out, note.encode(errors="surrogateescape"))
                try:
                    os.chdir(ready.cwd)
                    self._start(ready)
                except (OSError, ValueError) as error:
                    self._cannot_start(ready, error)

    def _began(self, ready: _Ready, pid: int) -> None:
        order = ready.order
        self._running[pid] = _Running(order, ready.out, ready.outputs)
        if order.is_held and order.memory_bytes:
            self._memory.begin(pid, order.memory_bytes)

    def _cannot_start(self, ready: _Ready, error: OSError | ValueError) -> None:
        why = _cannot_start(ready.order, error) + _discarded(ready.outputs)
        self._not_started(ready.order, ready.out, 127, why)

    def _started(
        self, command: tuple[str, ...], env: dict[str, str], out: int, before: tuple[str, ...]
    ) -> int:
        """A process in a group of its own, with nothing to read, which prints to `out`. `before` is
        what leads it to its files."""
        program = self._program(command[0], env.get("PATH", os.defpath))
        if before:
            command = (*before, program, *command[1:])
            program = self._program(before[0], os.defpath)
        streams = [
            (os.POSIX_SPAWN_DUP2, file, number)
            for number, file in enumerate((self._null, out, out))
        ]
        return os.posix_spawn(
            program,
            command,
            env,
            file_actions=streams,
            setpgroup=0,
            setsigmask=(),
            setsigdef=RESET,
        )

    def _not_started(
        self, order: Order, out: int, code: int | None, why: str, cause: str = Cause.PROGRAM
    ) -> None:
        os.close(out)
        _remove(order.out)
        self._results.append(Attempt(order.task, order.attempt, code, None, why, cause=cause))

    def _program(self, name: str, path: str) -> str:
        if "/" in name:
            return name
        found = self._programs.get((name, path)) or shutil.which(name, path=path)
        if found is None:  # it may yet be installed
            raise FileNotFoundError(2, "no such program on PATH", name)
        if found.startswith("/"):  # another one holds in this task's folder only
            self._programs[name, path] = found
        return found

    def _reaped(self, pid: int, code: int, usage: resource.struct_rusage) -> None:
        """A process has ended: its attempt has failed, or its outputs are looked at."""
        running = self._running.pop(pid)
        order = running.order
        self._cores.end(order.task)
        taken_bytes = self._memory.end(pid)
        ended = Attempt(
            order.task,
            order.attempt,
            exit=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            why=_why(code, order.command),
            cpu_s=round(usage.ru_utime + usage.ru_stime, 6),
            peak_bytes=self._peak_bytes(usage),
        )
        out_of_memory = code in _KILLED and self._memory_kills.is_new()
        if ended.why:
            ended = self._failed(pid, running, ended, out_of_memory=out_of_memory)
        if taken_bytes and ended.signal == signal.SIGKILL:
            why = f"it took {format_memory(taken_bytes)} of memory, and states "
            why += f"{format_memory(order.memory_bytes)}: it was killed"
            ended = replace(ended, why=why, cause=Cause.MEMORY)
        if os.fstat(running.out).st_size == 0 and (ended.why or not running.outputs):
            _remove(order.out)
        if ended.why or (outputs := running.outputs) is None:
            os.close(running.out)
            self._results.append(ended)
        else:
            then = partial(self._checked, order, ended, outputs, running.out)
            self._when_there(outputs.written, order.patience_s, then, None)

    def _peak_bytes(self, usage: resource.struct_rusage) -> int:
        """The peak of a process, or 0 if that may be the agent's. The agent's only grows, so an
        old figure of it mostly decides."""
        if usage.ru_maxrss > self._own_peak_kib:
            self._own_peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if usage.ru_maxrss > self._own_peak_kib:
            return usage.ru_maxrss * 1024
        return 0

    def _failed(
        self, pid: int, running: _Running, ended: Attempt, *, out_of_memory: bool
    ) -> Attempt:
        """A process has failed: why, and nothing of it is left that could meet the next attempt."""
        tail = _tail(running.out)
        if out_of_memory:
            why = "it ran out of memory, and the kernel killed it"
            cause = Cause.MEMORY
        else:
            why, cause = self._no_space(running.order, ended.why, tail)
        if lost := self._lost_volume(running.order, self._data_for(running.order)):
            cause = Cause.VOLUME
            why = f"{why}; {lost}"
        _kill_group(pid)
        why += _discarded(running.outputs)
        return replace(ended, why=why, cause=_blamed(cause, running.outputs), tail=tail)

    def _no_space(self, order: Order, why: str, tail: str) -> tuple[str, Cause]:
        """What failed a program, which is not its own fault if it found no space on a disk."""
        for line in tail.splitlines():
            if any(words in line for words in _NO_SPACE):
                return f"{why}: {line.strip()}{self._which_disk(order)}", Cause.SPACE
        if not tail and _is_full(order.out):
            return f"{why}; the disk for what it prints is full", Cause.SPACE
        return why, Cause.PROGRAM

    def _lost_volume(self, order: Order, data: NodeData | None) -> str:
        """Which of its mounts is gone, in words; empty if none is."""
        if not order.mounts:
            return ""
        return mounts.lost_volume(order, data.view.inside if data else str)

    def _data_for(self, order: Order) -> NodeData | None:
        """What keeps files on this node, if the order runs on these."""
        if self.data is not None and self.data.runs_here(order):
            return self.data
        return None

    def _which_disk(self, order: Order) -> str:
        """Where what an order writes is, if that is not its place."""
        if self.data is not None and self.data.runs_here(order):
            return " (on the scratch disk of its node)"
        return ""

    def _checked(
        self, order: Order, ended: Attempt, outputs: Outputs, out: int, missing: str | None
    ) -> None:
        """An attempt whose command succeeded: so has it, if its outputs are there and can be put in
        place."""
        why = outputs.why_not_made(missing)
        try:
            if not why and not outputs.may_keep():
                why = "another attempt finished first"
            if not why:
                for note in outputs.keep():
                    os.write(out, f"windrow: {note}\n".encode(errors="surrogateescape"))
        except OSError as error:
            why = f"its outputs cannot be put in place: {_reason(error)}"
            ended = replace(ended, cause=_of_disk(error))
        if why:
            why = f"exit code 0, but {why}{_discarded(outputs)}"
            cause = _blamed(ended.cause, outputs)
            ended = replace(ended, why=why, cause=cause, tail=_tail(out))
        else:
            ended = replace(ended, sizes=outputs.sizes())
        if os.fstat(out).st_size == 0:
            _remove(order.out)
        os.close(out)
        if why or self.data is None or not self.data.runs_here(order):
            self._results.append(ended)
        else:
            move = self.data.keep(order, ended.sizes)
            self._awaited.append(
                _Awaited((), inf, partial(self._kept, order, ended, move), None, move)
            )

    def _kept(self, order: Order, ended: Attempt, move: FileMove, why: str | None) -> None:
        """What an attempt made on this node has left it, as far as it must."""
        assert self.data is not None
        if why is None:
            data = self.data
            self._results.append(
                replace(ended, local=data.stayed(order), moved=data.committed(order))
            )
        else:
            cause = Cause.SPACE if is_of_disk(move.errno) else ended.cause
            why = f"exit code 0, but its outputs cannot be put in place: {why}"
            self._results.append(replace(ended, why=why, cause=cause, sizes=()))

    def _when_there(
        self,
        paths: tuple[str, ...],
        patience_s: float,
        then: Callable[[str | None], None],
        to_start: Order | None,
    ) -> None:
        missing = _first_missing(paths)
        if missing is None or patience_s <= 0:
            then(missing)
        else:
            self._awaited.append(_Awaited(paths, time.monotonic() + patience_s, then, to_start))


def _kill_group(group: int) -> None:
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _stopped(order: Order, number: int) -> Attempt:
    """An attempt that was stopped before it had a process."""
    return Attempt(order.task, order.attempt, None, int(number), "stopped before it started")


def _opened(path: str) -> int:
    """The empty file for what an attempt prints."""
    how = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    with disk_faults(f"{path} cannot be written"):
        return patiently(partial(os.open, path, how, 0o600))


def _prepared(
    order: Order, outputs: Outputs | None, env: dict[str, str], data: NodeData | None
) -> tuple[str, ...]:
    """Everything is in place for this command. What it has to know of its mounts joins `env`."""
    # A child starts where its parent is; every time, since a task may replace it.
    patiently(partial(os.chdir, order.workdir))
    command = order.command
    places: Mapping[str, str] = {}
    if outputs:
        command = patiently(outputs.prepare)
        places = outputs.places
    if order.mounts:
        named = data.shown if data else str
        written = {named(path): named(place) for path, place in places.items()}
        command, where = mounts.command_for(replace(order, command=command), written)
        env |= where
    return command


def _first_missing(paths: tuple[str, ...]) -> str | None:
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110 - on the way of every task
            # Listing its folder makes a network file system ask the server again.
            with contextlib.suppress(OSError, ValueError):
                next(Path(path).parent.iterdir(), None)
            if not os.path.exists(path):  # noqa: PTH110
                return path
    return None


def _remove(path: str) -> None:
    """Remove a file in which there is nothing. If that cannot be done it stays, and does no
    harm."""
    with contextlib.suppress(OSError):
        discard(path)


def _discarded(outputs: Outputs | None) -> str:
    """Throw away what a failed attempt wrote; what to say if that could not be done."""
    try:
        if outputs is not None:
            outputs.discard()
    except OSError as error:
        return f"; what it left cannot be removed: {_reason(error)}"
    return ""


def _blamed(cause: str, outputs: Outputs | None) -> str:
    """Why an attempt failed; not for a fault of its own if another has won."""
    if outputs is not None and outputs.is_beaten:
        return Cause.SUPERSEDED
    return cause


_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
_NO_SPACE = tuple(map(os.strerror, NO_SPACE))
"""What programs say that find no space; that is not their fault."""
_LITTLE_BYTES = 1 << 14


def _of_disk(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and is_of_disk(error.errno):
        return Cause.SPACE
    return Cause.PROGRAM


def _cannot_start(order: Order, error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and not Path(order.workdir).is_dir():
        return f"cannot start: its working folder {order.workdir} does not exist"
    return f"cannot start {order.command[0]!r}: {_reason(error, named=True)}"


def _reason(error: OSError | ValueError, *, named: bool = False) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if named or not error.filename:
        return f"{error.strerror}"
    return f"{error.filename}: {error.strerror}"


_HINTS = (
    (
        141,
        r"\|",
        "a program in a pipe wrote to one that had already exited (SIGPIPE), as in `... | head`; "
        "if that is fine, add "
        "`|| true`, or set `shell: bash` for this task",
    ),
    (
        1,
        r"\bgrep\b",
        "grep exits with 1 when nothing matches; write `grep ... || true` if that is fine",
    ),
    (
        126,
        "",
        "a program was found but cannot be executed; is it a program, with the permission (chmod "
        "+x)?",
    ),
    (
        127,
        "",
        "a program was not found on the node; check its name, PATH, and which modules are loaded",
    ),
)
"""What an exit code of a shell usually means, if its text has this in it."""
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|k|mk|a)?sh")


def _is_full(path: str) -> bool:
    """Whether a program could not even say why it failed, since what it prints is written there."""
    left = free_bytes(Path(path).parent)
    return left is not None and left < _LITTLE_BYTES


def _why(code: int, command: tuple[str, ...]) -> str:
    if code == 0:
        return ""
    if code > 0:
        return f"exit code {code}{''.join(_hints(code, command))}"
    is_known = -code in set(signal.Signals)
    name = signal.Signals(-code).name if is_known else str(-code)
    hint = ""
    if -code == signal.SIGKILL:
        hint = "; probably out of memory, unless someone killed it"
    return f"killed by signal {name}{hint}"


def _hints(code: int, command: tuple[str, ...]) -> Iterator[str]:
    """What may be wrong with a command for a shell that ends with this exit code."""
    if _SHELL.fullmatch(command[0]) and "-c" in command[-2:-1]:
        for known, word, hint in _HINTS:
            if code == known and re.search(word, command[-1]):
                yield f": {hint}"


def _tail(out: int) -> str:
    """The last lines of a file, fit to be shown: what steers a terminal is left out."""
    text = os.pread(out, TAIL_BYTES, max(0, os.fstat(out).st_size - TAIL_BYTES)).decode(
        errors="replace"
    )
    return "\n".join(_STEERING.sub("", line) for line in text.splitlines()[-TAIL_LINES:])
