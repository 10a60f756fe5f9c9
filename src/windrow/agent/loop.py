"""The agent's loop: waits for children, other nodes, other jobs and signals, and lets the core
decide.

Rule 1: records are in the events file before what they say is acted on.
Rule 2: whatever ends the loop, tasks are told (SIGTERM), given time, killed, and recorded as lost.
Rule 3: before that, tasks with checkpoints are asked for one and given their notice: ahead of the
deadline, when a stop comes, and when a step hears that the queue will take the nodes away. After
such word nothing starts, and nothing is ended before the queue does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Generator, Iterator
from math import inf

from windrow.agent.checkpoints import Checkpoints, remove_files
from windrow.agent.claim import claim, is_fenced
from windrow.agent.core import MADE_AGAIN, AgentCore, StartAttempt
from windrow.agent.crew import Crew
from windrow.agent.desk import GIVEN_UP, Desk
from windrow.agent.event_file import Writer
from windrow.agent.folder import RunFolder
from windrow.agent.hosts import Hosts, queue_id
from windrow.agent.job_file import JobFile, TaskSpec, read_job
from windrow.agent.keeping import Keeping
from windrow.agent.machine import SHARES
from windrow.agent.order import Order, absolute, order_for
from windrow.agent.outputs import delete
from windrow.agent.shares import LOOK_EVERY_S, Shares
from windrow.agent.signals import SteadyClock, Wake
from windrow.errors import WindrowError
from windrow.model.attempt import DONE, NOTICED, OUT_OF_TIME, Attempt, Leave, Leaving
from windrow.model.cause import Cause
from windrow.model.resources import GPUS

_SWEEP_EVERY_S = 1.0
_KILL_AFTER_S = 2.0
_AT_ONCE_S = 5.0  # a stop so soon after a notice was not the end of a grace
# a queue that tells of the time limit may do so up to a minute too early; we know it ourselves
_EARLY_S = 90.0
_COMMIT_S = 20.0  # for copies of files that were on nodes alone, at least
_TERM_PART = 0.6  # of the grace: for tasks to go by themselves; the rest is for killing and writing


def taken_up(folder: RunFolder, number: int, host: str, queue_id: str, at: float) -> JobFile | str:
    """The job, which is ours from now on; or why there is nothing to do here."""
    job = read_job(folder.job_file(number))
    if is_fenced(folder, number):
        return f"job {number} was given up by its run"
    holder = claim(folder.claim(number), host, queue_id, at)
    if holder:
        return f"job {number} was already started by {holder}"
    return job


class Loop:
    """One job, from its start to its end."""

    def __init__(
        self,
        folder: RunFolder,
        job: JobFile,
        hosts: Hosts,
        writer: Writer,
        wake: Wake,
        *,
        clock: SteadyClock | None = None,
        crew: Crew | None = None,
        named: str | None = None,
    ) -> None:
        """`named`: what the queue calls this job, if its environment does not say it."""
        self._folder = folder
        self._job = job
        self._hosts = hosts
        self._wake = wake
        self._clock = clock or SteadyClock()
        machines = [hosts.machine(place) for place in range(job.nodes)]
        self._core = AgentCore(
            job, self._clock.now(), is_one_node=hosts.are_here, machines=machines
        )
        if named is None:
            called = queue_id(os.environ)
        else:
            called = named
        self._desk = Desk(folder, job, self._core, writer, hosts.names[: job.nodes], called)
        self._sweep_at = self._clock.now()
        self._keeping = Keeping(folder)
        self._limit_due_s = inf
        self._kept = Checkpoints(folder, job.job, job.loss_rate)
        self._longest_notice_s = max(
            (spec.checkpoint.notice_s for spec in job.tasks if spec.checkpoint), default=0.0
        )
        self._crew = crew or Crew(
            hosts, job.nodes, wake, doubts=True, hears_notices=self._longest_notice_s > 0
        )
        self.exit_code = 0
        """0 also if tasks failed, since that is in the events."""
        self._shares: Shares | None = None
        self._told: dict[
            int, float
        ] = {}  # tasks that were told to end, since another job has done them
        self._why_short: Leaving | None = None  # of what it should have done, if a node was lost
        self._noticed_s = inf  # when the queue said that it will take the nodes away
        self._to_come: list[
            tuple[float, StartAttempt]
        ] = []  # attempts that wait for their checkpoint files
        self._finished: list[
            TaskSpec
        ] = []  # whose checkpoints go when it is written that they have finished

    def run(self) -> int:
        """Do the job. Returns the exit code."""
        for pause_s in self.turns():
            self._crew.wait(pause_s)
        return self.exit_code

    def turns(self) -> Iterator[float]:
        """The job from its start to its end, turn by turn; after each, how long to wait for news
        before the next."""
        try:
            self._desk.begin(self._clock.now())
            if book := os.environ.get(SHARES):
                self._shares = Shares(book, self._job.shape)
            if self._job.scratch:
                self._crew.use_disks(self._folder, self._job)
            self._crew.reach()
            why, self.exit_code = yield from self._work()
            self._stop(why)
        except WindrowError as error:
            self._say(f"windrow agent: {error}; stopping")
            try:  # without hope that anything can be written; what can, is
                self._stop(Leaving(Leave.TROUBLE, str(error)))
            except WindrowError:  # said already
                self._crew.kill()
            self.exit_code = error.exit_code
        finally:
            if self._shares is not None:
                self._shares.leave()

    def _work(self) -> Generator[float, None, tuple[Leaving, int]]:
        """Until nothing is left, or the agent has to stop: why it ends, and the exit code."""
        while not self._core.is_done or self._is_kept() or self._takes_more():
            now = self._clock.now()
            if self._wake.stop_signal is not None and not self._gives_time(now):
                return self._stopped(self._wake.stop_signal)
            if now >= self._core.deadline:
                return OUT_OF_TIME, 0
            if self._kept.running:
                self._look_after_checkpoints(now)
            if now >= self._sweep_at:  # what the passing of time has changed
                self._core.drop_late(now)
                self._desk.hear_wishes(now)
                self._desk.take_over(now)
                self._sweep_at = now + _SWEEP_EVERY_S
            if self._core.is_done and self._desk.take_more(now):
                self._keeping.over(now)
            self._desk.hear(now)
            self._limit_due_s = self._core.end_overdue(now)
            self._end_beaten(now)
            # If the machine is shared, within what other jobs leave.
            with (
                self._shares.sharing(self._core.packing)
                if self._shares
                else contextlib.nullcontext()
            ):
                starts = self._core.start(now)
            starts = self._with_files(starts, now)
            self._desk.write(now)
            self._delete_freed()
            self._look_after_local_files()
            for start in starts:
                self._crew.start(start.nodes[0], self._order(start))
            self._remove_checkpoints()
            if self._core.is_done and not self._is_kept() and not self._takes_more():
                break
            yield self._pause_s()
            self._collect()
        if (
            self._core.has_lost and self._wake.stop_signal is not None
        ):  # which ended the last tasks before it came here
            return self._stopped(self._wake.stop_signal)
        return self._why_short or DONE, 0

    def _takes_more(self) -> bool:
        """Whether there is more to do here: the tasks of a job that has not started."""
        is_leaving = self._core.is_draining or self._why_short or self._wake.stop_signal
        return self._job.takes and not is_leaving and self._desk.take_more(self._clock.now())

    def _is_kept(self) -> bool:
        """Whether the nodes are kept although there is nothing to do: more may come."""
        now = self._clock.now()
        is_leaving = self._core.is_draining or self._why_short or self._wake.stop_signal
        return not is_leaving and now < self._core.deadline and self._keeping.lasts(now)

    def _delete_freed(self) -> None:
        """Make room, now that it is written who was the last to read these. What stays is for the
        manager."""
        freed = self._core.freed
        self._core.freed = []
        if freed and not is_fenced(self._folder, self._job.job):
            self._desk.sync()
            workdir = self._job.tasks[
                0
            ].workdir  # if tasks run in different folders, names are whole paths
            for path in absolute(workdir, freed):
                with contextlib.suppress(OSError):
                    if stays := delete(path, workdir, self._folder.path):
                        self._say(stays)

    def _look_after_local_files(self) -> None:
        """Have copied what must leave the nodes, and removed what nothing needs."""
        for node, paths in self._core.local.to_commit().items():
            self._crew.commit(node, paths)
        unneeded = self._core.unneeded
        self._core.unneeded = []
        if unneeded:
            self._crew.drop(unneeded)

    def _commits_until(self, end_s: float) -> bool:
        """While the agent leaves: whether to wait for copies that are under way."""
        self._take_committed()
        self._core.local.leave(self._core.running)
        self._look_after_local_files()
        return self._core.local.is_busy and self._clock.now() < end_s

    def _take_committed(self) -> None:
        for committed in self._crew.take_committed() if self._job.scratch else ():
            self._core.committed(committed, self._clock.now())

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _end_beaten(self, now: float) -> None:
        """What another job has done first ends here, and what has run for too long: told, then
        killed."""
        for task in (*self._core.beaten, *self._core.dismissed, *self._core.overdue):
            if task not in self._told:
                self._crew.stop([task], signal.SIGTERM)
            elif now >= self._told[task] + _KILL_AFTER_S:
                self._crew.stop([task], signal.SIGKILL)
            self._told.setdefault(task, now)

    def _stopped(self, number: int) -> tuple[Leaving, int]:
        if self._is_grace_over(self._clock.now()):
            return NOTICED, 128 + number
        return Leaving(Leave.SIGNAL, signal.Signals(number).name), 128 + number

    def _is_grace_over(self, now: float) -> bool:
        """Of a stop: whether it is the end of a grace that began with a notice."""
        return now > self._noticed_s + _AT_ONCE_S

    def _pause_s(self) -> float:
        now = self._clock.now()
        times = [
            self._core.deadline - now,
            self._sweep_at - now,
            self._desk.sync_due_s(),
            self._desk.look_again_s(now),
            self._keeping.due_s(now),
            self._limit_due_s,
        ]
        times.append(self._kept.due_s(self._core.deadline) - now)
        if self._shares is not None and self._shares.is_kept_waiting:
            times.append(LOOK_EVERY_S)
        return max(0.0, min(time_s for time_s in times if time_s is not None))

    def _collect(self) -> None:
        results = self._crew.collect()
        self._hear_notice(self._clock.now())
        for result in results:
            self._ended(result, self._clock.now())
        self._take_committed()
        for place, tasks in self._crew.take_lost():
            self._why_short = Leaving(Leave.NODE_LOST, self._crew.names[place])
            why = self._why_short.words
            now = self._clock.now()
            self._core.local.lose(place, why)
            self._core.drain(why, now)
            for task in [*tasks, *self._none_to_come()]:
                if task in self._kept.running:
                    self._kept.ended(task, now)
                self._core.lost(task, why, now, Cause.NODE_FAILED)

    def _ended(self, result: Attempt, now: float, why: Leaving | None = None) -> None:
        """An attempt is over; `why`: because the agent leaves for this reason."""
        task = result.task
        self._told.pop(task, None)
        stops = why is not None or self._wake.stop_signal is not None
        if task in self._kept.running:
            piece = self._kept.ended(task, now)
        else:
            piece = None
        is_noticed = now >= self._noticed_s
        if not result.why:
            self._core.ended(result, now, 0.0 if piece is None else piece.before_s)
            if piece is not None and not piece.is_taken:
                self._finished.append(self._core.spec(task))
        elif piece is not None and piece.is_taken:
            self._core.lost(task, "another job continues it", now)
        elif piece is not None and (piece.is_last or piece.is_answer or stops):
            ran_out = why == OUT_OF_TIME or (piece.is_last and not stops and not is_noticed)
            is_over = piece.is_last or stops or is_noticed
            self._core.cut(result, piece, now, is_over=is_over, ran_out=ran_out)
        elif stops or (is_noticed and result.may_be_stop):
            words = f"ended with the job: {result.why}"
            if why is not None:
                words = why.words
                cause = why.cause
            elif stops:
                cause = Cause.CANCELLED
            else:
                cause = Cause.PREEMPTED
            self._core.lost(task, words, now, cause)
        else:
            self._core.ended(result, now)

    # Checkpoints

    def _with_files(self, starts: list[StartAttempt], now: float) -> list[StartAttempt]:
        """Those that start now: all but attempts for whose checkpoint files others may have to be
        stopped first."""
        for _, start in list(self._to_come):
            if self._is_given_up(start.spec.task):
                self._to_come = [one for one in self._to_come if one[1] is not start]
                self._core.lost(start.spec.task, GIVEN_UP, now)
            elif start.spec.task in self._core.called_back:
                self._to_come = [one for one in self._to_come if one[1] is not start]
                self._core.lost(start.spec.task, MADE_AGAIN, now, Cause.DISMISSED)
        for start in starts:
            if start.spec.checkpoint:
                wait_s = self._kept.take(start.spec.task, start.attempt)
            else:
                wait_s = 0.0
            self._to_come.append((now + wait_s, start))
        due = [
            start
            for at, start in self._to_come
            if at <= now and self._core.has_inputs(start.spec.task)
        ]
        started = {start.spec.task for start in due}
        self._to_come = [one for one in self._to_come if one[1].spec.task not in started]
        for _, start in [
            one for one in self._to_come if self._core.local.why_lost(one[1].spec.task)
        ]:
            why = (
                "an input of it cannot be copied from its node: "
                f"{self._core.local.why_lost(start.spec.task)}"
            )
            self._to_come = [one for one in self._to_come if one[1] is not start]
            self._core.lost(start.spec.task, why, now, Cause.SPACE)
        for start in due:
            if start.spec.checkpoint and not self._kept.begin(start.spec, start.attempt, now):
                self._core.saved(start.spec.task, 0.0, now)
        return due

    def _is_given_up(self, task: int) -> bool:
        return is_fenced(self._folder, self._core.home_of(task, self._job.job))

    def _none_to_come(self) -> list[int]:
        """Start none of those that wait for their files; which tasks these are."""
        waiting = self._to_come
        self._to_come = []
        return [start.spec.task for _, start in waiting]

    def _look_after_checkpoints(self, now: float) -> None:
        """Ask for those that are due, note those that were written, and end attempts that another
        has replaced."""
        self._crew.ask(self._kept.asks(now, self._core.deadline))
        saved, taken = self._kept.look(now)
        for task, done_s in saved.items():
            self._core.saved(task, done_s, now)
        self._crew.stop(taken, signal.SIGKILL)

    def _hear_notice(self, now: float) -> None:
        """If the queue has said that it will take the nodes away: ask for checkpoints, and start
        nothing more."""
        is_early = now < self._core.deadline - self._longest_notice_s - _EARLY_S
        if self._noticed_s == inf and (
            self._crew.is_noticed or (self._wake.is_noticed and is_early)
        ):
            self._noticed_s = now
            self._why_short = NOTICED
            self._give_notice(NOTICED, Cause.PREEMPTED, now)

    def _give_notice(self, why: Leaving, cause: Cause, now: float) -> None:
        self._crew.ask(self._kept.asks(now, self._core.deadline, is_end=True))
        self._core.drain(why.words, now)
        for task in self._none_to_come():
            self._core.lost(task, why.words, now, cause)

    def _gives_time(self, now: float) -> bool:
        """A stop has come: whether some task may still write a checkpoint."""
        if self._is_grace_over(now):
            return False
        assert self._wake.stop_signal is not None
        self._give_notice(self._stopped(self._wake.stop_signal)[0], Cause.CANCELLED, now)
        return self._kept.have_time(now)

    def _remove_checkpoints(self) -> None:
        """Of tasks of which it is written that they have finished. What stays is for the
        manager."""
        if self._finished:
            self._desk.sync()
        for spec in self._finished:
            with contextlib.suppress(OSError):
                if spec.checkpoint is not None:
                    remove_files(self._folder, spec.task, spec.workdir, spec.checkpoint.files)
        self._finished = []

    def _order(self, start: StartAttempt) -> Order:
        return order_for(
            start.spec,
            start.attempt,
            run=self._job.run,
            out=self._folder.task_out(start.spec.task, start.attempt),
            hosts=[self._hosts.names[place] for place in start.nodes],
            node=self._job.shape,
            patience_s=self._job.patience_s if self._hosts.is_cluster else 0.0,
            gpus=self._gpus(start),
            commit=str(self._folder.commits / start.spec.commit) if start.spec.commit else "",
            is_local=bool(self._job.scratch) and start.spec.may_be_local,
            holder=self._core.home_of(start.spec.task, self._job.job),
            is_held=self._job.holds,
        )

    def _gpus(self, start: StartAttempt) -> tuple[int, ...] | None:
        """The GPUs of an attempt, as its node sees them. Nodes, or parts of them, that are the same
        machine each have some of its own."""
        if start.gpus is None:
            return None
        each = dict(self._job.counts).get(GPUS, 0)
        before = self._hosts.before(start.nodes[0]) * each
        return tuple(before + gpu for gpu in start.gpus)

    def _stop(self, why: Leaving) -> None:
        """End what runs, and record the end. A task that still succeeds is done; another was not
        given its time."""
        self._keeping.over(self._clock.now())
        self._core.drain(why.words, self._clock.now())
        until_s = self._clock.now() + _COMMIT_S + self._core.local.grace_s
        take = lambda result: self._ended(result, self._clock.now(), why)  # noqa: E731
        self._crew.end(self._job.grace_s * _TERM_PART, take, lambda: self._commits_until(until_s))
        self._desk.end(why, self._clock.now(), self._keeping.kept_s)
        self._remove_checkpoints()
