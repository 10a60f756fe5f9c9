"""Where runs are kept: `.windrow/runs/NAME` under the folder in which they were started. Private to the user."""

from __future__ import annotations

import errno
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.agent.folder import RunFolder
from windrow.app.ownership import refuse_foreign, refuse_shared
from windrow.errors import OutsideError, UserError, WindrowError, unknown_name
from windrow.files import Inside, disk_faults
from windrow.forecast.ledger import PastPrediction, Promise
from windrow.manager.dispatch import job_tag
from windrow.manager.events import JobsPlanned, JobStarted, TasksAdded
from windrow.manager.journal import PredictedStart, Record, RunJournal
from windrow.manager.states import ACTIVE, JobStage, RunState, TaskState
from windrow.manager.story import RunStory
from windrow.model import Runnable
from windrow.records.journal import JournalView
from windrow.records.runnable_file import read_runnable

if TYPE_CHECKING:
    from windrow.manager.figures import RecordedRun

ROOT = Path(".windrow") / "runs"
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
    """Size and time of each file that tasks read and no task makes, as they were when the run was made."""
    lock = Inside("lock")
    """Held by the run's manager."""
    stop = Inside("stop")
    """There while someone wants the run to stop."""
    log = Inside("manager.log")
    """What a detached manager says."""


def new_run(name: str, root: Path, fill: Callable[[RunPaths], None]) -> RunPaths:
    """A new run of a workflow of this name: NAME-1, NAME-2, ...

    It is made under another name (`fill` writes its files) and gets its own when it is whole: a process that dies then
    leaves nothing that could be taken for a run.
    """
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:_NAME_MAX] or "run"
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
                    unborn.rename(folder)
                    return RunPaths(RunFolder(folder))
                except OSError as error:  # someone else may have started one at the same time
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                        raise
        finally:
            shutil.rmtree(unborn, ignore_errors=True)


def _make_root(root: Path) -> None:
    """The folder of all runs, private; what was left half-made long ago goes."""
    with disk_faults(f"{root}: cannot create a folder for the run"):
        is_first = not root.exists()
        for folder in (root.parent, root):
            refuse_foreign(folder)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_first:
                folder.chmod(0o700)  # nothing is in it that others could have put there
            refuse_shared(folder)
        for unborn in root.glob(f"{_UNBORN}*"):
            if time.time() - unborn.stat().st_mtime > _DAY_S:
                shutil.rmtree(unborn, ignore_errors=True)


def runs_root(start: Path | None = None) -> Path:
    """Where the runs of this folder are, or else of the nearest folder above it that has any, and the same owner."""
    here = (start or Path.cwd()).absolute()
    owner = here.stat().st_uid
    for folder in (here, *here.parents):
        if folder.stat().st_uid != owner:
            break
        if (folder / ROOT).is_dir():
            return folder / ROOT
    return here / ROOT


