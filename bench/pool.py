"""A stream of real workflows in a real pool, beside what the simulator says of the same stream.

    python bench/pool.py [--workflows 200] [--slots 16] [--utilization 0.65] [--policy bf --policy sr] [--json FILE]

Workflows have the shapes of Montage, LIGO and SIPHT; their tasks sleep, so that processors of the
machine are not what they wait for. They are submitted at Poisson times by several processes to a
pool served by `windrow pool`. For each policy the table gives the mean slowdown that the simulator
predicts from the run times asked for, the one measured, and the one that the simulator gives
afterwards for the times for which each task really held its slot. The exit status is 1 where a
workflow did not complete, or where the policies are not in the order predicted.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[0] = str(
    Path(__file__).resolve().parents[1]
)  # so that `bench` is this folder and not this file

import numpy as np  # noqa: E402
from rich.table import Table  # noqa: E402

from bench.tables import console  # noqa: E402
from windrow.model import Runnable, Step, Workflow  # noqa: E402
from windrow.model.workflow import Floats  # noqa: E402
from windrow.pool.events import PoolTaskFinished, PoolTaskStarted  # noqa: E402
from windrow.pool.folder import PoolFolder  # noqa: E402
from windrow.pool.journal import PoolJournal  # noqa: E402
from windrow.pool.story import PoolStory, WorkflowStory  # noqa: E402
from windrow.pool.view import PoolView  # noqa: E402
from windrow.recipes import generate_workflow  # noqa: E402
from windrow.streams import Backfilling, Pool, find_policy  # noqa: E402
from windrow_lab.stream.simulation import run_by_pool  # noqa: E402
from windrow_lab.stream.workload import Workload  # noqa: E402

RECIPES = ("montage", "inspiral", "sipht")
SIZES = (20, 60)
MEAN_TASK_S = 0.25
TASK_RANGE_S = (0.03, 1.0)
SHELLS = 4
LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy. Slowdowns are means and maxima over all workflows; nothing is left out as
    warm-up."""

    policy: str
    complete: int
    predicted: float
    predicted_max: float
    measured: float
    measured_max: float
    afterwards: float
    utilization: float
    overhead_s: float
    """Mean of what a task took beyond what it was asked to sleep: to start, to end, to be
    noticed."""
    start_s: float
    """Mean time from the decision to start a task until it was started: that is when the journal is
    written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict, measure, print, and say whether the order is as predicted."""
    options = _parser().parse_args(arguments)
    workflows = draw(options.workflows, options.seed)
    arrivals_s = arrivals(workflows, options)
    load = os.getloadavg()[0]
    outcomes = [
        run(policy, workflows, arrivals_s, options.slots)
        for policy in options.policy or ["bf", "sr"]
    ]
    screen = console()
    tasks = sum(len(w) for w in workflows)
    screen.print(
        f"{len(workflows)} workflows, {tasks} tasks, {options.slots} slots, "
        f"utilization {options.utilization:g} offered; load of the machine before {load:.1f}"
    )
    screen.print(table(outcomes))
    if options.json:
        options.json.write_text(
            json.dumps([asdict(o) for o in outcomes], indent=1) + "\n", encoding="utf-8"
        )
    by_prediction = sorted(outcomes, key=lambda o: o.predicted)
    in_order = by_prediction == sorted(outcomes, key=lambda o: o.measured)
    all_complete = all(o.complete == len(workflows) for o in outcomes)
    screen.print("The order is as predicted." if in_order else "The order is NOT as predicted.")
    return 0 if in_order and all_complete else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pool.py", description="A real stream beside its simulation."
    )
    parser.add_argument("--workflows", type=int, default=200)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--utilization", type=float, default=0.65)
    parser.add_argument("--policy", action="append", help="may be given again (default: bf and sr)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number there")
    return parser


def draw(count: int, seed: int) -> list[Workflow]:
    """The three shapes in turn; work of a workflow varies as its recipe's does, scaled to short
    sleeps."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        tasks = int(rng.integers(SIZES[0], SIZES[1] + 1))
        work_s = tasks * MEAN_TASK_S * float(rng.gamma(4.0, 0.25))
        drawn = generate_workflow(
            RECIPES[k % 3], tasks=tasks, work_s=work_s, seed=int(rng.integers(2**31))
        )
        found.append(drawn.with_times(np.clip(drawn.runtime_s, *TASK_RANGE_S).round(3)))
    return found


def arrivals(workflows: Sequence[Workflow], options: argparse.Namespace) -> Floats:
    """Poisson times at which the stream asks for this share of the slots."""
    work_s = sum(w.work_s for w in workflows)
    gaps = np.random.default_rng(options.seed + 1).exponential(1.0, len(workflows))
    return np.asarray(np.cumsum(gaps / gaps.sum()) * work_s / (options.slots * options.utilization))


def simulated(policy: str, workflows: Sequence[Workflow], arrivals_s: Floats, slots: int) -> Floats:
    """The response of each workflow, by the simulator."""
    _, ends = run_by_pool(
        Pool(slots, find_policy(policy)), _workload(workflows), arrivals_s.tolist()
    )
    return np.asarray([end.max() for end in ends] - arrivals_s)


def _alone_s(workflow: Workflow, slots: int) -> float:
    _, ends = run_by_pool(Pool(slots, Backfilling()), _workload([workflow]), [0.0])
    return float(ends[0].max())


def _workload(workflows: Sequence[Workflow]) -> Workload:
    sizes = np.zeros(len(workflows), dtype=np.int64)
    return Workload("bench", tuple(workflows), sizes, np.ones(len(workflows)))


def run(policy: str, workflows: Sequence[Workflow], arrivals_s: Floats, slots: int) -> Outcome:
    """One policy for real, in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as place:
        folder = PoolFolder(Path(place) / "pool")
        story = serve_all(folder, policy, workflows, arrivals_s, slots)
        held_s = slot_times_s(folder)
    told = sorted(story.workflows.values(), key=lambda w: w.submitted_s)
    return summarize(policy, workflows, arrivals_s, slots, told, held_s)


