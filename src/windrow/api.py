"""Runs from Python: start one, look at it, steer it, as the command line does.

Rule 1: the process that manages a run is never the caller's. `run` starts it, and it lives on when
the caller ends; nothing is forked. Rule 2: a `Run` keeps no file open and looks at what is on disk
each time it is asked, so any number of threads and processes may use it.
Rule 3: what goes wrong is a `WindrowError`, with the message that the command line would print.

The names here are a promise to those who build on them: see docs/reference/python.md.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from windrow import calls
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
from windrow.app.execute import Prepared, prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.holding import Holder, hold_run
from windrow.app.new_tasks import Amendment, NewTask, Steering, runnable_of_new
from windrow.app.queues import no_answer, open_queue
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
from windrow.app.watching import Event, Watch
from windrow.errors import UserError, WindrowError
from windrow.formats.disk import replace_text
from windrow.model import NodeShape, is_never
from windrow.queues.port import QueueError
from windrow.records.lock import holder_of
from windrow.report.run.answers import Answer, answer
from windrow.report.run.page import page_now
from windrow.report.run.view import TaskView, task_views
from windrow.story.states import ACTIVE, RunState, TaskState

__all__ = [
    "Amendment",
    "Event",
    "Hold",
    "NewTask",
    "Order",
    "Plan",
    "PlannedJob",
    "Run",
    "RunState",
    "TaskState",
    "TaskView",
    "Watch",
    "attach",
    "hold_tasks",
    "largest_node",
    "plan",
    "plan_tasks",
    "run",
    "run_tasks",
    "runs",
]

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
    return _plan_of(prepare(_request(workflow, on, order)))


def _plan_of(prepared: Prepared) -> Plan:
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


def run_tasks(
    tasks: Sequence[NewTask],
    *,
    name: str = "tasks",
    folder: str | Path | None = None,
    on: str = "local",
    source: str = "Python",
    root: Path | None = None,
    **order: Unpack[Order],
) -> Run:
    """Start a run of tasks of which there is no workflow file. They run in `folder` (default: the
    current one).

    `name`: what the run is called; tasks of runs of one name teach each other how long they take.
    `source`: the kind of program that made them, for people.
    """
    paths = _begun(tasks, name, folder, on, source, root, order)
    start_manager(paths)
    return Run(paths)


def hold_tasks(
    tasks: Sequence[NewTask],
    *,
    who: str = "",
    first: Callable[[Path], None] | None = None,
    keep_s: float = KEEP_S,
    lease_s: float = LEASE_S,
    name: str = "tasks",
    folder: str | Path | None = None,
    on: str = "local",
    source: str = "Python",
    root: Path | None = None,
    **order: Unpack[Order],
) -> Hold:
    """As `run_tasks`, and the run is held from its start (see `Run.hold`).

    `first` is called with the folder of the run before any task can run.
    """
    paths = _begun(tasks, name, folder, on, source, root, order)
    if first is not None:
        first(paths.path)
    return Run(paths).hold(who, keep_s=keep_s, lease_s=lease_s)


def plan_tasks(
    tasks: Sequence[NewTask],
    *,
    name: str = "tasks",
    folder: str | Path | None = None,
    on: str = "local",
    **order: Unpack[Order],
) -> Plan:
    """What a run of these tasks would submit now. Nothing is written or submitted."""
    return _plan_of(_prepared(tasks, name, folder, on, "Python", None, order))


def largest_node(on: str = "local") -> NodeShape:
    """The most that a task can have of one node there, of each thing. OutsideError if the queue
    does not answer."""
    shapes = []
    for name in (each.strip() for each in on.split(",")):
        try:
            limits = open_queue(name).limits()
        except QueueError as error:
            raise no_answer(name, error) from error
        shapes += [limits.shape, *(kind.shape for kind in limits.kinds)]
    return NodeShape(
        max(shape.cores for shape in shapes),
        max((shape.memory_bytes or 0 for shape in shapes), default=0) or None,
    )


def _begun(
    tasks: Sequence[NewTask],
    name: str,
    folder: str | Path | None,
    on: str,
    source: str,
    root: Path | None,
    order: Order,
) -> RunPaths:
    root = root or own_root()
    refuse_foreign_root(root)
    return start_run(_prepared(tasks, name, folder, on, source, root, order), root)


def _prepared(
    tasks: Sequence[NewTask],
    name: str,
    folder: str | Path | None,
    on: str,
    source: str,
    root: Path | None,
    order: Order,
) -> Prepared:
    if not name or "/" in name or "\0" in name:
        raise UserError(f"a run cannot be called {name!r}; use letters, digits, - and _")
    # No file is called so; runs of one name may run at the same time, if they write other files.
    place = Path.cwd() / (folder or "") / f"{name}.{secrets.token_hex(4)}"
    request = replace(_request(place, on, order), source=source)
    return prepare(request, runnable_of_new(tasks, place, request.guess_s), root=root)


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
    def is_managed(self) -> bool:
        """Whether a process looks after it."""
        return holder_of(self._paths.lock) is not None

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

    @property
    def trouble(self) -> str:
        """Why the run gave up, as where a site takes none of its jobs; empty if it did not."""
        with self._look() as told:
            return told.story.trouble

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
        watch = Watch(self._paths, since)
        while True:
            is_active = self.state in ACTIVE
            new = watch.look()
            yield from new
            if not follow or not is_active:
                return
            if not new:
                time.sleep(_LOOK_S)

    def watch(self) -> Watch:
        """To look again and again at what is new; a look costs little, however long the run is."""
        return Watch(self._paths)

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

    def result(self, task: str) -> Any:
        """What a call of an `Executor` returned, or the exception that it raised; TaskError if it
        has done neither."""
        return calls.result(self.folder, task)

    def _repr_html_(self) -> str:
        states: dict[str, Counter[str]] = {}
        with self._look() as told:
            state = told.state
            for view in task_views(told):
                states.setdefault(view.kind, Counter())[view.state] += 1
        head = "".join(f"<th>{one}</th>" for one in TaskState)
        rows = ""
        for kind, of in states.items():
            numbers = "".join(f"<td>{of[one] or ''}</td>" for one in TaskState)
            rows += f"<tr><td>{escape(kind)}</td>{numbers}</tr>"
        title = f"<b>{escape(self.name)}</b>: {state}"
        return f"{title}<table><tr><th>kind</th>{head}</tr>{rows}</table>"

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

    def revive(self) -> None:
        """See to it that a process manages the run: one that was killed is replaced. UserError if
        the run has given up; then its tasks do not go on by themselves."""
        if self.run.is_managed and not self.is_over:
            return
        if trouble := self.run.trouble:
            raise UserError(f"{self.run.name} gave up: {trouble}")
        said = self._holder.hold
        with suppress(WindrowError):
            self.close()
        with closing(self.run._own()) as told:
            self._holder = hold_run(told, said.who, keep_s=said.keep_s, lease_s=said.lease_s)

    def close(self) -> None:
        """No more tasks come from here: the run ends when its tasks have."""
        self._holder.close()
