"""What was seen of a queue: who came, what they asked for, how long they ran, and when anybody was
looking.

It comes from readings of the queue, and from the site's accounts if these tell. A reading shows
who is there; who is gone at the next one ended in between. Pure: `observer` does the reading,
`observed_file` the keeping.

Rule 1: `spans` are the times in which no arrival went unseen. A job counts as an arrival only if it
came in one of them; of the others no more is used than how long they ran.
Rule 2: of two records of one job, the one that knows its end counts, else the newer one.
Rule 3: it stays small: the last jobs of the last days. Jobs that are in the queue now do not count
towards the bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from windrow.foresight.bootstrap import stretched
from windrow.foresight.past import DAY_S, QueuePast
from windrow.queues.port import OthersJob, PastJob, Snapshot

Span = tuple[float, float]

JOBS_KEPT = 4000
DAYS_KEPT = 8
ENOUGH_ENDS = 20
"""Jobs of others that must have been seen to end, before they tell how others run."""
ENOUGH_TIMES = 2.0
"""How many times as long as a run is expected to take one must have watched, to know who comes
meanwhile."""
_GAP_S = 300.0  # readings further apart than this do not tell who came between them


@dataclass
class Observed:
    """The others' jobs by id, and the spans of time in which all arrivals are known. Ids of own
    jobs are not in it."""

    jobs: dict[str, PastJob] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    _there: dict[str, OthersJob] = field(default_factory=dict)
    _read_s: float | None = None
    _users: dict[str, int] = field(default_factory=dict)

    def user(self, name: str) -> int:
        """A number for a user."""
        return self._users.setdefault(name, len(self._users))

    def look(self, snapshot: Snapshot, own: Collection[str] = (), *, sees_all: bool = True) -> None:
        """Take in a reading. `own` are the ids of jobs that are ours. Readings come in the order of
        time.

        `sees_all` False: others than readings say when all arrivals are known.
        """
        at = snapshot.at_s
        last = self._read_s
        follows = last is not None and 0 <= at - last <= _GAP_S
        now = {job.id: job for job in snapshot.jobs if job.id not in own}
        for job in now.values():
            self._sighted(job, at, last if follows else None)
        if follows and last is not None:
            for gone in (job for job_id, job in self._there.items() if job_id not in now):
                self._missed(gone, (last + at) / 2)
        self._there = now
        self._read_s = at
        if sees_all:  # the first look of several says nothing of arrivals: it only opens the span
            self._add_span((last, at) if follows and last is not None else (at, at))
        self._trim(at)

    def learn(self, jobs: Iterable[PastJob], since_s: float, until_s: float) -> None:
        """Take in what accounts say: all jobs that were in the queue between these times."""
        for job in jobs:
            self._keep(job)
        self._add_span((since_s, until_s))
        self._trim(until_s)

    def merge(self, other: Observed) -> None:
        """Take in what another observer has seen, too."""
        for job in other.jobs.values():
            self._keep(job, is_newer=False)
        for span in other.spans:
            self._add_span(span)
        self._trim(max((end for _, end in self.spans), default=0.0))

    def forget(self, ids: Iterable[str]) -> None:
        """These were not jobs of others."""
        for job_id in ids:
            self.jobs.pop(job_id, None)

    @property
    def ends(self) -> int:
        """Of how many jobs it is known how long they ran."""
        return sum(job.run_s is not None for job in self.jobs.values())

    @property
    def known_s(self) -> float:
        """For how long all arrivals are known."""
        return sum(end - start for start, end in self.spans)

    def is_enough(self, length_s: float) -> bool:
        """Whether it says how long others run, and who comes while a run takes that long, if all
        goes as expected."""
        return self.ends >= ENOUGH_ENDS and self.known_s >= min(DAY_S, ENOUGH_TIMES * length_s)

    def _submissions(self, known_s: int) -> NDArray[np.int64]:
        """Who was there before the first look did not arrive: they come first, and before the
        time that is known."""
        ago = [self._ago(job.submitted_s) for job in self.jobs.values()]
        came = np.array(ago, dtype=np.float64)
        return np.where(np.isnan(came), -known_s - 1, -np.nan_to_num(came)).astype(np.int64)

    def past(self) -> QueuePast:
        """The past as futures want it: times count from now, and those in which no one looked are
        left out.

        Less than a day is stretched to a week.
        """
        known_s = int(self.known_s)
        submit = self._submissions(known_s)
        found = [(j.nodes, j.requested_s, _whole(j), self.user(j.user)) for j in self.jobs.values()]
        rows = np.column_stack([submit, np.array(found, dtype=np.int64).reshape(-1, 4)])
        past = QueuePast(rows[np.argsort(submit, kind="stable")], -known_s)
        return past if known_s >= DAY_S else stretched(past)

    def _ago(self, at_s: float) -> float:
        """How much of the known time has gone by since then; NaN if that is not part of it."""
        later = sum(end - start for start, end in self.spans if start > at_s)
        inside = [end - at_s for start, end in self.spans if start <= at_s <= end]
        if inside:
            return later + inside[0]
        return float("nan")

    def _sighted(self, job: OthersJob, at_s: float, last_s: float | None) -> None:
        """A job is in the queue. New ones came since the last reading, if that was not long ago."""
        known = self.jobs.get(job.id)
        if (
            known is not None
            and known.ended_s is not None
            and (job.started_s or at_s) < known.ended_s
        ):
            return  # its end is known already, and the queue is still clearing up after it
        if known is not None and known.ended_s is None:
            submitted = known.submitted_s
        elif last_s is not None and self._there.get(job.id) is None:
            if job.started_s is None:
                submitted = at_s
            else:
                submitted = min(at_s, max(last_s, job.started_s))
        else:
            submitted = min(at_s, job.started_s or at_s) - 1.0
        self.jobs[job.id] = PastJob(
            job.id, job.user, job.nodes, max(1, job.requested_s), submitted, job.started_s
        )

    def _missed(self, gone: OthersJob, about_s: float) -> None:
        """A job is no longer there: if it ran, it ended about then. If it waited, it may or may not
        have run since."""
        known = self.jobs.get(gone.id)
        if known is None or known.started_s is None or known.ended_s is not None:
            return
        ended = max(known.started_s + 1.0, min(about_s, known.started_s + known.requested_s))
        self._keep(replace(known, ended_s=ended))

    def _keep(self, job: PastJob, *, is_newer: bool = True) -> None:
        known = self.jobs.get(job.id)
        rank = (job.ended_s is not None, is_newer)
        if known is None or rank > (known.ended_s is not None, False):
            self.jobs[job.id] = job

    def _add_span(self, span: Span) -> None:
        joined: list[Span] = []
        for start, end in sorted([*self.spans, span]):
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        self.spans = tuple(joined)

    def _trim(self, now_s: float) -> None:
        """Forget what is too old or too much; what is forgotten is no longer known."""
        gone = [job for job_id, job in self.jobs.items() if job_id not in self._there]
        ended = sorted(job.submitted_s for job in gone if job.ended_s is not None)
        others = sorted(
            job.submitted_s for job in gone if job.ended_s is None
        )  # held, or gone unseen
        oldest = [came[-JOBS_KEPT] for came in (ended, others) if len(came) > JOBS_KEPT]
        since = max([now_s - DAYS_KEPT * DAY_S, *oldest])
        if since > min((start for start, _ in self.spans), default=since):
            self.spans = tuple(
                (max(start, since), end) for start, end in self.spans if end >= since
            )
        there = self._there
        self.jobs = {
            k: job for k, job in self.jobs.items() if job.submitted_s >= since or k in there
        }


def _whole(job: PastJob) -> int:
    """How long it ran, in whole seconds, no longer than it asked for; 0 if that is not known."""
    if job.run_s is None:
        return 0
    return max(1, min(job.requested_s, round(job.run_s)))
