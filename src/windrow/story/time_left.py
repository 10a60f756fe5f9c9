"""How long a run will need yet, from what is expected of its tasks and of the waits of its jobs.
Pure.

Rule 1: what is left of the run is played forwards (`story.rest`): in jobs that are in the system,
then in jobs to come, which are taken to be like those that the run has had.
Rule 2: a job that waits starts when it was predicted to, corrected by which part of such
predictions came true; if it waits for nodes of this run's own jobs, when these are free. Jobs to
come wait as long as jobs of this run did.
Rule 3: if a wait is unknown, nothing is said; so it is of a job that waits for something that
forecasts know nothing of. Rule 4: run times are those of `story.rest_times`.
"""

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from statistics import median

from windrow.queues.reasons import reason
from windrow.story.journal import PredictedStart
from windrow.story.rest import JobsToCome, JobThere, Manner, Rest, end_of
from windrow.story.rest_times import rest_times
from windrow.story.states import JobStage, TaskState
from windrow.story.story import JobStory, RunStory
from windrow.strategies import JobPlan

_PATIENCE_S = 60.0
"""How much later than predicted a job may start before its prediction says nothing any more."""
_MOST_DRAWS = 9
_DRAWN = 1000
"""How often run times are drawn: of how many tasks in all."""
_LAST = 50
"""Jobs from which is learned what jobs to come will be like."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run can have at a time: nodes, each with these cores, and jobs. 0: not known."""

    cores: int = 1
    nodes: int = 0
    jobs: int = 0


def time_left_s(
    story: RunStory, predictions: Sequence[PredictedStart], offer: Offer, now_s: float
) -> float | None:
    """How long the run will need yet. None if that is not known."""
    waiting = (
        job
        for job in story.jobs.values()
        if job.outcome is None and job.started_s is None and job.reason
    )
    if not all(reason(job.reason).is_foreseen for job in waiting):
        return None
    use = _Use(story)
    begins = _begins(story, use, predictions, now_s)
    gap_s = use.gap_s()
    if begins is None or (gap_s is None and story.count(TaskState.PENDING)):
        return _promised_s(story, now_s)
    rest = Rest(
        workflow=story.workflow,
        homes=_homes(story, begins),
        there=_there(story, begins),
        to_come=use.jobs_to_come(gap_s or 0.0, offer),
        cores=offer.cores,
    )
    ends_s = [end_of(rest, takes_s, now_s) for takes_s in rest_times(story, now_s, _draws(story))]
    return max(0.0, median(ends_s) - now_s)


