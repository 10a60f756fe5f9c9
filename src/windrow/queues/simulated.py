"""The port over a simulated cluster: a batch queue in virtual time, as good or bad as real ones
are.

Rule 1: time moves in `advance` and `until`, and nowhere else. Rule 2: nothing is run; `play` says
how long a job would run and how it would end. Without it a job runs until `end` or its walltime.
Rule 3: how a call is answered is said by `mood`. What a job looks like to those who ask is said by
the queue alone: it may call a job failed, or forget it, whatever became of those who worked in it.
It loads numba, unlike every other queue: only `trials` imports it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from windrow.errors import UserError
from windrow.model.graph import Ints
from windrow.model.resources import NodeShape
from windrow.queues.port import (
    JobSpec,
    JobState,
    JobStatus,
    Limits,
    OthersJob,
    OutcomeUnknown,
    QueueError,
    Snapshot,
    SpecError,
)
from windrow.queues.spec import check, check_size
from windrow.sim.cluster import Cluster, Event, EventKind

_MAX_ARRAY = 1000


class Mood(StrEnum):
    """How a call is answered."""

    GOOD = "well"
    DOWN = "not done, and said so"
    SILENT = "done without an answer"
    DEAF = "neither done nor answered"
    LATE = "not answered, and done later"
    REFUSED = "refused for good"


@dataclass(frozen=True, slots=True)
class JobRun:
    """How a job goes: it runs for `run_s` (None: until it is ended) and leaves `exit_code`."""

    run_s: int | None = None
    exit_code: int = 0


_STATES = {
    EventKind.ENDED: (JobState.ENDED, "ended"),
    EventKind.KILLED: (JobState.TIMED_OUT, "walltime"),
    EventKind.CANCELLED: (JobState.CANCELLED, "cancelled"),
    EventKind.FAILED: (JobState.NODE_FAILED, "node failed"),
}


@dataclass(slots=True)
class SimulatedJob:
    """A job of ours. `number` is the cluster's; None while it is held back. `ends_as`: what its end
    is called."""

    spec: JobSpec
    status: JobStatus
    exit_code: int
    run_s: int | None
    number: int | None = None
    ends_as: JobState | None = None
    is_forgotten: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it has nodes."""
        return self.status.state is JobState.RUNNING


