"""What is left of a run, played forwards: when its last task ends. Pure.

Rule 1: a task starts when its parents have ended and its job has room, first come, first served.
Rule 2: what has not ended when its job's time is up starts again from its beginning in a job to
come, which requests enough. Rule 3: `Manner` says which tasks start together in jobs to come; each
of these starts a gap later than it could.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from math import gcd, inf

from windrow.model import Workflow


class Manner(Enum):
    """How jobs to come are cut."""

    TASKS = "each task is a job of its own"
    LEVELS = "a job for all tasks that can start, when no other is there"
    ALL = "jobs of several levels, which are there when they are needed"


@dataclass(frozen=True, slots=True)
class JobsToCome:
    """What they are like. `nodes`: how many they have at a time. `limit`: what they request, as a
    multiple of what is expected; None: they have no limit."""

    manner: Manner
    gap_s: float
    nodes: int
    limit: float | None


@dataclass(frozen=True, slots=True)
class JobThere:
    """A job in the system: its nodes, when it begins, or now, and when its limit ends it."""

    nodes: int
    begin_s: float
    end_s: float = inf


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left. `homes`: of tasks in jobs that are there, which."""

    workflow: Workflow
    homes: Mapping[int, int]
    there: Mapping[int, JobThere]
    to_come: JobsToCome
    cores: int


def end_of(rest: Rest, takes_s: Mapping[int, float], now_s: float) -> float:
    """When the last of these tasks ends, which take that long; now if there are none."""
    return _Play(rest, takes_s, now_s).end_s()


@dataclass(slots=True)
class _Room:
    """The nodes of a job, in parts. `free`: when each is free."""

    free: list[float] = field(default_factory=list)
    end_s: float = inf

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self.free)

    def taken(self, parts: int) -> list[float]:
        """So many that are free first."""
        return [heappop(self.free) for _ in range(min(parts, len(self.free)))]

    def give_back(self, parts: int, at_s: float) -> None:
        """They are free from then on."""
        for _ in range(parts):
            heappush(self.free, at_s)


class _Play:
    """The state of one play."""

    def __init__(self, rest: Rest, takes_s: Mapping[int, float], now_s: float) -> None:
        self._takes_s = takes_s
        self._now_s = now_s
        self._manner = rest.to_come.manner
        self._gap_s = rest.to_come.gap_s
        self._limit = rest.to_come.limit
        self._homes = dict(rest.homes)
        self._expected_s: list[float] = rest.workflow.runtime_s.tolist()
        self._children, self._open = _within(rest.workflow, takes_s)
        self._ready_s = dict.fromkeys(takes_s, now_s)
        self._parts, self._rooms, self._to_come = _rooms(rest, takes_s, now_s)
        self._queue: list[tuple[float, int]] = []
        self._held: list[int] = []
        """Tasks that wait for a job of all that can start."""
        self._again: set[int] = set()
        """Tasks that were in a job whose time was up."""

    def end_s(self) -> float:
        """Play it."""
        last_s = self._now_s
        for task, parents in self._open.items():
            if not parents:
                self._add(task)
        while self._queue or self._held:
            if not self._queue:
                self._release(last_s + self._gap_s)
            ready_s, task = heappop(self._queue)
            last_s = max(last_s, self._run(task, ready_s))
        return last_s

    def _add(self, task: int) -> None:
        """It can start."""
        if task in self._homes:
            heappush(self._queue, (self._ready_s[task], task))
        elif self._manner is Manner.LEVELS:
            self._held.append(task)
        else:
            heappush(self._queue, (self._ready_s[task] + self._gap_s, task))

    def _release(self, begin_s: float) -> None:
        """What could start does, in one job."""
        room = self._to_come
        times_s = {task: self._expected_s[task] for task in self._held}
        work_s = sum(self._parts[task] * took_s for task, took_s in times_s.items())
        run_s = max(*times_s.values(), work_s / room.parts)
        room.free = [begin_s] * room.parts
        room.end_s = inf
        if self._limit is not None and self._again.isdisjoint(self._held):
            room.end_s = begin_s + self._limit * run_s
        for task in self._held:
            heappush(self._queue, (begin_s, task))
        self._held = []

    def _run(self, task: int, ready_s: float) -> float:
        """Run it where it is at home. Returns when that ended."""
        home = self._homes.get(task)
        room = self._to_come if home is None else self._rooms[home]
        slots = room.taken(self._parts[task])
        start_s = max(ready_s, slots[-1])
        end_s = start_s + self._takes_s[task]
        until_s = self._until_s(task, room, start_s)
        if end_s > until_s:
            end_s = max(until_s, ready_s)
            self._again.add(task)
            self._homes.pop(task, None)
            self._ready_s[task] = end_s
            self._add(task)
        else:
            self._done(task, end_s)
        room.give_back(len(slots), end_s)
        return end_s

    def _until_s(self, task: int, room: _Room, start_s: float) -> float:
        """When its job's time is up."""
        if task in self._again and room is self._to_come:
            return inf
        if room is self._to_come and self._manner is Manner.TASKS and self._limit is not None:
            return start_s + self._limit * self._expected_s[task]
        return room.end_s

    def _done(self, task: int, end_s: float) -> None:
        """Its children may start."""
        for child in self._children[task]:
            self._open[child] -= 1
            self._ready_s[child] = max(self._ready_s[child], end_s)
            if not self._open[child]:
                self._add(child)


def _within(
    workflow: Workflow, tasks: Iterable[int]
) -> tuple[dict[int, list[int]], dict[int, int]]:
    """Of each of these tasks, its children among them, and how many parents it has there."""
    known = set(tasks)
    parents = dict.fromkeys(tasks, 0)
    children = {}
    for task in known:
        children[task] = [child for child in workflow.children.of(task).tolist() if child in known]
        for child in children[task]:
            parents[child] += 1
    return children, parents


def _needs(rest: Rest, tasks: Iterable[int]) -> dict[int, int]:
    """How many cores each of these tasks needs; how many nodes, where each is a job."""
    whole = rest.workflow.nodes.tolist()
    if rest.to_come.manner is Manner.TASKS:
        return {task: max(1, whole[task]) for task in tasks}
    within = rest.workflow.cores.tolist()
    cores = rest.cores
    return {task: whole[task] * cores or min(cores, within[task]) or 1 for task in tasks}


def _rooms(
    rest: Rest, tasks: Iterable[int], now_s: float
) -> tuple[dict[int, int], dict[int, _Room], _Room]:
    """How many parts of nodes each task needs, those of jobs that are there, and of those to come.
    Parts are as large as tasks allow."""
    needs = _needs(rest, tasks)
    each = 1 if rest.to_come.manner is Manner.TASKS else max(1, rest.cores)
    part = gcd(each, *needs.values())
    most = max(1, sum(needs.values()) // part)
    rooms = {
        number: _Room([job.begin_s] * min(most, job.nodes * each // part), job.end_s)
        for number, job in rest.there.items()
    }
    to_come = _Room([now_s] * min(most, max(1, rest.to_come.nodes * each // part)))
    return {task: need // part for task, need in needs.items()}, rooms, to_come
