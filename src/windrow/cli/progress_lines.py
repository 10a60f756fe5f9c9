"""Progress of a run: a live picture on a terminal, lines elsewhere.

Rule: a run does not end because its output has no reader any more. A command that only watches
does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from windrow.cli import run_screen, terminal
from windrow.model.wording import count
from windrow.story.states import ACTIVE, JobStage, RunState, TaskState

if TYPE_CHECKING:
    from windrow.app.runs import RunView
    from windrow.manager.manager import Manager
    from windrow.story.story import JobStory

_EVERY_S = 0.5
_LOOK_S = 1.0
_MOST_REASONS = 100  # lines about why jobs wait; windrow status tells of all of them
_QUIET_S = 2.0  # while nothing happens but time
_QUIET_LINE_S = 60.0  # the same, where a line stays


@contextmanager
def showing(
    told: RunView, *, quiet: bool = False, outlives_reader: bool = False
) -> Iterator[Callable[[Manager | None], None]]:
    """Yields what is to be called again and again while the run is active; shows what is new.

    A reader that leaves (`| head`) is a BrokenPipeError, or, if this outlives its reader, none.
    """
    if quiet:
        yield lambda _: None
    elif sys.stdout.isatty():
        with _picture(told) as show:
            yield show
    else:
        farewell = (
            f"output closed; {told.paths.name} keeps running here, and windrow status -f shows it"
        )
        if outlives_reader:
            emit = partial(terminal.tell, farewell=farewell)
        else:
            emit = partial(print, flush=True)
        lines = _Lines(told, emit)
        yield lines.show
        lines.show(None)
        emit("\n".join(run_screen.summary(told, time.time())))


def follow(told: RunView) -> int:
    """Follow the journal; 0 if the run is complete at its end, or the user has seen enough."""
    with showing(told) as show:
        try:
            while told.state in ACTIVE:
                show(None)
                time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            return 0
    return 0 if told.state == RunState.COMPLETE else 1


@contextmanager
def _picture(told: RunView) -> Iterator[Callable[[Manager | None], None]]:
    from rich.live import Live

    last = 0.0
    known_s = -1.0
    with Live(run_screen.screen(told), console=terminal.console(), auto_refresh=False) as shown:

        def show(_manager: Manager | None) -> None:
            nonlocal last, known_s
            gone_s = time.monotonic() - last
            if gone_s < _EVERY_S:
                return
            told.refresh()
            if told.story.last_s == known_s and gone_s < _QUIET_S:
                return
            last = time.monotonic()
            known_s = told.story.last_s
            shown.update(run_screen.screen(told), refresh=True)

        yield show
        told.refresh()
        shown.update(run_screen.screen(told), refresh=True)


class _Lines:
    """One line for each thing that happens to a job or goes wrong with a task, and at times one on
    how far it is."""

    def __init__(self, told: RunView, emit: Callable[[str], None]) -> None:
        self._told = told
        self._emit = emit
        self._states: dict[int, str] = {}
        self._failed: set[int] = set()
        self._reasons: set[tuple[int, str]] = set()
        self._warnings: list[str] = []
        self._said_s = time.monotonic()
        self._done = 0

    def _say_why(self, number: int, job: JobStory) -> None:
        from windrow.story.waiting import waits_because

        because = waits_because(job)
        if (number, because) not in self._reasons and len(self._reasons) < _MOST_REASONS:
            self._reasons.add((number, because))
            self._say(f"job {number} waits because {because}")

    def show(self, _manager: Manager | None) -> None:
        told = self._told
        told.refresh()
        for number, job in told.story.jobs.items():
            if self._states.get(number) != job.state:
                self._states[number] = job.state
                self._say_state(number, job)
            if job.reason:
                self._say_why(number, job)
        if told.story.count(TaskState.FAILED):
            self._say_failures()
        self._say_warnings()
        done = told.story.count(TaskState.FINISHED)
        gone_s = time.monotonic() - self._said_s
        if gone_s >= (terminal.LINE_S if done != self._done else _QUIET_LINE_S):
            states = [job.state for job in told.story.jobs.values()]
            jobs = [
                f"{states.count(s)} {s}"
                for s in (JobStage.RUNNING, JobStage.WAITING)
                if s in states
            ]
            self._say(f"jobs: {', '.join(jobs) or 'none'}")

    def _say_failures(self) -> None:
        for number, task in enumerate(self._told.story.tasks):
            if task.state is TaskState.FAILED and number not in self._failed:
                self._failed.add(number)
                name = self._told.runnable.workflow.ids[number]
                self._say(f"task {name} failed: {task.attempts[-1].why}")

    def _say_state(self, number: int, job: JobStory) -> None:
        tasks = count(len(job.plan.all_tasks), "task")
        nodes = count(job.plan.nodes, job.plan.unit)
        line = f"job {number} ({tasks} on {nodes}) {job.state}"
        if job.note:
            line += f": {job.note}"
        self._say(line)

    def _say_warnings(self) -> None:
        """Those that were not there before."""
        told = self._told
        warnings = told.warnings()
        for words in [words for words in warnings if words not in self._warnings]:
            if told.trouble_with_queue and words.endswith(told.trouble_with_queue):
                self._say(words)
            else:  # which does not pass by itself
                terminal.say(f"windrow: {words}")
        self._warnings = warnings

    def _say(self, words: str) -> None:
        done = self._told.story.count(TaskState.FINISHED)
        total = len(self._told.story.tasks)
        self._said_s = time.monotonic()
        self._done = done
        self._emit(f"{time.strftime('%H:%M:%S')}  {done}/{total} tasks  {words}")
