"""What a manager has at each site: the queue there, its jobs as the queue and their agents tell of
them, and what is wanted of it.

Rule 1: a job is in the journal before it is submitted; one without an id is looked for by its tag
before it is submitted again. Rule 2: a queue that does not answer does not hold up the other sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from windrow.agent import event_file
from windrow.agent.claim import claimant
from windrow.agent.folder import RunFolder
from windrow.forecast.base import Forecaster, shortened
from windrow.forecast.ledger import PastPrediction
from windrow.manager.beliefs import AtSite
from windrow.manager.inbox import Hearing, Placed, PollTimes
from windrow.manager.predictions import Predictions
from windrow.model import is_never
from windrow.model.cause import Cause
from windrow.queues.port import JobState, OutcomeUnknown, Queue, QueueError, SpecError
from windrow.story import events as e
from windrow.story.journal import PredictedStart, Record
from windrow.strategies.base import Decision, JobPlan, LooksAhead, OwnJob, View, decided

if TYPE_CHECKING:
    from windrow.forecast.guard import HeldForecast
    from windrow.foresight.live import Ahead
    from windrow.foresight.seen import WatchedQueue
    from windrow.manager.manager import Manager
    from windrow.strategies.choosing import SiteOffer


ROUNDS = 4
"""How often at most a decision is taken because the batch system's word on its job is another than
was expected."""


KEPT_OFFER_S = 3.0
"""How long a job of tasks that joined waits for an agent that keeps its nodes for them."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What is decided for a group of sites as their queues stand, and for which of them.

    `could_start`: whether a task is ready; `absent`: sites that cannot be used, with the reason.
    """

    site: str
    decision: Decision
    could_start: bool
    absent: Mapping[str, str]


@dataclass(eq=False)
class Outpost:
    """One site as a manager deals with it. `join` makes it a part of one."""

    queue: Queue
    forecasters: Sequence[Forecaster] = ()
    earlier: Sequence[PastPrediction] = ()
    """What was predicted in earlier runs, and what came true."""
    ahead: Ahead | None = None
    """Where the strategy may look ahead."""
    readings: WatchedQueue | None = None
    """What keeps the readings of the queue for this run."""
    open_to: Callable[[int], int] | None = None
    """How many nodes new jobs are to have as the queue stands, if some task takes that many; None:
    as many as there are."""
    guard: HeldForecast | None = None
    """Who asks the batch system itself about the jobs of a decision."""
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
    """When to ask the strategy again, if nothing that is left can start."""
    held_back: str = ""
    """Why nothing more is submitted although tasks are left, while that lasts."""
    wants_decision: bool = False
    wants_stop: list[int] = field(default_factory=list)
    left_behind: dict[int, str] = field(default_factory=dict)
    """Jobs of the queue whose work another job has taken over, or is to: they would hold nodes for
    nothing."""
    unreachable: dict[int, str] = field(default_factory=dict)
    """Jobs that were given up while the queue did not answer: they go as soon as it does."""
    foretold: set[int] = field(default_factory=set)
    trusted: str = ""
    """Whose forecasts the last decision was based on."""

    def join(self, run: Manager, at: AtSite) -> None:
        """Become that part of the run which deals with this site."""
        self.run = run
        self.at = at
        mirror = run.dispatch.mirrors.get(at.site.files)
        self.folder = run.dispatch.folder_at(at.site.files)
        self.hearing = Hearing(
            run.core, self.queue, self.placed, run.now_s, run.steady_s, mirror=mirror
        )
        self.hearing.patience_s = run.patience_s
        self.predictions = Predictions(self.forecasters, run.dispatch.tag, self.earlier)

    @property
    def trouble(self) -> str:
        """What keeps jobs from being submitted or heard of, while it lasts; one of several sites is
        named."""
        if self.at.name:
            where = f"queue of {self.at.name}"
        else:
            where = "queue"
        if self.hearing.trouble:
            return f"the {where} does not answer: {self.hearing.trouble}"
        if self.at.trouble and self.at.name:
            return f"no more jobs go to {self.at.name}: {self.at.trouble}"
        if self.held_back and self.at.name:
            return f"{self.at.name}: {self.held_back}"
        return self.held_back

    @property
    def reasons(self) -> dict[int, str]:
        """Why jobs wait, by the queue's latest word."""
        seen = ((n, job.status) for n, job in self.placed.items() if job.status is not None)
        return {
            n: status.reason
            for n, status in seen
            if status.state is JobState.WAITING and status.reason
        }

    def restored(self) -> None:
        """The journal has been replayed: what was wanted and may not have been done is wanted
        again."""
        self.foretold = {prediction.job for prediction in self.predictions.said}
        for number, job in self.placed.items():
            if (
                last := event_file.last_record(self.folder.events(number), job.tail.offset)
            ) is not None:
                self.hearing.note_sign_of_life(number, last)
        self.left_behind = {n: job_id for n, job_id in self.left_behind.items() if n in self.placed}
        # A running job without open tasks leaves by itself, unless another has its nodes; one that
        # has not started would do it all again.
        jobs = ((n, self.run.core.jobs[n]) for n in self.placed)
        hosts = {job.taken_by for job in self.run.core.jobs.values()}
        self.wants_stop = [
            n
            for n, job in jobs
            if job.is_stopping and (n in hosts or not (job.is_empty and job.is_running))
        ]

    def note(self, event: e.JobEvent) -> None:
        """Keep the picture of the jobs."""
        match event:
            case e.JobSubmitted():
                job = self.placed[event.job]
                job.is_taken = any(
                    other.id == event.id for other in self.placed.values() if other is not job
                )
                job.id = event.id
                job.status = None
                job.missing_since_s = None
                job.over_since_s = None
            case e.JobStarted():
                self.placed[event.job].is_started = True
                self.predictions.starts_s[event.job] = event.at_s
            case e.JobTaken():
                job = self.placed[event.job]
                if job.id is not None and job.id != event.id:
                    self.left_behind[event.job] = job.id
                job.id = event.id
                job.is_started = True
                job.is_taken = True
                job.is_doubtful = False
                job.status = None
                job.missing_since_s = None
                job.over_since_s = None
            case e.JobEnded() | e.JobKilled() | e.JobRejected():
                job_id = self.placed.pop(event.job).id
                if (
                    isinstance(event, e.JobKilled)
                    and event.cause is Cause.UNREACHABLE
                    and job_id is not None
                ):
                    self.unreachable[event.job] = job_id
            case e.JobWithdrawn():
                pass

    def due_s(self) -> float:
        """When there is something to do though no agent speaks, by the steady clock."""
        waits = [self.asking] + [self.deciding] * self.wants_decision
        again = [wait.last_s + wait.gap_s for wait in waits if wait.last_s > float("-inf")]
        offers = [job.offered_until_s for job in self.placed.values() if self._is_on_offer(job)]
        return min([self.hearing.due_s(), *again, *offers])

    def act(self) -> None:
        """Stop, decide, submit: whatever is wanted and can be done now."""
        if not self.asking.is_due(self.run.steady_s()):
            return
        try:
            self._resolve_doubts()  # first: of a job to be stopped, it says whether there is one
            self._stop_jobs()
            self._offer_copies()
            if self._is_decision_due():
                self._decide()
            self._offer_to_kept()
            unsent = [
                n
                for n in self._unsent()
                if not self.placed[n].is_doubtful and n not in self.wants_stop
            ]
            unsent = unsent[: self._room()]
            for group in self.run.dispatch.alike(unsent, self.run.core, self.at.site.max_array):
                if not self.run.core.trouble:  # which the queue's word on an earlier group may be
                    self._send(group)
        except (QueueError, OutcomeUnknown) as error:
            self.complain(error)
        else:
            self.asking = PollTimes()

    def complain(self, error: Exception) -> None:
        """Take note that the queue does not answer; it is asked again later."""
        self.hearing.complain(str(error))
        self.asking.asked(self.run.steady_s())

    def _stop_jobs(self) -> None:
        wanted = [n for n in self.wants_stop if n in self.placed]
        unsent = [n for n in wanted if self.placed[n].id is None and not self.placed[n].is_doubtful]
        # in another job, which may be about to continue
        taken = [n for n in wanted if self.placed[n].is_taken]
        wanted = self._not_needed(wanted)
        ids = {
            n: job_id
            for n in wanted
            if (job_id := self.placed[n].id) is not None and n not in taken
        }
        for number in taken:
            self.run.dispatch.fence(self.run.core, number)
        if ids or self.left_behind or self.unreachable:
            self.queue.cancel(
                [*ids.values(), *self.left_behind.values(), *self.unreachable.values()]
            )
            self.left_behind.clear()
            self.unreachable.clear()
        self.wants_stop = [n for n in wanted if n not in ids and n not in unsent and n not in taken]
        if unsent:
            now = self.run.now_s()
            self.run.take_in([self._never_submitted(n, now) for n in unsent])

    def _not_needed(self, jobs: Sequence[int]) -> list[int]:
        """Those in which no other job runs as their guest, and those to be stopped anyway."""
        core = self.run.core
        hosts = {job.taken_by for job in core.jobs.values() if not job.is_stopping}
        return [n for n in jobs if n not in hosts or core.is_stopped or core.jobs[n].open_tasks]

    def _never_submitted(self, job: int, now: float) -> Record:
        """A submission that got no answer may arrive after its tag was looked for: such a job is
        given up."""
        detail: dict[str, object] = {"state": "never submitted"}
        if self.folder.job_file(job).exists():
            detail["agent"] = None
        return Record(e.JobEnded(int(now), job), detail, now)

    @property
    def group(self) -> list[Outpost]:
        """The outposts at the sites for which decisions are taken together with those for this
        one."""
        return [outpost for outpost in self.run.outposts if outpost.at in self.at.group]

    def _is_decision_due(self) -> bool:
        """Whether one is wanted, and all is submitted that was decided before (if the queue
        answers)."""
        now = self.run.steady_s()
        there = [outpost for outpost in self.group if outpost is self or outpost.asking.is_due(now)]
        is_wanted = any(outpost.wants_decision for outpost in there) and self.deciding.is_due(now)
        return is_wanted and not any(outpost._unsent() for outpost in there)

    def _decide(self) -> None:
        group = self.group
        core = self.run.core
        if core.is_stopped or core.trouble:  # since the decision was wished
            for outpost in group:
                outpost.wants_decision = False
            return
        if core.work.space is not None and not core.jobs:
            self.run.make_room()
        now = self.run.now_s()
        agreed = self.agree(now)
        decision = core.fitted(agreed.decision, agreed.site)
        is_stuck = (
            not decision.jobs
            and bool(decision.why)
            and agreed.could_start
            and not sum(at.jobs for at in self.at.group)
        )
        self.held_back = ""
        if is_stuck:  # as the queue stands (nodes are drained, say): ask again, ever more rarely
            self.held_back = f"nothing more can be submitted: {decision.why}"
            for outpost in group:
                outpost.deciding.asked(self.run.steady_s())
            return
        for outpost in group:  # of a queue that did not answer something may be wanted when it does
            is_silent = outpost.at.name in agreed.absent and not outpost.at.trouble
            outpost.deciding = PollTimes()
            outpost.wants_decision = is_silent
            outpost.held_back = ""
        if decision.jobs or decision.candidates:
            chosen = next(outpost for outpost in group if outpost.at.name == agreed.site)
            self.run.take_in([chosen.planned(decision, now)])
            # there may be room for more elsewhere
            self.wants_decision = len(group) > 1 and len(decision.jobs) > 1

    def planned(self, decision: Decision, now: float) -> Record:
        """The event of a decision for this site."""
        detail: dict[str, object] = {"forecast": self.trusted}
        are_here = all(job.site == self.at.name for job in decision.jobs)
        if self.at.site.starts_at_once and are_here:
            detail["limit_s"] = self.at.site.max_request_s
        return Record(e.JobsPlanned(int(now), decision, self.at.name), detail, now)

    def agree(self, now_s: float) -> Agreement:
        """What to do now for the group. If the batch system says otherwise of the first job, it is
        decided again with that."""
        words = ""
        for _ in range(ROUNDS):
            chosen = self._chosen(now_s)
            jobs = chosen.decision.jobs
            there = next((one for one in self.group if one.at.name == chosen.site), self)
            if there.guard is None or not jobs or not there._is_doubted(jobs[0]):
                break
            words = words or there.guard.words
        if words:
            why = f"{chosen.decision.why}; {words}"
            return replace(chosen, decision=replace(chosen.decision, why=why))
        return chosen

    def _is_doubted(self, job: JobPlan) -> bool:
        assert self.guard is not None
        best = self.predictions.best(len(self.placed))
        nodes = np.array([job.nodes])
        requested_s = np.array([job.requested_s])
        expected_s = int(self.guard.bounded(best.waits_s)(nodes, requested_s)[0])
        return self.guard.disagrees(job.nodes, job.requested_s, expected_s)

    def _chosen(self, now_s: float) -> Agreement:
        """What is decided by forecasts.

        If there is one site, and no limit on what may be used of it, there is nothing to choose.
        """
        if len(self.run.outposts) == 1 and self.at.site.max_node_hours is None:
            view = self._view(now_s)
            return Agreement(self.at.name, decided(self.run.strategy, view), bool(view.ready), {})
        from windrow.strategies.choosing import choose  # noqa: PLC0415  (most runs have one site)

        offers, absent = self.offers(now_s)
        could = not offers or any(
            offer.view.ready for offer in offers
        )  # and does not wait for tasks elsewhere
        name, decision = choose(self.run.strategy, offers, self.run.objective, absent)
        return Agreement(name, decision, could, absent)

    def offers(self, now_s: float) -> tuple[list[SiteOffer], dict[str, str]]:
        """The sites of the group as they could be used now; and those that cannot be, with the
        reason."""
        found: list[SiteOffer] = []
        absent = dict[str, str]()
        for outpost in self.group:
            is_there = outpost is self or outpost.asking.is_due(self.run.steady_s())
            try:
                if is_there and not outpost.at.trouble:
                    found.append(outpost._offer(now_s))
                    continue
            except QueueError as error:
                if outpost is self:
                    raise
                outpost.complain(error)
            absent[outpost.at.name] = outpost.at.trouble or outpost.trouble
        return found, absent

    def _offer(self, now_s: float) -> SiteOffer:
        from windrow.strategies.choosing import SiteOffer  # noqa: PLC0415

        if self.hearing.silent_since_s is not None and len(self.at.group) > 1:
            self.queue.snapshot()  # whose last reading forecasts may be made from: does it answer?
            if not self.placed:
                self.hearing.answered()
        view = self._view(now_s)
        at = self.at
        site = self.at.site
        moves = self.run.transfers
        if len(at.group) > 1:
            view = replace(view, forecast=shortened(view.forecast, self.part_waited))
        jobs = (job for job in self.run.core.jobs.values() if job.at is at and job.taken_by is None)
        plans = (job.plan for job in jobs)
        kept_node_s = at.used_node_s + sum(
            site.nodes_held(plan.nodes, plan.part) * plan.requested_s for plan in plans
        )
        return SiteOffer(
            at.name,
            view,
            site.price,
            at.pace,
            inf if site.max_node_hours is None else site.max_node_hours * 3600 - kept_node_s,
            inf if site.room_bytes is None or len(at.group) == 1 else site.room_bytes,
            lambda tasks: 0 if moves is None else ceil(moves.catalogue.data_s(tasks, site.files)),
            lambda tasks: 0 if moves is None else moves.catalogue.data_bytes(tasks, site.files),
            site.hazard,
        )

    @property
    def part_waited(self) -> float:
        """Which part of the waits by forecast should come true: long waits must not look longer
        than long runs."""
        return self.predictions.part_waited(self.trusted, len(self.placed))

    def wait_s(self, nodes: int, run_s: int) -> float:
        """How long a job would wait here; inf if the queue does not say."""
        try:
            best = self.predictions.best(len(self.placed))
            waits = best.waits_s(np.array([nodes]), np.array([self.at.requests.request_s(run_s)]))
        except QueueError:
            return inf
        if self.trouble or is_never(int(waits[0])):
            return inf
        return float(waits[0])

    def _view(self, now_s: float) -> View:
        """What the strategy may know, with a look ahead for those that want one."""
        core = self.run.core
        forecaster = self.predictions.best(len(self.placed))
        self.trusted = forecaster.name
        waits_s = (
            forecaster.waits_s if self.guard is None else self.guard.bounded(forecaster.waits_s)
        )
        view = core.view(int(now_s), waits_s, self.at.name)
        strategy = self.run.strategy
        if isinstance(strategy, LooksAhead) and strategy.has_to_wait(view):
            return view
        if self.open_to is not None:
            view = view.within(self.open_to(view.widest))
        is_blind = self.guard is not None and not self.guard.sees_all()
        if self.ahead is None or is_blind or view.work.cluster_nodes < 1:
            return view
        others = [
            job for job in core.jobs.values() if job.at is not self.at and job.at in self.at.group
        ]
        given = [job.as_given(self.at, int(now_s)) for job in others if job.open_tasks]
        done = ~self.at.of(~core.done())  # what is to run elsewhere is not played,
        done[[task for job in given for task in job.open_tasks]] = (
            False  # but what is under way there ends in time
        )
        futures = self.ahead.futures(view, self._own_jobs(), done, self.at.requests, given)
        if self.run.begun_s is not None:
            begun_s = self.run.begun_s
        else:
            begun_s = now_s
        return replace(view, elapsed_s=int(now_s - begun_s), futures=futures)

    def follow(self, job: int, offset: int) -> None:
        """A job that is in the journal; what its agent said is read up to there."""
        self.placed[job] = Placed(event_file.Tail(self.folder.events(job), offset))

    def _own_jobs(self) -> dict[str, OwnJob]:
        """The jobs of this run that the queue has and that are to stay, by their ids.

        If one has taken another over, both are in the same allocation.
        """
        ids = {number: placed.id for number, placed in self.placed.items() if placed.id is not None}
        own: dict[str, OwnJob] = {}
        for number, job in self.run.core.own_jobs(self.at.name).items():
            if number not in ids:
                continue
            there = own.get(ids[number])
            is_taken = self.run.core.jobs[number].taken_by is not None
            if there is None:
                own[ids[number]] = job
            else:
                own[ids[number]] = _with_taken(*((there, job) if is_taken else (job, there)))
        return own

    def _unsent(self) -> list[int]:
        return [
            n for n, job in self.placed.items() if job.id is None and not self._is_on_offer(job)
        ]

    def _is_on_offer(self, job: Placed) -> bool:
        return job.id is None and self.run.steady_s() < job.offered_until_s

    def _offer_copies(self) -> None:
        """Let running jobs that have none of these tasks take them, if any is there; then they go
        to the queue."""
        jobs = self.run.core.jobs
        now = self.run.steady_s()
        new = [
            n
            for n, placed in self.placed.items()
            if placed.id is None and not placed.is_doubtful and jobs[n].plan.offered_s
        ]
        for number in (
            n
            for n in new
            if self.placed[n].offered_until_s == float("-inf") and n not in self.wants_stop
        ):
            others = (
                job
                for job in jobs.values()
                if job.at is self.at and job.is_running and not job.is_stopping
            )
            self.placed[number].offered_until_s = now
            if any(jobs[number].copies.isdisjoint(job.open_tasks | job.copies) for job in others):
                self.run.dispatch.prepare(self.run.core, number, self.run.heard(), ())
                self.placed[number].offered_until_s = now + jobs[number].plan.offered_s

    def _may_be_offered(self, number: int) -> bool:
        """A job is offered once, if its fate is clear."""
        job = self.placed[number]
        is_new = job.offered_until_s == -inf and not job.is_doubtful
        return is_new and number not in self.wants_stop

    def _offer_to_kept(self) -> None:
        """Let agents that keep their nodes for tasks to come have the first new jobs, one each,
        before these go to the queue."""
        core = self.run.core
        if not core.is_held:
            return
        hosts = {job.taken_by for job in core.jobs.values()}
        kept = [n for n in core.kept_jobs() if n in self.placed and n not in hosts]
        free = len(kept) - sum(map(self._is_on_offer, self.placed.values()))
        for number in islice(filter(self._may_be_offered, self._unsent()), max(0, free)):
            self.run.dispatch.prepare(core, number, self.run.heard(), ())
            self.placed[number].offered_until_s = self.run.steady_s() + KEPT_OFFER_S

    def _room(self) -> int:
        """How many more jobs the queue may have: those that keep their nodes for tasks to come are
        in no other's way but there."""
        there = sum(job.id is not None and not job.is_taken for job in self.placed.values())
        return max(0, self.at.site.cap - there)

    def _nodes_to_avoid(self, nodes: int) -> tuple[str, ...]:
        """Never too many for a job of that many to start."""
        now = self.run.now_s()
        if not self.at.avoidance.at(now):
            return ()
        offered = self.at.site.nodes if self.open_to is None else self.open_to(nodes)
        return self.at.avoidance.names(now, offered - nodes)

    def _foretell(self, numbers: Sequence[int]) -> None:
        """What each forecaster says of these jobs is written down once, however often the queue
        puts them off."""
        run = self.run
        plans = {n: run.core.jobs[n].plan for n in numbers if n not in self.foretold}
        if plans:
            said = self.predictions.ask(plans, self.predictions.best(len(self.placed)), run.now_s())
            said = self._held_to_the_system(plans, said)
            run.journal.predict(said)
            self.foretold.update(prediction.job for prediction in said)

    def _send(self, numbers: Sequence[int]) -> None:
        """Submit alike jobs."""
        run = self.run
        avoid = self._nodes_to_avoid(run.core.jobs[numbers[0]].plan.nodes)
        heard = run.heard()
        specs = [run.dispatch.prepare(run.core, number, heard, avoid) for number in numbers]
        self._foretell(numbers)
        try:
            if len(specs) == 1:
                ids = [self.queue.submit(specs[0])]
            else:
                ids = self.queue.submit_array(specs)
        except SpecError as error:
            run.take_in(
                [Record(e.JobRejected(int(run.now_s()), number, str(error))) for number in numbers]
            )
            return
        except OutcomeUnknown:
            for number in numbers:
                self.placed[number].is_doubtful = True
            raise
        now = run.now_s()
        run.take_in(
            [
                Record(e.JobSubmitted(int(now), n, i), at_s=now)
                for n, i in zip(numbers, ids, strict=True)
            ]
        )
        self.hearing.pace.hurry()

    def _held_to_the_system(
        self, plans: Mapping[int, JobPlan], said: Sequence[PredictedStart]
    ) -> list[PredictedStart]:
        """What was said of these jobs. If the batch system's word is another, that counts, and
        nothing else does."""
        found = list[PredictedStart]()
        now_s = self.run.now_s()
        for number, plan in plans.items() if self.guard is not None else ():
            if self.guard is not None:
                start_s = self.guard.said_s(plan.nodes, plan.requested_s)
            else:
                start_s = None
            if start_s is not None:
                found.append(
                    PredictedStart(number, "probe", now_s, plan.nodes, plan.requested_s, start_s, 1)
                )
        held = {prediction.job for prediction in found}
        self.predictions.said += found
        return [replace(one, used=0) if one.job in held else one for one in said] + found

    def _resolve_doubts(self) -> None:
        """Jobs of which unknown whether they were submitted: the queue knows their tags.

        What began left its claim, whether the queue has forgotten it since or has it twice.
        """
        tags = {
            self.run.dispatch.tag(n): n
            for n, job in self.placed.items()
            if job.id is None and job.is_doubtful
        }
        if not tags:
            return
        claims = {tag: claimant(self.folder.claim(number)) for tag, number in tags.items()}
        found = dict(self.queue.find(list(tags))) | {
            tag: queue_id for tag, queue_id in claims.items() if queue_id
        }
        for number in tags.values():
            self.placed[number].is_doubtful = False
        if found:
            self._found({tags[tag]: queue_id for tag, queue_id in found.items()})

    def _found(self, ids: Mapping[int, str]) -> None:
        now = int(self.run.now_s())
        self.run.take_in(
            [
                Record(e.JobSubmitted(now, n, queue_id), {"found": True})
                for n, queue_id in ids.items()
            ]
        )

    def follow_claims(self) -> None:
        """Jobs that the queue calls over without a word of their agents, while others of the same
        tags run them.

        A submission that seemed lost may arrive after all, behind or before the second one. The
        first to start has the claim, and is the job; the other was turned away, which says nothing
        of the work.
        """
        silent = {
            n: job
            for n, job in self.placed.items()
            if job.over_since_s is not None and job.last_word is None
        }
        for number, job in silent.items():
            job.claimant = job.claimant or claimant(self.folder.claim(number))
        others = {n: job.claimant for n, job in silent.items() if job.claimant not in ("", job.id)}
        if others:
            self._found(others)
            self.wants_stop += [
                number for number in others if self.run.core.jobs[number].is_stopping
            ]


def _with_taken(one: OwnJob, other: OwnJob) -> OwnJob:
    """Two jobs in one allocation, as one."""
    return replace(
        one,
        open_tasks=tuple(sorted((*one.open_tasks, *other.open_tasks))),
        expected_end_s=max(one.expected_end_s, other.expected_end_s),
        running_since_s=one.running_since_s | other.running_since_s,
    )
