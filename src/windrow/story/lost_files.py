"""Which finished tasks must run again, because what they made is gone and a task that is left needs
it.

As with make: a file that is no longer needed is not made again, no matter who deleted it. Of a run
that is complete its results are needed: the files that no task reads. A task that runs again needs
its own inputs, so the question continues from there. What is gone is only claimed if it can be
seen: if a task's folder is not there, or cannot be read, the whole disk may be away for a while,
and nothing is said of its files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from windrow.agent.order import absolute
from windrow.agent.outputs import aside_name
from windrow.model import Runnable


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file that a finished task made, that is gone, and that is needed. Tasks by number.

    `reader`: the task that needs it; None: it is a result. Without a file: the user wants the task
    to run again.
    """

    maker: int
    file: str = ""
    reader: int | None = None


def lost_files(
    runnable: Runnable,
    left: Iterable[int],
    is_done: Callable[[int], bool],
    is_gone: Callable[[str, str], bool] | None = None,
    *,
    results: bool = False,
) -> list[LostFile]:
    """One lost file for each finished task that must run again, by its number. `left`: tasks that
    are to run anyway.

    `results`: files that no task reads are needed, too, but for those that are not to be kept.
    """
    workflow = runnable.workflow
    steps = runnable.steps
    is_gone = is_gone or is_gone_from
    found = _lost_results(runnable, is_done, is_gone) if results else {}
    stack = sorted({*left, *found}, reverse=True)
    while stack:
        reader = stack.pop()
        for f in workflow.inputs.of(reader).tolist():
            made_by = workflow.maker(f)
            name = workflow.files[f].id
            if made_by is None or made_by in found or not is_done(made_by):
                continue
            if is_gone(steps[made_by].workdir, name):
                found[made_by] = LostFile(made_by, name, reader)
                stack.append(made_by)
    return [found[maker] for maker in sorted(found)]


def _lost_results(
    runnable: Runnable, is_done: Callable[[int], bool], is_gone: Callable[[str, str], bool]
) -> dict[int, LostFile]:
    """Files that no task reads, and that are gone."""
    workflow = runnable.workflow
    read = set(workflow.inputs.index.tolist())
    found: dict[int, LostFile] = {}
    for f in dict.fromkeys(workflow.outputs.index.tolist()):
        maker = workflow.maker(f)
        if f in read or maker is None or maker in found or not is_done(maker):
            continue
        file = workflow.files[f]
        if file.keep is not False and is_gone(runnable.steps[maker].workdir, file.id):
            found[maker] = LostFile(maker, file.id)
    return found


def unfinished(runnable: Runnable, tasks: Iterable[int]) -> list[LostFile]:
    """Outputs of these finished tasks that another attempt had started to write again, and did not
    finish.

    A job that was given up may finish a task while its replacement writes the same files in place,
    and is killed then.
    """
    found = []
    for task in tasks:
        names = runnable.workflow.task(task).outputs
        paths = absolute(runnable.steps[task].workdir, names)
        marked = (
            name
            for name, path in zip(names, paths, strict=True)
            if os.path.lexists(aside_name(path))
        )
        if name := next(marked, None):
            found.append(LostFile(task, name))
    return found


def is_gone_from(workdir: str, name: str) -> bool:
    """Whether the folder can be seen and the file in it cannot."""
    path = Path(workdir, name)
    try:
        if path.exists() or not Path(workdir).is_dir():
            return False
        with contextlib.suppress(FileNotFoundError):
            next(path.parent.iterdir(), None)  # makes a network file system ask its server again
        return not path.exists()
    except (OSError, ValueError):  # unknown; the task that reads it will find out
        return False
