"""What the core of a run holds of one job and of one site. Only the core changes it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil
from statistics import median
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from windrow.manager.losses import Losses
from windrow.manager.terms import Terms
from windrow.model.cause import Cause
from windrow.model.nodes import Need
from windrow.model.requests import Requests
from windrow.model.site import Site
from windrow.story.avoidance import FOR_S, Avoidance
from windrow.story.events import Action, TaskCheckpointed
from windrow.strategies.base import JobPlan, OwnJob
from windrow.strategies.levels import Work

_Times = Mapping[int, int]
_NONE: Mapping[int, Container[int]] = MappingProxyType({})
_PACES = 5
"""As many tasks as these tell whether a site is slow."""


@dataclass(slots=True)
class Job:
    """A job of this run that is in the system. `copies`: open tasks that are members of other jobs.

    `taken_by`: the job whose allocation it runs in, if that is another. `has_begun`: a task of
    it has started. `has_given_up`: it had no time for a task. `is_stopping`: it was told to go, or
    has nothing left to do.
    """

    plan: JobPlan
    open_tasks: set[int]
    at: AtSite
    copies: set[int] = field(default_factory=set)
    running_since_s: dict[int, int] = field(default_factory=dict)
    expected_end_s: int = 0
    started_s: int | None = None
    is_running: bool = False
    taken_by: int | None = None
    has_begun: bool = False
    has_finished_a_task: bool = False
    has_given_up: bool = False
    is_stopping: bool = False
    node_bytes: int = field(init=False)
    """The memory of each of its nodes, at least; 0 if that is unknown."""
    shares: dict[str, int] = field(default_factory=dict)
    """What it has of limits of the run."""
    refused: str = ""
    """Why a disk refused what a task of it made, if one did."""

    def __post_init__(self) -> None:
        shape = self.at.work.shape
        if len(self.at.work.kinds) > 1:
            shape = self.at.work.nodes_for(np.array(self.plan.all_tasks))[0]
        self.node_bytes = shape.memory_bytes or 0

    def others_end_s(self, jobs: Mapping[int, Job], job_of: Sequence[int | None]) -> int:
        """When the running jobs end that it waits for as it starts: those of its site, and those
        that make its inputs.

        Jobs of one site follow each other. Those at other sites of its group count only if they
        have its parents.
        """
        end_s = 0
        far = list[int]()
        for number, other in jobs.items():  # in one loop, since a trial asks often
            if not other.is_running or other is self:
                continue
            if other.at is self.at:
                if other.expected_end_s > end_s:  # noqa: PLR1730  (a call would take longer)
                    end_s = other.expected_end_s
            elif other.at in self.at.group:
                far.append(number)
        if far:
            parents = self.at.work.workflow.parents
            makers = {
                job_of[parent] for task in self.open_tasks for parent in parents.of(task).tolist()
            }
            end_s = max(
                [end_s, *(jobs[number].expected_end_s for number in far if number in makers)]
            )
        return end_s

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing to do."""
        return not self.open_tasks and not self.copies

    @property
    def is_spare(self) -> bool:
        """Whether all that it may do is in other jobs as well: strategies need not know of it."""
        return bool(self.copies) and not self.open_tasks

    @property
    def is_short(self) -> bool:
        """Whether a task of it is expected to take longer than it has."""
        limit_s = self.at.site.walltime_s(self.plan.requested_s)
        times = self.at.work.expected_s[list(self.plan.tasks)]
        return limit_s is not None and bool(times.max(initial=0) > limit_s)

    @property
    def lacks_space(self) -> bool:
        """Whether it began nothing within a limit on space: another job could not, either."""
        within = self.at.work.space is not None
        return within and not (self.has_begun or self.refused or self.is_short)

    @property
    def why_idle(self) -> tuple[Cause, str]:
        """Why it did nothing: too little time, unless a disk refused what it made."""
        if self.refused:
            return Cause.SPACE, self.refused
        return Cause.AGENT, "there may be too little time for its tasks"

    def note_use(self, at_s: int) -> None:
        """It is gone: its site remembers what it had of nodes."""
        if self.started_s is not None:
            nodes = self.at.site.nodes_held(self.plan.nodes, self.plan.part)
            self.at.used_node_s += nodes * max(0, at_s - self.started_s)

    def note_pace(self, task: int, at_s: int) -> None:
        """A task of it is done: its site, one of several, remembers how long that took beside what
        was expected."""
        if (began_s := self.running_since_s.get(task)) is not None:
            self.at.paces.append((at_s - began_s) / int(self.at.work.expected_s[task]))

    def is_too_early(
        self,
        at_s: int,
        dropped: int,
        jobs: Mapping[int, Job],
        job_of: Sequence[int | None],
        done: Sequence[bool],
    ) -> bool:
        """Whether it runs nothing, and what its tasks wait for cannot be done in time for any of
        them: not for the one that its agent has `dropped`, nor for one that would end later.

        It had time for them but started too early; they had better be planned again together than
        drop one by one.
        """
        workflow = self.at.work.workflow
        limit_s = self.at.site.walltime_s(self.plan.requested_s)
        if (
            self.is_stopping
            or self.started_s is None
            or limit_s is None
            or self.running_since_s
            or self.copies
        ):
            return False

        def open_parents(task: int) -> list[int]:
            return [parent for parent in workflow.parents.of(task).tolist() if not done[parent]]

        needed = set(self.open_tasks)
        stack = list(self.open_tasks)
        if not all(map(open_parents, stack)):
            return False
        while stack:
            new = set(open_parents(stack.pop())) - needed
            needed |= new
            stack += new
        ends: dict[int, int] = {}
        for task in sorted(needed, key=workflow.levels.__getitem__):
            if (number := job_of[task]) is None:
                home = self
            else:
                home = jobs[number]
            start_s = max((ends[parent] for parent in open_parents(task)), default=at_s)
            begun_s = home.running_since_s.get(task, start_s)
            ends[task] = max(at_s, begun_s + int(home.at.work.expected_s[task]))
        in_time_s = min(self.started_s + limit_s, ends[dropped] - 1)
        return min(ends[task] for task in self.open_tasks) > in_time_s

    def as_own(self, number: int) -> OwnJob:
        """As those who play courses ahead must know it."""
        open_tasks = tuple(sorted(self.open_tasks))
        since = {task: at for task, at in self.running_since_s.items() if task in self.open_tasks}
        return OwnJob(number, self.plan, open_tasks, self.is_running, self.expected_end_s, since)

    def as_given(self, at: AtSite, at_s: int) -> OwnJob:
        """As it is known if courses are played for another site: on no node there, done when it
        should end."""
        if self.is_running:
            end_s = max(at_s, self.expected_end_s)
        else:
            end_s = at_s + self.plan.run_s
        plan = replace(self.plan, nodes=0)
        times = at.work.expected_s
        since = {task: end_s - int(times[task]) for task in sorted(self.open_tasks)}
        return OwnJob(
            0, plan, tuple(since), is_running=True, expected_end_s=end_s, running_since_s=since
        )


