"""Choosing again: jobs that wait where others would end clearly earlier, and jobs at a site that
has long been silent.

Rule 1: a job is in one queue at a time. It is withdrawn, which is journaled, then cancelled; when
its queue has said that it is gone its tasks are planned again. Rule 2: no task moves more often
than once in `AGAIN_S`, nor back in it.
Rule 3: of a silent site, jobs are given up after a while that have not started, or whose files
cannot be seen from here, and any job as soon as its time limit has passed, if all their tasks could
run elsewhere. They are fenced first, and cancelled when the site answers again. Of running jobs
whose files can be seen one hears all the same. What only such a site has of files is made again,
where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windrow.forecast.base import WatchingForecaster
from windrow.manager.inbox import Placed
from windrow.model import NEVER_S, format_duration
from windrow.model.cause import Cause
from windrow.queues.port import QueueError
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.strategies.choosing import better_elsewhere

if TYPE_CHECKING:
    from windrow.manager.beliefs import Job
    from windrow.manager.manager import Manager
    from windrow.manager.outpost import Outpost

LOOK_S = 30.0
AGAIN_S = 600.0
SILENT_S = 600.0
"""How long a site may be silent before its work is done elsewhere."""
OVER_S = 60.0
"""How long after its time limit a job of a silent site is over for sure: clocks differ, and queues
give some grace."""


@dataclass
class Moving:
    """Looks for jobs of one run that had better be elsewhere."""

    run: Manager
    next_s: float = float("-inf")

    def due_s(self) -> float:
        """When to look next; never if no job could be elsewhere."""
        if any(outpost.placed for outpost in self._outposts()):
            return self.next_s
        return float("inf")

    def look(self) -> None:
        """Look, if it is time."""
        now = self.run.steady_s()
        if now < self.next_s or self.run.core.is_stopped or self.run.core.trouble:
            return
        self.next_s = now + LOOK_S
        for outpost in self._outposts():
            since = outpost.hearing.silent_since_s
            if since is not None:
                self._leave(outpost, is_lost=now - since >= SILENT_S)
            elif not outpost.trouble:
                self._withdraw(outpost)

    def _outposts(self) -> Iterator[Outpost]:
        return (outpost for outpost in self.run.outposts if len(outpost.at.group) > 1)

    def _leave(self, outpost: Outpost, *, is_lost: bool) -> None:
        """The site is silent: what it never got may go elsewhere, and all that is not heard of if
        it `is_lost`."""
        at = outpost.at
        now = self.run.now_s()
        silent = {
            one.at.name for one in self.run.outposts if one.hearing.silent_since_s is not None
        }
        others = [other for other in at.group if other.name not in silent and not other.trouble]
        gone: list[Record] = []
        for number, job in ((n, self.run.core.jobs[n]) for n in outpost.placed):
            if any(all(map(other.has, job.open_tasks)) for other in others):
                gone += _end_of_silent(outpost, number, job, now, is_lost=is_lost)
        if gone:
            self.run.take_in(gone)
        tasks = range(len(self.run.core.job_of))
        if (
            is_lost
            and self.run.transfers
            and all(any(other.has(task) for other in others) for task in tasks)
        ):
            self.run.transfers.lose(at.site.files)

    def _withdraw(self, outpost: Outpost) -> None:
        """At most one job at a time: what others then should do is another question afterwards."""
        now = self.run.now_s()
        core = self.run.core
        at = outpost.at
        idle = {
            n: job
            for n, job in outpost.placed.items()
            if job.id and not job.is_started and not job.is_taken
        }
        waiting = {number: placed for number, placed in idle.items() if self._may_move(number)}
        if not waiting:
            return
        try:
            offers, _ = outpost.offers(now)
            waits_s = _waits_s(outpost, waiting, now)
        except QueueError:
            return
        elsewhere = [offer for offer in offers if offer.name != at.name]
        here = next(offer for offer in offers if offer.name == at.name)
        for number, wait_s in waits_s.items():
            job = core.jobs[number]
            tasks = np.zeros(len(core.job_of), dtype=bool)
            tasks[sorted(job.open_tasks)] = True
            busy_s = elsewhere[0].view.busy_s if elsewhere else 0
            stays_s = here.end_s(job.plan, max(wait_s, busy_s))
            if (found := better_elsewhere(tasks, stays_s, elsewhere, busy_s)) is not None:
                name, end_s = found
                then = "never" if stays_s >= NEVER_S else f"in {format_duration(stays_s)}"
                why = f"would end {then} at {at.name}, in {format_duration(end_s)} at {name}"
                self.run.take_in(
                    [Record(e.JobWithdrawn(int(now), number, why, int(now + AGAIN_S)), at_s=now)]
                )
                return

    def _may_move(self, number: int) -> bool:
        job = self.run.core.jobs[number]
        moved = self.run.core.moved
        is_settled = all(
            self.run.now_s() >= moved[task][1] for task in job.open_tasks if task in moved
        )
        return (
            is_settled
            and bool(job.open_tasks)
            and not (job.copies or job.is_stopping or job.has_begun)
        )


def _latest_end_s(job: Job) -> float:
    """When a job that runs has reached its time limit; never for one that does not run, or has
    none."""
    walltime_s = job.at.site.walltime_s(job.plan.requested_s)
    if job.started_s is None or walltime_s is None:
        return float("inf")
    return job.started_s + walltime_s


def _given_up(number: int, why: str, at_s: float) -> Record:
    """A job is over for the run, though nothing was heard of its end."""
    killed = e.JobKilled(int(at_s), number, why=why, cause=Cause.UNREACHABLE)
    return Record(killed, {"state": "unreachable", "agent": None}, at_s)


def _waits_s(outpost: Outpost, waiting: Mapping[int, Placed], now_s: float) -> dict[int, int]:
    """How long these jobs should wait yet, if anyone can tell: of forecaster and queue the more
    hopeful."""
    core = outpost.run.core
    watching = next((f for f in outpost.forecasters if isinstance(f, WatchingForecaster)), None)
    ids = {placed.id or "": number for number, placed in waiting.items()}
    if watching is None:
        found = {}
    else:
        found = {ids[one]: wait_s for one, wait_s in watching.waits_of(ids).items()}
    for number, placed in waiting.items():
        if placed.status is None:
            start_s = None
        else:
            start_s = placed.status.expected_start_s
        if start_s is not None and start_s >= now_s:
            found[number] = min(found.get(number, NEVER_S), int(start_s - now_s))
    found = {number: round(wait_s * outpost.part_waited) for number, wait_s in found.items()}
    for number in waiting:
        nodes = core.jobs[number].plan.nodes
        if outpost.open_to is not None and outpost.open_to(nodes) < nodes:
            found[number] = NEVER_S
    return found


def _end_of_silent(
    outpost: Outpost, number: int, job: Job, now: float, *, is_lost: bool
) -> Iterator[Record]:
    """What becomes of a job at a site that does not answer; nothing, if that is to be awaited."""
    name = outpost.at.name
    placed = outpost.placed[number]
    may_speak = (
        placed.is_started and outpost.at.site.files == "" and placed.last_word is None
    )  # its agent, by files that are seen here
    if placed.id is None and not placed.is_doubtful and not job.is_stopping:
        yield Record(e.JobWithdrawn(int(now), number, f"{name} does not answer"), at_s=now)
    elif now > (end_s := _latest_end_s(job)) + OVER_S:
        yield _given_up(number, f"its time limit passed while {name} did not answer", end_s)
    elif is_lost and not may_speak:
        silent = f"{name} has not answered for {format_duration(SILENT_S)}"
        yield _given_up(number, silent, now)
