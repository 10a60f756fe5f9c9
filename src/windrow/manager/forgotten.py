"""Jobs that are in a run's folder and not in its journal, whose last part was lost: with a disk, or
by a copy.

What such a job was is in its job file, and what came of it in its events. So it is planned as it
was, looked up in the queue like any job that may not have been submitted, and heard.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from windrow.agent.event_file import Tail
from windrow.agent.job_file import JobFile, read_job
from windrow.errors import WindrowError
from windrow.manager.core import Core
from windrow.manager.inbox import Placed
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.strategies.base import Decision, JobPlan

if TYPE_CHECKING:
    from windrow.manager.manager import Manager


def recover(manager: Manager) -> None:
    """Take the jobs that the journal lacks from the run's folder, as far as they can be
    understood."""
    core = manager.core
    there = set(manager.folder.numbers())
    while core.submitted in there:
        number = core.submitted
        try:
            plan = _plan_of(core, read_job(manager.folder.job_file(number)))
        except WindrowError:
            return
        now = manager.now_s()
        manager.take_in(
            [Record(e.RunBegan(int(now)), at_s=now)]
        )  # what failed before was tried again in this job
        plan = _free(core, plan)
        if not plan.tasks:
            return
        manager.take_in([Record(e.JobsPlanned(int(now), Decision((plan,)), plan.site), at_s=now)])
        outpost = next(one for one in manager.outposts if number in one.placed)
        outpost.placed[number] = Placed(Tail(outpost.folder.events(number)))
        while manager.listen():
            pass


def _plan_of(core: Core, job: JobFile) -> JobPlan:
    """The job as it was planned, as far as its file tells."""
    run_s = max(1, ceil(sum(task.expected_s for task in job.tasks)))
    if job.walltime_s is None:
        requested_s = run_s
    else:
        requested_s = ceil(job.walltime_s)
    return JobPlan(
        tasks=tuple(task.task for task in job.tasks if task.task < len(core.job_of)),
        nodes=job.nodes,
        run_s=min(run_s, requested_s),
        requested_s=requested_s,
        site=job.site if len(core.sites) > 1 else "",
        part=job.shape if job.has_parts else None,
    )


def _free(core: Core, plan: JobPlan) -> JobPlan:
    """The plan without tasks that another job has, or that are done."""
    free = tuple(
        task for task in plan.tasks if core.job_of[task] is None and not core.is_done(task)
    )
    return replace(plan, tasks=free)
