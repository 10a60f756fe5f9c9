"""What a manager has at each site: the queue there, its jobs as the queue and their agents tell of them, and what is
wanted of it.

Rule 1: a job is in the journal before it is submitted; one without an id is looked for by its tag before it is
submitted again. Rule 2: a queue that does not answer keeps nobody from dealing with the other sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windrow.agent import event_file
from windrow.agent.claim import claimant
from windrow.agent.folder import RunFolder
from windrow.forecast.base import Forecaster
from windrow.forecast.ledger import PastPrediction
from windrow.manager import events as e
from windrow.manager.beliefs import AtSite
from windrow.manager.dispatch import alike
from windrow.manager.inbox import Hearing, Placed, PollTimes
from windrow.manager.journal import Record
from windrow.manager.predictions import Predictions
from windrow.queues.port import JobState, OutcomeUnknown, Queue, QueueError, SpecError
from windrow.strategies.base import OwnJob, View, decided

if TYPE_CHECKING:
    from windrow.foresight.live import Ahead
    from windrow.manager.manager import Manager


@dataclass(eq=False)
class Outpost:
    """One site as a manager deals with it. `join` makes it a part of one."""

    queue: Queue
    forecasters: Sequence[Forecaster] = ()
    earlier: Sequence[PastPrediction] = ()
    """What was predicted in earlier runs, and what came true."""
    ahead: Ahead | None = None
    """Where the strategy may look ahead."""
    open_nodes: Callable[[], int] | None = None
    """How many nodes new jobs could have as the queue stands; None: as many as there are."""
    placed: dict[int, Placed] = field(default_factory=dict)
    run: Manager = field(init=False)
    at: AtSite = field(init=False)
    folder: RunFolder = field(init=False)
    """The run's folder for jobs here."""
    hearing: Hearing = field(init=False)
    predictions: Predictions = field(init=False)
    asking: PollTimes = field(default_factory=PollTimes)
    """When to try again what the queue would not do."""
    deciding: PollTimes = field(default_factory=PollTimes)
    """When to ask the strategy again, where nothing that is left can start."""
    held_back: str = ""
    """Why nothing more is submitted although tasks are left, while that lasts."""
    wants_decision: bool = False
    wants_stop: list[int] = field(default_factory=list)
    left_behind: dict[int, str] = field(default_factory=dict)
    """Jobs of the queue whose work another job has taken over: they would hold nodes for nothing."""
    foretold: set[int] = field(default_factory=set)

    def join(self, run: Manager, at: AtSite) -> None:
        """Become that part of the run which deals with this site."""
        self.run, self.at = run, at
        mirror = run.dispatch.mirrors.get(at.site.files)
        self.folder = run.dispatch.folder_at(at.site.files)
        self.hearing = Hearing(run.core, self.queue, self.placed, run.now_s, run.steady_s, mirror=mirror)
        self.predictions = Predictions(self.forecasters, run.dispatch.tag, self.earlier)

    @property
    def trouble(self) -> str:
        """What keeps jobs from being submitted or heard of, while it lasts; one of several sites is named."""
        where = f"queue of {self.at.name}" if self.at.name else "queue"
        if self.hearing.trouble:
            return f"the {where} does not answer: {self.hearing.trouble}"
        return f"{self.at.name}: {self.held_back}" if self.held_back and self.at.name else self.held_back

    @property
    def reasons(self) -> dict[str, str]:
        """Why jobs wait, by the queue's latest word."""
        seen = ((n, job.status) for n, job in self.placed.items() if job.status is not None)
        return {str(n): status.reason for n, status in seen if status.state is JobState.WAITING and status.reason}

    def restored(self) -> None:
        """The journal has been replayed: what was wanted and may not have been done is wanted again."""
        self.foretold = {prediction.job for prediction in self.predictions.said}
        for number, job in self.placed.items():
            job.last_word = event_file.last_word(self.folder.events(number), job.tail.offset)
        self.left_behind = {n: job_id for n, job_id in self.left_behind.items() if n in self.placed}
        # A running job without open tasks leaves by itself; one that has not started would do it all again.
        jobs = ((n, self.run.core.jobs[n]) for n in self.placed)
        self.wants_stop = [n for n, job in jobs if job.is_stopping and not (job.is_empty and job.is_running)]

    def note(self, event: e.JobEvent) -> None:
        """Keep the picture of the jobs."""
        match event:
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
                    self.left_behind[event.job] = job.id
                job.id, job.is_started, job.is_taken, job.is_doubtful = event.id, True, True, False
                job.status, job.missing_since_s, job.over_since_s = None, None, None
            case e.JobEnded() | e.JobKilled() | e.JobRejected():
                self.placed.pop(event.job, None)

    def due_s(self) -> float:
        """When there is something to do though no agent speaks, by the steady clock."""
        waits = [self.asking] + [self.deciding] * self.wants_decision
        again = [wait.last_s + wait.gap_s for wait in waits if wait.last_s > float("-inf")]
        return min([self.hearing.due_s(), *again])

    def act(self) -> None:
        """Stop, decide, submit: whatever is wanted and can be done now."""
        if not self.asking.is_due(self.run.steady_s()):
            return
        try:
            self._stop_jobs()
            self._resolve_doubts()
            if self.wants_decision and not self._unsent() and self.deciding.is_due(self.run.steady_s()):
                self._decide()
            unsent = [n for n in self._unsent() if not self.placed[n].is_doubtful and n not in self.wants_stop]
            for group in alike(unsent, self.run.core, self.at.site.max_array):
                if not self.run.core.trouble:  # which the queue's word on an earlier group may be
                    self._send(group)
        except (QueueError, OutcomeUnknown) as error:
            self.hearing.trouble = str(error)
            self.asking.asked(self.run.steady_s())
        else:
            self.asking = PollTimes()

    def _stop_jobs(self) -> None:
        wanted = [n for n in self.wants_stop if n in self.placed]
        unsent = [n for n in wanted if self.placed[n].id is None and not self.placed[n].is_doubtful]
        taken = [n for n in wanted if self.placed[n].is_taken]  # in another job, which may be about to go on
        ids = {n: job_id for n in wanted if (job_id := self.placed[n].id) is not None and n not in taken}
        for number in taken:
            self.run.dispatch.fence(self.run.core, number)
        if ids or self.left_behind:
            self.queue.cancel([*ids.values(), *self.left_behind.values()])
            self.left_behind.clear()
        self.wants_stop = [n for n in wanted if n not in ids and n not in unsent and n not in taken]
        if unsent:
            # A submission that got no answer may arrive after its tag was looked for: such a job is given up.
            tried = {n: {"agent": None} if self.folder.job_file(n).exists() else {} for n in unsent}
            now, state = self.run.now_s(), {"state": "never submitted"}
            self.run.take_in([Record(e.JobEnded(int(now), n), state | tried[n], now) for n in unsent])

    def _decide(self) -> None:
        if self.run.core.is_stopped or self.run.core.trouble:  # since the decision was wished
            self.wants_decision = False
            return
        now = self.run.now_s()
        forecaster = self.predictions.best(len(self.placed))
        decision = decided(self.run.strategy, self._view(now, forecaster))
        is_stuck = not decision.jobs and bool(decision.why) and not self.at.jobs
        self.held_back = f"nothing more can be submitted: {decision.why}" if is_stuck else ""
        if is_stuck:  # as the queue stands (nodes are drained, say): ask again, ever more rarely
            self.deciding.asked(self.run.steady_s())
            return
        self.deciding, self.wants_decision = PollTimes(), False
        if decision.jobs or decision.candidates:
            site, name, detail = self.at.site, self.at.name, {"forecast": forecaster.name}
            limit = {"limit_s": site.max_request_s} if site.starts_at_once else {}
            if name:
                decision = replace(decision, jobs=tuple(replace(plan, site=name) for plan in decision.jobs))
            self.run.take_in([Record(e.JobsPlanned(int(now), decision, name), detail | limit, now)])

    def _view(self, now_s: float, forecaster: Forecaster) -> View:
        """What the strategy may know, with a look ahead for those that want one."""
        core = self.run.core
        view = core.view(int(now_s), forecaster.waits_s, self.at.name)
        if self.open_nodes is not None:
            view = view.within(self.open_nodes())
        if self.ahead is None or view.work.cluster_nodes < 1:
            return view
        done = ~self.at.of(~core.done())  # what is to run elsewhere is not played
        futures = self.ahead.futures(view, self._own_jobs(), done, self.at.requests)
        begun_s = self.run.begun_s if self.run.begun_s is not None else now_s
        return replace(view, elapsed_s=int(now_s - begun_s), futures=futures)

    def _own_jobs(self) -> dict[str, OwnJob]:
        """The jobs of this run that the queue has and that are to stay, by their ids.

        Where one has taken another over, both are in the same allocation.
        """
        ids = {number: placed.id for number, placed in self.placed.items() if placed.id is not None}
        own: dict[str, OwnJob] = {}
        for number, job in self.run.core.own_jobs(self.at.name).items():
            if number not in ids:
                continue
            there, is_taken = own.get(ids[number]), self.run.core.jobs[number].taken_by is not None
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
        run, now = self.run, self.run.now_s()
        avoid: tuple[str, ...] = ()
        if self.at.avoidance.at(now):  # never so many that the job could not start
            offered = self.at.site.nodes if self.open_nodes is None else self.open_nodes()
            avoid = self.at.avoidance.names(now, offered - run.core.jobs[numbers[0]].plan.nodes)
        heard = run.heard()
        specs = [run.dispatch.prepare(run.core, number, heard, avoid) for number in numbers]
        # What each forecaster says of these jobs is written down once, however often the queue puts them off.
        if plans := {number: run.core.jobs[number].plan for number in numbers if number not in self.foretold}:
            said = self.predictions.ask(plans, self.predictions.best(len(self.placed)), run.now_s())
            run.journal.predict(said)
            self.foretold.update(prediction.job for prediction in said)
        try:
            ids = [self.queue.submit(specs[0])] if len(specs) == 1 else self.queue.submit_array(specs)
        except SpecError as error:
            run.take_in([Record(e.JobRejected(int(run.now_s()), number, str(error))) for number in numbers])
            return
        except OutcomeUnknown:
            for number in numbers:
                self.placed[number].is_doubtful = True
            raise
        now = run.now_s()
        run.take_in([Record(e.JobSubmitted(int(now), n, i), at_s=now) for n, i in zip(numbers, ids, strict=True)])
        self.hearing.pace.hurry()

    def _resolve_doubts(self) -> None:
        """Jobs of which unknown whether they were submitted: the queue knows their tags.

        What began left its claim, whether the queue has forgotten it since or has it twice.
        """
        tags = {self.run.dispatch.tag(n): n for n, job in self.placed.items() if job.id is None and job.is_doubtful}
        if not tags:
            return
        claims = {tag: claimant(self.folder.claim(number)) for tag, number in tags.items()}
        found = dict(self.queue.find(list(tags))) | {tag: queue_id for tag, queue_id in claims.items() if queue_id}
        for number in tags.values():
            self.placed[number].is_doubtful = False
        if found:
            self._found({tags[tag]: queue_id for tag, queue_id in found.items()})

    def _found(self, ids: Mapping[int, str]) -> None:
        now = int(self.run.now_s())
        self.run.take_in([Record(e.JobSubmitted(now, n, queue_id), {"found": True}) for n, queue_id in ids.items()])

    def follow_claims(self) -> None:
        """Jobs that the queue calls over without a word of their agents, while others of the same tags run them.

        A submission that seemed lost may arrive after all, behind or before the second one. The first to start has the
        claim, and is the job; the other was turned away, which says nothing of the work.
        """
        silent = {n: job for n, job in self.placed.items() if job.over_since_s is not None and job.last_word is None}
        for number, job in silent.items():
            job.claimant = job.claimant or claimant(self.folder.claim(number))
        others = {n: job.claimant for n, job in silent.items() if job.claimant not in ("", job.id)}
        if others:
            self._found(others)
            self.wants_stop += [number for number in others if self.run.core.jobs[number].is_stopping]