def _draws(story: RunStory) -> int:
    """How often to draw run times."""
    out = sum(count for state, count in story.counts.items() if state.is_out)
    left = len(story.tasks) - out
    return min(_MOST_DRAWS, max(1, _DRAWN // max(1, left)))


def _promised_s(story: RunStory, now_s: float) -> float | None:
    """What the latest look ahead promised, if nothing was lost or added since."""
    for told in reversed(story.decisions):
        if told.decision.is_played and told.decision.candidates:
            lost = any(
                job.outcome is JobStage.KILLED and (job.ended_s or 0.0) > told.at_s
                for job in story.jobs.values()
            )
            grown = any(addition.at_s > told.at_s for addition in story.additions)
            makespan_s = told.decision.candidates[0].makespan_s
            if makespan_s is None or lost or grown:
                end_s = None
            else:
                end_s = told.at_s + makespan_s
            if end_s is None or end_s <= now_s:
                return None
            return end_s - now_s
    return None


class _Use:
    """What jobs the run has had, and how it used the nodes."""

    def __init__(self, story: RunStory) -> None:
        self.story = story
        changes = []
        for job in story.jobs.values():
            if job.queue_started_s is not None:
                changes.append((job.queue_started_s, job.plan.nodes))
                if job.ended_s is not None:
                    changes.append((job.ended_s, -job.plan.nodes))
        changes.sort()
        held = list(accumulate(nodes for _, nodes in changes))
        self.most = max(held, default=0)
        """The most nodes that jobs of the run have had at a time."""
        self.now = held[-1] if held else 0
        self._full_until_s = [
            at_s
            for (at_s, nodes), after in zip(changes, held, strict=True)
            if nodes < 0 and after - nodes == self.most
        ]
        self._ended_s = sorted(
            job.ended_s for job in story.jobs.values() if job.ended_s is not None
        )

    @property
    def is_full(self) -> bool:
        """Whether jobs that wait are likely to wait for nodes of the run's own."""
        return 0 < self.most <= self.now

    def _had_nodes(self) -> list[tuple[int, JobStory]]:
        """The latest jobs that the queue gave nodes."""
        had = [(n, job) for n, job in self.story.jobs.items() if job.queue_started_s is not None]
        return had[-_LAST:]

    def gap_s(self) -> float | None:
        """Between the moment when a job could have begun its work and when it did: its wait as the
        run felt it. None: no job has started."""
        gaps = []
        for number, job in self._had_nodes():
            firsts = [
                (attempt.started_s, task)
                for task in job.plan.tasks
                for attempt in self.story.tasks[task].attempts
                if attempt.job == number
            ]
            if firsts:
                start_s, task = min(firsts)
                gaps.append(max(0.0, start_s - self._could_start_s(job, task, start_s)))
        if not gaps:
            return None
        return median(gaps)

    def _could_start_s(self, job: JobStory, task: int, start_s: float) -> float:
        """When this task, the first of its job, had all but its nodes."""
        story = self.story
        since = [story.begun_s or job.planned_s]
        for parent in story.workflow.parents.of(task).tolist():
            since += [a.ended_s for a in story.tasks[parent].attempts if a.ended_s is not None]
        index = bisect_left(self._full_until_s, start_s)
        since += self._full_until_s[max(0, index - 1) : index]
        submitted_s = job.planned_s if job.submitted_s is None else job.submitted_s
        is_alone = not any(
            (other.queue_started_s or start_s) < submitted_s
            and (other.ended_s is None or other.ended_s > submitted_s)
            for _, other in self._had_nodes()
        )
        if is_alone:  # it was submitted when the jobs before it were done
            since += [end_s for end_s in self._ended_s if end_s <= submitted_s][-1:]
        return max(one for one in since if one <= start_s or one == since[0])

    def jobs_to_come(self, gap_s: float, offer: Offer) -> JobsToCome:
        """What they will be like."""
        limited = [
            job.limit_s / job.plan.run_s
            for _, job in self._had_nodes()
            if job.limit_s is not None and job.plan.run_s > 0
        ]
        manner = self._manner()
        if self._is_narrow(manner):
            most = max(1, self.most)
        else:
            most = offer.nodes or len(self.story.tasks)
        if manner is Manner.TASKS and offer.jobs:
            most = min(most, offer.jobs)
        return JobsToCome(manner, gap_s, most, median(limited) if limited else None)

    def _manner(self) -> Manner:
        """As jobs were cut so far."""
        story = self.story
        if story.decisions and story.decisions[-1].decision.individually:
            return Manner.TASKS
        alone = [job.decision for job in story.jobs.values() if len(job.plan.tasks) == 1]
        if len(alone) == len(story.jobs) > len(set(alone)):  # several of one task, at one time
            return Manner.TASKS
        levels = story.workflow.levels
        if all(len(set(levels[list(p.tasks)].tolist())) == 1 for p in self._plans()):
            return Manner.LEVELS
        return Manner.ALL

    def _is_narrow(self, manner: Manner) -> bool:
        """Whether jobs had fewer nodes than they could use."""
        if manner is Manner.ALL:
            return True
        if manner is Manner.LEVELS:
            return any(plan.nodes < len(plan.tasks) for plan in self._plans())
        return self.is_full and any(
            job.outcome is None and job.started_s is None for job in self.story.jobs.values()
        )

    def _plans(self) -> list[JobPlan]:
        """Of the latest jobs that had nodes."""
        return [job.plan for _, job in self._had_nodes()]


def _homes(story: RunStory, begins: Container[int]) -> dict[int, int]:
    """Which of these jobs tasks are in."""
    return {
        number: task.job
        for number, task in enumerate(story.tasks)
        if task.job is not None
        and task.job in begins
        and not (task.state.is_out or task.state is TaskState.PENDING)
    }


def _there(story: RunStory, begins: dict[int, float]) -> dict[int, JobThere]:
    """The jobs that begin then."""
    there = {}
    for number, begin_s in begins.items():
        job = story.jobs[number]
        since_s = begin_s if job.started_s is None else job.started_s
        end_s = inf if job.limit_s is None else since_s + job.limit_s
        there[number] = JobThere(job.plan.nodes, begin_s, end_s)
    return there


def _begins(
    story: RunStory, use: _Use, predictions: Sequence[PredictedStart], now_s: float
) -> dict[int, float] | None:
    """When each job that is in the system begins; those that wait for nodes of the run's own are
    left out. None: unknown."""
    said = {p.job: p for p in predictions if p.used}
    true_parts = _true_parts(story, predictions)
    begins: dict[int, float] = {}
    for number, job in story.jobs.items():
        if job.outcome is not None:
            continue
        if job.started_s is not None or job.submitted_s is None:
            begins[number] = now_s
        elif use.is_full:
            continue
        elif number in said and now_s <= said[number].start_s + _PATIENCE_S:
            one = said[number]
            part = 1.0 if reason(job.reason).is_dated else true_parts[one.source]
            begins[number] = max(now_s, one.at_s + part * (one.start_s - one.at_s))
        else:
            return None
    return begins


def _true_parts(story: RunStory, predictions: Sequence[PredictedStart]) -> dict[str, float]:
    """Of each forecaster, which part of the waits that it predicted jobs of this run did wait."""
    if not predictions:
        return {}
    from windrow.forecast.ledger import PastPrediction, part_waited  # noqa: PLC0415  (most local runs predict nothing)

    past = [
        PastPrediction(p.source, str(p.job), p.at_s, p.start_s, story.jobs[p.job].queue_started_s)
        for p in predictions
        if p.job in story.jobs
    ]
    return {source: part_waited(past, source) for source in {p.source for p in predictions}}
