"""How long a run will need yet, from what is expected of its tasks and of the waits of its jobs.
Pure.

Rule 1: a task takes what is expected of it, corrected by what finished tasks of its kind took. Rule
2: a job that waits starts when it was predicted to, corrected by which part of such predictions
came true; tasks that are in no job wait as long as jobs of this run did. Rule 3: if a wait is
unknown, nothing is said; so it is of a job that waits for something that forecasts know nothing of.
A loss costs what is left again, and not the time that was spent. Rule 4: the run continues to have
as many nodes at a time as it has had. What is left takes as long as these need for it, however jobs
to come are cut.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from statistics import median

from windrow.queues.reasons import reason
from windrow.story.journal import PredictedStart
from windrow.story.states import AttemptState, JobStage, TaskState
from windrow.story.story import RunStory

_PATIENCE_S = 60.0
"""How much later than predicted a job may start before its prediction says nothing any more."""
_LEAST_PART = 0.1
"""Of a task's time, what is left at least of one that runs longer than expected."""


def time_left_s(
    story: RunStory, predictions: Sequence[PredictedStart], cores: int, now_s: float
) -> float | None:
    """How long the run will need yet. None if that is not known. `cores`: those of a node."""
    waiting = (
        job
        for job in story.jobs.values()
        if job.outcome is None and job.started_s is None and job.reason
    )
    if not all(reason(job.reason).is_foreseen for job in waiting):
        return None
    begins = _begins(story, predictions, now_s)
    if begins is None:
        return _promised_s(story, now_s)
    take_s = _times(story, now_s)
    levels = story.workflow.levels.tolist()
    ends: dict[int, float] = {}
    homes: dict[int | None, list[int]] = defaultdict(list)
    for number in sorted(range(len(levels)), key=lambda task: levels[task]):
        task = story.tasks[number]
        if not task.state.is_out:
            homes[None if task.state is TaskState.PENDING else task.job].append(number)
    most = _most_nodes(story)
    for job in sorted(homes, key=lambda job: levels[homes[job][0]]):
        if job is None:
            nodes = most
        else:
            nodes = story.jobs[job].plan.nodes
        _place(story, nodes, homes[job], begins.get(job, now_s), take_s, cores, ends)
    if ends:
        last = max(ends, key=lambda task: ends[task])
        ends[last] = max(ends[last], now_s + _node_s(story, ends, take_s, cores) / most)
    return max(0.0, max(ends.values(), default=now_s) - now_s)


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


def _most_nodes(story: RunStory) -> int:
    """The most nodes that jobs of the run have had at a time; those of the latest job, if that
    has more."""
    changes = []
    for job in story.jobs.values():
        if job.started_s is not None and job.taken_by is None:
            changes.append((job.started_s, job.plan.nodes))
            if job.ended_s is not None:
                changes.append((job.ended_s, -job.plan.nodes))
    latest = next(reversed(story.jobs), None)
    if latest is None:
        most = 1
    else:
        most = story.jobs[latest].plan.nodes
    return max(most, *accumulate(nodes for _, nodes in sorted(changes)), 1)


def _node_s(
    story: RunStory, tasks: Iterable[int], take_s: Mapping[int, float], cores: int
) -> float:
    """The node time that these tasks take."""
    workflow = story.workflow
    return sum(
        take_s[t] * (int(workflow.nodes[t]) * cores or int(workflow.cores[t])) for t in tasks
    ) / max(1, cores)


def _place(
    story: RunStory,
    nodes: int,
    tasks: Sequence[int],
    begin_s: float,
    take_s: Mapping[int, float],
    cores: int,
    ends: dict[int, float],
) -> None:
    """When the tasks of a job end: after their parents, and not before its nodes can have done all
    the work."""
    workflow = story.workflow
    for task in tasks:
        parents = [ends[p] for p in workflow.parents.of(task).tolist() if p in ends]
        ends[task] = max([begin_s, *parents]) + take_s[task]
    work_s = _node_s(story, tasks, take_s, cores) / max(1, nodes)
    first_s = min(ends[t] - take_s[t] for t in tasks)
    late_s = first_s + work_s - max(ends[t] for t in tasks)
    if late_s > 0:  # what holds the whole up also holds up those that wait for any of it
        for task in tasks:
            ends[task] += late_s


def _begins(
    story: RunStory, predictions: Sequence[PredictedStart], now_s: float
) -> dict[int | None, float] | None:
    """When each job that is in the system begins, and when what is in no job could. None:
    unknown."""
    said = {p.job: p for p in predictions if p.used}
    true_parts = _true_parts(story, predictions)
    begins: dict[int | None, float] = {}
    for number, job in story.jobs.items():
        if job.outcome is not None:
            continue
        if job.started_s is not None:
            begins[number] = now_s
        elif number in said and now_s <= said[number].start_s + _PATIENCE_S:
            one = said[number]
            part = 1.0 if reason(job.reason).is_dated else true_parts[one.source]
            begins[number] = max(now_s, one.at_s + part * (one.start_s - one.at_s))
        elif job.submitted_s is not None:
            return None
        else:
            begins[number] = now_s
    if any(task.state is TaskState.PENDING for task in story.tasks):
        stages = [(job.submitted_s, job.queue_started_s) for job in story.jobs.values()]
        waits = [
            max(0.0, there - since)
            for since, there in stages
            if since is not None and there is not None
        ]
        if not waits:
            return None
        begins[None] = now_s + median(waits)
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


def _times(story: RunStory, now_s: float) -> dict[int, float]:
    """How long each task will run yet."""
    workflow = story.workflow
    kinds = workflow.kinds
    expected = workflow.runtime_s.tolist()
    found: dict[str, list[float]] = defaultdict(list)
    for number, task in enumerate(story.tasks):
        for attempt in task.attempts[-1:]:
            if (
                attempt.outcome is AttemptState.FINISHED
                and attempt.ended_s is not None
                and expected[number] > 0
            ):
                took_s = attempt.ended_s - attempt.started_s + attempt.before_s
                found[kinds[number]].append(took_s / expected[number])
    every = [part for parts in found.values() for part in parts]
    if every:
        usual = median(every)
    else:
        usual = 1.0
    parts = {kind: median(parts) for kind, parts in found.items()}
    times: dict[int, float] = {}
    for number, task in enumerate(story.tasks):
        take_s = expected[number] * parts.get(kinds[number], usual)
        is_running = task.state is TaskState.RUNNING and task.attempts
        if is_running:
            gone_s = now_s - max(task.attempts[-1].started_s, task.saved_at_s)
        else:
            gone_s = 0.0
        is_less = is_running or task.saved_s
        times[number] = (
            max(take_s - task.saved_s - gone_s, _LEAST_PART * take_s) if is_less else take_s
        )
    return times
