"""Why a job or a task is where it is, in words: what `windrow explain` says, in short (`answer_…`)
or in full.

Also what a changed workflow file means for a run. Of a real run or a simulated one. No files.
"""

import shlex
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from windrow.agent.order import WRONG
from windrow.app.changes import Changes
from windrow.model import Workflow, format_duration
from windrow.model.size import format_size
from windrow.model.wording import count, listed
from windrow.queues.reasons import reason
from windrow.story.figures import RecordedRun
from windrow.story.journal import PredictedStart
from windrow.story.lost_files import LostFile
from windrow.story.states import JobStage, RunState, TaskState
from windrow.story.story import JobStory, RunStory, TaskAttempt, TaskStory
from windrow.story.waiting import waits_because
from windrow.strategies.base import Candidate, JobPlan


def change_lines(changes: Changes) -> list[str]:
    """Which finished tasks run again and why, which tasks are new, and which are gone."""
    ids = changes.runnable.workflow.ids
    lines = []
    if total := len(changes.again) + len(changes.dependents):
        verb = _verb(total, "runs", "run")
        lines.append(f"{count(total, 'finished task')} {verb} again: {_which(changes)}")
    if changes.accepted:
        names = [ids[task] for task in changes.accepted]
        verb = _verb(len(names), "stays", "stay")
        lines.append(f"{count(len(names), 'changed task')} {verb} as accepted: {listed(names)}")
    if changes.edited:
        words = [f"{ids[task]} ({why})" for task, why in sorted(changes.edited.items())]
        lines.append(f"{count(len(changes.edited), 'unfinished task')} changed: {listed(words)}")
    if changes.added:
        names = [ids[task] for task in changes.added]
        lines.append(f"{count(len(names), 'new task')}: {listed(names)}")
    if changes.removed:
        many = len(changes.removed)
        verb = _verb(many, "is", "are")
        lines.append(
            f"{count(many, 'task')} {verb} no longer in the file: {listed(changes.removed)}"
        )
    if changes.replaced:
        many = len(changes.replaced)
        lines.append(
            f"{count(many, 'task')} {_verb(many, 'belongs', 'belong')} to tasks that run again, "
            f"and will be replaced: {listed(changes.replaced)}"
        )
    return lines


def _verb(number: int, one: str, several: str) -> str:
    if number == 1:
        return one
    return several


def _which(changes: Changes) -> str:
    ids = changes.runnable.workflow.ids
    parts = []
    if changes.again:
        words = [f"{ids[task]} ({why})" for task, why in sorted(changes.again.items())]
        parts.append(listed(words))
    if changes.dependents:
        verb = _verb(len(changes.dependents), "it depends", "they depend")
        roots = [ids[root] for root in dict.fromkeys(changes.dependents.values())]
        names = [ids[task] for task in sorted(changes.dependents)]
        parts.append(f"{listed(names)} ({verb} on {listed(roots)})")
    return ", ".join(parts)


def unfinished_line(story: RunStory) -> str:
    """The tasks of a run that have not finished: those that failed by name."""
    ids = story.workflow.ids
    failed = [ids[number] for number, task in enumerate(story.tasks) if task.state == "failed"]
    others = sum(task.state not in (TaskState.FINISHED, TaskState.FAILED) for task in story.tasks)
    parts = []
    if failed:
        parts.append(f"{listed(failed)} (failed)")
    if others:
        parts.append(f"{others:,} that {_verb(others, 'has', 'have')} not run")
    return ", ".join(parts)


LINES_MAX = 5
"""Of a short answer."""
_SHOWN = 12
_AT_ONCE_S = 1.0  # predictions are in whole seconds


def answer_task(run: RecordedRun, number: int) -> list[str]:
    """What became of this task, and why: the task, its latest attempt, what it waits for, its
    job."""
    task = run.story.tasks[number]
    told = _told(run, number)
    spoiled = [line for attempt in told.attempts for line in attempt.spoiled]
    others = [*told.before, *spoiled, *told.after, *told.refused, *told.waits]
    refused = told.refused[-1:]
    lines = [told.head, *[attempt.head for attempt in told.attempts[-1:]]]
    if task.state is TaskState.FAILED:
        lines += [line for attempt in told.attempts for line in attempt.printed][-1:]
    lines += refused
    lines += [line for line in others[-1:] if line not in refused]
    if task.job is not None:
        lines += answer_job(run, task.job)[:2]
    return lines[:LINES_MAX]


