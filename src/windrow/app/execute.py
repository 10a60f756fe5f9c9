"""Puts a run together and drives it: the only place that names manager, queue, forecasters and
strategy at once."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windrow.app import live_runs
from windrow.app.assembly import Ports, WantedRun, assemble, outpost_at
from windrow.app.facts import RunFacts, RunRequest, SiteFacts, origin_of
from windrow.app.learning import (
    FirstPromise,
    Learning,
    LearningPlace,
    earlier_errors,
    errors_at,
)
from windrow.app.queues import no_answer, open_queue
from windrow.app.requests import REQUEST_S, follow_requests
from windrow.app.runs import RunPaths, new_run, own_root
from windrow.app.settings import settings_of
from windrow.app.sites import OVERHEAD_S, Reached, able_again, placing, reach, sites_again
from windrow.app.space import (
    limit_of,
    notes_on_space,
    refuse_far,
    strategy_within_space,
    within_space,
)
from windrow.app.strategies import AUTO, find_strategy
from windrow.deletion import discard, discard_tree
from windrow.errors import NothingBegun, OutsideError, UserError
from windrow.files import is_shared
from windrow.forecast.best_effort import filled, past_waits
from windrow.forecast.runtimes import FilledTime, RunTimes, TimeSource
from windrow.formats import read_runnable as read_workflow_file
from windrow.manager.inbox import LATE_FILES_S, PATIENCE_S
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.terms import Terms
from windrow.model import Runnable, Step, Workflow
from windrow.model.runnable import refuse_missing_inputs
from windrow.model.site import Site
from windrow.queues.port import Checked, Limits, QueueError
from windrow.records.contents import Recorder, record_small
from windrow.records.lock import RunLock
from windrow.records.runnable_file import (
    inputs_at,
    made_files,
    outside_inputs,
    read_runnable,
    record_of,
    write_inputs,
    write_runnable,
)
from windrow.storage.lifetimes import without_intermediate
from windrow.story import events as e
from windrow.story.journal import Record, RunJournal
from windrow.story.states import RunState
from windrow.strategies.base import LooksAhead, Strategy
from windrow.strategies.levels import Mask, Work, whole_seconds, works
from windrow.version import __version__

JOB_S = 60.0
"""Node-seconds by which one job more must pay for itself: agents have to start, and people look at
queues."""
SOON_S = 0.1
"""How long it may take until tasks that joined a run that is held are planned."""
_REST = 40
"""How many times as long as a turn takes a manager rests while tasks join one by one."""
if TYPE_CHECKING:
    from windrow.app.arrivals import Arrivals
    from windrow.app.fetching import Fetching
    from windrow.forecast.waits import History
    from windrow.manager.expanding import Fragments
    from windrow.story.story import Addition

Hear = Callable[[Sequence[Record]], None]


@dataclass(frozen=True)
class Prepared:
    """A workflow that can run on one or several sites, and under which terms. Nothing has been
    written or submitted."""

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
        """Whether no job ever waits, and there is only one site."""
        return len(self.sites) == 1 and self.limits.starts_at_once

    @property
    def has_one_way(self) -> bool:
        """Whether there is nothing to choose: one job for everything, at one site."""
        return len(self.sites) == 1 and self.limits.has_one_way

    def _notes_of_queues(self) -> Iterator[str]:
        for one in self.sites:
            name = f"{one.site.name}: " if len(self.sites) > 1 else ""
            if isinstance(one.queue, Checked):
                yield from (f"{name}{note}" for note in one.queue.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of where jobs go."""
        notes = (*self._notes_of_queues(), *self.silent)
        if self.limits.narrow and self._could_be_wider:
            notes += (self.limits.narrow,)
        if self._has_seldom:
            from windrow.app.copies import notes_on_copies  # noqa: PLC0415
            from windrow.app.volumes import notes_on_volumes  # noqa: PLC0415

            notes += (*notes_on_copies(self), *notes_on_volumes(self))
        if self.order.scratch:
            notes += tuple(fetching_for(self.order, self.runnable).words())
        if os.geteuid() == 0:  # whom no permission keeps from anything
            from windrow.app.outside import notes_on_outside  # noqa: PLC0415

            notes += tuple(notes_on_outside(self.order.workflow, self.runnable))
        return (*notes, *notes_on_space(self))

    @property
    def _has_seldom(self) -> bool:
        """Whether there are copies or volumes, which most runs do without."""
        return self.order.may_copy(self.runnable) or any(
            step.mounts for step in self.runnable.steps
        )

    def refuse_seldom(self) -> None:
        """UserError if it could not have them."""
        if self._has_seldom:
            from windrow.app.copies import refuse_copies  # noqa: PLC0415
            from windrow.app.volumes import refuse_volumes  # noqa: PLC0415

            refuse_copies(self)
            refuse_volumes(self)

    @cached_property
    def copyable(self) -> list[bool]:
        """Which tasks several jobs may run at the same time."""
        from windrow.app.copies import copyable  # noqa: PLC0415

        return copyable(self)

    @property
    def work(self) -> Work:
        """The tasks as they would run at the first site."""
        return works(self.runnable.workflow, [self.site], [], limit_of(self.order))[0]

    @property
    def wanted(self) -> WantedRun:
        """The same, as a run is put together from."""
        sites = [reached.site for reached in self.sites]
        there = works(self.runnable.workflow, sites, self.able, limit_of(self.order))
        return wanted_by(self.order, self.runnable, there, has_one_way=self.has_one_way)

    @property
    def _could_be_wider(self) -> bool:
        """Whether a job of this workflow could use more nodes than one may have."""
        workflow = self.runnable.workflow
        work = Work(workflow, whole_seconds(workflow), replace(self.site, max_nodes=None))
        levels = work.levels(np.ones(len(workflow), dtype=bool))
        is_limit = self.limits.max_nodes == self.site.max_nodes  # and not what the user wants
        return is_limit and levels.usable(0, levels.last) > self.site.job_nodes

    @property
    def guesses(self) -> int:
        """Tasks whose run time is unknown."""
        return sum(time.source is TimeSource.GUESS for time in self.times)

    @property
    def learned(self) -> int:
        """Tasks whose run time comes from earlier runs."""
        return sum(time.source is TimeSource.LEARNED for time in self.times)


