"""What the agent decides: which task starts now, which is tried again, which this job will not run.

Rule 1: no clock and no I/O in this file. Times come as arguments, in seconds since the epoch by one
steady clock.
Rule 2: everything that changes leaves a record, in order; the loop writes them down before it acts
on them.
Rule 3: a task starts only if it should end before the deadline; one with checkpoints, if it can get
a piece done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from windrow.agent import event_file as events
from windrow.agent.checkpoints import Piece
from windrow.agent.data.local_files import LocalFiles
from windrow.agent.job_file import JobFile, TaskSpec
from windrow.agent.order import Committed
from windrow.model.allocation import Allocation, Member
from windrow.model.attempt import Attempt, Leaving, Moved
from windrow.model.cause import Cause
from windrow.model.packing import Packing, Space

if TYPE_CHECKING:
    from windrow.agent.data.replicas import Replicas

IDLE_PIECES = 3
"""As many in a row may run out of time without a checkpoint."""
MADE_AGAIN = "what it reads is to be made again"
_FAILED_HERE = "it failed in this job as often as it may be tried; another may have it, too"


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Start this attempt on these nodes now. `gpus` are those that it has there, by their places;
    None: not counted."""

    spec: TaskSpec
    attempt: int
    nodes: tuple[int, ...]
    gpus: tuple[int, ...] | None = None


