"""Others on a private Slurm of eight nodes of four cores: an open load that all of a seed see
alike, and what became of it.

    python bench/shared_load.py [--seed 1] [--jobs 300] [--site shared] [--record FILE]

The load is played on a private Slurm, and when each job came, started and ended is written to FILE;
a load that has been recorded is not played again. Then it is played in a simulated cluster, and
starts are compared.

Rule 1: offered are nine tenths of the machine. `shared`: seven of ten jobs have one to four cores,
the others one to three whole nodes; `whole`: all have whole nodes. They ask for one to four minutes
and use a quarter to nine tenths of that.
Rule 2: a load opens with as many jobs as the machine holds, so that no one waits for a queue to
fill.
Rule 3: cores are counted in the simulated cluster: a job of whole nodes takes all of theirs,
wherever they are. Beside that starts are simulated node by node, by the same rule of backfilling: a
job goes to the first nodes that have room for it, or to the fullest.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from heapq import heapify, heappop, heappush
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # `bench` and `tests` are folders here

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from tests.slurm.cluster import ClusterError, SlurmCluster, missing  # noqa: E402
from tests.slurm.settings import Settings  # noqa: E402
from tests.slurm.shared import OTHER, USER, submit  # noqa: E402

from bench.pays_tables import markdown  # noqa: E402
from bench.progress import Progress  # noqa: E402
from windrow.model import Log  # noqa: E402
from windrow.sim import simulate  # noqa: E402

Floats = NDArray[np.float64]
KEEP = Path(__file__).parent / ".peers" / "shared_load.json"
NODES, CORES = 8, 4
OFFERED = 0.9
SITES = ("shared", "whole")
POLICIES = ("conservative-replan", "conservative", "easy")


def settings(site: str) -> Settings:
    """The private Slurm of that name: with accounts, since some tools cannot do without."""
    return Settings(
        nodes=NODES,
        cpus=CORES,
        memory_mib=2000,
        select="select/cons_tres" if site == "shared" else "select/linear",
        accounting=True,
        min_job_age_s=86400,  # a load of 300 jobs takes longer than an hour
        main="DefMemPerCPU=400" if site == "shared" else "",
        accounts=tuple(f"add user {user} account=science" for user in (OTHER, USER)),
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A job of others: this many cores of a node, or whole nodes if `nodes` is not 0."""

    at_s: float
    cores: int
    nodes: int
    limit_s: int
    run_s: int

    @property
    def blocks(self) -> int:
        """The cores that no one else can have meanwhile."""
        return CORES * self.nodes if self.nodes else self.cores

    @property
    def options(self) -> list[str]:
        """What sbatch is told."""
        shape = (
            [f"--nodes={self.nodes}", "--exclusive", "--mem=0"]
            if self.nodes
            else ["--nodes=1", "--ntasks=1", f"--cpus-per-task={self.cores}"]
        )
        return [*shape, f"--time={self.limit_s // 60}", f"--wrap=exec sleep {self.run_s}"]


def draw(site: str, seed: int, jobs: int) -> list[Job]:
    """All of it from the seed."""
    chance = random.Random(f"load {site} {seed}")
    shapes = [_shape(site, chance) for _ in range(jobs)]
    work = [(4 * nodes or cores) * run_s for cores, nodes, _, run_s in shapes]
    pace = OFFERED * NODES * CORES / (sum(work) / jobs)  # jobs in a second
    made = []
    at_s, held = 0.0, 0
    for cores, nodes, limit_s, run_s in shapes:
        held += 4 * nodes or cores
        if held > NODES * CORES:
            at_s += chance.expovariate(pace)
        made.append(Job(at_s, cores, nodes, limit_s, run_s))
    return made


def _shape(site: str, chance: random.Random) -> tuple[int, int, int, int]:
    """Cores, nodes, limit and run time of a job."""
    is_part = site == "shared" and chance.random() < 0.7
    cores, nodes = (chance.randint(1, 4), 0) if is_part else (0, chance.randint(1, 3))
    limit_s = 60 * chance.randint(1, 4)
    return cores, nodes, limit_s, max(1, round(limit_s * chance.uniform(0.25, 0.9)))


