"""What is run of the thesis: sweeps of chapter 4 with the choices of models and of simulation,
failures, and counts.

Law: choices are judged on other seeds than those on which they were made. A belief is wrong by 20 %
for each file and job, up or down; as all are alike, it comes to means. Sizes of batch data, which
exist, are looked up, but for `blind`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from windrow.agent.data.replicas import ALWAYS, COST_BENEFIT, NEVER, RULES
from windrow.profile.measures import Measures
from windrow.profile.roles import infer
from windrow.recipes.workflows.applications import application_trace, applications
from windrow.storage.roles import Role
from windrow.storage.staging import SCOPES
from windrow_lab.reproductions.bent.baselines import BASELINES, WHERE
from windrow_lab.reproductions.bent.caches import fetches, missed, scan_rate, second_scan_rate
from windrow_lab.reproductions.bent.copies import done_s
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed
from windrow_lab.storage.allocations import ALL_BATCH, Environment, Workload, best, possible
from windrow_lab.storage.flows import alone, canonical, play, play_all, through_home
from windrow_lab.storage.plan import busy_nodes

SWEEPS = printed("bent", "sweeps")
WRONG = 0.2
RATES = (0.0, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4)
CHOICES = (
    "worst",
    "as printed",
    "Bent's model",
    "simulation",
    "and again",
    "blind",
    "one factor",
    "chosen again",
)
_JUDGES = (11, 12, 13)
_OWN = (1, 2, 3)


class Point(NamedTuple):
    """One workload in one place: mean run time under each allocation; what choosing by each way
    loses, in percent."""

    sweep: str
    workload: str
    x: float
    jobs: int
    times: dict[str, float]
    losses: dict[str, float]


def plan_bent(wishes: Wishes) -> PaperPlan:
    """A call for each sweep of each workload, and for each rate of failures."""
    if wishes.full:
        step = 1
    else:
        step = 3
    calls: list[Any] = [partial(sweep, name, work, step) for name in SWEEPS for work in BASELINES]
    calls += [partial(failing, 0.0, 3, work) for work in BASELINES]
    calls += [partial(failing, rate, 30 if wishes.full else 4) for rate in RATES]
    calls += [
        counted,
        partial(measured, tuple(applications()) if wishes.full else ("blast", "cms", "amanda")),
    ]
    return PaperPlan("full" if wishes.full else "quick", calls=tuple(calls), calls_are="playing")


def place(name: str, base: Workload, x: float) -> tuple[Workload, Environment]:
    """The workload and where it runs, with one variable as a sweep has it."""
    said = SWEEPS[name]
    value = x * said["scale"]
    work = replace(base, run_s=said.get("run_s", base.run_s))
    if said["field"] == "remote":
        return work, replace(WHERE, remote=value)
    return replace(
        work, **{said["field"]: value if said["field"] in ("run_s", "variation") else round(value)}
    ), WHERE


def all_times(work: Workload, where: Environment, seeds: Iterable[int]) -> dict[str, list[float]]:
    """Of each allocation that is possible, by seed."""
    able = possible(work, where.storage)
    played = [play_all(canonical(work, seed), where, seed, able) for seed in seeds]
    return {one: [each[one].time_s for each in played] for one in able}


def mean_times(work: Workload, where: Environment, seeds: Iterable[int]) -> dict[str, float]:
    """The means."""
    return {one: float(np.mean(times)) for one, times in all_times(work, where, seeds).items()}


def sweep(name: str, workload: str, step: int) -> list[Point]:
    """Each point of it at which something is possible."""
    points = []
    for x in SWEEPS[name]["x"][::step]:
        work, where = place(name, BASELINES[workload], x)
        times = mean_times(work, where, _JUDGES)
        if times:
            points.append(Point(name, workload, x, work.jobs, times, losses(work, where, times)))
    return points


def losses(work: Workload, where: Environment, times: Mapping[str, float]) -> dict[str, float]:
    """By what each way to choose is above the best, in percent; of beliefs the worst."""
    rng = np.random.default_rng(7)
    models = [best(work, where, is_printed=is_so) for is_so in (True, False)]

    def taken(belief: Workload) -> str:
        """The first in the order of the belief that there is really space for."""
        believed = mean_times(belief, where, _OWN)
        return min(times, key=lambda one: believed.get(one, inf))

    found = [max(times.values()), *(times[one or next(iter(times))] for one in models)]
    seen = []
    for _ in range(3):
        counts = (work.width * (work.depth + 1), work.jobs, work.depth)
        private, run, batch = (1 + WRONG * rng.choice((-1, 1), many).mean() for many in counts)
        belief = replace(work, private=round(work.private * private), run_s=work.run_s * run)
        first, blind = map(taken, (belief, replace(belief, batch=round(work.batch * batch))))
        seen.append([times[first], _again(work, where, first, times), times[blind]])
    factors = (1 - WRONG, 1 / (1 - WRONG))
    wrong = [
        taken(replace(work, private=round(work.private * f), run_s=work.run_s * f)) for f in factors
    ]
    found += [
        *map(max, *seen),
        max(times[one] for one in wrong),
        max(_again(work, where, one, times) for one in wrong),
    ]
    return {
        choice: 100 * (took / min(times.values()) - 1)
        for choice, took in zip(CHOICES, found, strict=True)
    }


def _again(work: Workload, where: Environment, first: str, times: Mapping[str, float]) -> float:
    """As many pipelines as nodes by the wrong choice; then all is known, and the rest continues, or
    not."""
    probe = min(work.width, where.nodes)
    rest = max(0, work.width - where.nodes)
    if times[first] == min(times.values()) or not rest:
        return times[first]
    begun = float(
        np.mean(
            [play(canonical(replace(work, width=probe), s), first, where).time_s for s in _JUDGES]
        )
    )
    return min(
        times[first], begun + min(mean_times(replace(work, width=rest), where, _JUDGES).values())
    )


def failing(rate: float, runs: int, workload: str = "mixed") -> dict[str, list[float]]:
    """A workload with this many failures a second, under each allocation: run times."""
    return all_times(BASELINES[workload], replace(WHERE, failures_per_s=rate), range(runs))


def counted() -> dict[str, float]:
    """Chapter 3 and appendix A, from bytes and blocks; figures 1.1, 3.3, and 3.5 to 3.7 are
    played."""
    found: dict[str, float] = {}
    found |= scoped() | bound() | copied()
    for x in (20, 25, 26, 99, 101):
        for order in ("depth-first", "breadth-first"):
            volume = 2048 * x // 100
            found[f"3.4 {order} {x}"] = fetches(volume, 2048, order, 64)
            found[f"3.4 hashed {order} {x}"] = fetches(volume, 2048, order, 64, is_hashed=True)
    for x in (
        20,
        30,
        40,
        60,
    ):  # percent of one disk of 512 MB: half for what a job reads, half for what it writes
        work = Workload(32, 4, 0, x * 2560, 60, 0.1)
        where = Environment(16, 512_000, 1e9, 1e9)
        run = play(canonical(work, 1), ALL_BATCH, where)
        found[f"3.5 {x}"] = float(busy_nodes(run)[1].max())
    rates = {"memory": 100.0, "disk": 20.0, "local": 12.0, "remote": 1.0}
    for policy, size in (
        (policy, size) for policy in ("LRU", "MRU") for size in (32, 64, 80, 256, 300, 512, 600)
    ):
        found[f"A.3 {policy} {size}"] = scan_rate(size, 64, 256, rates, is_mru=policy == "MRU")
    return found | {
        f"A.3 dirty {size}": second_scan_rate(size, 64, rates) for size in (65, 128, 256)
    }


def copied() -> dict[str, float]:
    """Figure 3.6: run times by when volumes are copied, beside each other; copies of 4 and 8 s are
    small and large."""
    mean_s = {
        (rule, copy_s, mtbf_s): float(
            np.mean([done_s(rule, copy_s, mtbf_s, seed) for seed in range(runs)])
        )
        for mtbf_s, runs in ((0.0, 1), (180.0, 60))
        for copy_s in (4.0, 8.0)
        for rule in RULES
    }

    def beside(rule: str, other: str, mtbf_s: float) -> float:
        return max(
            mean_s[rule, copy_s, mtbf_s] / mean_s[other, copy_s, mtbf_s] for copy_s in (4.0, 8.0)
        )

    gaps = [mean_s[ALWAYS, copy_s, 0.0] - mean_s[NEVER, copy_s, 0.0] for copy_s in (4.0, 8.0)]
    return {
        "3.6 calm never": beside(NEVER, COST_BENEFIT, 0.0),
        "3.6 calm benefit": beside(COST_BENEFIT, ALWAYS, 0.0),
        "3.6 gap": gaps[1] / gaps[0],
        "3.6 never": beside(COST_BENEFIT, NEVER, 180.0),
        **{
            f"3.6 always {c:g}": mean_s[COST_BENEFIT, c, 180.0] / mean_s[ALWAYS, c, 180.0]
            for c in (4.0, 8.0)
        },
    }


def scoped() -> dict[str, float]:
    """Figure 3.3: MB that cross the wide area, and seconds, by share of batch data; endpoint data
    are 1 KB of each."""
    found: dict[str, float] = {}
    where = Environment(16, 10**9, 1000.0, 1e9)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        flow = canonical(Workload(48, 4, round(25_000 * share), 1, 1.0))
        sizes = np.full(
            (48, 5), 100_000 * (1 - share) / 6
        )  # three files, each written once and read once
        sizes[:, [0, -1]] = 0.5
        flow = replace(flow, files=sizes.ravel())
        for name, (is_local, is_cached) in SCOPES.items():
            run = play(through_home(flow, is_local=is_local, is_cached=is_cached), ALL_BATCH, where)
            found[f"3.3 {name} {share:g}"] = run.moved / 1000
            found[f"3.3 {name} {share:g} s"] = run.time_s
    found["3.3 gain"] = found["3.3 remote 1"] / found["3.3 both 1"]
    others = [
        (name, share)
        for name in ("remote", "localised", "cached")
        for share in ("0", "0.25", "0.5", "0.75", "1")
    ]
    found["3.3 both beside"] = max(
        found[f"3.3 both {x} s"] / found[f"3.3 {name} {x} s"] for name, x in others
    )
    found["3.3 late"] = max(
        found[f"3.3 remote {x} s"] / found[f"3.3 remote {x}"] for _, x in others
    )
    return found


def bound() -> dict[str, float]:
    """Figures 1.1 and 3.7: 64 pipelines on 16 nodes, home across a wide area (1 MB/s) or nearby (12
    MB/s)."""
    found: dict[str, float] = {}
    for name in applications():
        for link, remote in (("far", 1000.0), ("near", 12_000.0)):
            ways = _ways(name, remote)
            found |= {f"3.7 {name} {way} {link}": took_s for way, took_s in ways.items()}
            found[f"3.7 {name} beside {link}"] = max(
                ways["both"] / ways["remote"],
                ways["both"] / ways["standalone"],
                ways["both warm"] / ways["standalone warm"],
            )
    both = [
        (found[f"3.7 {one} remote far"], found[f"3.7 {one} both far"]) for one in applications()
    ]
    found["1.1 slowdown"] = max(remote / near for remote, near in both)
    found["3.7 beside"] = max(
        found[f"3.7 {one} beside {link}"] for one in ("blast", "hf") for link in ("far", "near")
    )
    for one in ("blast", "hf"):
        remote, standalone, near, warm = (
            found[f"3.7 {one} {way} far"] for way in ("remote", "standalone", "both", "both warm")
        )
        found[f"3.7 {one} cached"] = remote / standalone
        found[f"3.7 {one} localised"] = standalone / near
        found[f"3.7 {one} warm"] = warm / found[f"3.7 {one} both warm near"]
    # 600 MB of data, scanned again and again, in a cache of 500 MB
    blocks = np.tile(np.arange(150), 3)
    found["3.7 small cache"] = float(np.sum(missed(blocks, 125) >= 150)) / 3
    return found


def _ways(name: str, remote: float) -> dict[str, float]:
    """How long the pipelines of an application take if its files are moved in these ways, over a
    link to home of this speed."""
    endpoint, pipeline, batch, unique = (
        round(1000 * printed("bent")["roles"][name][k]) for k in (1, 5, 9, 10)
    )
    run_s = sum(stage["real_s"] for stage in applications()[name]["stages"].values())
    where = Environment(16, 10**9, remote, 1e9)
    private = endpoint + pipeline

    def time_s(batch: int, own: int, how: Any) -> float:
        flow = canonical(Workload(64, 1, batch, own // 2, run_s))
        return play(how(flow), ALL_BATCH, where).time_s

    return {
        "remote": time_s(batch, private, partial(through_home, is_local=True, is_cached=False)),
        "standalone": time_s(unique, private, partial(alone, nodes=16)),
        "standalone warm": time_s(0, private, partial(alone, nodes=16)),
        "both": time_s(unique, endpoint, lambda flow: flow),
        "both warm": time_s(0, endpoint, lambda flow: flow),
    }


def measured(names: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    """Of traces, roles inferred: table 2.4 (files, traffic, unique and static MB of endpoint,
    pipeline, batch data); hits in percent in caches of 1 and 256 MB for batch data and of 1 MB for
    pipeline data; operations of up to 4 KB; table 2.2 (the same four of all, of what is read and of
    what is written); table 2.3 (operations by kind).
    """
    rows = {}
    for name in names:
        figures = Measures(application_trace(name))
        roles = infer(figures, "/pipeline-1")
        (sizes, counts) = figures.sizes(figures.everything)
        by_role = [roles.uses(figures, role) for role in (Role.ENDPOINT, Role.PIPELINE, Role.BATCH)]
        by_way = figures.everything, ~figures.is_write, figures.is_write
        of_roles, of_ways = (
            [
                x
                for a in map(figures.amount, uses)
                for x in (a.files, a.traffic / 1e6, a.unique / 1e6, a.static / 1e6)
            ]
            for uses in (by_role, by_way)
        )
        hits = []
        for role, blocks in ((Role.BATCH, 244), (Role.BATCH, 62_500), (Role.PIPELINE, 244)):
            curve = figures.cache_curve(roles.uses(figures, role))[1]
            hits.append(100 * float(curve[min(len(curve), blocks) - 1]) if len(curve) else 0.0)
        small = 100 * float(counts[sizes <= 4096].max(initial=0) / counts[-1])
        kinds = figures.kinds(range(len(figures.trace.stages))).values()
        rows[name] = (*of_roles, *hits, small, *of_ways, *map(float, kinds))
    return rows
