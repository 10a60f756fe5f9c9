"""Files that are on nodes of an allocation alone: where each is, which tasks of the job read it,
and what must leave.

Law: such a file stays until it is committed. It must be committed as soon as a task of this job
that reads it will not run here, or starts where the file is not: on another node, or on the shared
files. When all who read it have finished here it is not needed, and is dropped. Files go by their
whole paths; older work is committed first. What a task left in a scratch volume is also committed
where a replica pays (`agent.data.replicas`). Small files leave early, since the loss of a node
would cost more than a copy; where such a copy fails, the file stays like any other. Pure: the loop
has the nodes do what is wanted here, and tells what came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from windrow.agent import event_file as events
from windrow.agent.job_file import TaskSpec
from windrow.agent.order import Committed, absolute
from windrow.files import is_of_disk
from windrow.model.cause import Cause

if TYPE_CHECKING:
    from windrow.agent.data.replicas import Replicas

BYTES_PER_S = 50e6
"""How fast commits are taken to be when time is set aside for them."""


class LocalFiles:
    """Those of one agent."""

    def __init__(self, replicas: Replicas | None = None, small_bytes: int = 0) -> None:
        """`small_bytes`: files up to this size leave their node as soon as they are made; 0: none
        do."""
        self._replicas = replicas
        self._small_bytes = small_bytes
        self._early: set[str] = set()  # what leaves only because it is small
        self._copying: dict[
            str, tuple[str, float]
        ] = {}  # replicas that were asked for: of which volume, and when
        self._specs: dict[int, TaskSpec] = {}
        self._inputs: dict[int, tuple[str, ...]] = {}  # of what may be local
        self._maker: dict[str, int] = {}  # of whatever may be local
        self._name: dict[str, str] = {}
        self._readers: dict[str, set[int]] = {}
        self._at: dict[str, int] = {}  # the node of what is on one alone, the oldest first
        self._bytes: dict[str, int] = {}
        self._leaving: set[str] = set()
        self._asked: set[str] = set()
        self.lost: dict[str, str] = {}
        """What cannot be had any more, and why."""

    def adopt(self, specs: Iterable[TaskSpec]) -> None:
        """More tasks."""
        new = {spec.task: spec for spec in specs}
        self._specs |= new
        for task, spec in new.items():
            names = {absolute(spec.workdir, [name])[0]: name for name in spec.local}
            self._name |= names
            self._maker |= dict.fromkeys(names, task)
            self._readers |= {path: set() for path in names}
        for task, spec in new.items() if self._maker else ():
            self._inputs[task] = tuple(
                p for p in absolute(spec.workdir, spec.inputs) if p in self._maker
            )
            for path in self._inputs[task]:
                self._readers[path].add(task)

    @property
    def is_busy(self) -> bool:
        """Whether something is to be committed that can be."""
        return any(path in self._leaving for path in self._at)

    @property
    def grace_s(self) -> float:
        """How long before its end the agent should stop, to commit what is still read."""
        return sum(self._bytes[path] for path in self._at if self._readers[path]) / BYTES_PER_S

    def near(self, task: int) -> dict[int, int]:
        """How many bytes of what the task reads are on which node alone."""
        found: dict[int, int] = {}
        for path in self._inputs.get(task, ()):
            if path in self._at:
                found[self._at[path]] = found.get(self._at[path], 0) + self._bytes[path]
        return found

    def is_ready(self, task: int, node: int) -> bool:
        """Whether what the task reads is where it reads it, on this node. What is not will be
        committed."""
        if self._specs[task].may_be_local:
            here = node
        else:
            here = None
        away = [path for path in self._inputs.get(task, ()) if self._at.get(path, here) != here]
        self._must_leave(away)
        return not away and not self.why_lost(task)

    def why_lost(self, task: int) -> str:
        """Why something that the task reads cannot be had any more; empty: it can."""
        return next(
            (self.lost[path] for path in self._inputs.get(task, ()) if path in self.lost), ""
        )

    def hear(self, record: events.Record, node: int = 0) -> list[str]:
        """What has become of a task; an attempt ran on this node. Returned: what need not be kept
        any more."""
        if isinstance(record, events.AttemptFinished):
            made = self._specs[record.task]
            for number, name in enumerate(made.outputs if record.of.local else ()):
                (path,) = absolute(made.workdir, [name])
                if name in record.of.local and path in self._readers:
                    self._at[path] = node
                    self._bytes[path] = record.of.sizes[number] if record.of.sizes else 0
                    self.lost.pop(path, None)
                    if 0 < self._small_bytes >= self._bytes[path]:
                        self._leaving.add(path)
                        self._early.add(path)
            if self._replicas is not None:
                self._consider_replicas(self._replicas, made, record)
            for path in self._inputs.get(record.task, ()):
                self._readers[path].discard(record.task)
            return self._unneeded()
        if isinstance(record, (events.TaskDeclined, events.AttemptLost)) or getattr(
            record, "final", False
        ):
            self.leave([getattr(record, "task", -1)])
        return []

    def _consider_replicas(
        self, replicas: Replicas, spec: TaskSpec, record: events.AttemptFinished
    ) -> None:
        ran_s = record.at - record.of.begun
        replicas.passed(ran_s)
        for mount in spec.mounts:
            path = mount.after
            left_s = 0.0
            while readers := self._readers.get(path):
                reader = self._specs[min(readers)]
                left_s += reader.expected_s
                path = next((other.after for other in reader.mounts if other.before == path), "")
            if mount.after in self._at and replicas.wants(
                mount.volume, ran_s, left_s, rule=mount.policy
            ):
                self._leaving.add(mount.after)
                self._copying[mount.after] = mount.volume, record.at

    def leave(self, tasks: Iterable[int]) -> None:
        """These tasks will not run here: what they read must be had elsewhere."""
        self._must_leave(path for task in tasks for path in self._inputs.get(task, ()))

    def _must_leave(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._leaving.add(path)
            self._early.discard(path)

    def _unneeded(self) -> list[str]:
        gone = [path for path in self._at if not self._readers[path] and path not in self._leaving]
        for path in gone:
            del self._at[path]
        return gone

    def to_commit(self) -> Mapping[int, list[str]]:
        """What is to be committed and was not asked for yet, by node."""
        found: dict[int, list[str]] = {}
        for path, node in self._at.items():
            if path in self._leaving and path not in self._asked:
                found.setdefault(node, []).append(path)
                self._asked.add(path)
        return found

    def committed(
        self, committed: Committed, at: float
    ) -> events.OutputsCommitted | events.CommitFailed | None:
        """It is on the shared file system now, or cannot be brought there. The record of it, if
        it is news."""
        path, why, number = committed
        self._asked.discard(path)
        if self._replicas is not None and path in self._copying:
            volume, since = self._copying.pop(path)
            self._replicas.copied(volume, at - since)
        if why and path in self._early and self._at.get(path) is not None:
            self._early.discard(path)
            self._leaving.discard(path)
            return None
        if self._at.pop(path, None) is None:
            return None
        maker = self._maker[path]
        if why:
            self.lost[path] = why
            if is_of_disk(number):
                cause = Cause.SPACE
            else:
                cause = Cause.PROGRAM
            return events.CommitFailed(at, maker, self._name[path], why, cause, number)
        left = tuple(self._name[other] for other in self._at if self._maker[other] == maker)
        return events.OutputsCommitted(at, maker, (self._name[path],), left)

    def lose(self, node: int, why: str) -> None:
        """A node is gone, with what was there."""
        gone = [path for path, place in self._at.items() if place == node]
        self.lost |= dict.fromkeys(gone, why)
        volumes = (
            mount
            for path in gone
            for mount in self._specs[self._maker[path]].mounts
            if mount.after == path
        )
        for mount in volumes:
            if self._replicas is not None:
                self._replicas.lost(mount.volume)
        for path in gone:
            del self._at[path]
