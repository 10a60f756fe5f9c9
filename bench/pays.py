"""Does it pay on a real Slurm, and did the simulator say so? The same workflows, by each strategy, in both worlds.

    python bench/pays.py [--quick | --drawn N | --simulate | --read FILE] [--strategies A,B] [--side N] [--json FILE]

A private Slurm of eight nodes is kept busy by a synthetic log, 600 times compressed: an hour takes six seconds, a job
of the log is a `sleep`. In the midst of it `windrow run` executes a workflow of sleeps. Each cell (case x strategy) has
a Slurm of its own, started afresh, and sees the same load from the same second on.

Rule 1: the simulator gets what the real run had: the same load, terms and requests, and the first submission at the
same second. Nothing is fitted; what Slurm, agents and the manager take in between is left out of the simulation.
Rule 2: a load opens with what ran and waited in the log at that moment, so that no cell waits for a queue to fill.
Rule 3: a run that does not end well is an error (exit status 1), not a row.

Needs Slurm's programs (tests/slurm/install). Tables go to stdout in Markdown, progress to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder and not this file

import msgspec  # noqa: E402
import numpy as np  # noqa: E402
from tests.slurm.cluster import ClusterError, SlurmCluster, missing  # noqa: E402
from tests.slurm.settings import Settings  # noqa: E402

from windrow.app.execute import Order, terms_for  # noqa: E402
from windrow.app.runs import Told, find_run  # noqa: E402
from windrow.forecast.ledger import Accuracy, PastPrediction, accuracies  # noqa: E402
from windrow.lab.trial import Trial, run_trial  # noqa: E402
from windrow.model import Log, NodeShape, Workflow  # noqa: E402
from windrow.queues.port import Limits  # noqa: E402
from windrow.recipes import generate_log, generate_workflow  # noqa: E402
from windrow.sim import simulate  # noqa: E402
from windrow.sim.cluster import Cluster  # noqa: E402
from windrow.strategies import find_strategy  # noqa: E402

STRATEGIES = ("individual", "one-job", "level-by-level", "zhang", "glume")
OVERLAPPING, FIXED = ("zhang", "glume"), ("individual", "level-by-level")
POLICIES = ("conservative-replan", "easy")
"""What is taken for Slurm in the simulator; the first one plans as Slurm's backfilling does, and counts."""
COMPRESSION = 600
SHORTEST_S = 5
"""Shorter jobs of the log are left out: Slurm's least limit, a minute, says nothing of them."""
LOAD = 0.6
"""Work offered to the machine; limits are so generous that the queue is never empty for long."""
LEAD_S = 15
"""The workflow comes so long after the load."""
HORIZON_S = 1500
"""A load lasts so long; the longest run must be over by then."""
SLACK_S = 5.0
"""By how much a start may be late and still count as no later than said."""
CLEAR = 0.1
"""Two makespans differ clearly where the shorter one is at least this part below the longer one."""


@dataclass(frozen=True)
class Case:
    """One workflow under one load."""

    name: str
    workflow: Workflow
    load: Log

    @cached_property
    def order(self) -> Order:
        """The terms of every run."""
        return Order(Path("workflow.yaml"), on="slurm", cap=16, margin=1.2)


