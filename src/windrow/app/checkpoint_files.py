"""Checkpoint files that are there before a run starts: those of earlier runs are deleted, and
others are refused.

A pattern says where a task will write, not whose the files are that already exist there. Which of
them earlier runs made is in their folders (`agent.kept_files`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from windrow.agent.folder import RunFolder
from windrow.agent.kept_files import Found, KeptFiles, found, links_on_the_way, not_ours
from windrow.errors import InputError
from windrow.model import Runnable
from windrow.model.wording import listed

_NAMED = 5


def refuse_files_of_others(
    workflow: Path, runnable: Runnable, root: Path, finished: Collection[int] = ()
) -> None:
    """InputError, at the workflow's file, if patterns mean what no run recorded as its own, or
    cross links."""
    for task, here in _there(runnable, finished):
        step = runnable.steps[task]
        name = runnable.workflow.ids[task]
        assert step.checkpoint is not None
        if links := links_on_the_way(step.workdir, step.checkpoint.files):
            problem = f"the checkpoint files of {name} are behind the link {links[0]}"
            fix = "patterns follow no links: keep the files in the task's folder"
            raise InputError(workflow, problem, fix=fix)
        others = not_ours(here, _recorded(root, step.workdir))
        if others and not step.checkpoint.keep_existing:
            problem = f"the checkpoint files of {name} would be mixed with files that no run made: "
            fix = (
                "move them away, or write keep_existing: true under checkpoint, to start from "
                "them and keep them"
            )
            raise InputError(workflow, problem + listed(others, _NAMED), fix=fix)


def hand_over(runnable: Runnable, root: Path, folder: RunFolder) -> None:
    """Let a new run know what earlier ones left, which its first attempts delete."""
    for task, here in _there(runnable, ()):
        workdir = runnable.steps[task].workdir
        known = _recorded(root, workdir)
        if ours := {path: stamp for path, stamp in here.items() if known.get(path) == stamp}:
            KeptFiles(folder.kept / str(task), workdir, ours).write()


def _there(runnable: Runnable, finished: Collection[int]) -> Iterator[tuple[int, Found]]:
    """Tasks with checkpoints whose patterns mean something already, or lead through links."""
    for task, step in enumerate(runnable.steps):
        if step.checkpoint is not None and task not in finished:
            here = found(step.workdir, step.checkpoint.files)
            if here or any("/" in pattern for pattern in step.checkpoint.files):
                yield task, here


def _recorded(root: Path, workdir: str) -> Found:
    """What runs kept here recorded of this folder, the latest word on each path."""
    records: Iterable[Path] = sorted(
        root.glob("*/kept/*"), key=lambda path: path.stat().st_mtime_ns
    )
    known: Found = {}
    for record in (KeptFiles.read(path, "") for path in records):
        known |= record.ours if record.workdir == workdir else {}
    return known
