"""How long a run will need yet, from what is expected of its tasks and of the waits of its jobs. Pure.

Rule 1: a task takes what is expected of it, corrected by what finished tasks of its kind took. Rule 2: a job that waits
starts when it was predicted to; tasks that are in no job wait as long as jobs of this run did. Rule 3: where a wait is
unknown, nothing is said. A loss costs what is left again, and not the time that was spent.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from windrow.manager.journal import PredictedStart
from windrow.manager.states import AttemptState, JobStage, TaskState
from windrow.manager.story import RunStory

_PATIENCE_S = 60.0
"""How much later than predicted a job may start before its prediction says nothing any more."""
_LEAST_PART = 0.1
"""Of a task's time, what is left at least of one that runs longer than expected."""


def time_left_s(story: RunStory, predictions: Sequence[PredictedStart], cores: int, now_s: float) -> float | None:
    """How long the run will need yet. None where that is not known. `cores`: those of a node."""
    begins = _begins(story, predictions, now_s)
    if begins is None:
        return _promised_s(story, now_s)
    take_s, levels = _times(story, now_s), story.workflow.levels.tolist()
    ends: dict[int, float] = {}
    homes: dict[int | None, list[int]] = defaultdict(list)
    for number in sorted(range(len(levels)), key=lambda task: levels[task]):
        task = story.tasks[number]
        if not task.state.is_out:
            homes[None if task.state is TaskState.PENDING else task.job].append(number)
    for job in sorted(homes, key=lambda job: levels[homes[job][0]]):
        _place(story, job, homes[job], begins.get(job, now_s), take_s, cores, ends)
    return max(0.0, max(ends.values(), default=now_s) - now_s)


def _promised_s(story: RunStory, now_s: float) -> float | None:
    """What the latest look ahead promised, if nothing was lost or added since."""
    for told in reversed(story.decisions):
        if told.decision.is_played and told.decision.candidates:
            lost = any(
                job.outcome is JobStage.KILLED and (job.ended_s or 0.0) > told.at_s for job in story.jobs.values()
            )
            grown = any(addition.at_s > told.at_s for addition in story.additions)
            makespan_s = told.decision.candidates[0].makespan_s
            end_s = None if makespan_s is None or lost or grown else told.at_s + makespan_s
            return None if end_s is None or end_s <= now_s else end_s - now_s
    return None


def _place(
    story: RunStory,
    job: int | None,
    tasks: Sequence[int],
    begin_s: float,
    take_s: Mapping[int, float],
    cores: int,
    ends: dict[int, float],
) -> None:
    """When the tasks of a job end: after their parents, and not before its nodes can have done all the work."""
    workflow = story.workflow
    latest = next(reversed(story.jobs), None) if job is None else job  # the next job may have as many nodes as that
    nodes = 1 if latest is None else story.jobs[latest].plan.nodes
    for task in tasks:
        parents = [ends[p] for p in workflow.parents.of(task).tolist() if p in ends]
        ends[task] = max([begin_s, *parents]) + take_s[task]
    room = max(1, nodes * cores)
    work_s = sum(take_s[t] * (int(workflow.nodes[t]) * cores or int(workflow.cores[t])) for t in tasks) / room
    first_s = min(ends[t] - take_s[t] for t in tasks)
    late_s = first_s + work_s - max(ends[t] for t in tasks)
    if late_s > 0:  # what holds the whole up also holds up those that wait for any of it
        for task in tasks:
            ends[task] += late_s


def _begins(story: RunStory, predictions: Sequence[PredictedStart], now_s: float) -> dict[int | None, float] | None:
    """When each job that is in the system begins, and when what is in no job could. None: unknown."""
    said = {p.job: p for p in predictions if p.used}
    begins: dict[int | None, float] = {}
    for number, job in story.jobs.items():
        if job.outcome is not None:
            continue
        if job.started_s is not None:
            begins[number] = now_s
        elif number in said and now_s <= said[number].start_s + _PATIENCE_S:
            begins[number] = max(now_s, said[number].start_s)
        elif job.submitted_s is not None:
            return None
        else:
            begins[number] = now_s
    if any(task.state is TaskState.PENDING for task in story.tasks):
        stages = [(job.submitted_s, job.queue_started_s) for job in story.jobs.values()]
        waits = [max(0.0, there - since) for since, there in stages if since is not None and there is not None]
        if not waits:
            return None
        begins[None] = now_s + median(waits)
    return begins


def _times(story: RunStory, now_s: float) -> dict[int, float]:
    """How long each task will run yet."""
    workflow = story.workflow
    kinds, expected = workflow.kinds, workflow.runtime_s.tolist()
    found: dict[str, list[float]] = defaultdict(list)
    for number, task in enumerate(story.tasks):
        for attempt in task.attempts[-1:]:
            if attempt.outcome is AttemptState.FINISHED and attempt.ended_s is not None and expected[number] > 0:
                took_s = attempt.ended_s - attempt.started_s + attempt.before_s
                found[kinds[number]].append(took_s / expected[number])
    every = [part for parts in found.values() for part in parts]
    usual = median(every) if every else 1.0
    parts = {kind: median(parts) for kind, parts in found.items()}
    times: dict[int, float] = {}
    for number, task in enumerate(story.tasks):
        take_s = expected[number] * parts.get(kinds[number], usual)
        is_running = task.state is TaskState.RUNNING and task.attempts
        gone_s = now_s - max(task.attempts[-1].started_s, task.saved_at_s) if is_running else 0.0
        is_less = is_running or task.saved_s
        times[number] = max(take_s - task.saved_s - gone_s, _LEAST_PART * take_s) if is_less else take_s
    return times
