"""What a run came to, in numbers: makespan, waits, node time allocated, used, idle and lost. Pure;
one definition of each figure for real and simulated runs, for pages, `--json` and comparisons.

Rule 1: the node time allocated to a job is its nodes times the time for which it held them. A task
of one node uses its share of the node's cores; a task of whole nodes uses them all.
Rule 2: what is not over counts until `until_s`: now for a run that continues, else its last event.
Rule 3: no task runs, and the wait is visible, while no attempt runs. Of a simulated run only
attempts that did their work count, as in the papers, whose tables are compared with: what is lost
is waited for again.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from windrow.model import Workflow
from windrow.story.events import FilesMoved
from windrow.story.journal import PredictedStart
from windrow.story.states import AttemptState, JobStage
from windrow.story.story import JobStory, RunStory, TaskAttempt

if TYPE_CHECKING:
    from windrow.storage.demand import SpaceLimit


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run, real or simulated, as its records tell it: its story, and what pages say beside it.

    `until_s` is where its time axis ends, `cores` how many a node has.
    """

    name: str
    state: str
    strategy: str
    queue: str
    story: RunStory
    predictions: Sequence[PredictedStart]
    until_s: float
    cores: int = 1
    version: str = ""
    is_simulated: bool = False
    space: SpaceLimit | None = None

    @property
    def begun_s(self) -> float:
        """Where its time axis begins."""
        if self.story.begun_s is None:
            return self.until_s
        return self.story.begun_s

    @property
    def makespan_s(self) -> float:
        """From its beginning to the end of its last task, or until now."""
        return self.until_s - self.begun_s

    @property
    def killed_jobs(self) -> int:
        """How many jobs were ended by something else than the run."""
        return sum(job.outcome is JobStage.KILLED for job in self.story.jobs.values())


NODE_TIME = ("allocated", "used", "idle", "lost")
"""The parts of node time in the order in which people read them."""


@dataclass(frozen=True, slots=True)
class NodeTime:
    """Node-seconds of a run or a job: allocated = used + idle + lost. The one definition of these
    words.

    Allocated: held by jobs. Used: by attempts that finished or still run. Lost: by attempts that
    failed or were lost. Idle: the rest. `copies_s` of the lost ones: of attempts that another one
    at the same task beat. `cpu_s` is the CPU time of all attempts, None if none was measured.
    """

    allocated_s: float
    used_s: float
    lost_s: float
    copies_s: float = 0.0
    cpu_s: float | None = None
    cores: int = 1

    @property
    def idle_s(self) -> float:
        """Allocated, but no task used it."""
        return self.allocated_s - self.used_s - self.lost_s

    @property
    def share(self) -> float | None:
        """The part of the allocated time that was used; None if nothing was allocated."""
        if self.allocated_s > 0:
            return self.used_s / self.allocated_s
        return None

    @property
    def cpu_efficiency(self) -> float | None:
        """CPU time of tasks by the core time allocated; None if either is missing."""
        if self.cpu_s is None or self.allocated_s <= 0:
            return None
        return self.cpu_s / (self.allocated_s * self.cores)

    def parts(self) -> dict[str, float]:
        """By the names that `--json` and tables have for them."""
        return {f"{part}_node_s": getattr(self, f"{part}_s") for part in NODE_TIME}


@dataclass(frozen=True, slots=True)
class KindTimes:
    """The finished tasks of one kind: how long they ran, and how long they were expected to.

    `quartiles` are the least, three quarters and most of the run times; `core_s` and `cpu_s` the
    mean core time that they took and CPU time that they used; `node_s` is the sum of the node time
    of all of them; `failed` are attempts that came to nothing.
    """

    name: str
    tasks: int
    failed: int
    mean_s: float
    longest_s: float
    expected_s: float
    quartiles: tuple[float, float, float, float, float]
    node_s: float
    core_s: float
    cpu_s: float
    peak_bytes: int


def attempts(story: RunStory) -> Iterator[tuple[int, TaskAttempt]]:
    """All attempts with the numbers of their tasks, task by task."""
    for number, task in enumerate(story.tasks):
        for attempt in task.attempts:
            yield number, attempt


def wait_s(job: JobStory, until_s: float) -> float:
    """How long a job was, or has been, in the queue before it started or left."""
    if job.submitted_s is None:
        return 0.0
    over = [at for at in (job.started_s, job.ended_s, until_s) if at is not None]
    return max(0.0, over[0] - job.submitted_s)


