"""Why a job or a task is where it is, in words: what `windrow explain` says, in short (`answer_…`) or in full.

Also what a changed workflow file means for a run. Of a real run or a simulated one. No files.
"""

import time
from collections.abc import Sequence

from windrow.manager.changes import Changes
from windrow.manager.figures import RecordedRun
from windrow.manager.journal import PredictedStart
from windrow.manager.lost_files import LostFile
from windrow.manager.states import JobStage, TaskState
from windrow.manager.story import JobStory, RunStory, TaskAttempt
from windrow.manager.waiting import waits_because
from windrow.model import Workflow, format_duration
from windrow.model.size import format_size
from windrow.model.wording import count, listed
from windrow.queues.reasons import reason
from windrow.strategies.base import Candidate


def change_lines(changes: Changes) -> list[str]:
    """Which finished tasks run again and why, which tasks are new, and which are gone."""
    ids = changes.runnable.workflow.ids
    lines = []
    if total := len(changes.again) + len(changes.dependents):
        lines.append(f"{count(total, 'finished task')} {'runs' if total == 1 else 'run'} again: {_which(changes)}")
    if changes.edited:
        words = [f"{ids[task]} ({why})" for task, why in sorted(changes.edited.items())]
        lines.append(f"{count(len(changes.edited), 'unfinished task')} changed: {listed(words)}")
    if changes.added:
        lines.append(f"{count(len(changes.added), 'new task')}: {listed([ids[task] for task in changes.added])}")
    if changes.removed:
        verb = "is" if len(changes.removed) == 1 else "are"
        lines.append(f"{count(len(changes.removed), 'task')} {verb} no longer in the file: {listed(changes.removed)}")
    return lines


def _which(changes: Changes) -> str:
    ids = changes.runnable.workflow.ids
    words = [f"{ids[task]} ({why})" for task, why in sorted(changes.again.items())]
    words = [listed(words)] if words else []
    if changes.dependents:
        verb = "it depends" if len(changes.dependents) == 1 else "they depend"
        roots = [ids[root] for root in dict.fromkeys(changes.dependents.values())]
        words.append(f"{listed([ids[task] for task in sorted(changes.dependents)])} ({verb} on {listed(roots)})")
    return ", ".join(words)


def unfinished_line(story: RunStory) -> str:
    """The tasks of a run that have not finished: those that failed by name."""
    ids = story.workflow.ids
    failed = [ids[number] for number, task in enumerate(story.tasks) if task.state == "failed"]
    others = sum(task.state not in (TaskState.FINISHED, TaskState.FAILED) for task in story.tasks)
    parts = [f"{listed(failed)} (failed)"] if failed else []
    if others:
        parts.append(f"{others:,} that {'has' if others == 1 else 'have'} not run")
    return ", ".join(parts)


LINES_MAX = 5
"""Of a short answer."""
_SHOWN = 12
_AT_ONCE_S = 1.0  # predictions are in whole seconds


def answer_task(run: RecordedRun, number: int) -> list[str]:
    """What became of this task, and why: the task, its latest attempt, what it waits for, its job."""
    task = run.story.tasks[number]
    full = explain_task(run, number)
    attempts = [line for line in full[1:] if line.startswith("attempt ")]
    said = [line for line in full if line.startswith("  | ")] if task.state is TaskState.FAILED else []
    others = [line for line in full[1:] if line not in attempts and not line.startswith("  | ")]
    job = [] if task.job is None else answer_job(run, task.job)[:2]
    return [full[0], *attempts[-1:], *said[-1:], *others[-1:], *job][:LINES_MAX]


def answer_job(run: RecordedRun, number: int) -> list[str]:
    """What became of this job, why it waits or was cut so, and what happened last."""
    job = run.story.jobs[number]
    full = explain_job(run, number)
    why = [line for line in full if line.startswith("why: ")]
    waits = [line for line in happened(run, job) if line.startswith("it waits because ")]
    fate = [line for line in happened(run, job) if line not in waits]
    head = full[0]
    if job.submitted_s is not None and job.started_s is not None:
        head += f", waited {format_duration(round(max(0.0, job.started_s - job.submitted_s)))}"
        if job.ended_s is not None:
            head += f", ran {format_duration(round(max(0.0, job.ended_s - job.started_s)))}"
    return [head, *waits, *why, *fate[-2:]][:LINES_MAX]


