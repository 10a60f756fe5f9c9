"""The agent's loop: waits for children, other nodes, other jobs and signals, and lets the core decide.

Rule 1: records are in the events file before what they say is acted on.
Rule 2: whatever ends the loop, tasks are told (SIGTERM), given time, killed, and recorded as lost.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Generator, Iterator

from windrow.agent.claim import claim, is_fenced
from windrow.agent.core import AgentCore, StartAttempt, cause_of_end
from windrow.agent.crew import Crew
from windrow.agent.desk import Desk
from windrow.agent.event_file import DONE, OUT_OF_TIME, Writer, node_lost
from windrow.agent.folder import RunFolder
from windrow.agent.hosts import Hosts, queue_id
from windrow.agent.job_file import JobFile, read_job
from windrow.agent.order import Order, Result, order_for
from windrow.agent.shares import LOOK_EVERY_S, VARIABLE, Shares
from windrow.agent.signals import SteadyClock, Wake
from windrow.errors import WindrowError
from windrow.model.cause import Cause
from windrow.model.resources import GPUS

_SWEEP_EVERY_S = 1.0
_KILL_AFTER_S = 2.0
_TERM_PART = 0.6  # of the grace: for tasks to go by themselves; the rest is for killing and writing


def taken_up(folder: RunFolder, number: int, host: str, queue_id: str, at: float) -> JobFile | str:
    """The job, which is ours from now on; or why there is nothing to do here."""
    job = read_job(folder.job_file(number))
    if is_fenced(folder, number):
        return f"job {number} was given up by its run"
    holder = claim(folder.claim(number), host, queue_id, at)
    return f"job {number} was already started by {holder}" if holder else job


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
        """`named`: what the queue calls this job, where its environment does not say it."""
        self._folder, self._job, self._hosts, self._wake = folder, job, hosts, wake
        self._clock = clock or SteadyClock()
        self._core = AgentCore(job, self._clock.now())
        called = queue_id(os.environ) if named is None else named
        self._desk = Desk(folder, job, self._core, writer, hosts.names[: job.nodes], called)
        self._sweep_at = self._clock.now()
        self._crew = crew or Crew(hosts, job.nodes, wake, doubts=True)
        self.exit_code = 0
        """0 also if tasks failed, since that is in the events."""
        self._shares: Shares | None = None
        self._told: dict[int, float] = {}  # tasks that were told to end, since another job has done them
        self._why_short = ""  # of what it should have done, where a node was lost

    def run(self) -> int:
        """Do the job. Returns the exit code."""
        for pause_s in self.turns():
            self._crew.wait(pause_s)
        return self.exit_code

    def turns(self) -> Iterator[float]:
        """The job from its start to its end, turn by turn; after each, how long to wait for news before the next."""
        try:
            self._desk.begin(self._clock.now())
            if book := os.environ.get(VARIABLE):
                self._shares = Shares(book, self._job.shape)
            self._crew.reach()
            why, self.exit_code = yield from self._work()
            self._stop(why)
        except WindrowError as error:
            self._say(f"windrow agent: {error}; stopping")
            try:  # without hope that anything can be written; what can, is
                self._stop(str(error))
            except WindrowError:  # said already
                self._crew.kill()
            self.exit_code = error.exit_code
        finally:
            if self._shares is not None:
                self._shares.leave()

    def _work(self) -> Generator[float, None, tuple[str, int]]:
        """Until nothing is left, or the agent has to stop: why it ends, and the exit code."""
        while not self._core.is_done:
            now = self._clock.now()
            if self._wake.stop_signal is not None:
                return self._stopped(self._wake.stop_signal)
            if now >= self._core.deadline:
                return OUT_OF_TIME, 0
            if now >= self._sweep_at:  # what the passing of time has changed
                self._core.drop_late(now)
                self._desk.take_over(now)
                self._sweep_at = now + _SWEEP_EVERY_S
            self._desk.hear(now)
            self._end_beaten(now)
            # Where the machine is shared, within what other jobs leave.
            with self._shares.sharing(self._core.packing) if self._shares else contextlib.nullcontext():
                starts = self._core.start(now)
            self._desk.write(now)
            for start in starts:
                self._crew.start(start.nodes[0], self._order(start))
            if self._core.is_done:
                break
            yield self._pause_s()
            self._collect()
        if self._core.has_lost and self._wake.stop_signal is not None:  # which ended the last tasks before it came here
            return self._stopped(self._wake.stop_signal)
        return self._why_short or DONE, 0

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _end_beaten(self, now: float) -> None:
        """What another job has done first ends here: told, then killed."""
        for task in self._core.beaten:
            if task not in self._told:
                self._crew.stop([task], signal.SIGTERM)
            elif now >= self._told[task] + _KILL_AFTER_S:
                self._crew.stop([task], signal.SIGKILL)
            self._told.setdefault(task, now)

    def _stopped(self, number: int) -> tuple[str, int]:
        return f"stopped by signal {signal.Signals(number).name}", 128 + number

    def _pause_s(self) -> float:
        now = self._clock.now()
        times = [self._core.deadline - now, self._sweep_at - now, self._desk.sync_due_s(), self._desk.look_again_s(now)]
        if self._shares is not None and self._shares.is_kept_waiting:
            times.append(LOOK_EVERY_S)
        return max(0.0, min(time_s for time_s in times if time_s is not None))

    def _collect(self) -> None:
        for result in self._crew.collect():
            now = self._clock.now()
            if result.why and self._wake.stop_signal is not None:
                self._core.lost(result.task, f"ended with the job: {result.why}", now, Cause.CANCELLED)
            else:
                self._core.ended(result, now)
        for place, tasks in self._crew.take_lost():
            why = self._why_short = node_lost(self._crew.names[place])
            now = self._clock.now()
            self._core.drain(why, now)
            for task in tasks:
                self._core.lost(task, why, now, Cause.NODE_FAILED)

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
            holder=self._core.home_of(start.spec.task, self._job.job),
        )

    def _gpus(self, start: StartAttempt) -> tuple[int, ...] | None:
        """The GPUs of an attempt, as its node sees them. Nodes that are all this machine each have some of its own."""
        before = start.nodes[0] * dict(self._job.counts).get(GPUS, 0) if self._hosts.are_here else 0
        return None if start.gpus is None else tuple(before + gpu for gpu in start.gpus)

    def _stop(self, why: str) -> None:
        """End what runs, and record the end. A task that still succeeds is done; another was not given its time."""

        def take_last(result: Result) -> None:
            if result.why:
                self._core.lost(result.task, why, self._clock.now(), cause_of_end(why))
            else:
                self._core.ended(result, self._clock.now())

        self._core.drain(why, self._clock.now())
        self._crew.end(self._job.grace_s * _TERM_PART, take_last)
        self._desk.end(why, self._clock.now())
