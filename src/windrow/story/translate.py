"""From what the queue and the agents say to events of the run. Pure.

Rule 1: what a job's agent wrote is taken in before the job is said to be over, so that no finished
task is lost.
"""

from __future__ import annotations

import errno
import re
from dataclasses import replace
from typing import assert_never

from windrow.agent import event_file as agent
from windrow.model.attempt import DONE, NOTICED, OUT_OF_TIME, Attempt, Leaving
from windrow.model.cause import Cause
from windrow.queues.port import JobState, JobStatus
from windrow.story import events as e
from windrow.story.journal import Record

_SIGNALLED = 128  # exit codes from here on: a signal ended it
_NO_MEMORY = re.compile(
    r"oom[-_ ]kill|out[ -]of[ -]memory|exceeded \w* ?memory limit|\bv?mem \S+ exceeded limit", re.I
)
"""What batch systems write into the output of a job that they kill for the memory that it takes."""
_CAUSES = {
    JobState.CANCELLED: (Cause.CANCELLED, "it was cancelled by someone else"),
    JobState.NODE_FAILED: (Cause.NODE_FAILED, "a node failed"),
    JobState.PREEMPTED: (Cause.PREEMPTED, "it was preempted"),
    JobState.OUT_OF_MEMORY: (Cause.MEMORY, "it ran out of memory"),
    JobState.ENDED: (Cause.AGENT, "its agent ended with code"),
}


def from_agent(job: int, record: agent.Record) -> Record | None:
    """The event in a record of a job's agent; None if the run need not know."""
    event = _event(job, record)
    if event is None:
        return None
    return Record(event, _detail(record), record.at, _attempt(job, record))


def _detail(record: agent.Record) -> dict[str, object] | None:
    """What is known beside, of what is not an attempt."""
    match record:
        case agent.AgentStarted():
            return {
                "host": record.host,
                "pid": record.pid,
                "queue_id": record.queue_id,
                "hosts": record.hosts,
                "by_job": record.by_job,
            }
        case agent.CommitFailed():
            return {"file": record.file, "errno": record.errno}
    return None


def _attempt(job: int, record: agent.Record) -> Attempt | None:
    """The attempt of which the agent tells. If outputs are on its node alone it says in which job:
    that is true as long as this job has its nodes."""
    match record:
        case agent.AttemptFinished() if record.of.local:
            return replace(record.of, job=job)
        case agent.AttemptStarted() | agent.AttemptFinished() | agent.AttemptFailed():
            return record.of
        case agent.AttemptSaved():
            return Attempt(record.task, record.attempt)
        case agent.AttemptLost():
            lost = Attempt(record.task, why=record.why, cause=record.cause, job=job)
            return replace(lost, peak_bytes=record.used_bytes) if record.used_bytes else lost
        case agent.TaskDeclined():
            return Attempt(record.task, why=record.why)
        case agent.CommitFailed():
            return Attempt(record.task, cause=record.cause, job=job)
    return None


def _event(job: int, record: agent.Record) -> e.Event | None:
    at = int(record.at)
    match record:
        case agent.AgentStarted() if record.by_job is not None:
            return e.JobTaken(at, job, record.by_job, record.queue_id)
        case agent.AgentStarted():
            return e.JobStarted(at, job)
        case agent.AttemptStarted():
            return e.TaskStarted(at, job, record.task)
        case agent.AttemptFinished():
            return e.TaskFinished(at, record.task)
        case agent.AttemptFailed() if record.final:
            return e.TaskFailed(at, record.task)
        case agent.AttemptFailed():
            return e.TaskRetried(at, job, record.task)
        case agent.AttemptSaved():
            done_s = int(record.done_s)
            return e.TaskCheckpointed(at, job, record.task, done_s, record.ended, record.idle)
        case agent.AttemptLost():
            return _lost(job, record)
        case agent.TaskDeclined() if record.has_failed:
            return e.CopyFailed(at, job, record.task)
        case agent.TaskDeclined():
            return e.TaskDropped(at, job, record.task)
        case agent.OutputsCommitted():
            return e.FilesMoved(at, record.files, e.job_place(job), "", 0, 0.0, job)
        case agent.CommitFailed():
            return _refused(job, record)
        case agent.AgentLeft():
            return None
        case _:
            assert_never(record)


def _lost(job: int, record: agent.AttemptLost) -> e.Event | None:
    """What is to be known of a task that was lost; None if its job's end will tell."""
    at = int(record.at)
    match record.cause:
        case Cause.SPACE:
            return e.DiskRefused(at, job, record.task, record.why)
        case Cause.MEMORY:
            return e.TaskDropped(
                at, job, record.task, lacks_memory=True, used_bytes=record.used_bytes
            )
        case Cause.SUPERSEDED | Cause.VOLUME | Cause.DISMISSED:
            return e.TaskDropped(at, job, record.task)
    return None


def _refused(job: int, record: agent.CommitFailed) -> e.DiskRefused:
    if record.errno in errno.errorcode:
        number = f" ({errno.errorcode[record.errno]})"
    else:
        number = ""
    why = (
        f"its output {record.file} cannot be copied from its node to the shared folder: "
        f"{record.why}{number}"
    )
    return e.DiskRefused(
        int(record.at), job, record.task, why, is_final=record.cause != Cause.SPACE
    )