def prepare(
    order: RunRequest,
    runnable: Runnable | None = None,
    finished: Collection[int] = (),
    root: Path | None = None,
) -> Prepared:
    """Read and check everything that can be checked before anything is done.

    `runnable`: what the workflow file says, if that was read before; `finished`: tasks of it
    that will not run. `root`: where runs are kept.
    """
    if order.strategy != AUTO or not _is_plain(order):
        strategy_of(order)
    if order.notify:
        from windrow.app.notifying import refuse_bad  # noqa: PLC0415  (few runs do)

        refuse_bad(order.notify)
    runnable, times = filled(
        runnable or read_workflow_file(order.workflow, order.values), order.guess_s, order.risk
    )
    if order.delete_intermediate:
        runnable = replace(runnable, workflow=without_intermediate(runnable.workflow))
    order, runnable = within_space(order, runnable, finished)
    if order.scratch and any(step.mounts for step in runnable.steps):
        from windrow.app.volumes import on_disks  # noqa: PLC0415

        runnable = on_disks(runnable, times)
    sites, silent = _reached(order, runnable.workflow)
    names = [reached.site.name for reached in sites]
    order = replace(order, on=names[0], also=tuple(names[1:]))
    refuse_missing_inputs(order.workflow, runnable, Path.exists, finished)
    if any(step.checkpoint for step in runnable.steps):
        from windrow.app.checkpoint_files import refuse_files_of_others  # noqa: PLC0415  (few workflows have any)

        refuse_files_of_others(order.workflow, runnable, root or own_root(), finished)
    if any(reached.site.files for reached in sites):
        refuse_far(order)
        from windrow.data.catalogue import paths_of  # noqa: PLC0415  (most runs have no such site)

        paths_of(runnable, os.path.isfile)  # refuses what could not be found there
    if order.scratch:
        _refuse_unset(order.scratch, sites)
    able = placing(sites, runnable.workflow, runnable.steps)
    prepared = Prepared(
        order, runnable, times, terms_for(order, runnable), tuple(sites), able, tuple(silent)
    )
    prepared.refuse_seldom()
    return prepared


