"""Further attempts at tasks that run: how many, when, and where.

A task gets copies only while it runs, so that none waits for parents on nodes of its own. They are
asked for by

- `replicas` of the task: that many attempts from its start on;
- `reliability`: as few as TOP (`strategies.top`) says, so that with this probability one of them
  is not lost;
- `speculate`: one more when the latest attempt is late: it has run LATE times as long as expected,
  as things go at its site, and longer by what a job takes to start.

The last two only if they pay: all tasks that could start run, and a second try after a loss
would delay the end of the workflow. If there is time left, a copy starts as late as it may; most
are then never needed.

Rule 1: a task has at most MOST attempts at a time, each in another job, all where the same files
are seen.
Rule 2: a copy goes to idle nodes of a running job first (`agent.desk`), and to the queue if none
has taken it.
Rule 3: copies leave half of the jobs that the cap still allows to tasks that have none.
Rule 4: pure but for `wait_s`; what is decided is journaled as any decision.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, prod
from typing import NamedTuple

import numpy as np

from windrow.manager.beliefs import AtSite, Job
from windrow.manager.core import Core
from windrow.manager.terms import CopyRules
from windrow.model import Step, format_duration
from windrow.model.graph import Adjacency
from windrow.model.wording import listed
from windrow.strategies.base import Decision, JobPlan
from windrow.strategies.levels import Work

MOST = 3
LATE = 1.5
OFFER_S = 6
"""How long agents have to take a copy before it is submitted; they look every second."""


class Due(NamedTuple):
    """A task that is due for copies, with which chance not all attempts are to be lost, how many it
    may have, and why.

    `left_s`: how long its attempt should run yet.
    """

    task: int
    wanted: float
    limit: int
    left_s: int
    why: str


@dataclass
class Copying:
    """Plans the copies of one run. `wait_s`: how long a job would wait at a site; inf if that
    cannot be had now."""

    core: Core
    rules: CopyRules
    steps: Callable[[], Sequence[Step]]
    may_copy: Callable[[int], bool]
    wait_s: Callable[[AtSite, int, int], float] = lambda _at, _nodes, _run_s: 0.0
    next_s: float = field(default=inf, init=False)
    """When a copy may be due though nothing happens."""
    _tails: tuple[Work | None, list[int]] = (None, [])

    def __post_init__(self) -> None:
        self.core.notes_pace = self.rules.speculate

    def decide(self, at_s: int) -> Decision:
        """The copies to submit now, each job on as many nodes as it needs to start all of its tasks
        at once."""
        self.next_s = inf
        if self.core.is_stopped or self.core.trouble:
            return Decision()
        found = [(due, at) for due in self.due(at_s) for at in self._chosen(due)]
        jobs = tuple(self._jobs([(due.task, due.left_s, at) for due, at in found]))
        copied = {task for job in jobs for task in job.copies}
        ids = [self.core.work.workflow.ids[task] for task in sorted(copied)]
        whys = dict.fromkeys(due.why for due, _ in found if due.task in copied)
        return Decision(jobs, why=f"copies of {listed(ids)} ({'; '.join(whys)})" if jobs else "")

    def due(self, at_s: int) -> Iterator[Due]:
        """The tasks that are due for copies."""
        core = self.core
        steps = self.steps()
        homes = self._homes()
        left = {
            t: max(0, job.running_since_s[t] + self._expected_s(job.at, t) - at_s)
            for t, job in homes.items()
        }
        able = [t for t in homes if self._is_able(t)]
        for t in able:
            if len(core.copies.jobs_of(t)) < steps[t].replicas:
                yield Due(t, inf, steps[t].replicas, left[t], f"replicas: {steps[t].replicas}")
        if self.rules and able and not self._has_others_to_start(homes):
            end_s = at_s + max(left_s + self._tail_s(t) for t, left_s in left.items())
            for t in able:
                yield from self._late_or_unsafe(t, homes[t].at, left[t], at_s, end_s)

    def _homes(self) -> dict[int, Job]:
        """The tasks that run in the jobs to which they belong, with these."""
        return {
            task: job
            for number, job in self.core.jobs.items()
            for task in job.running_since_s
            if self.core.job_of[task] == number
        }

    def _is_able(self, task: int) -> bool:
        """Whether a task that runs may have one more copy."""
        copies = self.core.copies
        return (
            len(copies.jobs_of(task)) < MOST
            and task not in copies.failed
            and self.core.is_ready(task)
            and self.may_copy(task)
        )

    def _has_others_to_start(self, running: Container[int]) -> bool:
        tasks = range(len(self.core.job_of))
        return any(self.core.is_ready(task) and task not in running for task in tasks)

    def _late_or_unsafe(
        self, task: int, at: AtSite, left_s: int, at_s: int, end_s: int
    ) -> Iterator[Due]:
        """One copy more if the task is late, or as many as make its loss unlikely; neither before
        a second try after a loss would delay the end of the workflow, at `end_s`."""
        overhead_s = self.core.terms.overhead_s
        expected_s = self._expected_s(at, task)
        from_s = end_s - self._tail_s(task) - expected_s - overhead_s
        late_s = inf
        if self.rules.speculate:
            late_s = max(from_s, self._late_s(task))
        unsafe_s = inf
        # one that is shorter should be done before a copy has started
        if self.rules.reliability and left_s > overhead_s:
            unsafe_s = from_s
        self.next_s = min([self.next_s, *(s for s in (late_s, unsafe_s) if s > at_s)])
        if late_s <= at_s:
            why = f"late, expected to take {format_duration(expected_s)}"
            yield Due(task, inf, len(self.core.copies.jobs_of(task)) + 1, left_s, why)
        elif unsafe_s <= at_s:
            wanted = self.rules.reliability
            yield Due(task, wanted, MOST, left_s, f"reliability {wanted:g}")

    def _late_s(self, task: int) -> float:
        """From when on all attempts at the task are late; never while one has not started."""
        jobs = [self.core.jobs[number] for number in self.core.copies.jobs_of(task)]
        if any(task not in job.running_since_s for job in jobs):
            return inf
        latest = max(jobs, key=lambda job: job.running_since_s[task])
        usual_s = self._expected_s(latest.at, task) * latest.at.pace
        return latest.running_since_s[task] + ceil(
            max(LATE * usual_s, usual_s + self.core.terms.overhead_s)
        )

    def _ends_s(self, sites: Sequence[AtSite], task: int, nodes: int) -> list[float]:
        """When a copy that is submitted now should end at each site."""
        found = []
        for at in sites:
            run_s = self._expected_s(at, task)
            wait_s = self.wait_s(at, nodes, run_s) if len(sites) > 1 else 0.0
            found.append(wait_s + self.core.terms.overhead_s + run_s)
        return found

    def _chosen(self, due: Due) -> list[AtSite]:
        """The sites of its new copies, by TOP: of all at which it may run, as often as it may."""
        task = due.task
        core = self.core
        jobs = [core.jobs[number] for number in core.copies.jobs_of(task)]
        held = [1 - job.at.site.hazard.survival(job.plan.nodes, due.left_s) for job in jobs]
        if prod(held) <= 1 - due.wanted:
            return []
        nodes = max(1, int(core.work.workflow.nodes[task]))
        sites = _sites_like(jobs[0].at, task)
        ends = self._ends_s(sites, task, nodes)
        risks = [1 - at.site.hazard.survival(nodes, self._expected_s(at, task)) for at in sites]
        # A copy is of use that ends before a second try would which starts when the first should
        # have ended.
        deadline_s = due.left_s + min(ends, default=0.0)
        again = MOST - 1
        end_s = [0.0] * len(jobs) + ends * again
        failure = held + risks * again
        which = range(len(jobs))
        from windrow.strategies.top import top  # noqa: PLC0415  (loaded only if tasks are copied)

        found = top(
            end_s, failure, wanted=due.wanted, deadline_s=deadline_s, limit=due.limit, held=which
        )
        return [sites[(r - len(jobs)) % len(sites)] for r in found[len(jobs) :] if end_s[r] < inf]

    def _jobs(self, chosen: Sequence[tuple[int, int, AtSite]]) -> Iterator[JobPlan]:
        """A job for each node's worth of copies, within the cap. No job has two of the same
        task."""
        for at in dict.fromkeys(at for _, _, at in chosen):
            groups: list[list[int]] = []
            for task in (task for task, _, where in chosen if where is at):
                fitting = (
                    g
                    for g in groups
                    if task not in g and self._nodes(at, [*g, task]) == self._nodes(at, g)
                )
                if (group := next(fitting, None)) is None:
                    groups.append([task])
                else:
                    group.append(task)
            for tasks in groups[: (at.site.cap - at.jobs + 1) // 2]:
                nodes = self._nodes(at, tasks)
                run_s = max(self._expected_s(at, task) for task in tasks)
                requested_s = at.requests.request_s(
                    ceil(run_s * (LATE if self.rules.speculate else 1))
                )
                yield JobPlan(
                    (),
                    nodes,
                    run_s,
                    requested_s,
                    site=at.name,
                    copies=tuple(tasks),
                    offered_s=OFFER_S,
                    part=at.work.part_of(np.array(tasks)),
                )

    def _nodes(self, at: AtSite, tasks: Sequence[int]) -> int:
        return at.work.nodes_needed(np.array(tasks))

    def _expected_s(self, at: AtSite, task: int) -> int:
        return int(at.work.expected_s[task])

    def _tail_s(self, task: int) -> int:
        """How long the longest chain of tasks takes that wait for this one."""
        work, tails = self._tails
        if work is not self.core.work:
            work = self.core.work
            w = self.core.work.workflow
            tails = chains_s(work, w.children, w.order.tolist()[::-1])
            self._tails = work, tails
        return tails[task]


def chains_s(work: Work, nexts: Adjacency, order: Sequence[int]) -> list[int]:
    """How long the longest chain behind each task takes, if each leads to its `nexts`, which come
    before it."""
    expected = work.expected_s.tolist()
    found = [0] * len(order)
    for task in order:
        found[task] = max(
            (expected[other] + found[other] for other in nexts.of(task).tolist()), default=0
        )
    return found


def _sites_like(home: AtSite, task: int) -> list[AtSite]:
    """Those of the group at which the task may run, and that see the same files."""
    return [
        at
        for at in home.group
        if at.has(task) and at.site.files == home.site.files and not at.trouble
    ]
