"""What is asked about one task or job of a run, and the answer in lines."""

from dataclasses import dataclass

from windrow.errors import UserError
from windrow.report.run import explanation
from windrow.story.figures import RecordedRun
from windrow.story.waiting import nothing_can_start

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Answer:
    """Why a task or job is where it is: `short` in a few lines, `whole` with all that is known."""

    short: tuple[str, ...]
    whole: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.short)


def answer(told: RecordedRun, what: str) -> Answer:
    """About a task by its id, or a job by its number or its id in the queue. UserError if there is
    none."""
    story = told.story
    workflow = story.workflow
    # Numbers win: the local queue counts from 1, so that its `1` is the id of job 0.
    jobs = {job.id: n for n, job in story.jobs.items() if job.id} | {
        str(number): number for number in story.jobs
    }
    if what in workflow.ids:
        task = workflow.number(what)
        short = explanation.answer_task(told, task)
        whole = explanation.explain_task(told, task)
        if (home := story.tasks[task].job) is not None:
            whole = [*whole, *explanation.explain_job(told, home)]
    elif what in jobs:
        short = explanation.answer_job(told, jobs[what])
        whole = explanation.explain_job(told, jobs[what])
    else:
        hint = (
            f"windrow tasks --run {told.name} lists the tasks, windrow status {told.name} the jobs"
        )
        raise UserError(f"{told.name} has no task or job {what[:_SHOWN]!r}; {hint}")
    if warning := nothing_can_start(story):
        whole = [*whole, f"warning: {warning}"]
        short = [*short[: explanation.LINES_MAX - 1], whole[-1]]
    return Answer(tuple(short), tuple(whole))
