"""A run as programs see it: what `--json` of status, runs, tasks and report prints."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from windrow.app.runs import RunView
from windrow.forecast.ledger import PastPrediction
from windrow.model.wording import listed
from windrow.report.run.details import failed_attempts
from windrow.report.run.starts import past
from windrow.storage.timeline import peak
from windrow.story.figures import (
    RecordedRun,
    data_node_s,
    node_time,
    queue_waits_s,
    visible_wait_s,
)
from windrow.story.node_files import data_by_role, space_on_nodes
from windrow.story.space import taken
from windrow.story.states import RunState, TaskState
from windrow.story.story import JobStory, RunStory, TaskAttempt, TaskStory

if TYPE_CHECKING:
    from windrow.trials.replay import WhatIf

_COUNTED = ("finished", "running", "submitted", "pending", "failed", "blocked", "cancelled")


class TaskView(Struct):
    """A task of a run, with the attempt that finished it, else its latest, if there was one."""

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


def status_view(told: RunView) -> dict[str, Any]:
    """How the run stands now."""
    story = told.story
    facts = told.facts
    ids = told.runnable.workflow.ids
    now_s = time.time()
    until_s = story.last_s
    left_s = None
    if told.state == RunState.RUNNING:
        until_s = now_s
        left_s = told.left_s(now_s)
    view = {
        "run": told.paths.name,
        "folder": str(told.paths.folder.path),
        "state": told.state,
        "continues": facts.continues,
        "continued_by": facts.continued_by,
        "strategy": facts.request.strategy,
        "queue": facts.on,
        "tasks": _counts(story),
        "begun_s": story.begun_s,
        "left_s": left_s,
        "last_s": story.last_s,
        "deadline_s": facts.request.deadline_s,
        "missed_deadline_by_s": told.missed_by_s(until_s),
        "trouble": story.trouble,
        "held_by": story.held.who if story.held else None,
        "kept_node_s": story.kept_node_s,
        "node_time": _node_time(told.recorded(until_s)),
        "avoided_nodes": [asdict(node) for node in story.avoidance.at(now_s)],
        "warnings": told.warnings(),
        "failed_tasks": [
            ids[i] for i, task in enumerate(story.tasks) if task.state is TaskState.FAILED
        ],
        "jobs": [_job_view(number, job, ids) for number, job in sorted(story.jobs.items())],
        **_space(told.recorded(until_s)),
    }
    data = [asdict(role) for role in data_by_role(story)]
    if data:
        view["data"] = data
    return view


def _counts(story: RunStory) -> dict[str, int]:
    """How many tasks there are, and in which states."""
    counts = {state.value: story.count(state) for state in TaskState}
    of_states = {name: counts[name] for name in _COUNTED}
    return {"total": len(story.tasks), **of_states, "kept": story.kept}


def _space(run: RecordedRun) -> dict[str, Any]:
    """The limit on space, the most that files took, and whether that was more; nothing without a
    limit."""
    if run.space is None:
        return {}
    most = peak(taken(run))
    return {
        "space": {
            "limit_bytes": run.space.size,
            "most_bytes": most,
            "is_exceeded": most > run.space.size,
        }
    }


def _node_time(run: RecordedRun) -> dict[str, float | None]:
    """Where the nodes' time went."""
    spent = node_time(run)
    return {**spent.parts(), "cpu_s": spent.cpu_s, "cpu_efficiency": spent.cpu_efficiency}


def _job_view(number: int, job: JobStory, ids: Sequence[str]) -> dict[str, Any]:
    tasks, copies = ([ids[task] for task in some] for some in (job.plan.tasks, job.plan.copies))
    told: dict[str, Any] = {
        "job": number,
        "id": job.id,
        "state": job.state,
        "nodes": job.plan.nodes,
        "requested_s": job.limit_s,
    }
    told |= {"tasks": tasks, "copies": copies}
    told |= {name: getattr(job, name) for name in ("submitted_s", "started_s", "ended_s", "why")}
    return told | {
        "cause": job.cause or None,
        "reason": job.reason,
        "taken_by": job.taken_by,
        "site": job.plan.site,
    }


def task_views(told: RunView) -> Iterator[TaskView]:
    """All that is told of each task, in the order of the workflow."""
    now_s = time.time()
    for number, task in enumerate(told.story.tasks):
        yield _task_view(told, number, task, now_s)


def _task_view(told: RunView, number: int, task: TaskStory, now_s: float) -> TaskView:
    workflow = told.runnable.workflow
    view = TaskView(
        workflow.ids[number], workflow.kinds[number], task.state, task.job, len(task.attempts)
    )
    view.why = _why(told, number)
    if task.sizes:
        files = [workflow.files[f].id for f in workflow.outputs.of(number).tolist()]
        view.sizes = dict(zip(files, task.sizes, strict=False))
    if task.last is not None:
        _tell_attempt(view, task.last, now_s)
        out = told.paths.folder.task_out(number, task.last.number)
        view.output = str(out) if out.exists() else None
    return view


def _tell_attempt(view: TaskView, last: TaskAttempt, now_s: float) -> None:
    """What is told of a task's last attempt."""
    view.job = last.job
    view.started_s = last.started_s
    view.ended_s = last.ended_s
    view.ran_s = (last.ended_s or now_s) - last.started_s
    view.exit = last.exit
    view.signal = last.signal
    view.peak_bytes = last.peak_bytes
    view.cpu_s = last.cpu_s


def _why(told: RunView, number: int) -> str:
    task = told.story.tasks[number]
    workflow = told.runnable.workflow
    if task.state is TaskState.BLOCKED:
        parents = workflow.parents.of(number).tolist()
        out = [workflow.ids[p] for p in parents if told.story.tasks[p].state.is_never]
        return f"needs {listed(out, 3)}"
    if task.kept is not None:
        return f"finished in {task.kept.run}"
    if task.last is not None:
        return task.last.why
    return ""


def report_view(
    run: RecordedRun, page: Path, crate: str | None, what_if: WhatIf | None = None
) -> dict[str, Any]:
    """The run in figures, and where its page is."""
    if crate is not None:
        crate = str(Path(crate).absolute())
    view = {**run_figures(run), "page": str(page.absolute()), "crate": crate}
    if what_if is not None:
        view["what_if"] = [asdict(one) for one in what_if.by_makespan]
    return view


def _prediction(p: PastPrediction) -> dict[str, Any]:
    return {
        "job": int(p.tag),
        "source": p.source,
        "predicted_s": p.predicted_s,
        "started_s": p.started_s,
    }


def run_figures(run: RecordedRun) -> dict[str, Any]:
    """The run in figures."""
    story = run.story
    waited_s, hidden_s = queue_waits_s(run)
    view = {
        "run": run.name,
        "state": run.state,
        "tasks": len(story.tasks),
        "finished": story.count(TaskState.FINISHED),
        "jobs": len(story.jobs),
        "took_s": run.makespan_s,
        "visible_wait_s": visible_wait_s(run),
        "queue_wait_s": waited_s,
        "hidden_wait_s": hidden_s,
        **_node_time(run),
        "copies_node_s": node_time(run).copies_s,
        "data_node_s": data_node_s(run),
        **_space(run),
        "failed_attempts": len(failed_attempts(run)),
        "predictions": [*map(_prediction, past(run))],
    }
    data = [asdict(role) for role in data_by_role(story)]
    if data:
        view["data"] = data
        view["node_bytes"] = space_on_nodes(run)
    return view
