"""The checkpoints of the tasks that run in a job: who may write them, when they are asked for, and
what they save.

Rule 1: one attempt at a time writes the checkpoint files of a task: the one whose lease is in the
run's folder. A lease is given back when its attempt is over. If one was left behind, its agent
is dead or cut off: the next attempt takes it and waits for `HANDOVER_S`, in which an agent that
lives sees that it has lost it, and kills its attempt.
Rule 2: the files stay until the task has finished. The first attempt of a run finds none of an
earlier run. What is deleted is the task's own, as recorded (`kept_files`).
Rule 3: a checkpoint is told when its files have changed and are quiet again, or the attempt is
over. What was done counts up to when it was asked for, or else up to the first change that was
seen.
Rule 4: without `every` a task is asked as often as pays by Young's rule, sqrt(2 * cost / rate), if
the rate at which jobs are lost is known. Until its first checkpoint one is taken to cost as much as
its notice.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from windrow.agent.folder import RunFolder
from windrow.agent.job_file import TaskSpec
from windrow.agent.kept_files import BEAT_S, Found, KeptFiles, found
from windrow.deletion import discard
from windrow.files import about_to_write, create_once, disk_faults
from windrow.model.checkpoint import Checkpoint
from windrow.model.hazard import Hazard

LOOK_EVERY_S = 1.0
HANDOVER_S = 5.0
TELL_EVERY_S = 30.0
"""Checkpoints that were not asked for are reported no more often."""

Signature = tuple[tuple[object, ...], ...]


def _signature(here: Found) -> Signature:
    """What changes when one of the files does; folders do not count."""
    return tuple(sorted((path, *stamp) for path, stamp in here.items() if not stamp.is_folder))


class Piece(NamedTuple):
    """What came of an attempt that is over: what was done of its task before, and is now; is that
    more than in earlier jobs; has it ended since it was asked for a checkpoint; was that as its
    time here ends; has another its files?
    """

    before_s: float
    done_s: float
    has_gained: bool
    is_answer: bool
    is_last: bool
    is_taken: bool


@dataclass
class _Watched:
    """An attempt that runs, since `begun_s`, from a checkpoint by which `base_s` was done.

    `told` are its files as last counted, at `told_s`; `latest` as last seen; in between they
    changed at `changed_s`. `is_last`: it was asked since its time here ends. `has_answered`: it
    wrote since it was last asked.
    """

    spec: TaskSpec
    kept: Checkpoint
    record: KeptFiles
    attempt: int
    begun_s: float
    base_s: float
    told: Signature
    latest: Signature
    told_s: float
    asked_s: float
    changed_s: float = 0.0
    is_asked: bool = False
    is_last: bool = False
    has_answered: bool = False
    shown_s: float = 0.0
    """When it last showed in its lease that it lives."""

    def files(self) -> Signature:
        return _signature(self.found())

    def found(self) -> Found:
        return found(self.spec.workdir, self.kept.files)

    def last_ask_s(self, deadline: float) -> float:
        """When to ask because of the deadline: not before one that should end in time should have
        ended."""
        should_end_s = self.begun_s + self.spec.expected_s - (self.base_s - self.spec.done_s)
        return max(deadline - self.kept.notice_s, should_end_s if should_end_s < deadline else 0.0)


class Checkpoints:
    """Those of one job's tasks."""

    def __init__(self, folder: RunFolder, job: int, rate: float = 0.0) -> None:
        """`rate`: how often such a job is lost, in losses per second; 0 if that is not known."""
        self._folder = folder
        self._job = job
        self._losses = Hazard(cluster_rate=rate)
        self.running: dict[int, _Watched] = {}
        """The attempts that run, by task."""
        self._done_s: dict[int, float] = {}
        self._costs_s: dict[int, float] = {}
        self._gained: set[int] = set()
        self._left = dict[int, float]()  # of attempts that died with the lease: when they lived
        self._look_at = 0.0
        self.look_every_s = LOOK_EVERY_S

    def take(self, task: int, attempt: int) -> float:
        """Become the one attempt that may write the files; how long to wait before it starts.
        OutsideError: a disk."""
        path = self._folder.leases / str(task)
        mine = self._mine(attempt)
        with disk_faults(f"{path} cannot be written"):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._left.pop(task, None)
            if create_once(path, mine):
                return 0.0
            self._left[task] = path.stat().st_mtime
            about_to_write(path)
            path.write_bytes(mine)
            return HANDOVER_S

    def begin(self, spec: TaskSpec, attempt: int, now: float) -> bool:
        """Its attempt starts now. False if it starts from zero although more was done: its files
        are gone."""
        assert spec.checkpoint is not None
        record = KeptFiles.read(self._folder.kept / str(spec.task), spec.workdir)
        with disk_faults(f"{spec.workdir}: its checkpoint files cannot be looked after"):
            here = found(spec.workdir, spec.checkpoint.files)
            record.begin(here, left_s=self._left.get(spec.task))
            seen = _signature(found(spec.workdir, spec.checkpoint.files))
        known_s = self._done_s.get(spec.task, spec.done_s)
        base_s = self._done_s[spec.task] = known_s if seen else 0.0
        self.running[spec.task] = _Watched(
            spec, spec.checkpoint, record, attempt, now, base_s, seen, seen, now, now
        )
        return base_s == known_s

    def look(self, now: float) -> tuple[dict[int, float], list[int]]:
        """Tasks that have written checkpoints, with what is done of each; and those whose lease
        another has."""
        saved = dict[int, float]()
        taken = list[int]()
        if now < self._look_at:
            return saved, taken
        self._look_at = now + self.look_every_s
        for task, watched in self.running.items():
            if not self._has_lease(task, watched.attempt):
                taken.append(task)
                continue
            if now >= watched.shown_s + BEAT_S:
                watched.shown_s = now
                with contextlib.suppress(OSError):
                    os.utime(self._folder.leases / str(task))
            seen = watched.files()
            if seen != watched.latest:
                if watched.latest == watched.told:
                    watched.changed_s = now
                watched.latest = seen
            elif (
                seen
                and seen != watched.told
                and (watched.is_asked or now >= watched.told_s + TELL_EVERY_S)
            ):
                if watched.is_asked:
                    self._costs_s[task] = max(LOOK_EVERY_S, watched.changed_s - watched.asked_s)
                self._saved(task, now)
                saved[task] = self._done_s[task]
        return saved, taken

    def _saved(self, task: int, now: float) -> None:
        """What its files say is kept, if they are new: up to when it was asked for, or up to their
        first change."""
        watched = self.running[task]
        here = watched.found()
        with contextlib.suppress(OSError):  # then its lease stays, which says as much
            watched.record.see(here)
        if not (seen := _signature(here)) or seen == watched.told:
            return
        if watched.is_asked:
            at_s = watched.asked_s
        elif watched.latest == watched.told:
            at_s = now
        else:
            at_s = watched.changed_s
        self._gained.add(task)
        self._done_s[task] = watched.base_s + at_s - watched.begun_s
        watched.has_answered |= watched.is_asked
        watched.told = watched.latest = seen
        watched.told_s = now
        watched.is_asked = False

    def ended(self, task: int, now: float) -> Piece:
        """The attempt is over."""
        watched = self.running[task]
        if has_lease := self._has_lease(task, watched.attempt):
            self._saved(task, now)
            with contextlib.suppress(OSError):  # then the next one waits a little
                watched.record.see(watched.found())
                about_to_write(path := self._folder.leases / str(task))
                discard(path)
        del self.running[task]
        is_answer = (
            watched.has_answered
            and now <= watched.asked_s + watched.kept.notice_s + self.look_every_s
        )
        gained = self._done_s[task], task in self._gained
        return Piece(watched.base_s, *gained, is_answer, watched.is_last, not has_lease)

    def asks(self, now: float, deadline: float, *, is_end: bool = False) -> list[int]:
        """The tasks to ask for a checkpoint now; with `is_end` all that were not asked because of
        an end."""
        due = []
        for task, watched in self.running.items():
            is_last = is_end or now >= watched.last_ask_s(deadline)
            if watched.is_last or not (is_last or now >= self._next_s(task, watched)):
                continue
            self._saved(task, now)  # what it wrote by itself
            watched.told = watched.latest = watched.files()
            watched.asked_s = now
            watched.is_asked = True
            watched.is_last = is_last
            watched.has_answered = False
            due.append(task)
        return due

    def due_s(self, deadline: float) -> float:
        """When to ask or to look next."""
        asks = [
            min(self._next_s(t, w), w.last_ask_s(deadline))
            for t, w in self.running.items()
            if not w.is_last
        ]
        if self.running:
            return min([*asks, self._look_at])
        return math.inf

    def have_time(self, now: float) -> bool:
        """Whether a task that was asked because of an end may still write and leave."""
        asked = (w for w in self.running.values() if w.is_last and w.kept.signal)
        return any(now < watched.asked_s + watched.kept.notice_s for watched in asked)

    def _next_s(self, task: int, watched: _Watched) -> float:
        """When to ask for a checkpoint though no end is near."""
        if not watched.kept.signal:
            return math.inf
        cost_s = self._costs_s.get(task, watched.kept.notice_s)
        return watched.asked_s + (
            watched.kept.every_s or self._losses.checkpoint_every_s(1, cost_s)
        )

    def _mine(self, attempt: int) -> bytes:
        return b"%d %d\n" % (self._job, attempt)

    def _has_lease(self, task: int, attempt: int) -> bool:
        try:
            return (self._folder.leases / str(task)).read_bytes() == self._mine(attempt)
        except OSError:  # a hiccup says nothing
            return True


def remove_files(folder: RunFolder, task: int, workdir: str, patterns: Iterable[str]) -> None:
    """Delete the files of a task that has finished, as far as they are its own. OSError if
    something stays."""
    record = KeptFiles.read(folder.kept / str(task), workdir)
    if not record.has_begun:
        return
    try:
        left_s = (folder.leases / str(task)).stat().st_mtime
    except FileNotFoundError:
        record.end()
    else:  # its last attempt died
        record.end_of_left(found(workdir, patterns), left_s)
