"""What takes longer than tests may: thousands of random cases, every shape by every strategy,
figures on test beds.

    python bench/prove.py [hour] [cases] [faults] [bugs] [failures] [copies] [storage] [matrices] [places] [trouble] [slurm]
        [releases] [shares] [interrupted] [harm] [beds] [sites] [pairs] [ways] [space] [peers] [home] [figures]

`make prove` runs all of it and writes `bench/proof.md`, one section for each part, with
the commit that it was run on; where only some parts are named, the other sections stay as they are.
Every row is a command that anyone can give alone, and `make test` runs a fixed sample of it.
"""  # noqa: E501

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder's name

from bench import campaigns, planted

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "bench" / "proof.md"
WINDROW = str(Path(sys.executable).parent / "windrow")

HEAD = """\
# Proof

Written by `make prove`, which runs for longer than tests may. Do not edit.
"""

Row = tuple[str, tuple[str, ...], dict[str, str]]

CASES: tuple[Row, ...] = (
    *(
        (
            f"bad inputs, 1,000 cases, seed {seed}",
            ("tests/hostile", "-n2"),
            {"WINDROW_FUZZ_CASES": "1000", "WINDROW_FUZZ_SEED": seed},
        )
        for seed in ("1", "2")
    ),
    (
        "clusters against the slow reference, 17,000 fresh cases",
        ("tests/unit/sim/test_against_reference.py", "-n2"),
        {"WINDROW_FUZZ": "20"},
    ),
    (
        "every other property, ten times the cases, fresh ones",
        (
            "tests/unit",
            "tests/lab",
            "tests/survival",
            "-m",
            "hypothesis",
            "--ignore=tests/unit/sim/test_against_reference.py",
            "-n2",
        ),
        {"WINDROW_FUZZ": "10"},
    ),
    (
        "traces of all seven applications against their published tables, and caches of all "
        "sizes, compiled",
        (
            "tests/unit/recipes/test_applications.py",
            "tests/unit/profile",
            "tests/unit/formats/test_strace.py",
            "-n2",
        ),
        {"WINDROW_FULL": "1", "WINDROW_FUZZ": "10"},
    ),
    (
        "managers killed again and again, on the queue of this machine",
        ("tests/survival/test_survival_local.py", "-k", "again_and_again", "-n6"),
        {"WINDROW_FUZZ": "10"},
    ),
    (
        "managers killed at every place while tasks join a run",
        ("tests/survival/test_added_tasks.py", "-n2"),
        {"WINDROW_FUZZ": "1"},
    ),
)
"""Tests with far more cases than by default, and the environment that asks for them."""