def _reached(order: RunRequest, workflow: Workflow) -> tuple[list[Reached], list[str]]:
    """The sites that answer, for this workflow, and what the others said instead. NothingBegun if
    none answers."""
    sites = list[Reached]()
    silent = list[str]()
    for name in (order.on, *order.also):
        queue = open_queue(name, order.shell if name == order.on else None)
        try:
            sites.append(reach(order, name, queue, queue.limits(), workflow=workflow))
        except QueueError as error:
            silent.append(str(no_answer(name, error)))
    if not sites:
        raise NothingBegun("; ".join(silent))
    return sites, silent


def _refuse_unset(scratch: str, sites: Sequence[Reached]) -> None:
    """UserError if no folder is meant by it on this machine, and jobs run here: they have the
    environment of this process."""
    from windrow.agent.data.node_data import scratch_folder  # noqa: PLC0415  (few runs use disks of nodes)
    from windrow.queues.local.queue import LocalQueue  # noqa: PLC0415

    if any(isinstance(reached.queue, LocalQueue) for reached in sites):
        try:
            scratch_folder(scratch, "on this machine")
        except OutsideError as error:
            raise UserError(f"{error}; name a folder that there is") from None


def _is_plain(order: RunRequest) -> bool:
    """Whether it aims at what every strategy aims at."""
    return order.objective == "makespan" and order.deadline_s is None and order.think == 1


def strategy_of(order: RunRequest, *, has_one_way: bool = False) -> Strategy:
    """The strategy that the user wants, with what it is to aim at. Only who looks ahead can aim at
    different things.

    If there is nothing to choose (`Limits.has_one_way`), everything that is left is one job by
    default.
    """
    if order.space is not None and _is_plain(order):
        return strategy_within_space()
    if order.strategy == AUTO and _is_plain(order) and has_one_way:
        return find_strategy("giant")
    strategy = find_strategy(order.strategy)
    if isinstance(strategy, LooksAhead):
        aim = order.objective
        deadline_s = order.deadline_s
        most = order.max_nodes
        return strategy.aimed(
            objective=aim, deadline_s=deadline_s, think=order.think, max_nodes=most, job_s=JOB_S
        )
    if not _is_plain(order):
        options = "--objective, --deadline and --think"
        raise UserError(
            f"{options} are for foresight; {strategy.name} has no such choice: leave them out"
        )
    return strategy


def terms_for(order: RunRequest, runnable: Runnable) -> Terms:
    """The user's wishes. Tasks that are asked for checkpoints before an end should have ended by
    then."""
    if order.scratch:
        fetch_s = fetching_for(order, runnable).seconds
    else:
        fetch_s = 0
    return Terms(
        margin=order.margin,
        overhead_s=OVERHEAD_S + runnable.notice_s() + fetch_s,
        patience=PATIENCE,
    )


def fetching_for(order: RunRequest, runnable: Runnable) -> Fetching:
    """What nodes fetch for the jobs of a run, and how long that should take."""
    from windrow.app.fetching import fetching  # noqa: PLC0415  (few runs use disks of nodes)

    return fetching(runnable, order.risk)


def start_run(
    prepared: Prepared,
    root: Path | None = None,
    *,
    continues: str | None = None,
    kept: Sequence[Record] = (),
    added: Sequence[Addition] = (),
) -> RunPaths:
    """Make the run's folder, workflow and journal. Nothing is submitted yet.

    `root`: where runs are kept (default: where this user keeps those of this folder). `continues`:
    the run that this one continues, `kept` what stays finished of it, and `added` what had been
    added to it: the last tasks, which are not in the workflow file.
    """
    runnable = prepared.runnable
    root = root or own_root()
    live_runs.refuse_conflicts(root, prepared.order.workflow, runnable)
    make_what_is_needed(runnable.steps)

    def fill(paths: RunPaths) -> None:
        own = len(runnable.workflow) - sum(one.count for one in added)
        write_runnable(paths.workflow, runnable, own)
        write_inputs(paths.inputs, runnable)
        record_small(paths.hashes, inputs_at(paths.inputs))
        if any(step.checkpoint for step in runnable.steps):
            from windrow.app.checkpoint_files import hand_over  # noqa: PLC0415

            hand_over(runnable, root, paths.folder)
        facts = _facts(prepared, root, continues)
        journal = RunJournal.create(paths.journal, facts.written())
        journal.append([Record(event) for event in _added_before(runnable, own, added)])
        journal.append(kept)
        journal.close()

    return new_run(runnable.workflow.name, root, fill)