class Copies:
    """Which jobs have a copy of which task; those with nothing else to do are on their way out when
    it goes."""

    def __init__(self, jobs: Mapping[int, Job], job_of: Sequence[int | None]) -> None:
        self._jobs = jobs
        self._job_of = job_of
        self.of: dict[int, list[int]] = {}
        """The jobs that have a copy of a task, if any has."""
        self.failed: set[int] = set()
        """Tasks of which an attempt failed by itself while others went on: one more would not
        help."""

    def jobs_of(self, task: int) -> list[int]:
        """The jobs that have the task: the one in which it is a member, then those with a copy."""
        home = self._job_of[task]
        if home is None:
            return []
        return [home, *self.of.get(task, ())]

    def add(self, task: int, number: int) -> None:
        """This job has one, too."""
        self._jobs[number].copies.add(task)
        self.of.setdefault(task, []).append(number)

    def close(self, task: int, number: int) -> None:
        """This job has none any more: the task is over there, or a member."""
        job = self._jobs[number]
        if task in job.copies:
            job.copies.discard(task)
            if task not in job.open_tasks:
                job.running_since_s.pop(task, None)
            job.is_stopping = job.is_stopping or job.is_empty
            self.of[task].remove(number)
            if not self.of[task]:
                del self.of[task]

    def close_all(self, task: int) -> list[int]:
        """No job has one any more. Those that have nothing else to do."""
        numbers = list(self.of.get(task, ()))
        for number in numbers:
            self.close(task, number)
        return [number for number in numbers if self._jobs[number].is_empty]

    def heir(self, task: int) -> int | None:
        """The job in which the task would continue if it were lost where it is a member: best one
        that stays and runs it.

        In a job that is on its way out the task may yet be done; else it comes back with that job.
        """
        jobs = ((self._jobs[number], number) for number in self.of.get(task, ()))
        ranks = ((job.is_stopping, task not in job.running_since_s, number) for job, number in jobs)
        return min(ranks, default=(True, True, None))[2]

    def stays(self, task: int) -> bool:
        """Whether a job that is to stay has one."""
        return any(not self._jobs[number].is_stopping for number in self.of.get(task, ()))

    def check(self, done: Sequence[bool], job_of: Sequence[int | None]) -> None:
        """Assert what must always hold; for tests."""
        copied = {(task, number) for number, job in self._jobs.items() for task in job.copies}
        assert copied == {(task, number) for task, jobs in self.of.items() for number in jobs}
        for task, number in copied:
            assert not done[task], "a copy of a task that is done"
            assert task not in self._jobs[number].open_tasks, "a copy beside the task itself"
            assert job_of[task] is not None, "a copy of a task that no job has"


