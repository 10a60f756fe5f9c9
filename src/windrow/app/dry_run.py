"""What a run would submit now: the same code decides, on the live queues; nothing is written or submitted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path

import numpy as np

from windrow.agent.folder import RunFolder
from windrow.app.execute import Prepared, strategy_of, twin_of
from windrow.app.runs import ROOT, past_predictions
from windrow.app.sites import Reached
from windrow.app.space import limit_of
from windrow.data.mirror import Mirror
from windrow.forecast.base import AtOnce, Forecaster, shortened
from windrow.forecast.ledger import part_waited
from windrow.manager import events as e
from windrow.manager.beliefs import AtSite
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.queues.port import QueueError
from windrow.strategies.base import Decision, Forecast, LooksAhead
from windrow.strategies.choosing import Offer, Way, choose, frontier
from windrow.strategies.copied import copied
from windrow.strategies.levels import works


@dataclass(frozen=True)
class DryRun:
    """What would be submitted now: the decision, whose forecast it is based on, and the exact commands.

    `risks`: how likely each job is to be lost, if known. `frontier`: choices of sites, if these have prices or risks.
    """

    decision: Decision
    forecast: str
    waits_s: tuple[int, ...]
    commands: tuple[str, ...]
    risks: tuple[float | None, ...] = ()
    frontier: tuple[Way, ...] = ()
    space: tuple[tuple[float, int], ...] = ()
    """What files should take, from each of these times of the first job on."""


def dry_run(prepared: Prepared, root: Path = ROOT) -> DryRun:
    """Decide as a run would, now, on the live queues of its sites. Nothing is written or submitted."""
    workflow, order = prepared.runnable.workflow, prepared.order
    sites = [reached.site for reached in prepared.sites]
    core = Core(works(workflow, sites, prepared.able, limit_of(order)), prepared.terms)
    strategy = strategy_of(order, starts_at_once=prepared.starts_at_once)
    now, offers, silent = int(time.time()), list[Offer](), dict[str, str]()
    for at, reached in zip(core.sites, prepared.sites, strict=True):
        try:
            offers.append(_offer(reached, core, at, now, root, looks_ahead=isinstance(strategy, LooksAhead)))
        except QueueError as error:
            if len(prepared.sites) == 1:
                raise
            silent[at.name] = f"the queue does not answer: {error}"
    folder = RunFolder.at(root / f"{workflow.name}-N")
    places = {one.site.files: one.site.folder for one in prepared.sites if one.site.files}
    mirrors = {
        place: Mirror(place, folder, dict, f"{at}/runs/{workflow.name}-N", ("python3",)) for place, at in places.items()
    }
    dispatch = Dispatch(folder, prepared.runnable, "UID", workflow.name, mirrors=mirrors)
    name, decision = choose(copied(strategy, order.copies, dispatch.may_copy), offers, order.objective, silent)
    core.handle(e.JobsPlanned(now, decision, name))
    specs = [dispatch.spec(core, number) for number in core.jobs]
    named = {offer.name: offer for offer in offers}
    asked = [(named[job.site], job) for job in decision.jobs]
    waits_s = [int(at.view.forecast(np.array([j.nodes]), np.array([j.requested_s]))[0]) for at, j in asked]
    risks = [1 - at.hazard.survival(job.nodes, job.run_s) if at.hazard else None for at, job in asked]
    ways = frontier(strategy, offers) if len(offers) > 1 and any(at.hazard or at.price for at in offers) else ()
    commands = list[str]()
    for at, reached in zip(core.sites, prepared.sites, strict=True):
        mine = [number for number, job in core.jobs.items() if job.at is at]
        groups = dispatch.alike(mine, core, at.site.max_array)
        commands += [line for group in groups for line in reached.queue.commands([specs[n] for n in group])]
    whose = "at once" if prepared.starts_at_once else "twin"
    space = list[tuple[float, int]]()
    if decision.jobs and any(file.size_bytes for file in workflow.files):
        first = decision.jobs[0]
        space = core.work.space_over_time(np.array(first.tasks), first.nodes)
    return DryRun(decision, whose, tuple(waits_s), tuple(commands), tuple(risks), ways, tuple(space))


def _offer(reached: Reached, core: Core, at: AtSite, now_s: int, root: Path, *, looks_ahead: bool) -> Offer:
    """A site as a run that has not started could use it now."""
    queue, site, twin = reached.queue, at.site, cache(lambda: twin_of(reached.queue))
    forecaster: Forecaster = AtOnce() if site.starts_at_once else twin()
    waits_s: Forecast = forecaster.waits_s
    if len(at.group) > 1 and not site.starts_at_once:
        waits_s = shortened(waits_s, part_waited(past_predictions(root, site.name, reached.place), forecaster.name))
    view = core.view(now_s, waits_s, at.name)
    if not site.starts_at_once:
        view = view.within(twin().snapshot().open_nodes)
    if looks_ahead and view.work.cluster_nodes >= 1:
        from windrow.foresight.live import Ahead  # noqa: PLC0415

        ahead = Ahead.on(queue, twin(), keeps=False).futures(view, {}, ~at.of(~core.done()), at.requests)
        view = replace(view, futures=ahead)
    budget_s = inf if site.max_node_hours is None else site.max_node_hours * 3600
    return Offer(at.name, view, site.price, node_s=budget_s, hazard=site.hazard)
