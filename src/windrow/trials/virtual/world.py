"""A world in virtual time: a queue on a simulated cluster, agents in its jobs, a disk, and one
clock for all.

Rule 1: time is the cluster's, in whole seconds, and goes from one instant at which something
happens to the next: an event of the cluster, an agent's next turn, a fault. At one instant: the
queue first, then agents in the order of their jobs, then faults. The manager, which is not part of
the world, looks after that (`shell`).
Rule 2: what the world knows survives the managers of the run.
Rule 3: everything that goes wrong was asked for: by a fault, or by a test that changes `mood`,
`takes_s` or `failure`.
"""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from windrow.agent.claim import is_fenced
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import TaskSpec
from windrow.agent.order import Order
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.model.graph import Ints
from windrow.model.resources import NodeShape
from windrow.model.rules import PLAIN, Rules
from windrow.queues.port import JobState, JobStatus
from windrow.queues.simulated import Mood, SimulatedJob, SimulatedQueue
from windrow.sim.cluster import Cluster
from windrow.trials.virtual.agents import VirtualAgent
from windrow.trials.virtual.content import HALF, content
from windrow.trials.virtual.counted import Invariant
from windrow.trials.virtual.crew import Killed, kept_s, state_file
from windrow.trials.virtual.disk import no_room, watched
from windrow.trials.virtual.invariants import Violation
from windrow.trials.virtual.kinds import USERS, Fault, Kind
from windrow.trials.virtual.lasting import LASTS_S, Lasting
from windrow.trials.virtual.memory import UnsyncedFiles, path_of
from windrow.trials.virtual.users import UserWishes
from windrow.trials.virtual.views import LateView

BEGIN_S = 1_000_000
_LATE_END_S = 15
"""How much later than its limit an attempt may be ended."""
ENDS_S = 30
"""What runs of a task that was cancelled has ended after this time."""


@dataclass
class Fate:
    """Counts the places at which a manager can die. At the `deadly`-th it does."""

    deadly: int | None = None
    passed: int = 0
    is_crash: bool = False
    """Whether it dies with its machine."""

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


def empty_queue(
    nodes: int, failures: Ints | None = None, shape: NodeShape | None = None
) -> SimulatedQueue:
    """A queue of our own, first come, first served, which takes a second job with the same tag as
    most do."""
    cluster = Cluster(nodes=nodes, policy="fcfs", start_s=BEGIN_S, failures=failures)
    return SimulatedQueue(cluster, shape=shape or NodeShape(), max_array=3, unique=False)


