"""Does it pay on a real Slurm, and did the simulator say so? The same workflows, by each strategy,
in both worlds.

    python bench/pays.py [--quick | --drawn N [--seed N] [--lull] | --simulate] [--strategies A,B] [--side N]
                         [--json FILE] [--keep FOLDER]
    python bench/pays.py [--drawn N] --read FILE ...

A private Slurm of eight nodes is kept busy by a synthetic log, 600 times compressed: an hour takes
six seconds, a job of the log is a `sleep`. In the midst of it `windrow run` executes a workflow of
sleeps. Each cell (case x strategy) has a Slurm of its own, started afresh, and sees the same load
from the same second on.

Rule 1: the simulator gets what the real run had: the same load, terms and requests, and the first
submission at the same second. Nothing is fitted; what Slurm, agents and the manager take in between
is left out of the simulation.
Rule 2: a load opens with what ran and waited in the log at that moment, so that no cell waits for a
queue to fill.
Rule 3: drawn cases have a past: the private Slurm keeps accounts, and the jobs that had ended in
the log are in them, with the starts that the simulator gave them. This past is not simulated, so
nor is `foresight`, which reads it.
Rule 4: a run that does not end well is no row; the exit status is 1.

Needs Slurm's programs (tests/slurm/install). Tables go to stdout in Markdown, progress to stderr.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

sys.path[0] = str(
    Path(__file__).resolve().parents[1]
)  # so that `bench` is this folder and not this file

import msgspec  # noqa: E402
from tests.slurm.cluster import ClusterError, SlurmCluster, missing  # noqa: E402
from tests.slurm.settings import Settings  # noqa: E402

from bench.pays_cases import HORIZON_S, LEAD_S, Case, all_cases, drawn_cases, write_native  # noqa: E402
from bench.pays_tables import POLICIES, STRATEGIES, Cell, markdown, means, report  # noqa: E402
from windrow.app.execute import terms_for  # noqa: E402
from windrow.app.runs import RunView, find_run  # noqa: E402
from windrow.app.sites import site_of  # noqa: E402
from windrow.app.strategies import find_strategy  # noqa: E402
from windrow.forecast.ledger import PastPrediction  # noqa: E402
from windrow.manager.dispatch import job_tag  # noqa: E402
from windrow.model import Log, NodeShape, Runnable, Step  # noqa: E402
from windrow.queues.port import Limits, PastJob  # noqa: E402
from windrow.sim.cluster import Cluster  # noqa: E402
from windrow.story.figures import node_time  # noqa: E402
from windrow.trials.trial import Trial, run_trial  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every cell, print the tables."""
    options = _parser().parse_args(arguments)
    if (reason := missing(bool(options.drawn))) and not (options.simulate or options.read):
        print(f"pays: no private Slurm can run here: {reason}", file=sys.stderr)
        return 2
    if options.read:
        cells = [cell for path in options.read for cell in read_cells(path)]
        is_whole = True
    else:
        drawn = drawn_cases(options.drawn, options.seed, lull=options.lull) if options.drawn else []
        cases = drawn or (all_cases()[:1] if options.quick else all_cases())
        if options.simulate:
            print(*_forecast_lines(cases), sep="\n")
            return 0
        measured = Measured(options.json, options.keep)
        cells = measured.all(cases, options.side, options.strategies)
        is_whole = not measured.failed
    is_drawn = options.drawn or not all(
        cell.simulated_s for cell in cells
    )  # foresight, which nothing simulates here
    print(*(means(cells) if is_drawn else report(cells)), sep="\n")
    return 0 if is_whole else 1


def read_cells(path: Path) -> list[Cell]:
    """What `--json` wrote."""
    cells: list[Cell] = msgspec.json.decode(path.read_bytes(), type=list[Cell])
    return cells


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pays.py", description="Strategies on a real Slurm and in the simulator."
    )
    parser.add_argument("--quick", action="store_true", help="one workflow instead of all")
    parser.add_argument(
        "--simulate", action="store_true", help="only what the simulator says; no Slurm is started"
    )
    parser.add_argument(
        "--drawn", type=int, metavar="N", help="N cases drawn by chance, and means over them"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="of the chance that draws cases (default: 1)",
    )
    parser.add_argument(
        "--lull", action="store_true", help="drawn workflows come when no job of the load does"
    )
    parser.add_argument(
        "--strategies", type=_names, default=STRATEGIES, metavar="A,B", help="which to run"
    )
    parser.add_argument(
        "--side", type=int, default=6, metavar="N", help="cells at a time (default: 6)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write every number there, cell by cell"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="leave the runs there, for windrow explain"
    )
    parser.add_argument(
        "--read", type=Path, nargs="+", metavar="FILE", help="tables from what --json wrote"
    )
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(find_strategy(name).name for name in text.split(","))


# The simulated world


