"""Puts a run together and drives it: the only place that names manager, queue, forecasters and strategy at once."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.app import live_runs
from windrow.app.learning import FirstPromise, Learning, Place, TaskErrors, earlier_errors
from windrow.app.queues import no_answer, open_queue
from windrow.app.requests import follow_requests
from windrow.app.runs import ROOT, RunPaths, new_run, past_predictions, past_promises
from windrow.app.sites import OVERHEAD_S, Reached, able_again, placing, reach, sites_again
from windrow.app.space import limit_of, notes_on_space, refuse_far, strategy_within_space, within_space
from windrow.app.strategies import AUTO, find_strategy
from windrow.errors import NothingBegun, OutsideError, UserError
from windrow.forecast.base import Forecaster
from windrow.forecast.best_effort import filled, past_waits
from windrow.forecast.ledger import promised_too_much
from windrow.forecast.runtimes import DEFAULT_RISK, FilledTime, RunTimes, Source
from windrow.forecast.waits import FromHistory, History
from windrow.formats import read_runnable as read_workflow_file
from windrow.manager import events as e
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.journal import Record, RunJournal
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import CopyRules, Terms
from windrow.model import Runnable
from windrow.model.runnable import refuse_missing_inputs
from windrow.model.site import Site
from windrow.queues.port import Checked, Limits, Queue, QueueError
from windrow.records.lock import RunLock
from windrow.records.runnable_file import read_runnable, record_of, write_inputs, write_runnable
from windrow.storage.lifetimes import without_intermediate
from windrow.strategies.base import LooksAhead, Objective, Strategy
from windrow.strategies.copied import copied
from windrow.strategies.levels import Mask, Work, whole_seconds, works
from windrow.version import __version__

JOB_S = 60.0
"""Node-seconds by which one job more must pay for itself: agents have to start, and people look at queues."""
GUESS_S = 60.0
"""The run time assumed for a task of which nothing is known."""
_SPACE = "space", "space_order", "space_in", "guarantee", "scratch", "keep", "share"
_SELDOM = ("copies", "reliability", "speculate", "delete_intermediate", *_SPACE)
"""Wishes that most runs do not have; their facts do not tell."""

if TYPE_CHECKING:
    from windrow.forecast.twin import Twin

Hear = Callable[[Sequence[Record]], None]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user wants: a workflow, executed on a queue by a strategy, under these terms.

    `shell` are settings of the queue from the shell in which a run began; None: those of this shell count. `also` are
    further queues: each job goes to the one where it should end first. `space`: the most bytes that files may take;
    `guarantee`: what it has of those of all runs in `space_in`. `scratch`: disks of nodes, where `keep` does not stay.
    `share`: how what many tasks read comes there (`model.volume.WAYS`); empty: by each node for itself.
    """

    workflow: Path
    on: str = "local"
    also: tuple[str, ...] = ()
    strategy: str = AUTO
    objective: Objective = "makespan"
    deadline_s: int | None = None
    think: int = 1
    cap: int = 16
    margin: float = 1.2
    max_nodes: int | None = None
    copies: int = 1
    reliability: float = 0.0
    speculate: bool = False
    delete_intermediate: bool = False
    space: int | None = None
    space_order: str = "auto"
    space_in: tuple[str, int] | None = None
    guarantee: int | None = None
    scratch: str = ""
    keep: Sequence[str] = ()
    share: str = ""
    risk: float = DEFAULT_RISK
    guess_s: float = GUESS_S
    shell: Mapping[str, str] | None = None

    @property
    def rules(self) -> CopyRules:
        """When tasks that run get copies."""
        return CopyRules(self.reliability, self.speculate)

    def may_copy(self, runnable: Runnable) -> bool:
        """Whether tasks may be in several jobs at a time."""
        return self.copies > 1 or self.rules.are_needed(runnable.steps)


