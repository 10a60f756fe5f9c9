"""The limits of a run, shared out to its jobs: a task that takes of one runs only within the share
of its job. Pure.

Law: the shares of all jobs together are never more than the limit. A job keeps its share as long as
it has tasks that may need it; then others can have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from windrow.model.allocation import Member, lasting_s
from windrow.model.resources import Counts
from windrow.model.rules import Take

if TYPE_CHECKING:
    from windrow.manager.beliefs import AtSite, Job
    from windrow.strategies.base import JobPlan

Shares = dict[str, int]


class RunLimits:
    """What tasks take of which limit, and what of that jobs have."""

    def __init__(self, jobs: Mapping[int, Job]) -> None:
        self._jobs = jobs
        self.takes: dict[int, Counts] = {}
        """What tasks take, if they take anything."""
        self.most: Shares = {}

    def learn(self, task: int, takes: Sequence[Take]) -> None:
        """What this task takes. The first to name a limit says how much there is of it."""
        self.takes.pop(task, None)
        for take in takes:
            self.most.setdefault(take.name, take.most)
        if takes:
            self.takes[task] = tuple(
                sorted((one.name, min(one.number, self.most[one.name])) for one in takes)
            )

    def _held(self, job: Job) -> Shares:
        """What a job may still need of its shares."""
        if not job.shares:
            return {}
        needed = Counter[str]()
        for task in job.open_tasks:
            needed.update(dict(self.takes.get(task, ())))
        return {name: min(share, needed[name]) for name, share in job.shares.items()}

    def free(self) -> Shares:
        """What no job has."""
        free = dict(self.most)
        for job in self._jobs.values():
            for name, number in self._held(job).items():
                free[name] -= number
        return free

    def without_room(self, tasks: Iterable[int]) -> list[int]:
        """Those of these tasks that would find nothing of what they take."""
        if not self.takes:
            return []
        free = self.free()
        return [task for task in tasks if not self._has_room(task, free)]

    def _has_room(self, task: int, free: Shares) -> bool:
        return all(number <= free[name] for name, number in self.takes.get(task, ()))

    def share_for(self, tasks: Iterable[int], free: Shares) -> Shares:
        """What a job of these tasks gets of what is free."""
        needed = Counter[str]()
        for task in tasks:
            needed.update(dict(self.takes.get(task, ())))
        return {name: min(free[name], number) for name, number in sorted(needed.items())}

    def fitted(
        self, plans: Sequence[JobPlan], at: AtSite, below: Mapping[int, Sequence[int]]
    ) -> tuple[JobPlan, ...]:
        """These plans without what finds no share, and what is `below` such tasks; and with time
        for tasks that wait for each other's shares."""
        free = self.free()
        out = set[int]()
        fitted = []
        for plan in plans:
            fits = [t for t in plan.tasks if t not in out and self._has_room(t, free)]
            for task in plan.tasks:
                if task not in out and not self._has_room(task, free):
                    out |= {task, *below[task]}
            tasks = tuple(task for task in fits if task not in out)
            share = self.share_for(tasks, free)
            for name, number in share.items():
                free[name] -= number
            copies = tuple(t for t in plan.copies if t not in self.takes)
            if tasks or copies:
                fitted.append(self._timed(replace(plan, tasks=tasks, copies=copies), share, at))
        return tuple(fitted)

    def _timed(self, plan: JobPlan, share: Shares, at: AtSite) -> JobPlan:
        """The same with the time that its tasks need within this share."""
        if not share or not plan.tasks:
            return plan
        tasks = np.array(plan.tasks)
        shape = plan.part or at.work.nodes_for(tasks)[0]
        members = at.work.members(tasks)
        lasting = lasting_s(
            plan.nodes,
            shape,
            {task: self.bound(task, member) for task, member in members.items()},
            shares=tuple(share.items()),
        )
        if lasting is None or lasting <= plan.run_s:
            return plan
        run_s = min(ceil(lasting), at.requests.longest_s)
        more_s = at.requests.request_s(run_s) - at.requests.request_s(plan.run_s)
        requested_s = plan.requested_s + max(0, more_s)
        if at.requests.max_request_s is not None:
            requested_s = min(requested_s, max(at.requests.max_request_s, plan.requested_s))
        return replace(plan, run_s=max(run_s, plan.run_s), requested_s=requested_s)

    def bound(self, task: int, member: Member, home: int = 0) -> Member:
        """The same member of a job with what it takes."""
        takes = self.takes.get(task)
        if takes is None:
            return member
        return member._replace(takes=takes, home=home)