class AgentCore:
    """The tasks of one started job."""

    def __init__(
        self,
        job: JobFile,
        at: float,
        *,
        is_one_node: bool = True,
        machines: Sequence[int] = (),
    ) -> None:
        """`is_one_node`: all places of the allocation are on one machine, and share its disk.
        `machines`: the first place on the machine of each, if several may be on one."""
        self._specs: dict[int, TaskSpec] = {}
        self._home: dict[int, int] = {}  # the job of each task
        self._nodes = job.nodes
        self._shape = job.shape
        self._allocation = Allocation(job.nodes, self._shape, {}, _space(job))
        self.freed: list[str] = []
        """Files that nothing needs any more, for the loop to delete."""
        self.deadline = self._latest = (
            float("inf") if job.walltime_s is None else at + job.walltime_s - job.grace_s
        )
        self.local = LocalFiles(
            _replicas(job), 0 if is_one_node or job.nodes == 1 else job.small_bytes
        )
        """What is on nodes alone."""
        self.unneeded: list[str] = []
        """What was, and nothing reads any more."""
        self._node_of: dict[int, int] | None = (
            {} if job.scratch else None
        )  # of each attempt, if that matters
        if job.scratch and job.nodes > 1 and not is_one_node:
            self._allocation.packing.prefer = self._near
        self._machines = list(machines or range(job.nodes))
        if is_one_node:
            self._machines = [0] * job.nodes
        self._longest_s = 0.0
        self._done: set[int] = set()
        self._failures: dict[int, int] = {}
        self._cuts: Counter[int] = (
            Counter()
        )  # attempts that ended after a checkpoint, and were continued here
        self._running: dict[int, tuple[int, float]] = {}  # attempt, begun
        self._is_draining = False
        self.has_lost = False
        """Whether a task that ran was lost."""
        self._records: list[events.Record] = []
        self._copied: set[int] = set()  # tasks that other jobs may have, too
        self.beaten: set[int] = set()
        """Tasks that run here although another job has done them."""
        self.dismissed: set[int] = set()
        """Tasks that run here although no one wants them any more."""
        self.called_back: set[int] = set()
        """Tasks that run here, and are not to be tried again, since what they read is to be made
        again."""
        self.overdue: set[int] = set()
        """Tasks that have run for longer than they may."""
        self._awaited: dict[
            int, list[int]
        ] = {}  # tasks here, by the parent elsewhere for which they wait
        self.adopt(job, at)

    def adopt(self, job: JobFile, at: float) -> None:
        """The tasks of a job are to run here: its own when it starts, later those of another that
        has no nodes."""
        new = {spec.task: spec for spec in job.tasks if spec.task not in self._specs}
        self._specs |= new
        if job.scratch:
            self.local.adopt(new.values())
        self._home |= dict.fromkeys(new, job.job)
        self._copied |= {task for task, spec in new.items() if spec.commit}
        self._longest_s = max([self._longest_s, *(spec.least_s for spec in new.values())])
        self._await_parents(new)
        closed = self._specs.keys() - new.keys() - self._allocation.open - self._done
        opened = {task: len(set(spec.parents) - self._done) for task, spec in new.items()}
        self._allocation.grant(job.job, job.shares)
        self._allocation.add(
            {
                t: Member(s.need, s.expected_s, opened[t], s.children, s.priority, s.takes, job.job)
                for t, s in new.items()
            }
        )
        self._drop_misfits(new, at)
        for task, spec in new.items():
            if gone := closed.intersection(spec.parents):
                parent = self._specs[min(gone)].id
                why = f"task {parent!r}, on which it depends, will not run in this job"
                self._drop(self._allocation.abandon([task]), {task: why}, at)

    def _await_parents(self, new: Mapping[int, TaskSpec]) -> None:
        """What waits for the new tasks here hears of them here; they may wait for others."""
        for task in new:
            self._awaited.pop(task, None)
        for spec in new.values():
            for parent in sorted(set(spec.parents)):
                if parent not in self._specs:
                    self._awaited.setdefault(parent, []).append(spec.task)

    def _drop_misfits(self, new: Mapping[int, TaskSpec], at: float) -> None:
        empty = Packing(self._nodes, self._shape)
        for task, spec in new.items():
            if task in self._allocation.open and not empty.can_ever_run(spec.need):
                why = f"it needs more than this job's {self._nodes} nodes of {self._shape} have"
                self._drop(self._allocation.abandon([task]), {task: why}, at)

    def waits_for_any(self, job: JobFile) -> bool:
        """Whether tasks here wait for tasks of this other job."""
        return any(spec.task in self._awaited for spec in job.tasks)

    def can_adopt(self, job: JobFile, done: Collection[int], at: float) -> bool:
        """Whether tasks of this other job could run here, and those that are ready now before the
        deadline. None that was here already: it was given back, or is to run once more."""
        if any(spec.task in self._specs for spec in job.tasks):
            return False
        empty = Packing(self._nodes, self._shape)
        left_s = self.deadline - at
        ready = [spec for spec in job.tasks if self._done.union(done).issuperset(spec.parents)]
        work_s = sum(
            spec.expected_s * (spec.nodes * self._shape.cores or spec.cores) for spec in ready
        )
        return (
            bool(ready)
            and not self._is_draining
            and all(empty.can_ever_run(spec.need) for spec in job.tasks)
            and all(spec.least_s <= left_s for spec in ready)
            and work_s <= left_s * self._nodes * self._shape.cores
        )

    def _expected_end(self, open_: Sequence[TaskSpec], at: float) -> float:
        begun = {task: since for task, (_, since) in self._running.items()}
        return max((begun.get(spec.task, at) + spec.expected_s for spec in open_), default=at)

    def can_host(self, job: JobFile, at: float) -> bool:
        """Whether these copies could run beside all that is open here, and end before it: then they
        cost nothing."""
        mine = [self._specs[task] for task in self._allocation.open]
        end = min(self._expected_end(mine, at), self.deadline)
        late = any(at + spec.expected_s > end for spec in job.tasks)
        # of copies none has parents left
        is_mine = any(spec.task in self._specs or spec.parents for spec in job.tasks)
        if late or is_mine or self._is_draining or len(mine) >= self._nodes * self._shape.cores:
            return False
        together = Packing(self._nodes, self._shape)
        for spec in (*mine, *job.tasks):
            together.offer(spec.task, spec.expected_s, spec.need)
        together.start()
        return not together.has_offers

    def home_of(self, task: int | None, default: int) -> int:
        """The job in which a task is."""
        if task is None:
            return default
        return self._home.get(task, default)

    def is_closed(self, job: int) -> bool:
        """Whether none of this job's tasks is open, and nothing is to leave its nodes."""
        return not self.local.is_busy and not any(
            self._home[task] == job for task in self._allocation.open
        )

    @property
    def is_done(self) -> bool:
        """Whether nothing runs and nothing is left to do."""
        return not self._allocation.open and not self.local.is_busy

    @property
    def is_draining(self) -> bool:
        """Whether it starts nothing more."""
        return self._is_draining

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether some task waits for a task of another job."""
        return bool(self._awaited)

    @property
    def short_at(self) -> float:
        """From when on time alone may make tasks too late (`drop_late`)."""
        if len(self._running) == len(self._allocation.open):
            return float("inf")
        return self.deadline - self._longest_s

    @property
    def may_be_beaten(self) -> bool:
        """Whether another job may do an open task of this one."""
        return not self._copied.isdisjoint(self._allocation.open)

    @property
    def may_start(self) -> bool:
        """Whether some task could start if there is room."""
        return not self._is_draining and self.packing.has_offers

    @property
    def packing(self) -> Packing:
        """The tasks on the nodes."""
        return self._allocation.packing

    @property
    def running(self) -> list[int]:
        """The tasks that run."""
        return list(self._running)

    def take_records(self) -> list[events.Record]:
        """What happened since the last call."""
        records = self._records
        self._records = []
        return records

    def _note(self, record: events.Record) -> None:
        self._records.append(record)
        if self._node_of is not None:
            self.unneeded += self.local.hear(
                record, self._node_of.get(getattr(record, "task", -1), 0)
            )
            self.deadline = self._latest - self.local.grace_s

    def committed(self, committed: Committed, at: float) -> None:
        """A file that was on a node alone is on the shared file system, or cannot be brought
        there."""
        if record := self.local.committed(committed, at):
            self._note(record)

    def has_inputs(self, task: int) -> bool:
        """Whether what a task that is about to start reads is on its node; what is not will be
        committed."""
        return self._node_of is None or self.local.is_ready(task, self._node_of[task])

    def _near(self, task: int) -> list[int]:
        """The nodes that have some of what the task reads, the one with most of it first."""
        near = self.local.near(task)
        machines = sorted(near, key=lambda node: (-near[node], node))
        return [p for one in machines for p, at in enumerate(self._machines) if at == one]

    def start(self, at: float) -> list[StartAttempt]:
        """What is to be started now. Tasks whose turn it is but whose time has run out are
        dropped."""
        starts: list[StartAttempt] = []
        again = not self._is_draining
        while again:
            again = False
            for task, nodes in self._allocation.start():
                spec = self._specs[task]
                if task not in self._allocation.open:  # dropped since it was offered
                    self._allocation.give_up(task)
                    again = True
                elif at + spec.least_s > self.deadline:
                    self._drop(
                        self._allocation.give_up(task),
                        {task: _no_time(spec, self.deadline - at)},
                        at,
                    )
                    again = True
                else:
                    attempt = spec.attempts + self._failures.get(task, 0) + self._cuts[task] + 1
                    self._running[task] = attempt, at
                    near_bytes = 0
                    if self._node_of is not None:
                        self._node_of[task] = self._machines[nodes[0]]
                        near_bytes = self.local.near(task).get(self._node_of[task], 0)
                    started = Attempt(task, attempt, nodes=tuple(nodes), near_bytes=near_bytes)
                    self._note(events.AttemptStarted(at, started))
                    tried = spec.at_try(self._failures.get(task, 0))
                    gpus = self.packing.nodes.gpus_of(task)
                    starts.append(StartAttempt(tried, attempt, nodes, gpus))
        if self.packing.lacks_space and not self._running:  # nothing will make room
            waiting = sorted(self._allocation.open)
            why = "the limit on space leaves no room for its files"
            self._drop(self._allocation.abandon(waiting), dict.fromkeys(waiting, why), at)
        return starts

    def ended(self, result: Attempt, at: float, before_s: float = 0.0) -> None:
        """An attempt has ended; `before_s` was done by earlier ones."""
        task = result.task
        attempt, begun = self._running.pop(task)
        if task in self.overdue:
            self.overdue.discard(task)
            if result.why:
                limit = format(self._limit_s(task), ",g")
                why = f"it ran for longer than its time limit of {limit} s"
                result = replace(result, why=why, cause=Cause.TIME_LIMIT)
        spec = self._specs[task]
        may_have_more = (
            result.cause == Cause.MEMORY and spec.most_memory_bytes > 0 and not spec.memories
        )
        if not result.why:
            self._finished(replace(result, number=attempt), at, begun, before_s)
        elif result.cause in (Cause.SPACE, Cause.VOLUME) or may_have_more:
            # it would not help to try again at once
            self._running[task] = attempt, begun
            more = "; it is to have more in another job" if may_have_more else ""
            self.lost(task, result.why + more, at, Cause(result.cause), result.peak_bytes)
        elif task in self.dismissed:
            self._running[task] = attempt, begun
            self.lost(task, "the user cancelled it", at, Cause.DISMISSED)
        elif task in self.called_back:
            self._running[task] = attempt, begun
            self.lost(task, f"{MADE_AGAIN}; {result.why}", at, Cause.DISMISSED)
        elif task in self.beaten or result.cause == Cause.SUPERSEDED:
            why = "another attempt finished first"
            self._note(events.AttemptLost(at, task, why, Cause.SUPERSEDED))
            self._leave_to_others(task)
        else:
            self._failed(replace(result, number=attempt), at, begun)

    def _finished(self, result: Attempt, at: float, begun: float, before_s: float) -> None:
        """A task is done."""
        task = result.task
        finished = replace(
            result,
            exit=None,
            begun=begun,
            before_s=round(before_s, 3),
            sizes=tuple(result.sizes),
            local=self._specs[task].named(result.local),
            moved=self._moved(result),
        )
        self._note(events.AttemptFinished(at, finished))
        self._done.add(task)
        self.dismissed.discard(task)
        self.called_back.discard(task)
        self.freed += self._allocation.finish(task, result.sizes or None)

    def _failed(self, result: Attempt, at: float, begun: float) -> None:
        """A task has failed: it is tried again here, left to another job, or given up."""
        task = result.task
        self._failures[task] = self._failures.get(task, 0) + 1
        is_last = self._failures[task] > self._specs[task].tries_left
        is_final = is_last and task not in self._copied
        cause = result.cause or Cause.PROGRAM
        failed = replace(
            result, begun=begun, cause=cause, sizes=(), local=(), moved=self._moved(result)
        )
        self._note(events.AttemptFailed(at, failed, is_final))
        if is_final:
            closed = self._allocation.give_up(task)
            why = f"task {self._specs[task].id!r}, on which it depends, failed"
            self._drop([t for t in closed if t != task], dict.fromkeys(closed, why), at)
            if self._specs[task].stops:
                self.drain(f"task {self._specs[task].id!r} failed, which stops the run", at)
        elif is_last:
            self._leave_to_others(task)
            self._note(events.TaskDeclined(at, task, _FAILED_HERE, has_failed=True))
        elif self._is_draining:
            self._drop(self._allocation.give_up(task), {task: "this job starts no more tasks"}, at)
        else:
            self._retry(task, at)

    def _retry(self, task: int, at: float) -> None:
        """Try it again with what it is to have then, here or in another job."""
        need = self._specs[task].at_try(self._failures[task]).need
        if Packing(self._nodes, self._shape).can_ever_run(need):
            self._allocation.retry(task, need)
        else:
            why = f"its next try is to have {need.memory_bytes:,} bytes of memory, more than here"
            self._drop(self._allocation.give_up(task), {task: why}, at)

    def _moved(self, result: Attempt) -> tuple[Moved, ...]:
        """What came to its node or left it, by the names that the workflow has for files."""
        if not result.moved:
            return ()
        names = self._specs[result.task].names()
        return tuple(one._replace(file=names.get(one.file, one.file)) for one in result.moved)

    def saved(self, task: int, done_s: float, at: float) -> None:
        """A running task has written a checkpoint."""
        self._note(events.AttemptSaved(at, task, self._running[task][0], round(done_s, 3)))

    def cut(
        self, result: Attempt, piece: Piece, at: float, *, is_over: bool, ran_out: bool
    ) -> None:
        """An attempt with checkpoints has ended before its task was done; it continues here, or in
        another job.

        `is_over`: its time here is over; `ran_out`: because that of the job is.
        """
        task = result.task
        spec = self._specs[task]
        idle = 0 if piece.has_gained else spec.idle + ran_out
        if is_over and idle >= IDLE_PIECES and spec.checkpoint:
            self._failures[task] = spec.tries_left  # it would not help to try again
            return self.ended(replace(result, why=_never_saves(idle, spec.checkpoint.files)), at)
        attempt, _ = self._running.pop(task)
        self._note(events.AttemptSaved(at, task, attempt, round(piece.done_s, 3), True, idle))
        self._cuts[task] += 1
        self.has_lost |= is_over
        if is_over:
            why = "its time in this job is over; it continues in another"
            return self._drop(self._allocation.give_up(task), {task: why}, at)
        return self._allocation.retry(task)

    def spec(self, task: int) -> TaskSpec:
        """What is to be known of a task."""
        return self._specs[task]

    def _leave_to_others(self, task: int) -> None:
        """It will not run here any more. What waits for it here hears of its end from another job,
        if not yet."""
        self.packing.finish(task)
        if task in self.beaten:
            self.beaten.discard(task)
            self._done.add(task)
            self._allocation.done_elsewhere(task)
            return
        self._allocation.open.discard(task)
        if waiting := [
            child for child in self._specs[task].children if child in self._allocation.open
        ]:
            self._awaited[task] = waiting

    def lost(
        self, task: int, why: str, at: float, cause: Cause = Cause.LOST, used_bytes: int = 0
    ) -> None:
        """A running task is gone, through no fault of its own; it had used so much memory, if that
        is known."""
        self.has_lost = True
        self._running.pop(task)
        for unwanted in (self.beaten, self.dismissed, self.called_back):
            unwanted.discard(task)
        self._note(events.AttemptLost(at, task, why, cause, used_bytes))
        closed = self._allocation.give_up(task)
        self._drop([t for t in closed if t != task], {}, at)

    def done_elsewhere(self, task: int) -> None:
        """A task was done in another job: one for which tasks here wait, or one that is here as
        well."""
        children = self._awaited.pop(task, [])
        self._allocation.parent_done(children)
        if task not in self._running:
            if task in self._specs:
                self._done.add(task)
                self._allocation.done_elsewhere(task)
        elif task in self._copied:
            self.beaten.add(task)

    def never(self, task: int, why: str, at: float) -> None:
        """A task, here or in another job, will never run."""
        doomed = self._awaited.pop(task, [])
        waiting = [t for t in (task, *doomed) if t not in self._running]
        self._drop(self._allocation.abandon(waiting), dict.fromkeys(waiting, why), at)

    def end_overdue(self, at: float) -> float:
        """Note what has run for longer than it may; how long until something else will have."""
        due = inf
        for task, (_, begun) in self._running.items():
            limit_s = self._limit_s(task)
            if not limit_s or task in self.overdue:
                continue
            if at >= begun + limit_s:
                self.overdue.add(task)
            else:
                due = min(due, begun + limit_s - at)
        return due

    def _limit_s(self, task: int) -> float:
        return self._specs[task].at_try(self._failures.get(task, 0)).limit_s

    def dismiss(self, task: int, at: float) -> None:
        """The user does not want this task any more, or changes it."""
        if task in self._running:
            self.dismissed.add(task)
        else:
            self.never(task, "the user cancelled it", at)

    def rank(self, task: int, priority: int) -> None:
        """The user has given this task another priority."""
        self._allocation.rank(task, priority)

    def call_back(self, task: int, at: float) -> None:
        """What this task reads is to be made again: it starts in another job, then. One that runs
        may have read it."""
        if task in self._running:
            self.called_back.add(task)
        else:
            self._drop(self._allocation.abandon([task]), {task: MADE_AGAIN}, at)

    def drop_late(self, at: float) -> None:
        """Drop what could not end in time even if it started now. Cheap until the time gets
        short."""
        if at + self._longest_s <= self.deadline:
            return
        waiting = [t for t in self._allocation.open if t not in self._running]
        late = sorted(t for t in waiting if at + self._specs[t].least_s > self.deadline)
        whys = {t: _no_time(self._specs[t], self.deadline - at) for t in late}
        self._drop(self._allocation.abandon(late), whys, at)

    def drain(self, why: str, at: float, job: int | None = None) -> None:
        """Start nothing more, or nothing more of this job; what runs may end."""
        self._is_draining = self._is_draining or job is None
        if job is None:
            self.packing.withdraw()
        waiting = sorted(
            t
            for t in self._allocation.open
            if t not in self._running and job in (None, self._home[t])
        )
        self._drop(self._allocation.abandon(waiting), dict.fromkeys(waiting, why), at)

    def end(self, why: Leaving, at: float, kept_s: float = 0.0) -> None:
        """The agent leaves. What runs is lost; what waits was dropped. `kept_s`: as in
        `AgentLeft`."""
        self.drain(why.words, at)
        for task in self.running:
            self.lost(task, why.words, at, why.cause)
        self._note(events.AgentLeft(at, why, round(kept_s, 3)))

    def _drop(self, tasks: Iterable[int], whys: dict[int, str], at: float) -> None:
        """Record these tasks as dropped, each for its own reason or that of what it depends on."""
        gone = dict.fromkeys(tasks, "a task on which it depends will not run in this job")
        for task, why in gone.items():
            self._note(events.TaskDeclined(at, task, whys.get(task, why)))
        if gone and self._awaited:
            left = {
                p: [c for c in children if c not in gone] for p, children in self._awaited.items()
            }
            self._awaited = {parent: children for parent, children in left.items() if children}


def _space(job: JobFile) -> Space | None:
    if not job.space:
        return None
    from windrow.storage.admission import Admission  # noqa: PLC0415  (it does not travel: such jobs are at home)

    return Admission.restored(job.space)


def _replicas(job: JobFile) -> Replicas | None:
    if not job.scratch or not any(spec.mounts for spec in job.tasks):
        return None
    from windrow.agent.data.replicas import Replicas  # noqa: PLC0415  (few jobs have volumes)

    known = job.loss_rate > 0  # it counts as one loss
    return Replicas(seen_s=job.nodes / job.loss_rate if known else 0.0, losses=float(known))


def _no_time(spec: TaskSpec, left_s: float) -> str:
    if spec.least_s < spec.expected_s:
        least = "needs a piece of"
    else:
        least = "is expected to run"
    return (
        f"no time left: it {least} {spec.least_s:.0f} s, but only {max(0.0, left_s):.0f} s are left"
    )


def _never_saves(idle: int, files: Sequence[str]) -> str:
    """Why a task is given up that has saved nothing in that many jobs."""
    what = f"{idle} jobs in a row ran out of time before it had written {' or '.join(files)}"
    fix = (
        "allow longer jobs, raise its notice, or check that it writes these files when it is asked "
        "to"
    )
    return f"{what}; {fix}"
