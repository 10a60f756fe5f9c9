"""A world in virtual time: a queue on a simulated cluster, agents in its jobs, a disk, and one clock for all.

Rule 1: time is the cluster's, in whole seconds, and goes from one instant at which something happens to the next: an
event of the cluster, an agent's next turn, a fault. At one instant: the queue first, then agents in the order of their
jobs, then faults. The manager, who is no part of the world, looks after that (`shell`).
Rule 2: what the world knows survives the managers of the run.
Rule 3: everything that goes wrong was asked for: by a fault, or by a test that changes `mood`, `takes_s` or `failure`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.agent.claim import is_fenced
from windrow.agent.folder import RunFolder
from windrow.agent.order import Order
from windrow.lab.virtual.agents import VirtualAgent
from windrow.lab.virtual.crew import WHOLE, Killed, kept_s, state_file
from windrow.lab.virtual.disk import no_room, watched
from windrow.lab.virtual.invariants import Violation
from windrow.model.graph import Ints
from windrow.queues.port import JobState
from windrow.queues.simulated import Mood, SimulatedJob, SimulatedQueue
from windrow.sim.cluster import Cluster

if TYPE_CHECKING:
    from windrow.lab.virtual.faults import Fault

BEGIN_S = 1_000_000


@dataclass
class Fate:
    """Counts the places at which a manager can die. At the `deadly`-th it does."""

    deadly: int | None = None
    passed: int = 0

    def reach(self) -> None:
        """One place more."""
        if self.passed == self.deadly:
            raise Killed
        self.passed += 1


@dataclass(frozen=True, slots=True)
class AttemptStart:
    """An attempt began. `in_place`: outputs that it writes where they are to be."""

    at_s: int
    queue_id: str
    task: int
    in_place: tuple[str, ...] = ()


def empty_queue(nodes: int, failures: Ints | None = None) -> SimulatedQueue:
    """A queue of our own, first come, first served, which takes a second job with the same tag as most do."""
    cluster = Cluster(nodes=nodes, policy="fcfs", start_s=BEGIN_S, failures=failures)
    return SimulatedQueue(cluster, max_array=3, unique=False)


@dataclass
class World:
    """All but the manager."""

    queue: SimulatedQueue
    takes_s: Callable[[int], float]
    """How long an attempt at this task takes."""
    failure: Callable[[int], str] = lambda _: ""
    mood: Callable[[str], Mood] = lambda _: Mood.GOOD
    faults: list[Fault] = field(default_factory=list)
    """What is still to go wrong."""
    met: Counter[str] = field(default_factory=Counter)
    """What went wrong, by kind."""
    agents: dict[str, VirtualAgent] = field(default_factory=dict)
    """Those whose jobs run, by the queue's names."""
    unseen: dict[str, VirtualAgent] = field(default_factory=dict)
    """Those that live though the queue calls their jobs over, or has forgotten them."""
    was_unseen: set[str] = field(default_factory=set)
    starts: list[AttemptStart] = field(default_factory=list)
    turned_away: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    """The outputs of all tasks that were started."""
    deleted: set[str] = field(default_factory=set)
    """Outputs of finished tasks that someone has deleted."""
    fate: Fate = field(default_factory=Fate)
    """Of the manager that is at work."""
    clock_step_s: float = 0.0
    """How far the wall clock is off; the steady clock never is."""
    dues: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    """What is to happen at these times."""
    is_local: bool = False
    """Whether jobs keep files on disks of their nodes."""
    limit: int = 0
    """Where it is above 0: the most that files of these `sizes` may take."""
    sizes: dict[str, int] = field(default_factory=dict)
    full_until_s: int = 0
    """The disk has no room before."""
    full_disks: dict[str, int] = field(default_factory=dict)
    """Nor have those of nodes, by their folders."""
    away_until_s: int = 0
    """Nodes cannot reach the shared files before."""
    away_errno: int = 0
    """What they are told then; 0: nothing, and they wait."""
    transfers: int = 0
    """Copies to nodes and from them."""
    steps: int = 0
    doomed_copying: set[str] = field(default_factory=set)
    """Jobs whose agents are killed when they have copied half of a file."""
    _acting: VirtualAgent | None = None
    _doomed: set[str] = field(default_factory=set)
    _has_news: bool = False
    _writers: dict[int, str | None] = field(default_factory=dict)  # what the last attempt at a task found of others

    def __post_init__(self) -> None:
        self.queue.mood = self._mood

    @property
    def started(self) -> Counter[int]:
        """How often each task was started."""
        return Counter(start.task for start in self.starts)

    @property
    def doubtful(self) -> set[str]:
        """Outputs that a job which was given up wrote in place: what runs there again writes into the same file."""
        return {path for start in self.starts if start.queue_id in self.was_unseen for path in start.in_place}

    @property
    def now_s(self) -> int:
        """The time."""
        return self.queue.now_s

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Who writes anything inside the `with` may find no room, and may die of it."""
        with watched(self._about_to_write):
            yield

    def wake(self) -> None:
        """Something happened that a manager could hear of."""
        self._has_news = True

    def pass_time(self, until_s: float, *, wakes: bool = False) -> None:
        """Let time go by, without a manager; with `wakes`, at most until something happens that it could hear of."""
        self._has_news = False
        while True:
            dues = (
                *(a.next_s for a in self._alive()),
                *(f.at_s for f in self.faults),
                *(at_s for at_s, _ in self.dues),
            )
            due_s = min((until_s, *dues))
            for job in self.queue.until(max(self.now_s, int(min(due_s, until_s)))):
                self._changed(job)
            self._let_agents_act()
            for due in [due for due in self.dues if due[0] <= self.now_s]:
                self.dues.remove(due)
                due[1]()
            for fault in [f for f in self.faults if f.at_s <= self.now_s]:
                self.strike(fault)
            self.steps += 1
            is_quiet = not any(a.next_s <= self.now_s for a in self._alive())
            if is_quiet and (self.now_s >= until_s or (wakes and self._has_news)):
                return

    def strike(self, fault: Fault) -> None:
        """This goes wrong now."""
        from windrow.lab.virtual.faults import strike  # noqa: PLC0415  (which knows worlds)

        if fault in self.faults:
            self.faults.remove(fault)
        if strike(self, fault):
            self.met[fault.kind] += 1
            self._has_news = True

    def reached(self, record: int) -> None:
        """The manager has journaled this record, and not yet acted on it."""
        for fault in [f for f in self.faults if f.at_record == record and not f.counts_copies]:
            self.strike(fault)

    # What can go wrong with a job

    def remove(self, queue_id: str, state: JobState = JobState.CANCELLED) -> None:
        """A job is cancelled, or preempted, by someone else; its agent leaves in good order."""
        self.queue.take_away(queue_id, state)

    def notice(self, queue_id: str, length_s: int) -> None:
        """A job is to be preempted, and is after this time, unless it leaves before."""
        if queue_id in self.agents:
            self.agents[queue_id].notice()
        self.dues.append((self.now_s + length_s, lambda: self.remove(queue_id, JobState.PREEMPTED)))

    def kill_agent(self, queue_id: str, state: JobState | None = None) -> None:
        """A running job ends without a word of its agent; the queue calls it ended, or `state`."""
        if (agent := self.agents.pop(queue_id, None)) is not None:
            agent.kill()
        self.queue.end(queue_id, 137, state)

    def cut_off(self, queue_id: str) -> None:
        """To the queue the job has failed, but its agent lives."""
        self._lose_sight(queue_id)
        self.queue.end(queue_id, 0, JobState.NODE_FAILED)

    def forget(self, queue_id: str, *, lives: bool) -> None:
        """The queue knows nothing of the job any more, and gives its nodes to others."""
        if lives:
            self._lose_sight(queue_id)
        self.queue.jobs[queue_id].is_forgotten = True
        self.kill_agent(queue_id)

    def doom(self, queue_id: str) -> None:
        """The agent of this job is killed when it writes next."""
        self._doomed.add(queue_id)

    def _lose_sight(self, queue_id: str) -> None:
        if queue_id in self.agents:
            self.unseen[queue_id] = self.agents.pop(queue_id)
            self.was_unseen.add(queue_id)

    # Agents

    def begins(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """An attempt begins: where it may not, something is wrong with what let it."""
        in_place = () if order.elsewhere else order.outputs
        self.starts.append(AttemptStart(self.now_s, agent.queue_id, task, in_place))
        self.made.update(order.outputs)
        assert agent.loop is not None
        home = agent.loop.home_of(task)
        if is_fenced(agent.folder, home):
            raise Violation(f"task {task} starts in job {home}, which was given up")
        for other in self._alive():
            if other is agent or other.loop is None or task not in other.loop.running:
                continue
            if not order.commit and not is_fenced(other.folder, other.loop.home_of(task)):
                raise Violation(f"task {task} starts in queue job {agent.queue_id} while it runs in {other.queue_id}")
            if order.has_checkpoints and other.loop.is_at_work(task):
                raise Violation(f"task {task} starts in {agent.queue_id}; {other.queue_id} may write its checkpoints")
        if order.has_checkpoints:
            self.made.add(str(file := state_file(order)))
            if kept_s(order) < agent.loop.heard_s(task) and file.name not in self.deleted:
                raise Violation(f"{kept_s(order)} s of task {task} are kept, not {agent.loop.heard_s(task)}")
            self._writers[task] = content(str(file))
        for path in set(order.inputs) - self.doubtful:
            near = agent.inside(path, task)
            if {content(path), content(near)} - {WHOLE, None}:
                raise Violation(f"task {task} starts on {path}, which is not whole")
            if self.is_local and not (Path(near).exists() or Path(path).exists() or Path(path).name in self.deleted):
                raise Violation(f"task {task} starts without {path}, which is not on its node of {agent.queue_id}")
        if self.limit and not self.was_unseen:
            at_work = (other.loop.at_work for other in self._alive() if other.loop is not None)
            names = {Path(path).name for path in set(order.outputs).union(*at_work)}
            names |= {_without_draft(path.name) for path in Path(order.workdir).iterdir()}  # of attempts that died, too
            if (used := sum(size for path, size in self.sizes.items() if Path(path).name in names)) > self.limit:
                raise Violation(f"files take {used} of {self.limit} when task {task} starts")

    def saves(self, agent: VirtualAgent, order: Order) -> None:
        """Between two checkpoints of an attempt, or its start and the first, no other attempt wrote any."""
        found, me = content(str(state_file(order))), f"{agent.queue_id} {order.attempt}"
        is_own = found is not None and found.endswith(f" {me}")
        if not is_own and found is not None and found != self._writers.get(order.task):
            raise Violation(f"checkpoints of task {order.task} are mixed: {me} finds {found}")

    def home_s(self) -> float:
        """When nodes can reach the shared files again; 0 where they can."""
        if self.now_s >= self.away_until_s:
            return 0.0
        if self.away_errno:
            raise OSError(self.away_errno, os.strerror(self.away_errno))
        return self.away_until_s

    def copies(self, agent: VirtualAgent) -> None:
        """Half of a file has been copied to or from a node."""
        from windrow.lab.virtual.faults import Kind  # noqa: PLC0415  (which knows worlds)

        self.transfers += 1
        for fault in [f for f in self.faults if f.kind is Kind.COPYING and f.at_record == self.transfers]:
            self.faults.remove(fault)
            self.met[fault.kind] += 1
            raise Killed
        if agent.queue_id in self.doomed_copying:
            raise Killed

    def _alive(self) -> list[VirtualAgent]:
        return [*self.agents.values(), *self.unseen.values()]

    def _changed(self, job: SimulatedJob) -> None:
        """The queue has started or ended a job."""
        queue_id, self._has_news = job.status.id, True
        if job.is_running:
            folder, number = job.spec.command[-2:]
            hosts = job.status.hosts
            now_s = lambda: float(self.now_s)  # noqa: E731
            self.agents[queue_id] = VirtualAgent(RunFolder.at(folder), int(number), queue_id, hosts, self, now_s)
        elif (agent := self.agents.pop(queue_id, None)) is not None:
            self.met["node is down for a while"] += job.status.state is JobState.NODE_FAILED and job.ends_as is None
            if job.status.state in (JobState.CANCELLED, JobState.PREEMPTED):
                self._act(agent, agent.tell)
            agent.kill()

    def _let_agents_act(self) -> None:
        for agent in self._alive():
            if agent.next_s > self.now_s:
                continue
            self._act(agent, agent.turn)
            if agent.exit_code is None:
                continue
            if agent.is_turned_away:
                self.turned_away.append(agent.queue_id)
            if self.unseen.pop(agent.queue_id, None) is None:
                self.agents.pop(agent.queue_id, None)
                self.queue.end(agent.queue_id, agent.exit_code)

    def _act(self, agent: VirtualAgent, do: Callable[[], None]) -> None:
        before, self._acting = self._acting, agent
        try:
            do()
        finally:
            self._acting = before

    def _about_to_write(self, what: object) -> None:
        self._has_news = True
        if self._acting is None:
            self.fate.reach()
        elif self._acting.queue_id in self._doomed:
            raise Killed
        full = [until_s for folder, until_s in self.full_disks.items() if str(what).startswith(folder)]
        if self.now_s < max(full, default=self.full_until_s):
            raise no_room()

    def _mood(self, call: str) -> Mood:
        """How the queue takes a call of the manager, who may die before it."""
        self.fate.reach()
        return self.mood(call)


def _without_draft(name: str) -> str:
    """The output whose draft has this name, or the name itself."""
    hidden = name.removeprefix(".windrow-")
    return name if hidden == name else hidden.rpartition(".")[0]


def content(path: str) -> str | None:
    """What is in the file; None where there is none."""
    try:
        with open(path) as file:  # noqa: PTH123  (on the way of every task)
            return file.read()
    except OSError:
        return None
