"""Where jobs go when there are several sites: cut, then place.

The strategy cuts what is left for each site as if that were the only one. A job at a site ends at

    max(its wait there by forecast, its data there, the end of the jobs that it waits for) + its run there

with the losses to expect there, after each of which it waits again (tasks that finished are kept), and what is left
after it at the best site for that. The cut that ends first is taken, with its site (or the one that costs least, as the
objective says); if it is several jobs without a look ahead, each goes where it ends first.

Rule 1: pure, as strategies are. Rule 2: a site that could not win even without any wait is not cut for.
Rule 3: jobs stay where their inputs are, unless another site wins by more than the way back and a margin.
Rule 4: where one site is offered, the decision is the strategy's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, inf, prod

import numpy as np

from windrow.model import NEVER_S, format_duration, is_never
from windrow.model.hazard import NO_HAZARD, Hazard
from windrow.strategies.base import Candidate, Decision, JobPlan, Objective, Strategy, View, best_nodes, decided
from windrow.strategies.levels import Mask

MARGIN = 0.05
"""By which part earlier a job must end than where its inputs are, or where it waits already, to go elsewhere."""
_MOST_SITES = 5  # of which all choices are looked at
WORTH_S = 60
"""And by how much, to leave a queue in which it waits."""


Absent = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Offer:
    """A site as it could be used now.

    `data_s`, `data_bytes`: how long it takes until the inputs of tasks are there, and how much has to be moved. `pace`:
    how many times as long as expected tasks take there. `node_s`, `room_bytes`: what may be used of nodes yet, and of
    the disk. `hazard`: how jobs are lost.
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
        """When the tasks end in one job here, on the best number of nodes, busy until then; the job, its wait, data."""
        view = replace(self.view, left=tasks)
        data_s = self.data_s(np.flatnonzero(tasks).tolist())
        nodes, wait_s, _ = best_nodes(view, 0, view.levels.last, max(busy_s, data_s))
        plan = view.plan(0, view.levels.last, nodes)
        return self.end_s(plan, max(wait_s, data_s, busy_s)), plan, wait_s, data_s

    def end_s(self, job: JobPlan, start_s: int) -> int:
        """When a job that starts then should be done here; what jobs have no time for waits again, in a further one."""
        if is_never(job.run_s) or is_never(start_s):
            return NEVER_S
        limit_s = self.view.work.site.max_request_s
        further = 0 if limit_s is None else ceil(job.run_s * self.pace / limit_s) - 1
        again_s = self.view.wait_s(job.nodes, job.run_s + job.leeway_s) if self.hazard or further else 0
        return round(min(NEVER_S, start_s + self.held_s(job, again_s) + further * again_s))

    def held_s(self, job: JobPlan, again_s: int = 0) -> float:
        """How long a job should take here, with its losses; after each of them it waits for `again_s`."""
        run_s = job.run_s * self.pace
        if not self.hazard:
            return run_s
        longest_s = self.view.work.expected_s[list(job.tasks)].max(initial=1) * self.pace
        return self.hazard.expected_s(job.nodes, run_s, float(longest_s), again_s)

    def objection(self, jobs: Sequence[JobPlan]) -> str:
        """Why these jobs cannot go here though they fit; empty where they can."""
        if sum(job.nodes * job.requested_s for job in jobs) > self.node_s:
            return "it would use more than max_node_hours allows"
        w, tasks = self.view.work.workflow, [task for job in jobs for task in job.tasks if self.room_bytes < inf]
        made = sum(w.files[file].size_bytes for task in tasks for file in w.outputs.of(task).tolist())
        return "no room for the files" if made + self.data_bytes(tasks) > self.room_bytes else ""


@dataclass(frozen=True)
class _Outlook:
    """A site's decision, when all would be done by it, what that takes of nodes and money, and how far data go."""

    offer: Offer
    decision: Decision
    end_s: int
    node_s: int
    price: float
    wait_s: int
    data_s: int
    chance: float = 1.0
    late_s: int = 0
    """The chance that none of its jobs is lost, and by how much preemptions and the like should delay the end."""

    def later(self, best: _Outlook) -> str:
        """In words."""
        by_s = self.end_s - best.end_s
        return "never" if is_never(abs(by_s)) else f"{format_duration(abs(by_s))} {'later' if by_s >= 0 else 'earlier'}"

    @property
    def weighed_s(self) -> float:
        """Who has to fetch data must win by the way back, and by the margin."""
        return self.end_s + (self.data_s + MARGIN * self.end_s if self.data_s else 0.0)

    def row(self, note: str) -> Candidate:
        job = self.decision.jobs[0]
        hours = f"{self.node_s / 3600:,.2f} node-hours" + (f", cost {self.price:,.2f}" if self.price else "")
        hours += f", {100 * (1 - self.chance):.1f} % risk of a loss" if self.chance < 1 else ""
        words = f"{hours}; {note}".removesuffix("; ")
        numbers = (job.nodes, self.wait_s, job.run_s, job.leeway_s, self.end_s)
        return Candidate(f"at {self.offer.name}", *numbers, words, self.offer.name, self.data_s)


