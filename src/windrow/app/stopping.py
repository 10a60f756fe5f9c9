"""Stopping a run: its manager is asked to; if it has none, this process stops it."""

import time

from windrow.app.execute import drive, managed
from windrow.app.requests import ask_to_stop
from windrow.app.runs import RunView
from windrow.story.states import ACTIVE, RunState

_LOOK_S = 0.2
_PATIENCE_S = 15.0


def stop_run(told: RunView) -> bool:
    """Take the jobs of a run out of the queue, and wait until they are; False if there is nothing
    to stop."""
    if told.state not in (*ACTIVE, RunState.INTERRUPTED):
        return False
    ask_to_stop(told.paths)
    while told.holder is not None:
        time.sleep(_LOOK_S)
        told.refresh()
    if told.state == RunState.INTERRUPTED:
        with managed(told.paths, wait_s=_PATIENCE_S, writes=False) as manager:
            manager.stop()
            drive(manager)
        told.refresh()
    return True
