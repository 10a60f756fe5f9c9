"""Nothing goes wrong for nothing: what fails, is given up or is not noticed has a cause.

Rule 1: a task fails only if something struck that can make tasks fail. Rule 2: a run gives up
only if something lasts, or as often went wrong as its patience allows. Rule 3: that a job is
over is known soon, whatever the clocks say, while its queue answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.story.events import DiskRefused, JobEnded, JobKilled, RunBegan, TaskFailed
from windrow.story.journal import Record
from windrow.trials.virtual.counted import Invariant
from windrow.trials.virtual.invariants import Violation
from windrow.trials.virtual.kinds import FOR_EVER, Kind

if TYPE_CHECKING:
    from windrow.trials.virtual.shell import VirtualRun

HARMLESS: Collection[str] = (
    *(Kind.NODE, Kind.PREEMPTED, Kind.CANCELLED, Kind.LOST, Kind.HELD, Kind.AGENT),
    *(Kind.AGENT_WRITING, Kind.MANAGER, Kind.DOWN, Kind.SILENT, Kind.DEAF, Kind.LATE),
    *(Kind.SLOW, Kind.LONG, Kind.CLOCK, Kind.NOTICED, Kind.NODE_OF_JOB, Kind.COPYING),
    *(Kind.MACHINE, Kind.POWER, "node is down for a while"),
    *(Kind.NO_MOVE, Kind.NO_ANSWER, Kind.LIMIT, Kind.HIDDEN, Kind.SEEN_LATE, Kind.NODE_CLOCK),
    *(Kind.LATE_OUTPUT, Kind.ROT, Kind.STUMBLES),
)
"""What makes no task fail: it costs time."""
LEAST = 3
"""So many jobs are lost at least before a run gives up for that; said here, as what ships may be
wrong."""
MOST_REFUSED = 3
"""In this number of jobs a disk may refuse the same task before the run gives up."""
TRIED_S = 240
"""A file that is to move is tried again within this time."""
SLOWEST_S = 60
"""A manager that waits for nothing looks more often than that."""
SOON_S = 600
"""How long a manager that hears its queue may take for the end of a job: a lost job is awaited for
a minute, and so are files that are seen late."""


def check_failed(run: VirtualRun, records: Iterable[Record]) -> None:
    """No task failed without a cause."""
    failed = [record for record in records if isinstance(record.event, TaskFailed)]
    run.world.exercised[Invariant.CAUSE] += len(failed)
    if failed and set(run.world.met) <= set(HARMLESS):
        raise Violation(f"a task failed, and nothing made it: {failed[0]}")


def check_refused(run: VirtualRun, records: Iterable[Record], copies: int) -> None:
    """No task was refused by disks in job after job until all else was done."""
    jobs: dict[int, set[int]] = {}
    for record in records:
        if isinstance(record.event, RunBegan):
            jobs.clear()
        elif isinstance(record.event, DiskRefused) and not record.event.is_final:
            refused = jobs.setdefault(record.event.task, set())
            refused.add(record.event.job)
            run.world.exercised[Invariant.REFUSED] += 1
            if len(refused) >= MOST_REFUSED + copies:
                raise Violation(f"disks refused {record.event.task} in the jobs {sorted(refused)}")


def _lost_since_it_began(records: Iterable[Record]) -> int:
    """How many jobs have ended since the run last began, which may have been losses."""
    lost = 0
    for record in records:
        if isinstance(record.event, RunBegan):
            lost = 0
        lost += isinstance(record.event, JobKilled | JobEnded)
    return lost


@dataclass
class Watch:
    """Looks at a run whenever its manager has looked."""

    run: VirtualRun
    silent_s: float = 0.0
    """When its manager last was new, or did not hear its queue."""
    deaths: int = -1
    looked_s: float = 0.0
    wanted_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """Since when files are to move and are not tried, by the two places."""

    def __call__(self) -> None:
        """The manager has looked."""
        manager = self.run.manager
        world = self.run.world
        assert manager is not None
        if manager.core.trouble and not manager.core.is_stopped:
            self._check_trouble(manager.core.trouble)
        is_new = self.deaths != self.run.deaths
        is_new |= world.now_s - self.looked_s > SLOWEST_S  # a call kept it waiting meanwhile
        self.looked_s = world.now_s
        if manager.trouble_with_queue or is_new or manager.is_over:
            self.silent_s = world.now_s
            self.deaths = self.run.deaths
        if is_new or manager.is_over:
            self.wanted_s.clear()
        self._check_tried()
        self.silent_s = max(self.silent_s, world.answered_late_s)
        if world.now_s - self.silent_s > SOON_S:
            self._check_heard()

    def _check_trouble(self, trouble: str) -> None:
        """It gives up for a reason."""
        world = self.run.world
        world.exercised[Invariant.REASON] += 1
        may = {kind for kind in world.met if kind in FOR_EVER or kind not in HARMLESS}
        if not may and sum(world.met.values()) < LEAST:
            raise Violation(f"the run gives up after {dict(world.met)}: {trouble}")
        if "jobs in a row" in trouble and _lost_since_it_began(self.run.records()) < LEAST:
            raise Violation(f"the run gives up before {LEAST} jobs have ended: {trouble}")

    def _check_tried(self) -> None:
        """What is to move is tried again, whatever came of it before."""
        assert self.run.manager is not None
        moves = self.run.manager.dispatch.transfers
        if moves is None or self.run.manager.core.is_stopped:
            return
        now_s = self.run.world.now_s
        waiting = [
            link for link in moves.catalogue.moves(moves._needs()) if link not in moves.under_way
        ]
        self.wanted_s = {link: self.wanted_s.get(link, now_s) for link in waiting}
        for link, since_s in self.wanted_s.items():
            self.run.world.exercised[Invariant.TRIED] += 1
            if now_s - since_s > TRIED_S:
                raise Violation(f"files of {link} are not tried for {now_s - since_s} s")

    def _check_heard(self) -> None:
        """What the queue calls over for long, and shows, is over for the manager."""
        world = self.run.world
        assert self.run.manager is not None
        for number, placed in self.run.manager.placed.items():
            if placed.id is None or placed.id in world.was_unseen:
                continue
            ended_s = world.queue.jobs[placed.id].status.ended_s
            world.exercised[Invariant.HEARD] += 1
            if ended_s is not None and world.now_s - ended_s > SOON_S:
                raise Violation(f"job {number} has ended {world.now_s - ended_s} s ago, unheard")