def serve_all(
    folder: PoolFolder, policy: str, workflows: Sequence[Workflow], arrivals_s: Floats, slots: int
) -> PoolStory:
    """Serve, submit everything at its time, and wait for the end."""
    environ = {**os.environ, "WINDROW_HISTORY": str(folder.path.parent / "history.sqlite")}
    command = [sys.executable, "-P", "-m", "windrow.cli.main", "pool", str(folder.path)]
    with subprocess.Popen(
        [*command, "--policy", policy, "--cores", str(slots)],
        env=environ,
        stderr=subprocess.DEVNULL,
    ) as server:
        while not folder.journal.exists() or "opened_s" not in PoolView(folder).facts:
            time.sleep(0.05)
        begin_s = time.time() + 1.0
        shells = [
            multiprocessing.Process(target=submit, args=(folder, workflows, arrivals_s, begin_s, k))
            for k in range(SHELLS)
        ]
        for shell in shells:
            shell.start()
        for shell in shells:
            shell.join()
        told = PoolView(folder)
        end = time.monotonic() + LIMIT_S
        while sum(bool(w.outcome) for w in told.story.workflows.values()) < len(workflows):
            assert time.monotonic() < end, "the pool does not come to an end"
            time.sleep(0.5)
            told.refresh()
        server.terminate()
    told.refresh()
    return told.story


def submit(
    folder: PoolFolder,
    workflows: Sequence[Workflow],
    arrivals_s: Floats,
    begin_s: float,
    shell: int,
) -> None:
    """Submit every fourth workflow when its time has come."""
    for k in range(shell, len(workflows), SHELLS):
        times = workflows[k].runtime_s.tolist()
        steps = tuple(Step(("/bin/sleep", f"{t:.3f}"), "/tmp") for t in times)
        # Named by its place in the stream: two that arrive at almost the same time may change
        # places.
        named = Workflow(
            str(k),
            ids=workflows[k].ids,
            kinds=workflows[k].kinds,
            runtime_s=workflows[k].runtime_s,
            parents=workflows[k].parents,
        )
        time.sleep(max(0.0, begin_s + float(arrivals_s[k]) - time.time()))
        folder.submit(Runnable(named, steps))


def slot_times_s(folder: PoolFolder) -> dict[tuple[int, int], float]:
    """For how long each task held its slot: from the decision to start it until its end was
    noticed."""
    begun_s: dict[tuple[int, int], float] = {}
    found: dict[tuple[int, int], float] = {}
    for _, event in PoolJournal.open(folder.journal).records():
        if isinstance(event, PoolTaskStarted):
            begun_s[event.number, event.task] = event.at_s
        elif isinstance(event, PoolTaskFinished):
            found[event.number, event.task] = event.at_s - begun_s[event.number, event.task]
    return found


def summarize(
    policy: str,
    workflows: Sequence[Workflow],
    arrivals_s: Floats,
    slots: int,
    told: Sequence[WorkflowStory],
    held_s: Mapping[tuple[int, int], float],
) -> Outcome:
    """The figures of one run, `told` in the order of submission, beside those simulated."""
    predicted = simulated(policy, workflows, arrivals_s, slots) / [
        _alone_s(w, slots) for w in workflows
    ]
    as_held = [
        workflows[int(w.name)].with_times(np.array([held_s[w.number, t] for t in range(w.tasks)]))
        for w in told
    ]
    first_s = told[0].submitted_s
    real_arrivals_s = np.array([w.submitted_s - first_s for w in told])
    afterwards = simulated(policy, as_held, real_arrivals_s, slots) / [w.alone_s for w in told]
    measured = [w.slowdown for w in told if w.slowdown is not None]
    tasks = sum(len(w) for w in workflows)
    asked = sum(w.work_s for w in workflows)
    held = sum(held_s.values())
    took = sum(sum(w.took_s.values()) for w in told)
    return Outcome(
        policy=policy,
        complete=len(measured),
        predicted=float(predicted.mean()),
        predicted_max=float(predicted.max()),
        measured=float(np.mean(measured)),
        measured_max=float(np.max(measured)),
        afterwards=float(afterwards.mean()),
        utilization=held / (slots * (max(w.ended_s or 0.0 for w in told) - first_s)),
        overhead_s=(took - asked) / tasks,
        start_s=(held - took) / tasks,
    )


def table(outcomes: Sequence[Outcome]) -> Table:
    """All policies."""
    heads = (
        "policy",
        "complete",
        "predicted",
        "measured",
        "simulated afterwards",
        "at most: predicted",
    )
    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in (*heads, "measured", "utilization", "overhead of a task", "of a start"):
        made.add_column(head, justify="left" if head == "policy" else "right")
    for o in outcomes:
        slowdowns = (o.predicted, o.measured, o.afterwards, o.predicted_max, o.measured_max)
        cells = (
            *(f"{value:.2f}" for value in slowdowns),
            f"{o.utilization:.2f}",
            f"{1000 * o.overhead_s:.0f} ms",
        )
        cells += (f"{1000 * o.start_s:.0f} ms",)
        made.add_row(o.policy, str(o.complete), *cells)
    return made


if __name__ == "__main__":
    sys.exit(main())
