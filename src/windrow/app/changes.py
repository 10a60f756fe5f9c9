"""What a changed workflow file means for a run: which finished tasks stay finished, which run
again, and why.

A finished task stays finished if its command, inputs, outputs, variables and working folder are
the same, if the files that it read and no task makes have not changed since, and if all that
it depends on stays finished. What a task needs (time, cores, memory, retries) may change. Tasks are
the same if they have the same id.

A run keeps the shell that it began with: if an old run used another default shell than new ones
do, the default shell of the new file is taken for the old one.

All is pure.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from windrow.model import Runnable, Step

_OUTPUTS = "its outputs changed"
_STRICT = (("-euo", "pipefail", "-c"), ("-eu", "-c"))

FindChange = Callable[[int], str | None]
"""Which outside input of a task of the old run has changed since the task read it, in words that
follow "its input"; None: none has."""


@dataclass(frozen=True)
class Changes:
    """The old run beside the workflow as it is now. Tasks by their new numbers, if nothing else
    is said."""

    runnable: Runnable
    """The new workflow, with the shell of the old run."""
    kept: dict[int, int] = field(default_factory=dict)
    """Tasks that stay finished, and their numbers in the old run."""
    again: dict[int, str] = field(default_factory=dict)
    """Tasks that had finished and run again because something of their own changed, and what."""
    dependents: dict[int, int] = field(default_factory=dict)
    """Tasks that had finished and run again because of another one, and which."""
    edited: dict[int, str] = field(default_factory=dict)
    """Tasks that had not finished and of which something changed, and what."""
    accepted: list[int] = field(default_factory=list)
    """Tasks of which something changed, and which stay finished since the user wants that."""
    added: tuple[int, ...] = ()
    removed: tuple[str, ...] = ()
    """Tasks of the old run that are gone, by id."""
    replaced: tuple[str, ...] = ()
    """Tasks of the old run that came of one that runs again, by id."""
    is_same: bool = False
    """Whether the run can simply continue: no task differs in anything."""

    @property
    def to_run(self) -> int:
        """How many tasks are to run."""
        return len(self.runnable.workflow) - len(self.kept)


def changes(
    old: Runnable,
    new: Runnable,
    is_done: Callable[[int], bool],
    find_change: FindChange,
    planned: Callable[[Runnable], Runnable] = lambda runnable: runnable,
    accepts: Callable[[str], bool] = lambda _: False,
    wanted: Mapping[str, str] = MappingProxyType({}),
) -> Changes:
    """Compare. `is_done`: whether a task of the old run, by its old number, has finished.

    `planned`: the new workflow with the needs that its tasks would have in the old run. `accepts`:
    whether the user takes what a task made as it is, whatever has changed but the files' names.
    `wanted`: tasks that are to run again though nothing of them changed, and why.
    """
    as_run = planned(new)
    names = new.workflow.ids
    old_number = {name: number for number, name in enumerate(old.workflow.ids)}
    now = set(names)
    is_same = old_number.keys() == now
    found = Changes(
        runnable=new,
        added=tuple(task for task, name in enumerate(names) if name not in old_number),
        removed=tuple(name for name in old_number if name not in now),
    )
    roots: dict[int, int] = {}
    """Of tasks that are not kept: because of which."""
    for task in new.workflow.order.tolist():
        roots[task] = task
        if (before := old_number.get(names[task])) is None:
            continue
        why = _difference(old, before, new, task)
        is_same = is_same and why is None and not _needs_differ(old, before, as_run, task)
        if is_done(before):
            own = why or _changed_input(find_change, before) or wanted.get(names[task])
            if own is not None and why != _OUTPUTS and accepts(names[task]):
                found.accepted.append(task)
                own = None
            _sort_out(found, task, before, own, roots)
        elif why is not None:
            found.edited[task] = why
    is_same = is_same and not (found.again or found.dependents or found.accepted)
    return replace(found, is_same=is_same)


def _sort_out(
    found: Changes, task: int, before: int, why: str | None, roots: dict[int, int]
) -> None:
    """A task that had finished runs again because something of its own changed, `why`, or because
    one does on which it depends; else it is kept."""
    parents = found.runnable.workflow.parents.of(task).tolist()
    upset = next((parent for parent in parents if parent not in found.kept), None)
    if why is not None:
        found.again[task] = why
    elif upset is not None:
        roots[task] = roots[upset]
        found.dependents[task] = roots[upset]
    else:
        found.kept[task] = before


def _changed_input(find_change: FindChange, before: int) -> str | None:
    if (file := find_change(before)) is None:
        return None
    return f"its input {file}"


def _difference(old: Runnable, before: int, new: Runnable, task: int) -> str | None:
    """What of a task changed, so that what it made before may not be what it would make now; None:
    nothing."""
    was = old.steps[before]
    now = new.steps[task]
    if was.workdir != now.workdir:
        return "its working folder changed"
    if _files(old, before, are_inputs=True) != _files(new, task, are_inputs=True):
        return "its inputs changed"
    if _files(old, before, are_inputs=False) != _files(new, task, are_inputs=False):
        return _OUTPUTS
    if _plain(was) != _plain(now):
        return "its command changed"
    if (was.inside, was.inside_at) != (now.inside, now.inside_at):
        return "what it runs in changed"
    if dict(was.env) == dict(now.env):
        return None
    return "its environment changed"


def _files(runnable: Runnable, task: int, *, are_inputs: bool) -> set[str]:
    """By whole paths: what a file is called in a workflow depends on all of its tasks."""
    workflow = runnable.workflow
    numbers = (workflow.inputs if are_inputs else workflow.outputs).of(task).tolist()
    return {posixpath.join(runnable.steps[task].workdir, workflow.files[f].id) for f in numbers}


def _needs_differ(old: Runnable, before: int, new: Runnable, task: int) -> bool:
    """Whether that changed which makes no task run again, and yet is news to one that is to run."""
    if (
        new.steps[task].runtime_known
        and old.workflow.runtime_s[before] != new.workflow.runtime_s[task]
    ):
        return True
    return _needs(old, before) != _needs(new, task)


def _needs(runnable: Runnable, task: int) -> tuple[object, ...]:
    workflow = runnable.workflow
    step = runnable.steps[task]
    parents = sorted(workflow.ids[p] for p in workflow.parents.of(task).tolist())
    kept = [workflow.files[f].keep for f in workflow.outputs.of(task).tolist()]
    return (
        workflow.kinds[task],
        step.retries,
        step.checkpoint,
        step.worker,
        workflow.task(task).need,
        kept,
        *parents,
    )


def _plain(step: Step) -> tuple[str, ...]:
    """The command, whatever the strict shell is called on this machine."""
    if _is_strict(step):
        return ("strict", step.command[-1])
    return step.command


def _is_strict(step: Step) -> bool:
    return step.command[1:-1] in _STRICT and posixpath.basename(step.command[0]) in ("bash", "sh")
