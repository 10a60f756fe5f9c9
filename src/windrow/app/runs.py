"""Where runs are kept: `.windrow/runs/NAME` under the folder in which they were started. Private to
the user.

WINDROW_DIR may name another folder than `.windrow` (`places.project_folder`).
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shlex
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.agent.folder import RunFolder
from windrow.app.facts import RunFacts
from windrow.app.ownership import of_your_own, refuse_foreign, refuse_shared, refuse_unreadable
from windrow.deletion import discard_tree, move
from windrow.errors import NothingBegun, OutsideError, UserError, WindrowError, unknown_name
from windrow.files import Inside, disk_faults
from windrow.forecast.ledger import PastPrediction, Promise
from windrow.manager.dispatch import job_tag
from windrow.model import Runnable
from windrow.places import project_folder
from windrow.records.journal import JournalView
from windrow.records.runnable_file import read_runnable
from windrow.story.events import JobsPlanned, JobStarted, TasksAdded, TasksAmended
from windrow.story.journal import PredictedStart, Record, RunJournal
from windrow.story.states import ACTIVE, JobStage, RunState, TaskState
from windrow.story.story import RunStory

if TYPE_CHECKING:
    from windrow.app.relocating import ProjectMove
    from windrow.storage.demand import SpaceLimit
    from windrow.story.figures import RecordedRun
    from windrow.story.unread import Unread

_RUNS = "runs"
_UNBORN = ".new-"
_NAME_MAX = 100
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one run beside those that its agents use."""

    folder: RunFolder

    @property
    def path(self) -> Path:
        """Where they are."""
        return self.folder.path

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.path.name

    journal = Inside("journal.sqlite")
    """Every event."""
    workflow = Inside("workflow.json")
    """The workflow as the run took it."""
    inputs = Inside("inputs.json")
    """Size and time of each file that tasks read and no task makes, as they were when the run was
    made."""
    hashes = Inside("hashes.json")
    """What was in them (`records.contents`)."""
    lock = Inside("lock")
    """Held by the run's manager."""
    stop = Inside("stop")
    """There while someone wants the run to stop."""
    seen = Inside("queue.json")
    """What the run saw of its queue (`foresight.seen`)."""
    what_if = Inside("what-if.json")
    """What other strategies would have come to (`trials.replay`)."""
    log = Inside("manager.log")
    """What a detached manager says."""


def _stem(name: str) -> str:
    """What the name of a run of this workflow begins with: what every file system and batch system
    takes. Letters with accents lose these."""
    letters = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-.")[:_NAME_MAX] or "run"


@contextmanager
def _nothing_begun() -> Iterator[None]:
    """What fails within, fails before anything was started."""
    try:
        yield
    except NothingBegun:
        raise
    except OutsideError as error:
        raise NothingBegun(str(error)) from error


@_nothing_begun()
def new_run(name: str, root: Path, fill: Callable[[RunPaths], None]) -> RunPaths:
    """A new run of a workflow of this name: NAME-1, NAME-2, ...

    It is made under another name (`fill` writes its files) and gets its own when it is whole: a
    process that dies then leaves nothing that could be taken for a run.
    """
    stem = _stem(name)
    _make_root(root)
    with disk_faults(f"{root}: cannot create a folder for the run"):
        unborn = root.absolute() / f"{_UNBORN}{secrets.token_hex(4)}"
        unborn.mkdir(mode=0o700)
        try:
            fill(RunPaths(RunFolder(unborn)))
            while True:
                names = (path.name.removeprefix(f"{stem}-") for path in root.glob(f"{stem}-*"))
                numbers = [int(name) for name in names if name.isdecimal()]
                folder = root.absolute() / f"{stem}-{max(numbers, default=0) + 1}"
                try:
                    move(unborn, folder)
                    return RunPaths(RunFolder(folder))
                except OSError as error:  # someone else may have started one at the same time
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                        raise
        finally:
            with suppress(OSError):
                discard_tree(unborn)


def own_root() -> Path:
    """Where runs that are started in this folder are kept."""
    return project_folder() / _RUNS


def refuse_foreign_root(root: Path) -> None:
    """UserError if runs cannot be started, since another user keeps theirs in this place."""
    for folder in (root.parent, root):
        refuse_foreign(folder, otherwise=of_your_own())


