"""Look ahead: play every course of action on likely futures of the cluster, and take the one with
the best outcome.

A course (`courses`) is a few jobs to submit now and a simple way to continue. A future is the
cluster as it is, in which others run as long as their past says, and past days arrive again
(`View.futures`). Courses are compared in the same futures, so luck does not decide between them.
All are played in one or two; the best third proceeds to the next, and so on: most of the work goes
to those that are hard to tell apart.

A decision is made when no own job waits. The one exception are tasks that go out one by one: while
some of them wait, others that become ready follow. Nothing is submitted that is not meant to run.

Pure, as every strategy: `plays` bounds the work of a decision in played courses, not in seconds,
and the best so far wins when it is used up. Without futures (`View.futures` is None) it decides as
`glume` does, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev

from windrow.errors import UserError
from windrow.foresight.course import LONG_QUEUE, Course, CourseEnd, Futures, Sampling
from windrow.foresight.courses import KINDS, Courses, dealt_jobs, padded, unhurried
from windrow.foresight.narrow import best_end_s, narrow
from windrow.model import NEVER_S, format_duration, is_never
from windrow.model.wording import percent
from windrow.strategies.base import Candidate, Decision, JobPlan, Objective, View
from windrow.strategies.glume import Glume
from windrow.strategies.individual import single_jobs

OBJECTIVES: tuple[Objective, ...] = ("makespan", "node-hours", "balanced", "cost")

_SURE = 0.9  # the part of futures in which a deadline must be kept
_FAR = 1.3  # times the makespan of the best so far: beyond that, a course has lost
_QUEUE = 25  # waiting jobs that double the cost of a play
_LEAST_PLAYS = 68  # of a decision in any queue: all that follow from the next line
_LEAST_COURSES = 40  # in one future, and the last ones in all
_TOGETHER = 8  # plays in a long queue between which the bound on how long they may take stays
_PER_COURSE = 3  # plays for each course, on average, or there are too many courses
_FINAL = 4  # courses that are always compared further
_SHOWN = 12  # candidates in an explanation
_TOLD = 0.01  # the least more of node time that is worth a number


@dataclass(slots=True, eq=False)
class Tried:
    """A course with its outcomes so far, in futures 0, 1, ..."""

    course: Course
    makespan_s: list[int] = field(default_factory=list)
    node_s: list[int] = field(default_factory=list)

    @property
    def mean_s(self) -> float:
        """The expected makespan."""
        return fmean(self.makespan_s)


@dataclass(frozen=True, slots=True)
class Foresight:
    """What to aim at, within which limits, and how hard to think.

    objective: the least makespan, the fewest node-hours, or the least sum of both, each relative to
    the best of its kind. deadline_s: from the run's begin; only courses that keep it in nine
    futures of ten are considered, if any do. max_nodes: the most nodes that one job may ask for.
    slack: a makespan longer by this part is as good, if it costs fewer node-hours. job_s:
    node-seconds that a job costs beside its tasks: nothing in simulation, but real ones have to be
    started. futures: in how many the last courses are compared. plays: the most courses played for
    one decision while the queue is empty. kinds, sampling: ingredients, for those who study them.
    """

    objective: Objective = "makespan"
    deadline_s: int | None = None
    max_nodes: int | None = None
    slack: float = 0.002
    job_s: float = 0.0
    futures: int = 8
    plays: int = 320
    kinds: tuple[str, ...] = KINDS
    sampling: Sampling = field(default_factory=Sampling)
    name: str = "foresight"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UserError(
                f"objective {self.objective!r} is unknown; use one of {', '.join(OBJECTIVES)}"
            )
        if (
            self.futures < 1
            or self.plays < 2
            or (self.max_nodes is not None and self.max_nodes < 1)
        ):
            raise UserError(
                "foresight needs at least 1 future, 2 plays and, if they are bounded, 1 node"
            )

    def aimed(
        self,
        *,
        objective: Objective = "makespan",
        deadline_s: int | None = None,
        think: float = 1.0,
        max_nodes: int | None = None,
        job_s: float = 0.0,
    ) -> Foresight:
        """The same, with that aim. Who thinks harder looks at more courses, and at more futures for
        the last ones."""
        plays = max(2, round(self.plays * think))
        futures = max(1, round(self.futures * think**0.5))
        aim = replace(
            self, objective=objective, deadline_s=deadline_s, max_nodes=max_nodes, job_s=job_s
        )
        return replace(aim, plays=plays, futures=futures)

    def has_to_wait(self, view: View) -> bool:
        """Whether nothing is decided now, however the queue looks."""
        return not view.can_submit or (view.jobs_waiting > 0 and not view.individually)

    def decide(self, view: View) -> Decision:
        """The jobs of the course with the best outcome, when no own job waits."""
        if self.has_to_wait(view):
            return Decision()
        wide = (view.work.workflow.nodes > view.work.cluster_nodes) & view.left
        if (
            view.futures is None or wide.any()
        ):  # with tasks that cannot start now no future has an end
            plain = Glume().decide(view)
            beside = narrow(view) if plain.jobs else None
            if beside is not None and beside.end_s < best_end_s(plain):
                plain = beside.instead_of(plain)
            if plain.jobs:
                why = f"no simulated futures here, so decided as glume: {plain.why}"
            else:
                why = plain.why
            return replace(plain, why=why)
        futures = view.futures(self.sampling)
        if view.jobs_waiting:
            return _followers(view, futures)
        return self.decision(view, self.ranked(view, futures), is_exact=futures.is_exact)

    def ranked(self, view: View, futures: Futures) -> list[Tried]:
        """All courses that were played, the best first; none if no job fits on the nodes."""
        left = self._plays_left(futures)
        courses = Courses(view, self.kinds, max_nodes=self.max_nodes, late_s=futures.late_s)
        most = max(min(_LEAST_COURSES, left), left // _PER_COURSE)
        alive = [Tried(course) for course in courses.all(most=most)]
        if not alive and self.max_nodes is not None and self.max_nodes < view.work.cluster_nodes:
            raise UserError(
                f"no job on at most {self.max_nodes} nodes can run what is left; allow more nodes"
            )
        if not alive:
            return []
        dropped: list[Tried] = []
        at = 0
        while at < self.futures and left >= len(alive):
            more = self._more_futures(at, left, len(alive))
            for number in range(at, at + more):
                self._play(view, alive, futures, number)
            at = at + more
            left = left - more * len(alive)
            alive = self._sorted(view, alive)
            if at < self.futures:
                keep = self._kept(len(alive), left, self.futures - at)
                dropped = alive[keep:] + dropped
                alive = alive[:keep]
        return alive + dropped

    def _plays_left(self, futures: Futures) -> int:
        """Fewer plays in a long queue, where each takes longer, but never too few to tell courses
        apart. Counted, not timed: the same view gives the same answer everywhere."""
        waiting = max(futures.others_waiting, futures.others_waiting**2 // LONG_QUEUE)
        return max(min(_LEAST_PLAYS, self.plays), self.plays * _QUEUE // (_QUEUE + waiting))

    def _kept(self, courses: int, left: int, futures: int) -> int:
        """How many courses proceed: a third, or as many as the plays that are left allow in all
        futures that are left."""
        third = -(-courses // 3)
        if left >= third + _FINAL * (futures - 1):
            return max(_FINAL, third)
        return max(_FINAL, min(third, left // futures))

    def _more_futures(self, at: int, left: int, courses: int) -> int:
        """In how many futures more to play before courses are dropped."""
        most = 4
        if at < 4:
            most = 2
        return min(most, self.futures - at, max(1, left // (2 * courses)))

    def _play(self, view: View, tried: Sequence[Tried], futures: Futures, number: int) -> None:
        """Play all in one future. For the makespan, those that fall far behind are not played to
        their end.

        In a long queue courses of few jobs go first: they are quick to play, and tell when to give
        the others up.
        """
        if futures.others_waiting <= LONG_QUEUE:
            within: int | None = None
            for one in tried:
                within = self._note(one, futures.play(one.course, number, within), within)
            return
        tried = sorted(tried, key=lambda one: _jobs(view, one.course))
        within = self._note(tried[0], futures.play(tried[0].course, number, None), None)
        with ThreadPoolExecutor(_cores()) as pool:
            for at in range(1, len(tried), _TOGETHER):
                some = tried[at : at + _TOGETHER]
                bound = within
                plays = [pool.submit(futures.play, one.course, number, bound) for one in some]
                for one, played in zip(some, plays, strict=True):
                    within = self._note(one, played.result(), within)

    def _note(self, one: Tried, outcome: CourseEnd, within: int | None) -> int | None:
        """Note how a course ended, and return how long others may take."""
        one.makespan_s.append(outcome.makespan_s)
        one.node_s.append(outcome.node_s)
        if self.objective != "makespan":
            return within
        bound = int(outcome.makespan_s * _FAR)
        return bound if within is None else min(within, bound)

    def _sorted(self, view: View, tried: Sequence[Tried]) -> list[Tried]:
        """By the objective, those that keep the deadline first; stable, so that of equals the
        plainest comes first.

        For the makespan, courses that end nearly as early as the best are as good: the cheapest of
        them goes first.
        """
        late = {id(one): self._is_late(view, one) for one in tried}
        shortest = min(
            (one.mean_s for one in tried if not late[id(one)]),
            default=min(one.mean_s for one in tried),
        )
        nodes = {id(one): fmean(one.node_s) + self.job_s * _jobs(view, one.course) for one in tried}
        cheapest = max(1.0, min(fmean(one.node_s) for one in tried))

        def key(one: Tried) -> tuple[bool, bool, float]:
            is_late = late[id(one)]
            match self.objective:
                case "makespan":
                    if one.mean_s <= shortest * (1 + self.slack):
                        return is_late, False, nodes[id(one)]
                    return is_late, True, one.mean_s
                case "node-hours" | "cost":  # at one site each node-hour costs the same
                    return is_late, False, nodes[id(one)] + one.mean_s / shortest
                case "balanced":
                    return is_late, False, one.mean_s / shortest + nodes[id(one)] / cheapest

        return sorted(tried, key=key)

    def _but(self, view: View, rival: Tried, best: Tried) -> str:
        """By which rule a course that would end earlier comes after the best; nothing if it ends
        later."""
        if rival.mean_s >= best.mean_s or is_never(rival.mean_s):
            return ""
        if self._is_late(view, rival) and not self._is_late(view, best):
            return ", but it may miss the deadline"
        more = _more_nodes(rival, best)
        if self.objective == "makespan":
            near = f"{100 * self.slack:g} %"
            return (
                f", but {more}; of courses that end within {near} of the earliest, the "
                "cheapest is taken"
            )
        return f", but {more}, which counts as well (--objective {self.objective})"

    def _is_late(self, view: View, one: Tried) -> bool:
        if self.deadline_s is None:
            return False
        left = self.deadline_s - view.elapsed_s
        return sum(end <= left for end in one.makespan_s) < _SURE * len(one.makespan_s)

    def decision(self, view: View, ranked: Sequence[Tried], *, is_exact: bool) -> Decision:
        """To take the first of these courses, and why. `is_exact`: tasks are known to keep their
        times."""
        first = next((n for n, one in enumerate(ranked) if _can_start(view, one.course)), None)
        if first is None:
            return Decision(
                why=f"nothing can start on the {view.work.cluster_nodes} nodes that accept new "
                "jobs now"
            )
        best = ranked[first]
        seen = tuple(_candidate(view, one, best) for one in ranked[first : first + _SHOWN])
        by_task = any(group.how == "by task" and group.first == 0 for group in best.course.then)
        jobs = best.course.jobs
        if not is_exact:
            jobs = unhurried(view, jobs)
        why = self._why(view, ranked[first:])
        return Decision(jobs, seen, why, individually=by_task, is_played=True)

    def _why(self, view: View, ranked: Sequence[Tried]) -> str:
        """Why the first of these is taken."""
        best = ranked[0]
        why = f"{best.course.name}: done in {format_duration(best.mean_s)}, {_give_or_take(best)}"
        if len(best.makespan_s) == 1 and len(ranked) > 1:
            why += (
                f" ({len(ranked)} courses were compared in it; a long queue leaves time for "
                "no more)"
            )
        rival = next((one for one in ranked if one.course.name != best.course.name), None)
        if rival is not None:
            why += (
                f"; next, {rival.course.name}: {_later(rival, best)}{self._but(view, rival, best)}"
            )
        if self._is_late(view, best):
            why += "; no course meets the deadline"
        return why


def _cores() -> int:
    """How many plays can be under way at once: what comes of them does not depend on it."""
    if hasattr(os, "sched_getaffinity"):
        return min(_TOGETHER, len(os.sched_getaffinity(0)))
    return min(_TOGETHER, os.cpu_count() or 1)


def _more_nodes(one: Tried, best: Tried) -> str:
    """How much more node time a course takes than the best."""
    more = fmean(one.node_s) / max(1.0, fmean(best.node_s)) - 1
    if more >= _TOLD:
        return f"with {percent(more)} more node time"
    return "with more jobs"


def _can_start(view: View, course: Course) -> bool:
    return not course.jobs or _wait_s(view, course.jobs[0]) < NEVER_S


def _wait_s(view: View, job: JobPlan) -> int:
    return view.wait_s(job.nodes, job.run_s + job.leeway_s)


def _jobs(view: View, course: Course) -> int:
    """How many jobs the course takes, about."""
    count = len(course.jobs)
    for group in course.then:
        if group.how in ("by task", "dealt"):
            count += view.levels.between(group.first, group.last).size
        else:
            count += 1
    return count


def _candidate(view: View, one: Tried, best: Tried) -> Candidate:
    """A course in numbers; those of its first job stand for its jobs."""
    course = one.course
    note = _give_or_take(one)
    if one is not best:
        note += f", {_later(one, best)}"
    if not course.jobs:
        return Candidate(course.name, 0, 0, 0, 0, round(one.mean_s), note)
    job = course.jobs[0]
    wait = _wait_s(view, job)
    if len(course.jobs) > 1:
        name = f"{course.name} ({len(course.jobs)} jobs)"
    else:
        name = course.name
    return Candidate(name, job.nodes, wait, job.run_s, job.leeway_s, round(one.mean_s), note)


def _give_or_take(one: Tried) -> str:
    count = len(one.makespan_s)
    if stuck := sum(map(is_never, one.makespan_s)):
        return f"never done in {stuck} of {count} simulated futures"
    if count == 1:  # one outcome has no spread
        return "in the only simulated future"
    return f"± {format_duration(pstdev(one.makespan_s))} over {count} simulated futures"


def _later(one: Tried, best: Tried) -> str:
    by_s = one.mean_s - best.mean_s
    if is_never(abs(by_s)):
        if by_s > 0:
            return "never"
        return "sooner"
    if by_s >= 0:
        return f"{format_duration(by_s)} later"
    return f"{format_duration(-by_s)} earlier"


def _followers(view: View, futures: Futures) -> Decision:
    """More of the same, while jobs wait that hold ready tasks only. A waiting group of levels is
    left alone."""
    if not view.ready or not all(_is_flat(view, job) for job in futures.waiting):
        return Decision()
    is_dealt = any(len(job.tasks) > 1 for job in futures.waiting)
    if is_dealt:
        jobs = dealt_jobs(view)
        how = "together"
    else:
        jobs = single_jobs(view)
        how = "one by one"
    jobs = padded(view, jobs, futures.late_s)
    if not futures.is_exact:
        jobs = unhurried(view, jobs)
    return Decision(jobs, why=f"ready tasks follow {how} while others wait")


def _is_flat(view: View, job: JobPlan) -> bool:
    mine = set(job.tasks)
    return not any(
        parent in mine
        for task in job.tasks
        for parent in view.work.workflow.parents.of(task).tolist()
    )