def explain_job(run: RecordedRun, number: int) -> list[str]:
    """Why this job was submitted as it was, and what became of it."""
    story = run.story
    job = story.jobs[number]
    plan, decision, ids = job.plan, story.decisions[job.decision], story.workflow.ids
    tasks = plan.all_tasks
    what = f"task {ids[tasks[0]]}" if len(tasks) == 1 else f"{len(tasks)} tasks ({ids[tasks[0]]} to {ids[tasks[-1]]})"
    what += f", {'all' if not plan.tasks else len(plan.copies)} of them copies" if plan.copies else ""
    leeway = f", of which {format_duration(plan.leeway_s)} leeway" if plan.leeway_s else ""
    limit = "no time limit" if job.limit_s is None else f"requested {format_duration(job.limit_s)}{leeway}"
    lines = [
        f"job {number}: {what} on {count(plan.nodes, 'node')}{f' at {plan.site}' if plan.site else ''}, {job.state}",
        f"planned at {_clock(run, job.planned_s)}: expected to run {format_duration(plan.run_s)}, {limit}",
    ]
    if decision.decision.why:
        lines.append(f"why: {decision.decision.why}")
    lines += candidate_lines(decision.decision.candidates)
    lines += [_prediction(run, p, job) for p in run.predictions if p.job == number]
    return lines + happened(run, job)


def happened(run: RecordedRun, job: JobStory) -> list[str]:
    """When it was submitted, started and ended."""
    lines = []
    if job.submitted_s is not None:
        lines.append(f"submitted at {_clock(run, job.submitted_s)} as {job.id}")
    if job.reason:
        fix = reason(job.reason).fix.replace("JOBID", job.id or "JOBID")
        lines.append(f"it waits because {waits_because(job)}" + (f"; fix: {fix}" if fix else ""))
    if job.started_s is not None and job.submitted_s is not None:
        where = f" on {', '.join(dict.fromkeys(job.hosts))}" if job.hosts else ""
        waited = _span(job.started_s - job.submitted_s)
        how = "started" if job.taken_by is None else f"taken over by job {job.taken_by}"
        lines.append(f"{how} at {_clock(run, job.started_s)}{where} after {waited} in the queue")
    if job.ended_s is not None:
        why = f": {job.why}" if job.why else ""
        lines.append(f"{job.outcome} at {_clock(run, job.ended_s)}{why}")
    return lines


def _prediction(run: RecordedRun, prediction: PredictedStart, job: JobStory) -> str:
    said = f"{prediction.source} predicted a start at {_clock(run, prediction.start_s)}"
    if job.queue_started_s is None:
        return said
    late = job.queue_started_s - prediction.start_s
    if abs(late) < _AT_ONCE_S:
        return f"{said} (on time)"
    return f"{said}; it started {_span(abs(late))} {'later' if late > 0 else 'earlier'}"


def candidate_lines(candidates: Sequence[Candidate]) -> list[str]:
    """What was considered, one line each."""
    if not candidates:
        return []
    lines = ["considered:"]
    for c in candidates[:_SHOWN]:
        makespan = "" if c.makespan_s is None else f", all done in {format_duration(c.makespan_s)}"
        note = f" ({c.note})" if c.note else ""
        data = f", data {format_duration(c.data_s)}" if c.data_s else ""
        spans = f"wait {format_duration(c.wait_s)}{data}, run {format_duration(c.run_s)}"
        is_out = bool(c.site) and c.makespan_s is None
        lines.append(f"  {c.what}: " + (c.note if is_out else f"{count(c.nodes, 'node')}, {spans}{makespan}{note}"))
    if len(candidates) > _SHOWN:
        lines.append(f"  and {len(candidates) - _SHOWN} more")
    return lines


