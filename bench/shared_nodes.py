"""Windrow beside other ways of submitting, on private Slurms of whole and of shared nodes, under the
same arrivals.

    python bench/shared_nodes.py [--cells GLOB,...] [--keep FOLDER] [--quiet-for N] [--list | --table]

A cell is a site (`shared`, `whole`), a number of tasks, a seed and a way; all of it follows from
those. What came of a cell is kept in a file of `--keep`, and a cell that has one does not run again:
an interrupted bench continues where it was.

Rule 1: each cell has a Slurm of its own, started afresh, with accounts; others load it from the same
second on (`shared_load`), as another user. The way comes `LEAD_S` later, as an ordinary user.
Rule 2: before a cell the machine must be quiet (`cells`); what its load was is kept, and told if it
was more.
Rule 3: a makespan counts from the command to the end of the last task. Billed are the cores that
accounts say the user's jobs had, for as long as these had them. RPCs are the user's, by sdiag.
Rule 4: `start` is what a way spends before tasks run: from the command to its first job, and from the
start of a job to its first task, the mean; as a part of the makespan.
Rule 5: a way that is not done after `LONGEST_S` counts as if it had ended then.

Needs root, Slurm's programs (tests/slurm/install), and a package index for Snakemake. Tables go to
stdout, progress to stderr.
"""  # noqa: E501

from __future__ import annotations

import fnmatch
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # so that `bench` and `tests` are folders of the project

from tests.other_user import as_nobody, python_for_all, python_path  # noqa: E402
from tests.real.works import private  # noqa: E402
from tests.slurm.cluster import ClusterError, SlurmCluster  # noqa: E402
from tests.slurm.shared import USER  # noqa: E402
from tests.slurm.test_slurm_sites import copy_compiled  # noqa: E402

from bench.cells import QUIET, Cells, answer, commit, options  # noqa: E402
from bench.pays import started  # noqa: E402
from bench.pays_tables import markdown  # noqa: E402
from bench.progress import Progress  # noqa: E402
from bench.shared_load import SITES, Arriving, draw, settings  # noqa: E402
from bench.shared_work import MINE, WAYS, Place, Work, draw_work, prepare  # noqa: E402

KEEP = ROOT / "bench" / ".peers" / "shared_nodes"
SNAKEMAKE = ("snakemake==9.27.1", "snakemake-executor-plugin-slurm==2.8.0")
SIZES = {60: range(1, 6), 500: range(1, 3)}
"""Seeds by the number of tasks."""
LEAD_S = 60
LONGEST_S = 3600
JOBS = 400
"""Of the load: more than come in the time of the longest cell, at either site."""
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's 97.5 % quantiles for 1, 2, ... degrees of freedom; for more, the last is too wide."""
EXPECTED_S = {10: 300.0, 60: 700.0, 500: 1800.0}


@dataclass(frozen=True, order=True)
class Cell:
    """What is measured once."""

    site: str
    tasks: int
    seed: int
    way: str

    @property
    def name(self) -> str:
        """As on the command line, and of its file."""
        return f"{self.site}-{self.tasks}-{self.seed}-{self.way.replace(' ', '-')}"


@dataclass(frozen=True)
class Result:
    """What came of a cell. `done`: tasks that ended; all of them, unless `is_cut` short."""

    makespan_s: float
    core_hours: float
    rpcs: int
    jobs: int
    start: float
    done: int
    is_cut: bool
    loadavg: float
    late_s: float
    commit: str


def all_cells() -> list[Cell]:
    """Small workflows first, and the ways of a seed after one another."""
    return [
        Cell(site, tasks, seed, way)
        for tasks, seeds in SIZES.items()
        for seed in seeds
        for site in SITES
        for way in WAYS
    ]


def chosen(globs: Sequence[str]) -> list[Cell]:
    """Those whose names match. A seed or a size that is not among them all may be named in full."""
    found = [cell for cell in all_cells() if any(fnmatch.fnmatch(cell.name, g) for g in globs)]
    ways = {way.replace(" ", "-"): way for way in WAYS}
    for one in globs:
        named = re.fullmatch(rf"({'|'.join(SITES)})-(10|60|500)-(\d+)-({'|'.join(ways)})", one)
        if named:
            cell = Cell(named[1], int(named[2]), int(named[3]), ways[named[4]])
            found += [cell] * (cell not in found)
    return found


