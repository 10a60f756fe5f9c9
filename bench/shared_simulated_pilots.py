"""Pilots in a simulated cluster, by the rules of `shared_pilots.py`: while tasks are ready that no
worker has, one allocation is in the queue; each of its slots takes a task that can end in time, and
a slot that has had nothing to do for so long is over, the allocation with its last one.

Rule 1: all happens in whole seconds. What workers and their server take is left out.
Rule 2: a task whose allocation ends before it does is lost with it, and done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.shared_load import CORES
from bench.shared_pilots import IDLE_S
from bench.shared_work import PILOT_MIN, Task, Work
from windrow.sim.cluster import Cluster, EventKind

LIMIT_S = 60 * PILOT_MIN


@dataclass
class Slot:
    """A core of an allocation: what it runs until when, or since when it has nothing to do."""

    free_since_s: int
    task: Task | None = None
    until_s: int = 0
    is_over: bool = False


@dataclass
class Pilots:
    """How far it has come."""

    work: Work
    cluster: Cluster
    width: int
    slots: dict[int, list[Slot]] = field(default_factory=dict)
    """Of each allocation that runs, by its number."""
    ends_s: dict[int, int] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    jobs: int = 0
    job_s: int = 0

    def ready(self) -> Iterator[Task]:
        """Tasks whose parents are done and that no slot has."""
        for task in self.work.tasks:
            if task.name not in self.given and all(name in self.done for name in task.after):
                yield task

    def second(self) -> None:
        """All that happens at one second after what the cluster does."""
        now = self.cluster.now_s
        for slots in self.slots.values():
            for slot in slots:
                if slot.task is not None and slot.until_s <= now:
                    self.done.add(slot.task.name)
                    slot.task, slot.free_since_s = None, now
        for number, slots in list(self.slots.items()):
            for slot in slots:
                self._give(slot, self.ends_s[number] - now)
            if all(slot.is_over for slot in slots):
                self.cluster.cancel(number)
        if not self.waiting and next(self.ready(), None) is not None:
            self.waiting.add(self.cluster.submit(self.width, LIMIT_S))

    def _give(self, slot: Slot, left_s: int) -> None:
        now = self.cluster.now_s
        if slot.task is not None or slot.is_over:
            return
        task = next((one for one in self.ready() if 1.2 * one.expected_s <= left_s), None)
        if task is not None:
            self.given.add(task.name)
            slot.task, slot.until_s = task, now + max(1, round(task.takes_s))
        elif now - slot.free_since_s >= IDLE_S:
            slot.is_over = True

    def hear(self, kind: EventKind, number: int) -> None:
        """An allocation has started, or is over."""
        now = self.cluster.now_s
        if kind is EventKind.STARTED:
            self.waiting.discard(number)
            self.slots[number] = [Slot(now) for _ in range(CORES)]
            self.ends_s[number] = now + LIMIT_S
            self.jobs += 1
            return
        self.waiting.discard(number)
        for slot in self.slots.pop(number, []):
            if slot.task is not None and slot.until_s > now:
                self.given.discard(slot.task.name)
            elif slot.task is not None:
                self.done.add(slot.task.name)
        if number in self.ends_s:
            self.job_s += now - (self.ends_s.pop(number) - LIMIT_S)


@dataclass(frozen=True)
class Ended:
    """What came of it. `job_s`: for how long all allocations had their nodes."""

    makespan_s: int
    job_s: int
    jobs: int


def play(work: Work, cluster: Cluster, width: int) -> Ended:
    """From now until the last task has ended; `width` nodes of the cluster are an allocation."""
    began_s = cluster.now_s
    pilots = Pilots(work, cluster, width)
    pilots.second()
    while len(pilots.done) < len(work.tasks):
        for event in cluster.advance(cluster.now_s + 1):
            pilots.hear(event.kind, event.job)
        pilots.second()
    makespan_s = cluster.now_s - began_s
    now = cluster.now_s
    running_s = sum(now - (end_s - LIMIT_S) for end_s in pilots.ends_s.values())
    return Ended(makespan_s, pilots.job_s + running_s, pilots.jobs)


if __name__ == "__main__":
    raise SystemExit("this is a part of shared_simulated.py")
