"""How long each task takes on each cluster, from a file: where clusters differ by more than speed.

    task,ada,rtc
    project,12.5,40
    add,30,30

The clusters may stand in any order, and all must be there; so must all tasks. Seconds.
"""

import csv
import io
from collections.abc import Iterator, Sequence

import numpy as np

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, read_text
from windrow.model import Workflow
from windrow_lab.grid.clusters import Floats, Grid


def read_run_times(path: AnyPath, workflow: Workflow, grid: Grid) -> Floats:
    """A row for each task of the workflow, a column for each cluster of the grid. InputError with
    the line if the file does not say all of it."""
    rows = csv.reader(io.StringIO(read_text(path)))
    head = [name.strip() for name in next(rows, [])]
    names = [cluster.name for cluster in grid.clusters]
    if not head or head[0] != "task" or sorted(head[1:]) != sorted(names):
        raise InputError(
            path,
            f"the first line must be task and the clusters: {','.join(['task', *names[:5]])}",
            line=1,
        )
    columns = [1 + head[1:].index(name) for name in names]
    found = {}
    for line, (task, seconds) in _rows(path, rows, len(head)):
        if task not in workflow.ids:
            raise InputError(path, f"{workflow.name} has no task {task!r}", line=line)
        if task in found:
            raise InputError(path, f"{task} is there twice", line=line, fix="keep one")
        found[task] = [seconds[column - 1] for column in columns]
    missing = [task for task in workflow.ids if task not in found]
    if missing:
        raise InputError(
            path, f"no run times of {missing[0]}", fix=f"{len(missing)} tasks lack a row"
        )
    return np.array([found[task] for task in workflow.ids], dtype=np.float64)


def _rows(
    path: AnyPath, rows: Iterator[Sequence[str]], width: int
) -> Iterator[tuple[int, tuple[str, list[float]]]]:
    """The lines below the first that are not empty: their number, task and seconds."""
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        try:
            seconds = [float(text) for text in row[1:]]
        except ValueError:
            seconds = []
        if len(row) != width or not all(0 <= s < np.inf for s in seconds) or not seconds:
            raise InputError(
                path, "a line is a task and its seconds on each cluster, 0 or more", line=line
            )
        yield line, (row[0].strip(), seconds)
