"""Files within a limit, for real and in simulation: watched from outside, killed at random, and
what a limit costs.

    python bench/space.py [samples]

Real runs are on this machine, on a file system in memory of exactly the limit (which takes root, or
user namespaces).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from windrow.app.strategies import find_strategy
from windrow.model import File, NodeShape, Task, Workflow
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.storage.admission import ORDERS
from windrow.storage.demand import SpaceLimit, demand_of
from windrow.strategies import Work, whole_seconds
from windrow.trials.trial import run_trial

WINDROW = str(Path(sys.executable).parent / "windrow")
PAGE = 4096  # what a file system in memory counts in

SAMPLES = """\
defaults: {{keep: false, workdir: "{place}", runtime: 1s, retries: 2}}
tasks:
  - id: raw-{{n}}
    matrix: {{n: 1..{samples}}}
    command: [cp, "{seeds}/big", "{{outputs}}"]
    outputs: {{"raw.{{n}}": {big}B}}
  - id: sorted-{{n}}
    matrix: {{n: 1..{samples}}}
    command: [cp, "{{inputs}}", "{{outputs}}"]
    inputs: raw.{{n}}
    outputs: {{"sorted.{{n}}": {big}B}}
  - id: count-{{n}}
    matrix: {{n: 1..{samples}}}
    command: sh -c 'head -c {small} "$0" > "$1"' {{inputs}} {{outputs}}
    inputs: sorted.{{n}}
    outputs: {{"count.{{n}}": {{size: {small}B, keep: true}}}}
"""

CHAINS = """\
defaults: {{keep: false, workdir: "{place}", runtime: 1s}}
tasks:
  - id: t0-{{n}}
    matrix: {{n: 1..{width}}}
    command: sleep {nap}; cp {seeds}/big {{outputs}}
    outputs: {{"v.{{n}}": {big}B}}
{stages}"""
STAGE = """\
  - id: t{d}-{{n}}
    matrix: {{n: 1..{width}}}
    command: sleep {nap}; cat v.{{n}} > /dev/null; touch m{d}.{{n}}
    inputs: ["v.{{n}}"{before}]
    outputs: m{d}.{{n}}
"""


@dataclass
class Watched:
    """What a folder's file system had in use, looked at from outside every 50 ms."""

    place: Path
    most: int = 0
    looks: int = 0
    base: int = field(init=False)

    def __post_init__(self) -> None:
        self.base = self._used()

    def _used(self) -> int:
        found = os.statvfs(self.place)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    @contextmanager
    def watching(self) -> Iterator[Watched]:
        """Look until the end of the `with`."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.05):
                self.most = max(self.most, self._used() - self.base)
                self.looks = self.looks + 1

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield self
        finally:
            over.set()
            watcher.join()


@contextmanager
def in_memory(folder: Path, size: int) -> Iterator[Path]:
    """A file system of exactly this size."""
    place = folder / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def home(folder: Path) -> dict[str, str]:
    """Variables for a queue and a history of its own."""
    return {
        **os.environ,
        **{f"XDG_{name}_HOME": str(folder / name) for name in ("STATE", "DATA", "CONFIG", "CACHE")},
    }


def seeded(folder: Path, big: int, nodes: int) -> str:
    """A folder with what tasks copy, and settings."""
    (folder / "big").write_bytes(os.urandom(big))
    (folder / "windrow.toml").write_text(
        f'[queues.try]\nkind = "local"\nnodes = {nodes}\ncores = 1\n'
    )
    return str(folder)


def samples(
    folder: Path, count: int, side_by_side: int, kills: int = 0, seed: int = 1
) -> dict[str, object]:
    """Samples with temporary files in a file system that holds a few of them; managers and agents
    are killed."""
    big = 16 * PAGE
    small = PAGE
    limit = side_by_side * 2 * big + count * small
    with in_memory(folder, limit) as place:
        given = {"place": place, "samples": count, "seeds": seeded(folder, big, 2 * side_by_side)}
        given |= {"big": big, "small": small}
        (folder / "samples.yaml").write_text(SAMPLES.format(**given))
        with Watched(place).watching() as seen:
            began = time.monotonic()
            killed = survived(
                folder,
                ["run", "samples.yaml", "--on", "try", "--space", str(limit)],
                kills,
                random.Random(seed),
            )
            took_s = time.monotonic() - began
        left = sorted(path.name for path in place.iterdir())
    return {
        "samples": count,
        "limit": limit,
        "without": count * (2 * big + small),
        "most": seen.most,
        "looks": seen.looks,
        "killed": killed,
        "took_s": took_s,
        "is_whole": left == sorted(f"count.{n}" for n in range(1, count + 1)),
    }


def survived(folder: Path, argv: list[str], kills: int, chance: random.Random) -> int:
    """Run it; as often as wanted the manager, or all agents too, are killed -9 at random, and it is
    resumed."""
    done = 0
    for at in range(kills + 1):
        words = ["resume"] if any(folder.glob(".windrow/runs/[a-z]*/journal.sqlite")) else argv
        out = (folder / "said").open("w")
        with (
            out,
            subprocess.Popen(
                [WINDROW, *words], cwd=folder, env=home(folder), stdout=out, stderr=out
            ) as manager,
        ):
            try:
                code = manager.wait(chance.uniform(0.4, 1.2) if at < kills else None)
            except subprocess.TimeoutExpired:
                manager.kill()
                done += 1
                for pid in agents(folder) if chance.random() < 0.5 else ():
                    os.kill(pid, signal.SIGKILL)
                continue
        if code == 0:
            break
    assert code == 0, f"windrow ended with {code}: {(folder / 'said').read_text()[-500:]}"
    return done


def agents(folder: Path) -> list[int]:
    """The processes of agents of runs in this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"windrow.agent" in words and any(
            word.startswith(os.fsencode(folder)) for word in words
        ):
            found.append(int(entry.name))
    return found


