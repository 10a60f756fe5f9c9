"""What a run learns, for itself and for those to come: how long its tasks took, how long its jobs
waited, what became of them, and how good its look ahead was."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.agent.order import HOME, NODES
from windrow.errors import WindrowError
from windrow.forecast.best_effort import Remembered
from windrow.forecast.failures import Lives
from windrow.forecast.ledger import Promise
from windrow.forecast.runtimes import (
    FETCHING,
    FilledTime,
    PastRun,
    RunTimes,
    TimeSource,
    output_kind,
)
from windrow.forecast.waits import History, PastWait
from windrow.manager.beliefs import names_at
from windrow.manager.dispatch import Dispatch
from windrow.model import Runnable, Task
from windrow.model.attempt import Attempt
from windrow.queues.port import Life
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.strategies import Decision
from windrow.strategies.base import JobPlan
from windrow.strategies.levels import Work

FEW_TASKS = 5
"""Tasks that must be done before their errors tell more than those of earlier runs."""
ERRORS_KEPT = 100
_TELLING_BYTES = 1 << 20


class LearningPlace(NamedTuple):
    """Where jobs run: the name under which their waits are kept, and how fast tasks run there."""

    name: str
    speed: float = 1.0


class Learning:
    """Hears what happens in a run. It keeps no more than it needs of jobs, and never stops the
    run."""

    def __init__(
        self,
        dispatch: Dispatch,
        places: Mapping[str, LearningPlace],
        past: Iterable[Record],
        waits: History | None,
    ) -> None:
        """`past` is what became of the run's jobs so far; it was learned from when it happened.

        `places` are by the name of the site in a job's plan.
        """
        self._dispatch = dispatch
        self._places = places
        self._first = next(iter(places.values()))
        self._times: Remembered[PastRun] = Remembered(RunTimes().record, "run times")
        self._waits: dict[str, Remembered[PastWait]] = {}
        self._lives: dict[str, Remembered[Life]] = {}
        if waits is not None:
            self._waits = {
                p.name: Remembered(partial(waits.record, p.name), "waits") for p in places.values()
            }
            self._lives = {
                n: Remembered(partial(Lives(waits.path).record, n), "losses") for n in self._waits
            }
        self._plans: list[tuple[int, int, LearningPlace]] = []
        self._ran_at: dict[int, LearningPlace] = {}
        self._submitted_s: dict[int, float] = {}
        self._started_s: dict[int, float] = {}
        for record in past:
            self._hear(record)

    def __call__(self, records: Sequence[Record]) -> None:
        """Keep the run times of tasks that finished, the waits of jobs that started, and what
        became of those."""
        heard = [wait for record in records if (wait := self._hear(record)) is not None]
        self._times.keep([run for record in records for run in self._past_runs(record)])
        over = [life for record in records if (life := self._life(record)) is not None]
        for place, memory in self._waits.items():
            memory.keep([wait for name, wait in heard if name == place])
            self._lives[place].keep([life for name, life in over if name == place])

    def _note_plans(self, plans: Sequence[JobPlan]) -> None:
        for plan in plans:
            place = self._places[plan.site]
            self._plans.append((plan.nodes, plan.requested_s, place))
            if len(self._places) > 1:
                self._ran_at |= dict.fromkeys(plan.tasks, place)

    def _hear(self, record: Record) -> tuple[str, PastWait] | None:
        """Follow the jobs; the wait of the one that started, if one did, and in which place."""
        match record.event:
            case e.JobsPlanned(decision=decision):
                self._note_plans(decision.jobs)
            case e.JobSubmitted(job=job):
                self._submitted_s[job] = record.at_s
            case e.JobStarted(job=job) if (
                self._started_s.setdefault(job, record.at_s)
                and (submitted_s := self._submitted_s.pop(job, None)) is not None
            ):
                nodes, requested_s, place = self._plans[job]
                tag = self._dispatch.tag(job)
                return place.name, PastWait(tag, nodes, requested_s, submitted_s, record.at_s)
            case _:
                pass
        return None

    def _life(self, record: Record) -> tuple[str, Life] | None:
        """For how long a job that is over had its nodes, and what ended it, and in which place."""
        if (
            not isinstance(event := record.event, e.JobEnded | e.JobKilled)
            or event.job not in self._started_s
        ):
            return None
        nodes, _, place = self._plans[event.job]
        cause, node = (event.cause, event.node) if isinstance(event, e.JobKilled) else (None, "")
        span = self._started_s.pop(event.job), record.at_s
        return place.name, Life(self._dispatch.tag(event.job), nodes, *span, cause, (), node)

    def _past_runs(self, record: Record) -> Iterator[PastRun]:
        """How long the task took that finished, if one did, or would have taken at a site of the
        usual speed; and what it made and fetched."""
        attempt = record.attempt
        if not isinstance(record.event, e.TaskFinished) or attempt is None:
            return
        workflow = self._dispatch.runnable.workflow
        task = record.event.task
        run = PastRun(
            workflow.name,
            workflow.kinds[task],
            _took_s(attempt, record.at_s) * self._ran_at.get(task, self._first).speed,
            record.at_s,
            int(workflow.cores[task]),
            attempt.peak_bytes,
        )
        yield run
        yield from _past_sizes(attempt, run)
        yield from _past_fetches(attempt, run)


def _past_sizes(attempt: Attempt, run: PastRun) -> list[PastRun]:
    """Sizes of what a task made, kept as run times are."""
    return [
        replace(run, kind=output_kind(run.kind, at), runtime_s=float(size))
        for at, size in enumerate(attempt.sizes)
        if size
    ]


def _past_fetches(attempt: Attempt, run: PastRun) -> list[PastRun]:
    """How long a task waited for a GB of what came to its node for it, if that was enough to
    tell."""
    came = sum(size for _, link, size in attempt.moved if link in (HOME, NODES))
    if attempt.fetch_s and came >= _TELLING_BYTES:
        return [replace(run, kind=FETCHING, runtime_s=attempt.fetch_s * 1e9 / came)]
    return []


def _took_s(attempt: Attempt, at_s: float) -> float:
    """How long a task ran that has finished then, over all attempts that were continued."""
    return at_s - attempt.begun + attempt.before_s


class TaskErrors:
    """What the run's tasks took, as parts of what was expected: those that are done, at first those
    of earlier runs."""

    def __init__(
        self, expected_s: Mapping[str, NDArray[np.int64]], earlier: Sequence[float] = ()
    ) -> None:
        """`expected_s`: what was expected at each site, by its name."""
        self._expected_s = {site: times.tolist() for site, times in expected_s.items()}
        self._earlier = tuple(earlier)
        self._heard: list[float] = []
        self._site: dict[int, str] = {}

    def __call__(self) -> NDArray[np.float64] | None:
        """Those that count now; None if nothing is known."""
        known = self._heard if len(self._heard) >= FEW_TASKS else self._earlier
        if known:
            return np.array(known, dtype=np.float64)
        return None

    def _expect(self, tasks: Iterable[Task]) -> None:
        for expected in self._expected_s.values():
            expected += [max(1, math.ceil(task.runtime_s)) for task in tasks]

    def hear(self, records: Iterable[Record]) -> None:
        """Take in the tasks that finished. Whole seconds are compared: fractions do not count as
        errors."""
        for record in records:
            if isinstance(record.event, e.TasksAdded):
                self._expect(record.event.added.tasks)
            if isinstance(record.event, e.JobsPlanned):
                self._site |= {
                    task: plan.site
                    for plan in record.event.decision.jobs
                    for task in plan.all_tasks
                }
            if isinstance(record.event, e.TaskFinished) and record.attempt is not None:
                took_s = max(1, round(_took_s(record.attempt, record.at_s)))
                site = self._site.get(record.event.task, next(iter(self._expected_s)))
                self._heard.append(took_s / self._expected_s[site][record.event.task])


class FirstPromise:
    """Hears what the first look ahead of a run expected of it, and when its last task was done."""

    def __init__(self) -> None:
        self._at_s = self._expected_s = self._done_s = 0.0

    def hear(self, records: Iterable[Record]) -> None:
        """Take in what happens in the run."""
        for record in records:
            match record.event:
                case e.JobsPlanned(decision=decision) if not self._expected_s and decision.jobs:
                    self._at_s = record.at_s
                    self._expected_s = expected_s(decision)
                case e.TaskFinished():
                    self._done_s = record.at_s
                case _:
                    pass

    def kept(self) -> Promise | None:
        """The promise and what came of it, now that all is done; None if the first decision did not
        look ahead."""
        if self._expected_s:
            return Promise(self._at_s, self._expected_s, self._done_s - self._at_s)
        return None


def expected_s(decision: Decision) -> float:
    """How long all that is left should take, by a look ahead; 0 if the decision comes from
    none."""
    if decision.is_played:
        return float(decision.candidates[0].makespan_s or 0)
    return 0.0


def errors_at(works: Sequence[Work], earlier: Sequence[float]) -> TaskErrors:
    """Those of a run with this work at each site, after `earlier` ones."""
    expected = (work.expected_s for work in works)
    return TaskErrors(dict(zip(names_at(works), expected, strict=True)), earlier)


def earlier_errors(
    runnable: Runnable, times: Sequence[FilledTime], past: Callable[[], RunTimes]
) -> list[float]:
    """What tasks of the same kinds took in earlier runs, as parts of what is expected of them now.

    Only where expected times come from there: a time that the workflow states is not the same for
    each task of a kind. At most `ERRORS_KEPT`, spread evenly over all.
    """
    workflow = runnable.workflow
    rows = zip(workflow.kinds, workflow.cores.tolist(), times, strict=True)
    learned = dict.fromkeys(
        (kind, cores, time.runtime_s)
        for kind, cores, time in rows
        if time.source is TimeSource.LEARNED
    )
    try:
        found = sorted(
            max(1, round(took_s)) / max(1, math.ceil(expected_s))
            for kind, cores, expected_s in learned
            for took_s in past().times(workflow.name, kind, cores=cores)
        )
    except WindrowError:  # it was said when they were to be used
        return []
    if found:
        return found[:: -(-len(found) // ERRORS_KEPT)]
    return []
