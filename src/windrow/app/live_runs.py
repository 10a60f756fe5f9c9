"""The user's live runs, in whatever folder: no two of them may write the same files, or have the same space.

A run is live while it is managed, or while its journal knows of jobs that are not over. Each live run has a small file
in $XDG_STATE_HOME/windrow/live that says where its folder is; all else is asked there. So has a workflow that was put
into a pool where space is limited, with what it may take. Files of runs that are over are
dropped by the next process. Looking at the others and entering oneself happen under one lock, and a run that enters
holds the lock of its run by then: of two that start at once one is refused.

Files are compared by their whole paths, with links in their folders followed. What a command writes without declaring
it cannot be seen; two runs of one workflow file in one folder are therefore refused in any case.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from windrow.agent.folder import RunFolder
from windrow.app.runs import RunPaths, facts_of, runnable_of
from windrow.errors import UserError, WindrowError
from windrow.files import disk_faults, held
from windrow.manager.events import JobEnded, JobKilled, JobRejected, JobsPlanned
from windrow.manager.journal import RunJournal
from windrow.model import Runnable
from windrow.places import NoHome, user_folder
from windrow.records.lock import holder_of

logger = logging.getLogger(__name__)


def enter(paths: RunPaths, runnable: Runnable) -> None:
    """Enter a run whose lock is held. UserError where a live run writes what it would write."""
    workflow = str(facts_of(paths).get("workflow"))
    try:
        with _registry() as folder:
            _refuse_conflicts(folder, paths.folder.path, workflow, runnable)
            _refuse_same_space(folder, paths)
            _entry(folder, paths).write_text(str(paths.folder.path), encoding="utf-8", errors="surrogateescape")
    except (OSError, NoHome) as error:  # no home, or not ours to write
        logger.warning("other runs cannot be seen: %s", error)


def refuse_conflicts(root: Path, workflow: Path, runnable: Runnable, run: str = "new") -> None:
    """UserError where a live run writes what this run in this folder of runs would write. Nothing is entered."""
    try:
        with _registry() as folder:
            _refuse_conflicts(folder, root.absolute() / run, str(workflow.absolute()), runnable)
    except (OSError, NoHome) as error:  # no home, or not ours to write
        logger.warning("other runs cannot be seen: %s", error)


def leave(paths: RunPaths) -> None:
    """The run is over."""
    try:
        with _registry() as folder:
            _entry(folder, paths).unlink(missing_ok=True)
    except (OSError, NoHome):
        pass  # the next process sees that it is over


def guaranteed(place: str) -> list[tuple[str, int]]:
    """Live runs with the bytes that each may take in this folder, of which [data] limits what all may."""
    try:
        with _registry() as folder:
            return _guaranteed(folder, place)
    except (OSError, NoHome):
        return []


def _guaranteed(folder: Path, place: str, but: Path | None = None) -> list[tuple[str, int]]:
    runs = [RunPaths(RunFolder(Path(entry.read_text(errors="surrogateescape")))) for entry in folder.glob("[0-9a-f]*")]
    live = [(run.name, facts_of(run)) for run in runs if run.folder.path != but and _is_live(run)]
    found = [(name, facts["guarantee"]) for name, facts in live if (facts.get("space_in") or [""])[0] == place]
    for entry in sorted(folder.glob("pool-*")):
        told = json.loads(entry.read_text())
        if _is_over(Path(told["workflow"])):
            entry.unlink(missing_ok=True)
        elif told["space_in"] == place:
            found.append((f"workflow {Path(told['workflow']).stem} of a pool", told["guarantee"]))
    return found


@contextmanager
def sharing(place: str) -> Iterator[tuple[int, Callable[[Path, int], None]]]:
    """What all have of the space there, and a way to enter a workflow of a pool, by its file, with what it may take."""
    with _registry() as folder:

        def enter_submitted(workflow: Path, size: int) -> None:
            told = {"workflow": os.fspath(workflow), "guarantee": size, "space_in": place}
            digest = hashlib.sha256(os.fsencode(workflow)).hexdigest()[:24]
            with disk_faults(f"{folder} cannot be written"):
                (folder / f"pool-{digest}").write_text(json.dumps(told))

        yield sum(size for _, size in _guaranteed(folder, place)), enter_submitted


def _is_over(workflow: Path) -> bool:
    """Whether a pool is done with the workflow in this file, or is not there any more."""
    from windrow.pool.folder import PoolFolder  # noqa: PLC0415  (few runs have such neighbours)
    from windrow.pool.view import PoolView  # noqa: PLC0415

    try:
        told = PoolView(PoolFolder(workflow.parent.parent))
    except (WindrowError, OSError):
        return True
    with closing(told):
        story = told.story.workflows.get(int(workflow.stem))
        return story is not None and bool(story.outcome)


def _refuse_same_space(folder: Path, paths: RunPaths) -> None:
    facts = facts_of(paths)
    if (where := facts.get("space_in")) is not None:
        others = _guaranteed(folder, where[0], paths.folder.path)
        if facts["guarantee"] + sum(size for _, size in others) > where[1]:
            names = ", ".join(name for name, _ in others)
            raise UserError(f"{names} took the space in {where[0]} that this run needs; start it again")


@contextmanager
def _registry() -> Iterator[Path]:
    """The folder of all entries, to one process at a time."""
    folder = user_folder("state") / "live"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(folder / ".lock"):
        yield folder


def _entry(folder: Path, paths: RunPaths) -> Path:
    return folder / hashlib.sha256(os.fsencode(paths.folder.path)).hexdigest()[:24]


def _refuse_conflicts(folder: Path, own: Path, workflow: str, runnable: Runnable) -> None:
    ours: set[str] | None = None
    for entry in sorted(folder.glob("[0-9a-f]*")):
        other = RunPaths(RunFolder(Path(entry.read_text(encoding="utf-8", errors="surrogateescape"))))
        if other.folder.path == own:
            continue
        if not _is_live(other):
            entry.unlink(missing_ok=True)
            continue
        if other.folder.path.parent == own.parent and facts_of(other).get("workflow") == workflow:
            raise _conflict(other, "runs the same workflow file in this folder")
        ours = _written(runnable) if ours is None else ours
        try:
            theirs = _written(runnable_of(other))
        except WindrowError:  # what it writes is unknown
            continue
        if (shared := _shared(ours, theirs)) is not None:
            raise _conflict(other, f"writes {shared}, which this run would also write")


def _conflict(other: RunPaths, what: str) -> UserError:
    how = "is running" if holder_of(other.lock) is not None else "has unfinished jobs"
    place = other.folder.path
    return UserError(
        f"{other.name} in {place} {how} and {what}; wait until it ends (windrow watch {place}), "
        f"or stop it (windrow cancel {place})"
    )


def _is_live(run: RunPaths) -> bool:
    try:
        if holder_of(run.lock) is not None:
            return True
        with closing(RunJournal.open(run.journal)) as journal:
            records = journal.records(kinds=(JobsPlanned, JobEnded, JobKilled, JobRejected))
            events = [record.event for _, record in records]
    except (WindrowError, OSError):
        return False
    planned = sum(len(event.decision.jobs) for event in events if isinstance(event, JobsPlanned))
    return planned > sum(not isinstance(event, JobsPlanned) for event in events)


def _written(runnable: Runnable) -> set[str]:
    """The whole paths of all files that tasks write."""
    workflow = runnable.workflow
    real: dict[str, str] = {}
    found: set[str] = set()
    for task, step in enumerate(runnable.steps):
        for f in workflow.outputs.of(task).tolist():
            folder, name = os.path.split(os.path.join(step.workdir, workflow.files[f].id))  # noqa: PTH118 (a million of them)
            if folder not in real:
                real[folder] = os.path.realpath(folder)
            found.add(f"{real[folder]}/{name}")
    return found


def _shared(ours: set[str], theirs: set[str]) -> str | None:
    """A file that both write, or a folder that one writes and in which the other writes."""
    if both := ours & theirs:
        return min(both)
    for some, others in ((ours, theirs), (theirs, ours)):
        folders = {str(parent) for path in some for parent in Path(path).parents}
        if inside := folders & others:
            return min(inside)
    return None