def ran_s(job: JobStory, until_s: float) -> float | None:
    """How long a job held, or has held, its nodes; None if it did not start.

    One of which nothing was heard has them no longer than its time limit.
    """
    if job.started_s is None:
        return None
    if job.limit_s is None:
        latest_s = until_s
    else:
        latest_s = min(until_s, job.started_s + job.limit_s)
    return max(0.0, (latest_s if job.ended_s is None else job.ended_s) - job.started_s)


def attempt_s(attempt: TaskAttempt, until_s: float) -> float:
    """How long an attempt ran, or has been running."""
    ran = (until_s if attempt.ended_s is None else attempt.ended_s) - attempt.started_s
    if ran > 0:
        return ran
    return 0.0


def allocated_s(jobs: Iterable[JobStory], until_s: float, node_cores: int) -> float:
    """The node time that jobs had. One that another took over held no nodes of its own."""
    return sum(
        job.plan.nodes_held(node_cores) * (ran_s(job, until_s) or 0.0)
        for job in jobs
        if job.taken_by is None
    )


def node_time(run: RecordedRun, job: int | None = None) -> NodeTime:
    """The node time of the run, or of one of its jobs.

    It is counted in core-seconds, so that times in whole seconds give exact sums. If records
    contradict each other, and attempts took more than was allocated, what was allocated is the
    bound.
    """
    story = run.story
    until_s = run.until_s
    cores = max(1, run.cores)
    if job is None:
        jobs = story.jobs
    else:
        jobs = {job: story.jobs[job]}
    allocated = allocated_s(jobs.values(), until_s, cores)
    used = lost = copies = cpu_s = 0.0
    for task in range(len(story.tasks)) if job is None else story.jobs[job].plan.all_tasks:
        for attempt in story.tasks[task].attempts:
            if job is None or attempt.job == job:
                core_s = cores_of(story, task, attempt, cores) * attempt_s(attempt, until_s)
                cpu_s += attempt.cpu_s
                if attempt.outcome.is_in_vain:
                    lost += core_s
                    copies += core_s * (attempt.outcome is AttemptState.SUPERSEDED)
                else:
                    used += core_s
    lost_s = min(lost / cores, allocated)
    return NodeTime(
        allocated_s=allocated,
        used_s=min(used / cores, allocated - lost_s),
        lost_s=lost_s,
        copies_s=min(copies / cores, lost_s),
        cpu_s=None if run.is_simulated else cpu_s,
        cores=cores,
    )


def visible_wait_s(run: RecordedRun) -> float:
    """For how long, from the run's beginning on, no task ran."""
    return max(0.0, run.makespan_s - sum(end - begin for begin, end in _at_work(run, run.begun_s)))


