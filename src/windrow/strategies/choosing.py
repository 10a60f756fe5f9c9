"""Where jobs go when there are several sites: cut, then place.

The strategy cuts what is left for each site as if that were the only one. A job at a site ends at

    max(its wait there by forecast, its data there, the end of the jobs that it waits for) + its run there

with the losses to expect there, after each of which it waits again (tasks that finished are kept),
and what is left after it at the best site for that. The cut that ends first is taken, with its site
(or the one that costs least, as the objective says); if it is several jobs without a look ahead,
each goes where it ends first.

Rule 1: pure, as strategies are. Rule 2: a site that could not win even without any wait is not cut
for.
Rule 3: jobs stay where their inputs are, unless another site wins by more than the way back and a
margin.
Rule 4: if one site is offered, the decision is the strategy's own.
"""  # noqa: E501

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import ceil, inf, prod

import numpy as np

from windrow.model import NEVER_S, format_duration, is_never
from windrow.model.hazard import NO_HAZARD, Hazard
from windrow.strategies.base import (
    Candidate,
    Decision,
    JobPlan,
    Objective,
    Strategy,
    View,
    best_nodes,
    decided,
)
from windrow.strategies.levels import Mask

MARGIN = 0.05
"""By which part earlier a job must end than where its inputs are, or where it waits already, to go
elsewhere."""
_MOST_SITES = 5  # of which all choices are looked at
WORTH_S = 60
"""And by how much, to leave a queue in which it waits."""


Absent = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class SiteOffer:
    """A site as it could be used now.

    `data_s`, `data_bytes`: how long it takes until the inputs of tasks are there, and how much has
    to be moved. `pace`: how many times as long as expected tasks take there. `node_s`,
    `room_bytes`: what may be used of nodes yet, and of the disk. `hazard`: how jobs are lost.
    """

    name: str
    view: View
    price: float = 0.0
    pace: float = 1.0
    node_s: float = inf
    room_bytes: float = inf
    data_s: Callable[[Sequence[int]], int] = lambda _: 0
    data_bytes: Callable[[Sequence[int]], int] = lambda _: 0
    hazard: Hazard = NO_HAZARD

    def sized(self, tasks: Mask, busy_s: int = 0) -> tuple[int, JobPlan, int, int]:
        """When the tasks end in one job here, on the best number of nodes, busy until then; the
        job, its wait, data."""
        view = replace(self.view, left=tasks)
        data_s = self.data_s(np.flatnonzero(tasks).tolist())
        nodes, wait_s, _ = best_nodes(view, 0, view.levels.last, max(busy_s, data_s))
        plan = view.plan(0, view.levels.last, nodes)
        return self.end_s(plan, max(wait_s, data_s, busy_s)), plan, wait_s, data_s

    def end_s(self, job: JobPlan, start_s: int) -> int:
        """When a job that starts then should be done here; what jobs have no time for waits again,
        in a further one."""
        if is_never(job.run_s) or is_never(start_s):
            return NEVER_S
        limit_s = self.view.work.site.max_request_s
        if limit_s is None:
            further = 0
        else:
            further = ceil(job.run_s * self.pace / limit_s) - 1
        if self.hazard or further:
            again_s = self.view.wait_s(job.nodes, job.run_s + job.leeway_s)
        else:
            again_s = 0
        return round(min(NEVER_S, start_s + self.held_s(job, again_s) + further * again_s))

    def late_s(self, job: JobPlan) -> int:
        """By how much losses other than failures of its nodes should delay the job's end."""
        rest = replace(self, hazard=replace(self.hazard, scale_s=None))
        return rest.end_s(job, 0) - round(job.run_s * self.pace)

    def held_s(self, job: JobPlan, again_s: int = 0) -> float:
        """How long a job should take here, with its losses; after each of them it waits for
        `again_s`."""
        run_s = job.run_s * self.pace
        if not self.hazard:
            return run_s
        longest_s = self.view.work.expected_s[list(job.tasks)].max(initial=1) * self.pace
        return self.hazard.expected_s(job.nodes, run_s, float(longest_s), again_s)

    def nodes_held(self, job: JobPlan) -> float:
        """To how many nodes a job comes here, by what the site charges."""
        work = self.view.work
        return work.site.nodes_held(job.nodes, work.part_of(np.array(job.all_tasks)))

    def objection(self, jobs: Sequence[JobPlan]) -> str:
        """Why these jobs cannot go here though they fit; empty if they can."""
        if sum(self.nodes_held(job) * job.requested_s for job in jobs) > self.node_s:
            return "it would use more than max_node_hours allows"
        w = self.view.work.workflow
        tasks = [task for job in jobs for task in job.tasks if self.room_bytes < inf]
        made = sum(
            w.files[file].size_bytes for task in tasks for file in w.outputs.of(task).tolist()
        )
        if made + self.data_bytes(tasks) > self.room_bytes:
            return "no room for the files"
        return ""


