"""The loop of a pool: hears of arrivals, wishes and ended tasks, writes all of it down, and then
acts.

One turn: gather what happened, let the core decide, commit everything to the journal in one step,
start and stop processes. A crash before the commit has changed nothing, a crash after it leaves a
journal that tells what to expect: a task that was started and of which nothing more is known starts
again, one that finished never does.
"""

import os
import secrets
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from windrow.agent.crew import Crew
from windrow.agent.guard import guarded
from windrow.agent.hosts import Hosts
from windrow.agent.order import Order, order_for
from windrow.agent.signals import SteadyClock, Wake
from windrow.errors import OutsideError, UserError, WindrowError
from windrow.files import kill_marked
from windrow.forecast.best_effort import Remembered
from windrow.forecast.runtimes import PastRun, RunTimes
from windrow.manager.specs import clean_up, task_spec
from windrow.model.attempt import Attempt
from windrow.pool import events as e
from windrow.pool.admission import refuse_misfits
from windrow.pool.core import PoolAttempt, PoolCore, alone_s
from windrow.pool.folder import PoolFolder
from windrow.pool.journal import PoolJournal
from windrow.pool.placement import Placement
from windrow.pool.settings import PoolSettings, choose
from windrow.pool.story import PoolStory
from windrow.pool.workflow_state import ServedWorkflow, WorkflowPast
from windrow.queues.local.rendezvous import open_door
from windrow.records.lock import RunLock
from windrow.streams import find_selection
from windrow.version import __version__

VARIABLE = "WINDROW_POOL_ID"
"""Every task carries the pool's id in its environment, and passes it on to what it starts."""
_LOOK_S = 0.5  # for those who cannot knock, since they are on another machine
_KILL_AFTER_S = 3.0
_TERM_S = 3.0
_LOCK_WAIT_S = 5.0
_LEFTOVERS_S = 10.0
_PATIENCE_S = 5.0  # how long a file written on another node may take to show up


@dataclass(slots=True)
class _Live:
    """An attempt between its start and its end."""

    attempt: PoolAttempt
    nodes: tuple[int, ...] = ()
    begun_s: float = 0.0