def _make_root(root: Path) -> None:
    """The folder of all runs, private; what was left half-made long ago goes."""
    with disk_faults(f"{root}: cannot create a folder for the run"):
        is_first = not root.exists()
        refuse_foreign_root(root)
        for folder in (root.parent, root):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_first:
                folder.chmod(0o700)  # nothing is in it that others could have put there
            refuse_shared(folder)
        for unborn in root.glob(f"{_UNBORN}*"):
            if time.time() - unborn.stat().st_mtime > _DAY_S:
                with suppress(OSError):
                    discard_tree(unborn)


def runs_root(start: Path | None = None) -> Path:
    """Where the runs of this folder are, or else of the nearest folder above it that has any, and
    the same owner.

    UserError if they are a colleague's, and cannot be read.
    """
    here = (start or Path.cwd()).absolute()
    owner = here.stat().st_uid
    for folder in (here, *here.parents):
        if folder.stat().st_uid != owner:
            break
        refuse_unreadable(folder / project_folder())
        if (folder / own_root()).is_dir():
            refuse_unreadable(folder / own_root())
            return folder / own_root()
    return here / own_root()


def all_runs(root: Path | None = None) -> list[RunPaths]:
    """All runs of this folder, the oldest first; also those that cannot be read."""
    return sorted(_in_folder(root or runs_root()), key=lambda run: (_created_s(run), run.name))


def _in_folder(root: Path) -> list[RunPaths]:
    """The same in any order."""
    refuse_unreadable(root.absolute())
    try:
        folders = [
            path for path in root.iterdir() if not path.name.startswith(".") and _holds_run(path)
        ]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutsideError(f"{root} cannot be read: {error.strerror}") from error
    return [RunPaths(RunFolder.at(path)) for path in folders]


def _holds_run(folder: Path) -> bool:
    """Whether a run is, or was, in this folder. One that has neither journal nor jobs never came to
    be.

    One that a colleague does not let us read may be a run.
    """
    if folder.is_dir() and not os.access(folder, os.X_OK):
        return True
    return (folder / "journal.sqlite").exists() or (folder / "jobs").exists()


def find_run(name: str | None, root: Path | None = None) -> RunPaths:
    """The run of this name, or at this path; without a name the latest one, which must be
    readable."""
    if name is not None and _is_run_folder(name):
        return RunPaths(RunFolder.at(name))
    root = root or runs_root()
    runs = all_runs(root)
    if not runs:
        raise UserError(f"there are no runs in {root.absolute()}; windrow run WORKFLOW starts one")
    if name is None:
        _refuse_unreadable(runs[-1])
        return runs[-1]
    for run in runs:
        if run.name == name:
            return run
    raise unknown_name("run", name, [run.name for run in runs])


def of_run(paths: RunPaths) -> str:
    """What to add to a command so that it is about this run: nothing if that is the latest."""
    folder = paths.folder.path
    if folder.parent.name == _RUNS:
        runs = all_runs(folder.parent)
    else:
        runs = []
    if runs and runs[-1].name == paths.name:
        return ""
    return f" --run {shlex.quote(paths.name if runs else str(folder))}"


def find_own_run(name: str | None, root: Path | None = None) -> RunPaths:
    """The same, to continue it: UserError if someone else may have made it what it is."""
    run = find_run(name, root)
    folder = run.folder.path
    is_kept_here = folder.parent.name == _RUNS and folder.parent.parent.name in (
        ".windrow",
        project_folder().name,
    )
    above = (folder.parent.parent, folder.parent) if is_kept_here else ()
    for path in (*above, folder, run.journal, run.workflow):
        refuse_foreign(path, otherwise=of_your_own())
    for path in (*above, folder):
        refuse_shared(path)
    return run


def _is_run_folder(name: str) -> bool:
    if os.sep in name and "\0" not in name:
        refuse_unreadable(Path(name).absolute())
    try:
        return _holds_run(Path(name))
    except (OSError, ValueError):  # no name that a file could have
        return False