def _measured(cell: Cell, loadavg: float, progress: Progress) -> Result:
    work = draw_work(cell.tasks, cell.seed)
    with closing(started(settings(cell.site))) as cluster, room() as folder:
        arriving = Arriving(cluster, draw(cell.site, cell.seed, JOBS))
        packages = snakemake_packages() if cell.way == "snakemake" else folder
        place = Place(folder, cell.site, _windrow(cluster), packages)
        prepare(folder)
        argv = WAYS[cell.way](work, place)
        give(folder)
        arriving.start()
        try:
            time.sleep(LEAD_S)
            cluster.run("sdiag", "--reset")
            begun_s = time.time()
            run_way(argv, cluster, folder, len(work.tasks), progress, begun_s)
            if arriving.error:
                raise ClusterError(f"the load stopped: {arriving.error}")
        finally:
            arriving.stop()
        return _result(cluster, folder, work, begun_s, loadavg, arriving.late_s)


def snakemake_packages() -> Path:
    """Snakemake's packages, installed on first use."""
    folder = ROOT / "bench" / ".peers" / "snakemake"
    if not (folder / "ready").exists():
        install = ("-m", "pip", "install", "--quiet", "--upgrade", f"--target={folder}")
        subprocess.run([sys.executable, *install, *SNAKEMAKE], check=True, capture_output=True)
        (folder / "ready").touch()
    return folder


def _windrow(cluster: SlurmCluster) -> tuple[str, ...]:
    return (*as_nobody(), python_for_all(cluster.env), "-P", "-m", "windrow.cli.main")


@contextmanager
def room() -> Iterator[Path]:
    """A folder of the ordinary user, with what has been compiled."""
    folder = Path(tempfile.mkdtemp(prefix="windrow-shared-nodes-", dir="/tmp"))
    try:
        copy_compiled(folder / "cache")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def give(folder: Path) -> None:
    subprocess.run(["chown", "-R", USER, folder], check=True)


def _environment(cluster: SlurmCluster, folder: Path) -> dict[str, str]:
    """Of the way. Commands know SLURM_CONF: Snakemake drops it in jobs."""
    commands = folder / "bin"
    commands.mkdir()
    for name in ("sbatch", "srun", "squeue", "sacct", "scancel", "scontrol", "sinfo", "sacctmgr"):
        real = shutil.which(name, path=cluster.env["PATH"])
        conf = f"SLURM_CONF={cluster.env['SLURM_CONF']}"
        (commands / name).write_text(f'#!/bin/sh\nexport {conf}\nexec {real} "$@"\n')
        (commands / name).chmod(0o755)
    own = {"HOME": str(folder), "USER": USER, "WINDROW_CACHE": str(folder / "cache")}
    path = {"PATH": f"{commands}:{cluster.env['PATH']}"}
    return {**cluster.env, **python_path(), **private(folder), **own, **path}


def run_way(
    argv: Sequence[str],
    cluster: SlurmCluster,
    folder: Path,
    tasks: int,
    progress: Progress,
    begun_s: float,
    more: Mapping[str, str] | None = None,
) -> None:
    """Run the way in its folder until so many tasks have ended, or it takes too long. What it said
    is in `said`. `more`: variables for it."""
    env = {**_environment(cluster, folder), **(more or {})}
    with (folder / "said").open("wb") as said:
        way = subprocess.Popen(
            argv, cwd=folder, env=env, stdout=said, stderr=said, start_new_session=True
        )
    told = -1
    try:
        while (done := _done(folder)) < tasks and time.time() < begun_s + LONGEST_S:
            if way.poll() is not None and not has_jobs(cluster):
                time.sleep(1)
                if _done(folder) < tasks:
                    text = (folder / "said").read_text(errors="replace")
                    raise ChildProcessError(f"it ended early, {way.returncode}: {text[-2000:]}")
            if done != told:
                progress.say(f"{done} of {tasks} tasks")
            told = done
            time.sleep(1)
        way.wait(timeout=120)
    except subprocess.TimeoutExpired:
        pass  # its tasks are done; it tidies up
    finally:
        if way.poll() is None:
            os.killpg(way.pid, signal.SIGKILL)
            way.wait()


