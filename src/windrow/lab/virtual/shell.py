"""Runs in a virtual world: the manager that ships, hired again whenever it dies, until its run is over.

What is put together here is what `app.execute` puts together for a real run: journal, core, dispatch, strategy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

from windrow.agent.folder import RunFolder
from windrow.app.strategies import find_strategy
from windrow.errors import OutsideError
from windrow.forecast.base import Forecaster
from windrow.lab.virtual import invariants
from windrow.lab.virtual.crew import Killed
from windrow.lab.virtual.far import NAME, behind, transfers
from windrow.lab.virtual.world import Fate, World
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.events import TasksAdded
from windrow.manager.journal import Record, RunJournal
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.story import RunStory
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Runnable
from windrow.model.site import Site
from windrow.strategies import Strategy, Work, whole_seconds
from windrow.strategies.copied import copied
from windrow.strategies.levels import works

PATIENCE_LOOKS = 20_000
"""How often a manager looks before its run is taken to have no end."""
MOST_MANAGERS = 60
TERMS = Terms(round_s=1, overhead_s=8, patience=PATIENCE)


@dataclass
class VirtualRun:
    """One run in a world, and the managers that it goes through. `path` is to be the run's folder."""

    path: Path
    world: World
    runnable: Runnable
    strategy: str | Strategy = "individual"
    terms: Terms = TERMS
    forecasters: Sequence[Forecaster] = ()
    """By default the cluster's own estimates."""
    additions: Sequence[tuple[int, TasksAdded]] = ()
    """Tasks that join the run, and when that is asked for; it is asked for again until they have."""
    copies: int = 1
    """How many jobs run the same tasks."""
    rules: CopyRules = NO_COPIES
    """When tasks that run get copies."""
    scratch: str = ""
    """Where nodes have disks of their own, if jobs are to use them."""
    far: Path | None = None
    """The run's folder at a second place of files, where every second task is to run; None: all files are at home."""
    work: Work | None = None
    """What strategies believe, where that is not the workflow's own run times."""
    away_s: int = 0
    """How long it takes until a manager that has died is replaced."""
    each_look: Callable[[], None] = lambda: None
    """Called after each look of the manager."""
    manager: Manager | None = field(default=None, init=False)
    deaths: int = 0
    looks: int = 0

    def __post_init__(self) -> None:
        self.path.mkdir(mode=0o700)
        self.folder = RunFolder.at(self.path)
        RunJournal.create(self.path / "journal.sqlite", {"uid": "virtual"}).close()
        self._reader = RunJournal.open(self.path / "journal.sqlite")
        limits = self.world.queue.limits()
        self.site = self.work.site if self.work else Site.of(limits.nodes, limits.shape, max_array=limits.max_array)
        self.sites: Sequence[Site] = [self.site]
        if self.far is not None:  # one queue for both
            self.sites = [replace(self.site, name="here"), replace(self.site, name=NAME, files=NAME)]

    def close(self) -> None:
        """Let go of its files."""
        self._reader.close()
        if self.manager is not None:
            self.manager.journal.close()

    def hire(self, fate: Fate | None = None) -> Manager:
        """A new manager in the place of the old one, restored from the journal."""
        if self.manager is not None:
            self.manager.journal.close()  # what was not committed goes, as with its process
        world = self.world
        world.fate = fate or Fate()
        journal = RunJournal.open(self.path / "journal.sqlite", writable=True)
        strategy = find_strategy(self.strategy) if isinstance(self.strategy, str) else self.strategy
        moves = transfers(world, self.runnable, self.folder, self.far) if self.far is not None else None
        mirrors = {} if moves is None else moves.mirrors
        queues = [behind(world.queue, mirrors.get(site.files)) for site in self.sites]
        dispatch = Dispatch(self.folder, self.runnable, "virtual", "virtual-1", mirrors=mirrors)
        dispatch.scratch, world.is_local = self.scratch, bool(self.scratch)
        dispatch.offers = self.rules.are_needed(self.runnable.steps)
        dispatch.copies = self.copies > 1 or dispatch.offers
        self.manager = Manager(
            folder=self.folder,
            journal=journal,
            core=invariants.WatchedCore(*self.fresh(), self._reader, world.reached),
            outposts=[Outpost(queue, self.forecasters or [world.queue]) for queue in queues],
            transfers=moves,
            strategy=copied(strategy, self.copies, dispatch.may_copy),
            dispatch=dispatch,
            copies=self.rules,
            now_s=lambda: world.now_s + world.clock_step_s,
            steady_s=lambda: float(world.now_s),
        )
        self.manager.restore()
        return self.manager

    def go_on(self, fate: Fate | None = None) -> bool:
        """Manage the run until it is over; False where the manager dies, of its fate or of a disk without room."""
        return self._managed(fate, self._begin)

    def _begin(self, manager: Manager) -> None:
        self._join(manager)
        manager.begin()

    def _join(self, manager: Manager) -> None:
        for at_s, added in self.additions:
            if at_s <= self.world.now_s and added.id not in manager.core.additions:
                manager.add(added)
                manager.run_again(())

    def call_off(self, fate: Fate | None = None) -> bool:
        """Stop the run as `windrow cancel` does where it has no manager; False where the canceller dies."""
        return self._managed(fate, Manager.stop)

    def _managed(self, fate: Fate | None, begin: Callable[[Manager], object]) -> bool:
        with self.world.watched():
            try:
                manager = self.hire(fate)
                begin(manager)
                self.drive(manager)
                manager.dispatch.clean_up(manager.core)
            except (Killed, OutsideError):
                self.deaths += 1
                return False
        return True

    def drive(self, manager: Manager) -> None:
        """Look until the run is over, whenever there is something to see."""
        world = self.world
        for _ in range(PATIENCE_LOOKS):
            if manager.is_over:
                return
            self.look(manager)
            world.pass_time(ceil(max(world.now_s + 1, manager.due_s())), wakes=True)
        raise invariants.Violation(f"the run does not end: {self.story().jobs}")

    def look(self, manager: Manager) -> None:
        """One look, and as many more as are needed until nothing is new."""
        for _ in range(PATIENCE_LOOKS):
            self.looks += 1
            happened = manager.step()
            self._join(manager)
            self.each_look()
            if not happened or manager.is_over:
                return
            manager.core.check()
        raise invariants.Violation("the manager finds something new for ever")

    def wait(self, seconds: int) -> None:
        """The run has no manager; the world continues."""
        with self.world.watched():
            self.world.pass_time(self.world.now_s + seconds)

    def survive(self, most: int = MOST_MANAGERS, *, is_checked: bool = True) -> None:
        """Hire managers until every task is done, whatever goes wrong; then check that all is well."""
        for number in range(most):
            joined = {one.event.id for one in self.story().additions} if self.go_on() and self.is_complete else None
            to_come = [at_s for at_s, added in self.additions if joined is not None and added.id not in joined]
            if joined is not None and not to_come:
                break
            if is_checked:
                self.check_beliefs()
            back_s = min(to_come, default=self.world.full_until_s)  # a run that is complete has nothing to do before
            away_s = max(self.away_s, back_s - self.world.now_s)
            self.wait(away_s + min(number, MOST_MANAGERS))
        if is_checked:
            self.check_complete()

    def records(self) -> list[Record]:
        """What the journal has."""
        return [record for _, record in self._reader.records()]

    def story(self) -> RunStory:
        """What it tells."""
        return RunStory.of(self.runnable.workflow, self.records())

    @property
    def is_complete(self) -> bool:
        """Whether every task is done."""
        return self.manager is not None and self.manager.core.is_complete

    def check_beliefs(self) -> None:
        """Core, journal and story are of one mind; the core is that of the next manager, who knows what is written."""
        core = Core(*self.fresh())
        records = self.records()
        for record in records:
            core.handle(record.event)
        invariants.check_beliefs(core, Core(*self.fresh()), records)

    def fresh(self) -> tuple[Work | list[Work], Terms]:
        """What a core begins with."""
        workflow = self.runnable.workflow
        if self.far is not None:
            return works(workflow, self.sites, [task % 2 for task in range(len(workflow))]), self.terms
        return self.work or Work(workflow, whole_seconds(workflow), self.site), self.terms

    def check_nothing_twice(self) -> None:
        """What must hold of a run that is over, however it ended."""
        assert self.manager is not None
        self.world.faults.clear()
        queue = self.world.queue
        for _ in range(PATIENCE_LOOKS):  # those that are not known start nothing more, and end with their walltime
            if not (self.world.unseen or queue.coming or any(queue.late[queue.jobs[i].spec.tag] for i in queue.left)):
                break
            self.wait(60)
        records = self.records()
        invariants.check_beliefs(self.manager.core, Core(*self.fresh()), records)
        folders = [self.folder, *(mirror.folder for mirror in self.manager.dispatch.mirrors.values())]
        invariants.check_nothing_twice(self.world, folders, records)
        if any(job.outcome is None for job in self.story().jobs.values()):
            raise invariants.Violation("jobs of a run that is over have no end")
        invariants.check_disk(self.world, self.folder, self.manager.dispatch.runnable, self.manager.core)
        if self.scratch and (left := [str(path) for path in Path(self.scratch).glob("*/*")]):
            raise invariants.Violation(f"left on disks of nodes: {left}")
        if self.far is not None and self.is_complete:
            invariants.check_home(self.far, self.manager.dispatch.runnable)

    def check_complete(self) -> None:
        """And every task is done."""
        if not self.is_complete:
            left = [task for task, told in enumerate(self.story().tasks) if told.state != "finished"]
            raise invariants.Violation(
                f"the run has ended without tasks {left}: {self.manager and self.manager.core.trouble}"
            )
        self.check_nothing_twice()