_SITES = ("tests/slurm/test_slurm_sites.py", "tests/slurm/test_losses_on_slurm.py")
_SIDE_BY_SIDE = ("-n6", "--dist=loadgroup", "--no-loadscope-reorder")
MATRICES: tuple[Row, ...] = (
    (
        "every shape of workflow by every strategy on this machine, and each strategy on 500 tasks",
        ("tests/real/test_works_local.py", *_SIDE_BY_SIDE),
        {"WINDROW_FULL": "1"},
    ),
    (
        "the end of 20 real runs, as said after a fifth of each, beside when it came; numbers of "
        "100 interrupted runs, the same in all places",
        ("tests/real/test_real_end_times.py", "tests/unit/report/test_one_number.py", "-n2"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "the same on a real Slurm, without and with accounting",
        ("tests/slurm/test_works.py", *_SIDE_BY_SIDE),
        {"WINDROW_FULL": "1", "WINDROW_TEST_CLUSTERS": "5"},
    ),
    (
        "needs of tasks (GPUs, memory, disk, named resources) on a Slurm with four kinds of "
        "nodes, and on this machine",
        (
            "tests/slurm/test_needs_on_slurm.py",
            "tests/real/test_needs_local.py",
            "-n2",
            "--dist=loadfile",
        ),
        {"WINDROW_FULL": "1"},
    ),
    (
        "parts of nodes on a Slurm whose users share them: placement, environment and bill of an "
        "ordinary user's tasks, under every limit and in every kind of partition",
        ("tests/slurm/test_parts_on_slurm.py", "-n1", "--dist=loadgroup"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "unmodified Snakefiles, also in the shapes of five published workflows, on this machine "
        "and on a Slurm; drivers killed at 21 moments",
        ("plugins/snakemake/tests", "tests/slurm/test_snakemake_on_slurm.py", "-n2"),
        {"WINDROW_FULL": "1"},
    ),
)
"""Tests in full of which `make test` runs a part; so are the next two."""

PLACES: tuple[Row, ...] = (
    (
        "every shape of workflow on a Slurm behind a real sshd, as another user; cut "
        "connections, full disks",
        ("tests/slurm/test_far.py", "tests/slurm/test_ssh.py", "-n1"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "every shape of workflow on two Slurms at once, the second behind sshd with files of its "
        "own; a controller dead"
        " for the whole run, a site gone for good halfway, a disk that stays full",
        ("tests/slurm/test_two_slurms.py", "-n1"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "partitions of one Slurm as sites: the free one is chosen, and a waiting job moves to "
        "one that becomes free",
        ("tests/slurm/test_partitions.py", "-n2", "--dist=loadfile"),
        {"WINDROW_FULL": "1"},
    ),
)

TROUBLE: tuple[Row, ...] = (
    (
        "managers, agents, nodes and controllers killed, disks full, clocks stepped: by every "
        "strategy",
        ("tests/survival", "tests/slurm/test_survival.py", *_SIDE_BY_SIDE),
        {"WINDROW_FULL": "1"},
    ),
    (
        "pools that are killed and shared by many shells; published figures on the largest log",
        ("tests/real/test_pool.py", "tests/oracle/test_published_figures.py", "-n4"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "reliability learned from lives: coverage of its intervals in known worlds, 300 each; 60 "
        "runs on spot nodes",
        ("tests/unit/forecast/test_lives.py", "tests/survival/test_choosing.py", "-n2"),
        {"WINDROW_FULL": "1"},
    ),
)

AS_RUN: tuple[Row, ...] = (
    (
        "nodes drained, down, cut off; partitions down; limits; held and preempted jobs; "
        "checkpoints at preemption, on one node and three, and a task that crosses five jobs",
        (*_SITES, *_SIDE_BY_SIDE),
        {"WINDROW_FULL": "1"},
    ),
)


@dataclass(frozen=True, slots=True)
class Took:
    """What a command cost: wall time and processor time, of it and of all that it waited for."""

    wall_s: float
    cpu_s: float


def timed(argv: Sequence[str], folder: Path, env: dict[str, str]) -> Took:
    """Run the command to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    subprocess.run(
        [WINDROW, *argv], cwd=folder, env={**os.environ, **env}, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(time.monotonic() - began, cpu_s)


def first_hour(folder: Path) -> Iterator[tuple[str, Took, Took]]:
    """The README's commands with an empty cache, then with a full one."""
    readme = (ROOT / "README.md").read_text()
    workflow = re.search(r"^```yaml\n(# squares\.yaml\n.*?)^```", readme, re.M | re.S)
    assert workflow is not None
    (folder / "squares.yaml").write_text(workflow[1])
    commands = (
        ("run", "squares.yaml", "--again"),
        ("status",),
        ("explain", "sum"),
        ("report",),
        ("--help",),
        (
            "generate",
            "montage",
            "--tasks",
            "250",
            "--work",
            "500h",
            "--seed",
            "1",
            "-o",
            "montage.json",
        ),
        ("compare", "montage.json"),
    )
    for argv in commands:
        home = {f"XDG_{name}_HOME": str(folder / name) for name in ("STATE", "DATA", "CONFIG")}
        env = {**home, "XDG_CACHE_HOME": str(folder / "CACHE")}
        yield " ".join(("windrow", *argv)), timed(argv, folder, env), timed(argv, folder, env)


def proved(what: str, argv: Sequence[str], env: dict[str, str]) -> tuple[str, str]:
    """A row with the last line of a run of these tests and the command that gives it; and what
    failed.

    Tests of real processes wait for a limited time, and a busy machine may take longer: those that
    failed run once more, alone, and the row says both.
    """
    given = " ".join([*(f"{name}={value}" for name, value in env.items()), "pytest", *argv])
    code, said = _tested(argv, env)
    outcome = _outcome(said)
    if failed := re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.M):
        code, said = _tested([*failed, "-n0"], env)
        outcome += f"; those that failed, alone: {_outcome(said)}"
    return f"| {what} | {outcome} | `{given}` |", what if code else ""


def _tested(argv: Sequence[str], env: dict[str, str]) -> tuple[int, str]:
    command = [str(Path(sys.executable).parent / "pytest"), *argv]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, check=False, capture_output=True, text=True
    )
    print(done.stdout[-2000:], flush=True)
    return done.returncode, done.stdout


def _outcome(said: str) -> str:
    """The line of pytest that counts; after it may come what was skipped for."""
    counts = [line.strip("= ") for line in said.splitlines() if re.search(r" in [0-9.]+s", line)]
    return counts[-1] if counts else "nothing"


STORAGE: tuple[Row, ...] = (
    (
        "workloads that move data: the kernel against its law, 3,000 fresh cases",
        ("tests/lab/storage/test_flows.py", "-n2"),
        {"WINDROW_FUZZ": "50"},
    ),
    (
        "storage allocations: inclusions and models",
        ("tests/lab/storage/test_allocations.py", "-n2"),
        {"WINDROW_FUZZ": "50"},
    ),
    (
        "caches block by block, every claim of the thesis has its measure",
        ("tests/lab/reproductions/test_bent.py",),
        {},
    ),
)

INTERRUPTED: tuple[Row, ...] = (
    (
        "200 runs without a manager for most of their time: held node time within nodes x span",
        ("tests/unit/trials/test_held.py", "-n2"),
        {"WINDROW_FULL": "1"},
    ),
)

HARM: tuple[Row, ...] = (
    (
        "over 764 ways to be wrong: no traceback, no hang, nothing of the user's changed, no exit "
        "code 0 for a failure",
        ("tests/hostile", "-n2"),
        {"WINDROW_FUZZ_CASES": "1000", "WINDROW_FUZZ_SEED": "3"},
    ),
    (
        "files of the user beside checkpoints and outputs; damaged journals and deleted folders "
        "of live runs; a second user in a group folder",
        (
            "tests/unit/test_deletion.py",
            "tests/unit/app/test_checkpoint_files.py",
            "tests/unit/app/test_damaged_journal.py",
            "tests/unit/app/test_live_runs.py",
            "tests/unit/cli/test_colleague.py",
            "tests/unit/formats/test_native_places.py",
            "-n2",
        ),
        {},
    ),
    (
        "wrong blocks from home and from other nodes; full disks, at home and on nodes",
        (
            "tests/unit/agent/test_peers.py",
            "tests/unit/cli/test_local_runs.py",
            "tests/survival/test_disks_and_clocks.py",
            "-n2",
        ),
        {},
    ),
    (
        "plain srun, Open MPI and MPICH side by side in one job of a real Slurm, each on its own "
        "nodes",
        ("tests/slurm/test_mpi.py", "-n0"),
        {},
    ),
    (
        "a manager that sees the files of a real Slurm 40 s late",
        ("tests/slurm/test_late_files_on_slurm.py", "-n0"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "what a real Slurm limits, hides, closes and kills; one node of a job lost",
        (
            "tests/slurm/test_limits_on_slurm.py",
            "tests/slurm/test_guards_on_slurm.py",
            "tests/slurm/test_lost_node_on_slurm.py",
            "-n0",
        ),
        {},
    ),
    (
        "all that the README and the how-to pages show, word for word, also on a real Slurm and "
        "behind a real sshd",
        ("tests/docs/test_examples.py", "tests/slurm/test_readme.py", "-n2", "--dist=loadfile"),
        {},
    ),
)

Section = tuple[list[str], list[str]]


def hour() -> Section:
    """The commands of a new user."""
    lines = ["With an empty folder for compiled code, then once more.", ""]
    lines += [
        "| command | cold, wall | cold, CPU | warm, wall | warm, CPU |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, cold, warm in first_hour(Path(folder)):
            took = " | ".join(
                f"{value:.1f} s" for value in (cold.wall_s, cold.cpu_s, warm.wall_s, warm.cpu_s)
            )
            lines.append(f"| `{name}` | {took} |")
            print(lines[-1], flush=True)
    return [
        *lines,
        "",
        "CPU time: the command and the processes it waits for, without the agents of jobs.",
    ], []


def tests(rows: Sequence[Row]) -> Section:
    """A table of tests."""
    found = [proved(*row) for row in rows]
    lines = ["| what | result | command |", "| --- | --- | --- |", *(row for row, _ in found)]
    return lines, [failed for _, failed in found if failed]


NEW = {
    "machine of the manager fails": "worse,few",
    "all machines fail": "worse,few",
    "outputs cannot come to their place": "disks,worse,few",
    "files cannot move between places": "far,worse,few",
    "queue refuses every job": "worse,few",
    "queue answers no question": "worse,few",
    "disk stays full": "worse,few",
    "disks of nodes stay full": "disks,worse,few",
    "a limit holds jobs": "worse,few",
    "job is hidden": "worse,few",
    "queue tells of other states": "worse,few",
    "what agents write is seen late": "worse,few",
    "clock of a node is wrong": "worse,few",
    "task leaves an output out": "worse,few",
    "output shows up late": "worse,few",
    "blocks rot": "worse,few",
    "file system stumbles": "worse,few",
    "a file is gone when it is to move": "far,few",
    "user cancels a task": "users,few",
    "user changes a task": "users,few",
    "user runs a task again": "users,few",
    "user holds the run open": "users,few",
}
"""Kinds of faults, each with a world that has what it needs."""
FAULTS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "faults": (
        "Faults in virtual time",
        (
            (
                "each kind of fault at each record of a run of 60 tasks",
                "--every-record --seed 4 --strategy level-by-level",
            ),
            ("10,000 runs of 60 tasks, each with up to 8 faults", "--seed 100000 --runs 10000"),
            (
                "1,000 runs in which two jobs run the same tasks",
                "--seed 200000 --runs 1000 --copies 2",
            ),
        ),
    ),
    "faults-copies": (
        "Faults while tasks have copies",
        (
            (
                "500 runs in which tasks have up to three replicas, and copies for a reliability "
                "of 0.95 and when late",
                "--seed 400000 --runs 500 --replicas 3 --reliability 0.95 --with late-copies",
            ),
            (
                "each kind of fault at each record of such a run",
                "--every-record --seed 5 --lanes 3 --levels 3 --replicas 2 --reliability 0.95 "
                "--with late-copies",
            ),
        ),
    ),
    "faults-checkpoints": (
        "Faults while tasks write checkpoints",
        (
            (
                "1,000 runs of tasks with checkpoints, in jobs shorter than some of them",
                "--seed 600000 --runs 1000 --with checkpoints",
            ),
            (
                "each kind of fault at each record of such a run",
                "--every-record --seed 8 --lanes 3 --levels 3 --with checkpoints",
            ),
        ),
    ),
    "faults-local": (
        "Faults while jobs keep files on disks of their nodes",
        (
            (
                "10,000 such runs of 12 tasks",
                "--seed 900000 --runs 10000 --lanes 3 --levels 4 --with disks",
            ),
            (
                "each kind of fault at each record of such a run",
                "--every-record --seed 11 --lanes 3 --levels 3 --with disks",
            ),
        ),
    ),
    "faults-temporary": (
        "Faults while files are deleted",
        (
            (
                "1,000 runs that keep only some of their files",
                "--seed 700000 --runs 1000 --with temporary",
            ),
            (
                "each kind of fault at each record of such a run",
                "--every-record --seed 9 --lanes 3 --levels 3 --with temporary",
            ),
        ),
    ),
    "faults-space": (
        "Faults within a limit on space",
        (
            ("1,000 runs within a limit on space", "--seed 800000 --runs 1000 --with space"),
            (
                "each kind of fault at each record of such a run",
                "--every-record --seed 11 --lanes 3 --levels 3 --with space",
            ),
        ),
    ),
    "faults-places": (
        "Faults while files are at two places",
        (
            (
                "1,000 runs at two places of files, of up to 8 faults each",
                "--seed 300000 --runs 1000 --with far",
            ),
            (
                "each kind of fault at each record of such a run",
                "--every-record --seed 7 --lanes 3 --levels 4 --with far",
            ),
        ),
    ),
    "faults-mixed": (
        "Faults in worlds of all kinds",
        (
            (
                "10,000 runs, each in a world that it draws",
                "--seed 1000000 --runs 10000 --with mixed",
            ),
        ),
    ),
    "faults-new": (
        "Faults of machines that forget, and faults that last",
        tuple(
            (
                f"2,000 runs of few tasks: {kind}",
                f"--seed {3_000_000 + 10_000 * n} --runs 2000 --lanes 2 --levels 3 "
                f'--with {has} --surely "{kind}"',
            )
            for n, (kind, has) in enumerate(NEW.items())
        ),
    ),
    "faults-weibull": (
        "Nodes that keep failing",
        tuple(
            (
                f"5,000 runs of 24 tasks on nodes that keep failing, Weibull of shape {shape}",
                f"--seed {seed} --runs 5000 --lanes 4 --levels 6 --faults 2 --shape {shape}",
            )
            for shape, seed in (("0.7", 400000), ("12", 500000))
        ),
    ),
}
"""Runs in virtual time, by part: its title, and what is run with which options. Each takes less
than an hour."""


def faults(rows: Sequence[tuple[str, str]]) -> Section:
    """Runs in virtual time with faults drawn from seeds."""
    lines = ["The real manager and agents, in virtual time (`windrow.trials.virtual`)."]
    lines += ["Faults met are those that had something to strike.", ""]
    lines += ["| what | runs | managers | violations | run-hours | per second of CPU | command |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    wrong = []
    met = []
    for what, words in rows:
        found = campaigns.campaign(words)
        counts = (
            f"{found['runs']:,} | {found['managers']:,} | {len(found['violations'])} | "
            f"{found['hours']:,.0f}"
        )
        pace = found["hours"] / found["cpu_s"]
        lines.append(
            f"| {what} | {counts} | {pace:.1f} | `python -m windrow.trials.virtual {words}` |"
        )
        met += ["", f"Met in {what}: {_listed(found['met'])}."]
        met += ["", f"Looked at in {what}: {_listed(found['exercised'])}."]
        met += ["", f"**Never met** in {what}: {', '.join(found['never'])}."] * bool(found["never"])
        wrong += [what] if found["violations"] or found["never"] else []
        print("\n".join([lines[-1], *found["violations"]]), flush=True)
    return [*lines, *met], wrong


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def bugs() -> Section:
    """Bugs put in by hand."""
    lines = [
        f"Each is put into a copy of the source, and up to {planted.MOST_RUNS} worlds of all kinds",
        f"are played with it: `python -m windrow.trials.virtual {planted.WORLDS}`. The bugs are in",
        "`tests/planted`.",
        "",
    ]
    rows, wrong = planted.table()
    return [*lines, *rows], wrong


def said_by(script: str, what: str, *words: str) -> Section:
    """What a script of this folder prints."""
    command = [sys.executable, str(ROOT / "bench" / script), *words]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    given = " ".join([f"python bench/{script}", *words])
    return [f"`{given}`: {what}.", "", *done.stdout.strip().splitlines()], [what] * bool(
        done.returncode
    )


PEERS: tuple[Row, ...] = (
    (
        "volumes: mounts, extracts, and agents killed beside volumes with and without replicas",
        ("tests/unit/agent/test_mounts.py", "tests/unit/app/test_volumes.py"),
        {"WINDROW_FULL": "1"},
    ),
    (
        "12,000 requests to the server of a node: unsigned, replayed, expired, of another run, "
        "escaping, malformed",
        ("tests/unit/agent/test_peer_fuzz.py",),
        {"WINDROW_FULL": "1"},
    ),
    (
        "nodes that share data, seen by another user: what it can read, which ports are open, "
        "where the key is",
        ("tests/unit/agent/test_no_entry.py",),
        {"WINDROW_FULL": "1"},
    ),
    (
        "blocks dealt to members, and what each keeps, against their laws",
        ("tests/unit/storage/test_blocks.py", "-n2"),
        {"WINDROW_FUZZ": "20"},
    ),
)


def peers() -> Section:
    """The cooperative cache: who gets in, and what it costs beside copies and sbcast."""
    lines, wrong = tests(PEERS)
    for more in ((), ("1000", "8", "100")):
        server = "from a slow home" if more else "without a slow file server"
        said, failed = said_by(
            "shared_inputs.py", f"one input of many tasks on a private Slurm, {server}", *more
        )
        lines = [*lines, "", *said]
        wrong = [*wrong, *failed]
    return lines, wrong


_ANYWHERE = ("tests/slurm/test_slurm_contract.py", "tests/slurm/test_works.py")
_SHARED = ("tests/slurm/test_shared_bed.py", "tests/slurm/test_parts_on_slurm.py")
RELEASES = (("24.11", "trixie", (*_ANYWHERE, *_SHARED)), ("26.05", "sid", _ANYWHERE))
"""Slurms of other releases than the installed one, Debian's suites that have them, and what runs
there: 26.05 knows no user `nobody`, who is the ordinary one on shared nodes."""


def releases() -> Section:
    """The queue contract, and real workflows, on Slurms of other releases."""
    rows: list[Row] = []
    wrong: list[str] = []
    for number, suite, files in RELEASES:
        folder = str(ROOT / "bench" / ".peers" / suite)
        command = [sys.executable, "-m", "tests.slurm.releases", suite, folder]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if made.returncode:
            print(made.stderr[-2000:], file=sys.stderr)
            wrong.append(f"Slurm {number} could not be made")
            continue
        env = {"WINDROW_FULL": "1", "WINDROW_TEST_SLURM_RELEASE": folder}
        what = f"Slurm {number} of Debian {suite}: the queue contract, workflows by every strategy"
        rows.append(
            (what + ", parts of nodes" * (_SHARED[0] in files), (*files, *_SIDE_BY_SIDE), env)
        )
    lines, failed = tests(rows)
    return lines, [*wrong, *failed]


def shares() -> Section:
    """Other ways of submitting, on real Slurms and in the simulated cluster; and how that differs
    from a real one."""
    scripts = (
        ("shared_simulated.py", "other ways of submitting, in a simulated cluster", ()),
        ("shared_load.py", "a load on a real Slurm, and in the simulated cluster", ()),
        ("shared_nodes.py", "other ways of submitting, on private Slurms under one load", ()),
    )
    lines, wrong = list[str](), list[str]()
    for script, what, words in scripts:
        said, failed = said_by(script, what, *words)
        lines += ["", *said]
        wrong += failed
    return lines, wrong


PARTS: dict[str, tuple[str, Callable[[], Section]]] = {
    "hour": ("The first hour", hour),
    "cases": ("Many more cases", lambda: tests(CASES)),
    **{name: (title, partial(faults, rows)) for name, (title, rows) in FAULTS.items()},
    "bugs": ("Bugs put in by hand", bugs),
    "failures": (
        "What failures of nodes cost on KTH",
        lambda: said_by(
            "failing.py", "strategies on the same failures, and foresight that expects them or not"
        ),
    ),
    "copies": (
        "Copies of tasks where nodes fail",
        lambda: said_by(
            "copies.py",
            "the same failures without and with copies, and 200 tasks on a failing Slurm",
        ),
    ),
    "storage": ("Files that take space", lambda: tests(STORAGE)),
    "matrices": ("Full matrices", lambda: tests(MATRICES)),
    "places": ("Far clusters, two Slurms, partitions", lambda: tests(PLACES)),
    "trouble": ("Real processes killed, disks full, clocks stepped", lambda: tests(TROUBLE)),
    "interrupted": ("Node time of interrupted runs", lambda: tests(INTERRUPTED)),
    "harm": ("No harm", lambda: tests(HARM)),
    "slurm": ("Slurm as sites run it", lambda: tests(AS_RUN)),
    "releases": ("Slurms of other releases", releases),
    "shares": ("Shared nodes, beside other ways", shares),
    "beds": (
        "Strategies on a test bed",
        lambda: said_by(
            "pays.py", "the same workflows on a busy private Slurm and in the simulator"
        ),
    ),
    "sites": (
        "Two unequal sites",
        lambda: said_by(
            "sites.py",
            "workflows on two unequal sites under the load of real logs, in virtual time",
        ),
    ),
    "pairs": (
        "Two unequal Slurms",
        lambda: said_by(
            "two_slurms.py",
            "workflows on two busy private Slurms, one behind sshd with files of its own",
        ),
    ),
    "ways": (
        "Four ways over two Slurms",
        lambda: said_by(
            "four_ways.py",
            "chapter 5 of Zhang's thesis on two private Slurms, without load and with it",
        ),
    ),
    "space": (
        "Files within a limit",
        lambda: said_by(
            "space.py",
            "runs in a file system of exactly their limit, killed at random; what a limit costs",
        ),
    ),
    "peers": ("Data that all nodes share", peers),
    "home": (
        "Data behind a slow home",
        lambda: said_by(
            "slow_home.py", "64 pipelines on a private Slurm: today's way, local data, and volumes"
        ),
    ),
    "figures": (
        "Data on a test bed",
        lambda: said_by(
            "shared_data.py", "hosts in network namespaces, with links of a given speed"
        ),
    ),
}


_NOT_PAGE = (".", f":!{PAGE.relative_to(ROOT)}")
"""What a proof is of: the page itself says nothing of what was run."""


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def sections() -> dict[str, str]:
    """What the page has now, by heading."""
    pieces = re.split(r"^## (.*)\n", PAGE.read_text() if PAGE.exists() else "", flags=re.M)
    return {heading: text.strip() for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def main(names: Sequence[str]) -> int:
    """Run these parts, or all, and write the page."""
    if unknown := set(names) - set(PARTS):
        print(
            f"prove: unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}",
            file=sys.stderr,
        )
        return 2
    commit = _git("describe", "--always") + ", with changes" * bool(
        _git("diff", "HEAD", "--name-only", "--", *_NOT_PAGE)
    )
    head = (
        f"Commit `{commit}`, Python {'.'.join(map(str, sys.version_info[:3]))}, "
        f"{os.cpu_count()} cores."
    )
    failed: list[str] = []
    for name in names or PARTS:
        heading, prove = PARTS[name]
        lines, wrong = prove()
        failed += wrong
        page = {**sections(), heading: "\n".join([head, "", *lines])}
        known = [(title, page[title]) for title, _ in PARTS.values() if title in page]
        PAGE.write_text(HEAD + "".join(f"\n## {title}\n\n{text}\n" for title, text in known))
    print(f"{PAGE}: written; failed: {', '.join(failed) or 'nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
