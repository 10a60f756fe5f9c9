"""Tasks that a program makes, with no file: what they are, and how they are handed to a run.

Law: who hands tasks on does not look at the run, so that one more costs the same however many it
has. The run's manager finds out after what they come, whether they fit, and answers
(`app.arrivals`).
"""

from __future__ import annotations

import os
import posixpath
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from windrow.app.background import start_manager
from windrow.app.facts import RunFacts
from windrow.app.requests import AMEND, CANCEL, NEW, RANK
from windrow.app.runs import RunPaths
from windrow.deletion import discard, put
from windrow.errors import STEERING, UserError
from windrow.files import disk_faults
from windrow.formats.native.commands import shell_named
from windrow.formats.native.places import Places
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.duration import parse_duration
from windrow.model.resources import GPUS, Counts, gpu_type, typed_gpus
from windrow.model.rules import Rules, Take
from windrow.model.size import parse_size
from windrow.records.compact import as_json
from windrow.records.lock import holder_of
from windrow.records.runnable_file import RunnableRecord

REFUSED = "refused-"
_LOOK_S = 0.005
_SLOWEST_S = 0.02
_ASK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task for a run, with what a workflow file says by the same names.

    `command` is a text for the shell (as `shell: strict`), or a program and its arguments. Files
    are named from the folder of the run's workflow, where the task runs. It comes after the tasks
    in `after`, and after those that write its inputs. Durations and sizes are numbers (seconds,
    bytes), or texts such as "20m" and "2GiB"; lists of them are for one try after the other.
    Of tasks in `after_any` it is enough that they are over; it is skipped if one in `after_failed`
    succeeds. `takes`: of limits of the run, whose
    sizes are in `limits` the first time that a task names them.
    """

    id: str
    command: str | Sequence[str]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    after: Sequence[str] = ()
    cores: int = 1
    nodes: int = 0
    memory: int | str | Sequence[int | str] = 0
    disk: int | str = 0
    gpus: int | str = 0
    resources: Mapping[str, int] = field(default_factory=dict)
    runtime: float | str | None = None
    time_limit: float | str | Sequence[float | str] | None = None
    retries: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    worker: Sequence[str] = ()
    after_any: Sequence[str] = ()
    after_failed: Sequence[str] = ()
    takes: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    stops_run: bool = False
    """If it fails, nothing more of the run starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What is to change of a task that does not run and has not finished: what is None stays.

    `after` replaces all tasks after which it came; it comes also after those that write its inputs.
    """

    id: str
    command: str | Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    after: Sequence[str] | None = None
    cores: int | None = None
    nodes: int | None = None
    memory: int | str | None = None
    disk: int | str | None = None
    gpus: int | str | None = None
    resources: Mapping[str, int] | None = None
    runtime: float | str | None = None
    time_limit: float | str | None = None
    retries: int | None = None
    env: Mapping[str, str] | None = None
    priority: int | None = None

    def settled(self) -> Amendment:
        """The same with durations and sizes as numbers, and the command for a program. UserError
        if that cannot be."""
        command = self.command
        if isinstance(command, str):
            command = (*shell_named(("strict",)), command)
        memory, disk = (None if size is None else _bytes(size) for size in (self.memory, self.disk))
        runtime = None if self.runtime is None else _seconds(self.runtime)
        limit = None if self.time_limit is None else _seconds(self.time_limit)
        settled = replace(self, command=command, memory=memory, disk=disk)
        return replace(settled, runtime=runtime, time_limit=limit)

    def of(self, task: Task, step: Step) -> tuple[Task, Step]:
        """The task as it is then, and how it is executed; settled."""
        counts = dict(task.counts)
        if self.resources is not None:
            counts = {name: n for name, n in counts.items() if _is_gpus(name)} | {**self.resources}
        if self.gpus is not None:
            counts = {name: n for name, n in counts.items() if not _is_gpus(name)}
            counts |= _gpus(self.gpus)
        said = {
            "cores": self.cores,
            "nodes": self.nodes,
            "memory_bytes": self.memory,
            "disk_bytes": self.disk,
            "runtime_s": self.runtime,
            "parents": None if self.after is None else tuple(dict.fromkeys(self.after)),
            "inputs": None if self.inputs is None else _named(self.inputs),
            "rules": self._rules(task.rules),
        }
        of_step = {
            "command": None if self.command is None else tuple(self.command),
            "retries": self.retries,
            "limit_s": self.time_limit,
            "env": None if self.env is None else tuple(sorted(self.env.items())),
            "runtime_known": None if self.runtime is None else True,
        }
        if self.command is not None:  # of another command it is not known where it writes
            of_step["elsewhere"] = ()
        amended: Any = {name: value for name, value in said.items() if value is not None}
        steps: Any = {name: value for name, value in of_step.items() if value is not None}
        held = tuple(sorted((name, number) for name, number in counts.items() if number))
        return replace(task, counts=held, **amended), replace(step, **steps)

    def _rules(self, rules: Rules) -> Rules | None:
        """Those of the task then: what is said is for all tries. None: as they are."""
        said: dict[str, Any] = {}
        if self.priority is not None:
            said["priority"] = self.priority
        if self.memory is not None:
            said["memories"] = ()
        if self.time_limit is not None:
            said["limits_s"] = ()
        return replace(rules, **said) if said else None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Tasks, by their ids, and the priority that they are to have."""

    tasks: tuple[str, ...]
    priority: int