@dataclass(slots=True, eq=False)
class AtSite:
    """What a run holds of one site. Jobs lost there and nodes that fail there say nothing of
    another site.

    `name` is that of the site, or empty if there is no other. `work` are the tasks as they would
    run there. `jobs` counts own jobs in its system, `used_node_s` what those had that are gone.
    `group` are the sites among which its tasks can choose, itself included. `trouble`: why no more
    is sent there. `paces`: how many times as long as expected the last tasks took. `preempted`: how
    often tasks were.
    """

    name: str
    work: Work
    requests: Requests
    losses: Losses
    avoidance: Avoidance = field(default_factory=Avoidance)
    individually: bool = False
    jobs: int = 0
    used_node_s: float = 0
    group: tuple[AtSite, ...] = ()
    trouble: str = ""
    paces: deque[float] = field(default_factory=lambda: deque(maxlen=_PACES))
    preempted: Counter[int] = field(default_factory=Counter)

    @property
    def pace(self) -> float:
        """How many times as long as expected tasks take there now, if that is more than once."""
        if len(self.paces) == _PACES:
            return max(1.0, median(self.paces))
        return 1.0

    @property
    def site(self) -> Site:
        """The site itself."""
        return self.work.site

    def has(self, task: int) -> bool:
        """Whether the task is to run there."""
        return self.work.mine is None or bool(self.work.mine[task])

    def of(self, tasks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the tasks that are to run there."""
        if self.work.mine is None:
            return tasks
        return tasks & self.work.mine

    def twice(self, ran_s: int, faster: float = 1.0) -> int:
        """Twice this time, for a site that is `faster`, but no more than its jobs can have, unless
        it was more."""
        return min(ceil(2 * ran_s / faster), max(ceil(ran_s / faster), self.requests.longest_s))

    def note_preemption(self, job: Job, at_s: int) -> dict[int, tuple[AtSite, int]]:
        """Tasks of a preempted job that were lost here too often, if others can take them: how long
        they stay away."""
        if not self.site.hazard.preemption_rate:
            return {}
        self.preempted.update(lost := job.open_tasks & job.running_since_s.keys() or job.open_tasks)
        others = [at for at in self.group if at is not self and not at.trouble]
        away = (task for task in sorted(lost) if self.preempted[task] >= self.site.max_preemptions)
        return {task: (self, at_s + FOR_S) for task in away if any(at.has(task) for at in others)}

    def counted(self, jobs: Iterable[Job], at_s: int) -> tuple[int, int, int, int, int]:
        """Jobs of its group: waiting, running, spare, at its other sites; and how long running ones
        should need yet."""
        waiting = running = spare = elsewhere = busy_s = 0
        for job in jobs:  # in one loop, since a trial asks often
            if job.at is not self:
                if job.at not in self.group:
                    continue
                elsewhere += 1
            if job.is_running:
                running += 1
                if not job.is_stopping and (left_s := job.expected_end_s - at_s) > busy_s:
                    began_s = (
                        job.started_s or 0
                    )  # later than now: the clock was set back, and must not add to its time
                    busy_s = max(
                        busy_s, left_s if began_s <= at_s else job.expected_end_s - began_s
                    )
            elif job.is_spare:
                spare += 1
            else:
                waiting += 1
        return waiting, running, spare, elsewhere, busy_s


def names_at(works: Sequence[Work]) -> list[str]:
    """What the sites are called in plans of jobs: if there is one, it needs no name."""
    if len(works) == 1:
        return [""]
    return [work.site.name for work in works]


def join_groups(sites: Sequence[AtSite]) -> None:
    """Sites that share tasks, or have both a third in common, are in one group: a task can be moved
    among them."""
    for at in sites:
        at.group = (at,)
    for one, other in combinations(sites, 2):
        if (
            other not in one.group
            and (one.of(other.of(np.ones(len(one.work.workflow), dtype=bool)))).any()
        ):
            together = {*one.group, *other.group}
            for at in together:
                at.group = tuple(site for site in sites if site in together)


def at_site(work: Work, terms: Terms, name: str) -> AtSite:
    """A site of a run that has not started."""
    return AtSite(name, work, terms.requests(work.site), Losses(terms.patience))


def descendants(
    children: Sequence[Iterable[int]],
    done: Sequence[bool],
    tasks: Iterable[int],
    loose: Mapping[int, Container[int]] = _NONE,
) -> set[int]:
    """What cannot be done before these are; a task that is done needs them no more, nor one of
    its `loose` parents."""
    given = set(tasks)
    found = set(given)
    stack = list(given)
    while stack:
        parent = stack.pop()
        for child in children[parent]:
            if child not in found and not done[child] and parent not in loose.get(child, ()):
                found.add(child)
                stack.append(child)
    return found - given


def expect_longer(
    expected_s: list[int], sites: Sequence[AtSite], job: Job, at_s: int, apart: Container[int] = ()
) -> None:
    """A task lost while running takes twice as long as it had, if a site allows that; else it might
    be lost forever.

    It had no longer than its job, whatever a clock says that was set in between. `apart`: tasks
    that kept something.
    """
    most_s = job.at.site.walltime_s(job.plan.requested_s) or job.plan.requested_s
    had = {task: min(at_s - begun, most_s) for task, begun in job.running_since_s.items()}
    longer = {task: job.at.twice(ran_s) for task, ran_s in had.items() if task not in apart}
    if changed := {task: time for task, time in longer.items() if time > expected_s[task]}:
        _expect(expected_s, sites, job.at, changed, had)


def give_more_memory(
    needs: list[Need], sites: Sequence[AtSite], job: Job, used: Mapping[int, int]
) -> set[int]:
    """Tasks that ran out of memory get twice what they had or `used`, whichever is more, within
    what nodes have. Which do so.

    One that states no memory shared a node with all that fitted by their cores, so if its use is
    not known it gets all the memory of such a node.
    """
    wanted = {
        task: 2 * max(needs[task].memory_bytes, used_bytes) or job.node_bytes
        for task, used_bytes in used.items()
    }
    for at in sites:
        memory = at.work.workflow.memory_bytes.copy()
        for task, more in wanted.items():
            memory[task] = max(int(memory[task]), min(more, at.work.most_memory_bytes(needs[task])))
        if at is job.at:
            given = {task for task in wanted if memory[task] > needs[task].memory_bytes}
        at.work = at.work.needing(memory)
    for task in given:
        needs[task] = needs[task]._replace(
            memory_bytes=int(job.at.work.workflow.memory_bytes[task])
        )
    return given


class Pieces:
    """What is kept of tasks with checkpoints, and so what is left of them when they leave a job."""

    def __init__(self) -> None:
        self.saved: dict[int, tuple[int, int]] = {}
        """What is done of a task, in seconds, and how many pieces in a row ran out of time and
        added nothing."""
        self.open: dict[int, tuple[TaskCheckpointed, AtSite, int]] = {}
        """The same of tasks in jobs: at which site, and for how long they had run there."""

    def hear(self, event: TaskCheckpointed, job: Job) -> list[Action]:
        """A job that has kept something was of use."""
        if event.task in job.open_tasks:
            self.open[event.task] = (
                event,
                job.at,
                event.at_s - job.running_since_s.get(event.task, event.at_s),
            )
            if event.done_s > self.saved.get(event.task, (0, 0))[0]:
                job.has_finished_a_task = True
                job.at.losses.forget()
        return []

    def leave(self, task: int, expected_s: list[int], sites: Sequence[AtSite]) -> None:
        """What is left of it counts from now on. If all that was expected of it is done, that is
        as long again."""
        if task not in self.open:
            return
        event, at, ran_s = self.open.pop(task)
        expected = int(at.work.expected_s[task])
        more_s = event.done_s - self.saved.get(task, (0, 0))[0]
        if more_s < expected:
            left_s = expected - more_s
        else:
            left_s = more_s
        self.saved[task] = event.done_s, event.idle
        _expect(expected_s, sites, at, {task: max(left_s, 2 * ran_s) if event.idle else left_s})

    def forget(self, task: int) -> None:
        """It is done."""
        self.open.pop(task, None)
        self.saved.pop(task, None)


def _expect(
    expected_s: list[int],
    sites: Sequence[AtSite],
    there: AtSite,
    times: _Times,
    had: _Times | None = None,
) -> None:
    """Expect these times of tasks there, and what follows elsewhere; of those that `had` a time, no
    less than now."""
    for task, time in times.items():
        expected_s[task] = time
    for at in sites:
        expected = at.work.expected_s.copy()
        faster = at.site.speed / there.site.speed
        for task, time in times.items():
            if had is None:
                longer = ceil(time / faster)
            else:
                longer = max(at.twice(had[task], faster), expected[task])
            expected[task] = max(1, longer)
        at.work = at.work.expecting(expected)
