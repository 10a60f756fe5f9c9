"""`concurrent.futures` on the batch queue: calls are tasks of a run that is held.

Rule 1: nothing is forked here, and one thread, which the first call starts, talks to the run.
Rule 2: calls that come within a moment are handed over together. Rule 3: a future that is an
argument, at any depth, is an edge: its result is read where the call runs, and does not come here.
Rule 4: when this program ends, however it does, what was handed over is carried out, and
`Run.result` has what came of it.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack

from windrow import calls
from windrow.api import Event, Hold, NewTask, Order, Run, Watch, hold_tasks
from windrow.app.runs import own_root
from windrow.calls import TaskError
from windrow.errors import UserError, WindrowError
from windrow.forecast.runtimes import RunTimes

T = TypeVar("T")

GATHER_S = 0.2
"""How long calls are gathered before they are handed over, unless someone waits for a result."""
_LOOK_S = 0.02
_LOOK_MOST_S = 0.5
_ALIVE_S = 5.0
_LEAVE_S = 60.0
_PIECE_S = 2.0
_PIECE_MOST = 1000
KEEP_S = 300.0
"""How long nodes are kept for calls to come."""


class Needs(TypedDict, total=False):
    """What calls need, as in a `NewTask`."""

    cores: int
    nodes: int
    memory: int | str
    disk: int | str
    gpus: int | str
    resources: Mapping[str, int]
    runtime: float | str | None
    time_limit: float | str | None
    retries: int
    env: Mapping[str, str]


class Future(futures.Future[T], Generic[T]):
    """The result of a call to come. As an argument of another call it stands for this result."""

    def __init__(self, task: str, session: _Session) -> None:
        super().__init__()
        self.task = task
        """What the call is called in its run."""
        self._session = session

    @property
    def run(self) -> Run:
        """The run to which the call belongs."""
        return self._session.run()

    def result(self, timeout: float | None = None) -> T:
        """What the call returned. It raises what the call raised."""
        self._session.hurry()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the call raised; None: nothing."""
        self._session.hurry()
        return super().exception(timeout)

    def output(self) -> str:
        """What the call has printed so far."""
        return self.run.logs(self.task)

    def cancel(self) -> bool:
        """Do not carry it out, if it has not started; whether it is cancelled."""
        if not super().cancel():
            return False
        self._session.withdraw(self.task)
        return True


@dataclass
class _Call:
    future: Future[Any]
    content: bytes
    after: tuple[str, ...]
    needs: Needs
    kind: str


@dataclass(frozen=True)
class Place:
    """Where calls are carried out, and what all of them have in common."""

    on: str
    name: str
    folder: Path
    root: Path
    keep_s: float
    preload: tuple[str, ...]
    order: Order


@dataclass
class _State:
    """What callers and the thread share, under one lock."""

    new: list[_Call] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    open: dict[str, Future[Any]] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)
    """The calls that need each."""
    failed: dict[str, BaseException] = field(default_factory=dict)
    calls: int = 0
    is_urgent: bool = False
    is_closed: bool = False
    is_handed_over: bool = True
    """Whether all calls have reached the run."""
    broken: BaseException | None = None