@dataclass(frozen=True)
class Prepared:
    """A workflow that can run on one or several sites, and under which terms. Nothing has been written or submitted."""

    order: RunRequest
    runnable: Runnable
    times: tuple[FilledTime, ...]
    terms: Terms
    sites: tuple[Reached, ...]
    able: Mask
    """Which tasks may run at which site: a row for each."""
    silent: tuple[str, ...] = ()
    """What sites said that did not answer, and are left out."""

    @property
    def site(self) -> Site:
        """The first site."""
        return self.sites[0].site

    @property
    def limits(self) -> Limits:
        """What the first site allows."""
        return self.sites[0].limits

    @property
    def starts_at_once(self) -> bool:
        """Whether no job ever waits, and there is no site to choose."""
        return len(self.sites) == 1 and self.limits.starts_at_once

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of where jobs go."""
        several = len(self.sites) > 1
        told = [(f"{one.site.name}: " if several else "", one.queue) for one in self.sites]
        notes = tuple(name + note for name, queue in told if isinstance(queue, Checked) for note in queue.notes)
        notes += (*self.silent, *[self.limits.narrow] * bool(self.limits.narrow and self._could_be_wider))
        if self._has_seldom:
            from windrow.app.copies import notes_on_copies  # noqa: PLC0415
            from windrow.app.volumes import notes_on_volumes  # noqa: PLC0415

            notes += (*notes_on_copies(self), *notes_on_volumes(self))
        return (*notes, *notes_on_space(self))

    @property
    def _has_seldom(self) -> bool:
        """Whether there are copies or volumes, which most runs do without."""
        return self.order.may_copy(self.runnable) or any(step.mounts for step in self.runnable.steps)

    def refuse_seldom(self) -> None:
        """UserError where it could not have them."""
        if self._has_seldom:
            from windrow.app.copies import refuse_copies  # noqa: PLC0415
            from windrow.app.volumes import refuse_volumes  # noqa: PLC0415

            refuse_copies(self)
            refuse_volumes(self)

    @cached_property
    def copyable(self) -> list[bool]:
        """Which tasks several jobs may run at the same time."""
        from windrow.app.copies import copyable  # noqa: PLC0415

        return copyable(self.runnable)

    @property
    def work(self) -> Work:
        """The tasks as they would run at the first site."""
        return works(self.runnable.workflow, [self.site], [], limit_of(self.order))[0]

    @property
    def _could_be_wider(self) -> bool:
        """Whether a job of this workflow could use more nodes than one may have."""
        workflow = self.runnable.workflow
        work = Work(workflow, whole_seconds(workflow), replace(self.site, max_nodes=None))
        levels = work.levels(np.ones(len(workflow), dtype=bool))
        return levels.usable(0, levels.last) > self.site.job_nodes

    @property
    def guesses(self) -> int:
        """Tasks whose run time is unknown."""
        return sum(time.source is Source.GUESS for time in self.times)

    @property
    def learned(self) -> int:
        """Tasks whose run time comes from earlier runs."""
        return sum(time.source is Source.LEARNED for time in self.times)


def prepare(order: RunRequest, runnable: Runnable | None = None, finished: Collection[int] = ()) -> Prepared:
    """Read and check everything that can be checked before anything is done.

    `runnable`: what the workflow file says, where that was read before; `finished`: tasks of it that will not run.
    """
    if order.strategy != AUTO or not _is_plain(order):
        strategy_of(order)
    runnable, times = filled(runnable or read_workflow_file(order.workflow), order.guess_s, order.risk)
    if order.delete_intermediate:
        runnable = replace(runnable, workflow=without_intermediate(runnable.workflow))
    order, runnable = within_space(order, runnable, finished)
    if order.scratch and any(step.mounts for step in runnable.steps):
        from windrow.app.volumes import on_disks  # noqa: PLC0415

        runnable = on_disks(runnable, times)
    sites, silent = list[Reached](), list[str]()
    for name in (order.on, *order.also):
        queue = open_queue(name, order.shell if name == order.on else None)
        try:
            sites.append(reach(order, name, queue, queue.limits()))
        except QueueError as error:
            silent.append(str(no_answer(name, error)))
    if not sites:
        raise NothingBegun("; ".join(silent))
    names = [reached.site.name for reached in sites]
    order = replace(order, on=names[0], also=tuple(names[1:]))
    refuse_missing_inputs(order.workflow, runnable, Path.exists, finished)
    if any(reached.site.files for reached in sites):
        refuse_far(order)
        from windrow.data.catalogue import paths_of  # noqa: PLC0415  (most runs have no such site)

        paths_of(runnable, os.path.isfile)  # refuses what could not be found there
    able = placing(sites, runnable.workflow, runnable.steps)
    prepared = Prepared(order, runnable, times, terms_for(order, runnable), tuple(sites), able, tuple(silent))
    prepared.refuse_seldom()
    return prepared


def _is_plain(order: RunRequest) -> bool:
    """Whether it aims at what every strategy aims at."""
    return order.objective == "makespan" and order.deadline_s is None and order.think == 1


def strategy_of(order: RunRequest, *, starts_at_once: bool = False) -> Strategy:
    """The strategy that the user wants, with what it is to aim at. Only who looks ahead can aim at different things.

    Where no job ever waits there is nothing to choose: by default everything that is left is one job.
    """
    if order.space is not None and _is_plain(order):
        return strategy_within_space()
    if order.strategy == AUTO and _is_plain(order) and starts_at_once:
        return find_strategy("giant")
    strategy = find_strategy(order.strategy)
    if isinstance(strategy, LooksAhead):
        aim, deadline_s, most = order.objective, order.deadline_s, order.max_nodes
        return strategy.aimed(objective=aim, deadline_s=deadline_s, think=order.think, max_nodes=most, job_s=JOB_S)
    if not _is_plain(order):
        options = "--objective, --deadline and --think"
        raise UserError(f"{options} are for foresight; {strategy.name} has no such choice: leave them out")
    return strategy


def terms_for(order: RunRequest, runnable: Runnable) -> Terms:
    """The user's wishes. Tasks that are asked for checkpoints before an end should have ended by then."""
    return Terms(margin=order.margin, overhead_s=OVERHEAD_S + runnable.notice_s(), patience=PATIENCE)


