"""The shell around the core: takes in what queue and agents say, journals it, and does what the core wants.

Rule 1: an event is on disk before the core hears of it. Rule 2: a job is in the journal before it is submitted, so a
manager that finds one without an id asks the queue for its tag before it submits it.
Rule 3: everything here can be killed at any point; `restore` and `begin` go on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from windrow.agent import event_file
from windrow.agent.claim import claimant
from windrow.agent.folder import RunFolder
from windrow.errors import OutsideError
from windrow.forecast import ledger
from windrow.forecast.ahead import Ahead
from windrow.forecast.base import Forecaster, Ints, Prediction, predict
from windrow.forecast.system import System
from windrow.forecast.twin import Twin
from windrow.manager import sightings
from windrow.manager.actions import Abandon, Action, Decide, StopJob, SubmitJob
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch, alike
from windrow.manager.events import (
    Event,
    JobEnded,
    JobKilled,
    JobRejected,
    JobsPlanned,
    JobStarted,
    JobSubmitted,
    RunBegan,
    RunStopped,
    TaskStarted,
)
from windrow.manager.journal import Journal, PredictedStart, Record
from windrow.queues.port import JobStatus, OutcomeUnknown, Queue, QueueError, SpecError
from windrow.sim.futures import OwnJob
from windrow.strategies import Strategy, View

POLL_S = 2.0
"""The least time between two queries of the queue."""
SLOWEST_POLL_S = 30.0
PATIENCE_S = 3.0
"""How long after a job's end its agent's last words may take to show up."""
FORGOTTEN_S = 60.0
"""How long the queue may not know a job before it is given up for lost."""
_MANY = 32


@dataclass(slots=True)
class Placed:
    """A job that is in the core, as the shell sees it. `id` is None while the queue has not accepted it."""

    tail: event_file.Tail
    id: str | None = None
    is_doubtful: bool = True
    is_started: bool = False
    cancel_asked: bool = False
    status: JobStatus | None = None
    missing_since_s: float | None = None
    over_since_s: float | None = None
    last_word: str | None = None


@dataclass(slots=True)
class Pace:
    """When to ask the queue next: soon after something happened, ever more rarely while nothing does."""

    gap_s: float = POLL_S
    last_s: float = float("-inf")

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to ask."""
        return now_s >= self.last_s + self.gap_s

    def asked(self, now_s: float) -> None:
        """The queue was asked: the next time comes later."""
        self.gap_s = POLL_S if self.last_s == float("-inf") else min(self.gap_s * 1.5, SLOWEST_POLL_S)
        self.last_s = now_s

    def hurry(self) -> None:
        """Something happened: ask again as soon as is decent."""
        self.gap_s = POLL_S