def _added_before(
    runnable: Runnable, first: int, added: Sequence[Addition]
) -> Iterator[e.TasksAdded]:
    """What was added to the run that one continues, from this task on, as it is now."""
    for one in added:
        record = record_of(runnable, first, first + one.count)
        first += one.count
        yield replace(one.event, at_s=int(time.time()), added=record, folder="")


def make_what_is_needed(steps: Sequence[Step]) -> None:
    """Environments that tasks run in, as far as they are not there."""
    if any(step.made is not None for step in steps):
        from windrow.app.environments import make_environments  # noqa: PLC0415  (few tasks have any)

        make_environments(steps, lambda words: print(words, file=sys.stderr, flush=True))


def _facts(prepared: Prepared, root: Path, continues: str | None) -> RunFacts:
    """What is to be known of a run as long as it is kept."""
    site = prepared.site
    first = prepared.sites[0]
    settled = replace(
        prepared.order,
        workflow=prepared.order.workflow.absolute(),
        strategy=strategy_of(prepared.order, has_one_way=prepared.has_one_way).name,
        cap=site.cap,
        shell=dict(site.settings),
    )
    facts = RunFacts(
        request=settled,
        uid=secrets.token_hex(4),
        tasks=len(prepared.runnable.workflow),
        place="" if first.place == first.queue.name else first.place,
        node_cores=site.shape.cores,
        nodes=min(first.limits.nodes, settled.max_nodes or first.limits.nodes),
        guesses=prepared.guesses,
        learned=prepared.learned,
        errors=tuple(earlier_errors(prepared.runnable, prepared.times, RunTimes)),
        created_s=time.time(),
        version=__version__,
        origin=origin_of(settled.workflow),
        root=str(root.absolute()),
        continues=continues,
    )
    if len(prepared.sites) > 1:
        sites = tuple(
            SiteFacts(one.site.name, one.place, one.site.settings, one.limits)
            for one in prepared.sites
        )
        unable = tuple(tuple(np.flatnonzero(~row).tolist()) for row in prepared.able)
        facts = replace(facts, sites=sites, unable=unable)
    if any(reached.site.files for reached in prepared.sites):
        from windrow.app.far import far_facts  # noqa: PLC0415

        facts = replace(facts, far=far_facts(prepared.sites, prepared.runnable, facts.uid))
    return facts


@contextmanager
def managed(
    paths: RunPaths,
    *,
    wait_s: float = 0.0,
    writes: bool = True,
    prepared: Prepared | None = None,
) -> Iterator[Manager]:
    """The run's manager, restored from its journal; no other process can manage it in the meantime.

    `prepared`: what this process made the run of. UserError if another live run writes the same
    files, unless this one `writes` none any more.
    """
    lock = RunLock(paths.lock, wait_s)
    lock.lend()
    discard(paths.stop)  # of an earlier manager; from here on, cancelling means us
    journal = RunJournal.open(paths.journal, writable=True)
    transfers = None
    try:
        promise = FirstPromise()
        facts = RunFacts.read(journal.facts())
        manager = _manager(paths, journal, facts, promise, prepared)
        transfers = manager.transfers
        manager.restore()
        if facts.trouble:
            journal.set_fact("trouble", "")  # that of an earlier manager
        if writes:
            _enter(paths, manager, facts)
            make_what_is_needed(manager.dispatch.runnable.steps)
        with _recorded(paths, manager) if writes else nullcontext():
            yield manager
        left = ""
        if manager.is_over:
            left = manager.dispatch.clean_up(manager.core)
            live_runs.leave(paths)
            if writes and facts.request.notify:
                _notify(paths, facts.request.notify, manager)
        journal.set_fact("trouble", manager.core.trouble)
        if transfers is not None:
            left = "; ".join(filter(None, (left, *transfers.kept)))
        journal.set_fact("left", left)
        _keep_observations(manager)
        looked_ahead = any(outpost.ahead is not None for outpost in manager.outposts)
        # with additions it became another run
        is_as_promised = manager.core.is_complete and not manager.core.additions
        if looked_ahead and is_as_promised and (kept := promise.kept()) is not None:
            journal.set_fact("promise", asdict(kept))
    finally:
        if transfers is not None:
            transfers.close()
        journal.close()
        lock.release()


