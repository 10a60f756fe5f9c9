"""The queue on this machine, for those without a cluster: its client, which is the port.

Without `nodes` it is the machine itself: one node with all cores and all memory, on which every job
starts at once; the agents of the jobs share it task by task (`agent.shares`). With `nodes` it is a
small cluster that is played here: jobs get whole nodes, wait for them, and are killed when their
walltime is up.

Rule 1: `submit` returns when the job is on disk. Rule 2: a process that finds work and no server
starts one.
Rule 3: nothing heavy is imported: this is on the way of every command. Rule 4: clusters with
different settings are different queues, each in a folder of its own, so no project changes
another's.
"""

import os
import re
import shlex
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from windrow.agent.machine import this_machine
from windrow.errors import UserError, unknown_name
from windrow.files import free_bytes
from windrow.model.bounds import COUNT_MAX, NODES_MAX
from windrow.model.resources import Counts, NodeShape, is_name
from windrow.model.wording import count
from windrow.places import user_folder
from windrow.queues.local import rendezvous
from windrow.queues.local.rendezvous import MACHINE, job_id
from windrow.queues.local.store import POLICIES, LocalSettings, QueuedJob, QueueStore, Wanted
from windrow.queues.port import (
    JobSpec,
    JobState,
    JobStatus,
    Limits,
    OthersJob,
    OutcomeUnknown,
    QueueError,
    Snapshot,
)
from windrow.queues.spec import check, check_size

_MAX_ARRAY = 1000
_PLAYED_FORWARD = 200
"""Estimates look at this number of waiting jobs; those behind them have none."""
_LONG_S = 10 * 365 * 86_400
"""Stands for the time of a job without a limit, if a number is needed."""
_JOB_ID = re.compile(r"(?:(queue-[a-z0-9-]+)\.)?([0-9]{1,18})", re.ASCII)


