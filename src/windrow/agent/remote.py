"""Another node of the allocation: one long-lived step there, spoken to in JSON lines through pipes.

When the step ends, for whatever reason, the node is lost with all that ran on it.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from windrow.agent.order import Committed, Order, to_line
from windrow.agent.piped import Piped
from windrow.agent.runner import Runner
from windrow.errors import OutsideError
from windrow.model.attempt import Attempt


class RemoteNode(Piped):
    """The processes of another node."""

    def __init__(self, host: str, command: tuple[str, ...]) -> None:
        self.host = host
        self.is_noticed = False
        self.running: set[int] = set()
        """The tasks that run there."""
        self._committed: list[Committed] = []
        self.said: list[Any] = []
        """What the mover of that node said to others, and was not passed on yet."""
        try:
            super().__init__(command)
        except OSError as error:
            raise OutsideError(
                f"cannot start anything on node {host}: {command[0]}: {error.strerror}"
            ) from error

    @property
    def is_idle(self) -> bool:
        """Whether no task runs there."""
        return not self.running

    def start(self, order: Order) -> None:
        """Start it there."""
        self.running.add(order.task)
        self.send(to_line(order))

    def signal(self, number: int, tasks: Iterable[int] | None = None) -> None:
        """Send a signal to these tasks, or to all. Those that do not run there are passed over."""
        if tasks is None:
            chosen = None
        else:
            chosen = sorted(self.running.intersection(tasks))
        if chosen != []:
            self.send(json.dumps({"signal": int(number), "tasks": chosen}).encode() + b"\n")

    def ask(self, tasks: Iterable[int]) -> None:
        """Ask those of these tasks that run there for checkpoints."""
        if chosen := sorted(self.running.intersection(tasks)):
            self.send(json.dumps({"asked": chosen}).encode() + b"\n")

    def commit(self, paths: Sequence[str]) -> None:
        """Have these files, which were made there, copied to the shared file system."""
        self.send(json.dumps({"to_commit": paths}).encode() + b"\n")

    def drop(self, paths: Sequence[str]) -> None:
        """Nothing needs these files of that node any more."""
        self.send(json.dumps({"to_drop": paths}).encode() + b"\n")

    def take_committed(self) -> list[Committed]:
        """Files for which a commit has ended since the last call, each with what went wrong, if
        anything did."""
        committed = self._committed
        self._committed = []
        return committed

    def hear(self, place: int, what: Any) -> None:
        """Pass on what the mover of the node at this place said."""
        self.send(json.dumps({"place": place, "what": what}).encode() + b"\n")

    def look_again_s(self) -> float | None:
        """Seconds until `collect` should be called though nothing came; None for whenever something
        does."""
        if self.has_unsent:
            return 0.05
        return None

    def collect(self) -> list[Attempt]:
        """The attempts that have ended there. Sets `is_lost` when the step is gone. OutsideError if
        it said why."""
        results = []
        for record in self.read():
            if "broken" in record:
                raise OutsideError(f"node {self.host}: {record['broken']}")
            if "notice" in record:
                self.is_noticed = True
                continue
            if "said" in record:
                self.said += record["said"]
                continue
            if "committed" in record:
                self._committed += [Committed(*one) for one in record["committed"]]
                continue
            result = Attempt.of(record)
            self.running.discard(result.task)
            results.append(result)
        return results


def let_end(
    nodes: Sequence[Runner | RemoteNode],
    patience_s: float,
    wait: Callable[[float], None],
    take: Callable[[Attempt], None],
) -> None:
    """Tell all tasks there to end (SIGTERM), and give them the time; `take` gets what comes of it,
    as it comes."""
    for node in nodes:
        if not node.is_idle:
            node.signal(signal.SIGTERM)
    end = time.monotonic() + patience_s
    while not all(node.is_idle for node in nodes) and time.monotonic() < end:
        wait(0.05)
        for node in nodes:
            for result in node.collect():
                take(result)
