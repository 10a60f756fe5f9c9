"""What a run came to, in numbers: who held which nodes for how long, and what came of it. Pure.

Rule 1: the node time of a job is its nodes times the time for which it held them. A task of one node uses its share
of the node's cores; a task of whole nodes uses them all.
Rule 2: what is not over counts until `until_s`: now for a run that goes on, else its last event.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from windrow.manager.journal import PredictedStart
from windrow.manager.story import JobStory, RunStory, TaskAttempt
from windrow.model import format_duration


@dataclass(frozen=True, slots=True)
class RunTold:
    """A run as a report needs it. `until_s` is where its time axis ends, `cores` how many a node has."""

    name: str
    state: str
    strategy: str
    queue: str
    story: RunStory
    predictions: Sequence[PredictedStart]
    until_s: float
    cores: int = 1
    version: str = ""

    @property
    def begun_s(self) -> float:
        """Where its time axis begins."""
        return self.until_s if self.story.begun_s is None else self.story.begun_s


@dataclass(frozen=True, slots=True)
class NodeTime:
    """Node-seconds: held by jobs, used by attempts that did their work, and by attempts that failed or were lost."""

    held_s: float
    useful_s: float
    in_vain_s: float

    @property
    def idle_s(self) -> float:
        """Held, but no task used it."""
        return max(0.0, self.held_s - self.useful_s - self.in_vain_s)

    @property
    def share(self) -> float | None:
        """The part of the held time that was useful; None where nothing was held."""
        return min(1.0, self.useful_s / self.held_s) if self.held_s > 0 else None


@dataclass(frozen=True, slots=True)
class KindTimes:
    """The finished tasks of one kind: how long they ran, and how long they were expected to."""

    name: str
    tasks: int
    mean_s: float
    longest_s: float
    expected_s: float
    cpu_s: float
    peak_bytes: int


def span(seconds: float) -> str:
    """A duration for people; below a second, hundredths are enough."""
    return format_duration(round(seconds, 2) if abs(seconds) < 1 else seconds)


def node_span(node_s: float) -> str:
    """Node time for people, in the unit that fits: `12 node-s`, `3.5 node-min`, `1,204 node-h`."""
    if node_s < 120:
        return f"{node_s:.0f} node-s" if node_s >= 1 else f"{node_s:.2g} node-s"
    return f"{node_s / 60:.1f} node-min" if node_s < 7200 else f"{node_s / 3600:,.1f} node-h"


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
    """How long a job held, or has held, its nodes; None where it did not start."""
    if job.started_s is None:
        return None
    return max(0.0, (until_s if job.ended_s is None else job.ended_s) - job.started_s)


def attempt_s(attempt: TaskAttempt, until_s: float) -> float:
    """How long an attempt ran, or has been running."""
    return max(0.0, (until_s if attempt.ended_s is None else attempt.ended_s) - attempt.started_s)


def node_time(told: RunTold, job: int | None = None) -> NodeTime:
    """The node time of the run, or of one of its jobs."""
    story = told.story
    jobs = story.jobs if job is None else {job: story.jobs[job]}
    held = sum(j.plan.nodes * (ran_s(j, told.until_s) or 0.0) for j in jobs.values() if j.taken_by is None)
    sums = {"finished": 0.0, "failed": 0.0, "lost": 0.0, "running": 0.0}
    members = range(len(story.tasks)) if job is None else story.jobs[job].plan.tasks
    for task in members:
        for attempt in story.tasks[task].attempts:
            if job is None or attempt.job == job:
                sums[attempt.outcome] += _nodes_used(told, task, attempt) * attempt_s(attempt, told.until_s)
    return NodeTime(held, sums["finished"] + sums["running"], sums["failed"] + sums["lost"])


def _nodes_used(told: RunTold, task: int, attempt: TaskAttempt) -> float:
    workflow = told.story.workflow
    if workflow.nodes[task]:
        return float(max(1, len(attempt.nodes)))
    return min(1.0, int(workflow.cores[task]) / max(1, told.cores))


def visible_wait_s(told: RunTold) -> float:
    """For how long, from the run's beginning on, no task ran."""
    worked_s = sum(end - begin for begin, end in _at_work(told.story, told.begun_s, told.until_s))
    return max(0.0, told.until_s - told.begun_s - worked_s)


def queue_waits_s(story: RunStory, until_s: float) -> tuple[float, float]:
    """How long jobs that started had waited in the queue, summed; and for how much of it tasks of the run ran."""
    waits = [(j.submitted_s, j.started_s) for j in story.jobs.values() if j.submitted_s and j.started_s]
    at_work = _at_work(story, 0.0, until_s)
    before = list(accumulate((end - begin for begin, end in at_work), initial=0.0))

    def worked_s(at_s: float) -> float:
        """For how long tasks had run until then."""
        i = bisect_right(at_work, (at_s, inf)) - 1
        return before[i] + min(at_s, at_work[i][1]) - at_work[i][0] if i >= 0 else 0.0

    total = sum(max(0.0, started - submitted) for submitted, started in waits)
    return total, sum(max(0.0, worked_s(started) - worked_s(submitted)) for submitted, started in waits)


def _at_work(story: RunStory, from_s: float, until_s: float) -> list[tuple[float, float]]:
    """The times in which some task ran, apart from each other and in order."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted((a.started_s, a.started_s + attempt_s(a, until_s)) for _, a in attempts(story)):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > from_s:
            found.append((max(begin, from_s), end))
    return found


def kind_times(story: RunStory) -> list[KindTimes]:
    """The kinds of the tasks that finished, those with most work first."""
    found: dict[str, list[tuple[int, TaskAttempt]]] = {}
    for task, attempt in attempts(story):
        if attempt.outcome == "finished":
            found.setdefault(story.workflow.kinds[task], []).append((task, attempt))
    times = [_kind(story, name, done) for name, done in found.items()]
    return sorted(times, key=lambda kind: (-kind.mean_s * kind.tasks, kind.name))


def _kind(story: RunStory, name: str, done: Sequence[tuple[int, TaskAttempt]]) -> KindTimes:
    ran = [attempt_s(attempt, 0.0) for _, attempt in done]
    return KindTimes(
        name=name,
        tasks=len(done),
        mean_s=sum(ran) / len(ran),
        longest_s=max(ran),
        expected_s=sum(float(story.workflow.runtime_s[task]) for task, _ in done) / len(done),
        cpu_s=sum(attempt.cpu_s for _, attempt in done) / len(done),
        peak_bytes=max(attempt.peak_bytes for _, attempt in done),
    )
