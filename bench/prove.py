"""What takes longer than tests may: many more bad inputs and random cases, and the first hour of a new user measured.

`make prove` runs it and writes `docs/reference/proof.md`. Every part is a command that anyone can give alone.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "proof.md"
WINDROW = str(Path(sys.executable).parent / "windrow")

HEAD = """\
# Proof

Written by `make prove`, which runs for longer than tests may. Do not edit.

Commit `{commit}`, Python {python}, {cores} cores.
"""

Part = tuple[str, tuple[str, ...], dict[str, str]]

_SITES = ("tests/slurm/test_slurm_sites.py", "tests/slurm/test_losses_on_slurm.py")
MATRIX: tuple[Part, ...] = (
    *(
        (
            f"bad inputs, 1,000 cases, seed {seed}",
            ("tests/hostile", "-n0"),
            {"WINDROW_FUZZ_CASES": "1000", "WINDROW_FUZZ_SEED": seed},
        )
        for seed in ("1", "2")
    ),
    (
        "clusters against the slow reference, five times the cases, fresh ones",
        ("tests/unit/sim/test_against_reference.py", "-n2"),
        {"WINDROW_FUZZ": "5"},
    ),
    (
        "Slurm as sites run it: nodes drained, down, cut off; partitions down; limits; held and preempted jobs",
        (*_SITES, "-n3", "--dist=loadgroup"),
        {},
    ),
)
"""Tests with far more cases than by default, and the environment that asks for them."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a command cost: wall time and processor time, of it and of all that it waited for."""

    wall_s: float
    cpu_s: float


def timed(argv: Sequence[str], folder: Path, env: dict[str, str]) -> Took:
    """Run the command to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([WINDROW, *argv], cwd=folder, env={**os.environ, **env}, check=True, capture_output=True)
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
        ("generate", "montage", "--tasks", "250", "--work", "500h", "--seed", "1", "-o", "montage.json"),
        ("compare", "montage.json"),
    )
    for argv in commands:
        home = {f"XDG_{name}_HOME": str(folder / name) for name in ("STATE", "DATA", "CONFIG")}
        env = {**home, "XDG_CACHE_HOME": str(folder / "CACHE")}
        yield " ".join(("windrow", *argv)), timed(argv, folder, env), timed(argv, folder, env)


def proved(what: str, argv: Sequence[str], env: dict[str, str]) -> tuple[str, str]:
    """The last line of a run of these tests, and the command that gives it."""
    command = [str(Path(sys.executable).parent / "pytest"), *argv]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=False, capture_output=True, text=True)
    print(done.stdout[-2000:], flush=True)
    given = " ".join([*(f"{name}={value}" for name, value in env.items()), "pytest", *argv])
    return (
        f"| {what} | {done.stdout.strip().splitlines()[-1].strip('= ')} | `{given}` |",
        what if done.returncode else "",
    )


def main() -> int:
    """Run all of it and write the page."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    version = ".".join(map(str, sys.version_info[:3]))
    lines = [HEAD.format(commit=commit.stdout.strip(), python=version, cores=os.cpu_count())]
    lines += ["## The first hour", "", "With an empty folder for compiled code, then once more.", ""]
    lines += ["| command | cold, wall | cold, CPU | warm, wall | warm, CPU |", "| --- | ---: | ---: | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as folder:
        for name, cold, warm in first_hour(Path(folder)):
            took = " | ".join(f"{value:.1f} s" for value in (cold.wall_s, cold.cpu_s, warm.wall_s, warm.cpu_s))
            lines.append(f"| `{name}` | {took} |")
            print(lines[-1], flush=True)
    lines += ["", "CPU is that of the command and what it waits for; the agent of a job is not among it.", ""]
    lines += ["## Many more cases", "", "| what | came out | command |", "| --- | --- | --- |"]
    rows = [proved(*part) for part in MATRIX]
    PAGE.write_text("\n".join([*lines, *(row for row, _ in rows), ""]))
    failed = [what for _, what in rows if what]
    print(f"{PAGE}: written; failed: {', '.join(failed) or 'nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