def _tries(value: Any, read: Callable[[Any], Any]) -> tuple[Any, ...]:
    """What each try is to have."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (read(value),)
    return tuple(read(one) for one in value)


def _first(tries: tuple[Any, ...]) -> Any:
    return tries[0] if tries else 0


def _later(tries: tuple[Any, ...]) -> tuple[Any, ...]:
    return tries if len(tries) > 1 else ()


def _named(files: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.normpath, files)))


def record_of_new(tasks: Sequence[NewTask], workflow: Path, guess_s: float) -> RunnableRecord:
    """What these tasks are to a run of this workflow file. UserError if one cannot be."""
    places = Places(workflow)
    for task in tasks:
        _refuse(task, places)
    made = (_task(task, guess_s) for task in tasks)
    steps = (_step(task, places.base) for task in tasks)
    return RunnableRecord(workflow.stem, list(made), [], list(steps))


def runnable_of_new(tasks: Sequence[NewTask], workflow: Path, guess_s: float) -> Runnable:
    """A workflow of these tasks alone. UserError if they make none."""
    record = record_of_new(tasks, workflow, guess_s)
    alone, _ = linked(record.tasks, lambda _: None)
    return Runnable(Workflow.from_tasks(record.name, limited(alone, {})), tuple(record.steps))


def limited(tasks: Sequence[Task], known: Mapping[str, int]) -> list[Task]:
    """The same with what there is of the limits that they take of: as known before, else as the
    first of them says it. UserError if one takes more."""
    most = dict(known)
    return [_limited(task, most) for task in tasks]


def _limited(task: Task, known: dict[str, int]) -> Task:
    takes = []
    for take in task.rules.takes:
        most = known.get(take.name, take.most)
        if most < take.number:
            raise UserError(
                f"task {task.id} takes {take.number} of {take.name}, of which there is {most}; "
                "say in limits how much there is"
            )
        known[take.name] = most
        takes.append(take._replace(most=most))
    if not takes:
        return task
    return replace(task, rules=replace(task.rules, takes=tuple(takes)))


def linked(
    tasks: Sequence[Task], maker_of: Callable[[str], str | None]
) -> tuple[list[Task], list[tuple[str, str]]]:
    """The tasks after those that write what they read; and what no task writes, each with who
    reads it. `maker_of`: which of the tasks before them writes a file. UserError if two write the
    same."""
    makers: dict[str, str] = {}
    for task in tasks:
        for file in task.outputs:
            if (first := makers.setdefault(file, task.id)) != task.id:
                raise UserError(f"{task.id} writes {file}, and so does {first}")
    linked = []
    outside = []
    for task in tasks:
        parents = dict.fromkeys(task.parents)
        for file in task.inputs:
            above = file
            while (maker := makers.get(above) or maker_of(above)) is None:
                if (up := posixpath.dirname(above)) in ("", above):
                    break
                above = up
            if maker is None:
                outside.append((task.id, file))
            elif maker == task.id:
                raise UserError(f"{task.id} reads {file}, which it writes")
            else:
                parents[maker] = None
        linked.append(replace(task, parents=tuple(parents)))
    return linked, outside


def _task(task: NewTask, guess_s: float) -> Task:
    counts = {**task.resources} | {name: n for name, n in _gpus(task.gpus) if n}
    return Task(
        id=task.id,
        runtime_s=guess_s if task.runtime is None else _seconds(task.runtime),
        kind=task.kind or task.id,
        parents=tuple(dict.fromkeys([*task.after, *task.after_any, *task.after_failed])),
        inputs=_named(task.inputs),
        outputs=_named(task.outputs),
        cores=task.cores,
        nodes=task.nodes,
        memory_bytes=_first(_tries(task.memory, _bytes)),
        disk_bytes=_bytes(task.disk),
        counts=tuple(sorted(counts.items())),
        rules=Rules(
            takes=tuple(Take(name, n, task.limits.get(name, 0)) for name, n in task.takes.items()),
            priority=task.priority,
            loose=tuple(
                name for name in (*task.after_any, *task.after_failed) if name not in task.after
            ),
            if_failed=tuple(name for name in task.after_failed if name not in task.after),
            stops=task.stops_run,
            memories=_later(_tries(task.memory, _bytes)),
            limits_s=_later(_tries(task.time_limit, _seconds)),
        ),
    )


def _step(task: NewTask, folder: str) -> Step:
    command = tuple(task.command)
    if isinstance(task.command, str):
        command = (*shell_named(("strict",)), task.command)
    env = tuple(sorted(task.env.items()))
    limits_s = _tries(task.time_limit, _seconds)
    tries = max(len(limits_s), len(_tries(task.memory, _bytes)), 1)
    is_known = task.runtime is not None
    return Step(
        command,
        folder,
        env,
        max(task.retries, tries - 1),
        runtime_known=is_known,
        limit_s=_first(limits_s) or 0.0,
        worker=tuple(task.worker),
    )


def _seconds(value: float | str) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    return value


def _bytes(value: int | str) -> int:
    if isinstance(value, str):
        return parse_size(value)
    return value


def _is_gpus(name: str) -> bool:
    return name == GPUS or bool(gpu_type(name))


def _gpus(value: int | str) -> Counts:
    """What is counted for a number of GPUs, or of GPUs of a type (`a100:2`)."""
    if isinstance(value, int):
        return ((GPUS, value),)
    found = typed_gpus(value)
    if found is None:
        raise UserError(f"gpus are {value!r}; write a number, or a type with one: 'a100:2'")
    return found


def _refuse(task: NewTask, places: Places) -> None:
    words = [task.command] if isinstance(task.command, str) else list(task.command)
    if not task.id or STEERING.search(task.id + task.kind):
        raise UserError(f"a task cannot be called {task.id!r}; use characters that can be printed")
    if not words or not words[0]:
        raise UserError(f"task {task.id} has no command; say what it runs")
    if any("\0" in text for text in (*words, *task.inputs, *task.outputs, *task.env.values())):
        raise UserError(f"task {task.id} has a zero byte in a text; no program takes one")
    if not isinstance(task.retries, int) or task.retries < 0:
        raise UserError(
            f"task {task.id} is to be tried again {task.retries!r} times; say how often"
        )
    for tries in (_tries(task.memory, _bytes), _tries(task.time_limit, _seconds)):
        if list(tries) != sorted(tries):
            raise UserError(f"task {task.id} has less at a later try; give each as much as before")
    if bad := [n for n in (*task.takes.values(), *task.limits.values()) if n < 1]:
        raise UserError(f"task {task.id} takes {bad[0]} of a limit; name numbers from 1")
    for name in task.outputs:
        why, fix = places.why_not(os.path.normpath(Path(places.base, name)), outside=False)
        if why:
            raise UserError(f"{task.id} writes {name}, {why}; {fix.partition(', or')[0]}")


class Steering:
    """Hands tasks to one run, and says what is to change of those that it has. Any number of
    threads may use it."""

    def __init__(self, paths: RunPaths, facts: RunFacts) -> None:
        self._paths = paths
        self._workflow = facts.request.workflow
        self._guess_s = facts.request.guess_s

    def add(self, tasks: Sequence[NewTask]) -> None:
        """Add these tasks. They are in the run on return; UserError, and none is, if one does not
        go with it."""
        if not tasks:
            return
        self._ask(NEW, record_of_new(tasks, self._workflow, self._guess_s))

    def amend(self, changes: Sequence[Amendment]) -> None:
        """Change tasks that do not run; UserError, and none is, if one runs or has finished."""
        if changes:
            self._ask(AMEND, [change.settled() for change in changes])

    def cancel(self, tasks: Sequence[str]) -> None:
        """Let these tasks not run, or no more: what needs them is blocked."""
        if tasks:
            self._ask(CANCEL, list(tasks))

    def rank(self, tasks: Sequence[str], priority: int) -> None:
        """Give these tasks another priority, wherever they are."""
        if tasks:
            self._ask(RANK, Ranking(tuple(tasks), priority))

    def _ask(self, what: str, content: object) -> None:
        name = secrets.token_hex(8)
        request = self._paths.path / f"{what}{name}"
        with disk_faults(f"{request} cannot be written"):
            half = self._paths.path / f".{what}{name}"
            half.write_bytes(as_json(content))
            put(half, request)
        self._wait(request, name)

    def _wait(self, request: Path, name: str) -> None:
        """Wait until the run's manager has taken the request; start one if there is none."""
        pause_s = _LOOK_S
        asked_s = time.monotonic() - _ASK_S + _SLOWEST_S
        while request.exists():
            now = time.monotonic()
            if now >= asked_s + _ASK_S:
                asked_s = now
                if holder_of(self._paths.lock) is None and request.exists():
                    start_manager(self._paths, retry=False)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _SLOWEST_S)
        answer = self._paths.path / f"{REFUSED}{name}"
        if answer.exists():
            why = answer.read_text()
            discard(answer)
            raise UserError(f"{why}; nothing has changed")
