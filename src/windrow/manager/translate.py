"""From what the queue and the agents say to events of the run. Pure.

Rule 1: what a job's agent wrote is taken in before the job is said to be over, so that no finished task is lost.
"""

from __future__ import annotations

from typing import assert_never

from windrow.agent import event_file as agent
from windrow.manager import events as e
from windrow.manager.journal import Record
from windrow.model.cause import Cause
from windrow.queues.port import JobState, JobStatus

_SIGNALLED = 128  # exit codes from here on: a signal ended it
_CAUSES = {
    JobState.CANCELLED: (Cause.CANCELLED, "it was cancelled by someone else"),
    JobState.NODE_FAILED: (Cause.NODE_FAILED, "a node failed"),
    JobState.PREEMPTED: (Cause.PREEMPTED, "it was preempted"),
    JobState.OUT_OF_MEMORY: (Cause.MEMORY, "it ran out of memory"),
    JobState.ENDED: (Cause.AGENT, "its agent ended with code"),
}


def from_agent(job: int, record: agent.Record) -> Record | None:
    """The event in a record of a job's agent; None where the run need not know."""
    at = int(record.at)
    event: e.Event
    match record:
        case agent.AgentStarted() if record.by_job is not None:
            event = e.JobTaken(at, job, record.by_job, record.queue_id)
        case agent.AgentStarted():
            event = e.JobStarted(at, job)
        case agent.AttemptStarted():
            event = e.TaskStarted(at, job, record.task)
        case agent.AttemptFinished():
            event = e.TaskFinished(at, record.task)
        case agent.OutputsCommitted():
            return Record(e.FilesMoved(at, record.files, e.job_place(job), "", 0, 0.0), None, record.at)
        case agent.AttemptFailed():
            event = e.TaskFailed(at, record.task) if record.final else e.TaskRetried(at, job, record.task)
        case agent.TaskDeclined() if record.why == agent.FAILED_HERE:
            event = e.CopyFailed(at, job, record.task)
        case agent.AttemptSaved():
            event = e.TaskCheckpointed(at, job, record.task, int(record.done_s), record.ended, record.idle)
        case agent.AttemptLost() if record.cause not in (Cause.SUPERSEDED, Cause.VOLUME):
            return None
        case agent.TaskDeclined() | agent.AttemptLost():
            event = e.TaskDropped(at, job, record.task)
        case agent.AgentLeft():
            return None
        case _:
            assert_never(record)
    # asdict() would copy deeply, which was a third of what the manager did while tasks were short
    detail = {name: getattr(record, name) for name in record.__slots__ if name not in ("at", "task", "final")}
    for name in agent.SELDOM:
        if not detail.get(name, True):
            del detail[name]
    if "local" in detail:  # which is true as long as this job has its nodes
        detail["job"] = job
    return Record(event, detail, record.at)


def from_given_up(job: int, record: agent.Record) -> Record | None:
    """The same of a job that was given up: all that counts is what it finished, and is not on its nodes alone."""
    counts = isinstance(record, agent.AttemptFinished) and not record.local
    heard = from_agent(job, record) if counts else None
    return None if heard is None else Record(heard.event, {**(heard.detail or {}), "job": job}, heard.at_s)


def is_given_up(record: Record) -> bool:
    """Whether a job is over of which no agent said that it leaves: one may still work."""
    detail = record.detail or {}
    return isinstance(record.event, e.JobKilled | e.JobEnded) and detail.get("agent", "") is None


def ending(job: int, status: JobStatus | None, at_s: float, *, was_asked: bool, last_word: str | None) -> Record:
    """The event of a job that is over.

    `status` is None where the queue no longer knows it. `last_word` is what its agent said when it left; None where it
    said nothing.
    """
    if node := agent.lost_node(last_word):
        killed = e.JobKilled(int(at_s), job, why=str(last_word), cause=Cause.NODE_FAILED, node=node)
        return Record(killed, {"state": "node lost", "agent": last_word}, at_s)
    if status is None:
        detail: dict[str, object] = {"state": "forgotten", "agent": last_word}
        if was_asked or last_word == agent.DONE:
            return Record(e.JobEnded(int(at_s), job), detail, at_s)
        cause = Cause.TIME_LIMIT if last_word == agent.OUT_OF_TIME else Cause.LOST
        return Record(e.JobKilled(int(at_s), job, why="the queue no longer knows it", cause=cause), detail, at_s)
    at = status.ended_s if status.ended_s is not None else at_s
    detail = {"state": str(status.state), "reason": status.reason, "exit_code": status.exit_code, "agent": last_word}
    if status.state is JobState.TIMED_OUT or last_word == agent.OUT_OF_TIME:
        return Record(e.JobKilled(int(at), job, why="its time was up", cause=Cause.TIME_LIMIT), detail, at)
    if last_word == agent.NOTICED:
        return Record(e.JobKilled(int(at), job, why=_CAUSES[JobState.PREEMPTED][1], cause=Cause.PREEMPTED), detail, at)
    code = (status.exit_code or 0) if status.state is JobState.ENDED else None
    has_failed = last_word is not None and 0 < (code or 0) < _SIGNALLED  # by itself, and said why
    if code == 0 or (was_asked and not has_failed):
        return Record(e.JobEnded(int(at), job), detail, at)
    other = (Cause.CANCELLED, f"the queue killed it ({status.reason or 'no reason given'})")
    cause, why = _CAUSES.get(status.state, other)
    if status.state is JobState.ENDED:
        why = f"{why} {status.exit_code}" + (f": {last_word}" if last_word else "")
    killed = e.JobKilled(int(at), job, why=why, cause=cause, node=_blamed(cause, status.hosts, last_word))
    return Record(killed, detail, at)


def _blamed(cause: Cause, hosts: tuple[str, ...], last_word: str | None) -> str:
    """The node that failed the job, where it can be told: an agent that fell silent was on the first one.

    One that was still told to stop was not on the node that failed; that is known only where there was one other.
    """
    if cause not in (Cause.NODE_FAILED, Cause.AGENT) or not hosts:
        return ""
    if last_word is None:
        return hosts[0]
    return hosts[1] if cause is Cause.NODE_FAILED and len(hosts) == 2 else ""