def _refuse_unreadable(run: RunPaths) -> None:
    """UserError if the latest run cannot be read: the one before it is not what is meant."""
    try:
        RunJournal.open(run.journal).close()
        runnable_of(run)
    except WindrowError as error:
        raise UserError(
            f"the latest run, {run.name}, cannot be read ({error}); "
            f"name another run (windrow runs lists them), or move {run.folder.path} away"
        ) from error


def _created_s(run: RunPaths) -> float:
    """When the run was made; by the age of its files if its journal cannot say, never older than
    it is."""
    try:
        made_s = run.workflow.stat().st_mtime
    except OSError:
        made_s = run.path.stat().st_mtime
    try:
        with closing(RunJournal.open(run.journal)) as journal:
            return RunFacts.read(journal.facts()).created_s
    except WindrowError:
        return made_s


def facts_of(paths: RunPaths) -> RunFacts:
    """What is known of a run; nothing if it cannot be read."""
    try:
        with closing(RunJournal.open(paths.journal)) as journal:
            return RunFacts.read(journal.facts())
    except WindrowError:
        return RunFacts()


def runnable_of(paths: RunPaths) -> Runnable:
    """The workflow of a run as it is now: what it began with, and what was added to it since."""
    with closing(RunJournal.open(paths.journal)) as journal:
        records = list(journal.records(kinds=(TasksAdded, TasksAmended)))
    events = [record.event for _, record in records]
    changes = [event for event in events if isinstance(event, TasksAdded | TasksAmended)]
    return grown(read_runnable(paths.workflow), changes)


def grown(runnable: Runnable, changes: Iterable[TasksAdded | TasksAmended]) -> Runnable:
    """The workflow with what was added to a run of it or changed there. WorkflowError if that does
    not go with it."""
    for event in changes:
        if isinstance(event, TasksAdded):
            steps = (*runnable.steps, *event.added.steps)
        else:
            steps = runnable.with_steps(event.now.tasks, event.now.steps)
        runnable = Runnable(event.to(runnable.workflow), steps)
    return runnable