def simulated(case: Case, strategy: str, policy: str, begun_s: int) -> Trial:
    """The run as the simulator sees it, from that second of the load on."""
    cluster = Cluster(case.load, policy=policy)
    cluster.advance(begun_s)
    settings = Settings()
    limits = Limits(settings.nodes, NodeShape(settings.cpus, settings.memory_mib << 20))
    order = case.order
    site = site_of(order.on, limits, cap=order.cap, max_nodes=order.max_nodes)
    steps = tuple(Step(task.command, "/") for task in case.workflow)
    terms = terms_for(order, Runnable(case.workflow, steps))
    return run_trial(cluster, case.workflow, find_strategy(strategy), terms=terms, site=site)


# The real world


class Measured:
    """Runs cells, some at a time (sleeps weigh nothing), and writes down each as it comes."""

    def __init__(self, json_file: Path | None = None, keep: Path | None = None) -> None:
        self._json = json_file
        self._keep = keep
        self.cells: list[Cell] = []
        self.failed = 0
        self._starting = threading.Lock()
        self._writing = threading.Lock()

    def all(
        self, cases: Sequence[Case], side: int, strategies: Sequence[str] = STRATEGIES
    ) -> list[Cell]:
        """All cells that ended well. Those of one case run at the same time, so that all suffer
        alike from others."""
        for strategy in strategies:
            simulated(
                cases[0], strategy, POLICIES[0], LEAD_S
            )  # compiles what must be compiled before any clock runs
        wanted = [(case, strategy) for case in cases for strategy in strategies]
        with ThreadPoolExecutor(
            side
        ) as pool:  # a cluster lives and dies with the thread that started it
            list(pool.map(lambda pair: self._one(*pair), wanted))
        order = {case.name: number for number, case in enumerate(cases)}
        return sorted(
            self.cells, key=lambda cell: (order[cell.case], strategies.index(cell.strategy))
        )

    def _one(self, case: Case, strategy: str) -> None:
        try:
            cell = self._run(case, strategy)
        except (ChildProcessError, ClusterError, subprocess.TimeoutExpired) as error:
            self.failed += 1
            print(f"{case.name} by {strategy}: lost: {error}", file=sys.stderr, flush=True)
            return
        with self._writing:
            self.cells.append(cell)
            print(f"{case.name} by {strategy}: {cell.real_s:.0f} s", file=sys.stderr, flush=True)
            if self._json:
                text = json.dumps([asdict(cell) for cell in self.cells], indent=1)
                self._json.write_text(text + "\n", encoding="utf-8")

    def _run(self, case: Case, strategy: str) -> Cell:
        """One strategy on a fresh Slurm under the case's load, and in the simulator."""
        with self._starting:  # two that start at once may find the same port free
            cluster = started(Settings(accounting=bool(case.past)))
        with closing(cluster), tempfile.TemporaryDirectory(prefix="windrow-pays-") as folder:
            write_native(case.workflow, Path(folder, "workflow.yaml"))
            replaying = Replaying(cluster, case.load)
            if case.past:
                fill_accounts(cluster, case.past, time.time())
            replaying.start()
            try:
                time.sleep(case.lead_s)
                told = execute(case, strategy, cluster, Path(folder))
            finally:
                replaying.stop()
            cell = _cell(case, strategy, told, replaying)
            told.close()
            if self._keep:
                name = re.sub(r"\W+", "-", f"{case.name}-{strategy}")
                shutil.copytree(
                    Path(folder, ".windrow", "runs"), self._keep / name, dirs_exist_ok=True
                )
        return cell


def started(settings: Settings) -> SlurmCluster:
    """A cluster that runs. Other processes may start one at the same time, and find the same port
    free."""
    for _ in range(3):
        try:
            return SlurmCluster(settings).start()
        except ClusterError as error:
            print(f"started anew: {str(error).splitlines()[0]}", file=sys.stderr)
    return SlurmCluster(settings).start()


PAST_COLUMNS = (
    "account, cpus_req, job_name, id_assoc, id_job, id_qos, id_resv, id_wckey, id_user, "
    "id_group, het_job_id, "
    "het_job_offset, state_reason_prev, nodelist, nodes_alloc, `partition`, priority, state, "
    "timelimit, time_submit, "
    "time_eligible, time_start, time_end"
)
FIRST_PAST_ID = 1_000_000  # far above those that the cluster will give