def _done(folder: Path) -> int:
    return len(list((folder / "done").iterdir()))


def has_jobs(cluster: SlurmCluster) -> bool:
    return bool(cluster.run("squeue", "-h", "-u", USER))


def _result(
    cluster: SlurmCluster, folder: Path, work: Work, begun_s: float, loadavg: float, late_s: float
) -> Result:
    ran = [(folder / "done" / task.name) for task in work.tasks]
    rows = [file.read_text().split() for file in ran if file.exists()]
    is_cut = len(rows) < len(work.tasks)
    ended_s = begun_s + LONGEST_S if is_cut else max(float(end) for _, _, end in rows)
    rpcs = rpcs_of(cluster)
    cluster.run("scancel", "-u", USER)
    cluster.wait(lambda: not has_jobs(cluster), "an end of the user's jobs", "slurmctld")
    jobs = accounts_of(cluster)
    firsts: dict[str, float] = {}
    for job, at_s, _ in rows:
        firsts[job] = min(firsts.get(job, math.inf), float(at_s))
    begins = [at_s - jobs[job].started_s for job, at_s in firsts.items() if job in jobs]
    submitted_s = min((job.submitted_s for job in jobs.values()), default=begun_s)
    start_s = max(0.0, submitted_s - begun_s) + max(0.0, fmean(begins or [0.0]))
    return Result(
        makespan_s=round(ended_s - begun_s, 1),
        core_hours=round(sum(job.cores * job.run_s for job in jobs.values()) / 3600, 4),
        rpcs=rpcs,
        jobs=len(jobs),
        start=round(start_s / (ended_s - begun_s), 4),
        done=len(rows),
        is_cut=is_cut,
        loadavg=loadavg,
        late_s=round(late_s, 1),
        commit=commit(),
    )


def rpcs_of(cluster: SlurmCluster) -> int:
    """What the user has asked since the last reset."""
    by_user = cluster.run("sdiag").partition("statistics by user")[2]
    found = re.search(rf"^\s*{USER}\s.*?count:(\d+)", by_user, re.M)
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Past:
    """A job of the user."""

    submitted_s: float
    started_s: float
    run_s: float
    cores: int


def accounts_of(cluster: SlurmCluster) -> dict[str, Past]:
    """The user's jobs that have run, by number."""
    env = {**cluster.env, "SLURM_TIME_FORMAT": "%s"}
    fields = "JobIDRaw,Submit,Start,ElapsedRaw,AllocCPUS,State"
    argv = ["sacct", "-n", "-P", "-X", "-u", USER, "-S", "now-1days", "-o", fields]

    def rows() -> list[list[str]]:
        said = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
        return [line.split("|") for line in said.splitlines()]

    cluster.wait(
        lambda: not any(row[5].startswith(("RUNNING", "PENDING")) for row in rows()),
        "word of all jobs in the accounts",
        "slurmdbd",
    )
    return {
        job: Past(float(submitted), float(started_at), float(run_s), int(cores))
        for job, submitted, started_at, run_s, cores, _ in rows()
        if started_at.isdecimal() and float(run_s)
    }


# Tables


