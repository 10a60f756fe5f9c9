"""Runs from Python: start one, look at it, steer it, as the command line does.

Rule 1: the process that manages a run is never the caller's. `run` starts it, and it lives on when
the caller ends; nothing is forked. Rule 2: a `Run` keeps no file open and looks at what is on disk
each time it is asked, so any number of threads and processes may use it.
Rule 3: what goes wrong is a `WindrowError`, with the message that the command line would print.

The names here are a promise to those who build on them: see docs/reference/python.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from windrow.agent.holds import KEEP_S, LEASE_S
from windrow.app import requests
from windrow.app.adding import prepare_addition
from windrow.app.background import start_manager
from windrow.app.continuing import (
    continued_run,
    refuse_continued,
    refuse_moved,
    run_to_change,
    standing,
)
from windrow.app.dry_run import dry_run
from windrow.app.execute import prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.holding import Holder, hold_run
from windrow.app.new_tasks import Amendment, NewTask, Steering
from windrow.app.requests import was_heard
from windrow.app.runs import (
    RunPaths,
    RunView,
    all_runs,
    find_run,
    latest_of,
    own_root,
    refuse_foreign_root,
)
from windrow.app.stopping import stop_run
from windrow.app.task_names import chosen_tasks, task_number
from windrow.errors import UserError
from windrow.formats.disk import replace_text
from windrow.model import is_never
from windrow.records.lock import holder_of
from windrow.report.run.answers import Answer, answer
from windrow.report.run.page import page_now
from windrow.report.run.view import TaskView, task_views
from windrow.story.journal import Record, RunJournal
from windrow.story.states import ACTIVE, RunState, TaskState

_LOOK_S = 0.2
_LOOK_MOST_S = 2.0


class Order(TypedDict, total=False):
    """How a run is to be done: the options of `windrow run`, by the same names."""

    strategy: str
    objective: Literal["makespan", "node-hours", "balanced", "cost"]
    deadline_s: int
    think: int
    cap: int
    margin: float
    max_nodes: int
    copies: int
    reliability: float
    speculate: bool
    delete_intermediate: bool
    space: int
    """In bytes."""
    scratch: str
    keep: tuple[str, ...]
    share: str
    risk: float
    guess_s: float


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that would be submitted now. `wait_s`: how long it should wait, None if for ever."""

    tasks: tuple[str, ...]
    nodes: int
    run_s: int
    requested_s: int
    wait_s: int | None
    site: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would submit now, why, and the exact commands. `forecast`: whose waits these
    are."""

    jobs: tuple[PlannedJob, ...]
    why: str
    forecast: str
    commands: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, in the order of `number`.

    `what` is its name, such as `TaskFinished`. `task` and `job` are what it is about, if it is
    about one.
    """

    number: int
    at_s: float
    what: str
    task: str | None
    job: int | None
    detail: Mapping[str, object]


def run(
    workflow: str | Path,
    *,
    on: str = "local",
    wait: bool = False,
    again: bool = False,
    resume: bool = False,
    root: Path | None = None,
    **order: Unpack[Order],
) -> Run:
    """Start a workflow at a site, or at the best of several: ``on="near,far"``.

    If there is a run of this file already, it is returned if it is complete and up to date;
    otherwise say `resume` to continue it or `again` to run everything again. `wait`: return when
    the run is over. `root`: where runs are kept (default: ``.windrow/runs`` in the current folder).
    """
    root = root or own_root()
    refuse_foreign_root(root)
    earlier = latest_of(Path(workflow), root)
    if earlier is not None and not again:
        started = _continued(earlier, resume=resume)
    else:
        paths = start_run(prepare(_request(workflow, on, order), root=root), root)
        start_manager(paths)
        started = Run(paths)
    if wait:
        started.wait()
    return started


def plan(workflow: str | Path, *, on: str = "local", **order: Unpack[Order]) -> Plan:
    """What a run would submit now. Nothing is written or submitted."""
    prepared = prepare(_request(workflow, on, order))
    planned = dry_run(prepared)
    ids = prepared.runnable.workflow.ids
    jobs = (
        PlannedJob(
            tuple(ids[task] for task in job.tasks),
            job.nodes,
            job.run_s,
            job.requested_s,
            None if is_never(wait_s) else wait_s,
            job.site or prepared.order.on,
        )
        for job, wait_s in zip(planned.decision.jobs, planned.waits_s, strict=True)
    )
    return Plan(
        tuple(jobs),
        planned.decision.why,
        planned.forecast,
        planned.commands,
        (*prepared.notes, *planned.notes),
    )