class RunView(JournalView[RunJournal]):
    """A run: facts, workflow, story, who manages it. By default as the journal tells it.

    `asks_agents`: while no process manages the run, its story has also what its agents wrote since.
    """

    def __init__(
        self, paths: RunPaths, *, asks_agents: bool = False, runnable: Runnable | None = None
    ) -> None:
        """`runnable`: the workflow that the run was made of, if this process knows it."""
        self.paths = paths
        self.move: ProjectMove | None = None
        """How its project was moved, if it is looked at as if it had run where it is now."""
        self.values: Mapping[str, str] = {}
        """Of `vars` of its workflow file, if the user wants others now."""
        self._first = runnable
        self._asks_agents = asks_agents
        self._unread: Unread | None = None
        journal = RunJournal.open(paths.journal)
        self._start_over()
        super().__init__(journal, paths.lock)

    def _start_over(self) -> None:
        self.runnable: Runnable = self._first or read_runnable(self.paths.workflow)
        self.story = RunStory.of(self.runnable.workflow, ())
        self._seen = 0
        self._is_ahead = False  # of the journal: the story has what agents wrote since

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        if (
            self._is_ahead and next(self._journal.records(self._seen), None) is not None
        ):  # where it all is by now
            self._start_over()
            self._unread = None
        super().refresh()
        if self._asks_agents and self.holder is None and not self.story.is_complete:
            self._hear_agents()
        self.story.trouble = self.story.trouble or self.facts.trouble
        words = self.facts.queue_words
        self.trouble_with_queue = words.trouble
        """What keeps jobs from being submitted or heard of, by the latest word of the run's
        manager."""
        self._notes = words.notes
        for number, job in self.story.jobs.items():
            if job.state is JobStage.WAITING:
                job.reason = words.reasons.get(number, "")
            else:
                job.reason = ""

    def _hear_agents(self) -> None:
        from windrow.story.unread import Unread  # noqa: PLC0415  (most runs have a manager, or are over)

        self._unread = self._unread or Unread(self.paths.folder, self._journal.offsets())
        for record in self._unread.records(self.story):
            self.story.hear(record)
            self._is_ahead = True

    def _take_facts(self, facts: Mapping[str, Any]) -> None:
        self.facts = RunFacts.read(facts)
        if self.values:
            values = {**self.facts.request.values, **self.values}
            self.facts = replace(self.facts, request=replace(self.facts.request, values=values))

    def _hear(self, record: Record) -> None:
        self.story.hear(record)
        if isinstance(record.event, TasksAmended):
            self._amend(record.event)
        if isinstance(record.event, TasksAdded):
            self.runnable = Runnable(
                self.story.workflow, (*self.runnable.steps, *record.event.added.steps)
            )

    def _amend(self, event: TasksAmended) -> None:
        steps = self.runnable.with_steps(event.now.tasks, event.now.steps)
        self.runnable = Runnable(self.story.workflow, steps)

    def recorded(self, now_s: float) -> RecordedRun:
        """The run as figures and pages take it. Its clock runs while it is managed."""
        from windrow.story.figures import RecordedRun  # noqa: PLC0415  (a run that is running shows none)

        last_s = self.story.last_s
        return RecordedRun(
            name=self.paths.name,
            state=self.state,
            strategy=self.facts.request.strategy,
            queue=self.facts.on,
            story=self.story,
            predictions=self.predictions(),
            until_s=max(now_s, last_s) if self.state in ACTIVE else last_s,
            cores=self.facts.node_cores,
            version=self.facts.version,
            space=self._space(),
        )

    def _space(self) -> SpaceLimit | None:
        """What its files may take."""
        request = self.facts.request
        if not request.space:
            return None
        from windrow.storage.demand import SpaceLimit  # noqa: PLC0415  (few runs have one)

        return SpaceLimit(request.space, request.space_order)

    def left_s(self, now_s: float) -> float | None:
        """How long the run will need yet. None if that is unknown: nothing is done, and run
        times are guesses."""
        from windrow.story.time_left import Offer, time_left_s  # noqa: PLC0415

        facts = self.facts
        story = self.story
        if facts.guesses >= len(story.tasks) and not story.count(TaskState.FINISHED):
            return None
        offer = Offer(facts.node_cores, facts.nodes, facts.request.cap)
        return time_left_s(story, self.predictions(), offer, now_s)

    def missed_by_s(self, end_s: float) -> float | None:
        """By how much the run is, or was, late; None if it has no deadline or is in time."""
        deadline_s = self.facts.request.deadline_s
        begun_s = self.story.begun_s
        if deadline_s is None or begun_s is None:
            late_s = 0.0
        else:
            late_s = end_s - begun_s - deadline_s
        if late_s > 0:
            return late_s
        return None

    def warnings(self) -> list[str]:
        """What keeps the run from going on while it is meant to; and then what it left behind."""
        if self.state not in (RunState.RUNNING, RunState.INTERRUPTED):
            left = self.facts.left
            return [f"warning: {left}"] if left else []
        if self.state == RunState.RUNNING:
            found = [self.trouble_with_queue]
        else:
            found = []
        if any(job.reason for job in self.story.jobs.values()):
            from windrow.story.waiting import nothing_can_start  # noqa: PLC0415

            found.append(nothing_can_start(self.story))
        ids = self.story.workflow.ids
        tasks = enumerate(self.story.tasks if self.story.has_refusals else ())
        open_tasks = (
            one for one in tasks if one[1].refused and one[1].state is not TaskState.FINISHED
        )
        found += [
            f"task {ids[n]} in job {one.refused[-1][0]}: {one.refused[-1][1]}"
            for n, one in islice(open_tasks, 3)
        ]
        return [f"warning: {words}" for words in (*found, *self._notes) if words]

    def predictions(self) -> list[PredictedStart]:
        """What forecasters said of the run's jobs."""
        return self._journal.predictions()

    @property
    def state(self) -> str:
        """A RunState; or, if another run continues it, `continued by` that one."""
        if by := self.facts.continued_by:
            return f"{RunState.CONTINUED} by {by}"
        is_waiting = self.story.held is not None and self.holder is not None
        is_waiting |= bool(self.story.unread_makers)
        if self.story.is_complete and not self._is_ahead and not is_waiting:
            return RunState.COMPLETE
        if self.holder is not None:
            if self.story.is_stopped:
                return RunState.STOPPING
            return RunState.RUNNING
        if self._is_ahead or any(job.outcome is None for job in self.story.jobs.values()):
            return RunState.INTERRUPTED
        return _left_as(self.story)