def answer_job(run: RecordedRun, number: int) -> list[str]:
    """What became of this job, why it waits or was cut so, and what happened last."""
    job = run.story.jobs[number]
    fate = [*_submitted(run, job), *_ran(run, job)]
    head = _job_head(run, number)
    if job.submitted_s is not None and job.started_s is not None:
        head += f", waited {format_duration(round(max(0.0, job.started_s - job.submitted_s)))}"
        if job.ended_s is not None:
            head += f", ran {format_duration(round(max(0.0, job.ended_s - job.started_s)))}"
    return [head, *_waits(job), *_why(run, job), *fate[-2:]][:LINES_MAX]


def explain_job(run: RecordedRun, number: int) -> list[str]:
    """Why this job was submitted as it was, and what became of it."""
    job = run.story.jobs[number]
    decision = run.story.decisions[job.decision].decision
    planned = (
        f"planned at {_clock(run, job.planned_s)}: expected to run "
        f"{format_duration(job.plan.run_s)}, {_limit(job)}"
    )
    return [
        _job_head(run, number),
        planned,
        *_why(run, job),
        *candidate_lines(decision.candidates),
        *[_prediction(run, p, job) for p in run.predictions if p.job == number],
        *happened(run, job),
    ]


def _job_head(run: RecordedRun, number: int) -> str:
    job = run.story.jobs[number]
    where = count(job.plan.nodes, job.plan.unit)
    if job.plan.site:
        where += f" at {job.plan.site}"
    return f"job {number}: {_tasks_of(job.plan, run.story.workflow.ids)} on {where}, {job.state}"


def _why(run: RecordedRun, job: JobStory) -> list[str]:
    """Why it was cut so, if its strategy said so."""
    why = run.story.decisions[job.decision].decision.why
    if not why:
        return []
    return [f"why: {why}"]


def _tasks_of(plan: JobPlan, ids: Sequence[str]) -> str:
    tasks = plan.all_tasks
    if len(tasks) == 1:
        what = f"task {ids[tasks[0]]}"
    else:
        what = f"{len(tasks)} tasks ({ids[tasks[0]]} to {ids[tasks[-1]]})"
    if not plan.copies:
        return what
    if not plan.tasks:
        return f"{what}, all of them copies"
    return f"{what}, {len(plan.copies)} of them copies"


def _limit(job: JobStory) -> str:
    if job.limit_s is None:
        return "no time limit"
    limit = f"requested {format_duration(job.limit_s)}"
    if job.plan.leeway_s:
        limit += f", of which {format_duration(job.plan.leeway_s)} leeway"
    return limit


def happened(run: RecordedRun, job: JobStory) -> list[str]:
    """When it was submitted, why it waits, when it started and ended."""
    return [*_submitted(run, job), *_waits(job), *_ran(run, job)]


def _submitted(run: RecordedRun, job: JobStory) -> list[str]:
    if job.submitted_s is None:
        return []
    return [f"submitted at {_clock(run, job.submitted_s)} as {job.id}"]


def _waits(job: JobStory) -> list[str]:
    if not job.reason:
        return []
    waits = f"it waits because {waits_because(job)}"
    fix = reason(job.reason).fix.replace("JOBID", job.id or "JOBID")
    if fix:
        waits += f"; fix: {fix}"
    return [waits]


def _ran(run: RecordedRun, job: JobStory) -> list[str]:
    """When it started and ended."""
    lines = []
    if job.started_s is not None and job.submitted_s is not None:
        start = "started" if job.taken_by is None else f"taken over by job {job.taken_by}"
        start += f" at {_clock(run, job.started_s)}"
        if job.hosts:
            start += f" on {', '.join(dict.fromkeys(job.hosts))}"
        waited = _span(job.started_s - job.submitted_s)
        lines.append(f"{start} after {waited} in the queue")
    if job.ended_s is not None:
        end = f"{job.outcome} at {_clock(run, job.ended_s)}"
        if job.why:
            end += f": {job.why}"
        lines.append(end)
    return lines


