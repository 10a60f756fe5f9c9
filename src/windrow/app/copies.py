"""What `--copies` asks for: which tasks several jobs may run at the same time, and what to say of the others."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.agent.folder import RunFolder
from windrow.app.runs import ROOT
from windrow.errors import UserError
from windrow.manager.dispatch import Dispatch
from windrow.model import Runnable
from windrow.strategies.base import Strategy
from windrow.strategies.copied import Copied


def uncopied(runnable: Runnable, copies: int) -> tuple[str, ...]:
    """Tasks that run in one job only although several are wanted."""
    dispatch = Dispatch(RunFolder.at(ROOT / "N"), runnable, "", "")
    ids = enumerate(runnable.workflow.ids if copies > 1 else ())
    return tuple(name for task, name in ids if not dispatch.may_copy(task))


def said_of(tasks: Sequence[str], of: int) -> str:
    """What the user should know of these tasks."""
    who = f"{len(tasks):,} of {of:,} tasks run in one job only, in spite of --copies (first: {tasks[0]})"
    return f"{who}: only what a command writes to {{outputs}}, and nowhere else, can be kept apart"


def refuse_copies(copies: int, cap: int, tasks: Sequence[str], of: int) -> None:
    """UserError where there would be no copies at all. `tasks` cannot have any."""
    if copies > cap:
        raise UserError(f"--copies {copies} needs {copies} jobs at a time, but the cap is {cap}; raise --cap")
    if tasks and len(tasks) == of:
        raise UserError(f"{said_of(tasks, of)}; leave --copies out")


def with_copies(strategy: Strategy, copies: int, dispatch: Dispatch) -> Strategy:
    """The strategy, with each of its jobs submitted that many times."""
    return Copied(strategy, copies, dispatch.may_copy) if copies > 1 else strategy