def past_predictions(
    root: Path | None = None, queue: str | None = None, place: str | None = None
) -> list[PastPrediction]:
    """What was predicted in all runs of this folder (on this queue, in this place), and what came
    true.

    Only predictions and starts are read: a folder may hold many long runs.
    """
    found: list[PastPrediction] = []
    for journal, facts in _past(root, queue, place):
        elsewhere = _elsewhere(journal, queue) if facts.sites else ()
        starts = (r for _, r in journal.records(kinds=(JobStarted,)))
        begun_s = {r.event.job: r.at_s for r in starts if isinstance(r.event, JobStarted)}
        found += [
            PastPrediction(
                p.source, job_tag(facts.uid, p.job), p.at_s, p.start_s, begun_s.get(p.job)
            )
            for p in journal.predictions()
            if p.job not in elsewhere
        ]
    return sorted(found, key=lambda p: (p.at_s, p.tag))


def _elsewhere(journal: RunJournal, site: str | None) -> set[int]:
    """The jobs of a run that went to other sites."""
    planned = (r.event for _, r in journal.records(kinds=(JobsPlanned,)))
    plans = [
        plan for event in planned if isinstance(event, JobsPlanned) for plan in event.decision.jobs
    ]
    return {number for number, plan in enumerate(plans) if site is not None and plan.site != site}


def past_promises(
    root: Path | None = None, queue: str | None = None, place: str | None = None
) -> list[Promise]:
    """What looks ahead promised in the runs of this folder (on this queue) that are complete, and
    what came of it."""
    past = (facts for _, facts in _past(root, queue, place) if not facts.sites)
    return [facts.promise for facts in past if facts.promise is not None]


def _past(
    root: Path | None, queue: str | None, place: str | None
) -> Iterator[tuple[RunJournal, RunFacts]]:
    """Journals and facts of earlier runs on this queue. A run that cannot be read tells nothing,
    and does no harm.

    A queue of the same name may be of another cluster, which is another place.
    """
    for run in _in_folder(root or runs_root()):
        try:
            journal = RunJournal.open(run.journal)
            facts = RunFacts.read(journal.facts())
        except WindrowError:
            continue
        places = {site.name: site.place for site in facts.sites}
        places = places or {facts.request.on: facts.place or place or ""}
        if queue is None or (queue in places and place in (None, places[queue])):
            yield journal, facts
        journal.close()


def _workflow_of(paths: RunPaths, root: Path) -> str:
    """Its workflow file, as it is called where the run is now."""
    from windrow.app.relocating import workflow_of  # noqa: PLC0415  (seldom asked)

    return workflow_of(facts_of(paths), root.absolute())


def latest_of(workflow: Path, root: Path) -> RunView | None:
    """The latest run of this workflow file in this folder; UserError if one of them is being
    managed right now."""
    file = str(workflow.absolute())
    latest: RunView | None = None
    for paths in all_runs(root):
        if _workflow_of(paths, root) != file:
            continue
        try:
            latest = RunView(paths)
        except WindrowError:  # it says nothing, and stops no other
            continue
        if latest.holder is not None:
            raise UserError(
                f"{paths.name} of this workflow is running, managed by {latest.holder}; "
                f"windrow status -f {paths.name} shows it, windrow cancel {paths.name} stops it"
            )
    return latest


def none_to_resume(workflow: Path, root: Path) -> UserError:
    """Why there is no latest run of this workflow file."""
    file = str(workflow.absolute())
    for paths in reversed(all_runs(root)):
        if _workflow_of(paths, root) == file:
            try:
                RunView(paths)
            except WindrowError as error:
                return UserError(
                    f"the latest run of {workflow}, {paths.name}, cannot be read ({error}); "
                    "leave --resume out for a new one"
                )
    return UserError(f"there is no run of {workflow} here to resume; leave --resume out")


def _left_as(story: RunStory) -> RunState:
    """The state of a run without a manager, and without a job, that is not complete."""
    if story.is_stopped:
        return RunState.STOPPED
    if story.count(TaskState.FAILED) or story.trouble:
        return RunState.FAILED
    if story.count(TaskState.CANCELLED) and not story.has_open:
        return RunState.STOPPED
    return RunState.INTERRUPTED
