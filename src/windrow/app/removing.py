"""Records of runs that are over, deleted for good: of the ones that the user names, or of old ones.

Law: what tasks made stays, and so does a run that may still have jobs at work, or that belongs to
someone else.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from windrow.agent.outputs import size_of
from windrow.app import live_runs
from windrow.app.runs import RunPaths, RunView, all_runs, facts_of, find_own_run
from windrow.deletion import discard_tree
from windrow.errors import UserError, WindrowError
from windrow.files import disk_faults
from windrow.records.lock import RunLock


@dataclass(frozen=True, slots=True)
class Removal:
    """A run whose records may go, and what they take."""

    paths: RunPaths
    size_bytes: int
    workflow: str

    def carry_out(self) -> None:
        """Delete them. UserError if it is managed by now."""
        lock = RunLock(self.paths.lock, 0.0)
        try:
            live_runs.leave(self.paths)
            folder = self.paths.folder.path
            with disk_faults(f"{folder} cannot be deleted"):
                discard_tree(folder, mark=self.paths.journal.name)
        finally:
            lock.release()


def removal_of(paths: RunPaths) -> Removal:
    """To delete the records of this run. UserError if it is not over."""
    try:
        with closing(RunView(paths)) as told:
            holder = told.holder
            open_jobs = sum(not job.outcome for job in told.story.jobs.values())
    except WindrowError as error:
        raise UserError(
            f"{paths.name} cannot be read ({error}), and may have jobs; if it has none, delete "
            f"{paths.folder.path}"
        ) from error
    if holder is not None or open_jobs:
        by = f"managed by {holder}" if holder else "and its jobs may still run"
        raise UserError(
            f"{paths.name} is not over, {by}; windrow cancel {paths.name} stops it, then remove it"
        )
    folder = str(paths.folder.path)
    return Removal(paths, size_of(folder), facts_of(paths).workflow)


def named(names: Sequence[str]) -> list[Removal]:
    """Those of these runs, each once. UserError, and none goes, if one cannot."""
    return [removal_of(find_own_run(name)) for name in dict.fromkeys(names)]


def older_than(age_s: float, root: Path | None = None) -> list[Removal]:
    """Those of runs in which nothing has happened for so long, but for the latest of each
    workflow, and for those that are not over, or cannot be read."""
    every = all_runs(root)
    latest = {facts_of(paths).workflow: paths.name for paths in every}
    found = []
    for paths in every:
        if latest[facts_of(paths).workflow] == paths.name:
            continue
        try:
            with closing(RunView(find_own_run(str(paths.folder.path)))) as told:
                last_s = told.story.last_s or told.facts.created_s
            if time.time() - last_s > age_s:
                found.append(removal_of(paths))
        except WindrowError:
            continue
    return found