def attach(run: str | Path | None = None, *, root: Path | None = None) -> Run:
    """The run of this name, or in this folder; without a name the latest one."""
    return Run(find_run(None if run is None else str(run), root))


def runs(root: Path | None = None) -> list[Run]:
    """All runs of this folder, the oldest first."""
    return [Run(paths) for paths in all_runs(root)]


def _request(workflow: str | Path, on: str, order: Order) -> RunRequest:
    first, *also = (name.strip() for name in on.split(","))
    return RunRequest(Path(workflow), on=first, also=tuple(also), **order)


def _continued(earlier: RunView, *, resume: bool) -> Run:
    """The run that there is: as it is if nothing is left to do, else continued, if that is
    wanted."""
    with closing(earlier):
        refuse_continued(earlier)
        now = standing(earlier)
        if now.is_up_to_date:
            return Run(earlier.paths)
        if not resume:
            raise UserError(
                f"there is already a run of this workflow: {earlier.paths.name}, {earlier.state}; "
                "say resume=True to continue it, or again=True to run everything again"
            )
        refuse_moved(earlier)
        if now.is_same:
            paths = earlier.paths
        else:
            paths = continued_run(earlier, wait_s=_LOOK_MOST_S)
    start_manager(paths)
    return Run(paths)


def _about(record: Record) -> dict[str, object]:
    """What is known of an event, and of the attempt of which it is."""
    about = dict(record.detail or {})
    if record.attempt is not None:
        about |= record.attempt.told()
    return about


