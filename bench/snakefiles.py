"""Unmodified Snakefiles on private Slurms of whole and of shared nodes, under the same arrivals: with
Windrow's plugin, and with Snakemake's own for Slurm.

    python bench/snakefiles.py [--cells GLOB,...] [--keep FOLDER] [--quiet-for N] [--list | --table]

A cell is a site (`shared`, `whole`), a workflow, a seed and a way; all of it follows from those, and
what came of one is kept (`cells`). Besides those of `--list` there are small ones to try it out,
which must be named in full: `shared-fan12-1-windrow`.

Rule 1: each cell has a Slurm of its own with accounts, which others load (`shared_nodes`). The
Snakefile, the resources and the options of Snakemake are the same; only the executor differs. What
one knows beforehand is the limit of each job, two minutes; jobs take 20 to 60 s.
Rule 2: a makespan counts from the command to the end of the last job's work. Billed are cores that
accounts say the user's jobs had. RPCs are the user's, by sdiag. The driver's CPU time is that of the
command and of all that it has started outside of batch jobs.
Rule 3: `python` is the part of the makespan that is Python starting and ending, on the chain of jobs
that ended last: from the command to the first batch job; from when a job has its node (or its place
on one) to when its work begins; and from the end of its work to its own. On a machine of two cores
that is longer than on a cluster, most of all for those who start most; so ways are compared
without it.

Needs root, Slurm's programs (tests/slurm/install), and a package index for Snakemake.
"""  # noqa: E501

from __future__ import annotations

import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # so that `bench` and `tests` are folders of the project

from tests.other_user import as_nobody, python_for_all, python_path  # noqa: E402
from tests.slurm.cluster import ClusterError, SlurmCluster  # noqa: E402
from tests.slurm.shared import USER  # noqa: E402

from bench.cells import QUIET, Cells, answer, commit, options  # noqa: E402
from bench.pays import started  # noqa: E402
from bench.pays_tables import markdown  # noqa: E402
from bench.progress import Progress  # noqa: E402
from bench.shared_load import SITES, Arriving, draw, settings  # noqa: E402
from bench.shared_nodes import (  # noqa: E402
    JOBS,
    LEAD_S,
    LONGEST_S,
    Past,
    accounts_of,
    give,
    has_jobs,
    interval,
    room,
    rpcs_of,
    run_way,
    snakemake_packages,
)
from bench.shared_work import prepare  # noqa: E402

KEEP = ROOT / "bench" / ".peers" / "snakefiles"
WAYS = ("windrow", "slurm")
MINE, OTHER = WAYS
FILES = Path(__file__).with_name("snakefiles")
GOAL = 0.6
_SAME_START_S = 1.0
"""A task that starts so soon after its job starts with it."""


@dataclass(frozen=True)
class Workflow:
    """A Snakefile with a width. `seeds`: how many are run; none where it is for trying out."""

    file: str
    width: int
    jobs: int
    seeds: int
    expected_s: float


WORKFLOWS = {
    "fan60": Workflow("fan", 20, 60, 5, 700),
    "parts62": Workflow("parts", 30, 62, 2, 700),
    "pairs500": Workflow("pairs", 250, 500, 2, 2400),
    "fan12": Workflow("fan", 4, 12, 0, 400),
    "parts8": Workflow("parts", 3, 8, 0, 400),
    "pairs8": Workflow("pairs", 4, 8, 0, 300),
}


@dataclass(frozen=True, order=True)
class Cell:
    """What is measured once."""

    site: str
    workflow: str
    seed: int
    way: str

    @property
    def name(self) -> str:
        """As on the command line, and of its file."""
        return f"{self.site}-{self.workflow}-{self.seed}-{self.way}"


