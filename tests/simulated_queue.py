"""The port over a simulated cluster: a batch queue in virtual time.

Rule 1: time moves in `advance` and nowhere else. Rule 2: nothing is run; `play` says how long a job would run and how
it would end. Without it a job runs until `end` or its walltime.
It loads numba, unlike every other queue. Only tests use it so far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from windrow.errors import UserError
from windrow.model.resources import NodeShape
from windrow.queues.port import JobSpec, JobState, JobStatus, Limits, OthersJob, Snapshot
from windrow.queues.spec import check, check_size
from windrow.sim.cluster import Cluster, Event, EventKind

_MAX_ARRAY = 1000


@dataclass(frozen=True, slots=True)
class Played:
    """How a job goes: it runs for `run_s` (None: until somebody ends it) and leaves `exit_code`."""

    run_s: int | None = None
    exit_code: int = 0


def _until_ended(_spec: JobSpec) -> Played:
    return Played()


_STATES = {
    EventKind.ENDED: (JobState.ENDED, "ended"),
    EventKind.KILLED: (JobState.TIMED_OUT, "walltime"),
    EventKind.CANCELLED: (JobState.CANCELLED, "cancelled"),
}


class SimulatedQueue:
    """A batch queue whose nodes, jobs and time are those of a simulated cluster."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        play: Callable[[JobSpec], Played] = _until_ended,
        shape: NodeShape | None = None,
        user: int | None = None,
    ) -> None:
        """The queue owns the cluster from now on. `user` is the log's user that its jobs belong to."""
        self._cluster = cluster
        self._play = play
        self._shape = shape or NodeShape()
        self._user = user
        self._jobs: dict[int, JobStatus] = {}
        self._exit_codes: dict[int, int] = {}
        self._tags: dict[str, str] = {}

    @property
    def name(self) -> str:
        """What users call it."""
        return "simulated"

    @property
    def policy(self) -> str:
        """The policy of the simulated cluster."""
        return self._cluster.settings.policy

    @property
    def now_s(self) -> int:
        """The virtual time."""
        return self._cluster.now_s

    def advance(self, seconds: int) -> None:
        """Let virtual time go by."""
        if seconds < 0:
            raise UserError(f"time cannot go back by {-seconds} s")
        self._go_on(self.now_s + seconds)

    def end(self, job: str, exit_code: int = 0) -> None:
        """The command of a running job ends now. Nothing happens where the job does not run."""
        number = self._number(job)
        if number is not None and self._jobs[number].state is JobState.RUNNING:
            self._exit_codes[number] = exit_code
            self._cluster.end(number)
            self._go_on(self.now_s)

    def limits(self) -> Limits:
        """What may be asked for."""
        cap = self._cluster.settings.cap
        return Limits(self._cluster.nodes, self._shape, max_jobs=cap, max_array=_MAX_ARRAY)

    def submit(self, spec: JobSpec) -> str:
        """Submit a job at the current time."""
        return self.submit_array([spec])[0]

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        """Submit several jobs at the current time, in this order."""
        check(specs, self.limits(), self._tags)
        ids = [self._submit(spec) for spec in specs]
        self._go_on(self.now_s)
        return ids

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What is known of these jobs."""
        numbers = {job: self._number(job) for job in ids}
        planned = {job.job: job.planned_s for job in self._cluster.queue()}
        return {
            job: replace(self._jobs[number], expected_start_s=planned.get(number))
            for job, number in numbers.items()
            if number is not None
        }

    def cancel(self, ids: Collection[str]) -> None:
        """Take these jobs away now."""
        for job in ids:
            number = self._number(job)
            if number is not None and not self._jobs[number].state.is_over:
                self._cluster.cancel(number)
        self._go_on(self.now_s)

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the jobs with these tags."""
        return {tag: self._tags[tag] for tag in tags if tag in self._tags}

    def snapshot(self) -> Snapshot:
        """All jobs, those of the log included."""
        running = [
            OthersJob(
                _id(j.job), j.nodes, j.requested_s, True, float(j.expected_end_s - j.requested_s), 0.0, str(j.user)
            )
            for j in self._cluster.running()
        ]
        waiting = [
            OthersJob(_id(j.job), j.nodes, j.requested_s, False, None, float(-place), str(j.user))
            for place, j in enumerate(self._cluster.queue())
        ]
        return Snapshot(float(self.now_s), self._cluster.nodes, (*running, *waiting))

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """The cluster's estimate, exact as far as requests tell."""
        check_size(nodes, walltime_s, self.limits())
        return float(self._cluster.estimate(nodes, walltime_s, self._user)[0])

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        """What `submit` would be told."""
        return [f"submit {spec.tag}: {spec.nodes} nodes for {spec.walltime_s} s" for spec in specs]

    def _submit(self, spec: JobSpec) -> str:
        played = self._play(spec)
        number = self._cluster.submit(spec.nodes, spec.limit_s, played.run_s, self._user)
        self._exit_codes[number] = played.exit_code
        self._tags[spec.tag] = _id(number)
        self._jobs[number] = JobStatus(_id(number), JobState.WAITING, submitted_s=float(self.now_s), reason="nodes")
        return _id(number)

    def _go_on(self, until_s: int) -> None:
        """Go to this time and take note of what happens; `advance` stops at every instant that has news."""
        while events := self._cluster.advance(until_s):
            for event in events:
                self._jobs[event.job] = self._after(event)

    def _after(self, event: Event) -> JobStatus:
        job, at_s = self._jobs[event.job], float(event.at_s)
        if event.kind is EventKind.STARTED:
            return replace(job, state=JobState.RUNNING, started_s=at_s, reason="")
        state, reason = _STATES[event.kind]
        exit_code = self._exit_codes[event.job] if state is JobState.ENDED else None
        return replace(job, state=state, ended_s=at_s, exit_code=exit_code, reason=reason)

    def _number(self, job: str) -> int | None:
        """The cluster's number of one of our jobs."""
        number = -int(job[1:]) if job[:1] == "c" and job[1:].isdecimal() else None
        return number if number in self._jobs else None


def _id(number: int) -> str:
    """Clients' jobs are c1, c2, ...; the log's keep their row numbers."""
    return f"c{-number}" if number < 0 else str(number)
