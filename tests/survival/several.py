"""Runs on several worlds in one time: all go on to the next instant at which something may happen
in any of them.

Rule: no world runs ahead, since what is asked of it comes at the common time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path

from windrow.app.assembly import Ports, WantedRun, assemble
from windrow.app.strategies import find_strategy
from windrow.forecast.base import Forecaster
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import Terms
from windrow.model import Runnable
from windrow.model.site import Site
from windrow.story.journal import RunJournal
from windrow.strategies import Strategy
from windrow.strategies.levels import Mask, Work, works
from windrow.trials.virtual.disk import watched
from windrow.trials.virtual.invariants import Violation, WatchedCore
from windrow.trials.virtual.shell import PATIENCE_LOOKS, TERMS, VirtualRun
from windrow.trials.virtual.world import Fate, World


class SitesRun(VirtualRun):
    """A run on a world for each site. `able` as for `works`; `forecaster` makes that of a world."""

    def __init__(
        self,
        path: Path,
        worlds: Sequence[World],
        sites: Sequence[Site],
        runnable: Runnable,
        able: Sequence[int] | Mask,
        strategy: str | Strategy = "individual",
        terms: Terms = TERMS,
        forecaster: Callable[[World], Forecaster] = lambda world: world.queue,
    ) -> None:
        super().__init__(path, worlds[0], runnable, strategy, terms)
        self.worlds = worlds
        self.sites = sites
        self.able = able
        self.forecaster = forecaster
        for world in worlds[1:]:  # each has machines that may forget what they wrote here
            world.memory.folders.append(self.path)

    def works(self) -> list[Work]:
        """The tasks as they would run at each site."""
        return works(self.runnable.workflow, self.sites, self.able)

    def hire(self, fate: Fate | None = None) -> Manager:
        """A new manager in the place of the old one, restored from the journal."""
        if self.manager is not None:
            self.manager.journal.close()
        fate = fate or Fate()
        for world in self.worlds:
            world.fate = fate
        strategy = find_strategy(self.strategy) if isinstance(self.strategy, str) else self.strategy
        self.manager = assemble(
            WantedRun(
                runnable=self.runnable, works=self.works(), strategy=strategy, terms=self.terms
            ),
            Ports(
                folder=self.folder,
                uid="virtual",
                name="virtual-1",
                journal=RunJournal.open(self.path / "journal.sqlite", writable=True),
                outposts=[Outpost(world.queue, [self.forecaster(world)]) for world in self.worlds],
                now_s=lambda: float(self.world.now_s),
                steady_s=lambda: float(self.world.now_s),
            ),
            lambda works, terms: WatchedCore(works, terms, self._reader, lambda _: None),
        )
        self.manager.restore()
        return self.manager

    def wait(self, seconds: int) -> None:
        """Nobody manages the run; the worlds go on."""
        with self._watched():
            self._pass_time(self.world.now_s + seconds, wakes=False)

    def drive(self, manager: Manager) -> None:
        """Look until the run is over, whenever there is something to see."""
        with self._watched():
            for _ in range(PATIENCE_LOOKS):
                if manager.core.is_over:
                    return
                self.look(manager)
                self._pass_time(ceil(max(self.world.now_s + 1, manager.due_s())), wakes=True)
        raise Violation(f"the run does not end: {self.story().jobs}")

    def _pass_time(self, until_s: int, *, wakes: bool) -> None:
        while True:
            to_s = min(next_s(world, until_s) for world in self.worlds)
            for world in self.worlds:
                world.pass_time(to_s)
            if to_s >= until_s or (wakes and any(world._has_news for world in self.worlds)):
                return

    @contextmanager
    def _watched(self) -> Iterator[None]:
        def about_to_write(what: object) -> None:
            next((world for world in self.worlds if world._acting), self.world)._about_to_write(
                what
            )

        def synced(descriptor: int) -> None:
            for world in self.worlds:
                world.memory.synced(descriptor)

        with watched(about_to_write, synced):
            yield


def next_s(world: World, until_s: int) -> int:
    """When something may happen next in a world, at the latest `until_s`. Nothing changes: its
    cluster is copied."""
    queue = world.queue
    if queue._news:
        return world.now_s
    ahead = queue.cluster.clone()
    ahead.advance(min([until_s, *(max(at_s, world.now_s) for at_s, _ in queue.coming)]))
    agents, faults = (
        (agent.next_s for agent in world._alive()),
        (fault.at_s for fault in world.faults),
    )
    return max(
        world.now_s, int(min((ahead.now_s, *agents, *faults, *(at_s for at_s, _ in world.dues))))
    )