_Placed = tuple[SiteOffer, JobPlan]
"""A job, and the site to which it goes."""


@dataclass(frozen=True)
class _Outlook:
    """A site's decision, the jobs that it leads to, when all would be done by them, and how far
    data go."""

    offer: SiteOffer
    decision: Decision
    placed: Sequence[_Placed]
    end_s: int
    wait_s: int
    data_s: int

    @cached_property
    def used_s(self) -> list[float]:
        """The node time that each job should take, with its losses."""
        return [there.nodes_held(job) * there.held_s(job) for there, job in self.placed]

    @cached_property
    def node_s(self) -> int:
        """The node time of all."""
        return round(sum(self.used_s))

    @cached_property
    def price(self) -> float:
        """What they should cost."""
        return sum(
            there.price * used_s / 3600
            for (there, _), used_s in zip(self.placed, self.used_s, strict=True)
        )

    @cached_property
    def chance(self) -> float:
        """The chance that none of the jobs is lost."""
        return prod(
            there.hazard.survival(job.nodes, job.run_s * there.pace) for there, job in self.placed
        )

    @property
    def late_s(self) -> int:
        """By how much preemptions and the like should delay the end."""
        return max(there.late_s(job) for there, job in self.placed)

    def later(self, best: _Outlook) -> str:
        """In words."""
        by_s = self.end_s - best.end_s
        if is_never(abs(by_s)):
            return "never"
        if by_s >= 0:
            return f"{format_duration(by_s)} later"
        return f"{format_duration(-by_s)} earlier"

    @property
    def weighed_s(self) -> float:
        """Who has to fetch data must win by the way back, and by the margin."""
        if self.data_s:
            return self.end_s + (self.data_s + MARGIN * self.end_s)
        return float(self.end_s)

    def row(self, note: str) -> Candidate:
        job = self.decision.jobs[0]
        words = f"{self.node_s / 3600:,.2f} node-hours"
        if self.price:
            words += f", cost {self.price:,.2f}"
        if self.chance < 1:
            words += f", {100 * (1 - self.chance):.1f} % risk of a loss"
        if note:
            words += f"; {note}"
        return Candidate(
            f"at {self.offer.name}",
            job.nodes,
            self.wait_s,
            job.run_s,
            job.leeway_s,
            self.end_s,
            words,
            self.offer.name,
            self.data_s,
        )


def choose(
    strategy: Strategy,
    offers: Sequence[SiteOffer],
    objective: Objective = "makespan",
    absent: Absent | None = None,
) -> tuple[str, Decision]:
    """The decision, and the site for which it is. `absent`: sites that cannot be had now, and
    why."""
    if len(offers) == 1 and not absent:
        return offers[0].name, _alone(strategy, offers[0])
    decisions, refused = _decisions(strategy, offers, objective)
    out = {**(absent or {}), **refused}
    found = [_outlook(offer, decision, offers) for offer, decision in decisions if decision.jobs]
    if not found:
        return _no_jobs(offers, decisions, out)
    found = _sorted(_as_played(found), objective)
    best = found[0].offer
    decision = _spread_out(_at(best, found[0].decision), best, offers)
    return best.name, _told(decision, found, out)


def _spread_out(decision: Decision, best: SiteOffer, offers: Sequence[SiteOffer]) -> Decision:
    """Its jobs over all sites, if they do not depend on each other."""
    if not _may_spread(decision):
        return decision
    others = (offer for offer in offers if offer is not best)
    return replace(decision, jobs=_spread(decision.jobs, [best, *others]))


