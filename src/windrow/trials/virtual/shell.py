"""Runs in a virtual world: the manager that ships, hired again whenever it dies, until its run is
over.

It is put together where those of real runs are (`app.assembly`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

from windrow.agent.folder import RunFolder
from windrow.app.assembly import Ports, WantedRun, assemble
from windrow.app.strategies import find_strategy
from windrow.errors import OutsideError
from windrow.forecast.base import Forecaster
from windrow.manager.core import Core
from windrow.manager.inbox import PATIENCE_S
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Runnable
from windrow.model.site import Site
from windrow.story.events import TasksAdded
from windrow.story.journal import Record, RunJournal
from windrow.story.story import RunStory
from windrow.strategies import Strategy, Work, whole_seconds
from windrow.strategies.levels import works
from windrow.trials.virtual import invariants
from windrow.trials.virtual.bounds import Bounds
from windrow.trials.virtual.content import perfect
from windrow.trials.virtual.counted import Invariant
from windrow.trials.virtual.crew import Killed
from windrow.trials.virtual.far import NAME, behind, transfers
from windrow.trials.virtual.kinds import Kind
from windrow.trials.virtual.memory import Commits
from windrow.trials.virtual.world import Fate, World

PATIENCE_LOOKS = 20_000
"""How often a manager looks before its run is taken to have no end."""
MOST_MANAGERS = 60
HELD_LOOK_S = 10
"""How often a manager looks whose run is held."""
_FULL = 2  # for SQLite: each commit is synced
TERMS = Terms(round_s=1, overhead_s=8, patience=PATIENCE)


@dataclass(frozen=True)
class Said:
    """What tasks say that others are to come after them, whatever is in their files."""

    manager: Manager
    expansions: Mapping[str, TasksAdded]

    def _of(self, task: int) -> TasksAdded:
        return self.expansions[self.manager.core.work.workflow.ids[task]]

    def name(self, task: int) -> str:
        """That of what is added."""
        return self._of(task).id

    def read(self, task: int) -> TasksAdded:
        """What is added."""
        return self._of(task)


@dataclass
class VirtualRun:
    """One run in a world, and the managers that it goes through. `path` is to be the run's
    folder."""

    path: Path
    world: World
    runnable: Runnable
    strategy: str | Strategy = "individual"
    terms: Terms = TERMS
    forecasters: Sequence[Forecaster] = ()
    """By default the cluster's own estimates."""
    additions: Sequence[tuple[int, TasksAdded]] = ()
    """Tasks that join the run, and when that is asked for; it is asked for again until they
    have."""
    expansions: Mapping[str, TasksAdded] = field(default_factory=dict)
    """Tasks that join it because of what others say when they have finished, by the ids of
    these."""
    copies: int = 1
    """How many jobs run the same tasks."""
    rules: CopyRules = NO_COPIES
    """When tasks that run get copies."""
    scratch: str = ""
    """Where nodes have disks of their own, if jobs are to use them."""
    far: Path | None = None
    """The run's folder at a second place of files, where every second task is to run; None: all
    files are at home."""
    work: Work | None = None
    """What strategies believe, if that is not the workflow's own run times."""
    away_s: int = 0
    """How long it takes until a manager that has died is replaced."""
    small_bytes: int = 0
    """Up to this size, files leave a node of several at once."""
    patience_s: float = PATIENCE_S
    """How long after a job's end its agent's last words are awaited."""
    each_look: Callable[[], None] = lambda: None
    """Called after each look of the manager."""
    manager: Manager | None = field(default=None, init=False)
    bounds: Bounds | None = None
    """How much work it may need at most."""
    given_up: int = 0
    """How often it ended with tasks that were not done."""
    deaths: int = 0
    looks: int = 0
    _looked_s: float = 0.0
    _wants_all: bool = False
    """Whether its user wants the tasks that were cancelled when it begins again."""

    def __post_init__(self) -> None:
        self.path.mkdir(mode=0o700)
        self.folder = RunFolder.at(self.path)
        self._begun_s = self.world.now_s
        self.world.memory.folders.append(self.path)
        self.world.view.folders.append(self.path)
        self.world.expected = {**perfect(self.runnable), **self.world.expected}
        RunJournal.create(self.path / "journal.sqlite", {"uid": "virtual"}).close()
        self._reader = RunJournal.open(self.path / "journal.sqlite")
        limits = self.world.queue.limits()
        if self.work:
            self.site = self.work.site
        else:
            self.site = Site.of(limits.nodes, limits.shape, max_array=limits.max_array)
        self.sites: Sequence[Site] = [self.site]
        if self.far is not None:  # one queue for both
            self.sites = [
                replace(self.site, name="here"),
                replace(self.site, name=NAME, files=NAME),
            ]

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
        world.told_gone.clear()
        journal = RunJournal.open(self.path / "journal.sqlite", writable=True)
        is_synced = journal._db.execute("PRAGMA synchronous").fetchone()[0] >= _FULL
        self._commits = Commits(journal.path, is_synced=is_synced)
        world.before_commit = self._commits.before
        if isinstance(self.strategy, str):
            strategy = find_strategy(self.strategy)
        else:
            strategy = self.strategy
        if self.far is not None:
            moves = transfers(world, self.runnable, self.folder, self.far)
        else:
            moves = None
        mirrors = {} if moves is None else moves.mirrors
        world.is_local = bool(self.scratch)
        queues = [behind(world.queue, mirrors.get(site.files)) for site in self.sites]
        self.manager = assemble(
            WantedRun(
                runnable=self.runnable,
                works=self.works(),
                strategy=strategy,
                terms=self.terms,
                copies=self.copies,
                rules=self.rules,
                scratch=self.scratch,
                small_bytes=self.small_bytes,
            ),
            Ports(
                folder=self.folder,
                uid="virtual",
                name="virtual-1",
                journal=journal,
                outposts=[Outpost(queue, self.forecasters or [world.queue]) for queue in queues],
                transfers=moves,
                fragments=lambda manager: Said(manager, self.expansions),
                mirrors=mirrors,
                patience_s=self.patience_s,
                now_s=lambda: world.now_s + world.clock_step_s,
                steady_s=lambda: float(world.now_s),
            ),
            lambda works, terms: invariants.WatchedCore(works, terms, self._reader, world.reached),
        )
        world.is_done = self.manager.core.is_done
        self.manager.restore()
        return self.manager

    def go_on(self, fate: Fate | None = None) -> bool:
        """Manage the run until it is over; False if the manager dies, of its fate or of a disk
        without room."""
        return self._managed(fate, self._begin)

    def _begin(self, manager: Manager) -> None:
        self._join(manager)
        manager.begin(self.world.wishes.want_all(manager) if self._wants_all else ())
        self._wants_all = False
        self.world.wishes.tell_agents()

    def _join(self, manager: Manager) -> None:
        for at_s, added in self.additions:
            if at_s <= self.world.now_s and added.id not in manager.core.additions:
                manager.add(added)
                manager.run_again(())

    def call_off(self, fate: Fate | None = None) -> bool:
        """Stop the run as `windrow cancel` does if it has no manager; False if the canceller
        dies."""
        return self._managed(fate, Manager.stop)

    def _managed(self, fate: Fate | None, begin: Callable[[Manager], object]) -> bool:
        with self.world.managing():
            try:
                manager = self.hire(fate)
                begin(manager)
                self.drive(manager)
                manager.dispatch.clean_up(manager.core)
            except (Killed, OutsideError) as end:
                self.deaths += 1
                if isinstance(end, Killed) and self.world.fate.is_crash:
                    self._crashed()
                return False
        return True

    def _crashed(self) -> None:
        """The manager has died with its machine."""
        self.close()
        self._commits.crash()
        self._reader = RunJournal.open(self.path / "journal.sqlite")
        self.world.crash("manager", self.world.dying)

    def drive(self, manager: Manager) -> None:
        """Look until the run is over, whenever there is something to see."""
        world = self.world
        for _ in range(PATIENCE_LOOKS):
            if manager.is_over:
                self._check_open(manager)
                return
            self.look(manager)
            due_s = manager.due_s()
            if manager.held is not None:  # a real one looks again soon
                due_s = min(due_s, world.now_s + HELD_LOOK_S)
            world.pass_time(ceil(max(world.now_s + 1, due_s)), wakes=True)
        raise invariants.Violation(f"the run does not end: {self.story().jobs}")

    def _check_open(self, manager: Manager) -> None:
        """It is over, and no one holds it who could have been heard."""
        wishes = self.world.wishes
        is_wanted = wishes.is_held and wishes.held_since_s < self._looked_s
        if is_wanted and not (manager.core.is_stopped or manager.core.trouble):
            raise invariants.Violation("the run ends though someone holds it open")
        self.world.exercised[Invariant.CLOSES] += bool(wishes.held_until_s)

    def look(self, manager: Manager) -> None:
        """One look, and as many more as are needed until nothing is new."""
        for _ in range(PATIENCE_LOOKS):
            self.looks += 1
            happened = manager.step()
            self._join(manager)
            self.world.wishes.follow(manager)
            self._looked_s = self.world.now_s
            self.each_look()
            self._check_bounds()
            if not happened or manager.is_over:
                return
            manager.core.check()
        raise invariants.Violation("the manager finds something new for ever")

    @property
    def _planned(self) -> int:
        """How many jobs the manager has planned, those that no queue took among them."""
        if self.manager is None:
            return 0
        return self.manager.core.submitted

    def _check_bounds(self) -> None:
        """What goes wrong makes a run longer, and never endless."""
        if self.bounds is None:
            return
        world = self.world
        broken = self.bounds.broken(
            attempts=len(world.starts),
            jobs=max(len(world.queue.jobs), self._planned),
            seconds=world.now_s - self._begun_s,
            faults=sum(world.met.values()),
            given_up=self.given_up,
        )
        if broken:
            raise invariants.Violation(f"the work has no end: {broken}")

    def wait(self, seconds: int) -> None:
        """The run has no manager; the world continues."""
        with self.world.watched():
            self.world.pass_time(self.world.now_s + seconds)

    def survive(self, most: int = MOST_MANAGERS, *, is_checked: bool = True) -> None:
        """Hire managers until every task is done, whatever goes wrong; then check that all is
        well."""
        for number in range(most):
            is_over = self.go_on()
            to_come = self._to_come() if is_over and self.is_complete else None
            if to_come == []:
                break
            if is_checked:
                self.check_beliefs()
            if is_over and to_come is None:  # its user sees to what is wrong
                self.given_up += 1
                self._check_given_up()
                self._wants_all = True
                self.world.mend()
            # A run that is complete has nothing to do before something is added.
            back_s = min(to_come or [self.world.full_until_s])
            away_s = max(self.away_s, back_s - self.world.now_s)
            self.wait(away_s + min(number, MOST_MANAGERS))
        self.world.exercised[Invariant.BOUNDED] += self.world.lasting.bites
        if is_checked:
            self.check_complete()

    def _check_given_up(self) -> None:
        """Of a run that has ended, and is not complete: what it did not finish is as it was."""
        if self.manager is not None and not self.world.has_unknown:
            invariants.check_unfinished(
                self.world, self.manager.dispatch.runnable, self.manager.core
            )

    def _to_come(self) -> list[int]:
        """When tasks are to join that have not. Of what tasks say none is left out."""
        joined = {one.event.id for one in self.story().additions}
        if unread := [one for one in self.expansions.values() if one.id not in joined]:
            raise invariants.Violation(f"the run has ended without {[one.id for one in unread]}")
        self.world.exercised[Invariant.GROWN] += len(self.expansions)
        return [at_s for at_s, added in self.additions if added.id not in joined]

    @property
    def reader(self) -> RunJournal:
        """Its journal, for those who only look."""
        return self._reader

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
        """Core, journal and story are of one mind; the core is that of the next manager, who knows
        what is written."""
        core = self.fresh()
        records = self.records()
        for record in records:
            core.handle(record.event)
        self.world.exercised[Invariant.ONE_MIND] += len(records)
        invariants.check_beliefs(core, self.fresh(), records)

    def works(self) -> list[Work]:
        """The tasks as they would run at each site."""
        workflow = self.runnable.workflow
        if self.far is not None:
            return works(workflow, self.sites, [task % 2 for task in range(len(workflow))])
        return [self.work or Work(workflow, whole_seconds(workflow), self.site)]

    def fresh(self) -> Core:
        """A core that has heard nothing."""
        return Core(self.works(), self.terms)

    def check_nothing_twice(self) -> None:
        """What must hold of a run that is over, however it ended."""
        assert self.manager is not None
        self.world.faults.clear()
        self.world.mend()
        for _ in range(PATIENCE_LOOKS):  # these start nothing more, and end with their walltime
            if not self.world.has_unknown:
                break
            self.wait(60)
        records = self.records()
        invariants.check_beliefs(self.manager.core, self.fresh(), records)
        folders = [
            self.folder,
            *(mirror.folder for mirror in self.manager.dispatch.mirrors.values()),
        ]
        invariants.check_nothing_twice(self.world, folders, records)
        if any(job.outcome is None for job in self.story().jobs.values()):
            raise invariants.Violation("jobs of a run that is over have no end")
        if not (self.world.met[Kind.CLOCK] or self.world.met[Kind.NODE_CLOCK]):
            invariants.check_held(self.world, self.story())
        invariants.check_disk(
            self.world, self.folder, self.manager.dispatch.runnable, self.manager.core
        )
        self.world.exercised[Invariant.DISKS_EMPTY] += self.world.transfers if self.scratch else 0
        if self.scratch and (left := [str(path) for path in Path(self.scratch).glob("*/*")]):
            raise invariants.Violation(f"left on disks of nodes: {left}")
        if self.far is not None and self.is_complete:
            invariants.check_home(self.world, self.far, self.manager.dispatch.runnable)

    def check_complete(self) -> None:
        """And every task is done."""
        if not self.is_complete:
            left = [
                task for task, told in enumerate(self.story().tasks) if told.state != "finished"
            ]
            raise invariants.Violation(
                f"the run has ended without tasks {left}: "
                f"{self.manager and self.manager.core.trouble}"
            )
        self.check_nothing_twice()
