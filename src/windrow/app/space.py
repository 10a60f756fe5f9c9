"""The space that files of a run may take: what the user says, what other runs have of it, and whether it will do.

A run has what `--space` says. Without that, where [data] in windrow.toml limits a folder: all that its files could ever
take together, or what live runs below that folder leave of the limit. What it has is in its facts, and is counted as
long as it is live (`live_runs`): one that crashed, and has no jobs, has nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.app import live_runs
from windrow.app.settings import data_limit, data_table, find_settings
from windrow.errors import UserError, WindrowError
from windrow.forecast.runtimes import DEFAULT_RISK, RunTimes, with_sizes
from windrow.manager.journal import RunJournal
from windrow.manager.states import TaskState
from windrow.model import Runnable, Workflow
from windrow.model.size import format_size, size_option
from windrow.model.volume import COPY
from windrow.model.wording import count
from windrow.places import NoHome
from windrow.storage.lifetimes import without_intermediate

if TYPE_CHECKING:
    from windrow.app.execute import Prepared, RunRequest
    from windrow.app.runs import RunView
    from windrow.pool.folder import PoolFolder
    from windrow.storage.demand import SpaceLimit
    from windrow.strategies import Strategy


def limit_of(order: RunRequest) -> SpaceLimit | None:
    """The limit of a run."""
    if order.space is None:
        return None
    from windrow.storage.demand import SpaceLimit  # noqa: PLC0415  (few runs have one)

    return SpaceLimit(order.space, order.space_order)


def strategy_within_space() -> Strategy:
    """One job at a time has all the space (`manager.space`)."""
    from windrow.strategies.probing import Probing  # noqa: PLC0415  (few runs have a limit)

    return Probing()


def within_space(order: RunRequest, runnable: Runnable, finished: Collection[int] = ()) -> tuple[RunRequest, Runnable]:
    """The same with the space and disks that it may have, and with sizes of files as far as they were learned.

    UserError where that will not do, or does not go with what else is wanted.
    """
    order = _with_scratch(order)
    where = order.space_in or _limited_folder(runnable)
    if where is None and order.space is None:
        if order.space_order != "auto":
            raise UserError("--space-order says what starts first within a limit; add --space, or leave it out")
        return order, runnable
    with suppress(WindrowError):  # a convenience: `run` says what is wrong with the history
        runnable = replace(runnable, workflow=with_sizes(runnable.workflow, RunTimes(), order.risk))
    workflow = runnable.workflow
    if where is not None:
        taken = sum(size for _, size in live_runs.guaranteed(where[0]))
        every = sum(workflow.files[f].size_bytes for f in workflow.outputs.index.tolist())
        left = max(0, where[1] - taken)
        if order.space is None and every <= left and not unknown_sizes(workflow):  # it cannot take more, as it goes
            return replace(order, space_in=where, guarantee=every), runnable
        space = left if order.space is None else order.space
        order = replace(order, space=space, space_in=where, guarantee=space)
        if space > left:
            raise UserError(_too_little(space, where, taken))
    assert order.space is not None
    _refuse_other_wishes(order, runnable)
    left_tasks = [task for task in range(len(workflow)) if task not in finished]
    smallest = smallest_space(workflow, left_tasks)
    if smallest > order.space:
        raise UserError(_too_small(workflow, left_tasks, smallest, order))
    return replace(order, cap=1), runnable  # one job at a time has all the space


def submitted(folder: PoolFolder, runnable: Runnable) -> int:
    """Put a workflow into a pool; its number. Where [data] limits the folder it has all that its files may ever take.

    UserError where there is less: a pool deletes nothing, and has no order that would need less.
    """
    where, workflow = _limited_folder(runnable), runnable.workflow
    if where is None:
        return folder.submit(runnable)
    with suppress(WindrowError):  # a convenience, as above
        workflow = with_sizes(workflow, RunTimes(), DEFAULT_RISK)
    every = sum(workflow.files[f].size_bytes for f in workflow.outputs.index.tolist())
    with ExitStack() as stack:
        try:
            taken, enter = stack.enter_context(live_runs.sharing(where[0]))
        except (OSError, NoHome):  # others cannot be seen, nor see this
            return folder.submit(runnable)
        if every > where[1] - taken:
            raise UserError(_too_little(every, where, taken, fix="or run it by itself with --space"))
        number = folder.submit(runnable)
        enter(folder.workflow(number), every)
        return number


def change_space(told: RunView, space: int) -> None:
    """Give a run that has a limit, and no jobs, another one. UserError where it has not, or that will not do."""
    from windrow.app.execute import order_of_run  # noqa: PLC0415  (which needs this module)

    name, story, workflow = told.paths.name, told.story, told.runnable.workflow
    if told.facts.get("space") is None:
        raise UserError(f"{name} was started without a limit on space; use windrow run --again --space")
    if told.holder is not None or any(not job.outcome for job in story.jobs.values()):
        raise UserError(f"jobs of {name} have the space that it was started with; windrow cancel {name} stops them")
    left = [number for number, task in enumerate(story.tasks) if task.state is not TaskState.FINISHED]
    if (smallest := smallest_space(workflow, left)) > space:
        raise UserError(_too_small(workflow, left, smallest, replace(order_of_run(told.facts), space=space)))
    with closing(RunJournal.open(told.paths.journal, writable=True)) as journal:
        for fact in ("space", *["guarantee"] * ("space_in" in told.facts)):
            journal.set_fact(fact, space)
    told.refresh()


def _with_scratch(order: RunRequest) -> RunRequest:
    """The same with the disks of nodes that it may use: those of the order, or of [data] in windrow.toml."""
    path = find_settings()
    table = data_table(path) if order.scratch != "none" else {}
    scratch = table.get("scratch", "") if order.scratch in ("", "none") else order.scratch
    if scratch and scratch[0] not in "/$~":
        where = "--scratch" if order.scratch else f"{path}: scratch of [data]"
        raise UserError(
            f'{where} is {scratch!r}, which is not an absolute path; write one such as "/scratch/me" or "$TMPDIR"'
        )
    keep, share = tuple(table.get("keep", ())), table.get("share", COPY)
    return replace(
        order, scratch=scratch, keep=keep if scratch else (), share=share if scratch and share != COPY else ""
    )


def notes_on_space(prepared: Prepared) -> list[str]:
    """What the user should know of files within a limit."""
    unknown = 0 if prepared.order.space is None else unknown_sizes(prepared.runnable.workflow)
    return (
        [f"the sizes of {count(unknown, 'file')} are not known: a few pipelines run first, to learn them"]
        if unknown
        else []
    )


def refuse_far(order: RunRequest) -> None:
    """UserError where files of a run with a limit would be elsewhere."""
    if order.space is not None:
        raise UserError("a limit on space needs a site that sees the files in this folder; leave out one of the two")


def _refuse_other_wishes(order: RunRequest, runnable: Runnable) -> None:
    for told, is_asked in {
        "one site": bool(order.also),
        "no copies of tasks": order.copies > 1 or order.rules.are_needed(runnable.steps),
        "the strategy giant": order.strategy not in ("auto", "giant"),
    }.items():
        if is_asked:
            raise UserError(
                f"a limit on space needs {told}: one job at a time gets all the space; leave out one of the two"
            )


def smallest_space(workflow: Workflow, tasks: Collection[int] | None = None) -> int:
    """The least space with which these tasks would go to their end, or all of them."""
    from windrow.storage.demand import demand_of  # noqa: PLC0415

    demand = demand_of(workflow, tasks)
    return demand.peak(demand.order())


def unknown_sizes(workflow: Workflow) -> int:
    """How many files that tasks make have no known size."""
    return sum(not workflow.files[f].size_bytes for f in workflow.outputs.index.tolist())


def _limited_folder(runnable: Runnable) -> tuple[str, int] | None:
    """The folder of [data], where the run writes below it, and its limit."""
    where = data_limit(find_settings())
    if where is None:
        return None
    folders = {os.path.realpath(step.workdir) for step in runnable.steps}
    return where if any(Path(where[0]) in (Path(folder), *Path(folder).parents) for folder in folders) else None


def _too_little(space: int, where: tuple[str, int], taken: int, fix: str = "or give less with --space") -> str:
    limit = f"{where[0]} is limited to {format_size(where[1])} ([data] in windrow.toml)"
    others = f", of which other runs have {format_size(taken)}" if taken else ""
    return f"{limit}{others}: {format_size(space)} is not available; wait until they end, {fix}"


def _too_small(workflow: Workflow, tasks: Collection[int], smallest: int, order: RunRequest) -> str:
    from windrow.storage.sequence import EXACT  # noqa: PLC0415

    least, best = ("at least ", "") if len(tasks) <= EXACT else ("", " in the best order found")
    told = f"its files need {least}{format_size(smallest)} at a time{best}"
    told = f"{told}, but may take {format_size(order.space or 0)}"
    fix = f"give --space {size_option(smallest)}" if order.space_in is None else "raise limit of [data] in windrow.toml"
    if (less := smallest_space(without_intermediate(workflow), tasks)) < smallest:
        fix += f", or delete files that only tasks read (--delete-intermediate): then {format_size(less)} will do"
    return f"{told}; {fix}"
