"""The core of a run: events in, actions out.

Rule 1: only `handle` changes it. Rule 2: no clock, chance or I/O in this file; time comes with the
events.
Rule 3: it does not know whether the queue is real.

The core says which task is in which job. When tasks start inside a job's allocation is for the
allocation to say (`model.allocation`): a job that starts before its predecessors are done waits
there, or gives all its tasks back if they would be too late, and one whose tasks are done gives its
nodes back. When a job is killed, its running tasks are lost and start again in a later job; jobs
that wait for them, and have not started, are stopped, and all that is left is cut again. A task
that failed for good blocks its descendants alone.

A task that is not done is a member of one job at most, and may be in other jobs as a copy besides
(`JobPlan.copies`). The first attempt to finish ends the task in all of them. If the member is
lost or failed while a copy lives, the copy becomes the member; and so it does if its job starts
before the member's.

A task may come after another one in a `loose` way (`model.rules`): it is enough that this one is
over. It waits for it like any other, in a job with it or not. If that one fails, the task is not
blocked but waits for it no more (`_follow_loose`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from windrow.manager.beliefs import (
    AtSite,
    Copies,
    Job,
    Pieces,
    at_site,
    descendants,
    expect_longer,
    give_more_memory,
    join_groups,
    names_at,
)
from windrow.manager.limits import RunLimits
from windrow.manager.terms import Terms
from windrow.model import Workflow
from windrow.model.allocation import Member
from windrow.model.cause import Cause
from windrow.model.nodes import Need
from windrow.storage.lifetimes import Lifetimes
from windrow.story import events as e
from windrow.story.events import Abandon, Action, Decide, Rank, StopJob, SubmitJob
from windrow.strategies.base import Decision, Forecast, LookAhead, OwnJob, View
from windrow.strategies.levels import Work, able

NO_SPACE = "no task that is left fits in the space that its files may take"


class Core:
    """What one run believes and wants."""

    def __init__(self, work: Work | Sequence[Work], terms: Terms) -> None:
        """A run that has not started. `work` is not changed, so that runs of the same workflow can
        share it.

        With several sites there is a work for each (`strategies.levels.works`). A task that may run
        at several of them goes where a decision puts it; such sites are a group
        (`beliefs.join_groups`), and are decided for together.
        """
        if isinstance(work, Work):
            works = [work]
        else:
            works = list(work)
        self.terms = terms
        self.sites = [
            at_site(one, terms, name) for one, name in zip(works, names_at(works), strict=True)
        ]
        self.site_of: list[int] = []
        """The first site at which each task may run, by its number."""
        self.jobs: dict[int, Job] = {}
        self.job_of: list[int | None] = []
        """The job in which each task is a member."""
        self.copies = Copies(self.jobs, self.job_of)
        self.held_up: Callable[[], Collection[int]] = lambda: ()
        """Tasks of which jobs would wait for files, with time only to run: what they read is on
        nodes of another job alone, or on its way from another place."""
        self.notes_pace = False  # of one site: for those who ask which tasks are late
        self.pieces = Pieces()
        self.moved: dict[
            int, tuple[AtSite, int]
        ] = {}  # tasks that have left a site, and until when they stay away
        self.submitted = 0
        self._open = 0
        self.is_stopped = False
        self.is_held = False
        """Whether someone keeps it open for tasks to come."""
        self.failed: set[int] = set()
        """Tasks that failed for good."""
        self.cancelled: set[int] = set()
        """Those of them that the user does not want."""
        self.recalled: dict[int, set[int]] = {}
        """Jobs in which tasks may still run that are no members of them: the user cancelled them,
        or a job that was given up has done them. Until that is over such a task is in no other."""
        self._called_back: dict[int, set[int]] = {}
        """Tasks that read what is to be made again, with the jobs that are to give them back."""
        self.blocked: set[int] = set()
        """Descendants of failed tasks: they cannot run."""
        self.trouble = ""  # why the run gives up, if it does
        self._times_undone: Counter[int] = (
            Counter()
        )  # how often tasks that were done are to run again
        self.limits = RunLimits(self.jobs)
        self.tries: Counter[int] = Counter()
        """How often tasks have failed that may be tried again."""
        self._know_no_rules()
        self.additions: set[str] = set()  # the ids of what was added to the workflow
        self._left = np.empty(0, dtype=bool)
        self._done = list[bool]()
        self._expected = list[int]()
        self._needs = list[Need]()
        self._children = list[list[int]]()
        self._open_parents = list[int]()
        self._grown: tuple[e.TasksAdded, list[Work]] | None = None
        self._ready: list[
            tuple[int, int, int]
        ] = []  # by priority, then the longest expected time first, then by number
        self.temporary = Lifetimes(
            {}, {}
        )  # files that are deleted when nothing needs them any more
        self._take_tasks()

    def _know_no_rules(self) -> None:
        """No task is known, nor a rule of one."""
        self._loose = dict[int, frozenset[int]]()  # by task, if it has such parents
        self._if_failed = dict[int, frozenset[int]]()  # by task, those of them that must fail
        self.skipped: set[int] = set()
        """Blocked, and not needed: what must fail for them has succeeded."""
        self._let_go = set[int]()  # parents for which no task waits any more in this way
        self._stopped = set[int]()  # tasks that were to run, and do not since one has failed
        self._stopping = set[int]()  # tasks whose failure lets no other start
        self._early = Counter[
            int
        ]()  # how often tasks came back since what they wait for takes longer
        self._priority = Counter[int]()
        self.ranked: dict[int, int] = {}
        """Priorities that the user has given while the run went on."""

    def _take_tasks(self) -> None:
        """Take in the tasks of the work that are not here yet: at first all of them, then those
        that are added. What is here already is not looked through."""
        workflow = self.work.workflow
        first = len(self._done)
        new = range(first, len(workflow))
        if not first or workflow.has_temporary:
            done = (task for task in range(first) if self._done[task])
            self.temporary = Lifetimes.of(workflow, done, self.temporary)
        self._needs += workflow.needs(slice(first, None))
        join_groups(self.sites)
        self._settle(first)
        self._children += [[] for _ in new]
        self.job_of += [None] * len(new)
        self._done += [False] * len(new)
        self._left = np.append(self._left, np.ones(len(new), dtype=bool))
        self._open += len(new)
        for task in new:
            self._learn_rules(task)
        self._take_edges(workflow, first)
        if self.failed:
            self._block_added(new)
        for task in new:
            if self._open_parents[task] == 0:
                insort(self._ready, self._turn(task))

    def _turn(self, task: int) -> tuple[int, int, int]:
        return -self._priority[task], -self._expected[task], task

    def _learn_rules(self, task: int) -> None:
        rules = self.work.workflow.rules.get(task)
        for known in (self._loose, self._priority, self._if_failed):
            known.pop(task, None)
        self._stopping.discard(task)
        if task in self.ranked:
            self._priority[task] = self.ranked[task]
        if rules is None:
            self.limits.learn(task, ())
            return
        self.limits.learn(task, rules.takes)
        if rules.priority:
            self._priority[task] = self.ranked.get(task, rules.priority)
        if rules.stops:
            self._stopping.add(task)
        if rules.loose:
            self._loose[task] = self.work.workflow.loose_parents(task)
        if rules.if_failed:
            self._if_failed[task] = self.work.workflow.failing_parents(task)

    def open_parents(self, task: int) -> set[int]:
        """The tasks for which it waits."""
        loose = self._loose.get(task, frozenset())
        parents = self.work.workflow.parents.of(task).tolist()
        return {p for p in parents if not (self._done[p] or (p in loose and p in self._let_go))}

    def _take_edges(self, workflow: Workflow, first: int) -> None:
        """For which tasks those from this one on wait."""
        start = workflow.parents.start[first:].tolist()
        index = workflow.parents.index[start[0] :].tolist()
        for number, (begin, end) in enumerate(pairwise(start)):
            parents = index[begin - start[0] : end - start[0]]
            for parent in parents:
                self._children[parent].append(first + number)
            waits = sum(not self._done[parent] for parent in parents)
            if first + number in self._loose:
                waits = len(self.open_parents(first + number))
            self._open_parents.append(waits)

    def _settle(self, first: int) -> None:
        """At which site the tasks from this one on may run first, and what is expected of them
        there."""
        if len(self.sites) == 1:
            self.site_of += [0] * (len(self.work.workflow) - first)
            self._expected += self.work.expected_s[first:].tolist()
            return
        everything = np.ones(len(self.work.workflow), dtype=bool)
        able = [at.of(everything)[first:] for at in self.sites]
        sites = np.argmax(able, axis=0).tolist()
        self.site_of += sites
        expected = [at.work.expected_s[first:].tolist() for at in self.sites]
        self._expected += [expected[site][n] for n, site in enumerate(sites)]

    def _block_added(self, new: Iterable[int]) -> None:
        """Tasks that joined and come after failed ones cannot run."""
        parents = self.work.workflow.parents
        out = self.failed | self.blocked
        none = frozenset[int]()
        below = {
            task
            for task in new
            if not out.isdisjoint(set(parents.of(task).tolist()) - self._loose.get(task, none))
        }
        if self._has_stopped:
            below |= {task for task in new if task not in self._loose}
        blocked = below | self._descendants(below)
        self.blocked |= blocked
        self._left[sorted(blocked)] = False

    @property
    def is_complete(self) -> bool:
        """Whether every task is done, or not needed."""
        return self._open == len(self.skipped)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be done: every task done or out of reach and no more to come,
        or the run stopped, and no job left."""
        if self.is_stopped or self.trouble:
            return not self.jobs
        is_at_end = self._open == len(self.failed) + len(self.blocked)
        return is_at_end and not self.is_held and not self.jobs

    def is_done(self, task: int) -> bool:
        """Whether the task has done its work."""
        return self._done[task]

    def done(self) -> NDArray[np.bool_]:
        """Which tasks have done their work."""
        return np.array(self._done, dtype=bool)

    @property
    def work(self) -> Work:
        """The tasks as they would run at the first site."""
        return self.sites[0].work

    def at(self, site: str) -> AtSite:
        """What is held of the site of this name; by an empty one goes the first."""
        if site:
            return next(at for at in self.sites if at.name == site)
        return self.sites[0]

    def own_jobs(self, site: str = "") -> dict[int, OwnJob]:
        """The jobs in a site's system that are to stay, by number, as those who play courses ahead
        must know them."""
        at = self.at(site)
        jobs = self.jobs.items()
        mine = ((number, job) for number, job in jobs if job.at is at and not job.is_spare)
        return {number: job.as_own(number) for number, job in mine if not job.is_stopping}

    def kept_jobs(self) -> list[int]:
        """Running jobs that have nothing left to do, and keep their nodes for tasks to come: they
        stand in the way of no other."""
        if not self.is_held:
            return []
        jobs = self.jobs.items()
        return [n for n, job in jobs if job.is_running and job.is_empty and job.taken_by is None]

    def is_ready(self, task: int) -> bool:
        """Whether it could start: it is open, and its parents are done."""
        return not (self._open_parents[task] or self._done[task] or task in self.failed)

    def called_back(self) -> tuple[int, ...]:
        """Tasks that jobs are to give back, since what they read is to be made again."""
        back = self._called_back.items()
        return tuple(t for t, jobs in back if not jobs.isdisjoint(self.copies.jobs_of(t)))

    def children_of(self, task: int) -> list[int]:
        """The tasks that wait for this one."""
        return self._children[task]

    def members(self, number: int) -> dict[int, Member]:
        """The open tasks and copies of a job, as its allocation must know them."""
        needs = self._needs
        parents = self._open_parents
        children = self._children
        at = self.jobs[number].at
        if len(at.group) == 1:
            expected = self._expected
        else:
            expected = at.work.expected_s.tolist()
        tasks = sorted(self.jobs[number].open_tasks | self.jobs[number].copies)
        priority = self._priority
        members = {
            t: Member(needs[t], expected[t], parents[t], children[t], priority[t]) for t in tasks
        }
        if self.limits.takes:
            members = {t: self.limits.bound(t, one, number) for t, one in members.items()}
        return members

    def handle(self, event: e.Event) -> list[Action]:
        """Take in what happened; what is to be done about it, in order."""
        actions = self._hear(event)
        if self._stopped:
            actions.append(Abandon(tuple(sorted(self._stopped))))
            self._stopped = set()
        if self._if_failed and not isinstance(event, e.TaskStarted | e.JobSubmitted | e.FileEvent):
            actions += self._follow_skipped()
        if self._loose or self._let_go:
            actions += self._follow_loose()
        return actions

    def _follow_skipped(self) -> list[Action]:
        """What must fail for some tasks has succeeded, or may fail after all."""
        wanted = self._to_skip()
        new = wanted - self.skipped
        back = self.skipped - wanted
        self.skipped = wanted
        actions: list[Action] = []
        if new:
            for task in new - self.blocked:
                if self._left[task] and self._open_parents[task] == 0:
                    self._unready(task)
            actions += self._block(new)
        if back:
            self.blocked = self._blocked_by_failed()
            again = sorted(task for task in back - self.blocked if self.job_of[task] is None)
            for task in again:
                self._put_back(task)
            actions += self._decide_if_useful(self._homes(again))
        return actions

    def _to_skip(self) -> set[int]:
        """Tasks that are for a failure which has not come, and what needs them."""
        found = set[int]()
        while True:
            roots = {
                task
                for task, parents in self._if_failed.items()
                if any(self._done[parent] or parent in found for parent in parents)
            }
            below = roots | self._descendants(roots)
            wanted = {t for t in below if not self._done[t] and self.job_of[t] is None}
            wanted -= self.failed
            if wanted == found:
                return found
            found = wanted

    def _follow_loose(self) -> list[Action]:
        """No task waits in a loose way for one that will not run; nor, if that may run after all,
        has it done so."""
        awaited = set[int]().union(*self._loose.values())
        over = {p for p in awaited & (self.failed | self.blocked) if not self._done[p]}
        changed = over ^ self._let_go
        self._let_go = over
        ready = []
        for task in {child for parent in changed for child in self._children[parent]}:
            if self._loose.get(task, frozenset()).isdisjoint(changed):
                continue
            is_waiting = self._left[task]
            if is_waiting and self._open_parents[task] == 0:
                self._unready(task)
            self._open_parents[task] = len(self.open_parents(task))
            if is_waiting and self._open_parents[task] == 0:
                insort(self._ready, self._turn(task))
                ready.append(task)
        if not ready:
            return []
        return self._decide_if_useful(self._homes(sorted(ready)))

    def _hear(self, event: e.Event) -> list[Action]:
        if isinstance(event, e.TaskEvent):
            number = self.job_of[event.task]
            return self._reconsidered_if_kept(number, self._hear_of_task(event))
        if isinstance(event, e.JobEvent):
            return self._hear_of_job(event)
        match event:
            case e.JobsPlanned():
                return self._jobs_planned(event)
            case e.FilesMoved() | e.MoveFailed() | e.FilesGone():
                return self._hear_of_files(event)
            case e.RunBegan() | e.RunHeld() | e.RunClosed() | e.RunStopped():
                return self._run_changed(event)
            case e.TasksAdded():
                return self._tasks_added(event)
            case e.TasksCancelled():
                return self._tasks_cancelled(event)
            case e.TasksAmended():
                return self._tasks_amended(event)
            case e.TasksRanked():
                return self._tasks_ranked(event)
            case _:
                assert_never(event)

    def _hear_of_files(self, event: e.FileEvent) -> list[Action]:
        self.temporary.deleted(*e.gone_files(event))
        if isinstance(event, e.FilesMoved) and e.is_local(event):
            return self.reconsidered()
        return []

    def reconsidered(self) -> list[Action]:
        """What is due since tasks are held up no more."""
        return self._decide_if_useful(self.sites)

    def _run_changed(self, event: e.RunEvent) -> list[Action]:
        match event:
            case e.RunBegan():
                return self._run_began(event)
            case e.RunHeld() | e.RunClosed():
                self.is_held = isinstance(event, e.RunHeld)
                return []
            case e.RunStopped():
                self.is_stopped = True
                # One without tasks leaves by itself, unless another's run on its nodes.
                hosts = {job.taken_by for job in self.jobs.values()}
                return [
                    self._stop(number)
                    for number, job in self.jobs.items()
                    if number in hosts or not job.is_stopping
                ]

    def _hear_of_task(self, event: e.TaskEvent) -> list[Action]:
        match event:
            case e.TaskStarted():
                return self._task_started(event)
            case e.TaskFinished() | e.TaskKept():
                by = event.by if isinstance(event, e.TaskFinished) else None
                return self._task_finished(event.task, event.at_s, by)
            case e.TaskCheckpointed():
                return self.pieces.hear(event, self.jobs[event.job])
            case e.TaskRetried():
                return self._task_retried(event)
            case e.TaskFailed():
                return self._task_failed(event.task)
            case e.TaskDropped() | e.CopyFailed():
                return self._task_dropped(event)
            case e.TaskUndone():
                return self._task_undone(event.task)
            case e.DiskRefused():
                return self._disk_refused(event)
            case _:
                assert_never(event)

    def _reconsidered_if_kept(self, number: int | None, actions: list[Action]) -> list[Action]:
        """These actions; and if the job has done all that it had, and keeps its nodes, what joined
        the run meanwhile is decided on: no end of the job will bring that about."""
        if not self.is_held or number not in self.kept_jobs():
            return actions
        decided = {action.site for action in actions if isinstance(action, Decide)}
        due = self._decide_if_useful(dict.fromkeys(self.jobs[number].at.group))
        return actions + [one for one in due if isinstance(one, Decide) and one.site not in decided]

    def _hear_of_job(self, event: e.JobEvent) -> list[Action]:
        match event:
            case e.JobSubmitted():
                return []
            case e.JobStarted() | e.JobTaken():
                return self._job_started(event)
            case e.JobEnded():
                return self._job_ended(event)
            case e.JobKilled():
                return self._job_killed(event)
            case e.JobRejected():
                job = self.jobs[event.job]
                job.is_stopping = True
                return [*self._give_up_site(job.at, event.why), *self._job_left(event.job)]
            case e.JobWithdrawn():
                job = self.jobs[event.job]
                self.moved |= dict.fromkeys(job.open_tasks, (job.at, event.until_s))
                if job.is_stopping:
                    return []
                return [self._stop(event.job)]
            case _:
                assert_never(event)

    def _task_started(self, event: e.TaskStarted) -> list[Action]:
        job = self.jobs[event.job]
        job.has_begun = True
        is_here = event.task in job.open_tasks or event.task in job.copies
        if is_here:  # else another job has done it
            job.running_since_s[event.task] = event.at_s
        return []

    def view(
        self,
        at_s: int,
        forecast: Forecast,
        site: str = "",
        elapsed_s: int = 0,
        futures: LookAhead | None = None,
    ) -> View:
        """What a strategy may know at this time of one site: the tasks that are to run there, and
        the jobs there."""
        at = self.at(site)
        kept = self.kept_jobs()
        if kept:
            jobs = [job for number, job in self.jobs.items() if number not in kept]
        else:
            jobs = list(self.jobs.values())
        waiting, running, spare, elsewhere, busy_s = at.counted(jobs, at_s)
        work = at.work
        avoided = at.avoidance.at(at_s)
        if avoided:  # the work on the other nodes
            widest = max(
                (need.nodes for task, need in enumerate(self._needs) if at.has(task)), default=1
            )
            work = work.within(max(work.site.nodes - len(avoided), 1, widest))
        return View(
            work=work,
            left=(left := self._within_reach(at, at_s)),
            ready=tuple(task for *_, task in self._ready if left[task]),
            jobs_waiting=waiting,
            jobs_running=running,
            busy_s=busy_s,
            cap=work.site.cap - spare + elsewhere,
            individually=at.individually,
            request=at.requests.request_s,
            requests=at.requests.requests_s,
            forecast_with_margin=self.terms.forecast_with_margin,
            forecast=forecast,
            futures=futures,
            elapsed_s=elapsed_s,
        )

    def _within_reach(self, at: AtSite, at_s: int) -> NDArray[np.bool_]:
        """What is left and may run at this site, without what waits for tasks that must run
        elsewhere first, or for files."""
        left = at.of(self._left).copy()
        held_up = [task for task in self.held_up() if left[task]]
        waiting = (task for task in self._if_failed if left[task])
        held_up += [task for task in waiting if self._open_parents[task]]
        held_up += self.limits.without_room(t for t in self.limits.takes if left[t])
        held_up += [t for t in sorted(self._early) if left[t] and self._is_awaiting(t, at)]
        held_up += [task for task, jobs in self.recalled.items() if jobs and left[task]]
        if held_up:
            left[held_up] = False
            left[sorted(self._after(held_up))] = False
        if len(at.group) > 1:
            left[
                [
                    task
                    for task, (was_at, until_s) in self.moved.items()
                    if was_at is at and at_s < until_s
                ]
            ] = False
            away = (self._left & ~left).nonzero()[0].tolist()
            left[sorted(self._after(t for t in away if any(o.has(t) for o in at.group)))] = False
        return left

    def _is_awaiting(self, task: int, at: AtSite) -> bool:
        """Whether another job for this task would be too early as well: what it comes after cannot
        run at sites of this group, whose strategy does not know when that will be done; or is in a
        job that was expected to end, and did not, more than once."""
        waits = {task}
        stack = [task]
        while stack:
            new = self.open_parents(stack.pop()) - waits
            waits |= new
            stack += new
        if self._early[task] > 1 and any(self.job_of[one] is not None for one in waits):
            return True
        return any(not any(other.has(one) for other in at.group) for one in waits)

    def check(self) -> None:
        """Assert what must always hold; for tests."""
        placed = [task for job in self.jobs.values() for task in job.open_tasks]
        assert len(placed) == len(set(placed)), "a task is in two jobs"
        assert all(self.job_of[task] is not None for task in placed)
        assert not self._left[placed].any() if placed else True
        self.copies.check(self._done, self.job_of)
        out = (self.failed | self.blocked).difference(placed)
        assert int(self._left.sum()) + len(placed) + len(out) == self._open, "a task was lost"
        kept = [self.jobs[number].at for number in self.kept_jobs()]
        for at in self.sites:
            assert at.jobs == sum(job.at is at for job in self.jobs.values()), "a job was lost"
            assert at.jobs - kept.count(at) <= at.site.cap, "more jobs than the cap"

    def _run_began(self, event: e.RunBegan) -> list[Action]:
        back: list[int] = []
        if event.retry:
            never = self.cancelled | self._descendants(self.cancelled)
            out = (self.failed | self.blocked) - never
            back = sorted(task for task in out if self.job_of[task] is None)
            for forgotten in (self.failed, self.copies.failed, self.blocked, self._times_undone):
                forgotten.clear()
            self.skipped = set()
            self._forget_tries(list(self.tries))
            self.failed |= self.cancelled
            self.blocked |= never - self.cancelled
        self.is_stopped = False
        self.trouble = ""
        for at in self.sites:
            at.losses.forget_all()
            at.trouble = ""
        for task in back:
            self._put_back(task)
        return self._decide_if_useful(self.sites)

    def extended(self, event: e.TasksAdded) -> list[Work]:
        """The work of each site with tasks that join: at the first one, or any of its group that
        can take them. Asked twice of one event it is worked out once."""
        if self._grown is not None and self._grown[0] is event:
            return self._grown[1]
        workflow = event.to(self.work.workflow)
        first = len(self._done)
        group = self.sites[0].group
        fits = [
            able(workflow, at.site, event.added.steps, first)[first:] & (at in group)
            for at in self.sites
        ]
        fits[0] |= ~np.any(fits, axis=0)
        works = [
            at.work.extended(workflow, join) for at, join in zip(self.sites, fits, strict=True)
        ]
        self._grown = event, works
        return works

    def _tasks_added(self, event: e.TasksAdded) -> list[Action]:
        self.additions.add(event.id)
        if not event.added.tasks:
            return []
        for at, work in zip(self.sites, self.extended(event), strict=True):
            at.work = work
        self._grown = None
        self._take_tasks()
        return self._decide_if_useful(self.sites[:1])

    def _tasks_cancelled(self, event: e.TasksCancelled) -> list[Action]:
        actions: list[Action] = []
        gone = [task for task in event.tasks if not self._done[task]]
        for task in gone:
            jobs = self.copies.jobs_of(task)
            if jobs:
                self.recalled.setdefault(task, set()).update(jobs)
            actions += [StopJob(number) for number in self.copies.close_all(task)]
            if event.to_amend:  # one that waits may wait for long
                idle = (n for n in jobs if not self.jobs[n].is_running)
                actions += [self._stop(n) for n in idle if not self.jobs[n].is_stopping]
            self._close(task)
            self.failed.add(task)
            self.cancelled.add(task)
        self.blocked -= self.failed
        blocked = self._block({*gone, *self._descendants(gone)})
        return [Abandon(tuple(gone), ends=True), *blocked, *actions]

    def amended(self, event: e.TasksAmended) -> list[Work]:
        """The work of each site with tasks that change. UserError if that cannot be."""
        workflows = [event.to(at.work.workflow) for at in self.sites]
        changed = np.array([workflows[0].number(task.id) for task in event.now.tasks])
        works = zip(self.sites, workflows, strict=True)
        return [at.work.amended(workflow, changed) for at, workflow in works]

    def _tasks_amended(self, event: e.TasksAmended) -> list[Action]:
        self.additions.add(event.id)
        tasks = [self.work.workflow.number(task.id) for task in event.now.tasks]
        for task in tasks:
            if self._left[task] and self._open_parents[task] == 0:
                self._unready(task)
            for parent in self.work.workflow.parents.of(task).tolist():
                self._children[parent].remove(task)
        for at, work in zip(self.sites, self.amended(event), strict=True):
            at.work = work
        parents = self.work.workflow.parents
        for task in tasks:
            self._learn_rules(task)
            self.tries.pop(task, None)
            site = self.sites[self.site_of[task]]
            self._expected[task] = int(site.work.expected_s[task])
            self._needs[task] = self.work.workflow.task(task).need
            waits_for = parents.of(task).tolist()
            for parent in waits_for:
                insort(self._children[parent], task)
            self._open_parents[task] = len(self.open_parents(task))
            if self._left[task] and self._open_parents[task] == 0:
                insort(self._ready, self._turn(task))
        self.temporary = Lifetimes.of(
            self.work.workflow, (t for t, done in enumerate(self._done) if done), self.temporary
        )
        return self._unblocked(set(tasks))

    def _tasks_ranked(self, event: e.TasksRanked) -> list[Action]:
        for task in event.tasks:
            is_ready = self._left[task] and self._open_parents[task] == 0
            if is_ready:
                self._unready(task)
            self._priority[task] = self.ranked[task] = event.priority
            if is_ready:
                insort(self._ready, self._turn(task))
        placed = tuple(task for task in event.tasks if self.copies.jobs_of(task))
        return [Rank(placed, event.priority)] if placed else []

    def _unblocked(self, ready: set[int]) -> list[Action]:
        """What was cancelled or failed of these is not any more; what only that blocked is left
        again."""
        before = self.blocked | (self.failed & ready)
        self.failed -= ready
        self.cancelled -= ready
        self.copies.failed -= ready
        self.blocked = self._blocked_by_failed()
        newly = sorted(t for t in self.blocked - before if self._left[t])
        back = [t for t in sorted(before - self.blocked) if self.job_of[t] is None]
        actions: list[Action] = []
        if newly:
            for task in newly:
                if self._open_parents[task] == 0:
                    self._unready(task)
            self._left[newly] = False
            actions.append(Abandon(tuple(newly)))
        for task in back:
            self._put_back(task)
        return [*actions, *self._decide_if_useful(self._homes([*back, *ready]))]

    def _jobs_planned(self, event: e.JobsPlanned) -> list[Action]:
        for at in self.at(event.site).group:
            at.individually |= event.decision.individually
        actions: list[Action] = []
        for plan in event.decision.jobs:
            number = self.submitted
            self.submitted += 1
            job = Job(plan, set(plan.tasks), self.at(plan.site))
            if self.limits.takes:
                job.shares = self.limits.share_for(plan.tasks, self.limits.free())
            self.jobs[number] = job
            job.at.jobs += 1
            for task in plan.tasks:
                self.job_of[task] = number
                if self._open_parents[task] == 0:
                    self._unready(task)
            for task in plan.copies:
                if (
                    self.job_of[task] is not None and task not in job.open_tasks
                ):  # else it is done or failed by now
                    self.copies.add(task, number)
            actions.append(SubmitJob(number, plan))
        self._left[[task for plan in event.decision.jobs for task in plan.tasks]] = False
        return actions

    def _job_started(self, event: e.JobStarted | e.JobTaken) -> list[Action]:
        job = self.jobs[event.job]
        if isinstance(event, e.JobTaken):
            job.taken_by = event.by
            if event.by in self.jobs:
                self.jobs[
                    event.by
                ].has_begun = True  # its nodes are at work, though not with its own tasks
        end_s = max(event.at_s, job.others_end_s(self.jobs, self.job_of)) + job.plan.run_s
        job.is_running = True
        if job.taken_by is None:
            job.started_s = event.at_s
        else:
            job.started_s = None
        if self.terms.busy_is_request:
            job.expected_end_s = event.at_s + job.plan.requested_s
        else:
            job.expected_end_s = end_s
        for task in sorted(job.copies if not job.is_stopping else ()):  # it is where it runs first
            if (home := self.job_of[task]) is not None and not self.jobs[home].is_running:
                self.jobs[home].open_tasks.discard(task)
                self._promote(task, event.job)
                self.copies.add(task, home)
        return self._decide_if_useful(job.at.group)

    def _let_go_of_children(self, task: int) -> list[int]:
        """The task was a parent that they waited for; those that now can start."""
        became_ready: list[int] = []
        self._early.pop(task, None)
        for child in self._children[task]:
            self._early.pop(child, None)
            self._open_parents[child] -= 1
            if self.is_ready(child) and self.job_of[child] is None and child not in self.blocked:
                insort(self._ready, self._turn(child))
                became_ready.append(child)
        return became_ready

    def _task_finished(self, task: int, at_s: int, by: int | None = None) -> list[Action]:
        self.recalled.pop(task, None)
        if self._done[task]:
            return []
        number = self.job_of[task]
        if by is not None and number is not None and task in self.jobs[number].running_since_s:
            self.recalled[task] = {number}
        is_copied = task in self.copies.of
        if number is not None and (self.notes_pace or len(self.jobs[number].at.group) > 1):
            self.jobs[number].note_pace(task, at_s)
        actions: list[Action] = []
        if is_copied:
            actions += map(StopJob, self.copies.close_all(task))
        is_progress = self._times_undone[task] <= 1
        if (home := self._close(task)) is not None:
            home.has_finished_a_task |= is_progress
            if number is not None and home.is_empty and (is_copied or not home.is_running):
                # another job had done it, which came to light only now
                actions.append(StopJob(number))
        self._done[task] = True
        self.failed.discard(task)  # a job that was given up has done it, or what it needed
        self.blocked.discard(task)
        self.temporary.done(task)
        self._open -= 1
        self.pieces.forget(task)
        if is_progress:
            (self.sites[self.site_of[task]] if home is None else home.at).losses.forget()
        if task in self.cancelled:  # before it could be ended
            actions += self._unblocked({task})
        became_ready = self._let_go_of_children(task)
        self.tries.pop(task, None)
        if task in self.limits.takes:  # what it took is for others
            became_ready += self._waiting_for_shares()
        if became_ready:
            return [*actions, *self._decide_if_useful(self._homes(became_ready))]
        return actions

    def _task_undone(self, task: int) -> list[Action]:
        """It is to run again, and those that come after it wait for it again."""
        was_done = self._done[task]
        actions = self._undone(task)
        if was_done and not self._done[task] and task not in self.blocked:
            return [*self._call_back_readers(task), *actions]
        return actions

    def _undone(self, task: int) -> list[Action]:
        """The same; of what is in jobs nothing is called back."""
        self.copies.failed.discard(task)
        if (
            task in self.failed and self.job_of[task] is None
        ):  # nor is blocked any more what it alone blocked
            self.failed.remove(task)
            self.cancelled.discard(task)
            blocked = self.blocked
            self.blocked = self._blocked_by_failed()
            back = [
                other
                for other in sorted({task, *blocked} - self.blocked)
                if self.job_of[other] is None
            ]
            for other in back:
                self._put_back(other)
            return self._decide_if_useful(self._homes(back))
        if not self._done[task]:
            return []
        self._done[task] = False
        self._times_undone[task] += 1
        self.temporary.undone(task)
        self._open += 1
        for child in self._children[task]:
            if self._open_parents[child] == 0 and self._left[child]:
                self._unready(child)
            self._open_parents[child] += 1
        if task in self._descendants(self.failed | self.blocked):  # which failed while it was done
            return self._block({task, *self._descendants({task})})
        self._put_back(task)
        return self._decide_if_useful(self._homes([task]))

    def _call_back_readers(self, maker: int) -> list[Action]:
        """What reads of this task, and what comes after that in the same job, is not to start on
        what is not there or half-made: jobs give it back. Those that have nothing else to do, and
        wait, go."""
        readers = [t for t in self._children[maker] if maker not in self._loose.get(t, ())]
        stops: list[Action] = []
        back = set[int]()
        for number in sorted({n for task in readers for n in self.copies.jobs_of(task)}):
            job = self.jobs[number]
            tasks = job.open_tasks | job.copies
            first = tasks.intersection(readers)
            mine = tasks & (first | self._descendants(first))
            for task in mine:
                self._called_back.setdefault(task, set()).add(number)
            back |= mine
            if mine == tasks and not job.is_running and not job.is_stopping:
                stops.append(self._stop(number))
        if not back:
            return []
        return [Abandon(tuple(sorted(back)), again=True), *stops]

    def _task_failed(self, task: int) -> list[Action]:
        if self._done[task]:  # in a job that was given up
            return []
        self.recalled.pop(task, None)
        gone = [StopJob(number) for number in self.copies.close_all(task)]
        self._close(task)
        self.failed.add(task)
        self._forget_tries([task])
        actions = self._block({task, *self._descendants({task})}, *gone)
        if task in self._stopping:
            actions += self._stop_the_rest()
        if task in self.limits.takes:
            actions += self._decide_if_useful(self._homes(self._waiting_for_shares()))
        return actions

    def _waiting_for_shares(self) -> list[int]:
        return [task for task in self.limits.takes if self._left[task]]

    def _stop_the_rest(self) -> list[Action]:
        """A task has failed after which nothing more is to start: what does not run is blocked."""
        rest = self._stopped_by_failed() - self.blocked
        for task in rest:
            if self._left[task] and self._open_parents[task] == 0:
                self._unready(task)
        return self._block(rest)

    @property
    def _has_stopped(self) -> bool:
        """Whether a task has failed after which nothing more is to start."""
        return bool(self._stopping) and bool(self._stopping & (self.failed - self.cancelled))

    def _stopped_by_failed(self) -> set[int]:
        """What does not start, since a task failed after which nothing more is to: all but what
        runs, and what comes after others whatever becomes of them."""
        if not self._has_stopped:
            return set()
        runs = {task for job in self.jobs.values() for task in job.running_since_s}
        out = self.failed | runs | self._loose.keys()
        rest = {task for task, done in enumerate(self._done) if not done and task not in out}
        return rest | (self._descendants(rest) - self.failed - runs)

    def _blocked_by_failed(self) -> set[int]:
        return self._descendants(self.failed) | self._stopped_by_failed() | self.skipped

    def _task_retried(self, event: e.TaskRetried) -> list[Action]:
        """It is to have what its next try asks for, in this job or another."""
        task = event.task
        if self._done[task]:
            return []
        self.tries[task] += 1
        rules = self.work.workflow.rules.get(task)
        if rules is not None and rules.memories:
            self._remember(
                task, rules.memory_bytes(self.tries[task], self._needs[task].memory_bytes)
            )
        return []

    def _remember(self, task: int, memory_bytes: int) -> None:
        """A task is to have this much memory, within what nodes have."""
        need = self._needs[task]
        for at in self.sites:
            memory = at.work.workflow.memory_bytes.copy()
            most = at.work.most_memory_bytes(need)
            memory[task] = min(memory_bytes, most) if most else memory_bytes
            at.work = at.work.needing(memory)
        memory_now = int(self.sites[self.site_of[task]].work.workflow.memory_bytes[task])
        self._needs[task] = need._replace(memory_bytes=memory_now)

    def _forget_tries(self, tasks: Iterable[int]) -> None:
        """These begin with their first try again."""
        for task in tasks:
            rules = self.work.workflow.rules.get(task)
            if self.tries.pop(task, 0) and rules is not None and rules.memories:
                self._remember(task, rules.memory_bytes(0))

    def _disk_refused(self, event: e.DiskRefused) -> list[Action]:
        """A task that was done has failed if that would happen again; else its job tries again, but
        not for ever."""
        if event.is_final and self._done[event.task]:
            return [*self._undone(event.task), *self._task_failed(event.task)]
        job = self.jobs[event.job]
        job.refused = event.why
        if job.at.trouble:
            return []
        trouble = job.at.losses.refused(
            event.task, event.job, f"task {self._id(event.task)}: {event.why}"
        )
        if trouble:
            return self._give_up_site(job.at, self._there(job.at) + trouble)
        return []

    def _id(self, task: int) -> str:
        return self.work.workflow.ids[task]

    @staticmethod
    def _there(at: AtSite) -> str:
        if at.name:
            return f"{at.name}: "
        return ""

    def _block(self, tasks: set[int], *also: Action) -> list[Action]:
        """These will not run, since one has failed, of them or before them. Jobs that wait for no
        others go."""
        self.blocked = (self.blocked | tasks) - self.failed
        self._left[sorted(tasks)] = False
        idle = [
            (number, job)
            for number, job in self.jobs.items()
            if not job.is_running and not job.is_stopping
        ]
        useless = [number for number, job in idle if job.open_tasks | job.copies <= self.blocked]
        return [Abandon(tuple(sorted(tasks))), *also, *(self._stop(number) for number in useless)]

    def _task_dropped(self, event: e.TaskDropped | e.CopyFailed) -> list[Action]:
        if isinstance(event, e.CopyFailed):
            self.copies.failed.add(event.task)
        was_recalled = event.job in self.recalled.get(event.task, ())
        self.recalled.get(event.task, set()).discard(event.job)
        if self.job_of[event.task] != event.job:
            self.copies.close(event.task, event.job)
            return self._decide_if_useful(self._homes([event.task]) if was_recalled else ())
        if isinstance(event, e.CopyFailed) and self.copies.heir(event.task) is None:
            return self._task_failed(event.task)
        job = self.jobs[event.job]
        is_blocked = event.task in self.blocked
        is_early = not is_blocked and job.is_too_early(
            event.at_s, event.task, self.jobs, self.job_of, self._done
        )
        is_excused = is_early or is_blocked or job.is_stopping or isinstance(event, e.CopyFailed)
        if isinstance(event, e.TaskDropped) and event.lacks_memory:
            used = {event.task: event.used_bytes}
            is_excused |= bool(give_more_memory(self._needs, self.sites, job, used))
        is_excused |= isinstance(event, e.TaskDropped) and event.lacks_files
        is_excused |= 0 < job.node_bytes < self._needs[event.task].memory_bytes
        is_excused |= self._waits_loosely(event.task)
        is_excused |= event.job in self._called_back.get(event.task, ())
        job.has_given_up |= not is_excused
        if is_early:  # another job would be so, too
            self._early.update(job.open_tasks)
        if is_early and self.terms.patience is not None:
            self._expect_makers_longer(event.task, event.at_s)
        self._close(event.task)
        self._put_back(event.task)
        if is_early and not job.is_stopping:
            return [self._stop(event.job)]
        return self._decide_if_useful(self._homes([event.task]))

    def _waits_loosely(self, task: int) -> bool:
        """Whether it came after a task that will not run, and runs all the same."""
        over = self.failed | self.blocked
        return not over.isdisjoint(self._loose.get(task, frozenset()))

    def _expect_makers_longer(self, task: int, at_s: int) -> None:
        """Jobs that should have ended, and have what this task waits for, are expected to run for
        as long again: else jobs would be sent to wait for them for nothing, again and again."""
        for parent in self.work.workflow.parents.of(task).tolist():
            number = self.job_of[parent]
            if number is None or self._done[parent]:
                continue
            maker = self.jobs[number]
            if maker.started_s is not None and maker.expected_end_s <= at_s:
                maker.expected_end_s = 2 * at_s - maker.started_s

    def _close(self, task: int) -> Job | None:
        """The task is in its job no more. A job that has no tasks left is on its way out."""
        number = self.job_of[task]
        if number is None:  # its job was given up for lost, but had done it
            if self._left[task] and self._open_parents[task] == 0:
                self._unready(task)
            self._left[task] = False
            return None
        job = self.jobs[number]
        job.open_tasks.discard(task)
        job.running_since_s.pop(task, None)
        self.job_of[task] = None
        job.is_stopping = job.is_stopping or job.is_empty
        return job

    def _promote(self, task: int, number: int) -> None:
        """The copy in this job becomes the member."""
        self.job_of[task] = number
        self.jobs[number].open_tasks.add(task)
        self.copies.close(task, number)

    def _put_back(self, task: int) -> None:
        """The task is not in its job any more: it is left, unless a copy of it lives or a failed
        ancestor blocks it."""
        self.job_of[task] = None
        self.pieces.leave(task, self._expected, self.sites)
        if (heir := self.copies.heir(task)) is not None:
            self._promote(task, heir)
            return
        if self._has_stopped and not self._done[task] and task not in self._loose:
            self._stopped |= {task, *self._descendants({task})} - self.failed
            self.blocked |= self._stopped
            self._left[sorted(self._stopped)] = False
        if task in self.blocked or self._done[task]:
            return
        self._left[task] = True
        if self._open_parents[task] == 0:
            insort(self._ready, self._turn(task))

    def _homes(self, tasks: Iterable[int]) -> dict[AtSite, None]:
        """All sites where one of these tasks may run."""
        return dict.fromkeys(at for task in tasks for at in self.sites if at.has(task))

    def _unready(self, task: int) -> None:
        del self._ready[bisect_left(self._ready, self._turn(task))]

    def _stop(self, number: int) -> Action:
        self.jobs[number].is_stopping = True
        return StopJob(number)

    def _job_killed(self, event: e.JobKilled) -> list[Action]:
        job = self.jobs[event.job]
        job.is_stopping = True
        job.note_use(event.at_s)
        stops: list[Action] = []
        cause = event.cause or Cause.LOST
        if cause is Cause.TIME_LIMIT:
            expect_longer(self._expected, self.sites, job, event.at_s, self.pieces.open)
        if cause is Cause.MEMORY:
            lost = sorted(job.running_since_s.keys() & job.open_tasks)
            give_more_memory(self._needs, self.sites, job, dict.fromkeys(lost, 0))
        self.moved |= job.at.note_preemption(job, event.at_s) if cause is Cause.PREEMPTED else {}
        if (
            event.node and job.taken_by is None
        ):  # else it is counted with the job in whose place it ran
            job.at.avoidance.failed(event.node, event.at_s)
        if not job.has_finished_a_task and job.taken_by is None and not job.is_spare:
            stops += self._count_loss(job, cause, event.why)
        waiting_for = self._after(task for task in job.open_tasks if not self.copies.stays(task))
        waiting = [
            (n, other)
            for n, other in self.jobs.items()
            if (other.open_tasks | other.copies) & waiting_for
        ]
        stops += [
            self._stop(n) for n, other in waiting if not other.has_begun and not other.is_stopping
        ]
        return [*stops, *self._job_left(event.job)]

    def _job_ended(self, event: e.JobEnded) -> list[Action]:
        job = self.jobs[event.job]
        job.note_use(event.at_s)
        stops: list[Action] = []
        counts = not job.has_finished_a_task and job.taken_by is None
        is_loss = counts and (job.has_given_up or (job.open_tasks and not job.is_stopping))
        job.is_stopping = True  # so that nothing that follows asks it to stop
        if is_loss and job.lacks_space and not self.trouble:
            stops = self._give_up(NO_SPACE)
        elif is_loss:
            stops = self._count_loss(job, *job.why_idle)
        return [*stops, *self._job_left(event.job)]

    def _count_loss(self, job: Job, cause: Cause, why: str) -> list[Action]:
        """A job was lost before it had done anything. That may happen; again and again it will not
        help to try."""
        trouble = (
            "" if job.at.trouble else job.at.losses.add(cause, why)
        )  # what came first is the reason
        if trouble:
            return self._give_up_site(job.at, self._there(job.at) + trouble)
        return []

    def _give_up_site(self, at: AtSite, why: str) -> list[Action]:
        """Send no more there. If what could run there cannot run elsewhere, the run gives up."""
        at.trouble = why
        others = [other for other in at.group if not other.trouble]
        mine = at.of(~self.done())
        if not others or (mine & ~np.any([other.of(mine) for other in others], axis=0)).any():
            return self._give_up(why)
        idle = [
            n
            for n, job in self.jobs.items()
            if job.at is at and not job.has_begun and not job.is_stopping
        ]
        return [self._stop(number) for number in idle]

    def _give_up(self, why: str) -> list[Action]:
        """Jobs that have started may do what they can; nothing new starts."""
        self.trouble = why
        return [
            self._stop(n)
            for n, job in self.jobs.items()
            if not job.has_begun and not job.is_stopping
        ]

    def _job_left(self, number: int) -> list[Action]:
        """A job is gone; what it had not done is left again."""
        job = self.jobs[number]
        for task in sorted(job.copies):
            self.copies.close(task, number)
        del self.jobs[number]
        job.at.jobs -= 1
        for jobs in (*self.recalled.values(), *self._called_back.values()):
            jobs.discard(number)
        for task in sorted(job.open_tasks):
            self._put_back(task)
        sites = dict.fromkeys(job.at.group) | self._homes(sorted(job.open_tasks))
        if job.shares:
            sites |= self._homes(self._waiting_for_shares())
        return self._decide_if_useful(sites)

    def _decide_if_useful(self, sites: Iterable[AtSite]) -> list[Action]:
        """Decisions for those sites where tasks are left, the cap has room, and no job is about to
        give more back."""
        if self.is_stopped or self.trouble:
            return []
        kept = [self.jobs[number].at for number in self.kept_jobs()]
        due = [
            at
            for at in sites
            if at.jobs - kept.count(at) < at.site.cap and not at.trouble and at.of(self._left).any()
        ]
        if not due:
            return []
        stopping = {
            at
            for job in self.jobs.values()
            if job.is_stopping and job.open_tasks
            for at in job.at.group
        }
        return [Decide(at.name) for at in due if at not in stopping]

    def fitted(self, decision: Decision, site: str = "") -> Decision:
        """What is decided for a site, as far as the limits of the run leave room for it."""
        if not self.limits.takes:
            return decision
        planned = [task for plan in decision.jobs for task in plan.tasks]
        below = {task: sorted(self._after({task})) for task in planned if task in self.limits.takes}
        return replace(decision, jobs=self.limits.fitted(decision.jobs, self.at(site), below))

    def _after(self, tasks: Iterable[int]) -> set[int]:
        """All that comes after these, in whatever way."""
        return descendants(self._children, self._done, tasks)

    def _descendants(self, tasks: Iterable[int]) -> set[int]:
        """What cannot run without these."""
        return descendants(self._children, self._done, tasks, self._loose)