def _alone(strategy: Strategy, offer: SiteOffer) -> Decision:
    """If one site is offered, the decision is the strategy's own."""
    decision = decided(strategy, offer.view)
    why = offer.objection(decision.jobs)
    if why:
        return Decision(why=why)
    return _at(offer, decision)


def _decisions(
    strategy: Strategy, offers: Sequence[SiteOffer], objective: Objective
) -> tuple[list[tuple[SiteOffer, Decision]], dict[str, str]]:
    """What the strategy decides for each site; and the sites that are out, and why."""
    if objective == "makespan":
        hopeless = _hopeless(offers)
    else:
        hopeless = {}
    decisions: list[tuple[SiteOffer, Decision]] = []
    refused: dict[str, str] = {}
    for offer in sorted(offers, key=lambda offer: offer.name in hopeless):
        if offer.name in hopeless and any(decision.jobs for _, decision in decisions):
            refused[offer.name] = hopeless[offer.name]
            continue
        decision = decided(strategy, offer.view)
        if decision.jobs and (why := offer.objection(decision.jobs)):
            refused[offer.name] = why
        elif decision.jobs or not decision.why:
            decisions.append((offer, decision))
        else:
            refused[offer.name] = decision.why
    return decisions, refused


def _no_jobs(
    offers: Sequence[SiteOffer], decisions: Sequence[tuple[SiteOffer, Decision]], out: Absent
) -> tuple[str, Decision]:
    """No site gets a job now: because a strategy waits, or because none can be had."""
    if decisions:
        return decisions[0][0].name, Decision()
    why = "; ".join(f"{name}: {words}" for name, words in out.items())
    if offers:
        return offers[0].name, Decision(why=why)
    return "", Decision(why=why)


def _as_played(found: Sequence[_Outlook]) -> Sequence[_Outlook]:
    """If all sites were looked ahead at, all would be done when that says; in it nodes fail and
    nothing else."""
    if not all(one.decision.is_played for one in found):
        return found
    played = []
    for one in found:
        makespan_s = one.decision.candidates[0].makespan_s
        if makespan_s:
            played.append(replace(one, end_s=makespan_s + one.late_s))
        else:
            played.append(one)
    return played


def _may_spread(decision: Decision) -> bool:
    """Several jobs without a look ahead, none of which runs tasks of another."""
    has_copies = any(job.copies for job in decision.jobs)
    return len(decision.jobs) > 1 and not decision.is_played and not has_copies


def _told(decision: Decision, found: Sequence[_Outlook], out: Absent) -> Decision:
    """With a row for each site, and how the others compare with the best, which is first."""
    best, *others = found
    rows = [best.row(""), *(one.row(one.later(best)) for one in others)]
    rows += [Candidate(f"at {name}", 0, 0, 0, 0, None, words, name) for name, words in out.items()]
    beside = "".join(f"; at {one.offer.name} {one.later(best)}" for one in others)
    why = f"at {best.offer.name}{beside}: {decision.why}"
    return replace(decision, candidates=(*rows, *decision.candidates), why=why)


def _at(offer: SiteOffer, decision: Decision) -> Decision:
    return replace(decision, jobs=tuple(replace(job, site=offer.name) for job in decision.jobs))


def _end_without_wait_s(offer: SiteOffer) -> float:
    levels = offer.view.levels
    return int(levels.run_s(0, levels.last).min()) * offer.pace + offer.view.busy_s


def _hopeless(offers: Sequence[SiteOffer]) -> dict[str, str]:
    """The sites that cannot win, and why. Only sites for the same tasks are compared."""
    able = [
        offer for offer in offers if offer.view.can_submit and offer.view.work.cluster_nodes >= 1
    ]
    if len(able) < 2 or able[0].view.jobs_waiting:
        return {}
    same = [offer for offer in able if (offer.view.left == able[0].view.left).all()]
    best_s = min(offer.sized(offer.view.left, offer.view.busy_s)[0] for offer in same)
    hopeless = {}
    for offer in same:
        end_s = _end_without_wait_s(offer)
        if end_s > best_s:
            least = format_duration(end_s)
            hopeless[offer.name] = f"could not win even without a wait: {least} at least"
    return hopeless


