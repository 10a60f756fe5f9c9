"""The four ways of chapter 5 (`windrow_lab.grid.hybrid`) on two real Slurms: unloaded, with queue load,
with disk load.

    python bench/four_ways.py [--recipes eman,montage,fft,gauss] [--tasks 20] [--side 3] [--json FILE]

The ways are the code of the reproduction; only the world is another. A task is a job of one node: a
program that computes for a set time and writes a set number of megabytes, at `east` or, through a
real sshd, as another user at `west`.

Rule 1: both Slurms are on one machine, so what they have of their own is made: the disk of a site
is a lock that is held while a megabyte is written and for as long as that takes there; the link
between the sites likewise. Those who write or move at the same time share them.
Rule 2: loads are on `east`: every `PERIOD_S` jobs that take all its nodes for `LOAD_S`; or others
that keep writing.
Rule 3: a batch of a workflow has Slurms of its own, on which the ways run one after the other, each
with its load.
Rule 4: data of a parent move from when the task is submitted; mapped ahead, in print, they go when
the parent ends.

Needs root and Slurm's programs (tests/slurm/install). Ctrl-C stops all that was started.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

sys.path[0] = str(
    Path(__file__).resolve().parents[1]
)  # so that `bench` and `tests` are folders of the project

import numpy as np  # noqa: E402
from tests.slurm import cluster, far  # noqa: E402
from tests.slurm.far import HOST, Bed  # noqa: E402

from bench.pays_tables import markdown  # noqa: E402
from bench.two_slurms import Beds  # noqa: E402
from windrow_lab.grid.estimate import LoopWork, Model  # noqa: E402
from windrow_lab.grid.hybrid import AGGRESSIVE, WAYS, DataMove, Ended, execute, plan_length_s  # noqa: E402
from windrow_lab.reproductions.hybrid.plan import work_of  # noqa: E402

SITES = ("east", HOST)
MODEL = Model(
    nodes=np.array([4, 6]),
    start_s=np.array([0.5, 0.5]),
    iteration_s=np.array([1.0, 1.4]),
    s_per_mb=np.array([0.05, 0.1]),
    wait_s=np.array([2.0, 3.0]),
    link_s_per_mb=np.array([[0.0, 0.2], [0.2, 0.0]]),
)
"""What is believed of both in the beginning, and what is true of them while no one else is
there."""
ITERATIONS = 5.0
WRITTEN_MB = 6.0
BATCHES = ("unloaded", "queue load", "disk load")
PERIOD_S = 40
LOAD_S = 20
WRITERS = 4
LONGEST_S = 600.0
TASK = """\
import fcntl, os, sys, time
task, compute_s, mb, s_per_mb = sys.argv[1], *map(float, sys.argv[2:5])
def note(what):
    with open(f"{what}{task}.part", "w") as file:
        file.write(str(time.time()))
    os.replace(f"{what}{task}.part", f"{what}{task}")
note("node")
while not os.path.exists(f"data{task}"):
    time.sleep(0.05)
note("start")
time.sleep(compute_s)
with open("disk", "a") as disk, open(f"out{task}", "wb") as out:
    while mb > 0:
        fcntl.flock(disk, fcntl.LOCK_EX)
        out.write(bytes(round(min(1.0, mb) * 1e6)))
        time.sleep(s_per_mb * min(1.0, mb))
        fcntl.flock(disk, fcntl.LOCK_UN)
        mb -= 1.0
