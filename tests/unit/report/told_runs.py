"""Runs to tell of, made from events as a journal would hold them."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.model import Task, Workflow
from windrow.model.attempt import Attempt
from windrow.story import events as e
from windrow.story.figures import RecordedRun
from windrow.story.journal import PredictedStart, Record
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan


def told(
    workflow: Workflow,
    records: Sequence[Record],
    *,
    until_s: float,
    state: str = "running",
    predictions: Sequence[PredictedStart] = (),
    cores: int = 1,
) -> RecordedRun:
    """The run that these records tell."""
    story = RunStory.of(workflow, records)
    return RecordedRun("toy-1", state, "glume", "local", story, predictions, until_s, cores)


def recorded(story: RunStory) -> RecordedRun:
    """The run of this story."""
    return RecordedRun("toy-1", "running", "glume", "local", story, (), story.last_s)


def independent(count: int, *, kind: str = "work", cores: int = 1) -> Workflow:
    """So many tasks that do not depend on each other, a minute each."""
    return Workflow.from_tasks(
        "toy", [Task(f"t{i}", 60.0, kind=kind, cores=cores) for i in range(count)]
    )


def planned(at_s: float, *plans: JobPlan, why: str = "") -> Record:
    """A decision for these jobs."""
    return Record(
        e.JobsPlanned(int(at_s), Decision(tuple(plans), why=why)), {"forecast": "twin"}, at_s
    )


def submitted(at_s: float, job: int) -> Record:
    """The queue took the job."""
    return Record(e.JobSubmitted(int(at_s), job, f"q{job}"), at_s=at_s)


def started(at_s: float, job: int) -> Record:
    """The job got its nodes."""
    return Record(e.JobStarted(int(at_s), job), {"hosts": ["here"]}, at_s)


def ended(at_s: float, job: int) -> Record:
    """The job gave them back."""
    return Record(e.JobEnded(int(at_s), job), at_s=at_s)


def task_started(at_s: float, job: int, task: int, *nodes: int) -> Record:
    """A task began, on the first node unless said otherwise."""
    return Record(
        e.TaskStarted(int(at_s), job, task), None, at_s, Attempt(task, nodes=nodes or (0,))
    )


def finished(at_s: float, task: int, begun_s: float) -> Record:
    """A task has done its work."""
    return Record(
        e.TaskFinished(int(at_s), task),
        None,
        at_s,
        Attempt(task, begun=begun_s, cpu_s=0.5, peak_bytes=10**8),
    )


def failed(at_s: float, task: int, begun_s: float, tail: str = "") -> Record:
    """A task failed for good."""
    attempt = Attempt(task, exit=3, why="exit code 3", tail=tail, begun=begun_s)
    return Record(e.TaskFailed(int(at_s), task), None, at_s, attempt)


def one_job(tasks: int, nodes: int = 1, at_s: float = 1000.0) -> list[Record]:
    """A run begun at `at_s`, with all tasks in one job, submitted 5 s and started 15 s later."""
    plan = JobPlan(tuple(range(tasks)), nodes, 60, 120)
    begun = Record(e.RunBegan(int(at_s)), at_s=at_s)
    return [
        begun,
        planned(at_s, plan, why="it is small"),
        submitted(at_s + 5, 0),
        started(at_s + 15, 0),
    ]
