"""A workflow that a program builds task by task."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from windrow.api import NewTask, Order, Plan, Run, plan_tasks, run_tasks
from windrow.app.new_tasks import runnable_of_new
from windrow.errors import UserError
from windrow.formats.open import read_runnable
from windrow.model import Runnable, Step, Task, Workflow


class TaskRef(str):
    """A task of a flow, by its id: for `after`, and to look it up in a run."""

    __slots__ = ("outputs",)

    outputs: tuple[str, ...]
    """Files that it writes: `inputs` of others."""


class Flow:
    """Tasks with their files and dependencies. `folder`: where they run, and from where files are
    named (default: the current one)."""

    def __init__(self, name: str = "flow", *, folder: str | Path | None = None) -> None:
        self.name = name
        self.folder = Path.cwd() / (folder or "")
        self._tasks: dict[str, NewTask] = {}
        self._of_kind = Counter[str]()

    @classmethod
    def read(cls, path: str | Path) -> Flow:
        """A flow of the tasks in a workflow file, of any format that `windrow.run` takes; more can
        be added. UserError if the file says what a flow cannot: then run the file itself."""
        runnable = read_runnable(path)
        workflow = runnable.workflow
        flow = cls(workflow.name, folder=Path(path).absolute().parent)
        if workflow.has_temporary:
            raise _beyond(path, "has files that are not kept")
        place = flow.folder / f"{flow.name}.flow"
        for task, step in zip(workflow, runnable.steps, strict=True):
            made = _new_of(task, step)
            if _plain(runnable_of_new([replace(made, after=())], place, 0.0)) != _plain(
                Runnable(Workflow.from_tasks(flow.name, [_alone(task)]), (step,))
            ):
                raise _beyond(path, f"says something of task {task.id}")
            flow._tasks[task.id] = made
        return flow

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> tuple[NewTask, ...]:
        """All of them, in the order in which they were made."""
        return tuple(self._tasks.values())

    def task(
        self,
        command: str | Sequence[str],
        *,
        id: str | None = None,  # noqa: A002  (as in a workflow file)
        inputs: str | Sequence[str] = (),
        outputs: str | Sequence[str] = (),
        after: str | Sequence[str] = (),
        cores: int = 1,
        nodes: int = 0,
        memory: int | str = 0,
        disk: int | str = 0,
        gpus: int | str = 0,
        resources: Mapping[str, int] | None = None,
        runtime: float | str | None = None,
        time_limit: float | str | None = None,
        retries: int = 0,
        env: Mapping[str, str] | None = None,
        kind: str = "",
        worker: Sequence[str] = (),
    ) -> TaskRef:
        """Add a task, as a workflow file would say it (see `NewTask`). Without an id it is called
        after its kind, or `task`, and numbered."""
        name = id if id is not None else self._next(kind or "task")
        if name in self._tasks:
            raise UserError(f"there is a task {name} in {self.name} already; give each another id")
        made = NewTask(
            id=name,
            command=command,
            inputs=_each(inputs),
            outputs=_each(outputs),
            after=_each(after),
            cores=cores,
            nodes=nodes,
            memory=memory,
            disk=disk,
            gpus=gpus,
            resources=dict(resources or {}),
            runtime=runtime,
            time_limit=time_limit,
            retries=retries,
            env=dict(env or {}),
            kind=kind or ("task" if id is None else name),
            worker=tuple(worker),
        )
        self._tasks[name] = made
        ref = TaskRef(name)
        ref.outputs = tuple(made.outputs)
        return ref

    def _next(self, kind: str) -> str:
        while True:
            self._of_kind[kind] += 1
            if (name := f"{kind}-{self._of_kind[kind]}") not in self._tasks:
                return name

    def plan(self, on: str = "local", **order: Unpack[Order]) -> Plan:
        """What a run would submit now. Nothing is written or submitted."""
        return plan_tasks(self.tasks, name=self.name, folder=self.folder, on=on, **order)

    def run(self, on: str = "local", *, wait: bool = False, **order: Unpack[Order]) -> Run:
        """Start it; it lives on when this program ends. `wait`: return when it is over."""
        run = run_tasks(self.tasks, name=self.name, folder=self.folder, on=on, **order)
        if wait:
            run.wait()
        return run

    def __repr__(self) -> str:
        return f"<Flow {self.name} of {len(self)} tasks>"

    def _repr_html_(self) -> str:
        kinds = Counter(task.kind for task in self.tasks)
        rows = "".join(
            f"<tr><td>{html.escape(kind)}</td><td>{number}</td></tr>"
            for kind, number in kinds.items()
        )
        return (
            f"<b>{html.escape(self.name)}</b>"
            f"<table><tr><th>kind</th><th>tasks</th></tr>{rows}</table>"
        )


def _beyond(path: str | Path, what: str) -> UserError:
    return UserError(f"{path} {what}, which a flow cannot hold; run the file itself: windrow.run")


def _new_of(task: Task, step: Step) -> NewTask:
    rules = task.rules
    return NewTask(
        id=task.id,
        command=step.command,
        inputs=task.inputs,
        outputs=task.outputs,
        after=task.parents,
        cores=task.cores,
        nodes=task.nodes,
        memory=rules.memories or task.memory_bytes,
        disk=task.disk_bytes,
        resources=dict(task.counts),
        runtime=task.runtime_s if step.runtime_known else None,
        time_limit=rules.limits_s or step.limit_s or None,
        retries=step.retries,
        env=dict(step.env),
        kind=task.kind,
        worker=step.worker,
        takes={take.name: take.number for take in rules.takes},
        limits={take.name: take.most for take in rules.takes},
        priority=rules.priority,
        stops_run=rules.stops,
    )


def _alone(task: Task) -> Task:
    return replace(task, parents=(), command=())


def _plain(runnable: Runnable) -> tuple[Task, Step]:
    """One task, without what does not matter: what is not known of its run time, and where in its
    command the names of outputs are."""
    (task,) = runnable.workflow
    (step,) = runnable.steps
    if not step.runtime_known:
        task = replace(task, runtime_s=0.0)
    return task, replace(step, elsewhere=())


def _each(names: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    return tuple(names)