@dataclass
class World:
    """All but the manager."""

    queue: SimulatedQueue
    takes_s: Callable[[int], float]
    """How long an attempt at this task takes."""
    failure: Callable[[int], str] = lambda _: ""
    ends_saved: Callable[[int], bool] = lambda task: bool(task % 2)
    """Whether an attempt at this task ends when it has written its checkpoint."""
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
    left_in_order: set[str] = field(default_factory=set)
    """Jobs whose agents have left by themselves, and could write all that they did."""
    turned_away: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    """The outputs of all tasks that were started."""
    deleted: set[str] = field(default_factory=set)
    """Outputs of finished tasks that someone has deleted."""
    missing: set[str] = field(default_factory=set)
    """Those of them that were not made again since."""
    finished_s: dict[int, int] = field(default_factory=dict)
    """When an attempt at each task last succeeded."""
    newest: list[str] = field(default_factory=list)
    """Outputs of attempts that succeeded, the latest last."""
    quiet_s: float = 0.0
    """Since when nothing goes wrong."""
    expected: dict[str, str] = field(default_factory=dict)
    """What each file would hold in a perfect world, by its last name."""
    earlier: dict[str, str] = field(default_factory=dict)
    """What was there before the run, by path."""
    recorded: set[str] = field(default_factory=set)
    """What of that a run made of which there is a record: it need not be kept."""
    tainted: set[str] = field(default_factory=set)
    """Files that may be wrong, by their last names: made of what is doubtful, while that was
    half."""
    exercised: Counter[Invariant] = field(default_factory=Counter)
    """How often each invariant had something to hold against."""
    fate: Fate = field(default_factory=Fate)
    """Of the manager that is at work."""
    clock_step_s: float = 0.0
    """How far the wall clock is off; the steady clock never is."""
    dues: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    """What is to happen at these times."""
    is_local: bool = False
    """Whether jobs keep files on disks of their nodes."""
    limit: int = 0
    """If it is above 0: the most that files of these `sizes` may take."""
    sizes: dict[str, int] = field(default_factory=dict)
    loose: dict[int, frozenset[int]] = field(default_factory=dict)
    """After which tasks others come, whatever becomes of those."""
    is_done: Callable[[int], bool] = lambda _: False
    """Whether the manager believes that a task is done."""
    rules: dict[int, Rules] = field(default_factory=dict)
    """Of tasks that have some."""
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
    copies_s: float = 3.0
    """How long each of them takes."""
    move_s: int = 2
    """How long files take from one place to another, besides a second for each."""
    moves: int = 0
    """How many are under way."""
    vanishing: int = 0
    """Of how many a file is gone when it is to move."""
    told_gone: list[tuple[str, str]] = field(default_factory=list)
    """What the manager was told to be gone, and where, since it was last looked at."""
    ends: set[tuple[int, int, int | None, int | None]] = field(default_factory=set)
    """What came of attempts: the task, the number, the exit code, the signal."""
    failures: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often a task failed in a job of the queue, if it was by itself."""
    saved_s: dict[int, float] = field(default_factory=dict)
    """The most of each task that a checkpoint of it ever had."""
    steps: int = 0
    doomed_copying: set[str] = field(default_factory=set)
    """Jobs whose agents are killed when they have copied half of a file."""
    before_commit: Callable[[object], None] = lambda _: None
    """Hears what is about to be committed."""
    dying: object = None
    """What the manager was about to write when it died."""
    held_until_s: int = 0
    """No job starts before."""
    hidden: dict[str, float] = field(default_factory=dict)
    """Jobs that the queue shows to no one, and until when."""
    hides: list[tuple[str, float, float]] = field(default_factory=list)
    """The same of all that ever were hidden, with the times."""
    wrong_until_s: int = 0
    wrong_state: JobState = JobState.WAITING
    """What the queue says of every job until then."""
    node_clock_s: float = 0.0
    """How far the clock is off on the nodes of the next job that starts."""
    answered_late_s: int = 0
    """When the queue last gave an answer that took long."""
    stumbles: int = 0
    """How often what an agent tries fails for a moment."""
    of_user: dict[str, str] = field(default_factory=dict)
    """What is there and does not concern the run, by path."""
    not_committed: list[tuple[str, int]] = field(default_factory=list)
    """What could not come from a node to the shared files: the queue's name of the job, and the
    task. Of runs in which nothing leaves its node only because it is small."""
    commits_early: bool = False
    """Whether files leave their nodes only because they are small."""
    omitted: list[Kind] = field(default_factory=list)
    """What the next attempts do to their outputs that they should not."""
    wishes: UserWishes = field(init=False)
    """What people ask of the run."""
    limits_s: dict[int, float] = field(default_factory=dict)
    """How long attempts at tasks may run, where that is limited."""
    lasting: Lasting = field(init=False)
    view: LateView = field(init=False)
    """What the manager's machine sees of the run's folder."""
    memory: UnsyncedFiles = field(init=False)
    """What machines have not brought to the disk."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    """What of that is lost."""
    _acting: VirtualAgent | None = None
    _doomed: Counter[str] = field(default_factory=Counter)  # how often it may write yet
    _has_news: bool = False
    _views: int = 0  # how many ask for a full view
    _writers: dict[int, str | None] = field(
        default_factory=dict
    )  # what the last attempt at a task found of others

    def __post_init__(self) -> None:
        self.queue.mood = self._mood
        self.queue.holds = self._holds
        self.queue.hides = lambda job_id: self.now_s < self.hidden.get(job_id, 0)
        self.queue.says = self._says
        self.memory = UnsyncedFiles(lambda: float(self.now_s))
        self.view = LateView(lambda: float(self.now_s))
        self.lasting = Lasting(lambda: self.expected)
        self.wishes = UserWishes(self)

    @property
    def started(self) -> Counter[int]:
        """How often each task was started."""
        return Counter(start.task for start in self.starts)

    @property
    def doubtful(self) -> set[str]:
        """Outputs that a job which was given up wrote in place: what runs there again writes into
        the same file."""
        return {
            path
            for start in self.starts
            if start.queue_id in self.was_unseen
            for path in start.in_place
        }

    @property
    def now_s(self) -> int:
        """The time."""
        return self.queue.now_s

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Who writes anything inside the `with` may find no room, and may die of it."""
        with watched(self._about_to_write, self.memory.synced, self._stumble):
            yield

    @contextmanager
    def managing(self) -> Iterator[None]:
        """A manager is at work inside the `with`, but for the times when the world continues."""
        with self.watched():
            self.view.enter()
            try:
                yield
            finally:
                self.view.leave()

    @contextmanager
    def _in_full_view(self) -> Iterator[None]:
        """What the manager sees late is there, for agents, inside the outermost `with`."""
        self._views += 1
        self.view.show()
        try:
            yield
        finally:
            self._views -= 1
            if not self._views:
                self.view.hide()

    def mend(self) -> None:
        """Someone repairs all that would stay wrong for ever."""
        self.lasting.mend()
        self.full_until_s = min(self.full_until_s, self.now_s)
        self.full_disks.clear()
        self.queue.release()
        self.wake()

    @property
    def is_busy(self) -> bool:
        """Whether an attempt runs, or a file is copied or on its way between places."""
        return self.moves > 0 or any(agent.is_busy for agent in self._alive())

    @property
    def is_quiet(self) -> bool:
        """Whether nothing goes wrong, nor did just before."""
        waits_s = max(self.held_until_s, self.away_until_s, self.full_until_s, self.quiet_s)
        is_strange = self.lasting or self.unseen or self.hidden or self.clock_step_s
        return self.now_s > waits_s and not is_strange and not self.full_disks

    def lasts(self, fault: Fault) -> None:
        """This is wrong until someone repairs it."""
        self.lasting.begin(fault)
        self.dues.append((self.now_s + LASTS_S, self.mend))

    def wake(self) -> None:
        """Something happened that a manager could hear of."""
        self._has_news = True

    def pass_time(self, until_s: float, *, wakes: bool = False) -> None:
        """Let time go by, without a manager; with `wakes`, at most until something happens that it
        could hear of."""
        self._has_news = False
        with self._in_full_view():
            self._pass_time(until_s, wakes=wakes)

    def _pass_time(self, until_s: float, *, wakes: bool) -> None:
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
            self.view.note()
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
        from windrow.trials.virtual.faults import strike  # noqa: PLC0415  (which knows worlds)

        if fault in self.faults:
            self.faults.remove(fault)
        with self._in_full_view():
            if strike(self, fault):
                self.met[fault.kind] += 1
                self._has_news = True
                if fault.kind not in (*USERS, Kind.LONG):  # which are no trouble
                    self.quiet_s = max(self.quiet_s, self.now_s + fault.length_s)

    def reached(self, record: int) -> None:
        """The manager has journaled this record, and not yet acted on it."""
        self.exercised[Invariant.JOURNAL] += 1
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
            self._silenced(agent, state)
        self.queue.end(queue_id, 137, state)

    def _silenced(self, agent: VirtualAgent, state: JobState | None) -> None:
        """An agent is gone without a word; with its machine, or alone."""
        if state is JobState.NODE_FAILED:
            self.crash(agent.queue_id)
        else:
            self.memory.flushed(agent.queue_id)

    def crash(self, machine: str, dying: object = None) -> None:
        """A machine is gone, and with it what it had not brought to the disk. None of that may be
        relied on."""
        self.exercised[Invariant.RELIED] += 1
        if wrong := self.memory.crash(machine, self.chance, dying):
            raise Violation(
                f"lost with the machine of {machine}, though others rely on it: {wrong}"
            )

    def fail_power(self) -> None:
        """All machines fail at once; that of the manager when it writes next."""
        for agent in list(self.unseen.values()):
            agent.kill()
            self.crash(agent.queue_id)
        self.unseen.clear()
        for queue_id in list(self.agents):
            self.kill_agent(queue_id, JobState.NODE_FAILED)
        self.fate.deadly = self.fate.passed
        self.fate.is_crash = True

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

    def doom(self, queue_id: str, writes: int = 0) -> None:
        """The agent of this job is killed when it has written so often."""
        self._doomed[queue_id] = writes

    def _lose_sight(self, queue_id: str) -> None:
        if queue_id in self.agents:
            self.unseen[queue_id] = self.agents.pop(queue_id)
            self.was_unseen.add(queue_id)

    # Agents

    def begins(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """An attempt begins: if it may not, something is wrong with what let it."""
        in_place = () if order.elsewhere else order.outputs
        self.starts.append(AttemptStart(self.now_s, agent.queue_id, task, in_place))
        self.made.update(order.outputs)
        assert agent.loop is not None
        home = agent.loop.home_of(task)
        if is_fenced(agent.folder, home):
            raise Violation(f"task {task} starts in job {home}, which was given up")
        self._check_alone(agent, task, order)
        self._check_wanted(agent, task)
        if order.has_checkpoints:
            self._check_checkpoint(agent, task, order)
        self._check_inputs(agent, task, order)
        self._check_room(agent.loop.shape, agent.loop.beside(task))
        if self.limit:
            self._check_space(task, order)
        self._check_in_time(agent, task)
        if self.rules:
            self._check_limits(task)
            self._check_turn(agent, task)
            self._check_loose(task)
            self._check_more(agent, task)

    def _check_alone(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """It runs nowhere else, unless it may have copies or that job was given up."""
        for other in self._alive():
            if other is agent or other.loop is None or task not in other.loop.running:
                continue
            self.exercised[Invariant.ALONE] += 1
            if not order.commit and not is_fenced(other.folder, other.loop.home_of(task)):
                raise Violation(
                    f"task {task} starts in queue job {agent.queue_id} while it runs in "
                    f"{other.queue_id}"
                )
            if order.has_checkpoints and other.loop.is_at_work(task):
                raise Violation(
                    f"task {task} starts in {agent.queue_id}; {other.queue_id} may write its "
                    "checkpoints"
                )

    def _check_wanted(self, agent: VirtualAgent, task: int) -> None:
        """No one has cancelled it long ago. Of agents of which the run knows."""
        since_s = self.wishes.cancelled_s.get(task)
        if since_s is None or agent.queue_id in self.was_unseen:
            return
        self.exercised[Invariant.RECALLED] += 1
        if self.now_s > max(since_s, self.quiet_s, self.full_until_s) + ENDS_S:
            raise Violation(f"task {task} starts, which was cancelled {self.now_s - since_s} s ago")

    def _check_checkpoint(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """Its last checkpoint that was heard of is there."""
        assert agent.loop is not None
        self.made.add(str(file := state_file(order)))
        heard_s = agent.loop.heard_s(task)
        self.exercised[Invariant.KEPT] += heard_s > 0
        if kept_s(order) < heard_s and file.name not in self.deleted:
            raise Violation(f"{kept_s(order)} s of task {task} are kept, not {heard_s}")
        self._writers[task] = content(str(file))

    def _check_room(self, shape: NodeShape, nodes: Sequence[Sequence[TaskSpec]]) -> None:
        """Each node of the task has what all need that run there."""
        for there in nodes:
            self.exercised[Invariant.ROOM] += len(there) > 1
            cores = sum(spec.cores for spec in there)
            memory_bytes = sum(spec.memory_bytes for spec in there)
            is_shared = len(there) > 1 and any(spec.nodes for spec in there)
            if is_shared or cores > shape.cores or memory_bytes > (shape.memory_bytes or inf):
                raise Violation(f"on a node of {shape} there are {[spec.need for spec in there]}")

    def _check_space(self, task: int, order: Order) -> None:
        """With what it makes, files take no more than they may. Of worlds without agents that the
        run has given up."""
        self.exercised[Invariant.SPACE] += 1
        if self.was_unseen:
            return
        at_work = (other.loop.at_work for other in self._alive() if other.loop is not None)
        names = {Path(path).name for path in set(order.outputs).union(*at_work)}
        # of attempts that died, too
        names |= {_without_draft(path.name) for path in Path(order.workdir).iterdir()}
        used = sum(size for path, size in self.sizes.items() if Path(path).name in names)
        if used > self.limit:
            raise Violation(f"files take {used} of {self.limit} when task {task} starts")

    def _check_limits(self, task: int) -> None:
        """All that runs in jobs that the run has not given up, this task among it, takes no more of
        a limit than there is. What runs though a job that was given up has done it counts as the
        latter."""
        taken = Counter[str]()
        runs = {
            (agent.queue_id, other)
            for agent in self._alive()
            if agent.loop is not None
            for other in agent.loop.running
            if not is_fenced(agent.folder, agent.loop.home_of(other)) and not self.is_done(other)
        }
        for _, other in runs:
            for take in self.rules.get(other, PLAIN).takes:
                taken[take.name] += take.number
        for take in self.rules.get(task, PLAIN).takes:
            self.exercised[Invariant.LIMITS] += taken[take.name] > take.number
            if taken[take.name] > take.most:
                raise Violation(
                    f"tasks take {taken[take.name]} of {take.name}, of which there is {take.most}, "
                    f"when task {task} starts"
                )

    def _check_in_time(self, agent: VirtualAgent, task: int) -> None:
        """It should end before its job does, or write a checkpoint."""
        assert agent.loop is not None
        left_s = agent.loop.left_s
        self.exercised[Invariant.IN_TIME] += left_s < inf
        least_s = agent.loop.spec(task).least_s
        if left_s + 1 < least_s and not agent.loop.is_delayed(task):
            raise Violation(f"task {task} starts, takes {least_s} s and has {left_s} s")

    def _check_turn(self, agent: VirtualAgent, task: int) -> None:
        """No task that is more urgent and needs no more waits for room in its job. Where all are
        on their nodes at once."""
        assert agent.loop is not None
        if self.is_local or self.limit or task not in self.rules:
            return
        need = agent.loop.spec(task).need
        mine = self.rules[task].priority
        for other in agent.loop.offered:
            theirs = self.rules.get(other, PLAIN)
            its = agent.loop.spec(other).need
            is_less = its.cores <= need.cores and its.memory_bytes <= need.memory_bytes
            self.exercised[Invariant.TURN] += 1
            if theirs.priority > mine and is_less and not (its.nodes or theirs.memories):
                raise Violation(f"task {task} starts before {other}, which is more urgent")

    def _check_loose(self, task: int) -> None:
        """What it comes after, whatever becomes of that, does not run its first attempt."""
        for before in self.loose.get(task, ()):
            self.exercised[Invariant.LOOSE] += 1
            known = (a for a in self.agents.values() if a.queue_id not in self.was_unseen)
            runs = any(agent.runs(before) for agent in known)
            if runs and self.started[before] == 1 and before not in self.finished_s:
                raise Violation(f"task {task} starts while {before} runs, after which it comes")

    def _check_more(self, agent: VirtualAgent, task: int) -> None:
        """It has the memory that this try asks for."""
        memories = self.rules.get(task, PLAIN).memories
        assert agent.loop is not None
        if not memories or agent.loop.spec(task).checkpoint is not None:  # which ends attempts, too
            return
        failed = agent.loop.spec(task).failed + self.failures[agent.queue_id, task]
        self.exercised[Invariant.MORE] += failed > 0
        wanted = memories[min(failed, len(memories) - 1)]
        has = agent.loop.begun(task).memory_bytes
        if has < wanted:
            raise Violation(f"task {task} has {has} bytes of memory, and asks for {wanted}")

    def ended(self, agent: VirtualAgent, attempt: Attempt) -> None:
        """This came of an attempt."""
        self.ends.add((attempt.task, attempt.number, attempt.exit, attempt.signal))
        if attempt.why and attempt.cause == Cause.PROGRAM and not attempt.signal:
            self.failures[agent.queue_id, attempt.task] += 1

    def _check_inputs(self, agent: VirtualAgent, task: int, order: Order) -> None:
        """What the task reads is there, where it reads it or where that is copied from, and is
        right."""
        doubtful = self.doubtful
        for path in dict.fromkeys(order.inputs):
            name = Path(path).name
            found = content(agent.source(path, order))
            self.exercised[Invariant.INPUTS] += found is not None
            if path in doubtful or name in self.tainted:
                continue
            if self.is_wrong(path, found):
                raise Violation(
                    f"task {task} starts on {path}, which has {found!r}, not "
                    f"{self.expected.get(name)!r}"
                )
            is_done = self.finished_s.get(task, -1) >= agent.begun_s  # by a job that was given up
            if found is None and name not in self.missing and not is_done:
                raise Violation(
                    f"task {task} starts without {path}, which is not where {agent.queue_id} "
                    "reads it"
                )

    def is_wrong(self, path: str | Path, text: str | None) -> bool:
        """Whether this is not what the file would hold in a perfect world."""
        expected = self.expected.get(Path(path).name)
        return text is not None and (text == HALF if expected is None else text != expected)

    def reads(self, order: Order, path: str, text: str | None) -> None:
        """Who reads what is wrong makes what is wrong; known is that only of what is doubtful."""
        name = Path(path).name
        is_known = path in self.doubtful or name in self.tainted or name in self.missing
        if self.is_wrong(path, text) and is_known:
            self.tainted.update(Path(name).name for name in order.outputs)

    def omits(self, order: Order) -> Kind | None:
        """What the attempt that begins now does to its outputs that it should not."""
        return self.omitted.pop() if self.omitted and order.outputs else None

    def killed(self, agent: VirtualAgent) -> None:
        """An agent is gone, with what it had under way."""
        self.exercised[Invariant.NO_DRAFT] += agent.loop is not None and bool(agent.loop.running)

    def saves(self, agent: VirtualAgent, order: Order) -> None:
        """Between two checkpoints of an attempt, or its start and the first, no other attempt wrote
        any."""
        found = content(str(state_file(order)))
        me = f"{agent.queue_id} {order.attempt}"
        self.exercised[Invariant.UNMIXED] += found is not None
        is_own = found is not None and found.endswith(f" {me}")
        if not is_own and found is not None and found != self._writers.get(order.task):
            raise Violation(f"checkpoints of task {order.task} are mixed: {me} finds {found}")

    def saved(self, order: Order, done_s: float) -> None:
        """An attempt has written its checkpoint, by which so much of the task is done."""
        self.saved_s[order.task] = max(done_s, self.saved_s.get(order.task, 0.0))

    @property
    def has_unknown(self) -> bool:
        """Whether there may be agents, or jobs, of which the manager does not know."""
        queue = self.queue
        late = (job_id for job_id in queue.left if queue.late[queue.jobs[job_id].spec.tag])
        hidden = self.was_unseen.intersection(queue.left)
        return bool(self.unseen or queue.coming or hidden or any(late))

    def home_s(self) -> float:
        """When nodes can reach the shared files again; 0 if they can."""
        if self.now_s >= self.away_until_s:
            return 0.0
        if self.away_errno:
            raise OSError(self.away_errno, os.strerror(self.away_errno))
        return self.away_until_s

    def copies(self, agent: VirtualAgent) -> None:
        """Half of a file has been copied to or from a node."""
        self.transfers += 1
        for fault in [
            f for f in self.faults if f.kind is Kind.COPYING and f.at_record == self.transfers
        ]:
            self.faults.remove(fault)
            self.met[fault.kind] += 1
            raise Killed
        if agent.queue_id in self.doomed_copying:
            raise Killed

    def _alive(self) -> list[VirtualAgent]:
        return [*self.agents.values(), *self.unseen.values()]

    def _started(self, job: SimulatedJob) -> VirtualAgent:
        folder, number = job.spec.command[-2:]
        now_s = lambda: float(self.now_s)  # noqa: E731
        agent = VirtualAgent(
            RunFolder.at(folder), int(number), job.status.id, job.status.hosts, self, now_s
        )
        agent.clock_s = self.node_clock_s
        self.node_clock_s = 0.0
        return agent

    def _changed(self, job: SimulatedJob) -> None:
        """The queue has started or ended a job."""
        queue_id = job.status.id
        self._has_news = True
        if job.is_running:
            self.agents[queue_id] = self._started(job)
        elif (agent := self.agents.pop(queue_id, None)) is not None:
            self.met["node is down for a while"] += (
                job.status.state is JobState.NODE_FAILED and job.ends_as is None
            )
            if job.status.state in (JobState.CANCELLED, JobState.PREEMPTED):
                self._act(agent, agent.tell)
            agent.kill()
            self._silenced(agent, None if job.ends_as else job.status.state)

    def _let_agents_act(self) -> None:
        for agent in self._alive():
            if agent.next_s > self.now_s:
                continue
            is_doubtful = agent.queue_id in self.was_unseen
            self.exercised[Invariant.FENCED] += is_doubtful and agent.is_given_up
            self._act(agent, agent.turn)
            if agent.exit_code is None:
                continue
            self.memory.flushed(agent.queue_id)
            if agent.exit_code == 0:
                self.left_in_order.add(agent.queue_id)
            if agent.is_turned_away:
                self.turned_away.append(agent.queue_id)
            if self.unseen.pop(agent.queue_id, None) is None:
                self.agents.pop(agent.queue_id, None)
                self.queue.end(agent.queue_id, agent.exit_code)

    def _act(self, agent: VirtualAgent, do: Callable[[], None]) -> None:
        before = self._acting
        self._acting = agent
        try:
            do()
        finally:
            self._acting = before

    def _stumble(self) -> None:
        if self._acting is not None and self.stumbles:
            self.stumbles -= 1
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))

    def was_not_committed(self, agent: VirtualAgent, task: int) -> None:
        """An agent hears that an output of this task cannot leave its node."""
        if not self.commits_early:
            self.not_committed.append((agent.queue_id, task))

    def finished(self, order: Order, ran_s: float) -> None:
        """An attempt has made its outputs."""
        limit_s = self.limits_s.get(order.task, inf)
        self.exercised[Invariant.WITHIN] += limit_s < inf
        if ran_s > limit_s + _LATE_END_S:
            raise Violation(f"task {order.task} ran for {ran_s} s, and may for {limit_s} s")
        self._check_recalled(order.task)
        self.newest += order.outputs
        self.finished_s[order.task] = self.now_s

    def lose_file(self, path: Path) -> None:
        """Someone deletes what a task has made."""
        path.unlink()
        self.deleted.add(path.name)
        self.missing.add(path.name)

    def _check_recalled(self, task: int) -> None:
        """It was not cancelled long ago. Of jobs of which the run knows."""
        since_s = self.wishes.cancelled_s.get(task)
        if since_s is None or self.was_unseen:
            return
        self.exercised[Invariant.RECALLED] += 1
        if self.now_s > max(since_s, self.quiet_s, self.full_until_s) + ENDS_S:
            took_s = self.now_s - since_s
            raise Violation(f"task {task} finishes, which was cancelled {took_s} s ago")

    def came(self, paths: Iterable[str]) -> None:
        """These are among the shared files."""
        self.missing.difference_update(Path(path).name for path in paths)

    def discarded(self, order: Order) -> None:
        """An attempt has ended without success, and its outputs were discarded."""
        doubtful = self.doubtful
        for path in order.outputs:
            self.exercised[Invariant.UNTOUCHED] += not order.elsewhere
            is_known = path in doubtful or Path(path).name in self.tainted
            if not is_known and content(path) == HALF:
                raise Violation(f"{path} is left half-written by an attempt that has ended")

    def _refuse_if_full(self, what: str) -> None:
        full = [until_s for folder, until_s in self.full_disks.items() if what.startswith(folder)]
        if self.now_s < max(full, default=self.full_until_s):
            raise no_room()

    def _about_to_write(self, what: object) -> None:
        self._has_news = True
        if self._acting is None:
            self.dying = path_of(what)
            self.fate.reach()
            self.dying = None
        elif self._acting.queue_id in self._doomed:
            self._doomed[self._acting.queue_id] -= 1
            if self._doomed[self._acting.queue_id] < 0:
                raise Killed
        if self._acting is not None:
            self.lasting.refuses(what, self._acting.disk)
        self._refuse_if_full(str(what))
        self.before_commit(what)
        self.memory.changes("manager" if self._acting is None else self._acting.queue_id, what)

    def _mood(self, call: str) -> Mood:
        """How the queue takes a call of the manager, who may die before it."""
        self.fate.reach()
        mood = self.lasting.mood(call, self.mood(call))
        self.exercised[Invariant.ONCE_SUBMITTED] += mood in (Mood.SILENT, Mood.DEAF, Mood.LATE)
        return mood

    def _holds(self, job_id: str) -> bool:
        """Whether a job is kept from its start."""
        return self.now_s < self.held_until_s or self.lasting.holds(job_id)

    def _says(self, status: JobStatus) -> JobStatus:
        """What the queue tells of a job, which may be wrong for a while."""
        if self.now_s >= self.wrong_until_s or status.state.is_over:
            return status
        wrong = self.wrong_state
        if wrong is not status.state:
            self.was_unseen.add(status.id)
        started_s = None if wrong is JobState.WAITING else status.started_s
        ended_s = float(self.now_s) if wrong.is_over else None
        return replace(status, state=wrong, started_s=started_s, ended_s=ended_s)


def _without_draft(name: str) -> str:
    """The output whose draft has this name, or the name itself."""
    hidden = name.removeprefix(".windrow-")
    if hidden == name:
        return name
    return hidden.rpartition(".")[0]
