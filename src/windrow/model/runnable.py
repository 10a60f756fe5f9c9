"""A workflow that can be executed: what to run for each task, and where.

The Workflow says what strategies need to know; a Step says what an allocation needs to start the
task.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

from windrow.errors import InputError
from windrow.model.checkpoint import Checkpoint
from windrow.model.volume import Extract, VolumeMount
from windrow.model.workflow import File, Task, Workflow, WorkflowError, whole_path


class Made(NamedTuple):
    """An environment of this kind (`venv` or `conda`), in this folder, made of what a file says."""

    kind: str
    path: str
    source: str


@dataclass(frozen=True, slots=True)
class Step:
    """How one task is executed.

    `command` is what to run, program first; no shell unless it is one. `workdir` is absolute.
    `retries` is how often a failed task is tried again. `runtime_known` is False if the
    workflow's run time is only a placeholder.

    `elsewhere` is for commands that may write their outputs anywhere: (argument, character,
    output), in each of which the last part of that output's path begins; a folder put in there
    makes the command write into it. Argument -1 is the last one. Empty: the names of the outputs
    are as they are.

    `where` is a condition (`model.conditions`) on the site and its nodes; empty: anywhere.
    `replicas`: how many attempts at it run at the same time. `checkpoint`: how it keeps what it has
    done; None: if it is ended, all is lost. `mounts`: volumes that it sees; `extracts`: what is
    taken out of them when it has succeeded. `limit_s`: an attempt that runs for longer is ended,
    and has failed; 0: there is no limit. `worker`: a program that is started once on each node, and
    starts such tasks by forking; a Python command line. `inside`: words that stand
    before the command, and let it run in something else; `made`: an environment that has to be made
    for that before the run. `inside_at`: other such words at sites, by name.
    """

    command: tuple[str, ...]
    workdir: str
    env: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    runtime_known: bool = True
    elsewhere: tuple[tuple[int, int, int], ...] = ()
    where: str = ""
    replicas: int = 1
    checkpoint: Checkpoint | None = None
    mounts: tuple[VolumeMount, ...] = ()
    extracts: tuple[Extract, ...] = ()
    limit_s: float = 0.0
    worker: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    made: Made | None = None
    inside_at: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def inside_of(self, site: str) -> tuple[str, ...]:
        """What stands before the command at this site."""
        return dict(self.inside_at).get(site, self.inside)


@dataclass(frozen=True, slots=True)
class Runnable:
    """A workflow with one step for each task, in the order of its tasks."""

    workflow: Workflow
    steps: tuple[Step, ...]

    @staticmethod
    def of(workflow: Workflow, workdir: str, outside: int = 0) -> Runnable:
        """A workflow whose tasks, but for the last ones, name their commands (WfFormat, DAX), run
        in this folder."""
        own = range(len(workflow) - outside)
        missing = [workflow.ids[i] for i in own if not workflow.commands.get(i)]
        if missing:
            if len(missing) > 5:
                more = f" and {len(missing) - 5} more"
            else:
                more = ""
            raise WorkflowError(
                f"tasks without a command cannot run: {', '.join(missing[:5])}{more}"
            )
        known = (workflow.runtime_s > 0).tolist()
        steps = (Step(workflow.commands[i], workdir, runtime_known=known[i]) for i in own)
        return Runnable(workflow, tuple(steps))

    def notice_s(self, tasks: Iterable[int] | None = None) -> int:
        """How long before an end one of these tasks is to be asked for a checkpoint; 0: none has
        any."""
        steps = self.steps if tasks is None else [self.steps[task] for task in tasks]
        kept = (step.checkpoint for step in steps if step.checkpoint)
        return ceil(max((one.notice_s for one in kept if one.signal), default=0))

    def with_steps(self, tasks: Sequence[Task], steps: Sequence[Step]) -> tuple[Step, ...]:
        """Its steps, with these of these tasks."""
        found = list(self.steps)
        for task, step in zip(tasks, steps, strict=True):
            found[self.workflow.number(task.id)] = step
        return tuple(found)

    def extended(
        self, tasks: Sequence[Task], files: Sequence[File], steps: Sequence[Step]
    ) -> tuple[Runnable, str]:
        """The same with more tasks, and the `folder` for `Workflow.extended`: "" if names of
        files stay as they are.

        If tasks run in different folders, only whole paths name a file in the same way for all
        of them.
        """
        folder = ""
        before = {step.workdir for step in self.steps}
        if len(before | {step.workdir for step in steps}) > 1:
            if len(before) == 1:
                folder = min(before)
            else:
                folder = ""
            tasks = [task.named_from(step.workdir) for task, step in zip(tasks, steps, strict=True)]
            files = [replace(file, id=whole_path(steps[0].workdir, file.id)) for file in files]
        workflow = self.workflow.extended(tasks, files, folder)
        return Runnable(workflow, (*self.steps, *steps)), folder


def refuse_missing_inputs(
    file: Path, runnable: Runnable, exists: Callable[[Path], bool], finished: Container[int] = ()
) -> None:
    """InputError, at the workflow's `file`, if tasks read what no task writes and what does not
    exist.

    What `finished` tasks have read is not looked for.
    """
    workflow = runnable.workflow
    made = {workflow.files[f].id for f in workflow.outputs.index.tolist()}
    for number, step in enumerate(runnable.steps):
        if number in finished:
            continue
        for f in workflow.inputs.of(number).tolist():
            name = workflow.files[f].id
            if name not in made and not exists(Path(step.workdir, name)):
                problem = (
                    f"task {workflow.ids[number]} reads {name}, which no task writes and "
                    f"which is not in {step.workdir}"
                )
                raise InputError(file, problem, fix="create it, or correct the name")
