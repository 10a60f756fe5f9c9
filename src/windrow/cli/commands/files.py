"""`windrow files`: the files of a run, and where each is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.columns import aligned
from windrow.errors import printable, unknown_name

if TYPE_CHECKING:
    from windrow.app.runs import RunView

_HEADS = ("file", "where", "role", "size", "made by", "needed by")
_SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="only this file, named as in the workflow"
    )
    options.add_of_run(parser)
    options.add_json(parser)


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as the command shows it; `size_bytes` is None if it is unknown, `made_by` empty for
    an input."""

    file: str
    where: str
    role: str
    size_bytes: int | None
    made_by: str
    needed_by: tuple[str, ...]


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    told = options.run_of(args)
    names = [file.id for file in told.story.workflow.files]
    if args.run is None and args.file is not None and args.file not in names and _is_run(args.file):
        args.run = args.file
        args.file = None
        told = options.run_of(args)
    if args.file is not None and args.file not in names:
        raise unknown_name("file", args.file, names)
    rows = [row for row in file_views(told) if args.file in (None, row.file)]
    if args.json:
        terminal.print_json({"run": told.paths.name, "files": [asdict(row) for row in rows]})
    elif rows:
        print(printable("\n".join(aligned([_cells(row) for row in rows], _HEADS, ("size",)))))
    else:
        terminal.say(f"the tasks of {told.paths.name} name no files")


def _is_run(name: str) -> bool:
    """Whether a run has this name."""
    from windrow.app.runs import all_runs, runs_root

    return any(run.name == name for run in all_runs(runs_root()))


def file_views(told: RunView) -> Iterator[FileView]:
    """Every file of a run, in the order of its workflow."""
    from windrow.agent.order import absolute
    from windrow.agent.outputs import size_of
    from windrow.storage.roles import roles
    from windrow.story.events import job_place
    from windrow.story.lost_files import is_gone_from
    from windrow.story.states import TaskState

    story = told.story
    workflow = told.story.workflow
    steps = told.runnable.steps
    maker = dict(
        zip(workflow.outputs.index.tolist(), workflow.outputs.sources().tolist(), strict=True)
    )
    readers: dict[int, list[int]] = {}
    for task, f in zip(
        workflow.inputs.sources().tolist(), workflow.inputs.index.tolist(), strict=True
    ):
        readers.setdefault(f, []).append(task)
    sizes = story.sizes()
    found = roles(workflow)[0]
    local = {name: job for name, job in story.local.at.items() if story.jobs[job].outcome is None}
    for f, file in enumerate(workflow.files):
        user = maker.get(f, (readers.get(f) or [-1])[0])
        is_made = f not in maker or story.tasks[maker[f]].state is TaskState.FINISHED
        is_here = is_made and user >= 0 and not is_gone_from(steps[user].workdir, file.id)
        if not is_made:
            where = "not made"
        elif is_here:
            where = "shared"
        elif f in maker:
            where = "gone"
        else:
            where = "missing"
        if file.id in local:
            where = job_place(local[file.id])
        size = sizes.get(f) or (
            size_of(*absolute(steps[user].workdir, [file.id])) if is_here else 0
        )
        needed = [
            task for task in readers.get(f, ()) if story.tasks[task].state is not TaskState.FINISHED
        ]
        if f in maker:
            made_by = workflow.ids[maker[f]]
        else:
            made_by = ""
        is_known = bool(size) or is_here or f in sizes
        needed_by = tuple(workflow.ids[task] for task in needed)
        yield FileView(file.id, where, found[f], size if is_known else None, made_by, needed_by)


def _cells(row: FileView) -> tuple[str, ...]:
    from windrow.model.size import format_size

    if row.size_bytes is None:
        size = ""
    else:
        size = format_size(row.size_bytes)
    more = len(row.needed_by) - _SHOWN
    needed = ", ".join(row.needed_by[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return row.file, row.where, row.role, size, row.made_by, needed
