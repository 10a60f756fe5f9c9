"""Why jobs of a run wait, in words, as their queue last said."""

from windrow.queues.reasons import reason
from windrow.story.states import JobStage
from windrow.story.story import JobStory, RunStory


def waits_because(job: JobStory) -> str:
    """Why a job waits, as the queue last said; empty if it does not wait, or the reason is
    unknown."""
    if job.reason:
        return str(reason(job.reason))
    return ""


def nothing_can_start(story: RunStory) -> str:
    """The warning for a run of which no job runs, while all that wait do so for reasons that time
    does not cure."""
    alive = [(number, job) for number, job in story.jobs.items() if job.outcome is None]
    lasting = [
        (n, job)
        for n, job in alive
        if job.state is JobStage.WAITING and reason(job.reason).is_lasting
    ]
    if not alive or len(lasting) < len(alive):
        return ""
    number, job = lasting[0]
    more = f", and {len(lasting) - 1} more like it" if len(lasting) > 1 else ""
    fix = reason(job.reason).fix.replace("JOBID", job.id or "JOBID")
    return (
        f"nothing of this run can start: job {number} ({job.id}) waits because "
        f"{waits_because(job)}{more}; fix: {fix}"
    )