class LocalQueue:
    """A queue of this user on this machine. Several clients may use it at once."""

    name = "local"

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        nodes: int | None = None,
        cores: int | None = None,
        memory_bytes: int | None = None,
        disk_bytes: int | None = None,
        counts: Mapping[str, int] | None = None,
        policy: str | None = None,
        max_walltime_s: int | None = None,
        label: str = "",
        grace_s: float | None = None,
        idle_s: float | None = None,
    ) -> None:
        """Open the queue, and make it if it is missing: a folder in `root`.

        `cores` and `memory_bytes` are those of a node: at most the machine's, which is the default,
        or, of a small cluster, anything (default: 1 core, memory not counted). So is `disk_bytes`
        (default: not counted); `counts` are named resources, GPUs among them, of which the machine
        has those that it finds. `policy` is for small clusters alone; `label` tells apart those
        that are alike. A job has 10 s between SIGTERM and SIGKILL.
        """
        rendezvous.check_machine()
        rest = NodeShape(disk_bytes=disk_bytes, counts=_checked(counts or {}))
        self._shape = _shape(nodes, cores, memory_bytes, policy, rest)
        self._max_walltime_s = max_walltime_s
        self._root = Path(root or user_folder("state")).absolute()
        wanted = LocalSettings(nodes, policy or "easy")
        size = "" if nodes is None else _size_name(wanted, self._shape, rest, label)
        self._folder = self._root / f"{MACHINE}{size}"
        rendezvous.make_folder(self._folder)
        self._store = QueueStore(self._folder / "queue.sqlite")
        times = {
            k: value for k, value in (("grace_s", grace_s), ("idle_s", idle_s)) if value is not None
        }
        if any(value < 0 for value in times.values()):
            raise UserError(f"grace_s and idle_s must not be negative: {grace_s}, {idle_s}")
        had = self._store.settings()
        self.settings = replace(had or wanted, nodes=nodes, policy=wanted.policy, **times)
        if had != self.settings:
            self._store.set_up(self.settings)

    @property
    def policy(self) -> str:
        """The policy by which it schedules."""
        return self.settings.policy

    @property
    def folder(self) -> Path:
        """Where the queue keeps what it knows."""
        return self._folder

    def limits(self) -> Limits:
        """One node that is the machine, or what the settings give."""
        return Limits(
            self.settings.nodes or 1,
            self._shape,
            max_walltime_s=self._max_walltime_s,
            max_array=_MAX_ARRAY,
            starts_at_once=self.settings.nodes is None,
            from_settings=True,
            room_bytes=free_bytes(Path()),
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
        _need_server(self._folder)
        jobs = self._store.add(specs, os.environ, time.time())
        try:
            _wake(self._folder)
        except QueueError as error:
            raise OutcomeUnknown(f"the jobs are in the queue, but {error}") from error
        return [job_id(self._folder, job) for job in jobs]

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What the stores say: jobs that were submitted under other settings are still followed."""
        found: dict[str, JobStatus] = {}
        for folder, store, numbers in self._by_queue(ids):
            jobs = store.jobs(numbers)
            if any(not job.state.is_over for job in jobs):
                _need_server(folder)
            is_anyone_waiting = folder == self._folder and any(
                job.state is JobState.WAITING for job in jobs
            )
            if is_anyone_waiting:
                expected = self._expected_starts()
            else:
                expected = {}
            found |= {
                (name := job_id(folder, job.id)): _status(name, job, expected.get(job.id))
                for job in jobs
            }
        return found

    def cancel(self, ids: Collection[str]) -> None:
        """Ask that these jobs go."""
        for folder, store, numbers in self._by_queue(ids):
            if store.unwant(numbers):
                _wake(folder)

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the jobs with these tags."""
        return {tag: job_id(self._folder, job) for tag, job in self._store.find(tags).items()}

    def snapshot(self) -> Snapshot:
        """All jobs that are not over. On the machine itself they hold no nodes: no job waits for
        them."""
        running = self._store.running()
        waiting = self._store.waiting()
        if running or waiting:
            _need_server(self._folder)
        from windrow.queues.command import user_name  # noqa: PLC0415  (with all that speaks with batch systems)

        me = user_name()
        jobs = [
            OthersJob(
                id=job_id(self._folder, job.id),
                nodes=0 if self.settings.nodes is None else job.nodes,
                requested_s=job.walltime_s or _LONG_S,
                is_running=job.state is JobState.RUNNING,
                started_s=job.started_s,
                priority=float(-job.id),
                user=me,
            )
            for job in (*running, *waiting)
        ]
        return Snapshot(time.time(), self.settings.nodes or 1, tuple(jobs))

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """By the server's own planning. None if too many jobs wait to look at them all."""
        check_size(nodes, walltime_s, self.limits())
        return self._expected_starts(Wanted(_CANDIDATE, nodes, walltime_s)).get(_CANDIDATE)

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        """The commands that jobs would run, since there is no command to submit them by."""
        return [
            f"# {spec.tag}: {self._words(spec)}\n"
            f"cd {shlex.quote(spec.workdir)} && {shlex.join(spec.command)} > "
            f"{shlex.quote(spec.output)} 2>&1"
            for spec in specs
        ]

    def _words(self, spec: JobSpec) -> str:
        if self.settings.nodes is None:
            return "on this machine" + (
                "" if spec.walltime_s is None else f", for {spec.walltime_s} s"
            )
        return (
            f"{count(spec.nodes, 'node')} for {spec.walltime_s} s on the local queue in "
            f"{self._folder}"
        )

    def _by_queue(self, ids: Collection[str]) -> Iterator[tuple[Path, QueueStore, list[int]]]:
        """Folders, stores and numbers of these jobs; what is not an id of ours was never here."""
        numbers: dict[str, list[int]] = {}
        for match in filter(None, map(_JOB_ID.fullmatch, ids)):
            numbers.setdefault(match[1] or MACHINE, []).append(int(match[2]))
        for name, found in numbers.items():
            folder = self._root / name
            if folder == self._folder:
                yield folder, self._store, found
            elif (folder / "queue.sqlite").exists():
                store = QueueStore(folder / "queue.sqlite")
                yield folder, store, found
                store.close()

    def _expected_starts(self, *candidates: Wanted) -> dict[int, float]:
        """When jobs that wait would start, as time of day."""
        waiting = self._store.waiting(_PLAYED_FORWARD + 1)
        is_long = len(waiting) > _PLAYED_FORWARD
        wanted = [job.wanted for job in waiting[:_PLAYED_FORWARD]] + (
            [] if is_long else list(candidates)
        )
        now_s = time.time()
        clock_s = time.monotonic()
        if self.settings.nodes is None:
            return {job.job: now_s for job in wanted}
        from windrow.queues.local.plan import expected_starts  # noqa: PLC0415  (not if jobs start at once)

        held = [job.held for job in self._store.running()]
        starts = expected_starts(self.settings.policy, self.settings.nodes, held, wanted, clock_s)
        return {job: now_s + start_s - clock_s for job, start_s in starts.items()}


_CANDIDATE = 0  # jobs in the store count from 1


def _checked(counts: Mapping[str, int]) -> Counts:
    for name, number in counts.items():
        if not is_name(name):
            raise UserError(f"{name!r} cannot be the name of a resource; use letters, digits and _")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= COUNT_MAX:
            raise UserError(
                f"{name} must be a whole number from 0 to {COUNT_MAX:,}, not {number!r}"
            )
    return tuple(sorted(counts.items()))


def _shape(
    nodes: int | None,
    cores: int | None,
    memory_bytes: int | None,
    policy: str | None,
    rest: NodeShape,
) -> NodeShape:
    """What a node has, with what `rest` says beside cores and memory.

    UserError if the settings do not go together, or the machine has less.
    """
    if policy is not None and policy not in POLICIES:
        raise unknown_name("policy", policy, POLICIES)
    if nodes is not None:
        if not 1 <= nodes <= NODES_MAX:
            raise UserError(f"a queue has 1 to {NODES_MAX:,} nodes, not {nodes}")
        return replace(rest, cores=1 if cores is None else cores, memory_bytes=memory_bytes)
    if policy is not None:
        raise UserError(
            "policy needs nodes: without nodes the queue is this machine, where no job waits"
        )
    machine = this_machine()
    counts = tuple(sorted({**dict(machine.counts), **dict(rest.counts)}.items()))
    memory = memory_bytes or machine.memory_bytes
    wanted = NodeShape(machine.cores if cores is None else cores, memory, rest.disk_bytes, counts)
    if wanted.cores > machine.cores:
        raise UserError(
            f"cores = {cores}, but this machine has {machine.cores}; leave cores out to use all "
            "of them"
        )
    if (wanted.memory_bytes or 0) > (machine.memory_bytes or 0):
        raise UserError("memory is more than this machine has; leave it out to use all of it")
    return wanted


def _need_server(folder: Path) -> None:
    """Start a server unless there is one; it is not disturbed."""
    if not rendezvous.is_served(folder):
        rendezvous.start_server(folder)


def _wake(folder: Path) -> None:
    if not rendezvous.knock(folder):
        rendezvous.start_server(folder)


def _status(name: str, job: QueuedJob, expected_start_s: float | None) -> JobStatus:
    is_in_line = job.state is JobState.WAITING and (expected_start_s or 0.0) > time.time() + 1.0
    return JobStatus(
        id=name,
        state=job.state,
        submitted_s=job.submitted_s,
        started_s=job.started_s,
        ended_s=job.ended_s,
        exit_code=job.exit_code,
        reason="other jobs hold the nodes" if is_in_line else job.reason,
        expected_start_s=expected_start_s,
    )


def _size_name(wanted: LocalSettings, shape: NodeShape, rest: NodeShape, label: str) -> str:
    """What tells small clusters apart, as a part of the names of their folders."""
    memory = "" if shape.memory_bytes is None else f"-{shape.memory_bytes}"
    more = "" if rest == NodeShape() else f"-{zlib.crc32(repr(rest).encode()):08x}"
    name = f"-{wanted.nodes}x{shape.cores}{memory}{more}-{wanted.policy}"
    if label:
        name += "-" + re.sub("[^a-z0-9]", "-", label.lower())
    return name