note("end")
"""
"""Computes, then writes; waits for its data before. Writing to a disk that others write to takes
turns."""


@dataclass(frozen=True)
class Run:
    """One workflow, one way. slr: turnaround by what the static way planned."""

    batch: str
    recipe: str
    way: str
    turnaround_s: float
    slr: float
    chosen: int
    at_east: float


class Slurms:
    """Two queues in real time (`hybrid.QueueWorld`); `folder`: of this run, at both sites."""

    def __init__(self, bed: Bed, beds: Beds, work: LoopWork, folder: str) -> None:
        self.bed = bed
        self.beds = beds
        self.work = work
        self.now_s = time.time()
        self.end_s = time.time() + LONGEST_S
        self.sent: dict[int, tuple[int, float, Sequence[DataMove], list[Future[float]]]] = {}
        self.queue_of: dict[int, int] = {}
        self.ends: list[Ended] = []
        self.folders = (str(bed.work / folder), f"scratch/{folder}")
        self.movers = ThreadPoolExecutor(16)
        self.links = (threading.Lock(), threading.Lock())
        for queue in (0, 1):
            self.shell(
                queue,
                f"mkdir -p {self.folders[queue]}; cat > {self.folders[queue]}/task.py",
                TASK.encode(),
            )

    def shell(self, queue: int, script: str, stdin: bytes = b"") -> bytes:
        """What a shell at this site says."""
        master = (
            "-o",
            "ControlMaster=auto",
            "-o",
            "ControlPersist=60",
            "-o",
            f"ControlPath={self.bed.folder}/master",
        )
        setup = f"export SLURM_CONF={self.bed.slurms[SITES[queue]].env['SLURM_CONF']}"
        there = ("ssh", *master, HOST) if queue else ("sh", "-c")
        argv = [*there, f"{setup}\n{script}"]
        done = subprocess.run(
            argv, input=stdin, env=self.bed.env, capture_output=True, check=False, timeout=60
        )
        if done.returncode:
            raise ChildProcessError(
                f"{SITES[queue]}: {done.stderr.decode(errors='replace').strip()}"
            )
        return done.stdout

    def submit(
        self, task: int, queue: int, moves: Sequence[DataMove], iterations: float, mb: float
    ) -> None:
        """Now; its data come meanwhile."""
        compute_s = float(MODEL.start_s[queue] + MODEL.iteration_s[queue] * iterations)
        words = f"python3 task.py {task} {compute_s:.2f} {mb:.2f} {MODEL.s_per_mb[queue]}"
        options = "--nodes=1 --exclusive --time=10 --output=/dev/null"
        submitted_s = time.time()
        self.shell(
            queue, f"cd {self.folders[queue]} && sbatch --parsable {options} --wrap='exec {words}'"
        )
        parents = [
            p for p in self.work.workflow.parents.of(task).tolist() if self.queue_of[p] != queue
        ]
        taken = [
            self.movers.submit(self._move, parent, task, queue, move.mb)
            for parent, move in zip(parents, moves, strict=True)
        ]
        self.queue_of[task], self.sent[task] = queue, (queue, submitted_s, moves, taken)
        self.movers.submit(self._arrived, task, queue, taken)

    def _move(self, parent: int, task: int, queue: int, mb: float) -> float:
        """Send the data of a parent from the other site, as fast as the link is; how long it
        took."""
        began = time.time()
        count = max(1, round(mb * 1e6))
        data = self.shell(1 - queue, f"head -c {count} {self.folders[1 - queue]}/out{parent}")
        for _ in range(-(-count // 1_000_000)):
            with self.links[queue]:
                time.sleep(float(MODEL.link_s_per_mb[1 - queue, queue]) * min(1.0, mb))
        self.shell(queue, f"cat > {self.folders[queue]}/in{parent}-{task}", data)
        return time.time() - began

    def _arrived(self, task: int, queue: int, taken: Sequence[Future[float]]) -> None:
        for one in taken:
            one.result()
        self.shell(queue, f": > {self.folders[queue]}/data{task}")

    def next_end(self) -> Ended:
        """Wait until a task ends."""
        while not self.ends:
            self.beds.check()
            if time.time() > self.end_s:
                raise ChildProcessError(f"not over after {LONGEST_S:.0f} s")
            for queue in sorted({sent[0] for sent in self.sent.values()}):
                self._look(queue)
            time.sleep(0.2)
        self.now_s = time.time()
        return self.ends.pop(0)

    def _look(self, queue: int) -> None:
        """At the ends that this site has noted."""
        tasks = [task for task, sent in self.sent.items() if sent[0] == queue]
        each = "[ -e end$t ] && echo $t $(cat node$t) $(cat start$t) $(cat end$t)"
        script = (
            f"cd {self.folders[queue]}\nfor t in {' '.join(map(str, tasks))}; do {each}; done; true"
        )
        said = self.shell(queue, script).decode()
        for line in said.splitlines():
            number, *at = line.split()
            node_s, start_s, end_s = map(float, at)
            _, submitted_s, moves, taken = self.sent.pop(int(number))
            took = [one.result() for one in taken]
            times = (submitted_s, node_s - submitted_s, start_s, end_s - start_s)
            self.ends.append(Ended(int(number), queue, *times, moves, took))
        self.ends.sort(key=lambda end: end.end_s)


@contextmanager
def loaded(batch: str, bed: Bed, folder: Path) -> Iterator[None]:
    """Others at `east`, while it lasts."""
    over = threading.Event()
    if batch == "disk load":
        code = (
            "import fcntl, time\nwhile True:\n with open('disk', 'a') as d:\n  fcntl.flock(d, "
            "fcntl.LOCK_EX)"
        )
        code += f"\n  time.sleep({MODEL.s_per_mb[0]})"
        folder.mkdir(exist_ok=True)
        others = [
            subprocess.Popen([sys.executable, "-c", code], cwd=folder, process_group=0)
            for _ in range(WRITERS)
        ]
    else:
        others = []
    coming = threading.Thread(target=_queue_load, args=(bed, over), daemon=True)
    if batch == "queue load":
        coming.start()
    try:
        yield
    finally:
        over.set()
        for other in others:
            other.kill()
            other.wait()
        if coming.is_alive():
            coming.join()


def _queue_load(bed: Bed, over: threading.Event) -> None:
    """Jobs that take all nodes for a while, again and again."""
    options = (
        "--nodes=1",
        "--exclusive",
        "--time=1",
        "--output=/dev/null",
        "--chdir=/",
        f"--wrap=exec sleep {LOAD_S}",
    )
    while True:
        for _ in range(int(MODEL.nodes[0])):
            bed.slurms["east"].run("sbatch", *options)
        if over.wait(PERIOD_S):
            return


def measured(
    beds: Beds, batch: str, recipe: str, tasks: int, say: Callable[[Run], None]
) -> list[Run]:
    """All ways, one after the other on the same Slurms."""
    work = work_of(recipe, tasks, 1, ITERATIONS, WRITTEN_MB)
    plan_s = plan_length_s(work, MODEL)
    found = []
    with beds.made(dict(zip(SITES, MODEL.nodes.tolist(), strict=True))) as bed:
        for number, way in enumerate(WAYS):
            for slurm in bed.slurms.values():
                slurm.clear()
            name = f"way{number}"
            with loaded(batch, bed, bed.work / name):
                beds.is_over.wait(2.0)
                outcome = execute(way, work, MODEL, Slurms(bed, beds, work, name), AGGRESSIVE)
            took = outcome.turnaround_s
            east = outcome.queue_of.count(0) / len(outcome.queue_of)
            found.append(Run(batch, recipe, way, took, took / plan_s, outcome.chosen, east))
            say(found[-1])
    return found


def lines(found: Sequence[Run]) -> list[str]:
    """A row for each batch and way: means, and beside hybrid, workflow by workflow."""
    hybrid = {(run.batch, run.recipe): run.turnaround_s for run in found if run.way == "hybrid"}
    rows = []
    for batch in BATCHES:
        for way in WAYS:
            runs = [run for run in found if (run.batch, run.way) == (batch, way)]
            if not runs:
                continue
            beside = fmean(run.turnaround_s / hybrid[run.batch, run.recipe] for run in runs)
            means = np.mean(
                [(run.turnaround_s, run.slr, run.chosen, run.at_east) for run in runs], axis=0
            )
            texts = (
                f"{means[0]:.0f} s",
                f"{beside:.2f}",
                f"{means[1]:.2f}",
                f"{means[2]:.1f}",
                f"{means[3]:.0%}",
            )
            rows.append((batch, way, str(len(runs)), *texts))
    return markdown(
        (
            "batch",
            "way",
            "workflows",
            "turnaround",
            "beside hybrid",
            "SLR",
            "chosen",
            "tasks at east",
        ),
        rows,
    )


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipes", default="eman,montage,fft,gauss")
    parser.add_argument("--batches", default=",".join(BATCHES))
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument(
        "--side", type=int, default=3, help="batches of a workflow at a time (default: 3)"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if reason := cluster.missing() or far.missing():
        print(f"four_ways: {reason}", file=sys.stderr)
        return 2
    beds = Beds()
    wanted = [
        (batch, recipe) for recipe in given.recipes.split(",") for batch in given.batches.split(",")
    ]
    say = lambda run: print(  # noqa: E731
        f"{run.batch}, {run.recipe}, {run.way}: {run.turnaround_s:.0f} s", file=sys.stderr
    )
    found = list[Run]()
    lost = 0
    for _, runs in beds.all(
        wanted, given.side, lambda cell: measured(beds, cell[0], cell[1], given.tasks, say)
    ):
        found += runs or []
        lost += runs is None
    if given.json:
        given.json.write_text(json.dumps([asdict(run) for run in found]))
    print(*lines(found), sep="\n")
    return 1 if lost else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # all that was started is put away
