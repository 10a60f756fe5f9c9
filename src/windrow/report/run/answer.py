"""An explanation in at most five lines: what `windrow explain` says unless all is asked for. Text in, text out."""

from __future__ import annotations

from windrow.manager.figures import RecordedRun
from windrow.manager.states import TaskState
from windrow.manager.story import JobStory
from windrow.model import format_duration
from windrow.report.run.explanation import explain_job, explain_task, happened

LINES_MAX = 5


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
    return [_in_short(job, full[0]), *waits, *why, *fate[-2:]][:LINES_MAX]


def _in_short(job: JobStory, head: str) -> str:
    """The job with how long it waited and ran."""
    if job.submitted_s is None or job.started_s is None:
        return head
    waited = f", waited {format_duration(round(max(0.0, job.started_s - job.submitted_s)))}"
    ran = "" if job.ended_s is None else f", ran {format_duration(round(max(0.0, job.ended_s - job.started_s)))}"
    return f"{head}{waited}{ran}"
