"""Workflows as tables: id, ids of the tasks that come first (by commas), run time in seconds,
command; tabs between them."""

import csv
from pathlib import Path

from windrow import InputError, Task, Workflow


def read(path: Path) -> Workflow:
    """The workflow in a `.tsv` file. Its commands run in the folder of the file."""
    tasks = []
    with path.open(newline="") as file:
        for line, row in enumerate(csv.reader(file, delimiter="\t"), 1):
            if len(row) != 4:
                fix = "write id, parents, seconds and command, with tabs between them"
                raise InputError(path, f"{len(row)} columns", line=line, fix=fix)
            name, parents, seconds, command = row
            first = tuple(filter(None, parents.split(",")))
            run = ("sh", "-c", command)
            tasks.append(Task(name, float(seconds), parents=first, command=run))
    return Workflow.from_tasks(path.stem, tasks)