@dataclass
class SimulatedQueue:
    """A batch queue whose nodes, jobs and time are those of a simulated cluster, which it owns from
    now on.

    `user` is the log's user that its jobs belong to. `memory_s`: how long it knows a job after its
    end. `unique`: it refuses a second job with the same tag, which most batch systems take. `holds`
    says which jobs do not start for now.
    """

    cluster: Cluster
    play: Callable[[JobSpec], JobRun] = lambda _: JobRun()
    shape: NodeShape = field(default_factory=NodeShape)
    user: int | None = None
    memory_s: float = float("inf")
    max_array: int = _MAX_ARRAY
    unique: bool = True
    mood: Callable[[str], Mood] = lambda _: Mood.GOOD
    jobs: dict[str, SimulatedJob] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)
    """How often a job of each tag was taken."""
    coming: list[tuple[int, list[JobSpec]]] = field(default_factory=list)
    """Submissions that got no answer and arrive at these times."""
    late_s: int = 10
    late: Counter[str] = field(default_factory=Counter)
    """How often that happened, by tag: there may be as many jobs more of each."""
    again: Counter[str] = field(default_factory=Counter)
    """How often a job was taken when no job before it of its tag could be found."""
    holds: Callable[[str], bool] = lambda _: False
    hides: Callable[[str], bool] = lambda _: False
    """Which jobs no one can see for now."""
    says: Callable[[JobStatus], JobStatus] = lambda status: status
    """What it tells of a job of this status."""
    now_s: int = field(init=False)
    """The virtual time."""
    _own: dict[int, str] = field(default_factory=dict)
    _news: list[SimulatedJob] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now_s = self.cluster.now_s

    @property
    def name(self) -> str:
        """What users call it."""
        return "simulated"

    @property
    def policy(self) -> str:
        """The policy of the simulated cluster."""
        return self.cluster.settings.policy

    # What the world does to it

    def advance(self, seconds: int) -> None:
        """Let virtual time go by."""
        if seconds < 0:
            raise UserError(f"time cannot go back by {-seconds} s")
        until_s = self.now_s + seconds
        while self.until(until_s) or self.now_s < until_s:
            pass

    def until(self, until_s: int) -> list[SimulatedJob]:
        """Advance to this time, or to the first instant at which something happens to a job of
        ours; those jobs."""
        if not self._news:
            self._go_on(min([until_s, *(max(at_s, self.now_s) for at_s, _ in self.coming)]))
        for late in [late for late in self.coming if late[0] <= self.now_s]:
            self.coming.remove(late)
            self._take(late[1])
        news = self._news
        self._news = []
        return news

    def end(self, job: str, exit_code: int = 0, state: JobState | None = None) -> None:
        """The command of a running job ends now, and the queue calls that `state`. Nothing if it
        does not run."""
        found = self.jobs.get(job)
        if found is not None and found.is_running:
            assert found.number is not None
            found.exit_code = exit_code
            found.ends_as = state
            self.cluster.end(found.number)
            self._go_on(self.now_s)

    def release(self) -> None:
        """Let jobs go that were held and are held no more, in their order."""
        for job_id, job in self.jobs.items():
            if job.number is None and not job.status.state.is_over and not self.holds(job_id):
                job.number = self.cluster.submit(
                    job.spec.nodes, job.spec.limit_s, job.run_s, self.user
                )
                self._own[job.number] = job_id
        self._go_on(self.now_s)

    @property
    def left(self) -> list[str]:
        """Jobs of ours that are not over."""
        return [job_id for job_id, job in self.jobs.items() if not job.status.state.is_over]

    @property
    def running(self) -> list[str]:
        """Jobs of ours that run."""
        return [job_id for job_id, job in self.jobs.items() if job.is_running]

    # The port

    def limits(self) -> Limits:
        """What may be asked for."""
        return Limits(
            self.cluster.nodes,
            self.shape,
            max_jobs=self.cluster.settings.cap,
            max_array=self.max_array,
        )

    def submit(self, spec: JobSpec) -> str:
        """Submit a job at the current time."""
        return self.submit_array([spec])[0]

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        """Submit several jobs at the current time, in this order."""
        mood = self._answer("submit")
        check(specs, self.limits(), self.taken if self.unique else ())
        if mood is Mood.LATE:
            self.coming.append((self.now_s + self.late_s, list(specs)))
            self.late.update(spec.tag for spec in specs)
        if mood in (Mood.GOOD, Mood.SILENT):
            ids = self._take(specs)
        else:
            ids = []
        if mood is not Mood.GOOD:
            raise OutcomeUnknown("no answer in time")
        return ids

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What is known of these jobs."""
        self._answer("status")
        known = {i: job for i in ids if (job := self.jobs.get(i)) is not None and self._knows(job)}
        if all(job.status.state is not JobState.WAITING for job in known.values()):
            return {job_id: self.says(job.status) for job_id, job in known.items()}
        planned = {job.job: job.planned_s for job in self.cluster.queue()}
        return {
            i: self.says(replace(job.status, expected_start_s=planned.get(job.number or 0)))
            for i, job in known.items()
        }

    def cancel(self, ids: Collection[str]) -> None:
        """Take these jobs away now."""
        self._answer("cancel")
        for job_id in ids:
            if not self.hides(job_id):
                self.take_away(job_id, JobState.CANCELLED)

    def take_away(self, job_id: str, state: JobState) -> None:
        """This job leaves, waiting or running, and the queue calls that `state`."""
        job = self.jobs.get(job_id)
        if job is None or job.status.state.is_over:
            return
        if job.number is None:
            job.status = replace(
                job.status, state=state, ended_s=float(self.now_s), reason="cancelled"
            )
            return
        job.ends_as = state
        self.cluster.cancel(job.number)
        self._go_on(self.now_s)

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the jobs with these tags."""
        self._answer("find")
        return {
            job.spec.tag: job_id
            for job_id, job in self.jobs.items()
            if job.spec.tag in tags and self._knows(job)
        }

    def snapshot(self) -> Snapshot:
        """All jobs, those of the log included."""
        self._answer("snapshot")
        running = [
            OthersJob(
                self._id(j.job),
                j.nodes,
                j.requested_s,
                True,
                float(j.expected_end_s - j.requested_s),
                0.0,
                str(j.user),
            )
            for j in self.cluster.running()
        ]
        waiting = [
            OthersJob(
                self._id(j.job), j.nodes, j.requested_s, False, None, float(-place), str(j.user)
            )
            for place, j in enumerate(self.cluster.queue())
        ]
        return Snapshot(float(self.now_s), self.cluster.nodes, (*running, *waiting))

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """The cluster's estimate, exact as far as requests tell."""
        check_size(nodes, walltime_s, self.limits())
        return float(self.cluster.estimate(nodes, walltime_s, self.user)[0])

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """The cluster's estimates as a forecaster gives them: how long each job would wait."""
        return self.cluster.waits_s(nodes, requested_s, self.user)

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        """What `submit` would be told."""
        return [f"submit {spec.tag}: {spec.nodes} nodes for {spec.walltime_s} s" for spec in specs]

    # Within

    def _answer(self, call: str) -> Mood:
        mood = self.mood(call)
        if mood is Mood.DOWN:
            raise QueueError("the queue does not answer")
        if mood is Mood.REFUSED:
            raise SpecError("the account has no right to submit jobs")
        return mood

    def _knows(self, job: SimulatedJob) -> bool:
        ended_s = job.status.ended_s
        is_known = ended_s is None or self.now_s - ended_s <= self.memory_s
        return is_known and not job.is_forgotten and not self.hides(job.status.id)

    def _take(self, specs: Sequence[JobSpec]) -> list[str]:
        ids = []
        for spec in specs:
            if earlier := [job for job in self.jobs.values() if job.spec.tag == spec.tag]:
                self.again[spec.tag] += not any(self._knows(job) for job in earlier)
            ids.append(f"c{len(self.jobs) + 1}")
            status = JobStatus(
                ids[-1], JobState.WAITING, submitted_s=float(self.now_s), reason="nodes"
            )
            played = self.play(spec)
            self.jobs[ids[-1]] = SimulatedJob(spec, status, played.exit_code, played.run_s)
            self.taken[spec.tag] += 1
        self.release()
        return ids

    def _go_on(self, until_s: int) -> None:
        """Go to this time, or the first instant that has news, and take note of them."""
        events = self.cluster.advance(until_s)
        self.now_s = self.cluster.now_s
        for event in events:
            job = self.jobs[self._own[event.job]]
            job.status = self._after(event, job)
            self._news.append(job)

    def _after(self, event: Event, job: SimulatedJob) -> JobStatus:
        at_s = float(event.at_s)
        if event.kind is EventKind.STARTED:
            return replace(
                job.status,
                state=JobState.RUNNING,
                started_s=at_s,
                reason="",
                hosts=self._hosts(job.spec),
            )
        state, reason = _STATES[event.kind]
        if job.ends_as is not None:
            state = job.ends_as
            reason = str(job.ends_as)
        if event.kind is EventKind.ENDED:
            exit_code = job.exit_code
        else:
            exit_code = None
        return replace(job.status, state=state, ended_s=at_s, exit_code=exit_code, reason=reason)

    def _hosts(self, spec: JobSpec) -> tuple[str, ...]:
        """Names for its nodes, none that another job of ours has, nor, if there are others, one
        to avoid."""
        used = {host for job in self.jobs.values() if job.is_running for host in job.status.hosts}
        names = (f"n{number}" for number in range(self.cluster.nodes))
        free = sorted(
            (name for name in names if name not in used), key=lambda name: name in spec.avoid
        )
        return tuple(free[: spec.nodes])

    def _id(self, number: int) -> str:
        """Clients' jobs have names of ours; the log's keep their row numbers."""
        if number < 0:
            return self._own[number]
        return str(number)
