"""From a task of a workflow to what a node executes, in a job and in a pool alike; and what is left
to clean up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from windrow.agent import outputs
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import TaskSpec
from windrow.agent.order import absolute
from windrow.model import Runnable, Workflow


def shared_outputs(workflow: Workflow) -> frozenset[str]:
    """Outputs in which several tasks write."""
    return outputs.shared(workflow.files[f].id for f in workflow.outputs.index.tolist())


def task_spec(
    runnable: Runnable, number: int, shared: Collection[str], site: str = "", **more: Any
) -> TaskSpec:
    """This task for an agent. `shared` are outputs in which several tasks write, `site` is where
    it runs, `more` what else is known of it."""
    task = runnable.workflow.task(number)
    step = runnable.steps[number]
    inside = step.inside_of(site)
    made = [runnable.workflow.files[f] for f in runnable.workflow.outputs.of(number).tolist()]
    return TaskSpec(
        task=number,
        id=task.id,
        kind=task.kind,
        command=(*inside, *step.command),
        workdir=step.workdir,
        env=dict(step.env),
        inputs=task.inputs,
        outputs=task.outputs,
        cores=task.cores,
        nodes=task.nodes,
        memory_bytes=task.memory_bytes,
        disk_bytes=task.disk_bytes,
        counts=task.counts,
        retries=step.retries,
        limit_s=step.limit_s,
        worker=step.worker,
        checkpoint=step.checkpoint,
        mounts=step.mounts,
        extracts=step.extracts,
        elsewhere=_behind(len(inside), step.elsewhere),
        shared=tuple(name for name in task.outputs if name in shared),
        temporary=tuple(file.id for file in made if file.keep is False),
        priority=task.rules.priority,
        memories=task.rules.memories,
        limits_s=task.rules.limits_s,
        stops=task.rules.stops,
        **more,
    )


def _behind(
    words: int, elsewhere: tuple[tuple[int, int, int], ...]
) -> tuple[tuple[int, int, int], ...]:
    """The same places in arguments if that many words stand before the command."""
    if not words:
        return elsewhere
    return tuple((at + words if at >= 0 else at, place, out) for at, place, out in elsewhere)


def clean_up(
    folder: RunFolder | None,
    runnable: Runnable,
    attempts: Mapping[int, int],
    is_done: Callable[[int], bool],
    *,
    copied: bool = False,
) -> str:
    """Throw away what tasks left that were started so often and have not finished; nothing may run
    any more.

    Agents do that themselves; this is for those that were killed. `copied`: tasks that have
    finished may have left something, too, in another job. What could not be done, in one sentence.
    """
    trouble = ""
    for number, started in attempts.items():
        if (kept := runnable.steps[number].checkpoint) is not None and is_done(number) and folder:
            from windrow.agent.checkpoints import remove_files  # noqa: PLC0415  (few tasks have any)

            with suppress(OSError):  # they are in no one's way
                remove_files(folder, number, runnable.steps[number].workdir, kept.files)
        if copied or not is_done(number):
            try:
                made = absolute(
                    runnable.steps[number].workdir, runnable.workflow.task(number).outputs
                )
                outputs.clean_up(made, started, is_done=is_done(number))
            except OSError as error:
                trouble = (
                    f"{error.filename}, left unfinished by a task, cannot be removed: "
                    f"{error.strerror}"
                )
    return trouble