def ratios(found: Mapping[Cell, Result], site: str, tasks: int, way: str) -> list[float]:
    """Windrow's makespan by that of the way, seed by seed."""
    mine = {c.seed: r for c, r in found.items() if (c.site, c.tasks, c.way) == (site, tasks, MINE)}
    other = {c.seed: r for c, r in found.items() if (c.site, c.tasks, c.way) == (site, tasks, way)}
    return [mine[seed].makespan_s / other[seed].makespan_s for seed in sorted(mine.keys() & other)]


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The geometric mean of ratios, with its 95 % interval; without bounds for one of them."""
    logs = [math.log(value) for value in values]
    middle = fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    reach = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - reach), math.exp(middle + reach)


def table(found: Mapping[Cell, Result]) -> list[str]:
    """A row for each site, size and way; then what the goals say."""
    rows = []
    groups = sorted({(c.tasks, c.site) for c in found})
    for tasks, site in groups:
        for way in WAYS:
            own = [r for c, r in found.items() if (c.site, c.tasks, c.way) == (site, tasks, way)]
            if own:
                rows.append(
                    (site, str(tasks), way, *_figures(own), _beside(found, site, tasks, way))
                )
    head = (
        "site", "tasks", "way", "seeds", "makespan, s", "core-h", "RPCs", "a minute", "jobs",
        "start", "Windrow by it",
    )  # fmt: skip
    noisy = [cell.name for cell, one in found.items() if one.loadavg >= QUIET]
    cut = [cell.name for cell, one in found.items() if one.is_cut]
    notes = [f"{len(noisy)} cells began on a machine that was not quiet."] * bool(noisy)
    notes += [f"Cut after {LONGEST_S} s, and counted as that: {', '.join(cut)}."] * bool(cut)
    return [*markdown(head, rows), "", *notes, *verdict(found)]


def _figures(own: Sequence[Result]) -> tuple[str, ...]:
    def mean(of: str) -> float:
        return fmean(getattr(one, of) for one in own)

    pace = fmean(one.rpcs / (one.makespan_s / 60) for one in own)
    return (
        *(str(len(own)), f"{mean('makespan_s'):.0f}", f"{mean('core_hours'):.3f}"),
        *(f"{mean('rpcs'):.0f}", f"{pace:.1f}", f"{mean('jobs'):.0f}", f"{mean('start'):.0%}"),
    )


def _beside(found: Mapping[Cell, Result], site: str, tasks: int, way: str) -> str:
    values = ratios(found, site, tasks, way)
    if way == MINE or not values:
        return "-"
    middle, least, most = interval(values)
    if math.isinf(most):
        return f"{middle:.2f}"
    return f"{middle:.2f} ({least:.2f} to {most:.2f})"


def verdict(found: Mapping[Cell, Result]) -> list[str]:
    """Windrow beside the other way with the least mean makespan, over what all of them did."""
    by_case: dict[tuple[str, int, int], dict[str, Result]] = {}
    for cell, one in found.items():
        by_case.setdefault((cell.site, cell.tasks, cell.seed), {})[cell.way] = one
    whole = [ways for ways in by_case.values() if len(ways) == len(WAYS)]
    if not whole:
        return ["No case has been run in every way yet."]
    mean = {way: fmean(ways[way].makespan_s for ways in whole) for way in WAYS}
    bill = {way: fmean(ways[way].core_hours for ways in whole) for way in WAYS}
    best = min((way for way in WAYS if way != MINE), key=mean.__getitem__)
    behind = [
        f"{site}, {tasks} tasks, {way}"
        for site, tasks in sorted({(cell.site, cell.tasks) for cell in found})
        for way in WAYS
        if way != MINE and (values := ratios(found, site, tasks, way))
        and interval(values)[1] > 1.05
    ]  # fmt: skip
    return [
        f"Over {len(whole)} cases that every way ran, the best other way is {best}: Windrow's mean "
        f"makespan is {mean[MINE] / mean[best]:.2f} of its, its core-hours "
        f"{bill[MINE] / bill[best]:.2f} of its.",
        f"Rows whose whole interval lies above 1.05: {'; '.join(behind) or 'none'}.",
    ]


def main() -> int:
    """Run the cells that are missing, print the table."""
    given = options(__doc__.partition("\n")[0], KEEP)
    bench = Cells(
        given.keep,
        given.quiet_for,
        Result,
        _measured,
        lambda cell: EXPECTED_S[cell.tasks],
    )
    return answer("shared_nodes", given, bench, chosen(given.cells), table)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # the private Slurm and the way are put away