@dataclass(frozen=True)
class Result:
    """What came of a cell. `done`: jobs of the workflow that ended; all of them, unless `is_cut`
    short. `driver_cpu_s` is below 0 where that is not known."""

    makespan_s: float
    python_s: float
    jobs: int
    core_hours: float
    rpcs: int
    driver_cpu_s: float
    done: int
    is_cut: bool
    loadavg: float
    late_s: float
    commit: str

    @property
    def work_s(self) -> float:
        """The makespan without what is Python starting."""
        return self.makespan_s - self.python_s


def all_cells() -> list[Cell]:
    """Small workflows first, and the two ways of a seed after one another."""
    return [
        Cell(site, name, seed, way)
        for name, workflow in WORKFLOWS.items()
        for seed in range(1, workflow.seeds + 1)
        for site in SITES
        for way in WAYS
    ]


def chosen(globs: Sequence[str]) -> list[Cell]:
    """Those whose names match. One that is not among them all may be named in full."""
    found = [cell for cell in all_cells() if any(fnmatch.fnmatch(cell.name, g) for g in globs)]
    for one in globs:
        named = re.fullmatch(rf"({'|'.join(SITES)})-({'|'.join(WORKFLOWS)})-(\d+)-(\w+)", one)
        if named and named[4] in WAYS:
            cell = Cell(named[1], named[2], int(named[3]), named[4])
            found += [cell] * (cell not in found)
    return found


def parents(workflow: Workflow, job: str) -> list[str]:
    """The jobs after which this one comes, as its Snakefile says."""
    rule, _, i = job.partition("-")
    width = workflow.width
    if rule == "report" and workflow.file == "fan":
        return [f"{'call' if n < width - 2 else 'sort'}-{n}" for n in range(width)]
    if rule == "report":
        return [f"sort-{n}" for n in range(width)]
    if rule == "align":
        return {"fan": ["prepare"], "parts": ["split"], "pairs": []}[workflow.file]
    return {"sort": [f"align-{i}"], "call": [f"sort-{i}"]}.get(rule, [])


# Running one


def _measured(cell: Cell, loadavg: float, progress: Progress) -> Result:
    workflow = WORKFLOWS[cell.workflow]
    packages = snakemake_packages()
    with closing(started(settings(cell.site))) as cluster, room() as folder:
        arriving = Arriving(cluster, draw(cell.site, cell.seed, JOBS))
        prepare(folder)
        (folder / "Snakefile").write_text((FILES / f"{workflow.file}.smk").read_text())
        if cell.site == "shared":
            (folder / "windrow.toml").write_text('[queues.slurm]\nshare = "cores"\n')
        give(folder)
        env = {"PYTHONPATH": os.pathsep.join([str(packages), *python_path().values()])}
        arriving.start()
        try:
            time.sleep(LEAD_S)
            cluster.run("sdiag", "--reset")
            begun_s = time.time()
            argv = _command(cell, workflow, cluster)
            run_way(argv, cluster, folder, workflow.jobs, progress, begun_s, env)
            if arriving.error:
                raise ClusterError(f"the load stopped: {arriving.error}")
        finally:
            arriving.stop()
        return _result(cell, cluster, folder, begun_s, loadavg, arriving.late_s)


def _command(cell: Cell, workflow: Workflow, cluster: SlurmCluster) -> list[str]:
    python = [*as_nobody(), python_for_all(cluster.env)]
    executor = {
        MINE: ("--executor", "windrow", "--windrow-on", "slurm"),
        OTHER: ("--executor", "slurm"),
    }[cell.way]
    return [
        *(*python, "-P", str(Path(__file__).with_name("driver_cpu.py")), "driver"),
        *(python[-1], "-m", "snakemake", *executor, "--jobs", "500", "--latency-wait", "10"),
        *("--default-resources", "mem_mb=400", "slurm_partition=main", "slurm_account=science"),
        *("--config", f"seed={cell.seed}", f"width={workflow.width}"),
    ]


@dataclass(frozen=True)
class Ran:
    """The work of a job of the workflow, and the batch job that it was in."""

    job: str
    began_s: float
    ended_s: float


