"""What a run leaves for those to come: how long its tasks took, how long its jobs waited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windrow.forecast.history import History, PastWait
from windrow.forecast.memory import Memory
from windrow.forecast.runtimes import PastRun, RunTimes
from windrow.manager import events as e
from windrow.manager.journal import Record
from windrow.model import Runnable


class Learning:
    """Hears what happens in a run. It keeps no more than it needs of jobs, and never stops the run."""

    def __init__(self, runnable: Runnable, queue: str, uid: str, past: Iterable[Record], waits: History | None) -> None:
        """`past` is what became of the run's jobs so far; it was learnt from when it happened."""
        self._runnable, self._uid = runnable, uid
        self._times: Memory[PastRun] = Memory(RunTimes().record, "run times")
        self._waits: Memory[PastWait] | None = None
        if waits is not None:
            self._waits = Memory(lambda found: waits.record(queue, found), "waits")
        self._sizes: list[tuple[int, int]] = []
        self._submitted_s: dict[int, float] = {}
        for record in past:
            self._hear(record)

    def __call__(self, records: Sequence[Record]) -> None:
        """Keep the run times of the tasks that finished, and the waits of the jobs that started."""
        self._times.keep([run for record in records if (run := self._past_run(record)) is not None])
        waits = [wait for record in records if (wait := self._hear(record)) is not None]
        if self._waits is not None:
            self._waits.keep(waits)

    def _hear(self, record: Record) -> PastWait | None:
        """Follow the jobs; the wait of the one that started, where one did."""
        match record.event:
            case e.JobsPlanned(decision=decision):
                self._sizes += [(plan.nodes, plan.requested_s) for plan in decision.jobs]
            case e.JobSubmitted(job=job):
                self._submitted_s[job] = record.at_s
            case e.JobStarted(job=job) if (submitted_s := self._submitted_s.pop(job, None)) is not None:
                return PastWait(f"{self._uid}-{job}", *self._sizes[job], submitted_s, record.at_s)
            case _:
                pass
        return None

    def _past_run(self, record: Record) -> PastRun | None:
        """How long the task took that finished, where one did."""
        if not isinstance(record.event, e.TaskFinished) or record.detail is None:
            return None
        workflow, task = self._runnable.workflow, record.event.task
        return PastRun(
            workflow.name,
            workflow.kinds[task],
            record.at_s - float(record.detail["begun"]),
            record.at_s,
            int(workflow.cores[task]),
            int(record.detail["peak_bytes"]),
        )
