"""What a run would submit now: the manager that would carry it out decides, on the live queues;
nothing is written or submitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from windrow.agent.folder import RunFolder
from windrow.app.assembly import Ports, assemble, outpost_at
from windrow.app.execute import Prepared
from windrow.app.learning import earlier_errors, errors_at
from windrow.app.runs import own_root
from windrow.data.mirror import Mirror
from windrow.forecast.best_effort import past_waits
from windrow.forecast.runtimes import RunTimes
from windrow.manager.manager import Manager
from windrow.manager.outpost import Agreement, Outpost
from windrow.queues.port import QueueError
from windrow.story import events as e
from windrow.story.journal import RunJournal
from windrow.strategies.base import Decision, JobPlan, LooksAhead
from windrow.strategies.choosing import SiteOffer, Way, frontier


@dataclass(frozen=True)
class DryRun:
    """What would be submitted now: the decision, whose forecast it is based on, and the exact
    commands.

    `risks`: how likely each job is to be lost, if known. `frontier`: choices of sites, if these
    have prices or risks.
    """

    decision: Decision
    forecast: str
    waits_s: tuple[int, ...]
    commands: tuple[str, ...]
    risks: tuple[float | None, ...] = ()
    frontier: tuple[Way, ...] = ()
    notes: tuple[str, ...] = ()
    """What the batch system itself says of the waits, if that is not what the queue looks
    like."""
    space: tuple[tuple[float, int], ...] = ()
    """What files should take, from each of these times of the first job on."""


def dry_run(prepared: Prepared, before: Iterable[e.Event] = ()) -> DryRun:
    """Decide as a run would, now, on the live queues of its sites. Nothing is written or submitted.

    `before`: what has happened in the run so far.
    """
    with closing(RunJournal.unkept()) as journal:
        manager = _manager(prepared, journal)
        core = manager.core
        for event in before:
            core.handle(event)
        earlier = core.submitted
        decision, offers = _decided(manager)
        trusted, notes = _forecasts(manager)
        return DryRun(
            decision,
            trusted,
            tuple(_wait_s(offers[job.site], job) for job in decision.jobs),
            tuple(_commands(manager, prepared, earlier)),
            tuple(_risk(offers[job.site], job) for job in decision.jobs),
            tuple(_frontier(manager, list(offers.values()))),
            notes,
            _space(manager, decision),
        )


def _manager(prepared: Prepared, journal: RunJournal) -> Manager:
    """The one that this run would have, on paper."""
    wanted = prepared.wanted
    root = own_root()
    name = f"{prepared.runnable.workflow.name}-N"
    folder = RunFolder.at(root / name)
    errors = None
    if isinstance(wanted.strategy, LooksAhead):
        known = earlier_errors(prepared.runnable, prepared.times, RunTimes)
        errors = errors_at(wanted.works, known)
    waits = past_waits()
    transfers = None
    mirrors = {}
    if places := {one.site.files: one.site.folder for one in prepared.sites if one.site.files}:
        from windrow.app.far import planned_transfers  # noqa: PLC0415  (most runs have no such site)

        transfers = planned_transfers(prepared.sites, prepared.runnable, waits)
        mirrors = {
            place: Mirror(place, folder, dict, f"{at}/runs/{name}", ("python3",))
            for place, at in places.items()
        }
    return assemble(
        wanted,
        Ports(
            folder=folder,
            uid="UID",
            name=prepared.runnable.workflow.name,
            journal=journal,
            outposts=[outpost_at(one, root, waits, errors, keeps=False) for one in prepared.sites],
            transfers=transfers,
            mirrors=mirrors,
        ),
    )


def _forecasts(manager: Manager) -> tuple[str, tuple[str, ...]]:
    """Which forecast is trusted, and what is to be said of forecasts."""
    outposts = [outpost for outpost in manager.outposts if outpost.trusted]
    notes = (note for outpost in outposts if outpost.guard for note in outpost.guard.notes)
    return outposts[0].trusted, tuple(dict.fromkeys(notes))


def _decided(manager: Manager) -> tuple[Decision, dict[str, SiteOffer]]:
    """What is decided for all groups of sites, and from which offers, by the names of their sites.

    QueueError if no queue of a group answers.
    """
    now_s = manager.now_s()
    decisions = list[Decision]()
    offers = dict[str, SiteOffer]()
    groups = dict.fromkeys(tuple(outpost.group) for outpost in manager.outposts)
    for group in groups:
        agreed, asked = _agreed(group, now_s)
        decision = manager.core.fitted(agreed.decision, agreed.site)
        manager.core.handle(e.JobsPlanned(int(now_s), decision, agreed.site))
        decisions.append(decision)
        offers |= asked
    return _as_one(decisions), offers


def _as_one(decisions: Sequence[Decision]) -> Decision:
    """Those of all groups."""
    return replace(
        decisions[0],
        jobs=tuple(job for one in decisions for job in one.jobs),
        candidates=tuple(candidate for one in decisions for candidate in one.candidates),
        why="; ".join(dict.fromkeys(one.why for one in decisions if one.why)),
    )


def _agreed(group: tuple[Outpost, ...], now_s: float) -> tuple[Agreement, dict[str, SiteOffer]]:
    """As the first of these sites that answers says."""
    silence: QueueError | None = None
    for outpost in group:
        try:
            agreed = outpost.agree(now_s)
            return agreed, {offer.name: offer for offer in outpost.offers(now_s)[0]}
        except QueueError as error:
            outpost.complain(error)
            silence = silence or error
    assert silence is not None
    raise silence


def _wait_s(at: SiteOffer, job: JobPlan) -> int:
    return int(at.view.forecast(np.array([job.nodes]), np.array([job.requested_s]))[0])


def _risk(at: SiteOffer, job: JobPlan) -> float | None:
    if at.hazard:
        return 1 - at.hazard.survival(job.nodes, job.run_s)
    return None


def _frontier(manager: Manager, offers: list[SiteOffer]) -> list[Way]:
    """Choices of sites, if they differ in more than time."""
    if len(offers) > 1 and any(at.hazard or at.price for at in offers):
        return list(frontier(manager.strategy, offers))
    return []


def _commands(manager: Manager, prepared: Prepared, earlier: int) -> Iterator[str]:
    """What would be typed to submit the jobs from that number on."""
    core = manager.core
    dispatch = manager.dispatch
    for at, reached in zip(core.sites, prepared.sites, strict=True):
        mine = [n for n, job in core.jobs.items() if job.at is at and n >= earlier]
        for group in dispatch.alike(mine, core, at.site.max_array):
            yield from reached.queue.commands([dispatch.spec(core, number) for number in group])


def _space(manager: Manager, decision: Decision) -> tuple[tuple[float, int], ...]:
    """What files of the first job should take over time, if the size of any is known."""
    work = manager.core.work
    if not decision.jobs or not any(file.size_bytes for file in work.workflow.files):
        return ()
    first = decision.jobs[0]
    return tuple(work.space_over_time(np.array(first.tasks), first.nodes))