class _Session:
    """One run and its calls; all executors made of one by `options` share it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._now = threading.Condition()
        self._state = _State()
        self._batches = 0
        self._hold: Hold | None = None
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None
        self._looked_s = 0.0

    # What callers do.

    def submit(
        self, needs: Needs, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Future[Any]:
        with self._now:
            if self._state.is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._state.calls += 1
            number = self._state.calls
        kind = _kind_of(function)
        future: Future[Any] = Future(f"{kind}-{number}", self)
        after: dict[str, None] = {}

        def reference_to(found: object) -> str | None:
            if not isinstance(found, Future):
                return None
            if found._session is not self:
                raise UserError(
                    f"{found.task} is a call of another executor; pass its result() instead"
                )
            after[found.task] = None
            return found.task

        try:
            content = calls.dump((function, args, kwargs), reference_to)
        except Exception as error:  # noqa: BLE001  (as a pool of processes does)
            future.set_exception(error)
            return future
        self._take(_Call(future, content, tuple(after), needs, kind))
        return future

    def _take(self, call: _Call) -> None:
        state = self._state
        with self._now:
            why = state.broken or next(
                (state.failed[task] for task in call.after if task in state.failed), None
            )
            if why is None:
                task = call.future.task
                state.new.append(call)
                state.is_handed_over = False
                state.open[task] = call.future
                for parent in call.after:
                    state.after.setdefault(parent, []).append(task)
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._serve, name="windrow-calls", daemon=True
                    )
                    self._thread.start()
                self._now.notify_all()
        if why is not None:
            state.failed[call.future.task] = why
            call.future.set_exception(why)

    def hurry(self) -> None:
        """Someone waits."""
        with self._now:
            self._state.is_urgent = True
            self._now.notify_all()

    def withdraw(self, task: str) -> None:
        """It was cancelled."""
        with self._now:
            self._state.withdrawn.append(task)
            self._now.notify_all()

    def close(self, *, wait: bool, cancel: bool) -> None:
        """No more calls come."""
        if cancel:
            with self._now:
                left = list(self._state.open.values())
            for future in left:
                future.cancel()
        with self._now:
            self._state.is_closed = True
            self._state.is_urgent = True
            self._now.notify_all()
        thread = self._thread
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def leave(self) -> None:
        """Hand over what there is; the program ends."""
        self.close(wait=False, cancel=False)
        with self._now:
            thread = self._thread
            self._now.wait_for(
                lambda: thread is None or self._state.is_handed_over or not thread.is_alive(),
                _LEAVE_S,
            )

    def run(self) -> Run:
        """The run, when it has started."""
        self.hurry()
        with self._now:
            self._now.wait_for(lambda: self._hold is not None or self._state.broken is not None)
        if self._hold is None:
            assert self._state.broken is not None
            raise self._state.broken
        return self._hold.run

    # What the thread does.

    def _serve(self) -> None:
        try:
            pause_s = _LOOK_S
            while self._gather(pause_s):
                self._withdraw_all()
                self._hand_over()
                with self._now:
                    self._state.is_handed_over = not self._state.new
                    self._now.notify_all()
                seen = self._look()
                pause_s = _LOOK_S if seen else min(1.2 * pause_s, _LOOK_MOST_S)
        except BaseException as error:  # noqa: BLE001  (whoever waits is told)
            self._break(error)
        finally:
            if self._hold is not None:
                with contextlib.suppress(WindrowError):
                    self._hold.close()

    def _gather(self, pause_s: float) -> bool:
        """Wait for calls, or for a while; False if nothing is left to do."""
        state = self._state
        with self._now:
            if not state.new and not state.withdrawn:
                if state.is_closed and not state.open:
                    return False
                self._now.wait(pause_s if state.open else None)
            until = time.monotonic() + GATHER_S
            while state.new and not state.is_urgent and time.monotonic() < until:
                self._now.wait(until - time.monotonic())
            state.is_urgent = False
        return True

    def _withdraw_all(self) -> None:
        state = self._state
        with self._now:
            gone, state.withdrawn = state.withdrawn, []
            kept = set(gone)
            unsent = {call.future.task for call in state.new} & kept
            state.new = [call for call in state.new if call.future.task not in kept]
        if self._hold is not None and (sent := [task for task in gone if task not in unsent]):
            with contextlib.suppress(UserError):  # it has just finished
                self._hold.cancel(*sent)
        for task in gone:
            self._fail(task, futures.CancelledError(f"{task} was cancelled"))

    def _hand_over(self) -> None:
        state = self._state
        with self._now:
            batch, state.new = state.new, []
        if not batch:
            return
        try:
            self._send(batch)
        except WindrowError as error:
            if len({id(call.needs) for call in batch}) == 1:
                for call in batch:
                    self._fail(call.future.task, error)
                return
            for needs in {id(call.needs): call.needs for call in batch}.values():
                self._send_or_fail([call for call in batch if call.needs is needs])

    def _send_or_fail(self, batch: Sequence[_Call]) -> None:
        try:
            self._send(batch)
        except WindrowError as error:
            for call in batch:
                self._fail(call.future.task, error)

    def _send(self, batch: Sequence[_Call]) -> None:
        file = f"batch-{self._batches}"
        self._batches += 1
        size = 0
        places = []
        for call in batch:
            places.append((size, size + len(call.content)))
            size += len(call.content)
        tasks = [self._task(call, file, place) for call, place in zip(batch, places, strict=True)]
        contents = (call.content for call in batch)
        if self._hold is not None:
            calls.write(self._hold.run.folder, file, contents)
            self._hold.add(*tasks)
            return

        def first(folder: Path) -> None:
            calls.prepare(folder, [str(self.place.folder), *filter(None, sys.path)])
            calls.write(folder, file, contents)

        place = self.place
        hold = hold_tasks(
            tasks,
            first=first,
            keep_s=place.keep_s,
            name=place.name,
            folder=place.folder,
            on=place.on,
            root=place.root,
            **place.order,
        )
        with self._now:
            self._hold = hold
            self._watch = hold.run.watch()
            self._now.notify_all()

    def _task(self, call: _Call, file: str, place: tuple[int, int]) -> NewTask:
        python = (sys.executable, "-P", "-m")
        where = (str(self.place.root), file, str(place[0]), str(place[1]))
        return NewTask(
            id=call.future.task,
            command=(*python, "windrow.calls", *where),
            after=call.after,
            kind=call.kind,
            worker=(
                *python,
                "windrow.agent.worker",
                "windrow.calls",
                "cloudpickle",
                *self.place.preload,
            ),
            **call.needs,
        )

    def _look(self) -> bool:
        """Take in what has happened; whether anything has."""
        if self._watch is None:
            return False
        seen = self._watch.look()
        for event in seen:
            self._heard(event)
        now = time.monotonic()
        if not seen and self._state.open and now > self._looked_s + _ALIVE_S:
            self._looked_s = now
            self._see_to_manager()
        return bool(seen)

    def _see_to_manager(self) -> None:
        assert self._hold is not None
        self._hold.revive()

    def _heard(self, event: Event) -> None:
        if event.what == "RunStopped":
            raise TaskError(f"{self.run().name} was stopped")
        if event.task is None:
            return
        future = self._state.open.get(event.task)
        if future is None:
            return
        if event.what == "TaskStarted":
            if not future.cancelled():
                _settle(future)
        elif event.what == "TaskFinished":
            try:
                value = calls.result(self.run().folder, event.task)
            except BaseException as error:  # noqa: BLE001  (what stands in its result)
                self._fail(event.task, error)
            else:
                self._done(event.task)
                _settle(future)
                with contextlib.suppress(futures.InvalidStateError):
                    future.set_result(value)
        elif event.what == "TaskFailed":
            self._fail(event.task, self._error_of(event))

    def _error_of(self, event: Event) -> BaseException:
        """Why a call has failed: what it raised, or what became of its process."""
        assert event.task is not None
        folder = self.run().folder
        try:
            if calls.has_result(folder, event.task):
                calls.result(folder, event.task)
        except BaseException as error:  # noqa: BLE001  (what it raised)
            return error
        tail = event.detail.get("tail")
        more = f"\n{tail}" if tail else ""
        return TaskError(f"{event.task}: {event.detail.get('why', 'it failed')}{more}")

    def _done(self, task: str) -> None:
        with self._now:
            self._state.open.pop(task, None)
            self._state.after.pop(task, None)

    def _fail(self, task: str, error: BaseException) -> None:
        """It has no result, and neither has what needs it."""
        state = self._state
        left = [task]
        while left:
            one = left.pop()
            with self._now:
                future = state.open.pop(one, None)
                state.failed[one] = error
                left += state.after.pop(one, [])
            if future is not None:
                _settle(future)
                with contextlib.suppress(futures.InvalidStateError):
                    future.set_exception(error)

    def _break(self, error: BaseException) -> None:
        with self._now:
            self._state.broken = error
            self._state.new.clear()
            left = list(self._state.open)
            self._now.notify_all()
        for task in left:
            self._fail(task, error)


def _settle(future: Future[Any]) -> None:
    """A future that ends has run, or was cancelled: those who wait for it are told of that now."""
    if not future.running():
        future.set_running_or_notify_cancel()


class _Owner:
    """What executors of one session have in common: the session closes when none is left."""


_SESSIONS: weakref.WeakSet[_Session] = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """The program ends: what it has submitted is handed over, and carried out without it."""
    for session in list(_SESSIONS):
        session.leave()


class Executor(futures.Executor):
    """Carries out calls as tasks of a run, on this machine or in jobs of a batch queue.

    `on`: the site, or several. `preload`: modules that workers import once for all calls. `keep_s`:
    how long nodes are kept for calls to come. `name`: what the run is called. The rest are needs of
    each call (`options` changes them), and what `windrow.run` takes.
    """

    def __init__(
        self,
        on: str = "local",
        *,
        name: str = "calls",
        preload: Sequence[str] = (),
        keep_s: float = KEEP_S,
        folder: str | Path | None = None,
        root: Path | None = None,
        needs: Needs | None = None,
        **order: Unpack[Order],
    ) -> None:
        calls.refuse_without_pickler()
        place = Place(
            on=on,
            name=name,
            folder=Path.cwd() / (folder or ""),
            root=(root or own_root()).absolute(),
            keep_s=keep_s,
            preload=tuple(preload),
            order=order,
        )
        self._needs: Needs = needs or {}
        self._session = _Session(place)
        self._owner = _Owner()
        weakref.finalize(self._owner, self._session.close, wait=False, cancel=False)
        _SESSIONS.add(self._session)

    def options(self, **needs: Unpack[Needs]) -> Executor:
        """The same executor, for calls that need this. The first one is the one to shut down."""
        other = object.__new__(Executor)
        other._needs = {**self._needs, **needs}
        other._session = self._session
        other._owner = self._owner
        return other

    @property
    def run(self) -> Run:
        """The run of which the calls are tasks. It starts with the first call."""
        return self._session.run()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Carry out the call; arguments may be, or hold, futures of this executor."""
        return self._session.submit(self._needs, fn, args, kwargs)

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | Literal["auto"] = 1,
        **_: Any,
    ) -> Iterator[T]:
        """As of `concurrent.futures`: results in order. `chunksize`: the calls of one task; "auto":
        as many as should take two seconds, by what earlier calls of the function took."""
        size = self._piece(fn) if chunksize == "auto" else chunksize
        if size < 1:
            raise ValueError("chunksize must be >= 1.")
        if size == 1:
            return super().map(fn, *iterables, timeout=timeout)
        pieces = _pieces(zip(*iterables, strict=False), size)
        mapped = super().map(_EachOf(fn, size), pieces, timeout=timeout)
        return (value for piece in mapped for value in piece)

    def _piece(self, function: Callable[..., Any]) -> int:
        """How many calls of it make a task; one, if none has been carried out in a run of this
        name."""
        name = self._session.place.name
        times = RunTimes().times(name, _kind_of(function), cores=self._needs.get("cores", 1))
        if not times:
            return 1
        return max(
            1, min(_PIECE_MOST, round(_PIECE_S / max(median(times), _PIECE_S / _PIECE_MOST)))
        )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and let the run end when all are done."""
        self._session.close(wait=wait, cancel=cancel_futures)

    def __repr__(self) -> str:
        return f"<Executor on {self._session.place.on}>"

    def _repr_html_(self) -> str:
        if self._session._hold is None:
            return f"<code>{self!r:.100}</code>".replace("<E", "&lt;E")
        return self.run._repr_html_()


class _EachOf(Generic[T]):
    """A function of a piece of what it is called with. Its tasks are a kind of their own, since
    they take longer than one call."""

    def __init__(self, function: Callable[..., T], size: int) -> None:
        self.function = function
        self.__name__ = f"{_kind_of(function)}-by-{size}"

    def __call__(self, every: Sequence[tuple[Any, ...]]) -> list[T]:
        return [self.function(*args) for args in every]


def _kind_of(function: Callable[..., Any]) -> str:
    """Calls of which are expected to run alike."""
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def _pieces(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while piece := list(islice(items, size)):
        yield piece