def start_run(
    prepared: Prepared, root: Path = ROOT, *, continues: str | None = None, kept: Sequence[Record] = (), added: int = 0
) -> RunPaths:
    """Make the run's folder, workflow and journal. Nothing is submitted yet.

    `continues`: the run that this one continues, `kept` what stays finished of it, and `added` how many of the tasks,
    the last ones, had been added to it: they are not in the workflow file.
    """
    runnable = prepared.runnable
    live_runs.refuse_conflicts(root, prepared.order.workflow, runnable)

    def fill(paths: RunPaths) -> None:
        own = len(runnable.workflow) - added
        write_runnable(paths.workflow, runnable, own)
        write_inputs(paths.inputs, runnable)
        more = {"root": str(root.absolute()), "continues": continues}
        facts = _facts(prepared) | more
        if any(reached.site.files for reached in prepared.sites):
            from windrow.app.far import far_facts  # noqa: PLC0415

            facts |= far_facts(prepared.sites, runnable, facts["uid"])
        journal = RunJournal.create(paths.journal, facts)
        if added:
            event = e.TasksAdded(int(time.time()), secrets.token_hex(4), record_of(runnable, own))
            journal.append([Record(event)])
        journal.append(kept)
        journal.close()

    return new_run(runnable.workflow.name, root, fill)


def _facts(prepared: Prepared) -> dict[str, Any]:
    """What is to be known of a run as long as it is kept."""
    order, site, workflow = prepared.order, prepared.site, prepared.runnable.workflow
    return {
        "uid": secrets.token_hex(4),
        "name": workflow.name,
        "workflow": str(order.workflow.absolute()),
        "tasks": len(workflow),
        "queue": order.on,
        "shell": dict(site.settings),
        "strategy": strategy_of(order, starts_at_once=prepared.starts_at_once).name,
        "objective": order.objective,
        "deadline_s": order.deadline_s,
        "think": order.think,
        "cap": site.cap,
        "margin": order.margin,
        "max_nodes": order.max_nodes,
        "node_cores": site.shape.cores,
        "guesses": prepared.guesses,
        "learned": prepared.learned,
        "errors": earlier_errors(prepared.runnable, prepared.times, RunTimes),
        "created_s": time.time(),
        "version": __version__,
    } | _further_facts(prepared)


