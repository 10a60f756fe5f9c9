"""The shell around the core: journals what is heard of the jobs (`hearing`), and does what the core wants.

Rule 1: an event is on disk before the core hears of it. Rule 2: a job is in the journal before it is submitted, so a
manager that finds one without an id asks the queue for its tag before it submits it.
Rule 3: everything here can be killed at any point; `restore` and `begin` go on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from windrow.agent import event_file
from windrow.agent.claim import claimant
from windrow.agent.folder import RunFolder
from windrow.forecast.base import Forecaster
from windrow.forecast.ledger import PastPrediction
from windrow.manager import events as e
from windrow.manager import translate
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch, alike
from windrow.manager.events import Abandon, Action, Decide, StopJob, SubmitJob
from windrow.manager.inbox import LATE_S, GivenUp, Hearing, Placed, PollTimes
from windrow.manager.journal import Record, RunJournal
from windrow.manager.lost_files import LostFile, lost_files
from windrow.manager.predictions import Predictions
from windrow.queues.port import JobState, OutcomeUnknown, Queue, QueueError, SpecError
from windrow.strategies.base import OwnJob, Strategy, View, decided

if TYPE_CHECKING:
    from windrow.foresight.live import Ahead


@dataclass
class Manager:
    """Runs one workflow on a queue. Give it to one process at a time (see `lock`)."""

    folder: RunFolder
    journal: RunJournal
    core: Core
    queue: Queue
    strategy: Strategy
    dispatch: Dispatch
    forecasters: Sequence[Forecaster]
    earlier: Sequence[PastPrediction] = ()
    """What was predicted in earlier runs, and what came true."""
    on_records: Callable[[Sequence[Record]], None] = lambda _: None
    now_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic
    placed: dict[int, Placed] = field(default_factory=dict)
    ahead: Ahead | None = None
    """Where the strategy may look ahead."""
    open_nodes: Callable[[], int] | None = None
    """How many nodes new jobs could have as the queue stands; None: as many as there are."""
    hearing: Hearing = field(init=False)
    predictions: Predictions = field(init=False)
    begun_s: float | None = None
    asking: PollTimes = field(default_factory=PollTimes)
    """When to try again what the queue would not do."""
    deciding: PollTimes = field(default_factory=PollTimes)
    """When to ask the strategy again, where nothing that is left can start."""
    held_back: str = ""
    """Why nothing more is submitted although tasks are left, while that lasts."""
    _wants_decision: bool = False
    _wants_stop: list[int] = field(default_factory=list)
    _left_behind: dict[int, str] = field(default_factory=dict)
    """Jobs of the queue whose work another job has taken over: they would hold nodes for nothing."""
    _foretold: set[int] = field(default_factory=set)
    _queue_words: dict[str, object] = field(default_factory=lambda: {"reasons": {}, "trouble": ""})

    def __post_init__(self) -> None:
        self.hearing = Hearing(self.core, self.queue, self.placed, self.now_s, self.steady_s)
        self.predictions = Predictions(self.forecasters, self.dispatch.tag, self.earlier)

    @property
    def trouble_with_queue(self) -> str:
        """What keeps jobs from being submitted or heard of, while it lasts."""
        return f"the queue does not answer: {self.hearing.trouble}" if self.hearing.trouble else self.held_back

    def restore(self) -> None:
        """Replay the journal. Nothing is asked, and nothing done but fences that may be missing.

        What was wanted and may not have been done is wanted again.
        """
        self.predictions.said = self.journal.predictions()
        self._foretold = {prediction.job for prediction in self.predictions.said}
        offsets = self.journal.offsets()
        for _, record in self.journal.records():
            self._give_up(record)
            for action in self.core.handle(record.event):
                if isinstance(action, SubmitJob):
                    path = self.folder.events(action.job)
                    self.placed[action.job] = Placed(event_file.Tail(path, offsets.get(action.job, 0)))
            self._note(record.event)
        for number, job in self.placed.items():
            job.last_word = event_file.last_word(self.folder.events(number), job.tail.offset)
        self._left_behind = {n: job_id for n, job_id in self._left_behind.items() if n in self.placed}
        # A running job without open tasks leaves by itself; one that has not started would do it all again.
        jobs = self.core.jobs.items()
        self._wants_stop = [n for n, job in jobs if job.is_stopping and (job.open_tasks or not job.is_running)]
        self._queue_words = self.journal.facts().get("queue_words", self._queue_words)

    def begin(self, again: Iterable[int] = ()) -> list[LostFile]:
        """Begin, or go on after any kind of end. Returned: why tasks that had finished run again, where any do.

        What agents said while nobody listened belongs to what was before: what failed then is tried again now.
        """
        self._listen()
        now = self.now_s()
        self._take_in([Record(e.RunBegan(int(now)), at_s=now)])
        return self.run_again(again)

    def run_again(self, tasks: Iterable[int]) -> list[LostFile]:
        """Run these tasks again though they have finished or failed, and whatever must run for what is left.

        Of a complete run those run whose results are gone. Returned: the tasks that had finished, and why they run.
        """
        core = self.core
        self._undo([LostFile(task) for task in tasks if core.is_done(task) or task in core.failed])
        left = [task for task, job in enumerate(core.job_of) if job is None and not core.is_done(task)]
        lost = lost_files(self.dispatch.runnable, left, core.is_done, results=core.is_complete)
        self._undo(lost)
        self._act_on_wishes()
        return lost

    def add(self, added: e.TasksAdded) -> None:
        """Add tasks to the run, once however often it is asked. `run_again` or `begin` act upon it.

        UserError where they do not go with the run, or would never fit; then nothing has changed.
        """
        if added.id in self.core.additions:
            return
        self.core.work.extended(added.to(self.core.work.workflow))
        now = self.now_s()
        self._take_in([Record(replace(added, at_s=int(now)), at_s=now)])

    def _undo(self, lost: Sequence[LostFile]) -> None:
        now = self.now_s()
        if undone := [Record(e.TaskUndone(int(now), one.maker), asdict(one), now) for one in lost]:
            self._take_in(undone)

    def stop(self) -> None:
        """Stop the run: its jobs leave the queue or end; what is done stays done."""
        now = self.now_s()
        self._take_in([Record(e.RunStopped(int(now)), at_s=now)])
        self._act_on_wishes()

    def step(self) -> bool:
        """Look once at everything and act. Returns whether anything happened."""
        happened = self._listen()
        self._act_on_wishes()
        # All who tell of the run are to know why its jobs wait: the queue's latest words, written where they change.
        seen = ((n, job.status) for n, job in self.placed.items() if job.status is not None)
        reasons = {str(n): status.reason for n, status in seen if status.state is JobState.WAITING and status.reason}
        words: dict[str, object] = {"reasons": reasons, "trouble": self.trouble_with_queue}
        if words != self._queue_words:
            self.journal.set_fact("queue_words", words)
            self._queue_words = words
        return happened

    def _listen(self) -> bool:
        """Take in all that is new. Returns whether anything is."""
        self._follow_claims()
        records, offsets = self.hearing.listen()
        if records:
            self._take_in(records, offsets)
        return bool(records)

    def _take_in(self, records: Sequence[Record], offsets: dict[int, int] | None = None) -> None:
        """Journal, then believe. Decisions wait until all has been heard."""
        self.journal.append(records, offsets)
        for record in records:
            self._give_up(record)
            for action in self.core.handle(record.event):
                self._wish(action)
            self._note(record.event)
        self.on_records(records)

    def _give_up(self, record: Record) -> None:
        """Fence a job that is over without a word of its agent, before its tasks are planned again.

        Whoever has the claim may live, and is listened to. (The fence comes first: an agent claims, then looks for it.)
        """
        if not translate.is_given_up(record):
            return
        assert isinstance(record.event, e.JobKilled | e.JobEnded)
        number = record.event.job
        self.dispatch.fence(number)
        job, plan = self.placed.get(number), self.core.jobs[number].plan
        if job is not None and (job.is_started or self.folder.claim(number).exists()):
            walltime_s = self.core.jobs[number].at.site.walltime_s(plan.requested_s)
            until_s = float("inf") if walltime_s is None else record.event.at_s + walltime_s + LATE_S
            self.hearing.given_up[number] = GivenUp(job.tail, until_s)

    def _note(self, event: e.Event) -> None:
        """Keep the shell's own picture of the jobs."""
        match event:
            case e.RunBegan():
                self.begun_s = event.at_s if self.begun_s is None else self.begun_s
            case e.JobSubmitted():
                job = self.placed[event.job]
                job.is_taken = any(other.id == event.id for other in self.placed.values() if other is not job)
                job.id, job.status, job.missing_since_s, job.over_since_s = event.id, None, None, None
            case e.JobStarted():
                self.placed[event.job].is_started = True
                self.predictions.starts_s[event.job] = event.at_s
            case e.JobTaken():
                job = self.placed[event.job]
                if job.id is not None and job.id != event.id:
                    self._left_behind[event.job] = job.id
                job.id, job.is_started, job.is_taken, job.is_doubtful = event.id, True, True, False
                job.status, job.missing_since_s, job.over_since_s = None, None, None
            case e.TaskStarted():
                self.dispatch.count_attempt(event.task)
            case e.TasksAdded():
                self.dispatch.extend(self.core.work.workflow, event.added.steps)
            case e.JobEnded() | e.JobKilled() | e.JobRejected():
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
            if self._wants_decision and not self._unsent() and self.deciding.is_due(self.steady_s()):
                self._decide()
            unsent = [n for n in self._unsent() if not self.placed[n].is_doubtful and n not in self._wants_stop]
            for group in alike(unsent, self.core, self.core.work.site.max_array):
                if not self.core.trouble:  # which the queue's word on an earlier group may be
                    self._send(group)
        except (QueueError, OutcomeUnknown) as error:
            self.hearing.trouble = str(error)
            self.asking.asked(self.steady_s())
        else:
            self.asking = PollTimes()

    def _stop_jobs(self) -> None:
        wanted = [n for n in self._wants_stop if n in self.placed]
        unsent = [n for n in wanted if self.placed[n].id is None and not self.placed[n].is_doubtful]
        taken = [n for n in wanted if self.placed[n].is_taken]  # in another job, which may be about to go on
        ids = {n: job_id for n in wanted if (job_id := self.placed[n].id) is not None and n not in taken}
        for number in taken:
            self.dispatch.fence(number)
        if ids or self._left_behind:
            self.queue.cancel([*ids.values(), *self._left_behind.values()])
            self._left_behind.clear()
        self._wants_stop = [n for n in wanted if n not in ids and n not in unsent and n not in taken]
        if unsent:
            now = self.now_s()
            self._take_in([Record(e.JobEnded(int(now), n), {"state": "never submitted"}, now) for n in unsent])

    def _decide(self) -> None:
        if self.core.is_stopped or self.core.trouble:  # since the decision was wished
            self._wants_decision = False
            return
        now = self.now_s()
        forecaster = self.predictions.best(len(self.placed))
        decision = decided(self.strategy, self._view(now, forecaster))
        is_stuck = not decision.jobs and bool(decision.why) and not self.core.jobs
        self.held_back = f"nothing more can be submitted: {decision.why}" if is_stuck else ""
        if is_stuck:  # as the queue stands (nodes are drained, say): ask again, ever more rarely
            self.deciding.asked(self.steady_s())
            return
        self.deciding, self._wants_decision = PollTimes(), False
        if decision.jobs or decision.candidates:
            site, detail = self.core.work.site, {"forecast": forecaster.name}
            limit = {"limit_s": site.max_request_s} if site.starts_at_once else {}
            self._take_in([Record(e.JobsPlanned(int(now), decision), detail | limit, now)])

    def _view(self, now_s: float, forecaster: Forecaster) -> View:
        """What the strategy may know, with a look ahead for those that want one."""
        view = self.core.view(int(now_s), forecaster.waits_s)
        if self.open_nodes is not None:
            view = view.within(self.open_nodes())
        if self.ahead is None or view.work.cluster_nodes < 1:
            return view
        futures = self.ahead.futures(view, self._own_jobs(), self.core.done(), self.core.terms.requests(view.work.site))
        begun_s = self.begun_s if self.begun_s is not None else now_s
        return replace(view, elapsed_s=int(now_s - begun_s), futures=futures)

    def _own_jobs(self) -> dict[str, OwnJob]:
        """The jobs of this run that the queue has and that are to stay, by their ids.

        Where one has taken another over, both are in the same allocation.
        """
        ids = {number: placed.id for number, placed in self.placed.items() if placed.id is not None}
        own: dict[str, OwnJob] = {}
        for number, job in self.core.own_jobs().items():
            if number not in ids:
                continue
            there, is_taken = own.get(ids[number]), self.core.jobs[number].taken_by is not None
            if there is None:
                own[ids[number]] = job
            else:
                own[ids[number]] = replace(
                    there if is_taken else job,
                    open_tasks=tuple(sorted((*there.open_tasks, *job.open_tasks))),
                    expected_end_s=max(there.expected_end_s, job.expected_end_s),
                    running_since_s=there.running_since_s | job.running_since_s,
                )
        return own

    def _unsent(self) -> list[int]:
        return [n for n, job in self.placed.items() if job.id is None]

    def _send(self, numbers: Sequence[int]) -> None:
        """Submit alike jobs."""
        heard = {n: job.tail.offset for n, job in self.placed.items()}
        heard |= {n: job.tail.offset for n, job in self.hearing.given_up.items()}
        now = self.now_s()
        avoid: tuple[str, ...] = ()
        if self.core.sites[0].avoidance.at(now):  # never so many that the job could not start
            offered = self.core.work.site.nodes if self.open_nodes is None else self.open_nodes()
            avoid = self.core.sites[0].avoidance.names(now, offered - self.core.jobs[numbers[0]].plan.nodes)
        specs = [self.dispatch.prepare(self.core, number, heard, avoid) for number in numbers]
        # What each forecaster says of these jobs is written down once, however often the queue puts them off.
        if plans := {number: self.core.jobs[number].plan for number in numbers if number not in self._foretold}:
            said = self.predictions.ask(plans, self.predictions.best(len(self.placed)), self.now_s())
            self.journal.predict(said)
            self._foretold.update(prediction.job for prediction in said)
        try:
            ids = [self.queue.submit(specs[0])] if len(specs) == 1 else self.queue.submit_array(specs)
        except SpecError as error:
            self._take_in([Record(e.JobRejected(int(self.now_s()), number, str(error))) for number in numbers])
            return
        except OutcomeUnknown:
            for number in numbers:
                self.placed[number].is_doubtful = True
            raise
        now = self.now_s()
        self._take_in([Record(e.JobSubmitted(int(now), n, i), at_s=now) for n, i in zip(numbers, ids, strict=True)])
        self.hearing.pace.hurry()

    def _resolve_doubts(self) -> None:
        """Jobs of which unknown whether they were submitted: the queue knows their tags.

        What began left its claim, whether the queue has forgotten it since or has it twice.
        """
        tags = {self.dispatch.tag(n): n for n, job in self.placed.items() if job.id is None and job.is_doubtful}
        if not tags:
            return
        claims = {tag: claimant(self.folder.claim(number)) for tag, number in tags.items()}
        found = dict(self.queue.find(list(tags))) | {tag: queue_id for tag, queue_id in claims.items() if queue_id}
        for number in tags.values():
            self.placed[number].is_doubtful = False
        if found:
            now = int(self.now_s())
            self._take_in([Record(e.JobSubmitted(now, tags[tag], i), {"found": True}) for tag, i in found.items()])

    def _follow_claims(self) -> None:
        """Jobs that the queue calls over without a word of their agents, while others of the same tags run them.

        A submission that seemed lost may arrive after all, behind or before the second one. The first to start has the
        claim, and is the job; the other was turned away, which says nothing of the work.
        """
        silent = {n: job for n, job in self.placed.items() if job.over_since_s is not None and job.last_word is None}
        for number, job in silent.items():
            job.claimant = job.claimant or claimant(self.folder.claim(number))
        others = {n: job.claimant for n, job in silent.items() if job.claimant not in ("", job.id)}
        if others:
            now = int(self.now_s())
            self._take_in([Record(e.JobSubmitted(now, n, queue_id), {"found": True}) for n, queue_id in others.items()])
            self._wants_stop += [number for number in others if self.core.jobs[number].is_stopping]
