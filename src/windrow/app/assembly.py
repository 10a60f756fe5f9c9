"""Puts a run together: what is wanted and the ports of a world become core, dispatch, outposts and
manager, here and nowhere else.

`run`, `resume`, `run -n` and `plan --on` on real queues, and runs in virtual time: what differs
between them is what they hand in.

Rule: a plan that is only shown comes from the manager that would carry it out. It has a journal
that is kept nowhere, and it is never asked to submit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from windrow.agent.folder import RunFolder
from windrow.app.learning import TaskErrors
from windrow.app.runs import past_predictions, past_promises
from windrow.app.sites import Reached
from windrow.forecast.base import Forecaster
from windrow.forecast.ledger import PastPrediction, promised_too_much
from windrow.forecast.waits import FromHistory, History
from windrow.manager.core import Core
from windrow.manager.dispatch import SMALL_BYTES, Dispatch
from windrow.manager.inbox import PATIENCE_S
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Runnable
from windrow.queues.port import Queue
from windrow.story.journal import Record, RunJournal
from windrow.strategies.base import Objective, Strategy
from windrow.strategies.levels import Work

if TYPE_CHECKING:
    from windrow.data.mirror import Mirror
    from windrow.forecast.guard import HeldForecast
    from windrow.forecast.twin import Twin
    from windrow.foresight.live import Ahead
    from windrow.foresight.seen import WatchedQueue
    from windrow.manager.expanding import Fragments
    from windrow.manager.transfers import Transfers


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRun:
    """What a run is to do and how, whatever world it is in."""

    runnable: Runnable
    works: Sequence[Work]
    """The tasks as they would run at each site, in the order of the outposts."""
    strategy: Strategy
    terms: Terms
    objective: Objective = "makespan"
    copies: int = 1
    """How many jobs run the same tasks."""
    rules: CopyRules = NO_COPIES
    """When tasks that run get copies."""
    scratch: str = ""
    """Where nodes have disks of their own, if jobs are to use them."""
    keep: Sequence[str] = ()
    """Patterns of files that must not stay there."""
    share: str = ""
    """How what many tasks read comes there."""
    small_bytes: int = SMALL_BYTES
    """Up to this size, files leave a node of several at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a run deals with in its world. `uid` sets the tags of its jobs apart from those of all
    other runs."""

    folder: RunFolder
    uid: str
    name: str
    journal: RunJournal
    outposts: Sequence[Outpost]
    transfers: Transfers | None = None
    """Where sites do not all see the same files."""
    mirrors: Mapping[str, Mirror] = field(default_factory=dict)
    """The run's folders at places with files of their own, by name."""
    fragments: Callable[[Manager], Fragments] | None = None
    """What reads the files in which tasks say what comes after them."""
    patience_s: float = PATIENCE_S
    on_records: Callable[[Sequence[Record]], None] = lambda _: None
    now_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic


CoreOf = Callable[[Sequence[Work], Terms], Core]


def assemble(wanted: WantedRun, ports: Ports, core_of: CoreOf = Core) -> Manager:
    """The manager of a run. Nothing has been restored, submitted or written yet."""
    core = core_of(wanted.works, wanted.terms)
    dispatch = dispatch_of(
        wanted, ports.folder, uid=ports.uid, name=ports.name, mirrors=ports.mirrors
    )
    strategy = wanted.strategy
    if wanted.copies > 1:
        from windrow.strategies.copied import WithCopies  # noqa: PLC0415  (few runs ask for copies)

        strategy = WithCopies(strategy, wanted.copies, dispatch.may_copy)
    return Manager(
        folder=ports.folder,
        journal=ports.journal,
        core=core,
        strategy=strategy,
        dispatch=dispatch,
        copies=wanted.rules,
        patience_s=ports.patience_s,
        outposts=ports.outposts,
        objective=wanted.objective,
        on_records=ports.on_records,
        transfers=ports.transfers,
        fragments=ports.fragments,
        now_s=ports.now_s,
        steady_s=ports.steady_s,
    )


def dispatch_of(
    wanted: WantedRun,
    folder: RunFolder,
    *,
    uid: str,
    name: str,
    mirrors: Mapping[str, Mirror] = MappingProxyType({}),
) -> Dispatch:
    """What turns jobs of the core into jobs of the queue. If files travel between places, nodes
    keep none."""
    offers = wanted.rules.are_needed(wanted.runnable.steps)
    if mirrors:
        scratch = ""
    else:
        scratch = wanted.scratch
    return Dispatch(
        folder,
        wanted.runnable,
        uid,
        name,
        copies=wanted.copies > 1 or offers,
        offers=offers,
        mirrors=mirrors,
        scratch=scratch,
        keep=wanted.keep,
        share=wanted.share,
        small_bytes=wanted.small_bytes,
    )


def outpost_at(
    reached: Reached,
    root: Path,
    waits: History | None,
    errors: TaskErrors | None,
    *,
    keeps: bool = True,
    seen: Path | None = None,
) -> Outpost:
    """A site with its forecasters; without `errors` there is no look ahead.

    `root`: where runs are kept. `keeps` False: what is seen of the queue is not kept for other
    runs. `seen`: the file in which it is kept for this run.
    """
    queue = reached.queue
    name = reached.site.name
    place = reached.place
    readings = watched(reached, seen)
    twin = cache(lambda: twin_of(queue, readings))
    ahead: Ahead | None = None
    asked = list[Forecaster]()
    earlier = list[PastPrediction]()
    if errors is not None:
        from windrow.foresight.live import Ahead  # noqa: PLC0415

        is_trusted = not promised_too_much(past_promises(root, name, place), time.time())
        ahead = Ahead.on(queue, twin(), errors, is_trusted=is_trusted, keeps=keeps)
    if not reached.site.starts_at_once:
        from windrow.forecast.system import System  # noqa: PLC0415

        asked = [twin(), System(queue, time.time, twin())]  # the most trusted first
        asked += [] if waits is None else [FromHistory(waits, place, time.time, twin(), queue.name)]
        earlier = past_predictions(root, name, place)
    return Outpost(
        queue,
        forecasters=asked,
        earlier=earlier,
        ahead=ahead,
        readings=readings,
        open_to=None if reached.site.starts_at_once else lambda n: twin().snapshot().open_to(n),
        guard=_guard_of(reached, twin),
    )


def watched(reached: Reached, seen: Path | None) -> WatchedQueue | None:
    """What keeps the readings of a queue for its run; None if there is nothing to compare."""
    if seen is None or reached.limits.has_one_way:
        return None
    from windrow.foresight.seen import WatchedQueue  # noqa: PLC0415  (not on this machine, on which no job waits)

    return WatchedQueue(reached.queue, seen, reached.site, reached.queue.policy)


def twin_of(queue: Queue, readings: WatchedQueue | None = None) -> Twin:
    """The most trusted of those who are asked for starts on this queue; `readings` keeps what it
    reads."""
    from windrow.forecast.twin import Twin  # noqa: PLC0415  (not on this machine, on which no job waits)

    return Twin(readings or queue, time.time, policy=queue.policy, refresh_s=5.0)


def _guard_of(reached: Reached, twin: Callable[[], Twin]) -> HeldForecast | None:
    """Who asks the batch system itself; None on this machine, which has no other word."""
    if reached.limits.from_settings:
        return None
    from windrow.forecast.guard import HeldForecast  # noqa: PLC0415

    return HeldForecast(reached.queue.probe, lambda: twin().snapshot(), time.time)