def _result(
    cell: Cell,
    cluster: SlurmCluster,
    folder: Path,
    begun_s: float,
    loadavg: float,
    late_s: float,
) -> Result:
    workflow = WORKFLOWS[cell.workflow]
    rpcs = rpcs_of(cluster)
    cluster.run("scancel", "-u", USER)
    cluster.wait(lambda: not has_jobs(cluster), "an end of the user's jobs", "slurmctld")
    jobs = accounts_of(cluster)
    ran = {}
    for file in (folder / "done").iterdir():
        job, began, ended = file.read_text().split()
        ran[file.name] = Ran(job, float(began), float(ended))
    is_cut = len(ran) < workflow.jobs
    ended_s = begun_s + LONGEST_S if is_cut else max(one.ended_s for one in ran.values())
    around = _windrow_around(cluster, folder, ran, jobs) if cell.way == MINE else _around(ran, jobs)
    first_s = min((job.submitted_s for job in jobs.values()), default=begun_s) - begun_s
    python_s = max(0.0, first_s) + sum(around.get(name, 0.0) for name in chain(workflow, ran))
    cpu = folder / "driver"
    return Result(
        makespan_s=round(ended_s - begun_s, 1),
        python_s=round(python_s, 1),
        jobs=len(jobs),
        core_hours=round(sum(job.cores * job.run_s for job in jobs.values()) / 3600, 4),
        rpcs=rpcs,
        driver_cpu_s=round(float(cpu.read_text()), 1) if cpu.exists() else -1.0,
        done=len(ran),
        is_cut=is_cut,
        loadavg=loadavg,
        late_s=round(late_s, 1),
        commit=commit(),
    )


def chain(workflow: Workflow, ran: Mapping[str, Ran]) -> list[str]:
    """The job that ended last, and before each the one for which it waited longest."""
    found: list[str] = []
    ready: Iterable[str] = ran
    while ready := [name for name in ready if name in ran]:
        found.append(max(ready, key=lambda name: ran[name].ended_s))
        ready = parents(workflow, found[-1])
    return found


def _around(ran: Mapping[str, Ran], jobs: Mapping[str, Past]) -> dict[str, float]:
    """The seconds of each batch job before its work and after it."""
    return {
        name: max(0.0, one.began_s - jobs[one.job].started_s)
        + max(0.0, jobs[one.job].started_s + jobs[one.job].run_s - one.ended_s)
        for name, one in ran.items()
        if one.job in jobs
    }


_TELL = """
import json, sys
from windrow import api
told = [(e.what, e.task, e.at_s, e.detail.get("queue_id")) for e in api.attach().events()]
json.dump([row for row in told if row[0] in ("TaskStarted", "TaskFinished", "JobStarted")], sys.stdout)
"""  # noqa: E501


def _windrow_around(
    cluster: SlurmCluster, folder: Path, ran: Mapping[str, Ran], jobs: Mapping[str, Past]
) -> dict[str, float]:
    """The seconds of each task before its work and after it; those of a batch job before its first
    tasks are theirs, too."""
    env = {**cluster.env, **python_path(), "HOME": str(folder)}
    argv = [*as_nobody(), python_for_all(cluster.env), "-P", "-c", _TELL]
    said = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=True)
    begun: dict[str, float] = {}
    over: dict[str, float] = {}
    agents: dict[str, float] = {}
    for what, task, at_s, queue_id in json.loads(said.stdout):
        if what == "JobStarted":
            agents[str(queue_id)] = at_s
        else:
            (begun if what == "TaskStarted" else over)[task] = at_s
    found = {}
    for name, one in ran.items():
        if name not in begun:
            continue
        found[name] = max(0.0, one.began_s - begun[name])
        found[name] += max(0.0, over.get(name, one.ended_s) - one.ended_s)
        agent_s = agents.get(one.job)
        is_first = agent_s is not None and begun[name] - agent_s < _SAME_START_S
        if agent_s is not None and is_first and one.job in jobs:
            found[name] += max(0.0, agent_s - jobs[one.job].started_s)
    return found