def _enter(paths: RunPaths, manager: Manager, facts: RunFacts) -> None:
    """Among live runs. One that is refused before anything happened was never there."""
    try:
        live_runs.enter(paths, manager.dispatch.runnable, facts)
    except UserError:
        if manager.begun_s is None:
            with suppress(OSError):
                discard_tree(paths.folder.path, mark=paths.journal.name)
        raise


def _keep_observations(manager: Manager) -> None:
    """What was seen of queues, for later runs."""
    for outpost in manager.outposts:
        if outpost.ahead is not None:
            outpost.ahead.observer.keep()
    for outpost in manager.outposts:
        if outpost.readings is not None:
            outpost.readings.keep()


def _notify(paths: RunPaths, how: str, manager: Manager) -> None:
    from windrow.app.notifying import notify  # noqa: PLC0415  (few runs do)

    core = manager.core
    state = RunState.FAILED
    if core.is_complete:
        state = RunState.COMPLETE
    elif core.is_stopped:
        state = RunState.STOPPED
    total = len(core.work.workflow)
    done = int(core.done().sum())
    said = {
        "WINDROW_RUN": paths.name,
        "WINDROW_STATE": state,
        "WINDROW_TASKS": str(total),
        "WINDROW_DONE": str(done),
        "WINDROW_FOLDER": str(paths.folder.path),
    }
    words = f"windrow: {paths.name} is {state}, {done} of {total} tasks are done"
    if trouble := notify(how, said, words):
        print(trouble, file=sys.stderr, flush=True)


@contextmanager
def _recorded(paths: RunPaths, manager: Manager) -> Iterator[None]:
    """What its tasks read and none makes is recorded during the run."""
    contents = Recorder(paths.inputs, paths.hashes)
    made = made_files(manager.dispatch.runnable)
    told = manager.on_records

    def hear(records: Sequence[Record]) -> None:
        told(records)
        for record in records:
            if isinstance(record.event, e.TaskFinished):
                read = outside_inputs(manager.dispatch.runnable, record.event.task, made)
                contents.hear(path for _, path in read)

    manager.on_records = hear
    try:
        yield
    finally:
        contents.close(is_over=manager.is_over)


def _manager(
    paths: RunPaths,
    journal: RunJournal,
    facts: RunFacts,
    promise: FirstPromise,
    prepared: Prepared | None,
) -> Manager:
    order = facts.request
    runnable = read_runnable(paths.workflow) if prepared is None else prepared.runnable
    if prepared is None or order.also:
        sites = sites_again(order, facts, runnable.workflow)
    else:
        sites = list(prepared.sites)
    waits = past_waits()
    transfers = None
    if facts.far is not None:
        from windrow.app.far import transfers_of  # noqa: PLC0415

        sites, transfers = transfers_of(facts.far, paths.folder, runnable, sites, waits)
    able = able_again(facts, len(runnable.workflow))
    there = [reached.site for reached in sites]
    wanted = wanted_by(order, runnable, works(runnable.workflow, there, able, limit_of(order)))
    errors = None
    if isinstance(wanted.strategy, LooksAhead):
        errors = errors_at(wanted.works, facts.errors)
    hearers = list[Hear]()
    seen = paths.seen if len(sites) == 1 else None
    root = paths.folder.path.parent
    manager = assemble(
        wanted,
        Ports(
            folder=paths.folder,
            uid=facts.uid,
            name=paths.name,
            journal=journal,
            outposts=[outpost_at(one, root, waits, errors, seen=seen) for one in sites],
            transfers=transfers,
            mirrors=transfers.mirrors if transfers else {},
            patience_s=patience_s(paths.folder.path),
            fragments=lambda manager: _fragments(manager, facts, paths),
            on_records=lambda records: _tell(hearers, records),
        ),
    )
    hearers.append(_learning(manager, journal, sites, waits))
    if errors is not None:
        hearers += [errors.hear, promise.hear]
        heard = (e.TasksAdded, e.JobsPlanned, e.TaskFinished)
        _tell(hearers[1:], [record for _, record in journal.records(kinds=heard)])
    return manager


