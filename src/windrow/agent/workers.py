"""The workers of a node: processes that have loaded what tasks need, and fork for each of them
(`worker`).

Rule 1: one worker serves one set-up: a command, a working folder, and an environment. It is started
for the first task that names it, and ends with the agent. Rule 2: a worker saves time and is needed
for nothing: what it cannot start, for whatever reason, is handed back with that reason. Rule 3: a
task that it has started is a child of the agent, not of the worker, and outlives it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from windrow.agent.guard import adopt_orphans
from windrow.agent.piped import Piped

MOST = 4
"""How many workers a node keeps; one that has nothing to do gives way to another."""

T = TypeVar("T")


class SetUp(NamedTuple):
    """What one worker serves."""

    command: tuple[str, ...]
    workdir: str
    env: tuple[tuple[str, str], ...]


def set_up(command: tuple[str, ...], workdir: str, env: Mapping[str, str]) -> SetUp:
    """What serves a task with this worker; `env` as in an `Order`. What tells tasks apart is not of
    it."""
    common = {name: value for name, value in env.items() if not name.startswith("WINDROW_")}
    return SetUp(command, workdir, tuple(sorted(common.items())))


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What became of a task: its process, or why the worker did not start one."""

    given: T
    pid: int
    why_not: str


@dataclass
class _Worker(Generic[T]):
    process: Piped
    waiting: dict[int, T] = field(default_factory=dict)
    has_served: bool = False


class Workers(Generic[T]):
    """The workers of this node, by their set-ups."""

    def __init__(self) -> None:
        self._workers: dict[SetUp, _Worker[T]] = {}
        self._broken: dict[SetUp, str] = {}
        self._handed_back: list[Answer[T]] = []
        self._keys = 0

    @property
    def waiting(self) -> list[T]:
        """What was given, and has no answer yet."""
        asked = [one for worker in self._workers.values() for one in worker.waiting.values()]
        return asked + [answer.given for answer in self._handed_back]

    def give(
        self,
        needed: SetUp,
        program: str,
        command: Sequence[str],
        env: Mapping[str, str],
        out: str,
        cores: Sequence[int],
        given: T,
    ) -> None:
        """Let a worker start this, which prints to `out`; an answer comes for what was given.

        The current folder is that of the task. `program` is the command's, found.
        """
        why_not = self._broken.get(needed, "")
        worker = None
        if not why_not:
            worker, why_not = self._worker(needed, env)
        if worker is None:
            self._handed_back.append(Answer(given, 0, why_not))
            return
        self._keys += 1
        worker.waiting[self._keys] = given
        order = {
            "key": self._keys,
            "program": program,
            "command": list(command),
            "cwd": needed.workdir,
            "env": dict(env),
            "out": out,
            "cores": list(cores),
        }
        worker.process.send(json.dumps(order).encode() + b"\n")

    def answers(self) -> list[Answer[T]]:
        """What came of what was given, as far as that is known and was not said yet."""
        found = self._handed_back
        self._handed_back = []
        for needed, worker in list(self._workers.items()):
            for said in worker.process.read():
                if "pid" in said:
                    worker.has_served = True
                    found.append(Answer(worker.waiting.pop(said["key"]), said["pid"], ""))
                else:
                    found.append(Answer(worker.waiting.pop(said["key"]), 0, said["cold"]))
                    if said.get("for_all"):
                        self._broken[needed] = said["cold"]
            if worker.process.is_lost or (needed in self._broken and not worker.waiting):
                found += self._end(needed, worker)
        return found

    def kill(self) -> None:
        """End all of them; what they have started lives on."""
        for worker in self._workers.values():
            worker.process.kill()

    def _worker(self, needed: SetUp, env: Mapping[str, str]) -> tuple[_Worker[T] | None, str]:
        if (known := self._workers.pop(needed, None)) is not None:
            self._workers[needed] = known  # the last one is the one used last
            return known, ""
        if not adopt_orphans():
            return None, "this system has no reaper of orphans"
        self._make_room()
        own = {name: value for name, value in env.items() if not name.startswith("WINDROW_")}
        try:
            process = Piped(needed.command, own)
        except OSError as error:
            self._broken[needed] = f"it cannot start {needed.command[0]!r}: {error.strerror}"
            return None, self._broken[needed]
        self._workers[needed] = started = _Worker[T](process)
        return started, ""

    def _make_room(self) -> None:
        idle = [needed for needed, worker in self._workers.items() if not worker.waiting]
        for needed in idle[: max(0, len(self._workers) - MOST + 1)]:
            self._workers.pop(needed).process.end()

    def _end(self, needed: SetUp, worker: _Worker[T]) -> list[Answer[T]]:
        """It has ended, or is of no use; what waits is handed back."""
        del self._workers[needed]
        worker.process.end()
        why = "it ended; what it said is in the output of the job"
        if not worker.has_served:
            self._broken.setdefault(needed, why)
        return [Answer(given, 0, why) for given in worker.waiting.values()]