def explain_task(run: RecordedRun, number: int) -> list[str]:
    """Why this task ran where and when it did, or why it waits."""
    story = run.story
    task, workflow = story.tasks[number], story.workflow
    lines = [f"task {workflow.ids[number]}: {task.state}" + (f" (job {task.job})" if task.job is not None else "")]
    for joined in story.additions:
        if joined.first <= number < joined.first + joined.count:
            lines.append(f"added to the run at {_clock(run, joined.at_s)}")
    if task.kept is not None:
        lines.append(f"kept from {task.kept.run}, where it finished at {_clock(run, task.kept.ended_s)}")
    for i, attempt in enumerate(task.attempts, 1):
        lines += _attempt(run, i, attempt)
    lines += [f"job {job} did not run it: {why}" for job, why in task.dropped]
    lines += [f"{_clock(run, at_s)}: {runs_again(workflow, lost)}" for at_s, lost in task.undone]
    return lines + _waits_for(story, number)


def runs_again(workflow: Workflow, lost: LostFile) -> str:
    """Why a task that had finished runs again."""
    ids = workflow.ids
    if not lost.file:
        return f"task {ids[lost.maker]} runs again: requested by windrow retry"
    needed = f", and {ids[lost.reader]} needs it" if lost.reader is not None else ""
    return f"task {ids[lost.maker]} runs again: its output {lost.file} is gone{needed}"


def _attempt(run: RecordedRun, number: int, attempt: TaskAttempt) -> list[str]:
    nodes = ", ".join(map(str, attempt.nodes))
    ran = "" if attempt.ended_s is None else f", {_span(attempt.ended_s - attempt.started_s)}"
    peak = f", at most {format_size(attempt.peak_bytes)} of memory" if attempt.peak_bytes else ""
    wrote = f", wrote {format_size(sum(attempt.sizes))}" if attempt.sizes else ""
    why = f": {attempt.why}" if attempt.why else ""
    since = _clock(run, attempt.started_s)
    head = f"attempt {number}: job {attempt.job}, node {nodes}, from {since}{ran}, {attempt.outcome}"
    tail = [f"  | {line}" for line in attempt.tail.splitlines()[-_SHOWN:]]
    near = f", where {format_size(attempt.near_bytes)} of its input was" if attempt.near_bytes else ""
    return [head.replace(f"node {nodes},", f"node {nodes}{near},", 1) + peak + wrote + why, *tail]


def _waits_for(story: RunStory, number: int) -> list[str]:
    task, workflow = story.tasks[number], story.workflow
    parents = workflow.parents.of(number).tolist()
    open_parents = [p for p in parents if story.tasks[p].state is not TaskState.FINISHED]
    if task.state is TaskState.BLOCKED:
        failed = [
            workflow.ids[p] for p in open_parents if story.tasks[p].state in (TaskState.FAILED, TaskState.BLOCKED)
        ]
        return [f"it cannot run because of {', '.join(failed[:5])}"]
    if task.state not in (TaskState.PENDING, TaskState.SUBMITTED):
        return []
    if open_parents:
        names = ", ".join(f"{workflow.ids[p]} ({story.tasks[p].state})" for p in open_parents[:5])
        more = f" and {len(open_parents) - 5} more" if len(open_parents) > 5 else ""
        return [f"it waits for {names}{more}"]
    if task.state is TaskState.PENDING:
        return ["everything it depends on is done; it will be part of one of the next jobs"]
    home = story.jobs[task.job] if task.job is not None else None
    state = home.state if home is not None else JobStage.PLANNED
    because = f", because {waits_because(home)}" if home is not None and home.reason else ""
    return [
        f"everything it depends on is done; its job is {state}"
        + (", and has not started it yet" if state is JobStage.RUNNING else because)
    ]


def _span(seconds: float) -> str:
    """A measured duration; what is below a tenth of a second is more noise than measure."""
    return "less than 0.1 s" if seconds < 0.1 else format_duration(seconds)


def _clock(run: RecordedRun, at_s: float) -> str:
    """The time of day; of a simulated run, how long after its beginning."""
    if run.is_simulated:
        return f"+{format_duration(at_s - run.begun_s)}"
    then = time.localtime(at_s)
    return time.strftime("%H:%M:%S" if then[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M:%S", then)
