"""The space that files of a run may take: what the user says, what other runs have of it, and
whether it will do.

A run has what `--space` says. Without that, if [data] in windrow.toml limits a folder: all that
its files could ever take together, or what live runs below that folder leave of the limit. What it
has is in its facts, and is counted as long as it is live (`live_runs`): one that crashed, and has
no jobs, has nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.app import live_runs
from windrow.app.settings import DataTable, settings_of
from windrow.errors import UserError, WindrowError
from windrow.forecast.runtimes import DEFAULT_RISK, RunTimes, with_sizes
from windrow.model import Runnable, Workflow
from windrow.model.size import format_size, size_option
from windrow.model.volume import COPY
from windrow.model.wording import count
from windrow.places import NoHome
from windrow.storage.lifetimes import without_intermediate
from windrow.story.journal import RunJournal
from windrow.story.states import TaskState

if TYPE_CHECKING:
    from windrow.app.execute import Prepared
    from windrow.app.facts import RunRequest
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


def within_space(
    order: RunRequest, runnable: Runnable, finished: Collection[int] = ()
) -> tuple[RunRequest, Runnable]:
    """The same with the space and disks that it may have, and with sizes of files as far as they
    were learned.

    UserError if that will not do, or does not go with what else is wanted.
    """
    order = _with_scratch(order)
    where = order.space_in or _limited_folder(runnable)
    if where is None and order.space is None:
        if order.space_order != "auto":
            raise UserError(
                "--space-order says what starts first within a limit; add --space, or leave it out"
            )
        return order, runnable
    plain = runnable.workflow
    runnable = replace(runnable, workflow=_with_guesses(plain, order))
    workflow = runnable.workflow
    if where is not None:
        order = _within_folder(order, workflow, where)
        if order.space is None:
            return order, runnable
    assert order.space is not None
    _refuse_other_wishes(order, runnable)
    left_tasks = [task for task in range(len(workflow)) if task not in finished]
    smallest = smallest_space(plain, left_tasks)
    if smallest > order.space:
        raise UserError(_too_small(plain, left_tasks, smallest, order))
    if smallest_space(workflow, left_tasks) > order.space:
        # sizes of earlier runs are guesses, and refuse nothing
        runnable = replace(runnable, workflow=plain)
    return replace(order, cap=1), runnable  # one job at a time has all the space


def _with_guesses(workflow: Workflow, order: RunRequest) -> Workflow:
    """The same with sizes that files of earlier runs had, if it states none."""
    with suppress(WindrowError):  # a convenience: `run` says what is wrong with the history
        return with_sizes(workflow, RunTimes(), order.risk)
    return workflow


def submitted(folder: PoolFolder, runnable: Runnable) -> int:
    """Put a workflow into a pool; its number. If [data] limits the folder it has all that its
    files may ever take.

    UserError if there is less: a pool deletes nothing, and has no order that would need less.
    """
    where = _limited_folder(runnable)
    workflow = runnable.workflow
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
            raise UserError(
                _too_little(every, where, taken, fix="or run it by itself with --space")
            )
        number = folder.submit(runnable)
        enter(folder.workflow(number), every)
        return number


def change_space(told: RunView, space: int) -> None:
    """Give a run that has a limit, and no jobs, another one. UserError if it has not, or that
    will not do."""
    name = told.paths.name
    story = told.story
    workflow = told.runnable.workflow
    if told.facts.request.space is None:
        raise UserError(
            f"{name} was started without a limit on space; use windrow run --again --space"
        )
    if told.holder is not None or any(not job.outcome for job in story.jobs.values()):
        raise UserError(
            f"jobs of {name} have the space that it was started with; windrow cancel {name} "
            "stops them"
        )
    left = [
        number for number, task in enumerate(story.tasks) if task.state is not TaskState.FINISHED
    ]
    if (smallest := smallest_space(workflow, left)) > space:
        raise UserError(
            _too_small(workflow, left, smallest, replace(told.facts.request, space=space))
        )
    settled = replace(told.facts.request, space=space)
    if settled.space_in is not None:
        settled = replace(settled, guarantee=space)
    with closing(RunJournal.open(told.paths.journal, writable=True)) as journal:
        journal.set_fact("request", settled)
    told.refresh()


def _with_scratch(order: RunRequest) -> RunRequest:
    """The same with the disks of nodes that it may use: those of the order, or of [data] in
    windrow.toml."""
    settings = settings_of()
    if order.scratch != "none":
        table = settings.data
    else:
        table = DataTable()
    if order.scratch in ("", "none"):
        scratch = table.scratch
    else:
        scratch = order.scratch
    if scratch and scratch[0] not in "/$~":
        if order.scratch:
            where = "--scratch"
        else:
            where = f"{settings.file}: scratch of [data]"
        raise UserError(
            f"{where} is {scratch!r}, which is not an absolute path; write one such as "
            '"/scratch/me" or "$TMPDIR"'
        )
    if not scratch:
        return replace(order, scratch="", keep=(), share="")
    share = table.share if table.share != COPY else ""
    return replace(order, scratch=scratch, keep=table.keep, share=share)


def notes_on_space(prepared: Prepared) -> list[str]:
    """What the user should know of files within a limit."""
    order = prepared.order
    workflow = prepared.runnable.workflow
    if order.space is None or not (unknown := unknown_sizes(workflow)):
        return []
    notes = [
        f"no size is known of {count(unknown, 'file')}: tasks that make such files run one at a "
        "time until it is, and "
        "the limit may be exceeded by what one of them makes"
    ]
    if (likely := smallest_space(_with_guesses(workflow, order))) > order.space:
        notes.append(
            f"a guess, by sizes in earlier runs: its files need {format_size(likely)} at a time, "
            "and may take "
            f"{format_size(order.space)}"
        )
    return notes


def refuse_far(order: RunRequest) -> None:
    """UserError if files of a run with a limit would be elsewhere."""
    if order.space is not None:
        raise UserError(
            "a limit on space needs a site that sees the files in this folder; leave out one of "
            "the two"
        )


def _refuse_other_wishes(order: RunRequest, runnable: Runnable) -> None:
    for told, is_asked in {
        "one site": bool(order.also),
        "no copies of tasks": order.copies > 1 or order.rules.are_needed(runnable.steps),
        "the strategy giant": order.strategy not in ("auto", "giant"),
    }.items():
        if is_asked:
            raise UserError(
                f"a limit on space needs {told}: one job at a time gets all the space; leave out "
                "one of the two"
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
    """The folder of [data], if the run writes below it, and its limit."""
    where = settings_of().limit
    if where is None:
        return None
    folders = {os.path.realpath(step.workdir) for step in runnable.steps}
    if any(Path(where[0]) in (Path(folder), *Path(folder).parents) for folder in folders):
        return where
    return None


def _too_little(
    space: int, where: tuple[str, int], taken: int, fix: str = "or give less with --space"
) -> str:
    limit = f"{where[0]} is limited to {format_size(where[1])} ([data] in windrow.toml)"
    if taken:
        others = f", of which other runs have {format_size(taken)}"
    else:
        others = ""
    return f"{limit}{others}: {format_size(space)} is not available; wait until they end, {fix}"


def _too_small(workflow: Workflow, tasks: Collection[int], smallest: int, order: RunRequest) -> str:
    from windrow.storage.sequence import EXACT  # noqa: PLC0415

    least, best = ("at least ", "") if len(tasks) <= EXACT else ("", " in the best order found")
    told = f"its files need {least}{format_size(smallest)} at a time{best}"
    told = f"{told}, but may take {format_size(order.space or 0)}"
    if order.space_in is None:
        fix = f"give --space {size_option(smallest)}"
    else:
        fix = "raise limit of [data] in windrow.toml"
    if (less := smallest_space(without_intermediate(workflow), tasks)) < smallest:
        fix += (
            ", or delete files that only tasks read (--delete-intermediate): then "
            f"{format_size(less)} will do"
        )
    return f"{told}; {fix}"


def _within_folder(order: RunRequest, workflow: Workflow, where: tuple[str, int]) -> RunRequest:
    """With what the limit on this folder leaves for the run; without a limit if it cannot take
    more than that, as it goes."""
    taken = sum(size for _, size in live_runs.guaranteed(where[0]))
    every = sum(workflow.files[f].size_bytes for f in workflow.outputs.index.tolist())
    left = max(0, where[1] - taken)
    if order.space is None and every <= left and not unknown_sizes(workflow):
        return replace(order, space_in=where, guarantee=every)
    space = left if order.space is None else order.space
    if space > left:
        raise UserError(_too_little(space, where, taken))
    return replace(order, space=space, space_in=where, guarantee=space)
