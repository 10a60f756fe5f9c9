"""A run as programs see it: the one typed view behind `--json` of status, runs, tasks, report and explain, and pages.

Field names are the keys of the JSON objects, in their order.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import Struct

from windrow.app.runs import RunView, sites_of
from windrow.manager.figures import RecordedRun, data_node_s, node_time, queue_waits_s, visible_wait_s
from windrow.manager.states import RunState, TaskState
from windrow.manager.story import JobStory
from windrow.model.wording import listed
from windrow.report.run.details import failed_attempts
from windrow.report.run.standing import left_s, missed_by_s, warnings
from windrow.report.run.starts import past


class TaskCounts(Struct):
    """How many tasks a run has, and how many are in each state; `kept` had finished in the run that it continues."""

    total: int
    finished: int
    running: int
    submitted: int
    pending: int
    failed: int
    blocked: int
    kept: int


class JobView(Struct):
    """A job of a run."""

    job: int
    id: str | None
    state: str
    nodes: int
    requested_s: int | None
    tasks: list[str]
    copies: list[str]
    submitted_s: float | None
    started_s: float | None
    ended_s: float | None
    why: str
    cause: str | None
    reason: str
    taken_by: int | None
    site: str = ""


class StatusView(Struct):
    """How a run stands."""

    run: str
    folder: str
    state: str
    continues: str | None
    continued_by: str | None
    strategy: str
    queue: str
    tasks: TaskCounts
    begun_s: float | None
    left_s: float | None
    last_s: float
    deadline_s: float | None
    missed_deadline_by_s: float | None
    trouble: str
    avoided_nodes: list[dict[str, Any]]
    warnings: list[str]
    failed_tasks: list[str]
    jobs: list[JobView]


class TaskView(Struct):
    """A task of a run, with the attempt that finished it, else its latest, where there was one."""

    task: str
    kind: str
    state: TaskState
    job: int | None
    attempts: int
    started_s: float | None = None
    ended_s: float | None = None
    ran_s: float | None = None
    exit: int | None = None
    signal: int | None = None
    why: str = ""
    peak_bytes: int | None = None
    cpu_s: float | None = None
    output: str | None = None
    sizes: dict[str, int] | None = None


class StartView(Struct):
    """What a forecaster said of a job's start, and when it came."""

    job: int
    source: str
    predicted_s: float
    started_s: float | None


class ReportView(Struct):
    """A run in figures, and where its page is."""

    run: str
    state: str
    page: str
    crate: str | None
    tasks: int
    finished: int
    jobs: int
    took_s: float
    visible_wait_s: float
    queue_wait_s: float
    hidden_wait_s: float
    held_node_s: float
    useful_node_s: float
    lost_node_s: float
    copies_node_s: float
    data_node_s: float
    failed_attempts: int
    predictions: list[StartView]


class ExplanationView(Struct):
    """Why a task or job is where it is: in short, and in full."""

    run: str
    what: str
    answer: Sequence[str]
    lines: Sequence[str]


def status_view(told: RunView) -> StatusView:
    """How the run stands now."""
    story, facts, now_s, ids = told.story, told.facts, time.time(), told.runnable.workflow.ids
    is_running = told.state == RunState.RUNNING
    return StatusView(
        run=told.paths.name,
        folder=str(told.paths.folder.path),
        state=told.state,
        continues=facts.get("continues"),
        continued_by=facts.get("continued_by"),
        strategy=facts["strategy"],
        queue=sites_of(facts),
        tasks=TaskCounts(len(story.tasks), **{state.value: story.count(state) for state in TaskState}, kept=story.kept),
        begun_s=story.begun_s,
        left_s=left_s(told, now_s) if is_running else None,
        last_s=story.last_s,
        deadline_s=facts.get("deadline_s"),
        missed_deadline_by_s=missed_by_s(told, now_s if is_running else story.last_s),
        trouble=story.trouble,
        avoided_nodes=[asdict(node) for node in story.avoidance.at(now_s)],
        warnings=warnings(told),
        failed_tasks=[ids[i] for i, task in enumerate(story.tasks) if task.state is TaskState.FAILED],
        jobs=[_job_view(number, job, ids) for number, job in sorted(story.jobs.items())],
    )


def _job_view(number: int, job: JobStory, ids: Sequence[str]) -> JobView:
    return JobView(
        job=number,
        id=job.id,
        state=job.state,
        nodes=job.plan.nodes,
        requested_s=job.limit_s,
        tasks=[ids[task] for task in job.plan.tasks],
        copies=[ids[task] for task in job.plan.copies],
        submitted_s=job.submitted_s,
        started_s=job.started_s,
        ended_s=job.ended_s,
        why=job.why,
        cause=job.cause or None,
        reason=job.reason,
        taken_by=job.taken_by,
        site=job.plan.site,
    )


def task_views(told: RunView) -> Iterator[TaskView]:
    """All that is told of each task, in the order of the workflow."""
    workflow, now_s = told.runnable.workflow, time.time()
    for number, task in enumerate(told.story.tasks):
        view = TaskView(
            task=workflow.ids[number],
            kind=workflow.kinds[number],
            state=task.state,
            job=task.job,
            attempts=len(task.attempts),
            why=_why(told, number),
        )
        if task.sizes:
            files = [workflow.files[f].id for f in workflow.outputs.of(number).tolist()]
            view.sizes = dict(zip(files, task.sizes, strict=False))
        if (last := task.last) is not None:
            view.job, view.started_s, view.ended_s = last.job, last.started_s, last.ended_s
            view.ran_s = (last.ended_s or now_s) - last.started_s
            view.exit, view.signal, view.peak_bytes, view.cpu_s = last.exit, last.signal, last.peak_bytes, last.cpu_s
            out = told.paths.folder.task_out(number, last.number)
            view.output = str(out) if out.exists() else None
        yield view


def _why(told: RunView, number: int) -> str:
    task, workflow = told.story.tasks[number], told.runnable.workflow
    if task.state is TaskState.BLOCKED:
        parents = workflow.parents.of(number).tolist()
        out = (TaskState.FAILED, TaskState.BLOCKED)
        return f"needs {listed([workflow.ids[p] for p in parents if told.story.tasks[p].state in out], 3)}"
    if task.kept is not None:
        return f"finished in {task.kept.run}"
    return task.last.why if task.last is not None else ""


def report_view(run: RecordedRun, page: Path, crate: str | None) -> ReportView:
    """The run in figures."""
    story, used = run.story, node_time(run)
    waited_s, hidden_s = queue_waits_s(run)
    return ReportView(
        run=run.name,
        state=run.state,
        page=str(page.absolute()),
        crate=None if crate is None else str(Path(crate).absolute()),
        tasks=len(story.tasks),
        finished=story.count(TaskState.FINISHED),
        jobs=len(story.jobs),
        took_s=run.makespan_s,
        visible_wait_s=visible_wait_s(run),
        queue_wait_s=waited_s,
        hidden_wait_s=hidden_s,
        held_node_s=used.held_s,
        useful_node_s=used.used_s,
        lost_node_s=used.lost_s,
        copies_node_s=used.copies_s,
        data_node_s=data_node_s(run),
        failed_attempts=len(failed_attempts(run)),
        predictions=[StartView(int(p.tag), p.source, p.predicted_s, p.started_s) for p in past(run)],
    )