def staircase_for_real(
    folder: Path, share: int, width: int = 8, nap: float = 0.4
) -> dict[str, object]:
    """Pipelines of four stages that hold one volume each: how many go at a time, and how many tasks
    fail."""
    from windrow.app.runs import RunView, find_run

    size = 100 * PAGE
    with in_memory(folder, size) as place:
        big = share * PAGE
        stages = "".join(
            STAGE.format(d=d, width=width, nap=nap, before=f', "m{d - 1}.{{n}}"' if d > 1 else "")
            for d in (1, 2, 3)
        )
        given = {
            "place": place,
            "seeds": seeded(folder, big, 8),
            "big": big,
            "width": width,
            "nap": nap,
        }
        (folder / "chains.yaml").write_text(CHAINS.format(**given, stages=stages))
        with Watched(place).watching() as seen:
            began = time.monotonic()
            survived(
                folder,
                ["run", "chains.yaml", "--on", "try", "--space", str(size)],
                0,
                random.Random(1),
            )
            took_s = time.monotonic() - began
    told = RunView(find_run(str(folder / ".windrow" / "runs" / "chains-1")))
    attempts = [attempt for task in told.story.tasks for attempt in task.attempts]
    failed = len(attempts) - len(told.story.tasks)
    told.close()
    return {"share": share, "most": seen.most / size, "took_s": took_s, "failed": failed}


def chains(width: int, depth: int, size: int, run_s: int = 60) -> Workflow:
    """Pipelines that each hold one volume from their first task to their last."""
    tasks = []
    files = []
    for p in range(width):
        files.append(File(f"v{p}", size, keep=False))
        for d in range(depth):
            read = (f"v{p}",) if d else ()
            parents = (f"t{p}-{d - 1}",) if d else ()
            tasks.append(
                Task(f"t{p}-{d}", run_s, f"stage{d}", parents, read, (f"v{p}",) if not d else ())
            )
    return Workflow.from_tasks("chains", tasks, files)


def simulated_s(workflow: Workflow, nodes: int, limit: SpaceLimit | None) -> int:
    """The makespan on an empty cluster."""
    work = Work(workflow, whole_seconds(workflow), Site.of(nodes, NodeShape(1)), space=limit)
    return run_trial(
        Cluster(nodes=nodes, policy="fcfs"), workflow, find_strategy("giant"), work=work
    ).makespan_s