class Run:
    """One execution of a workflow, running or over. `attach` and `run` make these."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths

    def __repr__(self) -> str:
        return f"<Run {self.name} in {self.folder}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.folder == other.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    @property
    def name(self) -> str:
        """What the run is called."""
        return self._paths.name

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._paths.path

    @property
    def state(self) -> RunState:
        """How it stands."""
        with self._look() as told:
            return RunState(told.state.partition(" ")[0])

    @property
    def tasks(self) -> Mapping[str, TaskView]:
        """All its tasks by id, in the order of the workflow, with the attempt that counts."""
        with self._look() as told:
            return {view.task: view for view in task_views(told)}

    def _look(self) -> closing[RunView]:
        """The run as it is on disk now."""
        return closing(RunView(self._paths, asks_agents=True))

    def wait(self, timeout: float | None = None) -> RunState:
        """Wait until no process manages it; how it stands then. TimeoutError after `timeout`
        seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        pause_s = _LOOK_S
        while (state := self.state) in ACTIVE or holder_of(self._paths.lock) is not None:
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"{self.name} is still {state}")
            time.sleep(pause_s)
            pause_s = min(1.2 * pause_s, _LOOK_MOST_S)
        return state

    def events(self, since: int = 0, *, follow: bool = False) -> Iterator[Event]:
        """What has happened after the event of that number; with `follow`, what happens from then
        on, until the run is over."""
        while True:
            is_active = self.state in ACTIVE
            new = self._events(since)
            yield from new
            if new:
                since = new[-1].number
            if not follow or not is_active:
                return
            if not new:
                time.sleep(_LOOK_S)

    def _events(self, since: int) -> list[Event]:
        with self._look() as told:
            ids = told.runnable.workflow.ids
        found = []
        with closing(RunJournal.open(self._paths.journal)) as journal:
            for number, record in journal.records(since):
                task = getattr(record.event, "task", None)
                if task is not None and task >= len(ids):
                    break  # it has joined the run since we looked
                found.append(
                    Event(
                        number,
                        record.at_s,
                        RunJournal.kinds[type(record.event)],
                        None if task is None else ids[task],
                        getattr(record.event, "job", None),
                        _about(record),
                    )
                )
        return found

    def logs(self, task: str, attempt: int | None = None) -> str:
        """What a task printed: in its latest attempt, or in that one (they count from 1). Empty if
        it printed nothing."""
        with self._look() as told:
            number = task_number(told.runnable.workflow, task, self.name)
            story = told.story.tasks[number]
        if attempt is None:
            chosen = story.last
        elif 1 <= attempt <= len(story.attempts):
            chosen = story.attempts[attempt - 1]
        else:
            raise UserError(f"{task} has {len(story.attempts)} attempt(s), none numbered {attempt}")
        if chosen is None:
            return ""
        try:
            printed = self._paths.folder.task_out(number, chosen.number).read_bytes()
        except FileNotFoundError:
            return ""
        return printed.decode(errors="replace")

    def explain(self, what: str | int) -> Answer:
        """Why a task or a job is where it is, as ``windrow explain`` says it."""
        with self._look() as told:
            return answer(told.recorded(time.time()), str(what))

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page about the run, by default into its folder; where it is."""
        page = Path(path) if path is not None else self.folder / "report.html"
        with self._look() as told:
            replace_text(page, page_now(told, time.time()))
        return page

    def hold(self, who: str = "", *, keep_s: float = KEEP_S, lease_s: float = LEASE_S) -> Hold:
        """Keep the run open for tasks to come, though all that it has may be done, until the hold
        is closed or this process ends.

        Nodes of jobs that have nothing to do are kept for `keep_s` seconds at most, and count as
        idle. `who`: what others are told of who holds it. A process that does not renew its
        hold for `lease_s` seconds has lost it.
        """
        with closing(self._own()) as told:
            holder = hold_run(told, who, keep_s=keep_s, lease_s=lease_s)
            return Hold(self, holder, Steering(self._paths, told.facts))

    def cancel(self, *tasks: str) -> RunState:
        """Stop it, and take its jobs out of the queue; how it stands then.

        With tasks (`*` stands for any characters), end only these: what needs them is blocked, and
        `retry` runs them after all.
        """
        with closing(self._own()) as told:
            if not tasks:
                stop_run(told)
            else:
                workflow = told.runnable.workflow
                chosen = chosen_tasks(workflow, tasks, self.name)
                names = [workflow.ids[number] for number in chosen]
                Steering(self._paths, told.facts).cancel(names)
        return self.state

    def amend(self, *changes: Amendment) -> None:
        """Change tasks that do not run and have not finished. Those that had failed run again."""
        with closing(self._own()) as told:
            Steering(self._paths, told.facts).amend(changes)

    def retry(self, *tasks: str) -> None:
        """Run these tasks again (`*` stands for any characters), even if they have finished; by
        default all that failed."""
        with closing(self._own()) as told:
            failed = (n for n, one in enumerate(told.story.tasks) if one.state is TaskState.FAILED)
            if tasks:
                chosen = chosen_tasks(told.runnable.workflow, tasks, self.name)
            else:
                chosen = list(failed)
            if chosen:
                self._ask(told, lambda: requests.leave_retry(told, chosen))

    def add(self, what: str | Path | NewTask, *more: NewTask) -> tuple[str, ...]:
        """Add the tasks of a workflow file to the run, or these tasks; their ids."""
        with closing(self._own()) as told:
            if isinstance(what, NewTask):
                Steering(self._paths, told.facts).add((what, *more))
                return tuple(task.id for task in (what, *more))
            file = what
            added = prepare_addition(told, Path(file))
            if told.story.addition(added.id) is None:
                self._ask(told, lambda: requests.leave_addition(told, added))
                if told.story.addition(added.id) is None:
                    raise UserError(f"{self.name} has changed meanwhile; nothing was added")
        return tuple(task.id for task in added.added.tasks)

    def _own(self) -> RunView:
        """To change it: UserError if it is another user's, or another run continues it."""
        return run_to_change(str(self.folder))

    def _ask(self, told: RunView, leave: Callable[[], Path]) -> None:
        """Leave a request for the manager of the run, and see that it is followed; if there is
        none, one is started."""
        request = leave()
        if told.holder is None:
            start_manager(self._paths, retry=False)
            told.refresh()
        if not was_heard(told, request):  # it left just then
            leave()
            start_manager(self._paths, retry=False)
            told.refresh()


class Hold:
    """A run that is kept open for tasks to come (`Run.hold`). It renews itself; leave its `with`
    block, or close it, to let the run end."""

    def __init__(self, run: Run, holder: Holder, steering: Steering) -> None:
        self.run = run
        self._holder = holder
        self._steering = steering

    def __repr__(self) -> str:
        return f"<Hold of {self.run.name}>"

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, *tasks: NewTask) -> tuple[str, ...]:
        """Add these tasks to the run; their ids. However many it has, one more costs the same."""
        self._steering.add(tasks)
        return tuple(task.id for task in tasks)

    def amend(self, *changes: Amendment) -> None:
        """Change tasks that do not run and have not finished. Those that had failed run again."""
        self._steering.amend(changes)

    def cancel(self, *tasks: str) -> None:
        """Let these tasks, by their ids, not run, or no more: what needs them is blocked."""
        self._steering.cancel(tasks)

    @property
    def is_over(self) -> bool:
        """Whether the run has been stopped, or this hold was not renewed in time."""
        return self._holder.is_over

    def close(self) -> None:
        """No more tasks come from here: the run ends when its tasks have."""
        self._holder.close()
