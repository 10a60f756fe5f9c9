"""What a run reads and does not make: its names, its places, and how it was when the run began."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from windrow.model import Runnable
from windrow.records.runnable_file import as_json, write_private


def outside_inputs(runnable: Runnable, task: int, made: Container[str] = ()) -> Iterator[tuple[str, Path]]:
    """The files that the task reads and no task makes: their names in the workflow, and where they are."""
    workflow = runnable.workflow
    for f in workflow.inputs.of(task).tolist():
        name = workflow.files[f].id
        if not any(str(place) in made for place in (PurePath(name), *PurePath(name).parents)):
            yield name, Path(runnable.steps[task].workdir, name)


def write_inputs(path: Path, runnable: Runnable) -> None:
    """Write down size and time of all outside inputs, so that a change is seen however old the new file is."""
    found: dict[str, tuple[int, int]] = {}
    made = made_files(runnable)
    for task in range(len(runnable.workflow)):
        for _, place in outside_inputs(runnable, task, made):
            with suppress(OSError):
                seen = place.stat()
                found[str(place)] = (seen.st_size, seen.st_mtime_ns)
    write_private(path, as_json(found))


def made_files(runnable: Runnable) -> frozenset[str]:
    """The names of all files that tasks make."""
    workflow = runnable.workflow
    return frozenset(workflow.files[f].id for f in workflow.outputs.index.tolist())