class PoolServer:
    """Serves one pool. Its maker holds the pool's lock."""

    def __init__(
        self,
        folder: PoolFolder,
        settings: PoolSettings,
        hosts: Hosts,
        wake: Wake,
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._hosts = hosts
        self._wake = wake
        self._say = say
        self._journal = PoolJournal.open(folder.journal, writable=True, is_cluster=hosts.is_cluster)
        self._facts = self._journal.facts()
        self._address = shlex.quote(folder.address)  # told before tasks change the working folder
        self._clock = SteadyClock()
        self._core = PoolCore(settings.pool(), settings.shape)
        self._placement = Placement(settings.nodes, settings.shape)
        self._crew = Crew(hosts, settings.nodes, wake, doubts=hosts.is_cluster)
        self._crew.reach()
        if (
            not hosts.is_cluster
        ):  # a pipe does not reach other machines, and not every shared file system can hold one
            self._crew.watch(open_door(folder.path))
        self._live: dict[int, _Live] = {}
        self._keys = 0
        self._next = 1
        self._events: list[e.Event] = []
        self._to_start: list[int] = []
        self._to_stop: list[int] = []
        self._to_learn: list[ServedWorkflow] = []
        self._to_kill: list[tuple[float, list[int]]] = []
        self._reserved = -1
        self._times: Remembered[PastRun] = Remembered(RunTimes().record, "run times", say)

    def run(self) -> int:
        """Serve until told to stop; the exit code."""
        try:
            self._open()
            why = ""
            while not why:
                self._act()
                self._crew.wait(_LOOK_S)
                why = self._turn()
            self._close(why)
        except WindrowError as error:
            self._say(f"{error}; stopping")
            try:  # what can still be written, is
                self._close(f"aborted: {error}")
            except WindrowError:  # said already
                self._crew.kill()
            return error.exit_code
        finally:
            self._journal.close()
        return 0

    def _open(self) -> None:
        """Begin where the journal ends."""
        killed = kill_leftovers(self._facts["id"])
        if killed:
            self._say(f"killed {killed} processes that an earlier server left behind")
        story = PoolStory.of(event for _, event in self._journal.records())
        settings = self._settings
        now_s = self._clock.now()
        names = (settings.policy, settings.selection, settings.slots)
        self._note(e.PoolOpened(now_s, *names, self._crew.names))
        self._next = max(story.workflows, default=0) + 1
        for number, told in sorted(story.workflows.items()):
            if told.is_cancelled and not told.outcome:
                self._note(e.WorkflowEnded(now_s, number, e.CANCELLED))
            elif not told.outcome:
                self._take_in(number, told.past, is_known=True)
        self._folder.fulfil("stop")
        self._settle({"settings": asdict(settings), "opened_s": now_s})
        self._say(
            f"pool {self._folder.name}: {settings.slots} slots, {settings.policy}; Ctrl-C stops it"
        )

    def _turn(self) -> str:
        """Take in what happened; why the server must stop, if it must."""
        if self._wake.stop_signal is not None:
            return f"stopped by signal {signal.Signals(self._wake.stop_signal).name}"
        for result in self._crew.collect():
            self._ended(result)
        for node, keys in self._crew.take_lost():
            self._lost(node, keys)
        while self._folder.workflow(self._next).exists():
            self._take_in(self._next, WorkflowPast())
            self._next += 1
        wishes = self._folder.wished()
        heard = [wish for wish in wishes if self._hear(wish)]
        self._settle()
        for wish in heard:
            self._folder.fulfil(wish)
        if "stop" in wishes:
            return "stopped on request"
        return ""

    def _hear(self, wish: str) -> bool:
        """Do something about a wish; whether that is all there is to do."""
        what, _, which = wish.partition("-")
        if what != "cancel" or not which.isdecimal():
            return True
        if int(which) >= self._next:  # submitted since we last looked
            return False
        self._cancel(int(which))
        return True

    def _lost(self, node: int, keys: Sequence[int]) -> None:
        """A node with all that ran on it."""
        host = self._crew.names[node]
        self._placement.lose(node)
        self._note(e.NodeLost(self._clock.now(), node, host))
        self._say(f"node {host} was lost; its tasks start again elsewhere")
        for key in keys:
            self._let_go(key, f"node {host} was lost")

    def _take_in(self, number: int, past: WorkflowPast, *, is_known: bool = False) -> None:
        """A workflow arrives, or is there again after a restart."""
        now_s = self._clock.now()
        try:
            runnable, submitted_s = self._folder.read(number)
            refuse_misfits(runnable, self._settings)
            at_s = min(submitted_s, now_s)
            attempts = self._core.arrive(number, runnable, at_s, past)
        except UserError as error:
            self._note(e.WorkflowRefused(now_s, number, str(error)))
            self._say(f"workflow {number} is refused: {error}")
            return
        if not is_known:
            workflow = runnable.workflow
            self._note(e.WorkflowAccepted(at_s, number, workflow.name, len(workflow)))
        self._folder.make_out(number)
        self._ask(attempts)

    def _ask(self, attempts: Iterable[PoolAttempt]) -> None:
        """These attempts may start as soon as there is room."""
        for attempt in attempts:
            self._keys += 1
            self._live[self._keys] = _Live(attempt)
            self._placement.ask(self._keys, self._core.workflows[attempt.number].need(attempt.task))

    def _ended(self, result: Attempt) -> None:
        live = self._live.pop(result.task)
        self._placement.free(result.task)
        attempt = live.attempt
        core = self._core
        now_s = self._clock.now()
        took_s = now_s - live.begun_s
        if not result.why:
            self._note(
                e.PoolTaskFinished(now_s, *attempt, live.begun_s, result.cpu_s, result.peak_bytes)
            )
            self._ask(core.finished(attempt.number, attempt.task, took_s))
        elif core.workflows[attempt.number].is_withdrawn or self._wake.stop_signal is not None:
            self._note(e.PoolTaskLost(now_s, *attempt, f"stopped: {result.why}"))
            self._ask(core.lost(attempt.number, attempt.task))
        else:
            final = core.is_final(attempt.number, attempt.task)
            self._note(
                e.PoolTaskFailed(now_s, *attempt, live.begun_s, result.why, final, result.tail)
            )
            self._ask(core.failed(attempt.number, attempt.task, took_s))

    def _let_go(self, key: int, why: str) -> None:
        """An attempt is over, or never began, and not by its own fault."""
        live = self._live.pop(key)
        self._placement.free(key)
        if live.nodes:
            self._note(e.PoolTaskLost(self._clock.now(), *live.attempt, why))
        self._ask(self._core.lost(live.attempt.number, live.attempt.task))

    def _give_up(self, key: int) -> None:
        """An attempt that waits for more nodes than are left fails: lost ones do not come back."""
        attempt = self._live.pop(key).attempt
        now_s = self._clock.now()
        self._placement.free(key)
        number, task, _ = attempt
        why = "it needs more nodes than the pool has left"
        final = self._core.is_final(number, task)
        self._note(e.PoolTaskFailed(now_s, *attempt, now_s, why, final))
        self._ask(self._core.failed(number, task, 0.0))

    def _cancel(self, number: int) -> None:
        served = self._core.workflows.get(number)
        if served is None or served.is_withdrawn:
            return
        self._note(e.CancelAsked(self._clock.now(), number))
        keys = [key for key, live in self._live.items() if live.attempt.number == number]
        self._ask(self._core.withdraw(number))
        for key in keys:
            if self._live[key].nodes:
                self._to_stop.append(key)
            else:
                self._let_go(key, "")

    def _settle(self, facts: dict[str, Any] | None = None) -> None:
        """Place what has room, and commit the turn."""
        now_s = self._clock.now()
        while misfits := self._placement.misfits():  # what comes in the place of one may be another
            self._give_up(misfits[0])
        for key, nodes in self._placement.place():
            self._placed(now_s, key, nodes)
        ended = self._core.take_ended()
        for served, outcome in ended:
            self._note(self._ending(served, outcome))
        reserved = self._core.pool.reserved
        if self._events or facts or reserved != self._reserved:
            self._journal.append(self._events, {**(facts or {}), "reserved": reserved})
        self._events = []
        self._reserved = reserved
        self._to_learn += [served for served, _ in ended]

    def _ending(self, served: ServedWorkflow, outcome: str) -> e.WorkflowEnded:
        settings = self._settings
        now_s = self._clock.now()
        alone = alone_s(served, settings.shape, settings.slots, find_selection(settings.selection))
        self._say(f"workflow {served.number}, {served.runnable.workflow.name}: {outcome}")
        return e.WorkflowEnded(now_s, served.number, outcome, alone)

    def _placed(self, now_s: float, key: int, nodes: tuple[int, ...]) -> None:
        live = self._live[key]
        live.nodes = nodes
        slots = self._core.workflows[live.attempt.number].taken[live.attempt.task]
        self._note(e.PoolTaskStarted(now_s, *live.attempt, nodes, slots))
        self._to_start.append(key)

    def _act(self) -> None:
        """Do what the journal says was started."""
        for key in self._to_start:
            live = self._live[key]
            served = self._core.workflows[live.attempt.number]
            live.begun_s = self._clock.now()
            self._crew.start(live.nodes[0], self._order(key, live, served))
        if self._to_stop:
            self._crew.stop(self._to_stop, signal.SIGTERM)
            self._to_kill.append((time.monotonic() + _KILL_AFTER_S, self._to_stop))
        for served in self._to_learn:  # last: tasks that wait for a slot must not wait for this
            self._learn(served)
        self._to_start = []
        self._to_stop = []
        self._to_learn = []
        self._kill_what_did_not_stop()

    def _kill_what_did_not_stop(self) -> None:
        while self._to_kill and self._to_kill[0][0] <= time.monotonic():
            left = [key for key in self._to_kill.pop(0)[1] if key in self._live]
            self._crew.stop(left, signal.SIGKILL)

    def _learn(self, served: ServedWorkflow) -> None:
        """Keep what the tasks of a workflow took, and remove what they left behind."""
        workflow = served.runnable.workflow
        now_s = self._clock.now()
        self._times.keep(
            [
                PastRun(
                    workflow.name,
                    workflow.kinds[task],
                    took_s,
                    now_s,
                    int(workflow.cores[task]),
                )
                for task, took_s in sorted(served.took_s.items())
            ]
        )
        if trouble := clean_up(None, served.runnable, served.attempts, served.took_s.__contains__):
            self._say(trouble)

    def _order(self, key: int, live: _Live, served: ServedWorkflow) -> Order:
        """Tasks find the variables that they find in a job of `windrow run`, and the mark of this
        pool."""
        task = live.attempt.task
        attempt = live.attempt.attempt
        spec = task_spec(served.runnable, task, served.shared)
        return order_for(
            replace(spec, env={**spec.env, VARIABLE: self._facts["id"]}),
            attempt,
            run=f"{self._folder.name}/{served.number}",
            out=self._folder.out(served.number) / f"{task}.{attempt}",
            hosts=[self._crew.names[node] for node in live.nodes],
            node=self._settings.shape,
            patience_s=_PATIENCE_S if self._hosts.is_cluster else 0.0,
            key=key,
        )

    def _close(self, why: str) -> None:
        """End what runs; it starts again with the next server."""
        self._crew.end(_TERM_S, lambda result: None if result.why else self._ended(result))
        for live in [live for live in self._live.values() if live.nodes]:
            self._note(e.PoolTaskLost(self._clock.now(), *live.attempt, why))
        for served, outcome in self._core.take_ended():
            self._note(self._ending(served, outcome))
        self._note(e.PoolClosed(self._clock.now(), why))
        self._journal.append(self._events, {"reserved": 0})
        self._say(f"pool {self._folder.name} is {why}; windrow pool {self._address} continues it")

    def _note(self, event: e.Event) -> None:
        self._events.append(event)


def kill_leftovers(pool_id: str) -> int:
    """Kill every process of an earlier server's tasks; how many there were. OutsideError if one
    does not go.

    Tasks outlive their server only if it and its guardian were killed within the same instant.
    What still carries the pool's mark is killed before a server starts anything, so that no task
    runs twice at the same time. Linux only, and on this machine only; on other nodes of an
    allocation the queue ends what is left.
    """
    killed: set[int] = set()
    end = time.monotonic() + _LEFTOVERS_S
    while found := kill_marked(
        [f"{VARIABLE}={pool_id}".encode()], spared=(os.getpid(), os.getppid())
    ):
        if time.monotonic() > end:
            raise OutsideError(
                f"process {found[0]}, a task of an earlier server of this pool, cannot be killed"
            )
        killed.update(found)
        time.sleep(0.02)
    return len(killed)


def serve(folder: PoolFolder, wanted: Mapping[str, Any], say: Callable[[str], None]) -> int:
    """Serve the pool in this process until it is told to stop; the exit code. Makes the pool if
    there is none.

    If there is a guardian (see `agent.guard`) this returns in two processes, each of which must
    end then. The lock is taken before they part: as long as one of them lives no other process can
    serve the pool, so no second server can begin while tasks of the first are still being killed.
    """
    folder.make()
    stop = f"windrow pool {shlex.quote(folder.address)} --stop"
    running = f"pool {folder.name} is already running"
    lock = RunLock(
        folder.lock, _LOCK_WAIT_S, lambda holder: f"{running} ({holder}); {stop} stops it"
    )
    facts = {"id": secrets.token_hex(8), "created_s": time.time(), "version": __version__}
    with closing(PoolJournal.create(folder.journal, facts)) as journal:
        kept = journal.facts().get("settings", {})
    settings, hosts = choose(wanted, kept, os.environ)
    code = guarded(lambda: PoolServer(folder, settings, hosts, Wake(), say).run())
    lock.release()
    return code
