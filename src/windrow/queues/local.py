"""A batch queue on this machine, for those without a cluster: its client, which is the port.

Rule 1: `submit` returns when the job is on disk. Rule 2: whoever finds work and no server starts one.
Rule 3: nothing heavy is imported: this is on the way of every command.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from windrow.errors import UserError, unknown_name
from windrow.model.resources import NodeShape
from windrow.queues.command import user_name
from windrow.queues.local_door import check_machine, default_folder, is_served, knock, make_folder, start_server
from windrow.queues.local_plan import POLICIES, Wanted, expected_starts
from windrow.queues.local_store import Job, Settings, Store
from windrow.queues.port import JobSpec, JobState, JobStatus, Limits, OthersJob, OutcomeUnknown, QueueError, Snapshot
from windrow.queues.spec import check, check_size

_MAX_ARRAY = 1000
_PLAYED_FORWARD = 200
"""Estimates look at so many waiting jobs; those behind them have none."""


class LocalQueue:
    """The batch queue in a folder of this machine. Several clients may use it at once."""

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        nodes: int | None = None,
        cores: int | None = None,
        memory_bytes: int | None = None,
        policy: str | None = None,
        grace_s: float | None = None,
        idle_s: float | None = None,
    ) -> None:
        """Open the queue, and make it where it is missing. What is not given stays as it is.

        A new queue has one node of one core per core of the machine, EASY backfilling and 10 s between SIGTERM and
        SIGKILL. Other settings than it has are refused while it has jobs that are not over.
        """
        check_machine()
        self._folder = Path(folder or default_folder()).absolute()
        make_folder(self._folder)
        self._store = Store(self._folder / "queue.sqlite")
        given: dict[str, object] = {"nodes": nodes, "cores": cores, "memory_bytes": memory_bytes, "policy": policy}
        given |= {"grace_s": grace_s, "idle_s": idle_s}
        self.settings = self._agree({name: value for name, value in given.items() if value is not None})
        self._user = user_name()
        self._is_machine = nodes is None

    @property
    def name(self) -> str:
        """What users call it."""
        return "local"

    @property
    def folder(self) -> Path:
        """Where the queue keeps what it knows."""
        return self._folder

    def limits(self) -> Limits:
        """What the settings give."""
        now = self.settings
        return Limits(
            now.nodes, NodeShape(now.cores, now.memory_bytes), max_array=_MAX_ARRAY, starts_at_once=self._is_machine
        )

    def submit(self, spec: JobSpec) -> str:
        """Submit a job. It gets the environment of this process."""
        return self.submit_array([spec])[0]

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        """Submit jobs in this order, all or none."""
        check(specs, self.limits())
        if not specs:
            return []
        # The server first: a queue that cannot run anything must not take a job.
        self._need_server()
        jobs = self._store.add(specs, os.environ, self.settings, time.time())
        try:
            self._wake()
        except QueueError as error:
            raise OutcomeUnknown(f"the jobs are in the queue, but {error}") from error
        return [str(job) for job in jobs]

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What the store says."""
        jobs = self._store.jobs(_numbers(ids))
        if any(not job.state.is_over for job in jobs):
            self._need_server()
        is_anyone_waiting = any(job.state is JobState.WAITING for job in jobs)
        expected = self._expected_starts() if is_anyone_waiting else {}
        return {str(job.id): _status(job, expected.get(job.id)) for job in jobs}

    def cancel(self, ids: Collection[str]) -> None:
        """Ask that these jobs go."""
        if self._store.unwant(_numbers(ids)):
            self._wake()

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the jobs with these tags."""
        return {tag: str(job) for tag, job in self._store.find(tags).items()}

    def snapshot(self) -> Snapshot:
        """All jobs that are not over."""
        running, waiting = self._store.running(), self._store.waiting()
        if running or waiting:
            self._need_server()
        jobs = tuple(self._as_seen(job) for job in (*running, *waiting))
        return Snapshot(time.time(), self.settings.nodes, jobs)

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """By the server's own planning. None where too many jobs wait to look at them all."""
        check_size(nodes, walltime_s, self.limits())
        return self._expected_starts(Wanted(_CANDIDATE, nodes, walltime_s)).get(_CANDIDATE)

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        """The commands that jobs would run, since there is no command to submit them by."""
        return [
            f"# {spec.tag}: {spec.nodes} nodes for {spec.walltime_s} s on the local queue in {self._folder}\n"
            f"cd {shlex.quote(spec.workdir)} && {shlex.join(spec.command)} > {shlex.quote(spec.output)} 2>&1"
            for spec in specs
        ]

    def _need_server(self) -> None:
        """Start a server unless there is one; it is not disturbed."""
        if not is_served(self._folder):
            start_server(self._folder)

    def _wake(self) -> None:
        if not knock(self._folder):
            start_server(self._folder)

    def _expected_starts(self, *candidates: Wanted) -> dict[int, float]:
        """When jobs that wait would start, as time of day."""
        waiting = self._store.waiting(_PLAYED_FORWARD + 1)
        is_long = len(waiting) > _PLAYED_FORWARD
        wanted = [job.wanted for job in waiting[:_PLAYED_FORWARD]] + ([] if is_long else list(candidates))
        held = [job.held for job in self._store.running()]
        now_s, clock_s = time.time(), time.monotonic()
        starts = expected_starts(self.settings.policy, self.settings.nodes, held, wanted, clock_s)
        return {job: now_s + start_s - clock_s for job, start_s in starts.items()}

    def _as_seen(self, job: Job) -> OthersJob:
        is_running = job.state is JobState.RUNNING
        return OthersJob(str(job.id), job.nodes, job.walltime_s, is_running, job.started_s, float(-job.id), self._user)

    def _agree(self, given: Mapping[str, Any]) -> Settings:
        """The queue's settings with what this client wants of them, on which all clients agree from now on."""
        had = self._store.settings() or Settings(nodes=len(os.sched_getaffinity(0)))
        wanted = replace(had, **given)
        _check_settings(wanted)
        others = self._store.set_up(wanted)
        if others is None:
            return wanted
        before, after = asdict(others), asdict(wanted)
        changes = ", ".join(
            f"{name} {before[name]}, not {after[name]}" for name in after if before[name] != after[name]
        )
        raise UserError(
            f"the queue in {self._folder} has jobs, and was set up with {changes}; "
            "wait until they are over, cancel them, or name another folder"
        )


_CANDIDATE = 0  # jobs in the store count from 1


def _check_settings(settings: Settings) -> None:
    if settings.policy not in POLICIES:
        raise unknown_name("policy", settings.policy, POLICIES)
    if settings.nodes < 1:
        raise UserError(f"a queue needs at least one node, not {settings.nodes}")
    if settings.grace_s < 0 or settings.idle_s < 0:
        raise UserError(f"times are not negative: grace_s {settings.grace_s}, idle_s {settings.idle_s}")
    NodeShape(settings.cores, settings.memory_bytes)


def _numbers(ids: Collection[str]) -> list[int]:
    """Ids as the store has them; what is no number was never ours."""
    return [int(job) for job in ids if job.isascii() and job.isdecimal() and len(job) < 19]


def _status(job: Job, expected_start_s: float | None) -> JobStatus:
    is_in_line = job.state is JobState.WAITING and (expected_start_s or 0.0) > time.time() + 1.0
    return JobStatus(
        id=str(job.id),
        state=job.state,
        submitted_s=job.submitted_s,
        started_s=job.started_s,
        ended_s=job.ended_s,
        exit_code=job.exit_code,
        reason="other jobs hold the nodes" if is_in_line else job.reason,
        expected_start_s=expected_start_s,
    )