def _fragments(manager: Manager, facts: RunFacts, paths: RunPaths) -> Fragments:
    from windrow.app.adding import FragmentFiles  # noqa: PLC0415  (few runs have some)

    return FragmentFiles(manager, facts, paths)


def _learning(
    manager: Manager, journal: RunJournal, sites: Sequence[Reached], waits: History | None
) -> Learning:
    """What learns from the run for later ones; it has heard what happened so far."""
    places = {
        at.name: LearningPlace(one.place, at.site.speed)
        for at, one in zip(manager.core.sites, sites, strict=True)
    }
    heard = (e.JobsPlanned, e.JobSubmitted, e.JobStarted)
    past = (record for _, record in journal.records(kinds=heard))
    return Learning(manager.dispatch, places, past, waits)


def wanted_by(
    order: RunRequest,
    runnable: Runnable,
    there: Sequence[Work],
    *,
    has_one_way: bool = False,
) -> WantedRun:
    """What such an order wants of a workflow."""
    return WantedRun(
        runnable=runnable,
        works=there,
        strategy=strategy_of(order, has_one_way=has_one_way),
        terms=terms_for(order, runnable),
        objective=order.objective,
        copies=order.copies,
        rules=order.rules,
        scratch=order.scratch,
        keep=order.keep,
        share=order.share,
    )


def patience_s(folder: Path) -> float:
    """How long after a job's end its agent's last words may take to be seen in this folder."""
    said_s = settings_of(folder).data.late
    if said_s is not None:
        return max(float(said_s), PATIENCE_S)
    if is_shared(folder):
        return max(LATE_FILES_S, PATIENCE_S)
    return PATIENCE_S


def _tell(hearers: Sequence[Hear], records: Sequence[Record]) -> None:
    for hear in hearers:
        hear(records)


def _glance(manager: Manager) -> None:
    """Between decisions, look who comes and goes, if nothing else tells."""
    for outpost in manager.outposts:
        if outpost.ahead is not None:
            with suppress(OutsideError):  # the manager says it where it matters
                own = [job.id for job in outpost.placed.values() if job.id is not None]
                outpost.ahead.glance(own, manager.now_s())


def drive(
    manager: Manager, tell: Callable[[Manager], None] = lambda _: None, stop: Path | None = None
) -> None:
    """Step until the run is over; stop it as soon as the file `stop` is there.

    An interrupt leaves everything as it is: the journal is up to date at all times.
    """
    arrivals = cache(lambda: _arrivals(manager))
    follow_requests(manager, arrivals)
    while not manager.is_over:
        if stop is not None and not manager.core.is_stopped and stop.exists():
            manager.stop()
        began_s = time.process_time()
        happened = manager.step()
        tell(manager)
        turn_s = time.process_time() - began_s
        _glance(manager)
        if not manager.is_over:
            _pause(manager, manager.next_look_s(happened=happened), arrivals, turn_s)
        follow_requests(manager, arrivals)


def _arrivals(manager: Manager) -> Arrivals:
    from windrow.app.arrivals import Arrivals  # noqa: PLC0415  (few runs have tasks of programs)

    facts = RunFacts.read(manager.journal.facts())
    return Arrivals(manager, facts, manager.folder.path.parent)


def _pause(
    manager: Manager, pause_s: float, arrivals: Callable[[], Arrivals], turn_s: float
) -> None:
    """Sleep until the next look. Who adds tasks to a run that is held is answered at once; what
    comes of it is done soon, for all that came: the sooner the less a turn takes."""
    if manager.held is None:
        time.sleep(pause_s)
        return
    until = time.monotonic() + pause_s
    while (left_s := until - time.monotonic()) > 0:
        if follow_requests(manager, arrivals):
            until = min(until, time.monotonic() + max(SOON_S, _REST * turn_s))
        time.sleep(min(REQUEST_S, left_s))
