"""What went wrong in a run, and why its jobs were cut as they were: words, as parts of its page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from windrow.model.wording import count, span
from windrow.report.page import note
from windrow.report.run.explanation import candidate_lines
from windrow.story.figures import RecordedRun, attempt_s
from windrow.story.states import AttemptState, TaskState
from windrow.story.story import DecisionStory, RunStory, TaskAttempt

MOST_FAILURES = 40
MOST_DECISIONS = 60
_WHY = 100
_PRE = (
    "white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 .8rem; padding: .5rem "
    ".8rem; font-size: .85rem; "
    "border-left: 3px solid var(--rule)"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that failed or was lost."""

    task: str
    number: int
    attempt: TaskAttempt
    is_final: bool


def failed_attempts(told: RecordedRun) -> list[Failure]:
    """All attempts that came to nothing; first those of tasks that failed for good, then in the
    order of time."""
    story = told.story
    found = [
        Failure(
            story.workflow.ids[number],
            i,
            attempt,
            task.state is TaskState.FAILED and attempt is task.attempts[-1],
        )
        for number, task in enumerate(story.tasks)
        for i, attempt in enumerate(task.attempts, 1)
        if attempt.outcome.is_in_vain
    ]
    return sorted(
        found, key=lambda f: (not f.is_final, f.attempt.ended_s or f.attempt.started_s, f.task)
    )


def failures(told: RecordedRun) -> str:
    """What failed, with the last lines that it printed."""
    found = failed_attempts(told)
    if told.story.trouble:
        parts = [note(f"The run gave up: {told.story.trouble}")]
    else:
        parts = []
    if not found:
        return "\n".join([*parts, note("No attempt at a task failed or was lost.")])
    blocked = told.story.count(TaskState.BLOCKED)
    if blocked:
        parts.append(note(f"{count(blocked, 'task')} cannot run because of tasks that failed."))
    parts += [_failure(failure, told.until_s) for failure in found[:MOST_FAILURES]]
    if len(found) > MOST_FAILURES:
        parts.append(note(f"And {len(found) - MOST_FAILURES:,} more failed or lost attempts."))
    return "\n".join(parts)


def _failure(failure: Failure, until_s: float) -> str:
    attempt = failure.attempt
    if failure.is_final:
        fate = "failed for good"
    else:
        fate = attempt.outcome
    head = (
        f"{failure.task}, attempt {failure.number} in job {attempt.job}: {fate} after "
        f"{span(attempt_s(attempt, until_s))}"
    )
    if attempt.why:
        head += f": {attempt.why}"
    if failure.is_final:
        is_open = " open"
    else:
        is_open = ""
    if attempt.tail:
        said = _pre(attempt.tail)
    else:
        said = note("No output.")
    if attempt.outcome is AttemptState.SUPERSEDED:
        said = note(
            "It did not fail: another attempt at the same task, in another job, finished first."
        )
    if attempt.outcome is AttemptState.LOST:
        said = note("It did not fail: it was running when its job, or its node, ended.")
    return f"<details{is_open}><summary>{escape(head)}</summary>{said}</details>"


def _jobs_by_decision(story: RunStory) -> dict[int, list[int]]:
    jobs: dict[int, list[int]] = {}
    for number, job in story.jobs.items():
        jobs.setdefault(job.decision, []).append(number)
    return jobs


def decisions(told: RecordedRun) -> str:
    """Each decision with its reasons, folded."""
    story = told.story
    if not story.decisions:
        return note("No decision yet.")
    jobs = _jobs_by_decision(story)
    parts = []
    for i, decision in enumerate(story.decisions[:MOST_DECISIONS]):
        mine = jobs.get(i, [])
        head = f"+{span(max(0.0, decision.at_s - told.begun_s))}, {_named(mine)}"
        if decision.decision.why:
            head += f": {_short(decision.decision.why)}"
        said = "\n".join(_said(told, decision, mine)) or "No reason given."
        parts.append(f"<details><summary>{escape(head)}</summary>{_pre(said)}</details>")
    if len(story.decisions) > MOST_DECISIONS:
        parts.append(_more(told, len(story.decisions) - MOST_DECISIONS))
    return "\n".join(parts)


def _short(why: str) -> str:
    """The first words of a reason."""
    if len(why) <= _WHY:
        return why
    return f"{why[:_WHY].rsplit(' ', 1)[0]} …"


def _more(told: RecordedRun, decisions: int) -> str:
    words = f"And {decisions:,} more"
    if not told.is_simulated:
        words += f"; see windrow explain JOB --run {told.name}"
    return note(f"{words}.")


def _named(jobs: Sequence[int]) -> str:
    if not jobs:
        return "nothing to submit now"
    if len(jobs) == 1:
        return f"job {jobs[0]}"
    return f"jobs {jobs[0]} to {jobs[-1]}"


def _said(told: RecordedRun, decision: DecisionStory, jobs: list[int]) -> Iterator[str]:
    if decision.decision.why:
        yield f"why: {decision.decision.why}"
    if decision.forecast:
        yield f"forecast: {decision.forecast}"
    for number in jobs[:12]:
        job = told.story.jobs[number]
        plan = job.plan
        if job.limit_s is None:
            limit = "no time limit"
        else:
            limit = f"{span(job.limit_s)} requested"
        yield (
            f"job {number}: {count(len(plan.all_tasks), 'task')} on "
            f"{count(plan.nodes, plan.unit)}, {limit}"
        )
    if len(jobs) > 12:
        yield f"and {len(jobs) - 12:,} more jobs"
    yield from candidate_lines(decision.decision.candidates)


def _pre(text: str) -> str:
    return f'<pre style="{_PRE}">{escape(text)}</pre>'