def _outlook(
    offer: SiteOffer, decision: Decision, offers: Sequence[SiteOffer], *, in_turns: bool = False
) -> _Outlook:
    """What the decision leads to. What it leaves is taken for one job more, submitted when its
    first job starts.

    `in_turns`: jobs that a site has no room for side by side run one after another there.
    """
    view = offer.view
    named = {other.name: other for other in offers}
    placed = [(named.get(job.site, offer), job) for job in decision.jobs]
    waits_s = _waits_s(placed)
    data_s = [there.data_s(job.tasks) for there, job in placed]
    starts_s = [max(wait_s, far_s) for wait_s, far_s in zip(waits_s, data_s, strict=True)]
    if in_turns:
        starts_s = _in_turns_s(placed, starts_s)
    end_s = max(
        there.end_s(job, max(start_s, view.busy_s))
        for (there, job), start_s in zip(placed, starts_s, strict=True)
    )
    rest = view.left.copy()
    rest[[task for job in decision.jobs for task in job.tasks]] = False
    if rest.any() and not is_never(end_s):
        able = [other for other in offers if other is offer or not (rest & ~other.view.left).any()]
        end_s, last = _one_job_more(rest, able, min(starts_s), end_s)
        placed.append(last)
    return _Outlook(
        offer, decision, placed, min(end_s, NEVER_S), wait_s=waits_s[0], data_s=max(data_s)
    )


def _waits_s(placed: Sequence[_Placed]) -> list[int]:
    """How long each job would wait; a site is asked once for all its jobs."""
    nodes = np.array([job.nodes for _, job in placed], dtype=np.int64)
    runs = np.array([job.run_s + job.leeway_s for _, job in placed], dtype=np.int64)
    waits = np.zeros_like(runs)
    for there in {there.name: there for there, _ in placed}.values():
        mine = np.array([other is there for other, _ in placed])
        waits[mine] = there.view.waits_s(nodes[mine], runs[mine])
    return list(map(int, waits))


def _in_turns_s(placed: Sequence[_Placed], starts_s: Sequence[int]) -> list[int]:
    """When jobs start if those before them at the same site leave them no nodes."""
    taken = Counter[str]()
    found = []
    for (there, job), start_s in zip(placed, starts_s, strict=True):
        turns = taken[there.name] // max(1, there.view.work.cluster_nodes)
        found.append(start_s + turns * job.run_s)
        taken[there.name] += job.nodes
    return found


def _one_job_more(
    rest: Mask, offers: Sequence[SiteOffer], from_s: int, busy_s: int
) -> tuple[int, _Placed]:
    """The job for what is left that ends first, and when: submitted at `from_s`, and behind what
    runs until `busy_s`."""
    ways = list[tuple[int, SiteOffer, JobPlan]]()
    for offer in offers:
        if offer.view.work.cluster_nodes >= 1:
            _, job, wait_s, data_s = offer.sized(rest, busy_s)
            ways.append((offer.end_s(job, max(busy_s, from_s + wait_s, data_s)), offer, job))
    end_s, offer, job = min(ways, key=lambda way: way[0])
    return end_s, (offer, job)


@dataclass(frozen=True, slots=True)
class Way:
    """Sites that a run could be confined to: when all should be done, what that costs, and the
    chance of no loss."""

    sites: tuple[str, ...]
    end_s: int
    node_s: int
    price: float
    chance: float


@dataclass(frozen=True)
class _AskedOnce:
    """A strategy that is asked once for each view."""

    strategy: Strategy
    known: dict[int, Decision] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.strategy.name

    def decide(self, view: View) -> Decision:
        if id(view) in self.known:
            return self.known[id(view)]
        return self.known.setdefault(id(view), self.strategy.decide(view))


def frontier(strategy: Strategy, offers: Sequence[SiteOffer]) -> tuple[Way, ...]:
    """Of all choices of sites those that no other beats in time, price and chance of no loss; the
    earliest first."""
    once = _AskedOnce(strategy)
    found: dict[tuple[str, ...], Way] = {}
    for some in _choices(offers):
        name, decision = choose(once, some)
        if decision.jobs:
            chosen = next(offer for offer in some if offer.name == name)
            one = _outlook(chosen, decision, some, in_turns=True)
            sites = tuple(sorted({job.site for job in decision.jobs}))
            found.setdefault(sites, Way(sites, one.end_s, one.node_s, one.price, one.chance))
    return tuple(
        sorted(_unbeaten(found.values()), key=lambda way: (way.end_s, way.price, way.sites))
    )