class Arriving:
    """Submits the load as another user, each job at its second, from a thread of its own."""

    def __init__(self, cluster: SlurmCluster, load: Sequence[Job]) -> None:
        self.cluster = cluster
        self.load = load
        self.ids: list[str] = []
        self.late_s = 0.0
        self.zero_s = 0.0
        self.error: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._submit_all, daemon=True)

    def start(self) -> None:
        """The load's second 0 is now."""
        self.zero_s = time.time()
        self._thread.start()

    def stop(self) -> None:
        """Submit nothing more."""
        self._over.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        """Whether all has been submitted, or cannot be."""
        return not self._thread.is_alive()

    def _submit_all(self) -> None:
        for job in self.load:
            due_s = self.zero_s + job.at_s
            if self._over.wait(max(0.0, due_s - time.time())):
                return
            try:
                self.ids.append(submit(self.cluster, *job.options))
            except (ClusterError, subprocess.TimeoutExpired) as error:
                self.error = error
                return
            self.late_s = max(self.late_s, time.time() - due_s)


@dataclass(frozen=True, slots=True)
class Played:
    """A job of the load with what became of it; times count from the load's second 0."""

    job: Job
    submitted_s: float
    started_s: float
    ended_s: float


def record(site: str, seed: int, jobs: int) -> list[Played]:
    """Play the load on a private Slurm until its last job has ended."""
    load = draw(site, seed, jobs)
    longest_s = load[-1].at_s + 1200
    progress = Progress({"load": load[-1].at_s + 120})
    progress.part("load")
    with SlurmCluster(settings(site)) as cluster:
        arriving = Arriving(cluster, load)
        arriving.start()
        try:
            while not (arriving.is_over and not cluster.run("squeue", "-h")):
                time.sleep(20)
                progress.say(f"{len(arriving.ids)} of {jobs} submitted")
                if time.time() > arriving.zero_s + longest_s:
                    raise ClusterError(f"the load is not over after {longest_s:.0f} s")
        finally:
            arriving.stop()
        if arriving.error:
            raise ClusterError(f"the load could not be submitted: {arriving.error}")
        progress.finish()
        return [
            _played(cluster, job, number, arriving.zero_s)
            for job, number in zip(load, arriving.ids, strict=True)
        ]


def _played(cluster: SlurmCluster, job: Job, number: str, zero_s: float) -> Played:
    cluster.env["SLURM_TIME_FORMAT"] = "%s"
    said = cluster.run("scontrol", "--oneliner", "show", "job", number)
    found = dict(word.split("=", 1) for word in said.split() if "=" in word)
    times = (float(found[name]) - zero_s for name in ("SubmitTime", "StartTime", "EndTime"))
    return Played(job, *times)


def as_log(played: Sequence[Played]) -> Log:
    """The same jobs for a simulated cluster whose nodes are the cores of the real one."""
    rows = sorted(played, key=lambda one: one.submitted_s)
    return Log(
        "recorded",
        NODES * CORES,
        np.arange(len(rows)),
        np.array([max(0, round(one.submitted_s)) for one in rows]),
        np.array([one.job.blocks for one in rows]),
        np.array([one.job.limit_s for one in rows]),
        np.array([max(1, round(one.ended_s - one.started_s)) for one in rows]),
        np.zeros(len(rows), dtype=np.int64),
    )


class Room:
    """The free cores of each node from now on, as steps of a plan."""

    def __init__(self, now_s: float) -> None:
        self.times_s = [now_s]
        self.free = [[CORES] * NODES]

    def _split(self, at_s: float) -> int:
        """The step that begins then."""
        step = bisect_left(self.times_s, at_s)
        if step == len(self.times_s) or self.times_s[step] != at_s:
            self.times_s.insert(step, at_s)
            self.free.insert(step, list(self.free[step - 1]))
        return step

    def take(self, nodes: Sequence[int], cores: int, from_s: float, until_s: float) -> None:
        """This many cores of each of these nodes, for this long."""
        first = self._split(from_s)
        for step in range(first, self._split(until_s)):
            for node in nodes:
                self.free[step][node] -= cores

    def earliest(self, job: Job, *, is_fullest: bool) -> tuple[float, list[int]]:
        """When the job could start, and where."""
        for step, at_s in enumerate(self.times_s):
            last = bisect_left(self.times_s, at_s + job.limit_s)
            least = [min(free) for free in zip(*self.free[step:last], strict=True)]
            cores, count = (CORES, job.nodes) if job.nodes else (job.cores, 1)
            able = [node for node in range(NODES) if least[node] >= cores]
            if is_fullest:
                able.sort(key=lambda node: (self.free[step][node], node))
            if len(able) >= count:
                return at_s, able[:count]
        raise AssertionError("in the end all nodes are free")


