"""What is checked before a workflow is let into a pool: all that can be known before anything
runs."""

from pathlib import Path

from windrow.errors import InputError, UserError
from windrow.forecast.best_effort import filled
from windrow.formats import read_runnable
from windrow.model import Runnable
from windrow.model.runnable import refuse_missing_inputs
from windrow.pool.settings import PoolSettings
from windrow.streams import in_processors

# the run time of a task of which nothing is known; only policies that order by length use it
_GUESS_S = 60.0


def admit(path: Path, settings: PoolSettings | None) -> Runnable:
    """The workflow in this file, with run times from history where it states none. UserError if
    it cannot run.

    `settings` None: the pool has never been served, and its size is not known yet.
    """
    runnable, _ = filled(read_runnable(path), _GUESS_S)
    refuse_missing_inputs(path, runnable, Path.exists)
    if settings is not None:
        try:
            refuse_misfits(runnable, settings)
        except UserError as error:
            raise InputError(path, str(error)) from None
    return runnable


def refuse_misfits(runnable: Runnable, settings: PoolSettings) -> None:
    """UserError if a task asks for more than the pool's nodes have."""
    taken = in_processors(runnable.workflow, settings.shape).cores
    if int(taken.max()) > settings.slots:
        name = runnable.workflow.ids[int(taken.argmax())]
        nodes = int(runnable.workflow.nodes[taken.argmax()])
        raise UserError(
            f"task {name} asks for {nodes} nodes, but the pool has {settings.nodes}; restart it "
            "with more"
        )