def _further_facts(prepared: Prepared) -> dict[str, Any]:
    """Of runs that are not as usual, have several sites, or one that others of its name are not to be taken for."""
    usual, first = RunRequest(Path()), prepared.sites[0]
    asked = ((name, getattr(prepared.order, name)) for name in _SELDOM)
    facts: dict[str, Any] = {name: value for name, value in asked if value != getattr(usual, name)}
    if first.place != first.queue.name:
        facts["place"] = first.place
    if len(prepared.sites) > 1:
        told = ((one.site.name, one.place, one.site.settings, one.limits) for one in prepared.sites)
        facts["sites"] = [dict(zip(("name", "place", "shell", "limits"), one, strict=True)) for one in told]
        facts["unable"] = [np.flatnonzero(~row).tolist() for row in prepared.able]
    return facts


@contextmanager
def managed(paths: RunPaths, *, wait_s: float = 0.0, writes: bool = True) -> Iterator[Manager]:
    """The run's manager, restored from its journal; no other process can manage it in the meantime.

    UserError where another live run writes the same files, unless this one `writes` none any more.
    """
    lock = RunLock(paths.lock, wait_s)
    lock.lend()
    paths.stop.unlink(missing_ok=True)  # of an earlier manager; from here on, cancelling means us
    journal, transfers = RunJournal.open(paths.journal, writable=True), None
    try:
        promise = FirstPromise()
        manager = _manager(paths, journal, promise)
        transfers = manager.transfers
        manager.restore()
        if writes:
            try:
                live_runs.enter(paths, manager.dispatch.runnable)
            except UserError:
                if manager.begun_s is None:  # refused before anything happened: it was never there
                    shutil.rmtree(paths.folder.path, ignore_errors=True)
                raise
        yield manager
        left = ""
        if manager.is_over:
            left = manager.dispatch.clean_up(manager.core)
            live_runs.leave(paths)
        journal.set_fact("trouble", manager.core.trouble or left)
        aheads = [outpost.ahead for outpost in manager.outposts if outpost.ahead is not None]
        for ahead in aheads:
            ahead.observer.keep()
        is_as_promised = manager.core.is_complete and not manager.core.additions  # else it became another run
        if aheads and is_as_promised and (kept := promise.kept()) is not None:
            journal.set_fact("promise", asdict(kept))
    finally:
        if transfers is not None:
            transfers.close()
        journal.close()
        lock.release()


def _manager(paths: RunPaths, journal: RunJournal, promise: FirstPromise) -> Manager:
    facts, runnable = journal.facts(), read_runnable(paths.workflow)
    order = order_of_run(facts)
    sites, waits = sites_again(order, facts), past_waits()
    transfers = None
    if "far" in facts:
        from windrow.app.far import transfers_of  # noqa: PLC0415

        sites, transfers = transfers_of(facts["far"], paths.folder, runnable, sites, waits)
    workflow, terms = runnable.workflow, terms_for(order, runnable)
    there, able = [reached.site for reached in sites], able_again(facts, len(workflow))
    core = Core(works(workflow, there, able, limit_of(order)), terms)
    past = (record for _, record in journal.records(kinds=(e.JobsPlanned, e.JobSubmitted, e.JobStarted)))
    strategy, root = strategy_of(order), paths.folder.path.parent
    dispatch = Dispatch(
        paths.folder,
        runnable,
        facts["uid"],
        paths.name,
        copies=order.may_copy(runnable),
        offers=order.rules.are_needed(runnable.steps),
        mirrors=transfers.mirrors if transfers else {},
        scratch="" if transfers else order.scratch,
        keep=order.keep,
        share=order.share,
    )
    places = {at.name: Place(one.place, at.site.speed) for at, one in zip(core.sites, sites, strict=True)}
    hearers: list[Hear] = [Learning(dispatch, places, past, waits)]
    errors = None
    if isinstance(strategy, LooksAhead):
        errors = TaskErrors({at.name: at.work.expected_s for at in core.sites}, facts.get("errors", ()))
        hearers += [errors.hear, promise.hear]
        heard = (e.TasksAdded, e.JobsPlanned, e.TaskFinished)
        _tell(hearers[1:], [record for _, record in journal.records(kinds=heard)])
    return Manager(
        folder=paths.folder,
        journal=journal,
        core=core,
        strategy=copied(strategy, order.copies, dispatch.may_copy),
        dispatch=dispatch,
        copies=order.rules,
        outposts=[_outpost(reached, root, waits, errors) for reached in sites],
        objective=order.objective,
        on_records=lambda records: _tell(hearers, records),
        transfers=transfers,
    )


