"""Does choosing among sites pay on real Slurms? Two unequal private ones under replayed load, the
second behind sshd.

    python bench/two_slurms.py [--seeds 12] [--first 1] [--side 8] [--strategy glume] [--json FILE]

The ways are those of `sites.py`: windrow; slurm (the site with the earliest start at submission,
never moved); the whole run at a (`east`, which sees the files of this folder) or at b (`west`,
another user behind a real sshd, with a folder of its own). All of a case follows from its seed: a
workflow with files, for each site its nodes and a synthetic log at a moment of its own, and the
speed of `west`.

Rule 1: time is compressed as in `pays.py`, and figures are told in the time of the log. What
Windrow waits for between two looks at queues is shortened too (`HURRY`), but not as much; what ssh,
rsync, Slurm and agents take is not at all, and weighs 600 times as much as it does in truth.
Rule 2: each cell (case x way) has Slurms of its own, started afresh, and the same load from the
same second on.
Rule 3: a case of which any way did not end well is no row; the exit status is 1.

Needs root and Slurm's programs (tests/slurm/install). Ctrl-C stops all that was started.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # so that `bench` and `tests` are folders of the project

from tests.slurm import cluster, far  # noqa: E402
from tests.slurm.far import HOST, Account, Bed  # noqa: E402
from tests.slurm.settings import Settings  # noqa: E402

from bench.pays import Replaying, simulated, started  # noqa: E402
from bench.pays_cases import (  # noqa: E402
    COMPRESSION,
    HORIZON_S,
    LEAD_S,
    POLICY,
    all_cases,
    compressed,
    opening,
    write_native,
)
from bench.sites import RECIPES, WAYS, figures, outcome_of, table  # noqa: E402
from windrow.model import Log, Workflow  # noqa: E402
from windrow.recipes import generate_log, generate_workflow  # noqa: E402

SITES = ("east", HOST)
HURRY = {
    "manager.inbox.SLOWEST_POLL_S": 3.0,
    "manager.moving.LOOK_S": 3.0,
    "manager.moving.AGAIN_S": 30.0,
    "strategies.choosing.WORTH_S": 5.0,
}
SLURM_WAY = {
    "strategies.choosing.choose": "bench.sites:earliest_start",
    "strategies.choosing.WORTH_S": math.inf,
}
TASK = """\
sleep $(awk "BEGIN {print $1 / ${PACE:-1}}")
shift
for name; do echo done > "$name"; done
"""


@dataclass(frozen=True)
class Case:
    """A workflow; for each site nodes and load; and how fast `west` is."""

    seed: int
    words: str
    workflow: Workflow
    nodes: tuple[int, int]
    loads: tuple[Log, Log]
    speed: float


def draw(seed: int) -> Case:
    """All of it from the seed."""
    chance = random.Random(f"two slurms {seed}")
    recipe = chance.choice(RECIPES)
    work_s = chance.choice([250, 500, 750])
    nodes = (8, chance.choice([4, 8]))
    speed = chance.choice([0.5, 0.7, 1.0, 1.4, 2.0])
    loads = []
    for count in nodes:
        log = compressed(
            generate_log("lublin", nodes=count, jobs=3000, seed=chance.randrange(1000)),
            chance.choice([0.5, 0.7]),
        )
        loads.append(opening(log, chance.randrange(int(log.submit_s[-1]) - HORIZON_S)))
    workflow = with_files(recipe, 40, work_s, chance)
    words = (
        f"{recipe} {len(workflow)} tasks, {work_s} s; {nodes[0]} nodes, and {nodes[1]} x{speed:g}"
    )
    return Case(seed, words, workflow, nodes, (loads[0], loads[1]), speed)


def with_files(recipe: str, tasks: int, work_s: float, chance: random.Random) -> Workflow:
    """The recipe's shape, with tasks that sleep, some longer and some shorter than expected, and
    then write files."""
    drawn = generate_workflow(recipe, tasks=tasks, work_s=work_s, seed=1)
    written = {name for task in drawn for name in task.outputs}
    names = {
        file.id: f"file{number}" for number, file in enumerate(drawn.files) if file.id in written
    }
    made = []
    for task in drawn:
        expected_s = max(2.0, float(round(task.runtime_s)))
        takes_s = expected_s * min(1.15, chance.lognormvariate(0, 0.1))
        inputs = tuple(names[name] for name in task.inputs if name in written)
        outputs = tuple(names[name] for name in task.outputs)
        command = ("sh", "task.sh", f"{takes_s:.1f}", *outputs)
        made.append(
            replace(task, inputs=inputs, outputs=outputs, runtime_s=expected_s, command=command)
        )
    return Workflow.from_tasks(recipe, made)


class Beds:
    """Makes beds, and ends all of them when asked to stop."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self._starting = threading.Lock()
        self._live: list[Bed] = []

    @contextmanager
    def made(self, nodes: dict[str, int], **how: Any) -> Iterator[Bed]:
        """One with fresh Slurms of this many nodes."""
        with ExitStack() as stack:
            with self._starting:  # two that start at once may find the same port free
                self.check()
                slurms = {
                    name: stack.enter_context(closing(started(Settings(nodes=n))))
                    for name, n in nodes.items()
                }
                account = stack.enter_context(Account())
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="windrow-two-slurms-"))
            bed = Bed(Path(folder), account, slurms, **how)
            stack.callback(bed.stop)
            self._live.append(bed)
            yield bed

    def check(self) -> None:
        """ChildProcessError where all is to stop."""
        if self.is_over.is_set():
            raise ChildProcessError("stopped")

    def stop(self) -> None:
        """Whatever runs in beds; who waits for it puts the rest away."""
        self.is_over.set()
        for bed in list(self._live):
            bed.stop()

    def all(
        self, what: Sequence[Any], side: int, one: Callable[[Any], Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Each of them with what came of it, some at a time; None where it was lost. A Ctrl-C stops
        all."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        began = time.monotonic()
        left = len(what)
        with ThreadPoolExecutor(
            side
        ) as pool:  # a cluster lives and dies with the thread that started it
            futures = {pool.submit(one, item): item for item in what}
            try:
                for future in as_completed(futures):
                    left -= 1
                    found = None
                    try:
                        found = future.result()
                    except (
                        ChildProcessError,
                        cluster.ClusterError,
                        AssertionError,
                        subprocess.TimeoutExpired,
                    ) as error:
                        print(f"{futures[future]}: lost: {error}", file=sys.stderr, flush=True)
                    took = (time.monotonic() - began) / (len(what) - left)
                    print(f"about {took * left / 60:.0f} min left", file=sys.stderr, flush=True)
                    yield futures[future], found
            except (
                BaseException
            ):  # Ctrl-C too, and a reader that stops early: no cluster may outlive this process
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise


@contextmanager
def loaded(bed: Bed, loads: Iterable[tuple[str, Log]]) -> Iterator[None]:
    """The loads continue from now."""
    replaying = [Replaying(bed.slurms[name], load) for name, load in loads if name in bed.slurms]
    for one in replaying:
        one.start()
    try:
        yield
    finally:
        for one in replaying:
            one.stop()


def measured(beds: Beds, case: Case, way: str, strategy: str) -> tuple[int, float, int]:
    """Makespan in seconds, node-hours and moves of one cell."""
    names = {"a": SITES[:1], "b": SITES[1:]}.get(way, SITES)
    nodes = {name: count for name, count in zip(SITES, case.nodes, strict=True) if name in names}
    hurry = json.dumps(HURRY | (SLURM_WAY if way == "slurm" else {}))
    how = {
        "keys": {HOST: f"speed = {case.speed}\n"},
        "setup": f"export PACE={case.speed}",
        "hurry": hurry,
    }
    with beds.made(nodes, **how) as bed, loaded(bed, zip(SITES, case.loads, strict=True)):
        (bed.work / "task.sh").write_text(TASK)
        write_native(case.workflow, bed.work / "workflow.yaml")
        beds.is_over.wait(LEAD_S)
        beds.check()
        words = (
            "run",
            "workflow.yaml",
            "--on",
            ",".join(names),
            "--strategy",
            strategy,
            "--margin",
            "1.2",
            "--json",
        )
        bed.windrow(*words, timeout_s=HORIZON_S, PYTHONPATH=str(ROOT))
        told = bed.told
        found = figures(told.story)
        told.close()
    return found


def main() -> int:
    """Run every cell, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--side", type=int, default=8, help="cells at a time (default: 8)")
    parser.add_argument("--strategy", default="glume")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if reason := cluster.missing() or far.missing():
        print(f"two_slurms: {reason}", file=sys.stderr)
        return 2
    cases = {seed: draw(seed) for seed in range(given.first, given.first + given.seeds)}
    cells = {seed: dict[str, tuple[int, float, int]]() for seed in cases}
    beds = Beds()
    wanted = [(seed, way) for seed in cases for way in WAYS]
    simulated(
        all_cases()[0], given.strategy, POLICY, LEAD_S
    )  # compiles what must be compiled before any clock runs
    for (seed, way), found in beds.all(
        wanted, given.side, lambda cell: measured(beds, cases[cell[0]], cell[1], given.strategy)
    ):
        if found is not None:
            cells[seed][way] = found
            print(
                f"{seed}: {cases[seed].words}: {way}: {found[0]} s, moved {found[2]}",
                file=sys.stderr,
                flush=True,
            )
    whole = [
        outcome_of(seed, cases[seed].words, cells[seed], COMPRESSION)
        for seed in cases
        if len(cells[seed]) == 4
    ]
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in whole]))
    print(f"{len(whole)} of {len(cases)} cases, from seed {given.first} on, by {given.strategy}")
    if whole:
        print(f"jobs moved: {sum(one.moved for one in whole)}\n\n{table(whole)}")
    return 0 if len(whole) == len(cases) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # all that was started is put away
