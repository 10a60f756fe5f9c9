"""Do copies of tasks pay where nodes fail? The same workflow without and with them on the same
failures, seed by seed.

    python bench/copies.py [--seeds 20] [--only virtual|slurm|losses] [--clusters 6]

*virtual*: the shell that ships, in virtual time, by several strategies. *slurm*: real runs on
private Slurms whose nodes are killed, found dead and brought back by a schedule from the seed
(`tests.slurm.failing`). A row says mean makespan and node time without and with copies, and the p
of a paired t-test. *losses*: a workflow of 200 tasks on a Slurm where something fails every 20 s on
average: nodes are killed and back, one node kills whatever it is given, jobs are preempted; every
file must have what it should in the end. Exit code 1 where copies do not pay, or a file is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from threading import local
from typing import Any

sys.path[0] = str(
    Path(__file__).resolve().parents[1]
)  # so that `tests` and `bench` are folders of the project

from tests.slurm.cluster import SlurmCluster, missing  # noqa: E402
from tests.slurm.failing import Failing, chokes, right  # noqa: E402
from tests.slurm.settings import Settings  # noqa: E402

from windrow.app.runs import RunView, find_run  # noqa: E402
from windrow.formats import read_runnable  # noqa: E402
from windrow.manager.terms import CopyRules  # noqa: E402
from windrow.model.failures import Failures  # noqa: E402
from windrow.model.hazard import Hazard  # noqa: E402
from windrow.story.figures import RecordedRun, node_time  # noqa: E402
from windrow.story.states import AttemptState  # noqa: E402
from windrow.story.story import RunStory  # noqa: E402
from windrow.trials.virtual.disk import scratch  # noqa: E402
from windrow.trials.virtual.shell import VirtualRun  # noqa: E402
from windrow.trials.virtual.world import BEGIN_S, World, empty_queue  # noqa: E402
from windrow_lab.reproductions.paired import paired_t_test  # noqa: E402

WINDROW = str(Path(sys.executable).parent / "windrow")
RELIABILITY = 0.9
MOST_TIMES = 1.6
"""The most node time that copies may take, as a multiple of that without them."""


@dataclass(frozen=True)
class Outcome:
    """One run."""

    makespan_s: float
    node_s: float
    copies_s: float
    lost_jobs: int


def virtual(seed: int, strategy: str, mean_s: float, reliability: float) -> Outcome:
    """Four stages of seven tasks of a minute, each with one of two minutes that needs them all, on
    eight nodes."""
    with scratch() as folder:
        (folder / "workflow.yaml").write_text(chokes(4, 7, 60, 120))
        runnable = read_runnable(folder / "workflow.yaml")
        failures = Failures(mean_s, repair_s=30.0).draw(seed, 8, BEGIN_S, BEGIN_S + 100_000)
        times = runnable.workflow.runtime_s.tolist()
        world = World(empty_queue(8, failures), times.__getitem__)
        run = VirtualRun(folder / "run", world, runnable, strategy, rules=CopyRules(reliability))
        run.site = replace(run.site, hazard=Hazard.of_mean(mean_s))
        run.survive(is_checked=False)
        assert run.is_complete
        story = run.story()
        told = RecordedRun("", "complete", strategy, "virtual", story, (), story.last_s)
        used = node_time(told)
        run.close()
        return Outcome(makespan_s(story), used.allocated_s, used.copies_s, told.killed_jobs)


_own = local()
STAGES = 2
WIDTH = 6
WIDE_S = 4.0
CHOKE_S = 20.0
EVERY_S = 8.0
SMALL = Settings(nodes=7, node_timeout_s=30)


def on_slurm(seed: int, reliability: float) -> Outcome:
    """Two stages of six tasks of 4 s and one of 20 s that needs them all, on seven nodes."""
    if not hasattr(_own, "cluster"):
        _own.cluster = SlurmCluster(SMALL).start()
    words = (
        "--strategy",
        "individual",
        *(("--reliability", f"{reliability}") if reliability else ()),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster = _own.cluster
        every_s = round(EVERY_S * SMALL.nodes)
        (folder / "windrow.toml").write_text(f'[queues.slurm]\npreempted_every = "{every_s}s"\n')
        (folder / "workflow.yaml").write_text(chokes(STAGES, WIDTH, WIDE_S, CHOKE_S))
        told = run_there(folder, Failing(cluster, seed, EVERY_S), *words)
        assert right(folder, STAGES, WIDTH), f"wrong files with seed {seed}"
        cluster.clear()
        print(seed, reliability, f"{told['makespan_s']:.0f} s", file=sys.stderr, flush=True)
        return Outcome(
            told["makespan_s"], told["held_node_s"], told["copies_node_s"], len(told["causes"])
        )


def run_there(folder: Path, failing: Failing, *words: str) -> dict[str, Any]:
    """Run the workflow in the folder by the command that ships; its report, its makespan, and why
    jobs were lost."""
    homes = {f"XDG_{name}_HOME": str(folder / name) for name in ("STATE", "DATA", "CONFIG")}
    given: dict[str, Any] = {
        "cwd": folder,
        "env": {**failing.cluster.env, **homes, "HOME": str(folder)},
        "text": True,
    }
    command = [WINDROW, "run", "workflow.yaml", "--on", "slurm", *words, "--json"]
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(command, stdout=said, stderr=said, **given) as process,
    ):
        failing.until(lambda: process.poll() is not None)
    assert process.returncode == 0, (folder / "said").read_text()
    done = subprocess.run([WINDROW, "report", "--json"], capture_output=True, check=True, **given)
    report: dict[str, Any] = json.loads(done.stdout)
    told = RunView(find_run(None, folder / ".windrow" / "runs"))
    report |= {
        "makespan_s": makespan_s(told.story),
        "causes": [j.cause for j in told.story.jobs.values() if j.cause],
    }
    told.close()
    return report


def makespan_s(story: RunStory) -> float:
    """Until the last task was done: attempts that were beaten may take longer to go."""
    ends = (
        a.ended_s
        for task in story.tasks
        for a in task.attempts
        if a.outcome is AttemptState.FINISHED
    )
    return max(end for end in ends if end is not None) - (story.begun_s or 0.0)


def paired(
    what: str, seeds: int, run: Callable[[int, float], Outcome], each: Callable[..., object]
) -> tuple[str, bool]:
    """A row of the table, and whether copies pay; `each` maps a function over arguments."""
    asked = [
        (seed, on)
        for seed in range(1, seeds + 1)
        for on in ((0.0, RELIABILITY), (RELIABILITY, 0.0))[seed % 2]
    ]
    found = dict(zip(asked, each(run, *zip(*asked, strict=True)), strict=True))  # type: ignore[call-overload]
    off, on = ([found[seed, x] for seed in range(1, seeds + 1)] for x in (0.0, RELIABILITY))
    test = paired_t_test([o.makespan_s for o in off], [o.makespan_s for o in on])
    spans, hours = (
        [fmean(getattr(o, name) for o in row) for row in (off, on)]
        for name in ("makespan_s", "node_s")
    )
    lost = fmean(o.lost_jobs for o in off)
    copied = fmean(o.copies_s for o in on)
    pays = test.is_significant() and test.difference > 0 and hours[1] <= MOST_TIMES * hours[0]
    better = sum(b.makespan_s < a.makespan_s for a, b in zip(off, on, strict=True))
    cells = [
        what,
        f"{lost:.1f}",
        *(f"{s:,.0f} s" for s in spans),
        f"{spans[1] / spans[0] - 1:+.0%}".replace("%", " %"),
    ]
    cells += [
        f"{better} of {seeds}",
        f"{test.p:.2g}",
        f"{hours[1] / hours[0]:.2f}",
        f"{copied:,.0f} s",
        "yes" if pays else "no",
    ]
    return f"| {' | '.join(cells)} |", pays


HEAD = """\
| where | jobs lost | without | with copies | | shorter | p | node time, times | of it beaten | pays |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"""  # noqa: E501
CASES = (
    ("individual", 400.0),
    ("individual", 1000.0),
    ("level-by-level", 400.0),
    ("one-job", 400.0),
)


def virtual_table(seeds: int, workers: int) -> bool:
    print(f"In virtual time, --reliability {RELIABILITY}, {seeds} seeds:\n\n{HEAD}", flush=True)
    pay = []
    with ProcessPoolExecutor(workers) as pool:
        for strategy, mean_s in CASES:
            run = partial(_virtual, strategy, mean_s)
            row, pays = paired(
                f"{strategy}, a node fails every {mean_s:,.0f} s", seeds, run, pool.map
            )
            pay.append(pays)
            print(row, flush=True)
    return pay[0]


def _virtual(strategy: str, mean_s: float, seed: int, reliability: float) -> Outcome:
    return virtual(seed, strategy, mean_s, reliability)


def slurm_table(seeds: int, clusters: int) -> bool:
    print(f"\nOn private Slurms, --reliability {RELIABILITY}, {seeds} seeds:\n\n{HEAD}", flush=True)
    with ThreadPoolExecutor(clusters) as pool:
        try:
            row, pays = paired(
                f"individual, a node dies every {EVERY_S:g} s", seeds, on_slurm, pool.map
            )
        finally:
            list(
                pool.map(
                    lambda _: getattr(_own, "cluster", None) and _own.cluster.close(),
                    range(4 * clusters),
                )
            )
    print(row, flush=True)
    return pays


def losses_table(seed: int = 1) -> bool:
    """200 tasks under a failure every 20 s."""
    stages = 5
    width = 39
    with (
        SlurmCluster(Settings(preempts=True, node_timeout_s=30)) as cluster,
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)
        (folder / "windrow.toml").write_text(
            '[queues.slurm]\npartition = "low"\npreempted_every = "3m"\n'
        )
        (folder / "workflow.yaml").write_text(chokes(stages, width, 2.0, 2.0))
        failing = Failing(cluster, seed, 20.0, ("killed", "preempted"), deadly="n3")
        words = (
            "--strategy",
            "level-by-level",
            "--max-nodes",
            "2",
            "--speculate",
            "--reliability",
            "0.9",
        )
        told = run_there(folder, failing, *words)
        is_right = right(folder, stages, width)
    causes = told["causes"]
    happened = ", ".join(f"{count} {kind}" for kind, count in sorted(failing.met.items()))
    lost = ", ".join(f"{causes.count(cause)} {cause}" for cause in sorted(set(causes)))
    what = (
        f"{stages * (width + 1)} tasks on Slurm, a failure every 20 s and a node that always "
        f"kills ({happened})"
    )
    print(
        f"\n{what}: done in {told['took_s']:.0f} s by {told['jobs']} jobs; lost: {lost or 'none'}."
    )
    print(f"All files are {'right' if is_right else 'NOT right'}.", flush=True)
    return is_right


def main(argv: Sequence[str]) -> int:
    """Run the tables; 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--clusters", type=int, default=6)
    parser.add_argument("--only", choices=("virtual", "slurm", "losses"))
    given = parser.parse_args(argv)
    os.environ.setdefault("PYTEST_XDIST_WORKER", "gw7")
    tables: dict[str, Callable[[], bool]] = {
        "virtual": lambda: virtual_table(given.seeds, os.cpu_count() or 1),
        "slurm": lambda: slurm_table(given.seeds, given.clusters),
        "losses": losses_table,
    }
    if reason := missing():
        print(f"no private Slurm: {reason}", file=sys.stderr)
        given.only = "virtual"
    if given.only:
        return 0 if tables[given.only]() else 1
    # Slurms mostly wait: meanwhile the processors are for virtual time.
    command = [
        "nice",
        "-n",
        "19",
        sys.executable,
        __file__,
        "--seeds",
        str(given.seeds),
        "--only",
        "virtual",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        held = [tables["slurm"](), tables["losses"]()]
        print("\n" + (other.communicate()[0] or ""))
    return 0 if all(held) and other.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