def choose(
    strategy: Strategy, offers: Sequence[Offer], objective: Objective = "makespan", absent: Absent | None = None
) -> tuple[str, Decision]:
    """The decision, and the site for which it is. `absent`: sites that cannot be had now, and why."""
    out = dict(absent or {})
    if len(offers) == 1 and not out:
        decision = decided(strategy, offers[0].view)
        why = offers[0].objection(decision.jobs)
        return offers[0].name, Decision(why=why) if why else _at(offers[0], decision)
    hopeless = _hopeless(offers) if objective == "makespan" else {}
    decisions: list[tuple[Offer, Decision]] = []
    for offer in sorted(offers, key=lambda offer: offer.name in hopeless):
        if offer.name in hopeless and any(decision.jobs for _, decision in decisions):
            out[offer.name] = hopeless[offer.name]
            continue
        decision = decided(strategy, offer.view)
        if decision.jobs and (why := offer.objection(decision.jobs)):
            out[offer.name] = why
        elif decision.jobs or not decision.why:
            decisions.append((offer, decision))
        else:
            out[offer.name] = decision.why
    cut = [_outlook(offer, decision, offers) for offer, decision in decisions if decision.jobs]
    if not cut:
        why = "; ".join(f"{name}: {words}" for name, words in out.items()) if not decisions else ""
        return (decisions[0][0].name if decisions else offers[0].name if offers else ""), Decision(why=why)
    if all(one.decision.is_played for one in cut):
        ends = [(one.decision.candidates[0].makespan_s, one) for one in cut]  # in which nodes fail and nothing else
        cut = [replace(one, end_s=played + one.late_s if played else one.end_s) for played, one in ends]
    cut = _sorted(cut, objective)
    best = cut[0]
    rows = [one.row("" if one is best else one.later(best)) for one in cut]
    rows += [Candidate(f"at {name}", 0, 0, 0, 0, None, words, name) for name, words in out.items()]
    decision = _at(best.offer, best.decision)
    if len(decision.jobs) > 1 and not decision.is_played and not any(job.copies for job in decision.jobs):
        others = (offer for offer in offers if offer is not best.offer)
        decision = replace(decision, jobs=_spread(decision.jobs, [best.offer, *others]))
    beside = "".join(f"; at {one.offer.name} {one.later(best)}" for one in cut[1:])
    why = f"at {best.offer.name}{beside}: {decision.why}"
    return best.offer.name, replace(decision, candidates=(*rows, *decision.candidates), why=why)


def _at(offer: Offer, decision: Decision) -> Decision:
    return replace(decision, jobs=tuple(replace(job, site=offer.name) for job in decision.jobs))


def _hopeless(offers: Sequence[Offer]) -> dict[str, str]:
    """The sites that cannot win, and why. Only sites for the same tasks are compared."""
    able = [offer for offer in offers if offer.view.can_submit and offer.view.work.cluster_nodes >= 1]
    if len(able) < 2 or able[0].view.jobs_waiting:
        return {}
    same = [offer for offer in able if (offer.view.left == able[0].view.left).all()]
    best_s = min(offer.sized(offer.view.left, offer.view.busy_s)[0] for offer in same)
    runs = {offer: int(offer.view.levels.run_s(0, offer.view.levels.last).min()) * offer.pace for offer in same}
    least = {offer.name: run_s + offer.view.busy_s for offer, run_s in runs.items()}
    words = "could not win even without a wait"
    return {name: f"{words}: {format_duration(end_s)} at least" for name, end_s in least.items() if end_s > best_s}


def _outlook(offer: Offer, decision: Decision, offers: Sequence[Offer], *, in_turns: bool = False) -> _Outlook:
    """What the decision leads to. What it leaves is taken for one job more, submitted when its first job starts.

    `in_turns`: jobs that a site has no room for side by side run one after another there.
    """
    view, jobs, named = offer.view, decision.jobs, {other.name: other for other in offers}
    both = [(named.get(job.site, offer), job) for job in jobs]
    nodes, runs = np.array([(job.nodes, job.run_s + job.leeway_s) for job in jobs], dtype=np.int64).T
    waits = np.zeros_like(runs)
    for there in {there.name: there for there, _ in both}.values():
        mine = np.array([other is there for other, _ in both])
        waits[mine] = there.view.waits_s(nodes[mine], runs[mine])
    data = [there.data_s(job.tasks) for there, job in both]
    starts = [max(int(wait), far) for wait, far in zip(waits, data, strict=True)]
    taken = Counter[str]()
    for n, (there, job) in enumerate(both if in_turns else ()):
        starts[n] += taken[there.name] // max(1, there.view.work.cluster_nodes) * job.run_s
        taken[there.name] += job.nodes
    end_s = max(there.end_s(job, max(start, view.busy_s)) for (there, job), start in zip(both, starts, strict=True))
    rest = view.left.copy()
    rest[[task for job in jobs for task in job.tasks]] = False
    if rest.any() and not is_never(end_s):
        able = [other for other in offers if other is offer or not (rest & ~other.view.left).any()]
        ways = list[tuple[int, Offer, JobPlan]]()
        for other in (other for other in able if other.view.work.cluster_nodes >= 1):
            _, job, wait_s, data_s = other.sized(rest, end_s)
            ways.append((other.end_s(job, max(end_s, min(starts) + wait_s, data_s)), other, job))
        end_s, other, job = min(ways, key=lambda way: way[0])
        both.append((other, job))
    used = [job.nodes * there.held_s(job) for there, job in both]
    price = sum(there.price * node_s / 3600 for (there, _), node_s in zip(both, used, strict=True))
    chance = prod(there.hazard.survival(job.nodes, job.run_s * there.pace) for there, job in both)
    rest_of = [(replace(there, hazard=replace(there.hazard, scale_s=None)), job) for there, job in both]
    late_s = max(there.end_s(job, 0) - round(job.run_s * there.pace) for there, job in rest_of)
    figures = min(end_s, NEVER_S), round(sum(used)), price, int(waits[0]), max(data), chance, late_s
    return _Outlook(offer, decision, *figures)


