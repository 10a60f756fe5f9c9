"""The comparison of `shared_nodes.py` in a simulated cluster: many more cells, and no machine that
must be quiet.

    python bench/shared_simulated.py [--cases 128] [--first 1] [--workers N] [--keep FOLDER]

A case is a site and a seed: its load and its workflow of 60 tasks are those of `shared_nodes.py`,
for other seeds. `windrow` looks ahead, as it does when it has seen what others do; `first run` is
Windrow's own manager and agents, in virtual time, by forecasts alone. `sbatch each` and `arrays`
are Windrow's strategies that cut alike, with as many jobs waiting as they like; `one job` is one
job of two nodes; `pilots` go by the rules of `shared_pilots.py`. Cells that were played are kept.

Rule 1: on shared nodes a job has cores, wherever they are; one of whole nodes has all cores of as
many. `shared_load.py` tells by how much starts then differ from those of a real Slurm.
Rule 2: what agents, Windrow and Slurm take is left out but for `first run`, so a job for each task
costs nothing here.
Rule 3: all know what a task should take, and not what it does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

sys.path[0] = str(Path(__file__).resolve().parents[1])  # `bench` is a folder here

import numpy as np  # noqa: E402

from bench.pays_tables import markdown  # noqa: E402
from bench.shared_load import CORES, NODES, SITES, Played, as_log, draw  # noqa: E402
from bench.shared_nodes import JOBS, LEAD_S, interval  # noqa: E402
from bench.shared_simulated_pilots import play  # noqa: E402
from bench.shared_work import NODES as BIG  # noqa: E402
from bench.shared_work import Work, draw_work  # noqa: E402
from windrow.app.execute import terms_for  # noqa: E402
from windrow.app.facts import RunRequest  # noqa: E402
from windrow.app.strategies import find_strategy  # noqa: E402
from windrow.manager.terms import Terms  # noqa: E402
from windrow.model import Log, NodeShape, Runnable, Step, Task, Workflow  # noqa: E402
from windrow.model.failures import NO_FAILURES  # noqa: E402
from windrow.model.parts import Sharing  # noqa: E402
from windrow.model.site import NodeKind, Site  # noqa: E402
from windrow.sim.cluster import Cluster  # noqa: E402
from windrow.story.figures import node_time  # noqa: E402
from windrow.strategies import Work as Believed  # noqa: E402
from windrow.strategies import whole_seconds  # noqa: E402
from windrow.trials.trial import Trial, run_trial  # noqa: E402
from windrow.trials.virtual.trials import virtual_trial  # noqa: E402

TASKS = 60
POLICY = "conservative-replan"
FIRST_RUN = "first run"
PILOTS = "pilots"
WAYS = {
    "windrow": "foresight",
    FIRST_RUN: "foresight",
    "sbatch each": "individual",
    "arrays": "level-by-level",
    "one job": "giant",
    PILOTS: "",
}
"""The strategy that stands for a way."""
OURS = ("windrow", FIRST_RUN)
KEEP = Path(__file__).resolve().parent / ".peers" / "shared_simulated"
_MIB = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """What came of a cell."""

    makespan_s: float
    core_hours: float
    jobs: int


def workflow_of(work: Work) -> Workflow:
    """With the times that are believed."""
    tasks = [
        Task(
            id=task.name,
            parents=task.after,
            runtime_s=task.expected_s,
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
    """In cores, or in nodes. Only the shell knows of parts: to trials a core is a node."""
    sharing = None
    if site == "shared" and way == FIRST_RUN:
        kind, most = NodeKind(NodeShape(CORES, 2000 * _MIB), NODES), NODES * CORES
        sharing = Sharing(core_bytes=400 * _MIB, even_bytes=500 * _MIB)
    elif site == "shared":
        kind, most = NodeKind(NodeShape(1, 400 * _MIB), NODES * CORES), BIG[TASKS] * CORES
    else:
        kind, most = NodeKind(NodeShape(CORES, 2000 * _MIB), NODES), BIG[TASKS]
    cap = 64 if sharing is not None else 16
    return Site(
        name=site,
        kinds=(kind,),
        cap=cap if way in OURS else TASKS,
        max_nodes=most if way == "one job" else None,
        max_array=1000,
        sharing=sharing,
    )


def outcome(site: str, seed: int, way: str) -> Outcome:
    """One cell."""
    work = draw_work(TASKS, seed)
    cluster = Cluster(load_of(site, seed), policy=POLICY)
    cluster.advance(LEAD_S)
    if way == PILOTS:
        cores = CORES if site == "shared" else 1
        found = play(work, cluster, cores)
        return Outcome(found.makespan_s, found.job_s * CORES / 3600, found.jobs)
    workflow = workflow_of(work)
    believed = Believed(workflow, whole_seconds(workflow), site_of(site, way))
    request = RunRequest(Path("workflow.yaml"), on="slurm", margin=1.2)
    terms = terms_for(request, Runnable(workflow, tuple(Step(("true",), "/") for _ in workflow)))
    trial = _trial(cluster, way, terms, believed, work)
    units = 1 if site == "shared" else CORES
    hours = units * node_time(trial.recorded).allocated_s / 3600
    return Outcome(trial.makespan_s, hours, len(trial.story.jobs))


def _trial(cluster: Cluster, way: str, terms: Terms, believed: Believed, work: Work) -> Trial:
    actual_s = np.array([max(1, round(task.takes_s)) for task in work.tasks], dtype=np.int64)
    strategy = find_strategy(WAYS[way])
    if way != FIRST_RUN:
        return run_trial(
            cluster,
            believed.workflow,
            strategy,
            terms=replace(terms, overhead_s=0) if way not in OURS else terms,
            work=believed,
            actual_s=actual_s,
        )
    return virtual_trial(
        cluster,
        strategy,
        terms=terms,
        actual_s=actual_s,
        work=believed,
        failures=NO_FAILURES,
        seed=0,
    )


def kept(keep: Path, cell: tuple[str, int, str]) -> Path:
    """Where the outcome of a cell is kept."""
    site, seed, way = cell
    return keep / f"{site}-{seed}-{way.replace(' ', '-')}.json"


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


def verdict(found: dict[tuple[str, int, str], Outcome]) -> list[str]:
    """Windrow beside the other way with the least mean makespan, over all cases."""
    mean = {way: _mean(found, way, "makespan_s") for way in WAYS}
    bill = {way: _mean(found, way, "core_hours") for way in WAYS}
    best = min((way for way in WAYS if way not in OURS), key=mean.__getitem__)
    return [
        f"Of the other ways {best} has the least mean makespan over both sites, {mean[best]:.0f} s "
        f"for {bill[best]:.3f} core-hours. "
        + "; ".join(
            f"{way}: {mean[way] / mean[best]:.2f} of it, {bill[way] / bill[best]:.2f} of the "
            "core-hours"
            for way in OURS
        )
        + "."
    ]


def _mean(found: dict[tuple[str, int, str], Outcome], way: str, of: str) -> float:
    return fmean(float(getattr(one, of)) for cell, one in found.items() if cell[2] == way)


def played(cells: Sequence[tuple[str, int, str]], keep: Path, workers: int) -> None:
    """Play those cells of which nothing is kept."""
    left = [cell for cell in cells if not kept(keep, cell).exists()]
    began = told = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(outcome, *cell): cell for cell in left}
        for done, future in enumerate(as_completed(futures), 1):
            file = kept(keep, futures[future])
            part = file.with_suffix(".part")
            part.write_text(json.dumps(asdict(future.result())))
            part.rename(file)
            if time.monotonic() - told > 10:
                told = time.monotonic()
                left_s = (told - began) / done * (len(left) - done)
                print(
                    f"{done} of {len(left)} cells, about {left_s / 60:.0f} min left",
                    file=sys.stderr,
                )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=128, help="half of them at either site")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=KEEP, metavar="FOLDER")
    given = parser.parse_args(arguments)
    given.keep.mkdir(parents=True, exist_ok=True)
    seeds = range(given.first, given.first + max(1, given.cases // 2))
    wanted = [(site, seed, way) for seed in seeds for site in SITES for way in WAYS]
    played(wanted, given.keep, given.workers)
    found = {cell: Outcome(**json.loads(kept(given.keep, cell).read_text())) for cell in wanted}
    print(f"{len(found)} cells from seed {given.first} on, policy {POLICY}.", "", sep="\n")
    print(*table(found), "", *verdict(found), sep="\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
