"""The user's live runs, in whatever folder: no two of them may write the same files, or have the
same space.

A run is live while it is managed, or while its journal knows of jobs that are not over. Each live
run has a small file in $XDG_STATE_HOME/windrow/live that says where its folder is; all else is
asked there. So has a workflow that was put into a pool if space is limited, with what it may
take. Files of runs that are over are dropped by the next process. Looking at the others and
entering oneself happen under one lock, and a run that enters holds the lock of its run by then: of
two that start at once one is refused.

A run whose journal cannot be read is live until each of its jobs has ended, by the word of its
agent or of its queue: its entry says where they are, and what the run may write if that cannot
be read either. One whose folder was deleted is live while a queue has jobs of its.

Files are compared by their whole paths, with links in their folders followed. What a command writes
without declaring it cannot be seen; two runs of one workflow file in one folder are therefore
refused in any case.
"""

import hashlib
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import Enum, auto
from pathlib import Path

from windrow.agent.event_file import last_word
from windrow.agent.folder import RunFolder
from windrow.app.facts import RunFacts
from windrow.app.runs import RunPaths, facts_of, runnable_of
from windrow.deletion import discard
from windrow.errors import UserError, WindrowError
from windrow.files import disk_faults, held, replacing
from windrow.manager.dispatch import job_tag
from windrow.model import Runnable
from windrow.places import NoHome, user_folder
from windrow.records.lock import holder_of
from windrow.records.runnable_file import read_runnable
from windrow.story.events import JobEnded, JobKilled, JobRejected, JobsPlanned
from windrow.story.journal import RunJournal

logger = logging.getLogger(__name__)

_ANY_JOB = range(100_000)
"""Of a run of which no one knows how many jobs it has."""


class _Life(Enum):
    """What can be seen of another run."""

    OVER = auto()
    MANAGED = auto()
    UNFINISHED = auto()
    """It has no manager, but jobs."""
    UNREADABLE = auto()
    """The same, as far as can be seen without its journal."""
    GONE = auto()
    """The same, as far as can be seen without its folder."""

    @property
    def is_known(self) -> bool:
        """Whether its journal can be asked."""
        return self not in (_Life.UNREADABLE, _Life.GONE)


@dataclass(frozen=True)
class _Entry:
    """A run in the registry, with what must be known of it even if its journal is damaged.

    `queues`: the sites that its jobs may be at, each with the settings of the shell in which the
    run was started. `host` is the machine that entered it: the local queue of another cannot be
    seen.
    """

    folder: str
    workflow: str = ""
    uid: str = ""
    queues: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    host: str = ""
    space_in: str = ""
    guarantee: int = 0

    @staticmethod
    def of(paths: RunPaths, facts: RunFacts) -> "_Entry":
        """The entry of a run with these facts."""
        request = facts.request
        queues = {site.name: site.shell for site in facts.sites}
        if not queues and request.on:
            queues = {request.on: request.shell or {}}
        return _Entry(
            folder=str(paths.path),
            workflow=facts.workflow,
            uid=facts.uid,
            queues=queues,
            host=socket.gethostname(),
            space_in="" if request.space_in is None else request.space_in[0],
            guarantee=request.guarantee or 0,
        )

    @staticmethod
    def read(file: Path) -> "_Entry":
        """What this file of the registry says. Earlier versions wrote the folder alone."""
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        if text.startswith("{"):
            return _Entry(**json.loads(text))
        return _Entry(text)

    def write(self, file: Path) -> None:
        """Put it into the registry."""
        with replacing(file, lasting=False) as stream:
            stream.write(json.dumps(asdict(self)).encode())

    @property
    def run(self) -> RunPaths:
        """The run."""
        return RunPaths(RunFolder(Path(self.folder)))

    @property
    def life(self) -> _Life:
        """Whether the run is live, as far as can be seen now."""
        run = self.run
        try:
            if holder_of(run.lock) is not None:
                return _Life.MANAGED
            with closing(RunJournal.open(run.journal)) as journal:
                records = journal.records(kinds=(JobsPlanned, JobEnded, JobKilled, JobRejected))
                events = [record.event for _, record in records]
        except (WindrowError, OSError):
            return self._life_without_journal()
        planned = sum(
            len(event.decision.jobs) for event in events if isinstance(event, JobsPlanned)
        )
        ended = sum(not isinstance(event, JobsPlanned) for event in events)
        if planned > ended:
            return _Life.UNFINISHED
        return _Life.OVER

    def _life_without_journal(self) -> _Life:
        """Whether a job may not be over, by what is left."""
        folder = self.run.folder
        if not folder.path.exists():
            if any(self._may_have_at(name, _ANY_JOB) for name in self.queues):
                return _Life.GONE
            return _Life.OVER
        numbers = [number for number in folder.numbers() if not _has_ended(folder.events(number))]
        if numbers and (
            not self.queues or any(self._may_have_at(name, numbers) for name in self.queues)
        ):
            return _Life.UNREADABLE
        return _Life.OVER

    def _may_have_at(self, name: str, numbers: Iterable[int]) -> bool:
        """Whether this queue may still have one of these jobs."""
        from windrow.app.queues import open_queue  # noqa: PLC0415  (few runs have damaged neighbours)
        from windrow.queues.local.queue import LocalQueue  # noqa: PLC0415

        try:
            queue = open_queue(name, self.queues[name])
            if isinstance(queue, LocalQueue) and self.host != socket.gethostname():
                return True
            found = queue.find([job_tag(self.uid, number) for number in numbers])
            known = queue.status(found.values())
        except WindrowError:  # it does not answer
            return True
        return any(not status.state.is_over for status in known.values())


