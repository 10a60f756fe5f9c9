"""Part 5: a workflow of a million tasks and two million edges: read from WfFormat, levelled and
reported.

The graph has 1,000 tasks a level, and every task below the first level has two parents, so its
shape is known beforehand and is checked. Each size is read in a process of its own, so that its
peak of memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from bench.progress import Progress
from bench.tables import seconds, table
from bench.whole_logs import verdict

WIDTH = 1_000
TARGET_BYTES = 2_000_000_000
SIZES = (101_000, 301_000, 1_001_000)  # so that edges are 200,000, 600,000 and 2,000,000


@dataclass(frozen=True, slots=True)
class Read:
    """One workflow read and reported. `right` says that its shape is as it was made."""

    tasks: int
    edges: int
    file_bytes: int
    read_s: float
    report_s: float
    peak_bytes: int
    met: bool | None
    right: bool


def run(progress: Progress, *, quick: bool) -> list[Read]:
    """Make, read and report each size."""
    found = []
    for tasks in SIZES[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "workflow.json"
            progress.say(f"making {tasks:,} tasks")
            write(path, tasks)
            progress.say(f"reading {tasks:,} tasks")
            found.append(_read(path, tasks))
    return found


def write(path: Path, tasks: int) -> None:
    """A WfFormat 1.5 file, written without Windrow."""
    with path.open("w", encoding="ascii") as text:
        text.write('{"name":"bench","schemaVersion":"1.5","workflow":{"specification":{"tasks":[\n')
        text.writelines(_joined(_specified(tasks)))
        text.write(
            '],"files":[]},"execution":{"makespanInSeconds":0,"executedAt":"1970-01-01T00:00:00Z","tasks":[\n'
        )
        text.writelines(
            _joined(f'{{"id":"t{i:07d}","runtimeInSeconds":{1 + i % 60}}}' for i in range(tasks))
        )
        text.write("]}}}\n")


def _specified(tasks: int) -> Iterator[str]:
    form = '{"name":"work","id":"t%07d","parents":[%s],"children":[%s],"inputFiles":[],"outputFiles":[]}'  # noqa: E501
    for i in range(tasks):
        parents = (i - WIDTH, _left(i) - WIDTH) if i >= WIDTH else ()
        children = (i + WIDTH, _right(i) + WIDTH) if i + WIDTH < tasks else ()
        yield form % (i, _names(parents), _names(children))


def _left(i: int) -> int:
    """The neighbour on the same level, around the corner."""
    return i - 1 if i % WIDTH else i + WIDTH - 1


def _right(i: int) -> int:
    return i + 1 if (i + 1) % WIDTH else i - WIDTH + 1


def _names(numbers: Sequence[int]) -> str:
    return ",".join(f'"t{number:07d}"' for number in numbers)


def _joined(items: Iterator[str]) -> Iterator[str]:
    yield next(items)
    for item in items:
        yield ",\n" + item


def _read(path: Path, tasks: int) -> Read:
    script = Path(__file__).with_name("workflow_reader.py")
    done = subprocess.run(
        [sys.executable, script, path], check=True, stdout=subprocess.PIPE, text=True
    )
    answer = json.loads(done.stdout)
    known = {
        "tasks": tasks,
        "edges": 2 * (tasks - WIDTH),
        "levels": tasks // WIDTH,
        "width": WIDTH,
        "tokens": WIDTH,
    }
    return Read(
        tasks=answer["tasks"],
        edges=answer["edges"],
        file_bytes=path.stat().st_size,
        read_s=answer["read_s"],
        report_s=answer["report_s"],
        peak_bytes=answer["peak_bytes"],
        met=answer["peak_bytes"] < TARGET_BYTES if tasks == SIZES[-1] else None,
        right=all(answer[name] == value for name, value in known.items()),
    )


def tables(found: Sequence[Read]) -> list[Table]:
    """One row per size."""
    columns = (
        "tasks",
        "edges",
        "file",
        "read and level",
        "report",
        "peak memory",
        "target met",
        "result",
    )
    rows = [
        (
            *(
                f"{one.tasks:,}",
                f"{one.edges:,}",
                f"{one.file_bytes / 1e6:,.0f} MB",
                seconds(one.read_s),
            ),
            *(seconds(one.report_s), f"{one.peak_bytes / 1e9:.2f} GB", verdict(one.met)),
            "as made" if one.right else "WRONG",
        )
        for one in found
    ]
    notes = [
        "Target: a million tasks and two million edges in seconds and under "
        f"{TARGET_BYTES / 1e9:g} GB."
    ]
    if len(found) > 2:
        x = np.log([one.tasks for one in found])
        y = np.log([one.read_s + one.report_s for one in found])
        notes.append(f"Exponent of time over tasks: {np.polyfit(x, y, 1)[0]:.2f}.")
    return [table("5. Workflows (WfFormat)", columns, rows, notes)]
