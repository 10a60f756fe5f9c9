"""What is run of the thesis: sweeps of chapter 4 with the choices of models and of simulation,
failures, and counts.

Law: choices are judged on other seeds than those on which they were made. A belief is wrong by 20 %
for each file and job, up or down; as all are alike, it comes to means. Sizes of batch data, which
exist, are looked up, but for `blind`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from windrow.agent.data.replicas import ALWAYS, COST_BENEFIT, NEVER, RULES
from windrow.profile.measures import Amount, Mask, Measures
from windrow.profile.roles import infer
from windrow.recipes.workflows.applications import application_trace, applications
from windrow.storage.roles import Role
from windrow.storage.staging import SCOPES
from windrow_lab.reproductions.bent.baselines import BASELINES, WHERE
from windrow_lab.reproductions.bent.caches import fetches, missed, scan_rate, second_scan_rate
from windrow_lab.reproductions.bent.copies import done_s
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed
from windrow_lab.storage.allocations import ALL_BATCH, Environment, PipelineWorkload, best, possible
from windrow_lab.storage.flows import DataFlow, alone, canonical, play, play_all, through_home
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
        scale = "full"
        step = 1
        runs = 30
        names = tuple(applications())
    else:
        scale = "quick"
        step = 3
        runs = 4
        names = ("blast", "cms", "amanda")
    calls: list[Any] = [partial(sweep, name, work, step) for name in SWEEPS for work in BASELINES]
    calls += [partial(failing, 0.0, 3, work) for work in BASELINES]
    calls += [partial(failing, rate, runs) for rate in RATES]
    calls += [counted, partial(measured, names)]
    return PaperPlan(scale, calls=tuple(calls), calls_are="playing")


def place(name: str, base: PipelineWorkload, x: float) -> tuple[PipelineWorkload, Environment]:
    """The workload and where it runs, with one variable as a sweep has it."""
    said = SWEEPS[name]
    value = x * said["scale"]
    work = replace(base, run_s=said.get("run_s", base.run_s))
    if said["field"] == "remote":
        return work, replace(WHERE, remote=value)
    if said["field"] not in ("run_s", "variation"):
        value = round(value)
    return replace(work, **{said["field"]: value}), WHERE


def all_times(
    work: PipelineWorkload, where: Environment, seeds: Iterable[int]
) -> dict[str, list[float]]:
    """Of each allocation that is possible, by seed."""
    able = possible(work, where.storage)
    played = [play_all(canonical(work, seed), where, seed, able) for seed in seeds]
    return {one: [each[one].time_s for each in played] for one in able}


def mean_times(
    work: PipelineWorkload, where: Environment, seeds: Iterable[int]
) -> dict[str, float]:
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


def losses(
    work: PipelineWorkload, where: Environment, times: Mapping[str, float]
) -> dict[str, float]:
    """By what each way to choose is above the best, in percent; of beliefs the worst."""
    modelled = [best(work, where, is_printed=is_so) for is_so in (True, False)]
    found = [max(times.values()), *(times[one or next(iter(times))] for one in modelled)]
    found += _by_wrong_files(work, where, times)
    found += _by_wrong_factors(work, where, times)
    least = min(times.values())
    return {choice: 100 * (took / least - 1) for choice, took in zip(CHOICES, found, strict=True)}


def _taken(belief: PipelineWorkload, where: Environment, times: Mapping[str, float]) -> str:
    """The first in the order of the belief that there is really space for."""
    believed = mean_times(belief, where, _OWN)
    return min(times, key=lambda one: believed.get(one, inf))


def _by_wrong_files(
    work: PipelineWorkload, where: Environment, times: Mapping[str, float]
) -> Iterable[float]:
    """Each file and job is believed wrong by itself: the worst of three, if one chooses once, if
    one chooses again later, and if sizes of batch data are not looked up."""
    rng = np.random.default_rng(7)
    seen = []
    for _ in range(3):
        counts = (work.width * (work.depth + 1), work.jobs, work.depth)
        private, run, batch = (1 + WRONG * rng.choice((-1, 1), many).mean() for many in counts)
        belief = replace(work, private=round(work.private * private), run_s=work.run_s * run)
        first = _taken(belief, where, times)
        blind = _taken(replace(belief, batch=round(work.batch * batch)), where, times)
        seen.append((times[first], _again(work, where, first, times), times[blind]))
    return map(max, *seen)


def _by_wrong_factors(
    work: PipelineWorkload, where: Environment, times: Mapping[str, float]
) -> tuple[float, float]:
    """All are believed wrong by one factor: the worst of two, if one chooses once, and if one
    chooses again later."""
    wrong = []
    for factor in (1 - WRONG, 1 / (1 - WRONG)):
        belief = replace(work, private=round(work.private * factor), run_s=work.run_s * factor)
        wrong.append(_taken(belief, where, times))
    once = max(times[one] for one in wrong)
    return once, max(_again(work, where, one, times) for one in wrong)


def _again(
    work: PipelineWorkload, where: Environment, first: str, times: Mapping[str, float]
) -> float:
    """As many pipelines as nodes by the wrong choice; then all is known, and the rest continues, or
    not."""
    rest = max(0, work.width - where.nodes)
    if times[first] == min(times.values()) or not rest:
        return times[first]
    probe = replace(work, width=min(work.width, where.nodes))
    probed = [play(canonical(probe, seed), first, where).time_s for seed in _JUDGES]
    best_rest = min(mean_times(replace(work, width=rest), where, _JUDGES).values())
    return min(times[first], float(np.mean(probed)) + best_rest)


def failing(rate: float, runs: int, workload: str = "mixed") -> dict[str, list[float]]:
    """A workload with this many failures a second, under each allocation: run times."""
    return all_times(BASELINES[workload], replace(WHERE, failures_per_s=rate), range(runs))


def counted() -> dict[str, float]:
    """Chapter 3 and appendix A, from bytes and blocks; figures 1.1, 3.3, and 3.5 to 3.7 are
    played."""
    return scoped() | bound() | copied() | _cooperative() | _busy() | _scanned()


def _cooperative() -> dict[str, float]:
    """Figure 3.4: how often batch volumes cross the wide area, by their size in percent of the
    cache."""
    found = {}
    for x in (20, 25, 26, 99, 101):
        for order in ("depth-first", "breadth-first"):
            volume = 2048 * x // 100
            found[f"3.4 {order} {x}"] = fetches(volume, 2048, order, 64)
            found[f"3.4 hashed {order} {x}"] = fetches(volume, 2048, order, 64, is_hashed=True)
    return found


def _busy() -> dict[str, float]:
    """Figure 3.5: the most nodes at work, by percent of one disk of 512 MB: half for what a job
    reads, half for what it writes."""
    found = {}
    for x in (20, 30, 40, 60):
        work = PipelineWorkload(32, 4, 0, x * 2560, 60, 0.1)
        run = play(canonical(work, 1), ALL_BATCH, Environment(16, 512_000, 1e9, 1e9))
        found[f"3.5 {x}"] = float(busy_nodes(run)[1].max())
    return found


def _scanned() -> dict[str, float]:
    """Figures A.3 and A.4."""
    rates = {"memory": 100.0, "disk": 20.0, "local": 12.0, "remote": 1.0}
    found = {}
    for size in (32, 64, 80, 256, 300, 512, 600):
        found[f"A.3 LRU {size}"] = scan_rate(size, 64, 256, rates)
        found[f"A.3 MRU {size}"] = scan_rate(size, 64, 256, rates, is_mru=True)
    for size in (65, 128, 256):
        found[f"A.3 dirty {size}"] = second_scan_rate(size, 64, rates)
    return found


def copied() -> dict[str, float]:
    """Figure 3.6: run times by when volumes are copied, beside each other; copies of 4 and 8 s are
    small and large."""
    small = 4.0
    large = 8.0
    failing = 180.0
    mean_s: dict[tuple[str, float, float], float] = {}
    for mtbf_s, runs in ((0.0, 1), (failing, 60)):
        for copy_s in (small, large):
            for rule in RULES:
                times = [done_s(rule, copy_s, mtbf_s, seed) for seed in range(runs)]
                mean_s[rule, copy_s, mtbf_s] = float(np.mean(times))

    def ratio(rule: str, other: str, copy_s: float, mtbf_s: float) -> float:
        return mean_s[rule, copy_s, mtbf_s] / mean_s[other, copy_s, mtbf_s]

    def most(rule: str, other: str, mtbf_s: float) -> float:
        return max(ratio(rule, other, copy_s, mtbf_s) for copy_s in (small, large))

    gaps = [mean_s[ALWAYS, copy_s, 0.0] - mean_s[NEVER, copy_s, 0.0] for copy_s in (small, large)]
    return {
        "3.6 calm never": most(NEVER, COST_BENEFIT, 0.0),
        "3.6 calm benefit": most(COST_BENEFIT, ALWAYS, 0.0),
        "3.6 gap": gaps[1] / gaps[0],
        "3.6 never": most(COST_BENEFIT, NEVER, failing),
        "3.6 always 4": ratio(COST_BENEFIT, ALWAYS, small, failing),
        "3.6 always 8": ratio(COST_BENEFIT, ALWAYS, large, failing),
    }


def scoped() -> dict[str, float]:
    """Figure 3.3: MB that cross the wide area, and seconds, by share of batch data; endpoint data
    are 1 KB of each."""
    moved: dict[tuple[str, float], float] = {}
    time_s: dict[tuple[str, float], float] = {}
    where = Environment(16, 10**9, 1000.0, 1e9)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        flow = _with_batch_share(share)
        for name, (is_local, is_cached) in SCOPES.items():
            run = play(through_home(flow, is_local=is_local, is_cached=is_cached), ALL_BATCH, where)
            moved[name, share] = run.moved / 1000
            time_s[name, share] = run.time_s
    found = {f"3.3 {name} {share:g}": value for (name, share), value in moved.items()}
    found |= {f"3.3 {name} {share:g} s": value for (name, share), value in time_s.items()}
    found["3.3 gain"] = moved["remote", 1.0] / moved["both", 1.0]
    others = {at: took_s for at, took_s in time_s.items() if at[0] != "both"}
    beside = (time_s["both", share] / took_s for (_, share), took_s in others.items())
    found["3.3 both beside"] = max(beside)
    remote = [share for name, share in moved if name == "remote"]
    found["3.3 late"] = max(time_s["remote", share] / moved["remote", share] for share in remote)
    return found


def _with_batch_share(share: float) -> DataFlow:
    """48 pipelines of four jobs, with 100 MB in each."""
    flow = canonical(PipelineWorkload(48, 4, round(25_000 * share), 1, 1.0))
    between = 100_000 * (1 - share) / 6  # three files, each written once and read once
    sizes = np.full((48, 5), between)
    sizes[:, [0, -1]] = 0.5
    return replace(flow, files=sizes.ravel())


def bound() -> dict[str, float]:
    """Figures 1.1 and 3.7: 64 pipelines on 16 nodes, home across a wide area (1 MB/s) or nearby (12
    MB/s)."""
    links = {"far": 1000.0, "near": 12_000.0}
    took = {
        (name, link): _ways(name, remote)
        for name in applications()
        for link, remote in links.items()
    }
    beside = {at: _beside(ways) for at, ways in took.items()}
    found: dict[str, float] = {}
    for (name, link), ways in took.items():
        found |= {f"3.7 {name} {way} {link}": took_s for way, took_s in ways.items()}
        found[f"3.7 {name} beside {link}"] = beside[name, link]
    slower = (took[one, "far"]["remote"] / took[one, "far"]["both"] for one in applications())
    found["1.1 slowdown"] = max(slower)
    found["3.7 beside"] = max(beside[one, link] for one in ("blast", "hf") for link in links)
    for one in ("blast", "hf"):
        found |= _gains(one, took[one, "far"], took[one, "near"])
    return found | {"3.7 small cache": _small_cache()}


def _gains(name: str, far: Mapping[str, float], near: Mapping[str, float]) -> dict[str, float]:
    """What each part of both does for an application whose home is far."""
    return {
        f"3.7 {name} cached": far["remote"] / far["standalone"],
        f"3.7 {name} localised": far["standalone"] / far["both"],
        f"3.7 {name} warm": far["both warm"] / near["both warm"],
    }


def _small_cache() -> float:
    """600 MB of data, scanned again and again, in a cache of 500 MB: the share that is fetched."""
    blocks = np.tile(np.arange(150), 3)
    return float(np.sum(missed(blocks, 125) >= 150)) / 3


def _beside(ways: Mapping[str, float]) -> float:
    """How long it takes with both at the most, by how long with less."""
    return max(
        ways["both"] / ways["remote"],
        ways["both"] / ways["standalone"],
        ways["both warm"] / ways["standalone warm"],
    )


def _ways(name: str, remote: float) -> dict[str, float]:
    """How long the pipelines of an application take if its files are moved in these ways, over a
    link to home of this speed."""
    mb = printed("bent")["roles"][name]
    endpoint, pipeline, batch, unique = (round(1000 * mb[k]) for k in (1, 5, 9, 10))
    run_s = sum(stage["real_s"] for stage in applications()[name]["stages"].values())
    where = Environment(16, 10**9, remote, 1e9)
    private = endpoint + pipeline
    fetched = partial(through_home, is_local=True, is_cached=False)
    dealt = partial(alone, nodes=16)

    def time_s(batch: int, own: int, how: Callable[[DataFlow], DataFlow] | None = None) -> float:
        flow = canonical(PipelineWorkload(64, 1, batch, own // 2, run_s))
        return play(how(flow) if how else flow, ALL_BATCH, where).time_s

    return {
        "remote": time_s(batch, private, fetched),
        "standalone": time_s(unique, private, dealt),
        "standalone warm": time_s(0, private, dealt),
        "both": time_s(unique, endpoint),
        "both warm": time_s(0, endpoint),
    }


def measured(names: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    """Of traces, roles inferred: table 2.4 (files, traffic, unique and static MB of endpoint,
    pipeline, batch data); hits in percent in caches of 1 and 256 MB for batch data and of 1 MB for
    pipeline data; operations of up to 4 KB; table 2.2 (the same four of all, of what is read and of
    what is written); table 2.3 (operations by kind).
    """
    return {name: tuple(_row(Measures(application_trace(name)))) for name in names}


def _row(figures: Measures) -> Iterator[float]:
    roles = infer(figures, "/pipeline-1")
    for role in (Role.ENDPOINT, Role.PIPELINE, Role.BATCH):
        yield from _amounts(figures.amount(roles.uses(figures, role)))
    for role, blocks in ((Role.BATCH, 244), (Role.BATCH, 62_500), (Role.PIPELINE, 244)):
        yield _hits(figures, roles.uses(figures, role), blocks)
    sizes, counts = figures.sizes(figures.everything)
    yield 100 * float(counts[sizes <= 4096].max(initial=0) / counts[-1])
    for uses in (figures.everything, ~figures.is_write, figures.is_write):
        yield from _amounts(figures.amount(uses))
    yield from map(float, figures.kinds(range(len(figures.trace.stages))).values())


def _amounts(of: Amount) -> tuple[float, ...]:
    """Files, and MB."""
    return of.files, of.traffic / 1e6, of.unique / 1e6, of.static / 1e6


def _hits(figures: Measures, uses: Mask, blocks: int) -> float:
    """In percent, in a cache of that many blocks."""
    curve = figures.cache_curve(uses)[1]
    if not len(curve):
        return 0.0
    return 100 * float(curve[min(len(curve), blocks) - 1])