def fill_accounts(cluster: SlurmCluster, past: Sequence[PastJob], zero_s: float) -> None:
    """Put jobs into the accounts of a private Slurm as if it had run them; their times count from
    `zero_s`."""
    rows = []
    for number, job in enumerate(past, FIRST_PAST_ID):
        submit, start, end = (
            int(zero_s + (t or 0.0)) for t in (job.submitted_s, job.started_s, job.ended_s)
        )
        rows.append(
            f"('science', {2 * job.nodes}, 'past', 0, {number}, 1, 0, 0, {os.getuid()}, "
            f"{os.getgid()}, 0, 4294967294, "
            f"0, 'n[1-{job.nodes}]', {job.nodes}, 'main', 1, 3, {job.requested_s // 60}, "
            f"{submit}, {submit}, {start}, "
            f"{end})"
        )
    conf = cluster.place.path("slurmdbd.conf").read_text()
    (password,) = re.findall(r"^StoragePass=(.*)$", conf, re.M)
    options = [
        "--no-defaults",
        "--host=127.0.0.1",
        f"--port={cluster.place.port('database')}",
        "--user=slurm",
    ]
    statement = f"INSERT INTO windrow_job_table ({PAST_COLUMNS}) VALUES {', '.join(rows)}"
    done = subprocess.run(
        ["mariadb", *options, f"--password={password}", "slurm_acct"],
        input=statement, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ClusterError(f"the past cannot be written: {done.stderr.strip()}")


class Replaying:
    """Submits the load to a Slurm, each job at its second, from a thread of its own."""

    def __init__(self, cluster: SlurmCluster, load: Log) -> None:
        self.cluster = cluster
        self.load = load
        self.zero_s = 0.0
        self.late_s = 0.0
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
            options = (
                f"--nodes={job.nodes}",
                f"--time={job.requested_s // 60}",
                "--exclusive",
                "--mem=0",
            )
            self.cluster.run(
                "sbatch",
                *options,
                "--output=/dev/null",
                "--chdir=/",
                f"--wrap=exec sleep {job.run_s}",
            )
            self.late_s = max(self.late_s, time.time() - due_s if job.submit_s else 0.0)


def execute(case: Case, strategy: str, cluster: SlurmCluster, folder: Path) -> RunView:
    """Run the workflow as a user would; its story. ChildProcessError where it does not end well."""
    private = {"XDG_DATA_HOME": str(folder / "share"), "XDG_STATE_HOME": str(folder / "state")}
    order = case.order
    command = [
        sys.executable,
        "-P",
        "-m",
        "windrow.cli.main",
        "run",
        "workflow.yaml",
        "--on",
        order.on,
        "--json",
    ]
    command += ["--strategy", strategy, "--cap", str(order.cap), "--margin", str(order.margin)]
    environment = {**cluster.env, **private, "WINDROW_HISTORY": str(folder / "history.sqlite")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HORIZON_S,
        check=False,
    )
    if done.returncode:
        raise ChildProcessError(
            f"{case.name} by {strategy} ended with {done.returncode}: {done.stderr}{done.stdout}"
        )
    return RunView(find_run(None, folder / ".windrow" / "runs"))


def _cell(case: Case, strategy: str, told: RunView, replaying: Replaying) -> Cell:
    jobs = [job for job in told.story.jobs.values() if job.submitted_s is not None]
    begun = min(job.submitted_s for job in jobs if job.submitted_s is not None)
    ended = max(
        a.ended_s for task in told.story.tasks for a in task.attempts if a.ended_s is not None
    )
    offset = begun - replaying.zero_s
    is_simulated = strategy != "foresight" or not case.past
    trials = {
        policy: simulated(case, strategy, policy, round(offset))
        for policy in POLICIES
        if is_simulated
    }
    plain = trials.get(POLICIES[0])
    held = [
        (job.plan.nodes, job.ended_s - job.started_s)
        for job in jobs
        if job.started_s and job.ended_s
    ]
    return Cell(
        case=case.name,
        strategy=strategy,
        real_s=ended - begun,
        simulated_s={policy: trial.makespan_s for policy, trial in trials.items()},
        jobs=len(jobs),
        simulated_jobs=len(plain.story.jobs) if plain else 0,
        node_s=sum(nodes * time_s for nodes, time_s in held),
        simulated_node_s=round(node_time(plain.recorded).allocated_s) if plain else 0,
        begun_s=offset,
        late_s=replaying.late_s,
        predictions=_predictions(told),
    )


def _predictions(told: RunView) -> list[PastPrediction]:
    """What forecasters said of each job when it was submitted, and when it started."""
    return [
        PastPrediction(
            p.source,
            job_tag(told.facts.uid, p.job),
            p.at_s,
            p.start_s,
            told.story.jobs[p.job].started_s,
        )
        for p in told.predictions()
    ]


def _forecast_lines(cases: Sequence[Case]) -> list[str]:
    rows = []
    for case in cases:
        for strategy in STRATEGIES:
            trials = [simulated(case, strategy, policy, LEAD_S) for policy in POLICIES]
            rows.append(
                (
                    case.name,
                    strategy,
                    *(str(t.makespan_s) for t in trials),
                    str(len(trials[0].story.jobs)),
                )
            )
    return markdown(("case", "strategy", *POLICIES, "jobs"), rows)


if __name__ == "__main__":
    sys.exit(main())
