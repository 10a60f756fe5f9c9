"""What stands under the names of outputs before a run begins: what it takes beside a
limit on space, and what will be kept under another name since no run is known to have made it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from windrow.model import Runnable
from windrow.model.size import format_size
from windrow.model.wording import count, listed


def notes_on_standing(runnable: Runnable, runs: Path, space: int | None) -> Iterator[str]:
    """Sentences for the user; `runs`: where runs of this folder are kept."""
    sizes = dict(_files(runnable))
    if not sizes:
        return
    from windrow.agent.made import Made  # noqa: PLC0415  (at most runs nothing stands there)

    made = Made.now(runs)
    kept = [path for path in sizes if not made.may_replace(path)]
    if kept:
        yield (
            f"{count(len(kept), 'file')} in the place of outputs will be kept as NAME.before-1, "
            f"since no run in {runs} is known to have made them as they are: "
            f"{listed([os.path.relpath(path) for path in kept])}"
        )
    if space is not None and (size := sum(sizes.values())):
        yield (
            f"earlier outputs take {format_size(size)} beside the limit of {format_size(space)}: "
            "those that runs made go one by one, as they are made again; delete them first if "
            "there is no room for both"
        )


def _files(runnable: Runnable) -> Iterator[tuple[str, int]]:
    """What will be replaced, and its size. Folders may hold more than outputs."""
    files = runnable.workflow.files
    for task, step in enumerate(runnable.steps):
        for f in runnable.workflow.outputs.of(task).tolist():
            path = os.path.normpath(Path(step.workdir, files[f].id))
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield path, status.st_size