def placed_starts(played: Sequence[Played], *, is_fullest: bool) -> Floats:
    """When each job would start on nodes that are looked at one by one, in the order of their
    submission: at each arrival and end all that waits is planned again, first come first."""
    rows = sorted(played, key=lambda one: one.submitted_s)
    starts = np.full(len(rows), -1.0)
    running: dict[int, tuple[list[int], float]] = {}  # where, and until when
    waiting: list[int] = []
    events = [(max(0.0, float(round(one.submitted_s))), i) for i, one in enumerate(rows)]
    heapify(events)
    while events:
        now_s = events[0][0]
        while events and events[0][0] == now_s:
            number = heappop(events)[1]
            if number in running:
                del running[number]
            else:
                waiting.append(number)
        room = Room(now_s)
        for number, (nodes, _) in running.items():
            job = rows[number].job
            end_s = max(now_s + 1, starts[number] + job.limit_s)
            room.take(nodes, CORES if job.nodes else job.cores, now_s, end_s)
        for number in list(waiting):
            job = rows[number].job
            at_s, nodes = room.earliest(job, is_fullest=is_fullest)
            room.take(nodes, CORES if job.nodes else job.cores, at_s, at_s + job.limit_s)
            if at_s == now_s:
                waiting.remove(number)
                starts[number] = now_s
                run_s = max(1, round(rows[number].ended_s - rows[number].started_s))
                running[number] = nodes, now_s + run_s
                heappush(events, (now_s + run_s, number))
    return starts


def compared(played: Sequence[Played]) -> list[str]:
    """By how much simulated starts differ from real ones, by policy."""
    rows = sorted(played, key=lambda one: one.submitted_s)
    real = np.array([one.started_s for one in rows])
    waited = real - np.array([one.submitted_s for one in rows])
    table = []
    guesses = {
        f"cores counted, {policy}": simulate(as_log(played), policy=policy).start_s.astype(float)
        for policy in POLICIES
    }
    guesses["node by node, first"] = placed_starts(played, is_fullest=False)
    guesses["node by node, fullest"] = placed_starts(played, is_fullest=True)
    for name, starts in guesses.items():
        error = np.abs(starts - real)
        bias = float((starts - real).mean())
        figures = (float(np.median(error)), float(np.quantile(error, 0.9)), bias)
        ratio = float(error.mean() / max(1.0, waited.mean()))
        table.append((name, *(f"{value:.1f}" for value in figures), f"{ratio:.2f}"))
    head = ("simulated", "median error, s", "90 %, s", "bias, s", "mean error by mean wait")
    say = f"{len(rows)} jobs; they waited {np.median(waited):.0f} s (median), {waited.mean():.0f} s (mean)."  # noqa: E501
    return [say, "", *markdown(head, table)]


def read_record(path: Path) -> list[Played]:
    """What `--record` wrote."""
    rows = json.loads(path.read_text())
    return [Played(Job(*row[:5]), *row[5:]) for row in rows]


def main() -> int:
    """Record a load, or compare a record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--site", choices=SITES, default="shared")
    parser.add_argument("--record", type=Path, default=KEEP, metavar="FILE")
    given = parser.parse_args()
    if not given.record.exists():
        if reason := missing(accounting=True):
            print(f"shared_load: {reason}", file=sys.stderr)
            return 2
        played = record(given.site, given.seed, given.jobs)
        rows = [[*astuple(one.job), *astuple(one)[1:]] for one in played]
        given.record.parent.mkdir(parents=True, exist_ok=True)
        given.record.write_text(json.dumps(rows))
    print(*compared(read_record(given.record)), sep="\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # the private Slurm is put away