def _has_ended(events: Path) -> bool:
    """Whether the agent of a job said that it left."""
    try:
        size = events.stat().st_size
    except OSError:
        return False
    return last_word(events, size) is not None


def enter(paths: RunPaths, runnable: Runnable, facts: RunFacts) -> None:
    """Enter a run whose lock is held. UserError if a live run writes what it would write."""
    workflow = facts.workflow
    try:
        with _registry() as folder:
            _refuse_conflicts(folder, paths.folder.path, workflow, runnable)
            _refuse_same_space(folder, paths, facts)
            _Entry.of(paths, facts).write(_file(folder, paths))
    except (OSError, NoHome) as error:  # no home, or not ours to write
        logger.warning("other runs cannot be seen: %s", error)


def refuse_conflicts(root: Path, workflow: Path, runnable: Runnable, run: str = "new") -> None:
    """UserError if a live run writes what this run in this folder of runs would write. Nothing
    is entered."""
    try:
        with _registry() as folder:
            _refuse_conflicts(folder, root.absolute() / run, str(workflow.absolute()), runnable)
    except (OSError, NoHome) as error:  # no home, or not ours to write
        logger.warning("other runs cannot be seen: %s", error)


def leave(paths: RunPaths) -> None:
    """The run is over."""
    try:
        with _registry() as folder:
            discard(_file(folder, paths))
    except (OSError, NoHome):
        pass  # the next process sees that it is over


def guaranteed(place: str) -> list[tuple[str, int]]:
    """Live runs with the bytes that each may take in this folder, of which [data] limits what all
    may."""
    try:
        with _registry() as folder:
            return _guaranteed(folder, place)
    except (OSError, NoHome):
        return []


def _now(folder: Path, but: Path | None) -> list[_Entry]:
    """Runs that live, as they are now, but one; those that cannot be read as they were entered."""
    entries = [_Entry.read(file) for file in folder.glob("[0-9a-f]*")]
    others = [entry for entry in entries if entry.run.path != but and entry.life is not _Life.OVER]
    return [
        _Entry.of(entry.run, facts_of(entry.run)) if entry.life.is_known else entry
        for entry in others
    ]


def _guaranteed(folder: Path, place: str, but: Path | None = None) -> list[tuple[str, int]]:
    now = _now(folder, but)
    found = [(entry.run.name, entry.guarantee) for entry in now if entry.space_in == place]
    for entry in sorted(folder.glob("pool-*")):
        told = json.loads(entry.read_text())
        if _is_over(Path(told["workflow"])):
            discard(entry)
        elif told["space_in"] == place:
            found.append((f"workflow {Path(told['workflow']).stem} of a pool", told["guarantee"]))
    return found


@contextmanager
def sharing(place: str) -> Iterator[tuple[int, Callable[[Path, int], None]]]:
    """What all have of the space there, and a way to enter a workflow of a pool, by its file, with
    what it may take."""
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


def _refuse_same_space(folder: Path, paths: RunPaths, facts: RunFacts) -> None:
    request = facts.request
    if (where := request.space_in) is not None:
        others = _guaranteed(folder, where[0], paths.folder.path)
        if (request.guarantee or 0) + sum(size for _, size in others) > where[1]:
            names = ", ".join(name for name, _ in others)
            fix = "wait until that has ended, or give this one less with --space"
            raise UserError(
                f"{names} took the space in {where[0]} that this run needs; {fix}, and start it "
                "again"
            )


