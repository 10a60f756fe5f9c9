"""Tasks of a run by what a person calls them."""

import difflib
import fnmatch
from collections.abc import Sequence

from windrow.errors import UserError
from windrow.model import Workflow

_SHOWN = 80
_COMPARED = 10_000


def task_number(workflow: Workflow, task_id: str, run: str) -> int:
    """The number of the task with this id. UserError, with what was likely meant, if there is
    none."""
    if task_id not in workflow.ids:
        raise no_task(workflow, task_id, run)
    return workflow.number(task_id)


def chosen_tasks(workflow: Workflow, names: Sequence[str], run: str) -> list[int]:
    """The tasks of these names and patterns (`*` stands for any characters), by number. UserError
    if there is no such task."""
    found: set[int] = set()
    for name in names:
        if name in workflow.ids:
            found.add(workflow.number(name))
            continue
        matching = [
            workflow.number(task)
            for task in workflow.ids
            if "*" in name and fnmatch.fnmatchcase(task, name)
        ]
        if not matching:
            raise no_task(workflow, name, run)
        found.update(matching)
    return sorted(found)


def tasks_or_kinds(workflow: Workflow, names: Sequence[str], run: str) -> list[int]:
    """The same; a name that no task has may be that of a kind."""
    found: set[int] = set()
    for name in names:
        kind = [number for number, one in enumerate(workflow.kinds) if one == name]
        is_task = name in workflow.ids or "*" in name
        found.update(chosen_tasks(workflow, [name], run) if is_task or not kind else kind)
    return sorted(found)


def no_task(workflow: Workflow, name: str, run: str) -> UserError:
    """The error for a task that a run does not have, with what was likely meant."""
    near = difflib.get_close_matches(name[:200], workflow.ids[:_COMPARED], n=1)
    if near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = f"windrow tasks --run {run} lists them"
    return UserError(f"{run} has no task {name[:_SHOWN]!r}; {hint}")