def uneven(count: int, seed: int = 1) -> Workflow:
    """Samples of three tasks each, of sizes and times that differ, and one task that reads all
    results."""
    chance = random.Random(seed)
    tasks = []
    files = []
    for n in range(count):
        sizes = [int(chance.lognormvariate(0, 0.5) * 1000) for _ in range(2)]
        times = [int(60 * chance.lognormvariate(0, 0.5)) + 1 for _ in range(3)]
        files += [
            File(f"a{n}", sizes[0], keep=False),
            File(f"b{n}", sizes[1], keep=False),
            File(f"c{n}", 1),
        ]
        tasks.append(Task(f"a{n}", times[0], "a", outputs=(f"a{n}",)))
        tasks.append(Task(f"b{n}", times[1], "b", (f"a{n}",), (f"a{n}",), (f"b{n}",)))
        tasks.append(Task(f"c{n}", times[2], "c", (f"b{n}",), (f"b{n}",), (f"c{n}",)))
    tasks.append(
        Task(
            "all",
            60,
            "all",
            tuple(f"c{n}" for n in range(count)),
            tuple(f"c{n}" for n in range(count)),
        )
    )
    return Workflow.from_tasks("uneven", tasks, files)


def cost(count: int = 200, nodes: int = 32) -> Iterator[tuple[float, Mapping[str, float]]]:
    """How many times the makespan without a limit a limit takes, by order; limits as multiples of
    the smallest."""
    workflow = uneven(count)
    demand = demand_of(workflow)
    smallest = demand.peak(demand.order())
    free_s = simulated_s(workflow, nodes, None)
    for times in (1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32):
        limits = {order: SpaceLimit(int(smallest * times), order) for order in ORDERS}
        yield (
            times,
            {
                order: simulated_s(workflow, nodes, limit) / free_s
                for order, limit in limits.items()
            },
        )


def main(count: int = 2000) -> int:
    """Print the tables."""
    wrong = 0
    print(
        "| real run in a file system of exactly the limit | limit | most seen | looks | kill -9 "
        "| took | all there |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for tasks, side_by_side, kills in ((count, 20, 0), (max(20, count * 2 // 5), 4, 12)):
        with tempfile.TemporaryDirectory() as folder:
            found = samples(Path(folder), tasks, side_by_side, kills)
        is_right = bool(found["is_whole"]) and int(str(found["most"])) <= int(str(found["limit"]))
        wrong += not is_right
        megabytes = [f"{int(str(found[name])) / 1e6:.2f} MB" for name in ("limit", "most")]
        what = f"{tasks:,} samples, {int(str(found['without'])) / 1e6:.0f} MB in all"
        took = f"{float(str(found['took_s'])):.0f} s"
        cells = (
            what,
            *megabytes,
            f"{found['looks']:,}",
            found["killed"],
            took,
            "yes" if is_right else "NO",
        )
        print("|", " | ".join(map(str, cells)), "|", flush=True)
    print(
        "\nFigure 3.5: pipelines whose data take so much of the space; how many fit, in "
        "simulation (32 on 16 nodes)"
    )
    print("and for real (8 of four stages of 0.4 s on this machine).\n")
    print(
        "| data of a pipeline | fit | simulated run | for one more at a time | real run | most "
        "used | failed tasks |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for share in (20, 25, 30, 34, 50, 51, 100):
        fit = 100 // share
        run_s = simulated_s(chains(32, 4, share), 16, SpaceLimit(100))
        with tempfile.TemporaryDirectory() as folder:
            real = staircase_for_real(Path(folder), share)
        wrong += run_s != -(-32 // fit) * 240 or bool(real["failed"])
        used = f"{100 * float(str(real['most'])):.0f} %"
        more = -(-32 // (fit + 1)) * 240
        print(
            f"| {share} % | {fit} | {run_s:,} s | {more:,} s | {real['took_s']:.1f} s | {used} | "
            f"{real['failed']} |"
        )
    print(
        "\nWhat a limit costs: 200 uneven samples of three tasks on 32 nodes, as multiples of "
        "the makespan without one."
    )
    print(
        "\n| limit, times the smallest |",
        " | ".join(ORDERS),
        "|\n| ---: |" + " ---: |" * len(ORDERS),
    )
    for times, ratios in cost():
        print(
            f"| {times} |", " | ".join(f"{ratios[order]:.2f}" for order in ORDERS), "|", flush=True
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