@dataclass(frozen=True)
class Cell:
    """What one strategy made of one case. Times are makespans; `simulated_s` is by policy."""

    case: str
    strategy: str
    real_s: float
    simulated_s: dict[str, int]
    jobs: int
    simulated_jobs: int
    node_s: float
    simulated_node_s: int
    begun_s: float
    late_s: float
    predictions: list[PastPrediction] = field(repr=False, default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every cell, print the tables."""
    options = _parser().parse_args(arguments)
    if (reason := missing()) and not (options.simulate or options.read):
        print(f"pays: no private Slurm can run here: {reason}", file=sys.stderr)
        return 2
    cases = drawn_cases(options.drawn) if options.drawn else all_cases()[:1] if options.quick else all_cases()
    if options.simulate:
        print(*_forecast_lines(cases), sep="\n")
        return 0
    cells = read_cells(options.read) if options.read else measure(cases, options.side, options.strategies)
    print(*(means(cells) if options.drawn else report(cells)), sep="\n")
    if options.json:
        options.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1) + "\n", encoding="utf-8")
    return 0


def read_cells(path: Path) -> list[Cell]:
    """What `--json` wrote."""
    cells: list[Cell] = msgspec.json.decode(path.read_bytes(), type=list[Cell])
    return cells


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pays.py", description="Strategies on a real Slurm and in the simulator.")
    parser.add_argument("--quick", action="store_true", help="one workflow instead of all")
    parser.add_argument("--simulate", action="store_true", help="only what the simulator says; no Slurm is started")
    parser.add_argument("--drawn", type=int, metavar="N", help="N cases drawn by chance, and means over them")
    parser.add_argument("--strategies", type=_names, default=STRATEGIES, metavar="A,B", help="which to run")
    parser.add_argument("--side", type=int, default=6, metavar="N", help="cells at a time (default: 6)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number there")
    parser.add_argument("--read", type=Path, metavar="FILE", help="tables of an earlier run from what --json wrote")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(find_strategy(name).name for name in text.split(","))


# The load and the workflows


SHAPES = (
    # name, recipe, tasks, seconds of work, second of the log
    ("level", "level", 48, 2000, 9162),
    ("montage", "montage", 60, 1500, 18690),
    ("fork-join", "fork-join", 60, 1500, 9162),
    ("eman", "eman", 40, 1500, 8429),
    ("short montage", "montage", 60, 900, 3246),
)


def all_cases() -> list[Case]:
    """Shapes, each at a moment of one log.

    Cases were chosen in the simulator alone, by two rules: no run takes longer than ten minutes; and in all but the
    last one `glume` cuts, and ends before `one-job`.
    """
    log = compressed(generate_log("lublin", nodes=Settings().nodes, jobs=4000, seed=1))
    return [
        Case(name, sleeping(recipe, tasks, work_s), opening(log, at_s)) for name, recipe, tasks, work_s, at_s in SHAPES
    ]


DRAWN = ("montage", "fork-join", "level", "eman", "sipht")


def drawn_cases(count: int) -> list[Case]:
    """Shapes in turn, each at a moment of the log that chance picked: nobody looked at what comes of them."""
    log = compressed(generate_log("lublin", nodes=Settings().nodes, jobs=4000, seed=1))
    rng = np.random.default_rng(1)
    moments = rng.integers(0, int(log.submit_s[-1]) - HORIZON_S, size=count)
    works = rng.integers(900, 1801, size=count)
    rows = zip(DRAWN * count, moments.tolist(), works.tolist(), strict=False)
    return [
        Case(f"{recipe} at {at_s}", sleeping(recipe, 50, work_s), opening(log, at_s)) for recipe, at_s, work_s in rows
    ]


def compressed(log: Log) -> Log:
    """The log in fewer seconds. Limits are whole minutes, as Slurm has them, and no job runs into its own."""
    requested = 60 * np.ceil(log.requested_s / COMPRESSION / 60).astype(np.int64)
    run = np.minimum(np.round(log.run_s / COMPRESSION).astype(np.int64), requested)
    kept = run >= SHORTEST_S
    submit = log.submit_s[kept] - log.submit_s[kept][0]
    span = (log.nodes * run)[kept].sum() / (log.machine_nodes * LOAD)
    submit = (submit * (span / submit[-1])).astype(np.int64)
    return Log(
        log.name, log.machine_nodes, log.job[kept], submit, log.nodes[kept], requested[kept], run[kept], log.user[kept]
    )


def opening(log: Log, at_s: int) -> Log:
    """The load from that second on: first what ran then, for what was left of it, then what waited, then what came."""
    played = simulate(log, policy=POLICIES[0])
    start, end = played.start_s, played.end_s
    running = np.flatnonzero((start < at_s) & (end > at_s))
    running = running[np.lexsort((running, start[running]))]
    waiting = np.flatnonzero((log.submit_s < at_s) & (start >= at_s))
    coming = np.flatnonzero((log.submit_s >= at_s) & (log.submit_s < at_s + HORIZON_S))
    rows = np.concatenate([running, waiting, coming])
    gone = np.where(start[rows] < at_s, at_s - start[rows], 0)
    return Log(
        f"{log.name} from {at_s} s",
        log.machine_nodes,
        log.job[rows],
        np.maximum(0, log.submit_s[rows] - at_s),
        log.nodes[rows],
        60 * np.ceil((log.requested_s[rows] - gone) / 60).astype(np.int64),
        log.run_s[rows] - gone,
        log.user[rows],
    )


def sleeping(recipe: str, tasks: int, work_s: float) -> Workflow:
    """The recipe's shape with tasks of whole seconds that do nothing but sleep; `work_s` in sum, about."""
    drawn = generate_workflow(recipe, tasks=tasks, work_s=work_s, seed=1)
    parents = [drawn.parents.of(n).tolist() for n in range(len(drawn))]
    made = [
        replace(
            task,
            parents=tuple(drawn.ids[p] for p in parents[n]),
            inputs=(),
            outputs=(),
            runtime_s=float(max(2, round(task.runtime_s))),
            command=("sleep", str(max(2, round(task.runtime_s)))),
        )
        for n, task in enumerate(drawn)
    ]
    return Workflow.from_tasks(recipe, made)


def write_native(workflow: Workflow, path: Path) -> None:
    """The workflow as a file that `windrow run` takes."""
    lines = [f"name: {workflow.name}", "tasks:"]
    for task in workflow:
        entry = {"id": task.id, "command": list(task.command), "runtime": task.runtime_s}
        lines.append(f"  - {json.dumps(entry | ({'after': list(task.parents)} if task.parents else {}))}")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


# The simulated world


def simulated(case: Case, strategy: str, policy: str, begun_s: int) -> Trial:
    """The run as the simulator sees it, from that second of the load on."""
    cluster = Cluster(case.load, policy=policy)
    cluster.advance(begun_s)
    settings = Settings()
    limits = Limits(settings.nodes, NodeShape(settings.cpus, settings.memory_mib << 20))
    return run_trial(cluster, case.workflow, find_strategy(strategy), terms=terms_for(case.order, limits))


# The real world


def measure(cases: Sequence[Case], side: int, strategies: Sequence[str] = STRATEGIES) -> list[Cell]:
    """All cells, some at a time: sleeps weigh nothing."""
    for case in cases:
        simulated(case, strategies[-1], POLICIES[0], LEAD_S)  # compiles what must be compiled before any clock runs
    wanted = [(case, strategy) for strategy in strategies for case in cases]  # the slowest strategies first
    with ThreadPoolExecutor(side) as pool:  # a cluster lives and dies with the thread that started it
        cells = list(pool.map(lambda pair: run_cell(*pair), wanted))
    print(f"{os.cpu_count()} cores, load average now {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return [cell for case in cases for cell in cells if cell.case == case.name]


def run_cell(case: Case, strategy: str) -> Cell:
    """One strategy on a fresh Slurm under the case's load, and in the simulator."""
    with closing(_started()) as cluster, tempfile.TemporaryDirectory(prefix="windrow-pays-") as folder:
        write_native(case.workflow, Path(folder, "workflow.yaml"))
        replaying = Replaying(cluster, case.load)
        replaying.start()
        try:
            time.sleep(LEAD_S)
            told = execute(case, strategy, cluster, Path(folder))
        finally:
            replaying.stop()
        cell = _cell(case, strategy, told, replaying)
        told.close()
    print(f"{case.name} by {strategy}: {cell.real_s:.0f} s ({cell.simulated_s[POLICIES[0]]} s)", file=sys.stderr)
    return cell


def _started() -> SlurmCluster:
    """A cluster that runs. Many start at once here, and two may have found the same port free."""
    for _ in range(3):
        try:
            return SlurmCluster(Settings()).start()
        except ClusterError as error:
            print(f"started anew: {str(error).splitlines()[0]}", file=sys.stderr)
    return SlurmCluster(Settings()).start()


class Replaying:
    """Submits the load to a Slurm, each job at its second, from a thread of its own."""

    def __init__(self, cluster: SlurmCluster, load: Log) -> None:
        self.cluster, self.load = cluster, load
        self.zero_s, self.late_s = 0.0, 0.0
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

    def _submit_all(self) -> None:
        for job in self.load:
            due_s = self.zero_s + job.submit_s
            if self._over.wait(max(0.0, due_s - time.time())):
                return
            options = (f"--nodes={job.nodes}", f"--time={job.requested_s // 60}", "--exclusive", "--mem=0")
            self.cluster.run("sbatch", *options, "--output=/dev/null", "--chdir=/", f"--wrap=exec sleep {job.run_s}")
            self.late_s = max(self.late_s, time.time() - due_s if job.submit_s else 0.0)


def execute(case: Case, strategy: str, cluster: SlurmCluster, folder: Path) -> Told:
    """Run the workflow as a user would; its story. ChildProcessError where it does not end well."""
    private = {"XDG_DATA_HOME": str(folder / "share"), "XDG_STATE_HOME": str(folder / "state")}
    order = case.order
    command = [sys.executable, "-P", "-m", "windrow.cli.main", "run", "workflow.yaml", "--on", order.on, "--json"]
    command += ["--strategy", strategy, "--cap", str(order.cap), "--margin", str(order.margin)]
    environment = {**cluster.env, **private, "WINDROW_HISTORY": str(folder / "history.sqlite")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HORIZON_S, check=False
    )
    if done.returncode:
        raise ChildProcessError(f"{case.name} by {strategy} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return Told(find_run(None, folder / ".windrow" / "runs"))


def _cell(case: Case, strategy: str, told: Told, replaying: Replaying) -> Cell:
    jobs = [job for job in told.story.jobs.values() if job.submitted_s is not None]
    begun = min(job.submitted_s for job in jobs if job.submitted_s is not None)
    ended = max(a.ended_s for task in told.story.tasks for a in task.attempts if a.ended_s is not None)
    offset = begun - replaying.zero_s
    trials = {policy: simulated(case, strategy, policy, round(offset)) for policy in POLICIES}
    held = [(job.plan.nodes, job.ended_s - job.started_s) for job in jobs if job.started_s and job.ended_s]
    return Cell(
        case=case.name,
        strategy=strategy,
        real_s=ended - begun,
        simulated_s={policy: trial.makespan_s for policy, trial in trials.items()},
        jobs=len(jobs),
        simulated_jobs=len(trials[POLICIES[0]].jobs),
        node_s=sum(nodes * time_s for nodes, time_s in held),
        simulated_node_s=trials[POLICIES[0]].used_node_s,
        begun_s=offset,
        late_s=replaying.late_s,
        predictions=_predictions(told),
    )


def _predictions(told: Told) -> list[PastPrediction]:
    """What forecasters said of each job when it was submitted, and when it started."""
    return [
        PastPrediction(p.source, told.tag(p.job), p.at_s, p.start_s, told.story.jobs[p.job].started_s)
        for p in told.predictions()
    ]


# What is told


def report(cells: Sequence[Cell]) -> list[str]:
    """Every table, with what follows from it."""
    return [
        f"{len(cells)} runs. No job of the load was submitted more than {max(c.late_s for c in cells):.1f} s late.",
        "",
        *_makespans(cells),
        "",
        *(line for policy in POLICIES for line in _agreement(cells, policy)),
        "",
        *_starts(cells),
    ]


def means(cells: Sequence[Cell]) -> list[str]:
    """Mean makespans, node-seconds and jobs by strategy, and each run."""
    rows = []
    for strategy in dict.fromkeys(cell.strategy for cell in cells):
        mine = [cell for cell in cells if cell.strategy == strategy]
        sums = [(c.real_s, c.simulated_s[POLICIES[0]], c.node_s, c.jobs) for c in mine]
        rows.append((strategy, str(len(mine)), *(f"{mean:.0f}" for mean in np.mean(sums, axis=0))))
    single = [(c.case, c.strategy, f"{c.real_s:.0f}", f"{c.simulated_s[POLICIES[0]]}", str(c.jobs)) for c in cells]
    head = ("strategy", "runs", "mean makespan, s", "simulated, s", "node-s", "jobs")
    return [*markdown(head, rows), "", *markdown(("case", "strategy", "real, s", "simulated, s", "jobs"), single)]


def _makespans(cells: Sequence[Cell]) -> list[str]:
    rows = [
        (
            *(c.case, c.strategy, f"{c.real_s:.0f}", *(str(c.simulated_s[p]) for p in POLICIES)),
            *(str(c.jobs), str(c.simulated_jobs), f"{c.node_s:.0f}", str(c.simulated_node_s)),
        )
        for c in cells
    ]
    simulated_by = tuple(f"simulated, {policy}" for policy in POLICIES)
    columns = ("case", "strategy", "real s", *simulated_by, "jobs", "simulated", "node-s", "simulated")
    return markdown(columns, rows)


def _agreement(cells: Sequence[Cell], policy: str) -> list[str]:
    """In how far the two worlds put the strategies in the same order."""
    pairs = list(_pairs(cells, policy))
    clear = [pair for pair in pairs if pair.is_clear]
    claims = [p for p in clear if p.better in OVERLAPPING and p.worse in FIXED]
    ranks = [f"{name} {_rank_correlation(cells, name, policy):.2f}" for name in dict.fromkeys(c.case for c in cells)]
    return [
        f"- {policy}: rank correlation of the makespans: {', '.join(ranks)}",
        f"  - pairs of strategies in the same order: {_share(pairs)}; of those simulated {CLEAR:.0%} apart or more: "
        f"{_share(clear)}",
        f"  - of these, zhang or glume before individual or level-by-level: {_share(claims)}",
    ]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two strategies on one case, the better one by the simulator first."""

    better: str
    worse: str
    is_clear: bool
    is_kept: bool


def _pairs(cells: Sequence[Cell], policy: str) -> Iterable[Pair]:
    for name in dict.fromkeys(cell.case for cell in cells):
        for pair in combinations([cell for cell in cells if cell.case == name], 2):
            better, worse = sorted(pair, key=lambda cell: cell.simulated_s[policy])
            short, long = better.simulated_s[policy], worse.simulated_s[policy]
            if short < long:
                is_clear = short <= (1 - CLEAR) * long
                yield Pair(better.strategy, worse.strategy, is_clear, better.real_s < worse.real_s)


def _share(pairs: Sequence[Pair]) -> str:
    return f"{sum(pair.is_kept for pair in pairs)} of {len(pairs)}"


def _rank_correlation(cells: Sequence[Cell], case: str, policy: str) -> float:
    """Spearman's, ties by their mean rank."""
    own = [cell for cell in cells if cell.case == case]
    real, model = (_ranks(values) for values in ([c.real_s for c in own], [c.simulated_s[policy] for c in own]))
    return float(np.corrcoef(real, model)[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(v < x for v in values) + (sum(v == x for v in values) - 1) / 2 for x in values]


def _starts(cells: Sequence[Cell]) -> list[str]:
    """How good each source of forecasts was on the jobs of which both `twin` and `system` had a word."""
    kinds = {"all": STRATEGIES, "individual": ("individual",), "the others": STRATEGIES[1:]}
    rows = []
    for kind, strategies in kinds.items():
        said = [p for cell in cells if cell.strategy in strategies for p in cell.predictions]
        both = {p.tag for p in said if p.source == "twin"} & {p.tag for p in said if p.source == "system"}
        found = accuracies([p for p in said if p.tag in both], last=len(said) + 1, slack_s=SLACK_S)
        rows += [_accuracy_row(kind, one) for one in found]
    columns = ("jobs of", "source", "starts", "median error s", "bias s", f"no later than said, within {SLACK_S:.0f} s")
    return markdown(columns, rows)


def _accuracy_row(of: str, one: Accuracy) -> tuple[str, ...]:
    if one.median_error_s is None or one.bias_s is None or one.coverage is None:
        return of, one.source, "0", "-", "-", "-"
    figures = (f"{one.median_error_s:.1f}", f"{one.bias_s:+.1f}", f"{one.coverage:.0%}")
    return of, one.source, str(one.starts), *figures


def _forecast_lines(cases: Sequence[Case]) -> list[str]:
    rows = []
    for case in cases:
        for strategy in STRATEGIES:
            trials = [simulated(case, strategy, policy, LEAD_S) for policy in POLICIES]
            rows.append((case.name, strategy, *(str(t.makespan_s) for t in trials), str(len(trials[0].jobs))))
    return markdown(("case", "strategy", *POLICIES, "jobs"), rows)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, numbers to the right."""
    lines = [
        tuple(columns),
        tuple("---" if name in ("case", "strategy", "jobs of", "source") else "---:" for name in columns),
    ]
    return [f"| {' | '.join(line)} |" for line in [*lines, *rows]]


if __name__ == "__main__":
    sys.exit(main())