def all_runs(root: Path | None = None) -> list[RunPaths]:
    """All runs of this folder, the oldest first; also those that cannot be read."""
    root = root or runs_root()
    try:
        folders = [path for path in root.iterdir() if not path.name.startswith(".") and _holds_run(path)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutsideError(f"{root} cannot be read: {error.strerror}") from error
    return sorted((RunPaths(RunFolder.at(path)) for path in folders), key=lambda run: (_created_s(run), run.name))


def _holds_run(folder: Path) -> bool:
    """Whether a run is, or was, in this folder. One that has neither journal nor jobs never came to be."""
    return (folder / "journal.sqlite").exists() or (folder / "jobs").exists()


def find_run(name: str | None, root: Path | None = None) -> RunPaths:
    """The run of this name, or at this path; without a name the latest one, which must be readable."""
    root = root or runs_root()
    if name is not None and _is_run_folder(name):
        return RunPaths(RunFolder.at(name))
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


def find_own_run(name: str | None, root: Path | None = None) -> RunPaths:
    """The same, to go on with: UserError where someone else may have made it what it is."""
    run = find_run(name, root)
    folder = run.folder.path
    above = (folder.parent.parent, folder.parent) if folder.parent.parts[-2:] == ROOT.parts else ()
    for path in (*above, folder, run.journal, run.workflow):
        refuse_foreign(path)
    for path in (*above, folder):
        refuse_shared(path)
    return run


def _is_run_folder(name: str) -> bool:
    try:
        return _holds_run(Path(name))
    except (OSError, ValueError):  # no name that a file could have
        return False


def _refuse_unreadable(run: RunPaths) -> None:
    """UserError where the latest run cannot be read: the one before it is not what is meant."""
    try:
        RunJournal.open(run.journal).close()
        runnable_of(run)
    except WindrowError as error:
        raise UserError(
            f"the latest run, {run.name}, cannot be read ({error}); "
            f"name another run (windrow runs lists them), or move {run.folder.path} away"
        ) from error


def _created_s(run: RunPaths) -> float:
    """When the run was made; by the age of its files where its journal cannot say, never older than it is."""
    made_s = (run.workflow if run.workflow.exists() else run.folder.path).stat().st_mtime
    try:
        with closing(RunJournal.open(run.journal)) as journal:
            return float(journal.facts().get("created_s", 0.0))
    except WindrowError:
        return made_s


def facts_of(paths: RunPaths) -> dict[str, Any]:
    """What is known of a run; nothing where it cannot be read."""
    try:
        with closing(RunJournal.open(paths.journal)) as journal:
            return journal.facts()
    except WindrowError:
        return {}


def runnable_of(paths: RunPaths) -> Runnable:
    """The workflow of a run as it is now: what it began with, and what was added to it since."""
    with closing(RunJournal.open(paths.journal)) as journal:
        added = [record.event for _, record in journal.records(kinds=(TasksAdded,))]
    return grown(read_runnable(paths.workflow), [event for event in added if isinstance(event, TasksAdded)])


def grown(runnable: Runnable, additions: Iterable[TasksAdded]) -> Runnable:
    """The workflow with what was added to a run of it. WorkflowError where that does not go with it."""
    for event in additions:
        runnable = Runnable(event.to(runnable.workflow), (*runnable.steps, *event.added.steps))
    return runnable


class RunView(JournalView[RunJournal]):
    """A run: facts, workflow, story, who manages it."""

    def __init__(self, paths: RunPaths) -> None:
        self.paths = paths
        journal = RunJournal.open(paths.journal)
        self.runnable: Runnable = read_runnable(paths.workflow)
        self.story = RunStory.of(self.runnable.workflow, ())
        super().__init__(journal, paths.lock)

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        super().refresh()
        self.story.trouble = self.story.trouble or str(self.facts.get("trouble") or "")
        words = self.facts.get("queue_words") or {}
        self.trouble_with_queue = str(words.get("trouble", ""))
        """What keeps jobs from being submitted or heard of, by the latest word of the run's manager."""
        for number, job in self.story.jobs.items():
            job.reason = words.get("reasons", {}).get(str(number), "") if job.state is JobStage.WAITING else ""

    def _hear(self, record: Record) -> None:
        self.story.hear(record)
        if isinstance(record.event, TasksAdded):
            self.runnable = Runnable(self.story.workflow, (*self.runnable.steps, *record.event.added.steps))

    def recorded(self, now_s: float) -> RecordedRun:
        """The run as figures and pages take it. Its clock runs while it is managed."""
        from windrow.manager.figures import RecordedRun  # noqa: PLC0415  (a run that is running shows none)
        from windrow.storage.demand import SpaceLimit  # noqa: PLC0415

        last_s = self.story.last_s
        return RecordedRun(
            name=self.paths.name,
            state=self.state,
            strategy=str(self.facts["strategy"]),
            queue=sites_of(self.facts),
            story=self.story,
            predictions=self.predictions(),
            until_s=max(now_s, last_s) if self.state in ACTIVE else last_s,
            cores=int(self.facts.get("node_cores", 1)),
            version=str(self.facts.get("version", "")),
            space=SpaceLimit(size, self.facts.get("space_order", "")) if (size := self.facts.get("space")) else None,
        )

    def left_s(self, now_s: float) -> float | None:
        """How long the run will need yet. None where that is unknown: nothing is done, and run times are guesses."""
        from windrow.manager.time_left import time_left_s  # noqa: PLC0415

        facts, story = self.facts, self.story
        if facts.get("guesses", 0) >= len(story.tasks) and not story.count(TaskState.FINISHED):
            return None
        return time_left_s(story, self.predictions(), int(facts.get("node_cores") or 1), now_s)

    def missed_by_s(self, end_s: float) -> float | None:
        """By how much the run is, or was, late; None where it has no deadline or is in time."""
        deadline_s, begun_s = self.facts.get("deadline_s"), self.story.begun_s
        late_s = 0.0 if deadline_s is None or begun_s is None else end_s - begun_s - deadline_s
        return late_s if late_s > 0 else None

    def warnings(self) -> list[str]:
        """What keeps the run from going on while it is meant to."""
        if self.state not in (RunState.RUNNING, RunState.INTERRUPTED):
            return []
        found = [self.trouble_with_queue] if self.state == RunState.RUNNING else []
        if any(job.reason for job in self.story.jobs.values()):
            from windrow.manager.waiting import nothing_can_start  # noqa: PLC0415

            found.append(nothing_can_start(self.story))
        return [f"warning: {words}" for words in found if words]

    def predictions(self) -> list[PredictedStart]:
        """What forecasters said of the run's jobs."""
        return self._journal.predictions()

    @property
    def state(self) -> str:
        """A RunState; or, where another run continues it, `continued by` that one."""
        if by := self.facts.get("continued_by"):
            return f"{RunState.CONTINUED} by {by}"
        if self.story.is_complete:
            return RunState.COMPLETE
        if self.holder is not None:
            return RunState.STOPPING if self.story.is_stopped else RunState.RUNNING
        if any(job.outcome is None for job in self.story.jobs.values()):
            return RunState.INTERRUPTED
        if self.story.is_stopped:
            return RunState.STOPPED
        return RunState.FAILED if self.story.count(TaskState.FAILED) or self.story.trouble else RunState.INTERRUPTED


def sites_of(facts: dict[str, Any]) -> str:
    """Where a run is, as `--on` takes it."""
    return ",".join([facts["queue"], *(site["name"] for site in facts.get("sites", ())[1:])])


def past_predictions(
    root: Path | None = None, queue: str | None = None, place: str | None = None
) -> list[PastPrediction]:
    """What was predicted in all runs of this folder (on this queue, in this place), and what came true.

    Only predictions and starts are read: a folder may hold many long runs.
    """
    found: list[PastPrediction] = []
    for journal, facts in _past(root, queue, place):
        elsewhere = _elsewhere(journal, queue) if "sites" in facts else ()
        starts = (r for _, r in journal.records(kinds=(JobStarted,)))
        begun_s = {r.event.job: r.at_s for r in starts if isinstance(r.event, JobStarted)}
        found += [
            PastPrediction(p.source, job_tag(facts["uid"], p.job), p.at_s, p.start_s, begun_s.get(p.job))
            for p in journal.predictions()
            if p.job not in elsewhere
        ]
    return sorted(found, key=lambda p: p.at_s)


def _elsewhere(journal: RunJournal, site: str | None) -> set[int]:
    """The jobs of a run that went to other sites."""
    planned = (r.event for _, r in journal.records(kinds=(JobsPlanned,)))
    plans = [plan for event in planned if isinstance(event, JobsPlanned) for plan in event.decision.jobs]
    return {number for number, plan in enumerate(plans) if site is not None and plan.site != site}


def past_promises(root: Path | None = None, queue: str | None = None, place: str | None = None) -> list[Promise]:
    """What looks ahead promised in the runs of this folder (on this queue) that are complete, and what came of it."""
    past = (facts for _, facts in _past(root, queue, place) if "sites" not in facts)
    return [Promise(**promise) for facts in past if (promise := facts.get("promise"))]


def _past(root: Path | None, queue: str | None, place: str | None) -> Iterator[tuple[RunJournal, dict[str, Any]]]:
    """Journals and facts of earlier runs on this queue. A run that cannot be read tells nothing, and does no harm.

    A queue of the same name may be of another cluster, which is another place; older runs do not say.
    """
    for run in all_runs(root):
        try:
            journal = RunJournal.open(run.journal)
        except WindrowError:
            continue
        facts = journal.facts()
        places = {site["name"]: site["place"] for site in facts.get("sites", ())}
        places = places or {facts.get("queue"): facts.get("place", place)}
        if queue is None or (queue in places and place in (None, places[queue])):
            yield journal, facts
        journal.close()


def latest_of(workflow: Path, root: Path) -> RunView | None:
    """The latest run of this workflow file in this folder; UserError where one of them is being managed right now."""
    file = str(workflow.absolute())
    latest: RunView | None = None
    for paths in all_runs(root):
        if facts_of(paths).get("workflow") != file:
            continue
        try:
            latest = RunView(paths)
        except WindrowError:  # it says nothing, and stops no other
            continue
        if latest.holder is not None:
            raise UserError(
                f"{paths.name} of this workflow is running, managed by {latest.holder}; "
                f"windrow watch {paths.name} shows it, windrow cancel {paths.name} stops it"
            )
    return latest
