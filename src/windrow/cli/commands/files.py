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
    from windrow.story.story import RunStory

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
    from windrow.story.states import TaskState

    story = told.story
    workflow = story.workflow
    steps = told.runnable.steps
    maker = {f: task for task, f in workflow.outputs.pairs()}
    readers: dict[int, list[int]] = {}
    for task, f in workflow.inputs.pairs():
        readers.setdefault(f, []).append(task)
    sizes = story.sizes()
    found = roles(workflow)[0]
    places = _on_nodes(story)
    for f, file in enumerate(workflow.files):
        user = maker.get(f, (readers.get(f) or [-1])[0])
        where = _where(told, file.id, maker.get(f), user)
        size = sizes.get(f)
        if not size and where == _SHARED:
            size = size_of(*absolute(steps[user].workdir, [file.id]))
        needed = [t for t in readers.get(f, ()) if story.tasks[t].state is not TaskState.FINISHED]
        yield FileView(
            file.id,
            places.get(file.id, where),
            found[f],
            size,
            workflow.ids[maker[f]] if f in maker else "",
            tuple(workflow.ids[task] for task in needed),
        )


_SHARED = "shared"


def _on_nodes(story: RunStory) -> dict[str, str]:
    """The files that are on nodes of a job alone, and where."""
    from windrow.story.events import job_place

    local = story.local.at.items()
    return {name: job_place(job) for name, job in local if story.jobs[job].outcome is None}


def _where(told: RunView, name: str, maker: int | None, user: int) -> str:
    """Where a file is in the folders that all nodes see, if it is there."""
    from windrow.story.lost_files import is_gone_from
    from windrow.story.states import TaskState

    if maker is not None and told.story.tasks[maker].state is not TaskState.FINISHED:
        return "not made"
    if user >= 0 and not is_gone_from(told.runnable.steps[user].workdir, name):
        return _SHARED
    return "missing" if maker is None else "gone"


def _cells(row: FileView) -> tuple[str, ...]:
    from windrow.model.size import format_size

    if row.size_bytes is None:
        size = ""
    else:
        size = format_size(row.size_bytes)
    more = len(row.needed_by) - _SHOWN
    needed = ", ".join(row.needed_by[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return row.file, row.where, row.role, size, row.made_by, needed
