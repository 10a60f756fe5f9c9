"""Runs of one job for the tests of the agent: a folder, a job file, a real agent process, and what
it wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

from windrow.agent.event_file import (
    AgentStarted,
    AttemptFailed,
    AttemptFinished,
    AttemptStarted,
    Record,
    Tail,
)
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import JobFile, TaskSpec, write_job


def task(number: int, *command: str, **more: Any) -> TaskSpec:
    """A task whose id is its number with a letter."""
    given: dict[str, Any] = {"workdir": "/", "env": {}, "kind": "test", "expected_s": 1.0, **more}
    return TaskSpec(task=number, id=f"t{number}", command=command, **given)


def shell(number: int, script: str, **more: Any) -> TaskSpec:
    """A task that runs a shell script."""
    return task(number, "/bin/sh", "-c", script, **more)


@dataclass
class Run:
    """A run's folder with the jobs that a test puts there."""

    path: Path
    extra_env: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> RunFolder:
        return RunFolder.at(self.path)

    def write(self, *tasks: TaskSpec, job: int = 0, **more: Any) -> None:
        given: dict[str, Any] = {
            "nodes": 1,
            "cores": 2,
            "memory_bytes": None,
            "walltime_s": 600,
            "grace_s": 2.0,
        }
        self.folder.make(job)
        path = self.folder.job_file(job)
        write_job(
            path, JobFile(run="test", job=job, tasks=tasks, **{**given, "poll_s": 0.05, **more})
        )

    def begin(self, job: int = 0, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Start an agent, in a process group of its own, as a queue would."""
        command = [*prefix, sys.executable, "-m", "windrow.agent", str(self.path), str(job)]
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "PBS", "OMP_"))
        }
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env={**env, **self.extra_env}, process_group=0, **pipes)

    def run(self, *tasks: TaskSpec, job: int = 0, **more: Any) -> tuple[int, str]:
        """Write the job, run its agent to the end; the exit code and what it printed."""
        if tasks:
            self.write(*tasks, job=job, **more)
        with self.begin(job) as agent:
            out, err = agent.communicate(timeout=200)
        return agent.returncode, out + err

    def events(self, job: int = 0) -> list[Record]:
        return Tail(self.folder.events(job)).read()

    def of(self, kind: type[Any], job: int = 0) -> list[Any]:
        return [event for event in self.events(job) if isinstance(event, kind)]

    def finished(self, job: int = 0) -> list[int]:
        return [event.task for event in self.of(AttemptFinished, job)]

    def failed(self, job: int = 0) -> list[AttemptFailed]:
        return self.of(AttemptFailed, job)

    def agent_pid(self, job: int = 0) -> int:
        """The process that works, which is a child of the one that the queue knows."""
        pid: int = self.of(AgentStarted, job)[0].pid
        return pid

    def wait_for_start(self, *tasks: int, job: int = 0) -> None:
        wait_until(lambda: set(tasks) <= {e.task for e in self.of(AttemptStarted, job)})
