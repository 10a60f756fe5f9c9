"""Where things are in a run's folder. The one place that knows the names.

Files are private to the user (folders 0700). Each has one writer; readers open it again each time,
which is what makes a network file system show them what is there. No locks, no ports, no memory
maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windrow.files import Inside, joined


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder. `path` is absolute, since the agent changes its working folder."""

    path: Path
    jobs = Inside("jobs")
    """One folder for each job, by number."""
    out = Inside("out")
    """What tasks print."""
    commits = Inside("commits")
    """Which job brings the outputs of a task into place, if several run it (`claim`)."""
    leases = Inside("leases")
    """Which attempt may write the checkpoint files of a task (`checkpoints`)."""
    kept = Inside("kept")
    """Which checkpoint files are a task's own, one file for each task (`kept_files`)."""
    caches = Inside("caches")
    """What jobs share with others while they run, one file each, by number (`neighbours`)."""
    abandoned = Inside("abandoned")
    """Tasks that will never run, one line each; written by the manager."""

    holds = Inside("holds")
    """Who keeps the run open for tasks to come, one file each (`holds`)."""
    arrived = Inside("arrived")
    """Tasks whose files have come from another place, one line each; written by the manager."""

    @staticmethod
    def at(path: str | Path) -> RunFolder:
        """The folder at this path, made absolute."""
        return RunFolder(Path(path).absolute())

    def numbers(self) -> list[int]:
        """The jobs that have a folder; none if the file system has a hiccup: there will be
        another look."""
        try:
            return sorted(int(entry.name) for entry in self.jobs.iterdir() if entry.name.isdigit())
        except OSError:
            return []

    def job_file(self, job: int) -> Path:
        """What the agent is to do; written by the manager before it submits the job."""
        return joined(self.jobs, str(job), "job.json")

    def claim(self, job: int) -> Path:
        """Made by the first agent that starts this job."""
        return joined(self.jobs, str(job), "claim")

    def events(self, job: int) -> Path:
        """What happened in this job; written by its agent."""
        return joined(self.jobs, str(job), "events")

    def over(self, job: int) -> Path:
        """Made by the manager when it gives the job up: its agent starts nothing more (`claim`)."""
        return joined(self.jobs, str(job), "over")

    def task_out(self, task: int, attempt: int) -> Path:
        """What one attempt printed, both streams; missing if it printed nothing."""
        return self.out / f"{task}.{attempt}"

    def make(self, job: int) -> None:
        """Make the folders that this job needs, as far as they are missing."""
        for folder in (self.path, self.jobs, self.out, self.jobs / str(job)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