def _outpost(reached: Reached, root: Path, waits: History | None, errors: TaskErrors | None) -> Outpost:
    """A site with its forecasters; without `errors` there is no look ahead."""
    queue, name, place = reached.queue, reached.site.name, reached.place
    twin, ahead, asked = cache(lambda: twin_of(queue)), None, list[Forecaster]()
    if errors is not None:
        from windrow.foresight.live import Ahead  # noqa: PLC0415

        is_trusted = not promised_too_much(past_promises(root, name, place), time.time())
        ahead = Ahead.on(queue, twin(), errors, is_trusted=is_trusted)
    if not reached.site.starts_at_once:
        from windrow.forecast.system import System  # noqa: PLC0415

        asked = [twin(), System(queue, time.time, twin())]  # the most trusted first
        asked += [] if waits is None else [FromHistory(waits, place, time.time, twin(), queue.name)]
    return Outpost(
        queue,
        forecasters=asked,
        earlier=past_predictions(root, name, place),
        ahead=ahead,
        open_nodes=None if reached.site.starts_at_once else lambda: twin().snapshot().open_nodes,
    )


def _tell(hearers: Sequence[Hear], records: Sequence[Record]) -> None:
    for hear in hearers:
        hear(records)


def order_of_run(facts: Mapping[str, Any]) -> RunRequest:
    """The order that a run was started with."""
    return RunRequest(
        Path(facts["workflow"]),
        on=facts["queue"],
        also=tuple(site["name"] for site in facts.get("sites", ())[1:]),
        strategy=facts["strategy"],
        objective=facts.get("objective", "makespan"),
        deadline_s=facts.get("deadline_s"),
        think=facts.get("think", 1),
        cap=facts["cap"],
        margin=facts["margin"],
        max_nodes=facts["max_nodes"],
        **{name: facts[name] for name in _SELDOM if name in facts},
        shell=facts.get("shell"),
    )


def twin_of(queue: Queue) -> Twin:
    """The most trusted of those who are asked for starts on this queue."""
    from windrow.forecast.twin import Twin  # noqa: PLC0415  (not on this machine, where no job waits)

    return Twin(queue, time.time, policy=queue.policy, refresh_s=5.0)


def drive(manager: Manager, tell: Callable[[Manager], None] = lambda _: None, stop: Path | None = None) -> None:
    """Step until the run is over; stop it as soon as the file `stop` is there.

    An interrupt leaves everything as it is: the journal is up to date at all times.
    """
    follow_requests(manager)
    while not manager.is_over:
        if stop is not None and not manager.core.is_stopped and stop.exists():
            manager.stop()
        happened = manager.step()
        tell(manager)
        for outpost in manager.outposts:  # between decisions, look who comes and goes, where nothing else tells
            if outpost.ahead is not None:
                with suppress(OutsideError):  # the manager says it where it matters
                    own = [job.id for job in outpost.placed.values() if job.id is not None]
                    outpost.ahead.glance(own, manager.now_s())
        if not manager.is_over:
            time.sleep(manager.next_look_s(happened=happened))
        follow_requests(manager)
