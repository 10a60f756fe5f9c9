"""Cells of a bench that takes hours: what came of one is kept in a file, and a cell that has one does
not run again; an interrupted bench continues where it was.

Before a cell the machine must be quiet: a load under `QUIET`, waited for this many minutes.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tests.slurm.cluster import ClusterError, missing

from bench.progress import Progress

QUIET = 0.5
_ROOT = Path(__file__).resolve().parents[1]


class Named(Protocol):
    """Anything that is measured once."""

    @property
    def name(self) -> str:
        """As on the command line, and of its file."""


C = TypeVar("C", bound=Named)
R = TypeVar("R")


class Cells(Generic[C, R]):
    """Runs cells, and keeps what comes of them.

    `measure` gets a cell and the load of the machine; `made` is the type of what it returns, a
    dataclass of plain values. `expected_s`: how long a cell should take.
    """

    def __init__(
        self,
        keep: Path,
        quiet_for_min: float,
        made: Callable[..., R],
        measure: Callable[[C, float, Progress], R],
        expected_s: Callable[[C], float],
    ) -> None:
        self.keep = keep
        self.quiet_for_s = 60 * quiet_for_min
        self.made = made
        self.measure = measure
        self.expected_s = expected_s
        keep.mkdir(parents=True, exist_ok=True)

    def file(self, cell: C) -> Path:
        """Where the result of a cell is kept."""
        return self.keep / f"{cell.name}.json"

    def result(self, cell: C) -> R | None:
        """What is kept of it."""
        if not self.file(cell).exists():
            return None
        return self.made(**json.loads(self.file(cell).read_text()))

    def all(self, cells: Sequence[C]) -> list[C]:
        """Run those that are missing; the ones that failed."""
        missing_ones = [cell for cell in cells if self.result(cell) is None]
        progress = Progress({cell.name: self.expected_s(cell) for cell in missing_ones})
        lost = []
        for cell in missing_ones:
            progress.part(cell.name)
            try:
                found = self.measure(cell, self._quiet(progress), progress)
            except (ClusterError, ChildProcessError, subprocess.SubprocessError) as error:
                lost.append(cell)
                print(f"{cell.name}: lost: {error}", file=sys.stderr, flush=True)
                continue
            values: dict[str, Any] = asdict(found)  # type: ignore[call-overload]
            part = self.file(cell).with_suffix(".part")
            part.write_text(json.dumps(values, indent=1))
            part.rename(self.file(cell))
            progress.say(f"{values['makespan_s']:.0f} s")
        progress.finish()
        return lost

    def _quiet(self, progress: Progress) -> float:
        """Wait until the machine has nothing else to do, or patience ends; its load then."""
        end = time.monotonic() + self.quiet_for_s
        while (loadavg := os.getloadavg()[0]) >= QUIET and time.monotonic() < end:
            progress.say(f"waits for a quiet machine; its load is {loadavg:.1f}")
            time.sleep(min(10.0, max(0.1, end - time.monotonic())))
        return loadavg


def options(about: str, keep: Path) -> argparse.Namespace:
    """What the command line of such a bench says. `keep`: where results are, if not elsewhere."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--cells", type=lambda text: text.split(","), default=["*"])
    parser.add_argument("--keep", type=Path, default=keep, metavar="FOLDER")
    parser.add_argument("--quiet-for", type=float, default=30.0, metavar="MIN")
    parser.add_argument("--list", action="store_true", help="cells, and which have run")
    parser.add_argument("--table", action="store_true", help="of what has run; nothing runs")
    return parser.parse_args()


def answer(
    name: str,
    given: argparse.Namespace,
    bench: Cells[C, R],
    cells: Sequence[C],
    table: Callable[[Mapping[C, R]], Iterable[str]],
) -> int:
    """Run the cells that are missing, and print the table; the exit code."""
    if not cells:
        print(f"{name}: no such cell; --list names them", file=sys.stderr)
        return 2
    if given.list:
        for cell in cells:
            print(f"{cell.name}  {'done' if bench.result(cell) else '-'}")
        return 0
    lost: list[C] = []
    if not given.table:
        reason = missing(accounting=True) or ("needs root" if os.getuid() != 0 else "")
        if reason:
            print(f"{name}: {reason}", file=sys.stderr)
            return 2
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        lost = bench.all(cells)
    found = {cell: one for cell in cells if (one := bench.result(cell))}
    print(*table(found), sep="\n")
    return 1 if lost else 0


def commit() -> str:
    """Of what was measured."""
    argv = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(
        argv, cwd=_ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