def _choices(offers: Sequence[SiteOffer]) -> Iterator[tuple[SiteOffer, ...]]:
    """All choices of sites; of many sites each alone, and all."""
    if len(offers) <= _MOST_SITES:
        sizes: Iterable[int] = range(1, len(offers) + 1)
    else:
        sizes = (1, len(offers))
    for size in sizes:
        yield from combinations(offers, size)


def _unbeaten(ways: Iterable[Way]) -> list[Way]:
    keys = {way: np.array((way.end_s, way.price, -way.chance)) for way in ways}
    return [
        a
        for a in keys
        if not any((keys[b] <= keys[a]).all() and (keys[b] < keys[a]).any() for b in keys)
    ]


def _sorted(found: Sequence[_Outlook], objective: Objective) -> list[_Outlook]:
    """The best first."""
    first = max(1.0, min(one.weighed_s for one in found))
    least = max(1, min(one.node_s for one in found))

    def key(one: _Outlook) -> tuple[float, float]:
        match objective:
            case "makespan":
                return one.weighed_s, one.node_s
            case "balanced":
                return one.weighed_s / first + one.node_s / least, one.weighed_s
            case "node-hours":
                return one.node_s, one.weighed_s
            case "cost":
                return one.price, one.weighed_s

    return sorted(found, key=lambda one: (is_never(one.end_s), *key(one)))


def _spread(jobs: Sequence[JobPlan], offers: Sequence[SiteOffer]) -> tuple[JobPlan, ...]:
    """Each job at the site where it ends first, behind those that go there with it; of equals the
    first site."""
    sent = _Sent()
    for job in jobs:
        found = [way for offer in offers if (way := sent.one_more(offer, job)) is not None]
        if found:
            sent.send(min(found, key=lambda way: way[0])[1])
    return tuple(sent.jobs)


class _Sent:
    """Jobs with the sites to which they go together."""

    def __init__(self) -> None:
        self.jobs: list[JobPlan] = []
        self._nodes = Counter[str]()
        self._count = Counter[str]()

    def send(self, job: JobPlan) -> None:
        """It goes there, too."""
        self.jobs.append(job)
        self._nodes[job.site] += job.nodes
        self._count[job.site] += 1

    def one_more(self, offer: SiteOffer, job: JobPlan) -> tuple[int, JobPlan] | None:
        """When the job would end at this site behind those that go there, and its plan; None if it
        cannot go there."""
        view = offer.view
        plan = self._planned(offer, job)
        if plan is None:
            return None
        wait_s = view.wait_s(plan.nodes, plan.run_s + plan.leeway_s)
        turns = self._nodes[offer.name] // max(1, view.work.cluster_nodes)
        start_s = max(wait_s, offer.data_s(plan.tasks)) + turns * plan.run_s
        return offer.end_s(plan, start_s), plan

    def _planned(self, offer: SiteOffer, job: JobPlan) -> JobPlan | None:
        view = offer.view
        tasks = np.array(job.tasks)
        if self._count[offer.name] >= view.cap - view.jobs or not view.left[tasks].all():
            return None
        if job.nodes > view.work.cluster_nodes:
            return None
        run_s = int(view.work.run_s(tasks, job.nodes, job.nodes)[0])
        there = [other for other in self.jobs if other.site == offer.name]
        if is_never(run_s) or offer.objection([*there, job]):
            return None
        requested_s = view.request(run_s + job.leeway_s)
        return replace(job, run_s=run_s, requested_s=requested_s, site=offer.name)


def better_elsewhere(
    tasks: Mask, stays_s: int, offers: Sequence[SiteOffer], busy_s: int
) -> tuple[str, int] | None:
    """The site at which these tasks, submitted now, should end clearly before `stays_s`, and when;
    None: at none."""
    able = []
    for offer in offers:
        view = offer.view
        has_room = view.jobs < view.cap and view.work.cluster_nodes >= 1
        if has_room and (view.work.mine is None or view.work.mine[tasks].all()):
            able.append(offer)
    end_s, name = min(
        ((offer.sized(tasks, busy_s)[0], offer.name) for offer in able), default=(NEVER_S, "")
    )
    if stays_s > end_s * (1 + MARGIN) and stays_s > end_s + WORTH_S:
        return (name, end_s)
    return None