def _worked(at_work: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """For how long tasks had run until a moment; `at_work` are the times at which some ran."""
    before = list(accumulate((end - begin for begin, end in at_work), initial=0.0))

    def worked_s(at_s: float) -> float:
        i = bisect_right(at_work, (at_s, inf)) - 1
        if i >= 0:
            return before[i] + min(at_s, at_work[i][1]) - at_work[i][0]
        return 0.0

    return worked_s


def queue_waits_s(run: RecordedRun) -> tuple[float, float]:
    """How long jobs that started had waited in the queue, summed; and for how much of it tasks of
    the run ran."""
    jobs = run.story.jobs.values()
    waits = [
        (j.submitted_s, j.started_s)
        for j in jobs
        if j.submitted_s is not None and j.started_s is not None
    ]
    worked_s = _worked(_at_work(run, 0.0))
    total = sum(max(0.0, started - submitted) for submitted, started in waits)
    return total, sum(
        max(0.0, worked_s(started) - worked_s(submitted)) for submitted, started in waits
    )


def _at_work(run: RecordedRun, from_s: float) -> list[tuple[float, float]]:
    """The times in which some task ran, apart from each other and in order."""
    counted = (a for _, a in attempts(run.story) if not (run.is_simulated and a.outcome.is_in_vain))
    return _union(((a.started_s, a.started_s + attempt_s(a, run.until_s)) for a in counted), from_s)


def _union(spans: Iterable[tuple[float, float]], from_s: float = -inf) -> list[tuple[float, float]]:
    """The times that are in some of these spans, from then on, apart from each other and in
    order."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > from_s:
            found.append((max(begin, from_s), end))
    return found


def data_node_s(run: RecordedRun) -> float:
    """The node time of jobs in which none of their tasks ran while files that these read were on
    the way."""
    on_way = [
        (m.at_s - m.took_s, m.at_s, {tail for path in m.files for tail in _tails(path)})
        for m in run.story.transfers
        if isinstance(m, FilesMoved)
    ]
    if not on_way:
        return 0.0
    busy = _busy_by_job(run)
    total = 0.0
    for number, job in run.story.jobs.items():
        if job.started_s is None or job.taken_by is not None:
            continue
        begun_s = job.started_s
        end_s = job.started_s + (ran_s(job, run.until_s) or 0.0)
        reads = _reads(run.story.workflow, job.plan.tasks)
        waits = [
            (max(a, begun_s), min(b, end_s))
            for a, b, tails in on_way
            if not reads.isdisjoint(tails)
        ]
        mine = busy.get(number, [])
        both = mine + [wait for wait in waits if wait[0] < wait[1]]
        idle_s = _length_s(both) - _length_s(mine)
        total += job.plan.nodes_held(max(1, run.cores)) * idle_s
    return total


Span = tuple[float, float]


def _busy_by_job(run: RecordedRun) -> dict[int, list[Span]]:
    """When tasks ran in each job."""
    busy: dict[int, list[Span]] = {}
    for _, attempt in attempts(run.story):
        span = attempt.started_s, attempt.started_s + attempt_s(attempt, run.until_s)
        busy.setdefault(attempt.job, []).append(span)
    return busy


def _reads(workflow: Workflow, tasks: Iterable[int]) -> set[str]:
    """The files that tasks read, as they are named from the root of all."""
    numbers = (f for task in tasks for f in workflow.inputs.of(task).tolist())
    return {posixpath.normpath(workflow.files[f].id).rpartition("../")[2] for f in numbers}


def _length_s(spans: Sequence[Span]) -> float:
    """How long at least one of them lasts."""
    return sum(end - begin for begin, end in _union(spans))


def _tails(path: str) -> list[str]:
    """A file below the root of all by the names that tasks in folders below may have for it."""
    parts = path.split("/")
    return ["/".join(parts[n:]) for n in range(len(parts))]


def kind_times(story: RunStory, cores: int = 1) -> list[KindTimes]:
    """The kinds of the tasks that finished, those with most work first. `cores`: those of a
    node."""
    found: dict[str, list[tuple[int, TaskAttempt]]] = {}
    failed = Counter[str]()
    for task, attempt in attempts(story):
        if attempt.outcome is AttemptState.FINISHED:
            found.setdefault(story.workflow.kinds[task], []).append((task, attempt))
        failed[story.workflow.kinds[task]] += attempt.outcome.is_in_vain
    times = [_kind(story, name, done, failed[name], max(1, cores)) for name, done in found.items()]
    return sorted(times, key=lambda kind: (-kind.mean_s * kind.tasks, kind.name))


def _core_s(story: RunStory, done: Sequence[tuple[int, TaskAttempt]], cores: int) -> float:
    """The core time that these attempts took."""
    return sum(
        cores_of(story, task, attempt, cores) * attempt_s(attempt, 0.0) for task, attempt in done
    )


def _kind(
    story: RunStory, name: str, done: Sequence[tuple[int, TaskAttempt]], failed: int, cores: int
) -> KindTimes:
    ran = sorted(attempt.before_s + attempt_s(attempt, 0.0) for _, attempt in done)
    core_s = _core_s(story, done, cores)
    return KindTimes(
        name=name,
        tasks=len(done),
        failed=failed,
        mean_s=sum(ran) / len(ran),
        longest_s=ran[-1],
        expected_s=sum(float(story.workflow.runtime_s[task]) for task, _ in done) / len(done),
        quartiles=_quartiles(ran),
        node_s=core_s / cores,
        core_s=core_s / len(done),
        cpu_s=sum(attempt.cpu_s for _, attempt in done) / len(done),
        peak_bytes=max(attempt.peak_bytes for _, attempt in done),
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """The least, the three quartiles and the greatest of sorted values; between two of them in
    proportion."""

    def at(part: float) -> float:
        place = part * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])

    return values[0], at(0.25), at(0.5), at(0.75), values[-1]


def cores_of(story: RunStory, task: int, attempt: TaskAttempt, cores: int) -> int:
    """How many cores an attempt took: its share of a node, or all of its whole nodes."""
    if story.workflow.nodes[task]:
        return max(1, len(attempt.nodes)) * cores
    return min(int(story.workflow.cores[task]), cores)