# Tables


def ratios(found: Mapping[Cell, Result], site: str, workflow: str) -> list[float]:
    """Windrow's makespan by that of the other plugin, both without Python, seed by seed."""

    def by_seed(way: str) -> dict[int, Result]:
        here = (site, workflow, way)
        return {c.seed: r for c, r in found.items() if (c.site, c.workflow, c.way) == here}

    mine, other = by_seed(MINE), by_seed(OTHER)
    return [mine[seed].work_s / other[seed].work_s for seed in sorted(mine.keys() & other)]


def table(found: Mapping[Cell, Result]) -> list[str]:
    """A row for each site, workflow and way; then what the goals say."""
    rows = []
    groups = [(name, site) for name in WORKFLOWS for site in SITES]
    for workflow, site in groups:
        for way in WAYS:
            here = (site, workflow, way)
            own = [r for c, r in found.items() if (c.site, c.workflow, c.way) == here]
            if own:
                values = ratios(found, site, workflow) if way == OTHER else []
                rows.append((*here, *_figures(own), _range(values)))
    head = (
        "site", "workflow", "plugin", "seeds", "makespan, s", "Python, s", "without, s", "jobs",
        "core-h", "RPCs", "driver, CPU-s", "Windrow by it",
    )  # fmt: skip
    noisy = [cell.name for cell, one in found.items() if one.loadavg >= QUIET]
    cut = [cell.name for cell, one in found.items() if one.is_cut]
    notes = [f"{len(noisy)} cells began on a machine that was not quiet."] * bool(noisy)
    notes += [f"Cut after {LONGEST_S} s, and counted as that: {', '.join(cut)}."] * bool(cut)
    return [*markdown(head, rows), "", *notes, *verdict(found)]


def _figures(own: Sequence[Result]) -> tuple[str, ...]:
    def mean(of: str) -> float:
        return fmean(getattr(one, of) for one in own)

    seconds = (f"{mean(of):.0f}" for of in ("makespan_s", "python_s", "work_s"))
    counts = (f"{mean('jobs'):.0f}", f"{mean('core_hours'):.3f}", f"{mean('rpcs'):.0f}")
    known = [one.driver_cpu_s for one in own if one.driver_cpu_s >= 0]
    return (str(len(own)), *seconds, *counts, f"{fmean(known):.0f}" if known else "-")


def _range(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle, least, most = interval(values)
    if math.isinf(most):
        return f"{middle:.2f}"
    return f"{middle:.2f} ({least:.2f} to {most:.2f})"


def verdict(found: Mapping[Cell, Result]) -> list[str]:
    """The mean of all pairs, and the rows whose whole interval says that Windrow is slower."""
    groups = sorted({(cell.site, cell.workflow) for cell in found})
    by_group = {group: values for group in groups if (values := ratios(found, *group))}
    if not by_group:
        return ["No case has been run both ways yet."]
    every = [value for values in by_group.values() for value in values]
    behind = [
        f"{site}, {workflow}"
        for (site, workflow), values in by_group.items()
        if interval(values)[1] > 1
    ]
    return [
        f"Over {len(every)} pairs Windrow's makespan without Python is {fmean(every):.2f} of the "
        f"other's in the mean; the goal is {GOAL}.",
        f"Rows whose whole interval lies above 1: {'; '.join(behind) or 'none'}.",
    ]


def main() -> int:
    """Run the cells that are missing, print the table."""
    given = options(__doc__.partition("\n\n")[0], KEEP)
    bench = Cells(
        given.keep,
        given.quiet_for,
        Result,
        _measured,
        lambda cell: WORKFLOWS[cell.workflow].expected_s,
    )
    return answer("snakefiles", given, bench, chosen(given.cells), table)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # the private Slurm and the way are put away
