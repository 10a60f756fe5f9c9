"""Nothing goes wrong for nothing: what fails, is given up or is not noticed has a cause.

Rule 1: a task fails only if something struck that can make tasks fail. Rule 2: a run gives up
only if something lasts, or as often went wrong as its patience allows. Rule 3: that a job is
over is known soon, whatever the clocks say, while its queue answers. Rule 4: a task has failed
for good when it was tried as often as it may be in one job. Rule 5: jobs are lost for the reason
that the queue has. Rule 6: while nothing goes wrong nodes are not held for nothing for long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.agent.event_file import AttemptFailed, AttemptFinished, AttemptSaved
from windrow.agent.job_file import read_job
from windrow.model.cause import Cause
from windrow.queues.port import JobState
from windrow.story.events import (
    CopyFailed,
    DiskRefused,
    JobEnded,
    JobKilled,
    JobsPlanned,
    JobStarted,
    JobSubmitted,
    JobTaken,
    RunBegan,
    TaskDropped,
    TaskFailed,
    TaskFinished,
    TaskRetried,
    TasksAmended,
    TaskStarted,
    TaskUndone,
)
from windrow.story.journal import Record
from windrow.trials.virtual.counted import Invariant
from windrow.trials.virtual.invariants import Violation, told_in
from windrow.trials.virtual.kinds import USERS, Kind
from windrow.trials.virtual.world import ENDS_S

if TYPE_CHECKING:
    from windrow.manager.manager import Manager
    from windrow.trials.virtual.shell import VirtualRun

HARMLESS: Collection[str] = (
    *(Kind.NODE, Kind.PREEMPTED, Kind.CANCELLED, Kind.LOST, Kind.HELD, Kind.AGENT),
    *(Kind.AGENT_WRITING, Kind.MANAGER, Kind.DOWN, Kind.SILENT, Kind.DEAF, Kind.LATE),
    *(Kind.SLOW, Kind.LONG, Kind.CLOCK, Kind.NOTICED, Kind.NODE_OF_JOB, Kind.COPYING),
    *(Kind.MACHINE, Kind.POWER, "node is down for a while"),
    *(Kind.NO_MOVE, Kind.NO_ANSWER, Kind.LIMIT, Kind.HIDDEN, Kind.SEEN_LATE, Kind.NODE_CLOCK),
    *(Kind.LATE_OUTPUT, Kind.ROT, Kind.STUMBLES, *USERS),
)
"""What makes no task fail: it costs time."""
NO_LOSS: Collection[str] = (
    *(Kind.HELD, Kind.MANAGER, Kind.DOWN, Kind.SILENT, Kind.DEAF, Kind.LATE),
    *(Kind.LONG, Kind.CLOCK, Kind.FILE, Kind.MACHINE, Kind.SEEN_LATE, Kind.NODE_CLOCK),
    *(Kind.LATE_OUTPUT, Kind.ROT, Kind.STUMBLES, Kind.TASK, Kind.NOT_ALL, *USERS),
)
"""What makes no job be lost, but where an attempt fails and there is no time for the next."""
ONE_LOSS: Collection[str] = (
    *(Kind.NODE, Kind.PREEMPTED, Kind.CANCELLED, Kind.LOST, Kind.AGENT, Kind.AGENT_WRITING),
    *(Kind.NOTICED, Kind.NODE_OF_JOB, Kind.COPYING, "node is down for a while"),
    Kind.GONE,
)
"""What makes one job be lost."""
LEAST = 3
"""At least this many jobs are lost for one reason before a run gives up; said here, as what ships
may be wrong."""
LEAST_FOR: Mapping[Cause, int] = {Cause.TIME_LIMIT: 12, Cause.NODE_FAILED: 20}
"""The same for reasons that pass more often."""
MOST_REFUSED = 3
"""In this number of jobs a disk may refuse the same task before the run gives up."""
MOST_BACK = 4
"""So often a task may come back from jobs in a row in which it did not start."""
TRIED_S = 240
"""A file that is to move is tried again within this time."""
FORGOTTEN_S = 30
"""A job that the queue does not show for a shorter time is not given up."""
IDLE_S = 150
"""Nodes may be held for so long while nothing is done on any: files are seen late, and jobs wait a
little before they take others over."""
CLOSES_S = 120
"""A run is over so long after its last holder has left, or fallen silent."""
SLOWEST_S = 60
"""A manager that waits for nothing looks more often than that."""
SOON_S = 600
"""How long a manager that hears its queue may take for the end of a job: a lost job is awaited for
a minute, and so are files that are seen late."""


def check_failed(run: VirtualRun, records: Iterable[Record]) -> None:
    """No task failed without a cause."""
    failed = [record for record in records if isinstance(record.event, TaskFailed)]
    run.world.exercised[Invariant.CAUSE] += len(failed)
    harmless = set(HARMLESS).difference([Kind.LONG] if run.world.limits_s else [])
    if failed and set(run.world.met) <= harmless:
        raise Violation(f"a task failed, and nothing made it: {failed[0]}")


def check_attempts(run: VirtualRun, records: Iterable[Record]) -> None:
    """What agents told of attempts, and is in the journal, is what became of them."""
    ends = run.world.ends
    done = {(task, number) for task, number, exit_code, _ in ends if exit_code == 0}
    told = [word for _, word in told_in(run.folder)]
    failed = [word.of for word in told if isinstance(word, AttemptFailed)]
    events = TaskFailed | TaskRetried
    failed += [one.attempt for one in records if one.attempt and isinstance(one.event, events)]
    run.world.exercised[Invariant.ATTEMPTS] += len(failed)
    for of in failed:
        if (of.task, of.number, of.exit, of.signal) not in ends:
            raise Violation(f"no attempt ended so: {of}")
    for word in told:
        if isinstance(word, AttemptFinished) and (word.task, word.of.number) not in done:
            raise Violation(f"no attempt succeeded so: {word}")


def _failed_before(records: Iterable[Record]) -> dict[tuple[int, int], set[int]]:
    """How often tasks of each job had failed when it was planned, or at most when it was
    submitted."""
    tries = Counter[int]()
    done = set[int]()
    planned = dict[int, tuple[int, ...]]()
    failed = dict[tuple[int, int], set[int]]()
    for record in records:
        event = record.event
        if isinstance(event, JobsPlanned):
            for plan in event.decision.jobs:
                planned[len(planned)] = plan.all_tasks
                failed |= {(len(planned) - 1, t): {tries[t]} for t in plan.all_tasks}
        elif isinstance(event, JobSubmitted):
            for task in planned[event.job]:
                failed[event.job, task].add(tries[task])
        elif isinstance(event, TaskRetried):
            tries[event.task] += event.task not in done
        elif isinstance(event, TaskFinished | TaskFailed):
            if isinstance(event, TaskFinished):
                done.add(event.task)
            del tries[event.task]
        elif isinstance(event, TaskUndone):
            done.discard(event.task)
        elif isinstance(event, TasksAmended) or (isinstance(event, RunBegan) and event.retry):
            tries.clear()
    return failed


def check_tries(run: VirtualRun, records: Sequence[Record]) -> None:
    """A task is tried as often as its step says before it has failed for good: in each job as often
    as earlier ones have left of that. Of tasks without checkpoints: if these wrote none for long,
    they are not tried again."""
    steps = run.runnable.steps
    before = {
        (number, spec.task): spec.failed
        for number in run.folder.numbers()
        if run.folder.job_file(number).exists()
        for spec in read_job(run.folder.job_file(number)).tasks
    }
    known = _failed_before(records)
    has_amended = any(isinstance(record.event, TasksAmended) for record in records)
    for (number, task), failed in before.items() if not has_amended else ():
        if failed not in known.get((number, task), {failed}):
            counts = known[number, task]
            raise Violation(f"job {number} has task {task} as failed {failed} times, not {counts}")
    tries = Counter[tuple[int, int]]()
    for number, word in told_in(run.folder):
        if not isinstance(word, AttemptFailed) or word.task >= len(steps):
            continue
        tries[number, word.task] += 1
        failed = before.get((number, word.task), 0)
        most = max(0, steps[word.task].retries - failed) + 1
        run.world.exercised[Invariant.TRIES] += 1
        so_far = tries[number, word.task]
        is_wrong = so_far > most or (word.final and so_far < most)
        if is_wrong and steps[word.task].checkpoint is None:
            raise Violation(f"task {word.task} failed {so_far} times in job {number}, not {most}")


def check_limits(run: VirtualRun) -> None:
    """An attempt fails for its time limit only if it ran for so long."""
    for _, word in told_in(run.folder):
        if isinstance(word, AttemptFailed) and word.of.cause == Cause.TIME_LIMIT:
            limit_s = run.world.limits_s.get(word.task)
            run.world.exercised[Invariant.WITHIN] += 1
            if limit_s is None or word.at - word.of.begun < limit_s:
                raise Violation(f"{word} has failed for a time limit of {limit_s} s")


def check_saved(run: VirtualRun) -> None:
    """No agent tells of more than checkpoints ever had."""
    for _, word in told_in(run.folder):
        if isinstance(word, AttemptSaved):
            had_s = run.world.saved_s.get(word.task, 0.0)
            run.world.exercised[Invariant.SAVED] += 1
            if word.done_s > had_s + _ASKED_S:
                raise Violation(f"{word.done_s} s of task {word.task} are told, and had {had_s}")


def check_refused(run: VirtualRun, records: Iterable[Record], copies: int) -> None:
    """No task was refused by disks in job after job until all else was done."""
    jobs: dict[int, set[int]] = {}
    for record in records:
        if isinstance(record.event, RunBegan):
            jobs.clear()
        elif isinstance(record.event, DiskRefused) and not record.event.is_final:
            refused = jobs.setdefault(record.event.task, set())
            refused.add(record.event.job)
            run.world.exercised[Invariant.REFUSED] += 1
            if len(refused) >= MOST_REFUSED + copies:
                raise Violation(f"disks refused {record.event.task} in the jobs {sorted(refused)}")


def check_sent_back(run: VirtualRun, records: Iterable[Record]) -> None:
    """No task comes back from job after job in which it did not start, while no other is done."""
    began = set[tuple[int, int]]()
    back = Counter[int]()
    for record in records:
        event = record.event
        if isinstance(event, TaskStarted):
            began.add((event.job, event.task))
        elif isinstance(event, TaskDropped):
            if (event.job, event.task) not in began:
                back[event.task] += 1
                run.world.exercised[Invariant.SENT_BACK] += 1
            if back[event.task] > MOST_BACK:
                raise Violation(f"task {event.task} came back {back[event.task]} times: {event}")
        elif isinstance(event, RunBegan | TaskFinished | TaskUndone | JobKilled):
            back.clear()


def _jobs_with_failures(records: Iterable[Record]) -> int:
    """In how many jobs attempts failed since the run last began."""
    jobs = set[int]()
    for record in records:
        if isinstance(record.event, RunBegan):
            jobs.clear()
        elif isinstance(record.event, TaskRetried | CopyFailed):
            jobs.add(record.event.job)
    return len(jobs)


def _lost_in_a_row(records: Iterable[Record]) -> Counter[Cause]:
    """How many jobs have ended at most while no task finished for the first time, which may have
    been losses, by their causes, since the run last began."""
    lost = Counter[Cause]()
    most = Counter[Cause]()
    finished = set[int]()
    for record in records:
        event = record.event
        if isinstance(event, RunBegan):
            lost.clear()
            most.clear()
        elif isinstance(event, JobKilled | JobEnded):
            lost[_cause(event)] += 1
            most |= lost
        elif isinstance(event, TaskFinished) and event.task not in finished:
            finished.add(event.task)
            lost.clear()
    return most


def _cause(event: JobKilled | JobEnded) -> Cause:
    if isinstance(event, JobEnded):
        return Cause.AGENT
    return event.cause or Cause.LOST


_ASKED_S = 10
"""A checkpoint that was not asked for counts up to when it was seen."""
_TRUE_CAUSES: Mapping[Cause, Collection[JobState]] = {
    Cause.NODE_FAILED: (JobState.NODE_FAILED,),
    Cause.PREEMPTED: (JobState.PREEMPTED,),
    Cause.CANCELLED: (JobState.CANCELLED,),
}


@dataclass
class CauseWatch:
    """Looks at a run whenever its manager has looked."""

    run: VirtualRun
    silent_s: float = 0.0
    """When its manager last was new, or did not hear its queue."""
    deaths: int = -1
    looked_s: float = 0.0
    wanted_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """Since when files are to move and are not tried, by the two places."""
    read: int = 0
    """How many records were looked at."""
    ids: dict[int, str] = field(default_factory=dict)
    """What the queue calls jobs."""
    started: set[int] = field(default_factory=set)
    """Jobs of which that is in the journal."""
    busy_s: float = 0.0
    """When something last was done, or went wrong."""
    calm_s: float = 0.0
    """Since when nothing goes wrong."""
    done_s: dict[tuple[str, int], float] = field(default_factory=dict)
    """Since when copies run of what is done, by the queue's name of the job and the task."""
    open_s: float = 0.0
    """When the run last had a reason to stay open."""

    def _count_silence(self, manager: Manager, now_s: float) -> None:
        """It counts from a look at a queue that did not answer, and by a new manager."""
        is_new = self.deaths != self.run.deaths
        is_new |= now_s - self.looked_s > SLOWEST_S  # a call kept it waiting meanwhile
        self.looked_s = now_s
        if manager.trouble_with_queue or is_new or manager.is_over:
            self.silent_s = now_s
            self.deaths = self.run.deaths
        if is_new or manager.is_over:
            self.wanted_s.clear()

    def __call__(self) -> None:
        """The manager has looked."""
        manager = self.run.manager
        world = self.run.world
        assert manager is not None
        if manager.core.trouble and not manager.core.is_stopped:
            self._check_trouble(manager.core.trouble)
        self._count_silence(manager, world.now_s)
        self._check_tried()
        self._check_gone()
        self._check_ends()
        self._check_busy()
        self._check_recalled()
        self._check_beaten()
        self._check_open()
        self.silent_s = max(self.silent_s, world.answered_late_s)
        if world.now_s - self.silent_s > SOON_S:
            self._check_heard()

    def _check_trouble(self, trouble: str) -> None:
        """It gives up for a reason."""
        world = self.run.world
        world.exercised[Invariant.REASON] += 1
        met = {kind for kind, count in world.met.items() if count}
        records = self.run.records()
        losses = sum(world.met[kind] for kind in ONE_LOSS) + _jobs_with_failures(records)
        if met.issubset({*NO_LOSS, *ONE_LOSS}) and losses < LEAST:
            raise Violation(f"the run gives up after {dict(world.met)}: {trouble}")
        assert self.run.manager is not None
        if "jobs in a row" in trouble and len(self.run.manager.core.sites) == 1:  # each counts
            lost = _lost_in_a_row(records)
            if all(count < LEAST_FOR.get(cause, LEAST) for cause, count in lost.items()):
                raise Violation(f"the run gives up after {dict(lost)} in a row: {trouble}")

    def _check_tried(self) -> None:
        """What is to move is tried again, whatever came of it before."""
        assert self.run.manager is not None
        moves = self.run.manager.dispatch.transfers
        if moves is None or self.run.manager.core.is_stopped:
            return
        now_s = self.run.world.now_s
        waiting = [
            link for link in moves.catalogue.moves(moves._needs()) if link not in moves.under_way
        ]
        self.wanted_s = {link: self.wanted_s.get(link, now_s) for link in waiting}
        for link, since_s in self.wanted_s.items():
            self.run.world.exercised[Invariant.TRIED] += 1
            if now_s - since_s > TRIED_S:
                raise Violation(f"files of {link} are not tried for {now_s - since_s} s")

    def _check_gone(self) -> None:
        """What was gone when it was to move is not believed to be there."""
        assert self.run.manager is not None
        moves = self.run.manager.transfers
        for path, place in self.run.world.told_gone if moves is not None else ():
            assert moves is not None
            task = moves.catalogue.maker.get(path)
            self.run.world.exercised[Invariant.NOT_BELIEVED] += 1
            is_there = (self._root(place) / path).exists()  # it may have been made again
            if task is not None and moves.catalogue.is_at(path, place) and not is_there:
                raise Violation(f"{path} was gone at {place or 'home'}, and is believed there")
        self.run.world.told_gone.clear()

    def _root(self, place: str) -> Path:
        """Where files of a place are."""
        if place and self.run.far is not None:
            return self.run.far / "files"
        return Path(self.run.runnable.steps[0].workdir)

    def _check_ends(self) -> None:
        """What is new in the journal of ends of jobs is so."""
        for number, record in self.run.reader.records(self.read):
            self.read = number
            event = record.event
            if isinstance(event, JobSubmitted | JobTaken):
                self.ids[event.job] = event.id
                self.started.discard(event.job)
            elif isinstance(event, JobStarted):
                if event.job in self.started:
                    raise Violation(f"job {event.job} is told to start twice")
                self.started.add(event.job)
            elif isinstance(event, JobKilled) and event.job in self.ids:
                self._check_end(self.ids[event.job], event, record.detail or {})

    def _check_end(self, queue_id: str, event: JobKilled, detail: Mapping[str, Any]) -> None:
        world = self.run.world
        if queue_id not in world.queue.jobs or detail.get("agent") is not None:
            return  # or its agent said so, which knows better
        world.exercised[Invariant.ENDS] += 1
        state = world.queue.jobs[queue_id].status.state
        may_be_gone = self._may_be_gone(queue_id)
        if detail.get("state") == "forgotten" and not may_be_gone:
            raise Violation(f"job {event.job} is called forgotten, and the queue has it: {state}")
        true = _TRUE_CAUSES.get(event.cause or Cause.LOST, (state,))
        is_known = not may_be_gone and queue_id not in world.was_unseen
        if is_known and state not in true:
            raise Violation(f"job {event.job} is {state}, and is called {event.cause}")

    def _may_be_gone(self, queue_id: str) -> bool:
        """Whether the queue may have said for long enough that it does not know this job."""
        world = self.run.world
        job = world.queue.jobs[queue_id]
        ended_s = job.status.ended_s
        is_old = ended_s is not None and world.now_s - ended_s >= world.queue.memory_s
        hides = ((since_s, until_s) for one, since_s, until_s in world.hides if one == queue_id)
        return (
            job.is_forgotten
            or is_old
            or any(u - s > FORGOTTEN_S and world.now_s - u < SOON_S for s, u in hides)
        )

    def _check_busy(self) -> None:
        """Jobs that have nodes run something, or it is soon over with them. Of runs at one place:
        at two, jobs wait for files."""
        world = self.run.world
        assert self.run.manager is not None
        waits = len(world.queue.left) > len(world.agents)  # for its tasks others may wait
        is_idle = bool(world.agents) and not (world.is_busy or waits) and world.is_quiet
        if self.run.far is not None or not is_idle or self.run.manager.core.is_stopped:
            self.busy_s = world.now_s
        world.exercised[Invariant.BUSY] += is_idle
        most_s = IDLE_S + world.wishes.keep_s
        if world.now_s - self.busy_s > most_s:
            raise Violation(f"nothing is done on nodes of {sorted(world.agents)} for {most_s} s")

    def _check_recalled(self) -> None:
        """What was cancelled runs no more."""
        world = self.run.world
        if not world.is_quiet:
            self.calm_s = world.now_s + 1.0
        if world.now_s - self.calm_s < ENDS_S:
            return
        for task, since_s in world.wishes.cancelled_s.items():
            for agent in world.agents.values():
                is_known = agent.queue_id not in world.was_unseen
                if is_known and agent.runs(task) and world.now_s - since_s > ENDS_S:
                    took_s = world.now_s - since_s
                    raise Violation(f"task {task} runs, which was cancelled {took_s} s ago")
            world.exercised[Invariant.RECALLED] += 1

    def _check_beaten(self) -> None:
        """Of what is done no copy runs on for long."""
        world = self.run.world
        manager = self.run.manager
        assert manager is not None
        copied = [
            (agent, task)
            for agent in world.agents.values()
            if agent.loop is not None and agent.queue_id not in world.was_unseen
            for task in agent.loop.running
            if agent.loop.spec(task).commit and manager.core.is_done(task)
        ]
        now_s = world.now_s
        self.done_s = {
            (agent.queue_id, task): self.done_s.get((agent.queue_id, task), now_s)
            for agent, task in copied
        }
        world.exercised[Invariant.BEATEN] += len(copied)
        for (name, task), since_s in self.done_s.items():
            if world.is_quiet and now_s - max(since_s, self.calm_s) > ENDS_S:
                raise Violation(
                    f"task {task} runs in {name}, and is done since {now_s - since_s} s"
                )

    def _check_open(self) -> None:
        """A run that is held stays open, and one that is held no more ends."""
        world = self.run.world
        manager = self.run.manager
        assert manager is not None
        wishes = world.wishes
        is_done = manager.core.is_complete and not manager.core.jobs
        world.exercised[Invariant.STAYS_OPEN] += is_done and wishes.is_held
        is_settled = manager.transfers is None or manager.transfers.is_settled
        if not is_done or wishes.is_held or not wishes.held_until_s or not is_settled:
            self.open_s = world.now_s
        if world.now_s - self.open_s > CLOSES_S and not manager.is_over:
            raise Violation(f"all is done, and the run is open for {CLOSES_S} s")

    def _check_heard(self) -> None:
        """What the queue calls over for long, and shows, is over for the manager."""
        world = self.run.world
        assert self.run.manager is not None
        for number, placed in self.run.manager.placed.items():
            if placed.id is None or placed.id in world.was_unseen:
                continue
            ended_s = world.queue.jobs[placed.id].status.ended_s
            world.exercised[Invariant.HEARD] += 1
            if ended_s is not None and world.now_s - ended_s > SOON_S:
                raise Violation(f"job {number} has ended {world.now_s - ended_s} s ago, unheard")
