"""A workflow that a program builds task by task."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from windrow.api import NewTask, Order, Plan, Run, plan_tasks, run_tasks
from windrow.errors import UserError


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


def _each(names: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    return tuple(names)
