"""Where runs are kept: `.windrow/runs/NAME` under the folder in which they were started. Private to the user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow.agent.folder import RunFolder
from windrow.errors import OutsideError, UserError, WindrowError, unknown_name
from windrow.forecast.ledger import PastPrediction, Promise
from windrow.manager.events import JobStarted
from windrow.manager.journal import Journal, PredictedStart
from windrow.manager.lock import holder_of
from windrow.manager.run_file import read_runnable
from windrow.manager.story import Story
from windrow.model import Runnable

ROOT = Path(".windrow") / "runs"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one run beside those that its agents use."""

    folder: RunFolder

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.folder.path.name

    @property
    def journal(self) -> Path:
        """Every event."""
        return self.folder.path / "journal.sqlite"

    @property
    def workflow(self) -> Path:
        """The workflow as the run took it."""
        return self.folder.path / "workflow.json"

    @property
    def lock(self) -> Path:
        """Held by the run's manager."""
        return self.folder.path / "lock"

    @property
    def stop(self) -> Path:
        """There while someone wants the run to stop."""
        return self.folder.path / "stop"

    @property
    def log(self) -> Path:
        """What a detached manager says."""
        return self.folder.path / "manager.log"


def new_run(name: str, root: Path = ROOT) -> RunPaths:
    """A folder for a new run of a workflow of this name: NAME-1, NAME-2, ..."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.parent.chmod(0o700)
        taken = [int(p.name.removeprefix(f"{stem}-")) for p in root.glob(f"{stem}-*") if _number(p.name, stem)]
        number = max(taken, default=0) + 1
        while True:
            folder = root.absolute() / f"{stem}-{number}"
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:  # someone else starts one at the same time
                number += 1
            else:
                return RunPaths(RunFolder(folder))
    except OSError as error:
        raise OutsideError(f"{root}: cannot make a folder for the run: {error.strerror}") from error


def _number(name: str, stem: str) -> bool:
    return name.removeprefix(f"{stem}-").isdecimal()


def all_runs(root: Path = ROOT) -> list[RunPaths]:
    """All runs of this folder, the oldest first."""
    folders = [path.parent for path in root.glob("*/journal.sqlite")]
    return [RunPaths(RunFolder.at(path)) for path in sorted(folders, key=lambda p: (p.stat().st_ctime, p.name))]


def find_run(name: str | None, root: Path = ROOT) -> RunPaths:
    """The run of this name, or at this path; without a name the latest one."""
    if name is not None and (Path(name) / "journal.sqlite").is_file():
        return RunPaths(RunFolder.at(name))
    runs = sorted(all_runs(root), key=_created_s)
    if not runs:
        raise UserError(f"there are no runs in {root.absolute()}; windrow run WORKFLOW starts one")
    if name is None:
        return runs[-1]
    for run in runs:
        if run.name == name:
            return run
    raise unknown_name("run", name, [run.name for run in runs])


def _created_s(run: RunPaths) -> float:
    """When the run was begun. One that cannot be read is taken for the oldest: it must not hide the others."""
    try:
        journal = Journal.open(run.journal)
    except WindrowError:
        return 0.0
    created = float(journal.facts().get("created_s", 0.0))
    journal.close()
    return created


def job_tag(uid: str, job: int) -> str:
    """The name in the queue of a job of the run with this uid."""
    return f"windrow-{uid}-{job}"


class Told:
    """A run as it can be told: facts, workflow, story. Reading changes nothing; `refresh` reads what is new."""

    def __init__(self, paths: RunPaths) -> None:
        self.paths = paths
        self._journal = Journal.open(paths.journal)
        self.runnable: Runnable = read_runnable(paths.workflow)
        self.story = Story.of(self.runnable.workflow, ())
        self._seen = 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        self.facts: dict[str, Any] = self._journal.facts()
        for seq, record in self._journal.records(self._seen):
            self.story.hear(record)
            self._seen = seq
        self.story.trouble = self.story.trouble or str(self.facts.get("trouble") or "")
        self.holder = holder_of(self.paths.lock)
        """Who manages the run now; None: nobody."""

    def predictions(self) -> list[PredictedStart]:
        """What forecasters said of the run's jobs."""
        return self._journal.predictions()

    def tag(self, job: int) -> str:
        """The name of a job in the queue."""
        return job_tag(self.facts["uid"], job)

    @property
    def state(self) -> str:
        """In one word: "complete", "running", "stopping", "stopped", "failed" or "interrupted"."""
        if self.story.is_complete:
            return "complete"
        if self.holder is not None:
            return "stopping" if self.story.is_stopped else "running"
        if any(not job.outcome for job in self.story.jobs.values()):
            return "interrupted"
        if self.story.is_stopped:
            return "stopped"
        return "failed" if self.story.count("failed") or self.story.trouble else "interrupted"

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()


def past_predictions(root: Path = ROOT, queue: str | None = None) -> list[PastPrediction]:
    """What was predicted in all runs of this folder (on this queue), and what came true.

    Only predictions and starts are read: a folder may hold many long runs.
    """
    found: list[PastPrediction] = []
    for journal, facts in _past(root, queue):
        starts = (r for _, r in journal.records(kinds=(JobStarted,)))
        begun_s = {r.event.job: r.at_s for r in starts if isinstance(r.event, JobStarted)}
        found += [
            PastPrediction(p.source, job_tag(facts["uid"], p.job), p.at_s, p.start_s, begun_s.get(p.job))
            for p in journal.predictions()
        ]
    return sorted(found, key=lambda p: p.at_s)


def past_promises(root: Path = ROOT, queue: str | None = None) -> list[Promise]:
    """What looks ahead promised in the runs of this folder (on this queue) that are complete, and what came of it."""
    return [Promise(**promise) for _, facts in _past(root, queue) if (promise := facts.get("promise"))]


def _past(root: Path, queue: str | None) -> Iterator[tuple[Journal, dict[str, Any]]]:
    """Journals and facts of earlier runs on this queue. A run that cannot be read tells nothing, and stops nobody."""
    for run in all_runs(root):
        try:
            journal = Journal.open(run.journal)
        except WindrowError:
            continue
        facts = journal.facts()
        if queue is None or facts["queue"] == queue:
            yield journal, facts
        journal.close()