def from_given_up(job: int, record: agent.Record) -> Record | None:
    """The same of a job that was given up: all that counts is what it finished, and is not on its
    nodes alone."""
    counts = isinstance(record, agent.AttemptFinished) and not record.of.local
    if counts:
        heard = from_agent(job, record)
    else:
        heard = None
    if heard is None:
        return None
    assert heard.attempt is not None
    assert isinstance(heard.event, e.TaskFinished)
    event = replace(heard.event, by=job)
    return replace(heard, event=event, attempt=replace(heard.attempt, job=job))


def is_given_up(record: Record) -> bool:
    """Whether a job is over of which no agent said that it leaves: one may still work."""
    detail = record.detail or {}
    return isinstance(record.event, e.JobKilled | e.JobEnded) and detail.get("agent", "") is None


def end_s(ended_s: float | None, alive_s: float) -> float:
    """When a job ended: by the queue's accounts, else at the last sign of life of its agent.

    Some queues count whole seconds: within such a second it was its agent's last sign of life.
    """
    if ended_s is None or ended_s < alive_s < ended_s + 1:
        return alive_s
    return ended_s


def _forgotten(job: int, at_s: float, *, was_asked: bool, last_word: Leaving | None) -> Record:
    """The event of a job that the queue no longer knows."""
    detail: dict[str, object] = {"state": "forgotten", "agent": last_word}
    if was_asked or last_word == DONE:
        return Record(e.JobEnded(int(at_s), job), detail, at_s)
    if last_word == OUT_OF_TIME:
        cause = Cause.TIME_LIMIT
    else:
        cause = Cause.LOST
    killed = e.JobKilled(int(at_s), job, why="the queue no longer knows it", cause=cause)
    return Record(killed, detail, at_s)


def ending(
    job: int,
    status: JobStatus | None,
    alive_s: float,
    *,
    was_asked: bool,
    last_word: Leaving | None,
    printed: str = "",
) -> Record:
    """The event of a job that is over.

    `status` is None if the queue no longer knows it. `last_word` is what its agent said when it
    left; None if it said nothing. `alive_s` is when the job was last known to run. `printed`:
    the end of the job's output, if its agent said nothing: there the batch system may have said
    why it killed it.
    """
    at_s = end_s(None if status is None else status.ended_s, alive_s)
    if last_word is not None and (node := last_word.lost_node):
        killed = e.JobKilled(int(at_s), job, Cause.NODE_FAILED, last_word.words, node)
        return Record(killed, {"state": "node lost", "agent": last_word}, at_s)
    if status is None:
        return _forgotten(job, at_s, was_asked=was_asked, last_word=last_word)
    event: e.JobEvent = e.JobEnded(int(at_s), job)
    if not _has_ended_well(status, last_word, was_asked=was_asked):
        event = _killed(int(at_s), job, status, last_word, printed)
    detail: dict[str, object] = {
        "state": str(status.state),
        "reason": status.reason,
        "exit_code": status.exit_code,
        "agent": last_word,
    }
    return Record(event, detail, at_s)


def _has_ended_well(status: JobStatus, last_word: Leaving | None, *, was_asked: bool) -> bool:
    """Whether it ended by itself, or because it was asked to."""
    if status.state is JobState.TIMED_OUT or last_word in (OUT_OF_TIME, NOTICED):
        return False
    if status.state is not JobState.ENDED:
        return was_asked
    code = status.exit_code or 0
    has_failed = last_word is not None and 0 < code < _SIGNALLED  # by itself, and said why
    return code == 0 or (was_asked and not has_failed)


def _why_killed(status: JobStatus, last_word: Leaving | None, printed: str) -> tuple[Cause, str]:
    """What ended a job before its time; `printed` is the end of its output."""
    if status.state is JobState.TIMED_OUT or last_word == OUT_OF_TIME:
        return Cause.TIME_LIMIT, "its time was up"
    if last_word == NOTICED:
        return _CAUSES[JobState.PREEMPTED]
    if last_word is None and (said := _no_memory(printed)):
        cause, why = _CAUSES[JobState.OUT_OF_MEMORY]
        return cause, f"{why}: {said}"
    other = (Cause.CANCELLED, f"the queue killed it ({status.reason or 'no reason given'})")
    cause, why = _CAUSES.get(status.state, other)
    if status.state is JobState.ENDED:
        why = f"{why} {status.exit_code}"
        if last_word:
            why = f"{why}: {last_word.words}"
    return cause, why


def _no_memory(printed: str) -> str:
    """The last line that says that memory ran out; empty if none does."""
    return next(
        (line.strip() for line in reversed(printed.splitlines()) if _NO_MEMORY.search(line)), ""
    )


def _blamed(cause: Cause, hosts: tuple[str, ...], last_word: Leaving | None) -> str:
    """The node that failed the job, if it can be told: an agent that fell silent was on the
    first one.

    One that was still told to stop was not on the node that failed; that is known only if there
    was one other.
    """
    if cause not in (Cause.NODE_FAILED, Cause.AGENT) or not hosts:
        return ""
    if last_word is None:
        return hosts[0]
    if cause is Cause.NODE_FAILED and len(hosts) == 2:
        return hosts[1]
    return ""


def _killed(
    at: int, job: int, status: JobStatus, last_word: Leaving | None, printed: str
) -> e.JobKilled:
    cause, why = _why_killed(status, last_word, printed)
    return e.JobKilled(at, job, cause, why, _blamed(cause, status.hosts, last_word))