def _prediction(run: RecordedRun, prediction: PredictedStart, job: JobStory) -> str:
    said = f"{prediction.source} predicted a start at {_clock(run, prediction.start_s)}"
    if job.queue_started_s is None:
        return said
    late = job.queue_started_s - prediction.start_s
    if abs(late) < _AT_ONCE_S:
        return f"{said} (on time)"
    if late > 0:
        return f"{said}; it started {_span(late)} later"
    return f"{said}; it started {_span(-late)} earlier"


def candidate_lines(candidates: Sequence[Candidate]) -> list[str]:
    """What was considered, one line each."""
    if not candidates:
        return []
    lines = ["considered:"]
    lines += [f"  {one.what}: {_considered(one)}" for one in candidates[:_SHOWN]]
    if len(candidates) > _SHOWN:
        lines.append(f"  and {len(candidates) - _SHOWN} more")
    return lines


def _considered(one: Candidate) -> str:
    if one.site and one.makespan_s is None:  # a site that is out
        return one.note
    words = f"{count(one.nodes, 'node')}, wait {format_duration(one.wait_s)}"
    if one.data_s:
        words += f", data {format_duration(one.data_s)}"
    words += f", run {format_duration(one.run_s)}"
    if one.makespan_s is not None:
        words += f", all done in {format_duration(one.makespan_s)}"
    if one.note:
        words += f" ({one.note})"
    return words


def explain_task(run: RecordedRun, number: int) -> list[str]:
    """Why this task ran where and when it did, or why it waits."""
    told = _told(run, number)
    attempts = [line for one in told.attempts for line in (one.head, *one.printed, *one.spoiled)]
    return [told.head, *told.before, *attempts, *told.after, *told.refused, *told.waits]


class _Attempt(NamedTuple):
    """What is said of an attempt: itself, what it printed last, what came to its node spoiled."""

    head: str
    printed: list[str]
    spoiled: list[str]


class _Task(NamedTuple):
    """What is said of a task, in this order: `before` and `after` are the lines around those of its
    attempts."""

    head: str
    before: list[str]
    attempts: list[_Attempt]
    after: list[str]
    refused: list[str]
    waits: list[str]


def _told(run: RecordedRun, number: int) -> _Task:
    story = run.story
    task = story.tasks[number]
    workflow = story.workflow
    head = f"task {workflow.ids[number]}: {task.state}"
    if task.job is not None:
        head += f" (job {task.job})"
    before = [*_before(run, number)]
    attempts = [_attempt(run, i, attempt) for i, attempt in enumerate(task.attempts, 1)]
    after = [f"job {job} did not run it: {why}" for job, why in task.dropped]
    after += [f"{_clock(run, at_s)}: it was changed" for at_s in task.amended_s]
    after += [f"{_clock(run, at_s)}: {runs_again(workflow, lost)}" for at_s, lost in task.undone]
    return _Task(head, before, attempts, after, _refused(task), _waits_for(run, number))


def _refused(task: TaskStory) -> list[str]:
    """In which jobs a disk refused what it made; of a task that failed, its attempt says so."""
    if task.state is TaskState.FAILED:
        return []
    return [f"in job {job}: {why}" for job, why in dict.fromkeys(task.refused)]


def runs_again(workflow: Workflow, lost: LostFile) -> str:
    """Why a task that had finished runs again."""
    ids = workflow.ids
    if not lost.file:
        return f"task {ids[lost.maker]} runs again: requested by windrow retry"
    if lost.reader is not None:
        needed = f", and {ids[lost.reader]} needs it"
    else:
        needed = ""
    return f"task {ids[lost.maker]} runs again: its output {lost.file} is gone{needed}"


def _before(run: RecordedRun, number: int) -> Iterator[str]:
    """What happened to a task before this run executed it."""
    for joined in run.story.additions:
        if joined.first <= number < joined.first + joined.count:
            by = f" by {joined.event.maker}" if joined.event.maker else ""
            yield f"added to the run at {_clock(run, joined.at_s)}{by}"
    for at_s, priority in run.story.tasks[number].ranked[-1:]:
        yield f"priority {priority} since {_clock(run, at_s)}"
    if (kept := run.story.tasks[number].kept) is not None:
        yield f"kept from {kept.run}, where it finished at {_clock(run, kept.ended_s)}"