@dataclass
class Manager:
    """Runs one workflow on a queue. Give it to one process at a time (see `lock`)."""

    folder: RunFolder
    journal: Journal
    core: Core
    queue: Queue
    strategy: Strategy
    dispatch: Dispatch
    forecasters: Sequence[Forecaster]
    earlier: Sequence[ledger.PastPrediction] = ()
    """What was predicted in earlier runs, and what came true."""
    on_records: Callable[[Sequence[Record]], None] = lambda _: None
    now_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic
    placed: dict[int, Placed] = field(default_factory=dict)
    ahead: Ahead | None = None
    """Where the strategy may look ahead."""
    max_array: int = 1
    predictions: list[PredictedStart] = field(default_factory=list)
    starts_s: dict[int, float] = field(default_factory=dict)
    begun_s: float | None = None
    looking: Pace = field(default_factory=Pace)
    asking: Pace = field(default_factory=Pace)
    """When to try again what the queue would not do."""
    trouble_with_queue: str = ""
    """The queue's last complaint, while it lasts."""
    _wants_decision: bool = False
    _wants_stop: list[int] = field(default_factory=list)

    def restore(self) -> None:
        """Replay the journal. Nothing is asked or done. What was wanted and may not have been done is wanted again."""
        self.predictions = self.journal.predictions()
        offsets = self.journal.offsets()
        for _, record in self.journal.records():
            for action in self.core.handle(record.event):
                if isinstance(action, SubmitJob):
                    path = self.folder.events(action.job)
                    self.placed[action.job] = Placed(event_file.Tail(path, offsets.get(action.job, 0)))
            self._note(record.event)
        for number, job in self.placed.items():
            job.last_word = event_file.last_word(self.folder.events(number), job.tail.offset)
        # A running job without open tasks leaves by itself; one that has not started would do it all again.
        jobs = self.core.jobs.items()
        self._wants_stop = [n for n, job in jobs if job.is_stopping and (job.open_tasks or not job.is_running)]

    def begin(self) -> None:
        """Begin, or go on after any kind of end."""
        now = self.now_s()
        self._take_in([Record(RunBegan(int(now)), at_s=now)])
        self.dispatch.abandon(sorted(self.core.failed | self.core.blocked))
        self._act_on_wishes()

    def stop(self) -> None:
        """Stop the run: its jobs leave the queue or end; what is done stays done."""
        now = self.now_s()
        self._take_in([Record(RunStopped(int(now)), at_s=now)])
        self._act_on_wishes()

    def step(self) -> bool:
        """Look once at everything and act. Returns whether anything happened."""
        records, offsets = self._hear_agents()
        if self.looking.is_due(self.steady_s()):
            records += self._ask_queue()
        records += self._endings()
        if records:
            self._take_in(records, offsets)
            self.looking.hurry()
        self._act_on_wishes()
        return bool(records)

    def next_look_s(self, *, happened: bool) -> float:
        """How long to sleep before the next step."""
        return 0.1 if happened else 0.5 if len(self.placed) <= _MANY else 1.0

    # What is heard

    def _hear_agents(self) -> tuple[list[Record], dict[int, int]]:
        """New words of agents. Where very many jobs wait, only of those that the queue calls running."""
        records: list[Record] = []
        offsets: dict[int, int] = {}
        for number, job in self.placed.items():
            if not job.is_started and len(self.placed) > _MANY and job.over_since_s is None:
                continue
            while words := job.tail.read():
                offsets[number] = job.tail.offset
                for word in words:
                    if isinstance(word, event_file.JobEnded):
                        job.last_word = word.why
                        self.looking.hurry()  # the queue will soon say how it ended
                    records += [] if (heard := sightings.from_agent(number, word)) is None else [heard]
        return self._without_repeated_starts(records), offsets

    def _without_repeated_starts(self, records: list[Record]) -> list[Record]:
        """Both the queue and the agent say that a job started; the first one counts."""
        kept = []
        for record in records:
            if isinstance(record.event, JobStarted):
                if self.placed[record.event.job].is_started:
                    continue
                self.placed[record.event.job].is_started = True
            kept.append(record)
        return kept

    def _ask_queue(self) -> list[Record]:
        """One query for all jobs."""
        ids = {job.id: number for number, job in self.placed.items() if job.id is not None and job.over_since_s is None}
        self.looking.asked(self.steady_s())
        if not ids:
            return []
        try:
            statuses = self.queue.status(list(ids))
        except QueueError as error:
            self.trouble_with_queue = str(error)
            return []
        self.trouble_with_queue = ""
        records: list[Record] = []
        for queue_id, number in ids.items():
            records += self._sighted(number, statuses.get(queue_id))
        return self._without_repeated_starts(records)

    def _sighted(self, number: int, status: JobStatus | None) -> list[Record]:
        job, now = self.placed[number], self.steady_s()
        if status is None:
            job.missing_since_s = now if job.missing_since_s is None else job.missing_since_s
            if job.last_word is not None or now - job.missing_since_s > FORGOTTEN_S:
                job.over_since_s = now
            return []
        job.missing_since_s, job.status = None, status
        if status.state.is_over:
            job.over_since_s = now
        if status.started_s is None or job.is_started:
            return []
        return [Record(JobStarted(int(status.started_s), number), {"by": "queue"}, status.started_s)]

    def _endings(self) -> list[Record]:
        """Jobs whose agents have done all they could, and jobs that are over by the queue's word."""
        now, at = self.steady_s(), self.now_s()
        records: list[Record] = []
        for number, job in self.placed.items():
            if job.last_word == event_file.DONE:
                records.append(Record(JobEnded(int(at), number), {"agent": job.last_word}, at))
            elif job.over_since_s is not None:
                may_have_run = job.is_started or job.missing_since_s is not None
                is_silent = may_have_run and job.last_word is None
                if is_silent and now - job.over_since_s < PATIENCE_S:
                    continue  # what it did may not have reached this machine yet
                asked = self.core.jobs[number].is_stopping
                status = None if job.missing_since_s is not None else job.status
                records.append(sightings.ending(number, status, at, was_asked=asked, last_word=job.last_word))
        return records

    # What is done

    def _take_in(self, records: Sequence[Record], offsets: dict[int, int] | None = None) -> None:
        """Journal, then believe. Decisions wait until all has been heard."""
        self.journal.append(records, offsets)
        for record in records:
            for action in self.core.handle(record.event):
                self._wish(action)
            self._note(record.event)
        self.on_records(records)

    def _note(self, event: Event) -> None:
        """Keep the shell's own picture of the jobs."""
        match event:
            case RunBegan():
                self.begun_s = event.at_s if self.begun_s is None else self.begun_s
            case JobSubmitted():
                self.placed[event.job].id = event.id
            case JobStarted():
                self.placed[event.job].is_started = True
                self.starts_s[event.job] = event.at_s
            case TaskStarted():
                self.dispatch.count_attempt(event.task)
            case JobEnded() | JobKilled() | JobRejected():
                self.placed.pop(event.job, None)
            case _:
                pass

    def _wish(self, action: Action) -> None:
        match action:
            case Decide():
                self._wants_decision = True
            case SubmitJob():
                tail = event_file.Tail(self.folder.events(action.job))
                self.placed[action.job] = Placed(tail, is_doubtful=False)
            case StopJob():
                self._wants_stop.append(action.job)
            case Abandon():
                self.dispatch.abandon(action.tasks)

    def _act_on_wishes(self) -> None:
        """Stop, decide, submit: whatever is wanted and can be done now."""
        if not self.asking.is_due(self.steady_s()):
            return
        try:
            self._stop_jobs()
            self._resolve_doubts()
            if self._wants_decision and not self._unsent():
                self._decide()
            self._send_all()
        except (QueueError, OutcomeUnknown) as error:
            self.trouble_with_queue = str(error)
            self.asking.asked(self.steady_s())
        else:
            self.asking = Pace()

    def _stop_jobs(self) -> None:
        wanted = [n for n in self._wants_stop if n in self.placed]
        unsent = [n for n in wanted if self.placed[n].id is None and not self.placed[n].is_doubtful]
        ids = {n: job_id for n in wanted if (job_id := self.placed[n].id) is not None}
        if ids:
            self.queue.cancel(list(ids.values()))
        self._wants_stop = [n for n in wanted if n not in ids and n not in unsent]
        if unsent:
            now = self.now_s()
            self._take_in([Record(JobEnded(int(now), n), {"state": "never submitted"}, now) for n in unsent])

    def _decide(self) -> None:
        now = self.now_s()
        forecaster = self._forecaster()
        decision = self.strategy.decide(self._view(now, forecaster))
        self._wants_decision = False
        if decision.jobs or decision.candidates:
            self._take_in([Record(JobsPlanned(int(now), decision), {"forecast": forecaster.name}, now)])

    def _view(self, now_s: float, forecaster: Forecaster) -> View:
        """What the strategy may know, with a look ahead for those that want one."""
        view = self.core.view(int(now_s), forecaster.waits_s)
        if self.ahead is None:
            return view
        core = self.core
        own = {
            placed.id: OwnJob(
                number=0,
                plan=core.jobs[number].plan,
                open_tasks=tuple(sorted(core.jobs[number].open_tasks)),
                is_running=core.jobs[number].is_running,
                expected_end_s=core.jobs[number].expected_end_s,
                running_since_s=dict(core.jobs[number].running_since_s),
            )
            for number, placed in self.placed.items()
            if placed.id is not None and not core.jobs[number].is_stopping
        }
        done = np.array([core.is_done(task) for task in range(len(view.left))], dtype=bool)
        begun = self.begun_s if self.begun_s is not None else now_s
        return replace(
            view, elapsed_s=int(now_s - begun), futures=self.ahead.futures(view, own, done, core.terms.requests())
        )

    def _forecaster(self) -> Forecaster:
        """The one that was right most often, by what it said of jobs that have started since."""
        known = [*self.earlier[-self._memory :], *self._past_predictions()]
        best = ledger.choose(known, default=self.forecasters[0].name)
        return next((f for f in self.forecasters if f.name == best), self.forecasters[0])

    def _past_predictions(self) -> list[ledger.PastPrediction]:
        return [
            ledger.PastPrediction(p.source, self.dispatch.tag(p.job), p.at_s, p.start_s, self.starts_s.get(p.job))
            for p in self.predictions[-self._memory :]
        ]

    @property
    def _memory(self) -> int:
        """How many predictions are looked at: only the last starts count, so the cost must not grow with the run."""
        return len(self.forecasters) * (4 * ledger.LAST + len(self.placed))

    def _unsent(self) -> list[int]:
        return [n for n, job in self.placed.items() if job.id is None]

    def _send_all(self) -> None:
        unsent = [n for n in self._unsent() if not self.placed[n].is_doubtful and n not in self._wants_stop]
        for group in alike(unsent, self.core, self.max_array):
            self._send(group)

    def _send(self, numbers: Sequence[int]) -> None:
        """Submit alike jobs."""
        heard = {n: job.tail.offset for n, job in self.placed.items()}
        specs = [self.dispatch.prepare(self.core, number, heard) for number in numbers]
        self._predict(numbers)
        try:
            ids = [self.queue.submit(specs[0])] if len(specs) == 1 else self.queue.submit_array(specs)
        except SpecError as error:
            self._take_in([Record(JobRejected(int(self.now_s()), number, str(error))) for number in numbers])
            return
        except OutcomeUnknown:
            for number in numbers:
                self.placed[number].is_doubtful = True
            raise
        now = self.now_s()
        self._take_in([Record(JobSubmitted(int(now), n, i), at_s=now) for n, i in zip(numbers, ids, strict=True)])
        self.looking.hurry()

    def _resolve_doubts(self) -> None:
        """Jobs of which nobody knows whether they were submitted: the queue knows their tags.

        What began and has been forgotten by the queue since left its claim.
        """
        tags = {self.dispatch.tag(n): n for n, job in self.placed.items() if job.id is None and job.is_doubtful}
        if not tags:
            return
        claims = {tag: claimant(self.folder.claim(number)) for tag, number in tags.items()}
        found = {tag: queue_id for tag, queue_id in claims.items() if queue_id} | dict(self.queue.find(list(tags)))
        for number in tags.values():
            self.placed[number].is_doubtful = False
        if found:
            now = int(self.now_s())
            self._take_in([Record(JobSubmitted(now, tags[tag], i), {"found": True}) for tag, i in found.items()])

    def _predict(self, numbers: Sequence[int]) -> None:
        """Write down what each forecaster says of these jobs, to be compared with what happens."""
        now, used = self.now_s(), self._forecaster()
        plans = [self.core.jobs[number].plan for number in numbers]
        nodes = np.array([plan.nodes for plan in plans], dtype=np.int64)
        requested_s = np.array([plan.requested_s for plan in plans], dtype=np.int64)
        predictions: list[PredictedStart] = []
        for forecaster in self.forecasters:
            try:
                if isinstance(forecaster, System):
                    forecaster.ask(nodes, requested_s)
                said = _one_after_the_other(forecaster, nodes, requested_s, now)
            except OutsideError:  # a forecast more or less is no reason to hold a job back
                continue
            predictions += [
                PredictedStart(n, p.source, now, p.nodes, p.requested_s, p.start_s, int(forecaster is used))
                for n, p in zip(numbers, said, strict=True)
                if p is not None
            ]
        self.journal.predict(predictions)
        self.predictions += predictions


def _one_after_the_other(
    forecaster: Forecaster, nodes: Ints, requested_s: Ints, now_s: float
) -> list[Prediction | None]:
    """What a forecaster says of jobs that are submitted together, in this order.

    To a twin each counts from then on, although its last reading of the queue does not know it.
    """
    if not isinstance(forecaster, Twin):
        return predict(forecaster, nodes, requested_s, now_s)
    said: list[Prediction | None] = []
    for i in range(len(nodes)):
        said += predict(forecaster, nodes[i : i + 1], requested_s[i : i + 1], now_s)
        forecaster.add(int(nodes[i]), int(requested_s[i]))
    return said
