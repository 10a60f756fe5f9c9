"""Does choosing among sites pay? Two unequal sites under the load of real logs, many seeds, the
shell that ships.

    python bench/sites.py [--seeds 200] [--first 1] [--workers 2] [--strategy glume] [--json FILE]

A case is a workflow, two logs at moments of their own that become one time, and a speed for each
site; all of it follows from the seed. It is run in virtual time (`tests.survival.several`) in four
ways:

- windrow: each job where it should end first, moved while it waits where another site becomes
  clearly better;
- slurm: each job to the site with the earliest start when it is submitted, and never moved (`sbatch
  -M a,b`);
- a, b: the whole run at one site. The better of both, known only afterwards, is *hindsight*; the
  best fixed site is the one that is better in the mean over all cases.

Forecasts come from the twin, which knows what requests say and nothing more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from unittest import mock

sys.path[0] = str(
    Path(__file__).resolve().parents[1]
)  # so that `tests` and `bench` are folders of the project

import numpy as np  # noqa: E402
from tests.survival.several import SitesRun  # noqa: E402

from windrow.forecast.twin import Twin  # noqa: E402
from windrow.formats.swf.reader import read_log  # noqa: E402
from windrow.manager.manager import Manager  # noqa: E402
from windrow.manager.terms import Terms  # noqa: E402
from windrow.model import Log, Runnable, Step, Workflow  # noqa: E402
from windrow.model.site import Site  # noqa: E402
from windrow.queues.simulated import SimulatedQueue  # noqa: E402
from windrow.recipes import generate_workflow  # noqa: E402
from windrow.sim.cluster import Cluster  # noqa: E402
from windrow.story.story import RunStory  # noqa: E402
from windrow.strategies import choosing  # noqa: E402
from windrow.strategies.base import Decision, Objective, Strategy, decided  # noqa: E402
from windrow.strategies.choosing import SiteOffer, choose  # noqa: E402
from windrow.trials.virtual.world import World  # noqa: E402

LOGS = ("KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln")
DAY_S = 86400
BEFORE_S = 10 * DAY_S
AFTER_S = 30 * DAY_S
"""What of a log is replayed around the moment at which the workflow comes."""
RECIPES = ("montage", "level", "random", "fork-join", "blast")
WAYS = ("windrow", "slurm", "a", "b")
POLICY = "conservative-replan"


@dataclass(frozen=True)
class Outcome:
    """What came of one case, by way: makespan in seconds, node-hours of jobs; and how often jobs
    were moved."""

    seed: int
    case: str
    makespan_s: dict[str, int]
    node_hours: dict[str, float]
    moved: int

    @property
    def hindsight_s(self) -> int:
        return min(self.makespan_s["a"], self.makespan_s["b"])


@cache
def log(name: str) -> Log:
    data = Path(
        os.environ.get("WINDROW_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    )
    return read_log(data / "swf" / f"{name}.swf.gz")


def window(whole: Log, at_s: int) -> Log:
    """The log around this moment, which becomes second BEFORE_S."""
    kept = (whole.submit_s >= at_s - BEFORE_S) & (whole.submit_s < at_s + AFTER_S)
    columns = {
        name: getattr(whole, name)[kept]
        for name in ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
    }
    columns["submit_s"] = columns["submit_s"] - (at_s - BEFORE_S)
    return replace(whole, **columns)


@dataclass(frozen=True)
class Case:
    """One workflow, two clusters at the moment at which it comes, their speeds, and what tasks
    take."""

    seed: int
    words: str
    runnable: Runnable
    clusters: tuple[Cluster, Cluster]
    speeds: tuple[float, float]
    noise: tuple[float, ...]


def draw(seed: int) -> Case:
    chance = random.Random(f"sites {seed}")
    names = chance.sample(LOGS, 2)
    recipe = chance.choice(RECIPES)
    speeds = (1.0, chance.choice([0.5, 0.7, 1.0, 1.4, 2.0]))
    tasks = chance.choice([30, 60, 100])
    work_s = chance.choice([5, 20, 60]) * 3600
    workflow = generate_workflow(recipe, tasks=tasks, seed=seed)
    workflow = workflow.with_times(np.maximum(60, workflow.runtime_s * work_s / workflow.work_s))
    bare = [
        replace(workflow.task(n), inputs=(), outputs=(), command=()) for n in range(len(workflow))
    ]
    runnable = Runnable(
        Workflow.from_tasks(workflow.name, bare), (Step(("true",), "/"),) * len(bare)
    )
    clusters = []
    for name in names:
        whole = log(name)
        at_s = int(whole.submit_s[0]) + chance.randrange(
            2 * BEFORE_S, int(whole.submit_s[-1] - whole.submit_s[0]) - AFTER_S
        )
        cluster = Cluster(window(whole, at_s), policy=POLICY)
        cluster.advance(BEFORE_S)
        clusters.append(cluster)
    noise = tuple(min(1.15, chance.lognormvariate(0, 0.1)) for _ in bare)
    words = (
        f"{recipe} {len(bare)} tasks, {work_s // 3600} h; {names[0][:4]} x{speeds[0]:g}, "
        f"{names[1][:4]} x{speeds[1]:g}"
    )
    return Case(seed, words, runnable, (clusters[0], clusters[1]), speeds, noise)


class Run(SitesRun):
    """A run that may be kept from moving."""

    moves = True

    def hire(self, *args: object) -> Manager:
        manager = super().hire(*args)  # type: ignore[arg-type]
        if manager.moving is not None and not self.moves:
            manager.moving.next_s = float("inf")
        return manager


def earliest_start(
    strategy: Strategy,
    offers: Sequence[SiteOffer],
    objective: Objective = "makespan",
    absent: Mapping[str, str] | None = None,
) -> tuple[str, Decision]:
    """As `choosing.choose`: the site where the job that the strategy cuts for it would start
    first."""
    cut = [(offer, decided(strategy, offer.view)) for offer in offers]
    cut = [(offer, decision) for offer, decision in cut if decision.jobs]
    if not cut:
        return choose(strategy, offers, objective, absent)
    first = [
        offer.view.wait_s(made.jobs[0].nodes, made.jobs[0].run_s + made.jobs[0].leeway_s)
        for offer, made in cut
    ]
    offer, decision = cut[int(np.argmin(first))]
    return offer.name, replace(
        decision, jobs=tuple(replace(job, site=offer.name) for job in decision.jobs)
    )


def play(case: Case, way: str, strategy: str) -> tuple[int, float, int]:
    """Makespan, node-hours and moves."""
    which = {"a": (0,), "b": (1,)}.get(way, (0, 1))
    expected = case.runnable.workflow.runtime_s.tolist()
    worlds = []
    sites = []
    for number in which:
        speed = case.speeds[number]
        took = [
            max(1, round(time * noise / speed))
            for time, noise in zip(expected, case.noise, strict=True)
        ]
        queue = SimulatedQueue(case.clusters[number].clone(), unique=False)
        worlds.append(World(queue, took.__getitem__))
        sites.append(Site.of(queue.cluster.nodes, name="ab"[number], speed=speed, cap=16))
    able = np.ones((len(sites), len(expected)), dtype=bool)
    chosen = mock.patch.object(choosing, "choose", earliest_start if way == "slurm" else choose)
    with (
        chosen,
        tempfile.TemporaryDirectory(
            dir="/dev/shm" if Path("/dev/shm").is_dir() else None
        ) as folder,
    ):
        twin = lambda world: Twin(  # noqa: E731
            world.queue, lambda: float(world.now_s), policy=POLICY, refresh_s=5.0
        )
        terms = Terms(margin=1.2, overhead_s=15)
        run = Run(Path(folder) / "run", worlds, sites, case.runnable, able, strategy, terms, twin)
        run.moves = way == "windrow"
        assert run.go_on(), case
        found = figures(run.story())
        run.close()
    return found


def figures(story: RunStory) -> tuple[int, float, int]:
    """Makespan, node-hours and moves of a run."""
    moved = sum(job.note.startswith("would end") for job in story.jobs.values())
    spans = [(job.plan.nodes, job.started_s, job.ended_s) for job in story.jobs.values()]
    node_s = sum(
        nodes * (end - begin)
        for nodes, begin, end in spans
        if begin is not None and end is not None
    )
    return round((story.last_s or 0) - (story.begun_s or 0)), node_s / 3600, moved


def outcome_of(
    seed: int, words: str, found: Mapping[str, tuple[int, float, int]], times: int = 1
) -> Outcome:
    """What came of a case, from the figures of each way; where time was compressed, this many times
    as much."""
    spans = {way: times * one[0] for way, one in found.items()}
    return Outcome(
        seed, words, spans, {way: times * one[1] for way, one in found.items()}, found["windrow"][2]
    )


def outcome(seed: int, strategy: str) -> Outcome:
    case = draw(seed)
    return outcome_of(seed, case.words, {way: play(case, way, strategy) for way in WAYS})


def table(found: list[Outcome]) -> str:
    """All cases in one table: means, beside hindsight, and the worst."""
    fixed = min("ab", key=lambda way: fmean(one.makespan_s[way] for one in found))
    rows = [
        "| way | mean makespan | beside hindsight, mean | within 5 % of hindsight | worst | "
        "node-hours |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for way, name in (
        ("windrow", "windrow"),
        ("slurm", "earliest start, never moved"),
        (fixed, "best fixed site"),
        ("", "hindsight"),
    ):
        spans = [one.makespan_s[way] if way else one.hindsight_s for one in found]
        best = ["a" if one.makespan_s["a"] <= one.makespan_s["b"] else "b" for one in found]
        hours = [one.node_hours[way or best[n]] for n, one in enumerate(found)]
        parts = [span / one.hindsight_s for span, one in zip(spans, found, strict=True)]
        near = sum(part <= 1.05 for part in parts) / len(parts)
        words = (
            f"{fmean(spans) / 3600:.2f} h | {fmean(parts):.3f} | {near:.0%} | "
            f"{max(parts):.2f} | {fmean(hours):.0f}"
        )
        rows.append(f"| {name} | {words} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--strategy", default="glume")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    found: list[Outcome] = []
    with ProcessPoolExecutor(given.workers) as pool:
        for one in pool.map(outcome, seeds, [given.strategy] * len(seeds)):
            found.append(one)
            print(
                f"{one.seed}: {one.case}: {one.makespan_s}, moved {one.moved}",
                file=sys.stderr,
                flush=True,
            )
    print(f"{len(found)} cases, seeds {seeds[0]} to {seeds[-1]}, by {given.strategy}")
    print(f"jobs moved: {sum(one.moved for one in found)}\n")
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