def _attempt(run: RecordedRun, number: int, attempt: TaskAttempt) -> _Attempt:
    head = f"attempt {number}: job {attempt.job}, node {', '.join(map(str, attempt.nodes))}"
    if attempt.near_bytes:
        head += f", where {format_size(attempt.near_bytes)} of its input was"
    head += f", from {_clock(run, attempt.started_s)}{_came_to(attempt)}"
    printed = [f"  | {line}" for line in attempt.tail.splitlines()[-_SHOWN:]]
    spoiled = [
        f"  {format_size(size)} of {file} {link}: it was fetched again"
        for file, link, size in attempt.moved
        if link.startswith(WRONG)
    ]
    return _Attempt(head, printed, spoiled)


def _first(names: Sequence[str]) -> str:
    """The first five of them, and how many more there are."""
    told = ", ".join(names[:5])
    if len(names) > 5:
        told += f" and {len(names) - 5} more"
    return told


def _came_to(attempt: TaskAttempt) -> str:
    words = ""
    if attempt.ended_s is not None:
        words += f", {_span(attempt.ended_s - attempt.started_s)}"
    words += f", {attempt.outcome}"
    if attempt.peak_bytes:
        words += f", at most {format_size(attempt.peak_bytes)} of memory"
    if attempt.sizes:
        words += f", wrote {format_size(sum(attempt.sizes))}"
    if attempt.why:
        words += f": {attempt.why}"
    return words


def _waits_for(run: RecordedRun, number: int) -> list[str]:
    story = run.story
    task = story.tasks[number]
    ids = story.workflow.ids
    parents = [(p, story.tasks[p].state) for p in story.workflow.parents.of(number).tolist()]
    waiting = [(ids[p], state) for p, state in parents if state is not TaskState.FINISHED]
    if task.state is TaskState.BLOCKED:
        return [f"it cannot run because of {_first([p for p, s in waiting if s.is_never])}"]
    if task.state is TaskState.SKIPPED:
        return ["it is for a failure that did not come, or needs what is"]
    if task.state is TaskState.CANCELLED:
        return [f"it was cancelled; windrow retry {shlex.quote(ids[number])} runs it after all"]
    if task.state not in (TaskState.PENDING, TaskState.SUBMITTED):
        return []
    if task.state is TaskState.PENDING and run.state in _ENDED:
        return [_without_it(run)]
    if waiting:
        return [f"it waits for {_first([f'{parent} ({state})' for parent, state in waiting])}"]
    if task.state is TaskState.PENDING:
        return ["everything it depends on is done; it will be part of one of the next jobs"]
    if task.job is None:
        return [_in_job(JobStage.PLANNED)]
    home = story.jobs[task.job]
    if home.state is JobStage.RUNNING:
        return [f"{_in_job(home.state)}, and has not started it yet"]
    if home.reason:
        return [f"{_in_job(home.state)}, because {waits_because(home)}"]
    return [_in_job(home.state)]


_ENDED = {
    RunState.FAILED: "the run has ended without it",
    RunState.STOPPED: "the run was stopped before it ran",
    RunState.INTERRUPTED: "no process manages the run now",
    RunState.CONTINUED: "another run continues this one",
}
"""Of a run in which no task will be in a job any more, unless it is continued."""


def _without_it(run: RecordedRun) -> str:
    """Why nothing more becomes of a task that did not run, and what would change that."""
    state = RunState(run.state)
    if run.story.trouble and state is RunState.FAILED:
        why = f"the run gave up before it ran: {run.story.trouble}"
    else:
        why = _ENDED[state]
    if state is RunState.CONTINUED:
        return why
    return f"{why}; windrow resume {shlex.quote(run.name)} continues it"


def _in_job(stage: JobStage) -> str:
    return f"everything it depends on is done; its job is {stage}"


def _span(seconds: float) -> str:
    """A measured duration; what is below a tenth of a second is more noise than measure."""
    if seconds < 0.1:
        return "less than 0.1 s"
    return format_duration(seconds)


def _clock(run: RecordedRun, at_s: float) -> str:
    """The time of day; of a simulated run, how long after its beginning."""
    if run.is_simulated:
        return f"+{format_duration(at_s - run.begun_s)}"
    then = time.localtime(at_s)
    if then[:3] == time.localtime()[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%Y-%m-%d %H:%M:%S", then)
