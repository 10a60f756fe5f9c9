"""Choosing again: jobs that wait where others would end clearly earlier, and jobs at a site that has long been silent.

Rule 1: a job is in one queue at a time. It is withdrawn, which is journaled, then cancelled; when its queue has said
that it is gone its tasks are planned again. Rule 2: no task moves more often than once in `AGAIN_S`, nor back in it.
Rule 3: of a silent site, jobs are given up that have not started, or whose files cannot be seen from here, if all their
tasks could run elsewhere. They are fenced first, and cancelled when the site answers again. Of running jobs whose
files can be seen one hears all the same. What only such a site has of files is made again, where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windrow.forecast.base import WatchingForecaster
from windrow.manager import events as e
from windrow.manager.inbox import LATE_S, Placed
from windrow.manager.journal import Record
from windrow.model import NEVER_S, format_duration
from windrow.model.cause import Cause
from windrow.queues.port import QueueError
from windrow.strategies.choosing import better_elsewhere

if TYPE_CHECKING:
    from windrow.manager.beliefs import Job
    from windrow.manager.manager import Manager
    from windrow.manager.outpost import Outpost

LOOK_S = 30.0
AGAIN_S = 600.0
SILENT_S = 600.0
"""How long a site may be silent before its work is done elsewhere."""


@dataclass
class Moving:
    """Looks for jobs of one run that had better be elsewhere."""

    run: Manager
    next_s: float = float("-inf")

    def due_s(self) -> float:
        """When to look next; never where no job could be elsewhere."""
        return self.next_s if any(outpost.placed for outpost in self._outposts()) else float("inf")

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
        """The site is silent: what it never got may go elsewhere, and all that is not heard of if it `is_lost`."""
        at, now, name = outpost.at, self.run.now_s(), outpost.at.name
        silent = {one.at.name for one in self.run.outposts if one.hearing.silent_since_s is not None}
        others = [other for other in at.group if other.name not in silent and not other.trouble]
        gone: list[Record] = []
        for number, placed in outpost.placed.items():
            job = self.run.core.jobs[number]
            if not any(all(map(other.has, job.open_tasks)) for other in others):
                continue
            if placed.id is None and not placed.is_doubtful and not job.is_stopping:
                gone.append(Record(e.JobWithdrawn(int(now), number, f"{name} does not answer"), at_s=now))
            elif is_lost and not self._is_heard_of(job, placed):
                why = f"{name} has not answered for {format_duration(SILENT_S)}"
                killed = e.JobKilled(int(now), number, why=why, cause=Cause.UNREACHABLE, is_expiry=False)
                gone.append(Record(killed, {"state": "unreachable", "agent": None}, now))
        if gone:
            self.run.take_in(gone)
        tasks = range(len(self.run.core.job_of))
        if is_lost and self.run.transfers and all(any(other.has(task) for other in others) for task in tasks):
            self.run.transfers.lose(at.site.files)

    def _is_heard_of(self, job: Job, placed: Placed) -> bool:
        """Whether an agent may be at work of which this machine hears."""
        walltime_s = job.at.site.walltime_s(job.plan.requested_s)
        until_s = float("inf") if walltime_s is None else (job.started_s or 0) + walltime_s + LATE_S
        is_near = job.at.site.files == "" and placed.last_word is None
        return placed.is_started and is_near and self.run.now_s() < until_s

    def _withdraw(self, outpost: Outpost) -> None:
        """At most one job at a time: what others then should do is another question afterwards."""
        now, core, at = self.run.now_s(), self.run.core, outpost.at
        idle = {n: job for n, job in outpost.placed.items() if job.id and not job.is_started and not job.is_taken}
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
            job, tasks = core.jobs[number], np.zeros(len(core.job_of), dtype=bool)
            tasks[sorted(job.open_tasks)] = True
            busy_s = elsewhere[0].view.busy_s if elsewhere else 0
            stays_s = here.end_s(job.plan, max(wait_s, busy_s))
            if (found := better_elsewhere(tasks, stays_s, elsewhere, busy_s)) is not None:
                name, end_s = found
                then = "never" if stays_s >= NEVER_S else f"in {format_duration(stays_s)}"
                why = f"would end {then} at {at.name}, in {format_duration(end_s)} at {name}"
                self.run.take_in([Record(e.JobWithdrawn(int(now), number, why, int(now + AGAIN_S)), at_s=now)])
                return

    def _may_move(self, number: int) -> bool:
        job, moved = self.run.core.jobs[number], self.run.core.moved
        is_settled = all(self.run.now_s() >= moved[task][1] for task in job.open_tasks if task in moved)
        return is_settled and bool(job.open_tasks) and not (job.copies or job.is_stopping or job.has_begun)


def _waits_s(outpost: Outpost, waiting: Mapping[int, Placed], now_s: float) -> dict[int, int]:
    """How long these jobs should wait yet, where anyone can tell: of forecaster and queue the more hopeful."""
    core, watching = outpost.run.core, next((f for f in outpost.forecasters if isinstance(f, WatchingForecaster)), None)
    ids = {placed.id or "": number for number, placed in waiting.items()}
    found = {} if watching is None else {ids[one]: wait_s for one, wait_s in watching.waits_of(ids).items()}
    for number, placed in waiting.items():
        start_s = None if placed.status is None else placed.status.expected_start_s
        if start_s is not None and start_s >= now_s:
            found[number] = min(found.get(number, NEVER_S), int(start_s - now_s))
    found = {number: round(wait_s * outpost.part_waited) for number, wait_s in found.items()}
    for number in waiting:
        if outpost.open_nodes is not None and outpost.open_nodes() < core.jobs[number].plan.nodes:
            found[number] = NEVER_S
    return found