@dataclass(frozen=True, slots=True)
class Way:
    """Sites that a run could be confined to: when all should be done, what that costs, and the chance of no loss."""

    sites: tuple[str, ...]
    end_s: int
    node_s: int
    price: float
    chance: float


def frontier(strategy: Strategy, offers: Sequence[Offer]) -> tuple[Way, ...]:
    """Of all choices of sites those that no other beats in time, price and chance of no loss; the earliest first."""
    known: dict[int, Decision] = {}

    class Once:  # what is left is cut once for each site
        name = strategy.name

        def decide(self, view: View) -> Decision:
            return known[id(view)] if id(view) in known else known.setdefault(id(view), strategy.decide(view))

    found: dict[tuple[str, ...], Way] = {}
    sizes = range(1, len(offers) + 1) if len(offers) <= _MOST_SITES else (1, len(offers))
    for some in (some for size in sizes for some in combinations(offers, size)):
        name, decision = choose(Once(), some)
        if decision.jobs:
            chosen = next(offer for offer in some if offer.name == name)
            one = _outlook(chosen, decision, some, in_turns=True)
            sites = tuple(sorted({job.site for job in decision.jobs}))
            found.setdefault(sites, Way(sites, one.end_s, one.node_s, one.price, one.chance))
    keys = {way: np.array((way.end_s, way.price, -way.chance)) for way in found.values()}
    best = [a for a in keys if not any((keys[b] <= keys[a]).all() and (keys[b] < keys[a]).any() for b in keys)]
    return tuple(sorted(best, key=lambda way: (way.end_s, way.price, way.sites)))


def _sorted(found: Sequence[_Outlook], objective: Objective) -> list[_Outlook]:
    """The best first."""
    first, least = max(1.0, min(one.weighed_s for one in found)), max(1, min(one.node_s for one in found))

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


def _spread(jobs: Sequence[JobPlan], offers: Sequence[Offer]) -> tuple[JobPlan, ...]:
    """Each job at the site where it ends first, behind those that go there with it; of equals the first site."""
    taken, sent, placed = Counter[str](), Counter[str](), list[JobPlan]()
    for job in jobs:
        found: list[tuple[int, int, JobPlan]] = []
        for number, offer in enumerate(offers):
            view, mine = offer.view, np.array(job.tasks)
            if sent[offer.name] >= view.cap - view.jobs or not view.left[mine].all():
                continue
            is_wide = job.nodes > view.work.cluster_nodes
            run_s = NEVER_S if is_wide else int(view.work.run_s(mine, job.nodes, job.nodes)[0])
            if is_never(run_s) or offer.objection([*(p for p in placed if p.site == offer.name), job]):
                continue
            plan = replace(job, run_s=run_s, requested_s=view.request(run_s + job.leeway_s), site=offer.name)
            turns = taken[offer.name] // max(1, view.work.cluster_nodes)
            start_s = max(view.wait_s(job.nodes, run_s + job.leeway_s), offer.data_s(job.tasks)) + turns * run_s
            found.append((offer.end_s(plan, start_s), number, plan))
        if found:
            placed.append(min(found, key=lambda one: one[:2])[2])
            taken[placed[-1].site] += job.nodes
            sent[placed[-1].site] += 1
    return tuple(placed)


def better_elsewhere(tasks: Mask, stays_s: int, offers: Sequence[Offer], busy_s: int) -> tuple[str, int] | None:
    """The site at which these tasks, submitted now, should end clearly before `stays_s`, and when; None: at none."""
    there = (offer for offer in offers if offer.view.jobs < offer.view.cap and offer.view.work.cluster_nodes >= 1)
    able = (offer for offer in there if offer.view.work.mine is None or offer.view.work.mine[tasks].all())
    end_s, name = min(((offer.sized(tasks, busy_s)[0], offer.name) for offer in able), default=(NEVER_S, ""))
    return (name, end_s) if stays_s > end_s * (1 + MARGIN) and stays_s > end_s + WORTH_S else None