@contextmanager
def _registry() -> Iterator[Path]:
    """The folder of all entries, to one process at a time."""
    folder = user_folder("state") / "live"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(folder / ".lock"):
        yield folder


def _file(folder: Path, paths: RunPaths) -> Path:
    return folder / hashlib.sha256(os.fsencode(paths.folder.path)).hexdigest()[:24]


def _refuse_conflicts(folder: Path, own: Path, workflow: str, runnable: Runnable) -> None:
    ours: set[str] | None = None
    for file in sorted(folder.glob("[0-9a-f]*")):
        entry = _Entry.read(file)
        other = entry.run
        if other.path == own:
            continue
        life = entry.life
        if life is _Life.OVER:
            discard(file)
            continue
        is_beside = other.path.parent == own.parent
        theirs_is = facts_of(other).workflow if life.is_known else entry.workflow
        if is_beside and theirs_is == workflow:
            raise _conflict(file, other, life, "runs the same workflow file in this folder")
        if ours is None:
            ours = _written(runnable)
        try:
            theirs = _written(_last_known(other, life))
        except WindrowError:  # what it writes is unknown
            if is_beside and not life.is_known:
                raise _conflict(file, other, life, "may write the same files") from None
            continue
        if (shared := _shared(ours, theirs)) is not None:
            raise _conflict(file, other, life, f"writes {shared}, which this run would also write")


class Others:
    """What the other live runs write, for one that is asked often. It is looked up again when one
    of them comes or goes, else every few seconds: then some may have got more tasks."""

    _EVERY_S = 5.0

    def __init__(self, root: Path, own: Path) -> None:
        self._root = root
        self._own = own
        self._seen: list[tuple[str, int]] | None = None
        self._next_s = 0.0
        self._theirs: list[tuple[Path, RunPaths, _Life, set[str]]] = []

    def refuse(self, written: Iterable[Path]) -> None:
        """UserError if one of them writes one of these files, too."""
        try:
            with _registry() as folder:
                self._look(folder)
        except (OSError, NoHome) as error:  # no home, or not ours to write
            logger.warning("other runs cannot be seen: %s", error)
        if not self._theirs:
            return
        ours = {f"{os.path.realpath(path.parent)}/{path.name}" for path in written}
        for file, other, life, theirs in self._theirs:
            if (shared := _shared(ours, theirs)) is not None:
                what = f"writes {shared}, which this run would also write"
                raise _conflict(file, other, life, what)

    def _look(self, folder: Path) -> None:
        with os.scandir(folder) as entries:
            seen = sorted((one.name, one.stat().st_mtime_ns) for one in entries)
        if seen == self._seen and time.monotonic() < self._next_s:
            return
        self._seen = seen
        self._next_s = time.monotonic() + self._EVERY_S
        self._theirs = []
        for file in sorted(folder.glob("[0-9a-f]*")):
            entry = _Entry.read(file)
            if entry.run.path == self._own or (life := entry.life) is _Life.OVER:
                continue
            with suppress(WindrowError):  # what it writes is unknown
                theirs = _written(_last_known(entry.run, life))
                self._theirs.append((file, entry.run, life, theirs))


def _last_known(run: RunPaths, life: _Life) -> Runnable:
    """The workflow of a run; without its journal what it was started with."""
    if life.is_known:
        return runnable_of(run)
    return read_runnable(run.workflow)


def _conflict(entry: Path, other: RunPaths, life: _Life, what: str) -> UserError:
    """`entry`: its file in the registry."""
    place = other.path
    if life is _Life.GONE:
        return UserError(
            f"{other.name}, whose folder {place} was deleted, may have unfinished jobs, and "
            f"{what}; wait until its jobs end, or end them in the queue. If you know that none "
            f"runs, delete {entry}"
        )
    if life is _Life.UNREADABLE:
        return UserError(
            f"{other.name} in {place} has a journal that cannot be read, may have unfinished "
            f"jobs, and {what}; "
            "wait until its jobs end, or end them in the queue. If you know that none runs, "
            f"move {place} away"
        )
    if life is _Life.MANAGED:
        how = "is running"
    else:
        how = "has unfinished jobs"
    return UserError(
        f"{other.name} in {place} {how} and {what}; wait until it ends "
        f"(windrow status -f {place}), or stop it (windrow cancel {place})"
    )


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
