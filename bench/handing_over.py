"""What jobs of a Snakefile and calls of Python cost beside their own work, on this machine.

    python bench/handing_over.py [--quick]

Figures are CPU seconds of the command and of all that it has started, manager, agent and workers
included (`driver_cpu`), so a busy machine changes little. What one more job costs is the difference
of two runs of different sizes, without what both spend on starting. A hand-over lasts from when
Snakemake says that it executes jobs until the run has begun.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder's name

from bench.tables import console, table

DRIVER = Path(__file__).with_name("driver_cpu.py")
SNAKEFILE = """\
rule all:
    input: expand("o/{{i}}", i=range({jobs}))
rule one:
    output: "o/{{i}}"
    shell: "touch {{output}}"
"""
SNAKEMAKE = (sys.executable, "-m", "snakemake", "-j", "500")
WINDROW = ("--executor", "windrow")
CALLS = """\
import sys, time
import windrow

def nothing():
    pass

number = int(sys.argv[1])
with windrow.Executor(guess_s=0.1) as pool:
    began = time.process_time()
    futures = [pool.submit(nothing) for _ in range(number)]
    print(time.process_time() - began, flush=True)
    for future in futures:
        future.result()
"""
LIMITS = {"hand over": 30.0, "job": 0.30, "submit": 5.0, "call": 0.02}


def cpu_s(command: tuple[str, ...], folder: Path, *, env: Mapping[str, str]) -> tuple[float, str]:
    """What a command takes with all that it starts, and what it prints."""
    file = folder / "cpu"
    argv = [sys.executable, str(DRIVER), str(file), *command]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return float(file.read_text()), done.stdout


def used_s(pid: int) -> float:
    """The CPU seconds of a process so far, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """Measures in folders and with a history of its own."""

    def __init__(self, room: Path) -> None:
        self.room = room

    def folder(self) -> Path:
        """An empty one."""
        return Path(tempfile.mkdtemp(dir=self.room))

    @staticmethod
    def env(folder: Path) -> dict[str, str]:
        """Variables for what runs there: the queue of this machine that serves it is its own, and
        so started by it."""
        homes = ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
        own = {name: str(folder / name) for name in homes}
        return {**os.environ, **own, "WINDROW_HISTORY": str(folder / "history.sqlite")}

    def job_s(self, few: int, many: int) -> float:
        """What one more job of a Snakefile takes from first to last."""

        def of(jobs: int) -> float:
            folder = self.folder()
            (folder / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs))
            return cpu_s((*SNAKEMAKE, *WINDROW), folder, env=self.env(folder))[0]

        return (of(many) - of(few)) / (many - few)

    def hand_over_s(self, jobs: int) -> float:
        """What it takes to hand over so many, and to begin the run."""
        folder = self.folder()
        (folder / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs))
        said = folder / "said"
        with said.open("wb") as file:
            driver = subprocess.Popen(
                (*SNAKEMAKE, *WINDROW), cwd=folder, env=self.env(folder), stdout=file, stderr=file
            )

        def used_until(words: str) -> float:
            while words not in said.read_text():
                if driver.poll() is not None:
                    raise SystemExit(said.read_text())
                time.sleep(0.01)
            return used_s(driver.pid)

        try:
            before_s = used_until("\nExecute ")
            return used_until("are the run") - before_s
        finally:
            driver.kill()
            driver.wait()
            cancel = (sys.executable, "-m", "windrow.cli.main", "cancel")
            subprocess.run(
                cancel, cwd=folder, env=self.env(folder), capture_output=True, check=False
            )

    def calls(self, number: int) -> tuple[float, float]:
        """The CPU seconds of a program of so many calls, and of its submitting them."""
        folder = self.folder()
        (folder / "program.py").write_text(CALLS)
        command = (sys.executable, "program.py", str(number))
        took_s, said = cpu_s(command, folder, env=self.env(folder))
        return took_s, float(said)


def main() -> int:
    """Measure and print; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    part = 10 if parser.parse_args().quick else 1
    with tempfile.TemporaryDirectory(prefix="windrow-handing-over-") as room:
        bench = Bench(Path(room))
        handed = 10_000 // part
        called = 10_000 // part
        few_s, _ = bench.calls(called // 10)
        many_s, submit_s = bench.calls(called)
        figures = {
            f"{handed:,} jobs of a Snakefile handed over": (
                bench.hand_over_s(handed),
                LIMITS["hand over"] / part,
            ),
            "a job of a Snakefile": (bench.job_s(10, 110 // min(part, 5)), LIMITS["job"]),
            f"{called:,} calls submitted": (submit_s, LIMITS["submit"] / part),
            "a call of Python": ((many_s - few_s) / (called - called // 10), LIMITS["call"]),
        }
    rows = [
        [what, f"{took_s:.3f} s", f"{most_s:g} s", "yes" if took_s <= most_s else "no"]
        for what, (took_s, most_s) in figures.items()
    ]
    console().print(table("Handing over", ["what", "CPU", "at most", "met"], rows))
    return int(any(took_s > most_s for took_s, most_s in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
