"""What is asked about one task or job of a run, and the answer in lines."""

from dataclasses import dataclass

from windrow.errors import UserError
from windrow.report.run import explanation
from windrow.story.figures import RecordedRun
from windrow.story.story import RunStory
from windrow.story.waiting import nothing_can_start

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Answer:
    """Why a task or job is where it is: `short` in a few lines, `whole` with all that is known."""

    short: tuple[str, ...]
    whole: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.short)


def _jobs_by_name(story: RunStory) -> dict[str, int]:
    """By their ids, and by their numbers, which win: the local queue counts from 1, so that its
    `1` is the id of job 0."""
    by_id = {job.id: number for number, job in story.jobs.items() if job.id}
    return by_id | {str(number): number for number in story.jobs}


def answer(told: RecordedRun, what: str) -> Answer:
    """About a task by its id, or a job by its number or its id in the queue. UserError if there is
    none."""
    story = told.story
    workflow = story.workflow
    jobs = _jobs_by_name(story)
    if what in workflow.ids:
        task = workflow.number(what)
        short = explanation.answer_task(told, task)
        whole = _whole_of_task(told, task)
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


def _whole_of_task(told: RecordedRun, task: int) -> list[str]:
    """With all about its job, if it has one."""
    lines = [*explanation.explain_task(told, task)]
    if (home := told.story.tasks[task].job) is not None:
        lines += explanation.explain_job(told, home)
    return lines
