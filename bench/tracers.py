"""What tracing costs: programs plain, under `strace -c`, and under `windrow profile`; and how fast
a trace is read.

    python bench/tracers.py [--quick]

Fairness. The programs are loops that do one kind of call alone, which is the worst case of a
tracer; rounds are interleaved, and the shortest time of each counts. With bytes, reading what
strace wrote is part of it. `strace -c` only counts calls, and writes nothing of them. A trace is
read by one process, whose processor time is told.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder's name

from bench.tables import console, seconds, table
from windrow.formats.strace import Reading
from windrow.model.trace import Stage, Trace
from windrow.profile.measures import Measures
from windrow.profile.roles import infer
from windrow.profile.summary import summary
from windrow.profile.tracers import Tracing, listener_fault, strace_options

_HEAD = "import os; f = os.open('data', os.O_RDWR | os.O_CREAT); os.write(f, b'x' * 4096)\n"
PROGRAMS = {
    "40,000 reads of 100 bytes": _HEAD + "for _ in range(40000): os.pread(f, 100, 0)",
    "5,000 opens": _HEAD + "for _ in range(5000): os.close(os.open('data', os.O_RDONLY))",
    "computing alone": _HEAD + "n = 0\nfor i in range(6_000_000): n += i",
}


def _plain(command: tuple[str, ...], folder: str) -> None:
    subprocess.run(command, cwd=folder, check=True)


def _counted(command: tuple[str, ...], folder: str) -> None:
    subprocess.run(["strace", "-f", "-c", "-o", "/dev/null", *command], cwd=folder, check=True)


def _traced(detail: str) -> Callable[[tuple[str, ...], str], None]:
    def way(command: tuple[str, ...], folder: str) -> None:
        Tracing(detail).run(Stage("p", command=command), folder)

    return way


def ways() -> dict[str, Callable[[tuple[str, ...], str], None]]:
    """Those that can be used here."""
    found: dict[str, Callable[[tuple[str, ...], str], None]] = {"plain": _plain}
    if shutil.which("strace") and strace_options():
        found |= {"strace -c": _counted, "profile, bytes": _traced("bytes")}
    if not listener_fault():
        found["profile, files"] = _traced("files")
    return found


def overhead(rounds: int) -> None:
    """One table: each program in each way."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for what, code in PROGRAMS.items():
            took = dict.fromkeys(ways(), float("inf"))
            for _ in range(rounds):
                for name, way in ways().items():
                    began = time.perf_counter()
                    way((sys.executable, "-I", "-S", "-c", code), folder)
                    took[name] = min(took[name], time.perf_counter() - began)
            rows.append(
                [what, *(f"{seconds(t)} ({t / took['plain']:.1f} x)" for t in took.values())]
            )
    console().print(table("What tracing costs", ["program", *ways()], rows))


def analysis(events: int) -> None:
    """Time to read and to analyse a trace of as many calls."""
    lines = [
        f'1 1700000000.0 openat(AT_FDCWD</w>, "f{i}", O_RDWR|O_CREAT, 0644) = {i}</w/f{i}>\n'
        for i in range(3, 53)
    ]
    for i in range(events):
        fd = 3 + i * 7 % 50
        kinds = [
            f"lseek({fd}</w/f{fd}>, {i}, SEEK_SET) = {i}",
            f'read({fd}</w/f{fd}>, ""..., 4096) = 4096',
        ]
        kinds += [
            f'write({fd}</w/f{fd}>, ""..., 4096) = 4096',
            f'pread64({fd}</w/f{fd}>, ""..., 99, {i}) = 99',
        ]
        lines.append(f"1 {1700000000 + i / 1e5:.6f} {kinds[i % 4]}\n")
    reading = Reading()
    began = time.process_time()
    reading.stage(lines, "/w")
    read = time.process_time()
    measures = Measures(Trace.of(reading.records, [Stage("p", real_s=10.0)], reading.files))
    summary(measures, infer(measures, "/w"))
    done = time.process_time()
    rows = [[f"{events:,}", seconds(read - began), seconds(done - read), seconds(done - began)]]
    console().print(
        table("A trace", ["events", "read", "analysed, all tables and curves", "together"], rows)
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="tracers.py", description="Times what tracing costs.")
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the events")
    quick = parser.parse_args().quick
    overhead(1 if quick else 5)
    analysis(100_000)  # compiles
    analysis(100_000 if quick else 1_000_000)


if __name__ == "__main__":
    main()
