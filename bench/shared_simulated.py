"""The comparison of `shared_nodes.py` in a simulated cluster: many more cells, and no machine that
must be quiet.

    python bench/shared_simulated.py [--cases 128] [--first 1] [--workers N]

A case is a site and a seed: its load and its workflow of 60 tasks are those of `shared_nodes.py`,
for other seeds. `sbatch each` and `arrays` are Windrow's strategies that cut alike, with as many
jobs waiting as they like; `one job` is one job of two nodes.

Rule 1: on shared nodes a job has cores, wherever they are; one of whole nodes has all cores of as
many. `shared_load.py` tells by how much starts then differ from those of a real Slurm.
Rule 2: what agents, Windrow and Slurm take is left out, so a job for each task costs nothing here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

sys.path[0] = str(Path(__file__).resolve().parents[1])  # `bench` is a folder here

from bench.pays_tables import markdown  # noqa: E402
from bench.shared_load import CORES, NODES, SITES, Played, as_log, draw  # noqa: E402
from bench.shared_nodes import JOBS, LEAD_S, interval  # noqa: E402
from bench.shared_work import NODES as BIG  # noqa: E402
from bench.shared_work import Work, draw_work  # noqa: E402
from windrow.app.execute import terms_for  # noqa: E402
from windrow.app.facts import RunRequest  # noqa: E402
from windrow.app.strategies import find_strategy  # noqa: E402
from windrow.model import Log, NodeShape, Runnable, Step, Task, Workflow  # noqa: E402
from windrow.model.site import NodeKind, Site  # noqa: E402
from windrow.sim.cluster import Cluster  # noqa: E402
from windrow.story.figures import node_time  # noqa: E402
from windrow.trials.trial import run_trial  # noqa: E402

TASKS = 60
POLICY = "conservative-replan"
WAYS = {
    "windrow": "foresight",
    "sbatch each": "individual",
    "arrays": "level-by-level",
    "one job": "giant",
}
"""The strategy that stands for a way."""


@dataclass(frozen=True)
class Outcome:
    """What came of a cell."""

    makespan_s: float
    core_hours: float
    jobs: int


def workflow_of(work: Work) -> Workflow:
    """Whole seconds: what is believed of a task is what it takes, and a margin."""
    tasks = [
        Task(
            id=task.name,
            parents=task.after,
            runtime_s=float(max(1, round(task.takes_s))),
            command=("true",),
        )
        for task in work.tasks
    ]
    return Workflow.from_tasks("work", tasks)


def load_of(site: str, seed: int) -> Log:
    """The arrivals of the real bench: in cores, or in nodes where jobs have whole ones."""
    played = [Played(job, job.at_s, 0.0, job.run_s) for job in draw(site, seed, JOBS)]
    log = as_log(played)
    if site == "shared":
        return log
    return replace(log, machine_nodes=NODES, nodes=log.nodes // CORES)


def site_of(site: str, way: str) -> Site:
    """In cores, or in nodes."""
    if site == "shared":
        kind, most = NodeKind(NodeShape(1, 400 << 20), NODES * CORES), BIG[TASKS] * CORES
    else:
        kind, most = NodeKind(NodeShape(CORES, 2000 << 20), NODES), BIG[TASKS]
    cap = 16 if way == "windrow" else TASKS
    return Site(name=site, kinds=(kind,), cap=cap, max_nodes=most if way == "one job" else None)


def outcome(site: str, seed: int, way: str) -> Outcome:
    """One cell."""
    workflow = workflow_of(draw_work(TASKS, seed))
    cluster = Cluster(load_of(site, seed), policy=POLICY)
    cluster.advance(LEAD_S)
    request = RunRequest(Path("workflow.yaml"), on="slurm", margin=1.2)
    terms = terms_for(request, Runnable(workflow, tuple(Step(("true",), "/") for _ in workflow)))
    strategy = find_strategy(WAYS[way])
    trial = run_trial(cluster, workflow, strategy, terms=terms, site=site_of(site, way))
    units = 1 if site == "shared" else CORES
    hours = units * node_time(trial.recorded).allocated_s / 3600
    return Outcome(trial.makespan_s, hours, len(trial.story.jobs))


def table(found: dict[tuple[str, int, str], Outcome]) -> list[str]:
    """A row for each site and way."""
    rows = []
    for site in SITES:
        seeds = sorted({seed for at, seed, _ in found if at == site})
        for way in WAYS:
            own = [found[site, seed, way] for seed in seeds]
            beside = [
                found[site, seed, "windrow"].makespan_s / found[site, seed, way].makespan_s
                for seed in seeds
            ]
            middle, least, most = interval(beside)
            says = f"{middle:.2f} ({least:.2f} to {most:.2f})" if way != "windrow" else "-"
            means = (fmean(o.makespan_s for o in own), fmean(o.core_hours for o in own))
            jobs = fmean(one.jobs for one in own)
            rows.append(
                (
                    site,
                    way,
                    str(len(own)),
                    f"{means[0]:.0f}",
                    f"{means[1]:.3f}",
                    f"{jobs:.1f}",
                    says,
                )
            )
    head = ("site", "way", "cases", "makespan, s", "core-h", "jobs", "Windrow by it")
    return markdown(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=128, help="half of them at either site")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + max(1, given.cases // 2))
    wanted = [(site, seed, way) for seed in seeds for site in SITES for way in WAYS]
    found: dict[tuple[str, int, str], Outcome] = {}
    began = told = time.monotonic()
    with ProcessPoolExecutor(given.workers) as pool:
        futures = {pool.submit(outcome, *cell): cell for cell in wanted}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            if time.monotonic() - told > 10:
                told = time.monotonic()
                left_s = (told - began) / len(found) * (len(wanted) - len(found))
                print(
                    f"{len(found)} of {len(wanted)} cells, about {left_s / 60:.0f} min left",
                    file=sys.stderr,
                )
    print(f"{len(found)} cells from seed {given.first} on, policy {POLICY}.", "", sep="\n")
    print(*table(found), sep="\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
