"""Watches a queue for as long as a run lasts: readings, the site's accounts, and what earlier runs
have kept.

Rule 1: nothing here stops a run. What cannot be asked or kept is done without; only a file that
cannot be used is mentioned, and once. Rule 2: accounts are asked seldom, a few hours first and a
week only if that is little, and later only for what is new: a week of a large site is a heavy
question.
Rule 3: accounts are believed if they know the jobs that a reading shows. Many sites show users
their own jobs alone.
"""

import logging
import math
from collections.abc import Collection

from windrow.errors import WindrowError
from windrow.forecast.best_effort import Remembered, Say
from windrow.foresight.observed import JOBS_KEPT, Observed
from windrow.foresight.observed_file import ObservedFile
from windrow.foresight.past import DAY_S
from windrow.queues.port import Accounts, PastJob, QueueError, Snapshot

logger = logging.getLogger(__name__)

LOOK_S = 60.0
"""How often the queue is read, and accounts are asked, while there is no other reason to."""
_BACK_S = (DAY_S / 4, 7 * DAY_S)
_LAG_S = 15.0  # accounts are written some seconds after the fact
_MOST_PAUSE_S = 3600.0
_KNOWN_PART = 0.9  # of the jobs that a reading shows running must be in the accounts


class Observer:
    """What is known of one queue. Without a file nothing is kept; without accounts, only readings
    count."""

    def __init__(
        self,
        file: ObservedFile | None = None,
        accounts: Accounts | None = None,
        *,
        keeps: bool = True,
        say: Say = logger.warning,
    ) -> None:
        """`keeps` False: the file is read, and nothing is written."""
        self._accounts = accounts
        self._memory: Remembered[Observed] | None = None
        if file is not None and keeps:
            self._memory = Remembered(lambda seen: file.keep(seen[0]), "readings of the queue", say)
        self.observed = Observed()
        if file is not None:
            try:
                self.observed = file.load()
            except WindrowError as error:
                say(f"earlier observations of this queue are not used: {error}")
        is_much = self.observed.known_s >= _BACK_S[0]
        self._told_until_s = self.observed.spans[-1][1] if is_much else None
        self._next_ask_s = self._next_keep_s = -math.inf
        self._pause_s = LOOK_S

    @property
    def needs_readings(self) -> bool:
        """Whether readings between decisions are worth their price: accounts know more than they
        can tell."""
        return self._accounts is None

    def look(self, snapshot: Snapshot, own: Collection[str]) -> None:
        """Take in a reading, and whatever else there is to know by now."""
        self.observed.look(snapshot, own, sees_all=self._accounts is None)
        if self._accounts is not None and snapshot.at_s >= self._next_ask_s:
            self._ask(self._accounts, snapshot, own)
        if snapshot.at_s >= self._next_keep_s:
            self._next_keep_s = snapshot.at_s + LOOK_S
            self.keep()
            self.observed.forget(
                own
            )  # to the user's other runs, whose readings are in the file, we are others

    def keep(self) -> None:
        """Write down what was seen, for the runs to come; nothing if no other user was there."""
        if self._memory is not None and self.observed.jobs:
            self._memory.keep([self.observed])

    def _ask(self, accounts: Accounts, snapshot: Snapshot, own: Collection[str]) -> None:
        now = snapshot.at_s
        try:
            jobs, since_s = self._asked(accounts, now)
        except QueueError as error:
            logger.debug("accounting did not answer: %s", error)
            self._pause_s = min(_MOST_PAUSE_S, 2 * self._pause_s)
            self._next_ask_s = now + self._pause_s
            return
        if jobs is None or not _is_complete(jobs, snapshot, own):
            logger.debug("the accounting of this queue does not show other users' jobs")
            self._accounts = None
            return
        if (
            self._told_until_s is None
        ):  # accounts may have started, or been purged, after the time that was asked for
            since_s = max(since_s, min((job.submitted_s for job in jobs), default=now))
        self._next_ask_s = now + LOOK_S
        self._pause_s = LOOK_S
        self._told_until_s = now
        self.observed.learn((job for job in jobs if job.id not in own), since_s, now)

    def _asked(self, accounts: Accounts, now_s: float) -> tuple[list[PastJob] | None, float]:
        """What they say, and since when: what is new, or as much as is worth having if little is
        known."""
        if self._told_until_s is not None:
            since = max(now_s - _BACK_S[-1], self._told_until_s - _LAG_S)
            return accounts.past_jobs(since), since
        for back_s in _BACK_S:
            jobs = accounts.past_jobs(now_s - back_s)
            if jobs is None or len(jobs) >= JOBS_KEPT:
                break
        return jobs, now_s - back_s


def _is_complete(jobs: Collection[PastJob], snapshot: Snapshot, own: Collection[str]) -> bool:
    """Whether accounts tell of others: they know those that a reading shows to run for a while."""
    known = {job.id for job in jobs}
    running = [
        job.id
        for job in snapshot.jobs
        if job.started_s is not None
        and job.started_s < snapshot.at_s - _LAG_S
        and job.id not in own
    ]
    return sum(job_id in known for job_id in running) >= _KNOWN_PART * len(running)
