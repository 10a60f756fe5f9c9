"""The job file: what one agent is to do. The manager writes it, whole or not at all; the agent
reads it once.

It is JSON with one task to a line. Text that is not valid Unicode (file names may be any bytes)
survives, as the escapes that Python uses for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from windrow.errors import InputError
from windrow.files import disk_faults, replacing, sync_folder
from windrow.model.checkpoint import Checkpoint
from windrow.model.nodes import Need
from windrow.model.resources import Counts, NodeShape
from windrow.model.rules import Rules
from windrow.model.volume import Extract, VolumeMount


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One task of a job, with all that is needed to execute it.

    `command` is the program and its arguments; no shell unless it is one. Paths in `inputs` and
    `outputs` are absolute or relative to `workdir`. `nodes` above 0 requests that many whole nodes.
    `parents` are those not done when the file was written, in this job or in others. `retries` is
    how often it may fail and be tried again in this job, `attempts` how often it was started in
    earlier jobs. `elsewhere` and `shared` as in an `Order`. `disk_bytes` and `counts` (how many of
    each named resource) are not written if it needs none. `commit` marks a task that may run in
    several jobs at the same time: the file in the run's folder by which one of them is chosen (see
    `claim`). `checkpoint`: how it keeps what it has done; `done_s` is that by earlier attempts, and
    `idle` how many pieces added nothing to it. `mounts` and `extracts` as in a `model.Step`, with
    absolute paths. `local`: outputs that may stay on the node that makes them, since all that read
    them are in this job. `most_memory_bytes`: what a node of its site could give it at most, if
    that is more than its `memory_bytes`. `temporary`: outputs that are deleted when nothing needs
    them any more. `limit_s` and `worker` as in a `model.Step`. `priority`, `memories` and
    `limits_s` as in `model.rules`, `takes` of the shares of its job; `failed`: how often it has
    failed before this job, of as often as it may. `stops`: if it fails, nothing starts after it.
    """

    task: int
    id: str
    kind: str
    command: tuple[str, ...]
    workdir: str
    env: dict[str, str]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    cores: int = 1
    nodes: int = 0
    memory_bytes: int = 0
    expected_s: float = 0.0
    retries: int = 0
    attempts: int = 0
    parents: tuple[int, ...] = ()
    children: tuple[int, ...] = ()
    elsewhere: tuple[tuple[int, int, int], ...] = ()
    shared: tuple[str, ...] = ()
    disk_bytes: int = 0
    counts: Counts = ()
    commit: str = ""
    checkpoint: Checkpoint | None = None
    done_s: float = 0.0
    idle: int = 0
    mounts: tuple[VolumeMount, ...] = ()
    extracts: tuple[Extract, ...] = ()
    local: tuple[str, ...] = ()
    most_memory_bytes: int = 0
    temporary: tuple[str, ...] = ()
    limit_s: float = 0.0
    worker: tuple[str, ...] = ()
    priority: int = 0
    takes: Counts = ()
    memories: tuple[int, ...] = ()
    limits_s: tuple[float, ...] = ()
    failed: int = 0
    stops: bool = False

    def __post_init__(self) -> None:
        if self.checkpoint is not None:  # in a file it is a list
            object.__setattr__(self, "checkpoint", Checkpoint(*self.checkpoint))
        if self.mounts:
            object.__setattr__(self, "mounts", tuple(map(VolumeMount._make, self.mounts)))

    @property
    def least_s(self) -> float:
        """The time without which it is not started."""
        if self.checkpoint is None:
            return self.expected_s
        return min(self.expected_s, self.checkpoint.piece_s)

    @property
    def may_be_local(self) -> bool:
        """Whether it can run on files of its node: on one node, and with outputs that are its own
        to replace."""
        is_apart = not (self.commit or self.checkpoint or self.shared) and self.nodes <= 1
        return is_apart and set(self.outputs).isdisjoint(self.inputs)

    def named(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those outputs that have these whole paths, as they are called here."""
        whole = frozenset(paths)
        if whole:
            return tuple(name for name in self.outputs if str(Path(self.workdir, name)) in whole)
        return ()

    def names(self) -> dict[str, str]:
        """What its inputs and outputs are called here, by their whole paths."""
        return {str(Path(self.workdir, name)): name for name in (*self.inputs, *self.outputs)}

    @property
    def need(self) -> Need:
        """What it takes of a node."""
        return Need(self.cores, self.memory_bytes, self.nodes, self.disk_bytes, self.counts)

    @property
    def rules(self) -> Rules:
        """What it is to have at later tries."""
        return Rules(memories=self.memories, limits_s=self.limits_s)

    @property
    def tries_left(self) -> int:
        """How often it may fail here and be tried again."""
        return max(0, self.retries - self.failed)

    def at_try(self, failures: int) -> TaskSpec:
        """As it is tried after this many failures in its job."""
        if not (self.memories or self.limits_s):
            return self
        failed = self.failed + failures
        memory_bytes = self.rules.memory_bytes(failed, self.memory_bytes)
        limit_s = self.rules.limit_s(failed, self.limit_s)
        return replace(self, memory_bytes=memory_bytes, limit_s=limit_s)


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job as its agent sees it: equal nodes, a time (None: as long as it takes), tasks.

    `grace_s`: how long before the walltime the agent stops. `poll_s`: how often it looks for news
    of other jobs, at first. `patience_s`: how long a file written on another node may take to show
    up. `over`: jobs of the run that were over, and taken note of, when this was written: their
    events hold no news, and neither do those of the jobs with numbers below `over_below`.
    `heard_bytes`: how much of the events of the other jobs, by number, was known then. `given_up`:
    jobs whose tasks were planned again though their agents may still finish some: what they finish
    counts. `abandoned_bytes`: how long the list of abandoned tasks was; what stood there may be
    tried again by now. `takeover_s`: how long it waits idle for tasks of a job that has not started
    before it takes them over. `site`: where it runs, not written if a run has one site; jobs of
    another are not taken over. `arrived_bytes`: how long the list of what has arrived from other
    places was. Parents below 0 stand for files that no task makes. `offered`: its tasks are copies
    that agents with idle nodes may take over; None: this run has no such jobs. `loss_rate`: how
    often such a job is lost, in losses per second, if that is known. `space`: what its files may
    take (`storage.admission`); empty: there is no limit. `scratch`: where nodes have disks of their
    own, as the user wrote it: the node expands variables; empty: they are not used. `small_bytes`:
    outputs up to this size leave their node at once, if the job has several: they cost little,
    and are not lost with it. `has_parts`: its `nodes` are parts of nodes, of which a machine may
    give it several. `takes`: before it leaves it takes the tasks of another job that has not
    started, and so on. `holds`: tasks are held to the memory and the cores that they state.
    `shares`: what it has of limits of the run, for its own tasks.
    """

    run: str
    job: int
    nodes: int
    cores: int
    memory_bytes: int | None
    walltime_s: float | None
    tasks: tuple[TaskSpec, ...]
    grace_s: float = 5.0
    poll_s: float = 1.0
    patience_s: float = 5.0
    over: tuple[int, ...] = ()
    over_below: int = 0
    heard_bytes: dict[str, int] = field(default_factory=dict)
    abandoned_bytes: int = 0
    given_up: tuple[int, ...] = ()
    takeover_s: float = 20.0
    disk_bytes: int | None = None
    counts: Counts = ()
    site: str = ""
    arrived_bytes: int = 0
    offered: bool | None = None
    loss_rate: float = 0.0
    space: tuple[Any, ...] = ()
    scratch: str = ""
    share: str = ""
    small_bytes: int = 0
    has_parts: bool = False
    takes: bool = False
    holds: bool = False
    shares: Counts = ()

    @property
    def shape(self) -> NodeShape:
        """What each of its nodes has."""
        return NodeShape(self.cores, self.memory_bytes, self.disk_bytes, self.counts)

    def shared_sources(self) -> tuple[str, ...]:
        """What several of its tasks read and none makes, in order of need: homes of cache volumes,
        and files."""
        reads = Counter[str]()
        for task in self.tasks:
            reads.update({str(Path(task.workdir, name)): 1 for name in task.inputs})
        for task in self.tasks:
            for name in task.outputs:
                reads.pop(str(Path(task.workdir, name)), None)
        volumes = [mount.before for task in self.tasks for mount in task.mounts if mount.is_cache]
        return tuple(dict.fromkeys([*volumes, *(path for path in reads if reads[path] > 1)]))


_SELDOM = (
    *("disk_bytes", "counts", "commit", "checkpoint", "done_s", "idle", "site", "arrived_bytes"),
    *(
        "offered",
        "loss_rate",
        "space",
        "mounts",
        "extracts",
        "local",
        "temporary",
        "limit_s",
        "worker",
        "priority",
        "memories",
        "limits_s",
        "failed",
        "stops",
        "shares",
        "scratch",
        "share",
        "small_bytes",
        "has_parts",
        "takes",
        "holds",
    ),
)
"""What is written only if it says something: so most files stay as they have been."""


def _record(value: TaskSpec | JobFile, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What is written, of fields with these defaults."""
    every = ((name, getattr(value, name)) for name in defaults)
    return {name: given for name, given in every if name not in _SELDOM or given != defaults[name]}


def tuples(value: Any) -> Any:
    """Lists, which JSON has, as tuples, which our values have; whatever else as it is."""
    if isinstance(value, list):
        return tuple(map(tuples, value))
    return value


def write_job(path: Path, job: JobFile) -> None:
    """Write the file so that a reader finds all of it or none, also after a crash of the machine.

    OutsideError if it cannot be written; then nothing has changed.
    """
    encode = json.JSONEncoder().encode
    defaults = {f.name: f.default for f in fields(TaskSpec)}
    head = _record(job, {f.name: f.default for f in fields(job) if f.name != "tasks"})
    tasks = (encode(_record(task, defaults)) for task in job.tasks)
    with disk_faults(f"{path} cannot be written"):
        with replacing(path) as file:  # for its owner alone: it has the environments of tasks
            file.writelines(line.encode("ascii") for line in _lines(encode(head), tasks))
        sync_folder(path.parent)


def read_job(path: Path) -> JobFile:
    """Read the file. InputError if it is missing or is not a job file."""
    try:
        record = json.loads(path.read_bytes())
        tasks = tuple(
            TaskSpec(**{name: tuples(value) for name, value in task.items()})
            for task in record["tasks"]
        )
        for task in tasks:
            if not task.command:
                raise ValueError(f"task {task.id!r} has no command")
        return JobFile(
            **{**{name: tuples(value) for name, value in record.items()}, "tasks": tasks}
        )
    except OSError as error:
        raise InputError(
            path,
            f"cannot be read: {error.strerror}",
            fix="the manager writes it before it submits the job",
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            path, f"is not a job file ({error})", fix="resume the run to have it written again"
        ) from error


def _lines(head: str, tasks: Iterable[str]) -> Iterator[str]:
    """One object of JSON, with a line for each task."""
    yield f'{head[:-1]}, "tasks": ['
    for i, task in enumerate(tasks):
        yield f"{',' if i else ''}\n{task}"
    yield "\n]}\n"
