"""A run as programs see it: what `--json` of status, runs, tasks and report prints."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import Struct

from windrow.app.runs import RunView, sites_of
from windrow.manager.figures import RecordedRun, data_node_s, node_time, queue_waits_s, visible_wait_s
from windrow.manager.node_files import data_by_role, space_on_nodes
from windrow.manager.states import RunState, TaskState
from windrow.manager.story import JobStory
from windrow.model.wording import listed
from windrow.report.run.details import failed_attempts
from windrow.report.run.starts import past

_COUNTED = ("finished", "running", "submitted", "pending", "failed", "blocked")


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


def status_view(told: RunView) -> dict[str, Any]:
    """How the run stands now."""
    story, facts, now_s, ids = told.story, told.facts, time.time(), told.runnable.workflow.ids
    is_running, counts = told.state == RunState.RUNNING, {state.value: story.count(state) for state in TaskState}
    return {
        "run": told.paths.name,
        "folder": str(told.paths.folder.path),
        "state": told.state,
        "continues": facts.get("continues"),
        "continued_by": facts.get("continued_by"),
        "strategy": facts["strategy"],
        "queue": sites_of(facts),
        "tasks": {"total": len(story.tasks), **{name: counts[name] for name in _COUNTED}, "kept": story.kept},
        "begun_s": story.begun_s,
        "left_s": told.left_s(now_s) if is_running else None,
        "last_s": story.last_s,
        "deadline_s": facts.get("deadline_s"),
        "missed_deadline_by_s": told.missed_by_s(now_s if is_running else story.last_s),
        "trouble": story.trouble,
        "avoided_nodes": [asdict(node) for node in story.avoidance.at(now_s)],
        "warnings": told.warnings(),
        "failed_tasks": [ids[i] for i, task in enumerate(story.tasks) if task.state is TaskState.FAILED],
        "jobs": [_job_view(number, job, ids) for number, job in sorted(story.jobs.items())],
        **({"data": data} if (data := [asdict(role) for role in data_by_role(story)]) else {}),
    }


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
    return told | {"cause": job.cause or None, "reason": job.reason, "taken_by": job.taken_by, "site": job.plan.site}


def task_views(told: RunView) -> Iterator[TaskView]:
    """All that is told of each task, in the order of the workflow."""
    workflow, now_s = told.runnable.workflow, time.time()
    for number, task in enumerate(told.story.tasks):
        view = TaskView(workflow.ids[number], workflow.kinds[number], task.state, task.job, len(task.attempts))
        view.why = _why(told, number)
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


def report_view(run: RecordedRun, page: Path, crate: str | None) -> dict[str, Any]:
    """The run in figures, and where its page is."""
    story, used, data = run.story, node_time(run), [asdict(role) for role in data_by_role(run.story)]
    waited_s, hidden_s = queue_waits_s(run)
    return {
        "run": run.name,
        "state": run.state,
        "page": str(page.absolute()),
        "crate": None if crate is None else str(Path(crate).absolute()),
        "tasks": len(story.tasks),
        "finished": story.count(TaskState.FINISHED),
        "jobs": len(story.jobs),
        "took_s": run.makespan_s,
        "visible_wait_s": visible_wait_s(run),
        "queue_wait_s": waited_s,
        "hidden_wait_s": hidden_s,
        "held_node_s": used.held_s,
        "useful_node_s": used.used_s,
        "lost_node_s": used.lost_s,
        "copies_node_s": used.copies_s,
        "data_node_s": data_node_s(run),
        "failed_attempts": len(failed_attempts(run)),
        "predictions": [
            {"job": int(p.tag), "source": p.source, "predicted_s": p.predicted_s, "started_s": p.started_s}
            for p in past(run)
        ],
        **({"data": data, "node_bytes": space_on_nodes(run)} if data else {}),
    }
