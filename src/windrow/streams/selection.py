"""Which of a workflow's eligible tasks starts first: at random, as in the paper, or by the
workflow's structure.

A selection ranks the tasks of a workflow once, when it arrives; random has no ranks and draws each
time. Draws come from a small generator of our own (Lehmer's, modulus 2^31 - 1), so that the
compiled simulation can make the same ones.
"""

import hashlib
import heapq
from collections.abc import Callable, Mapping
from typing import Protocol

from windrow.errors import unknown_name
from windrow.model import Workflow

_MODULUS = 2**31 - 1
_FACTOR = 48_271

Ranks = list[int]
Selection = Callable[[Workflow], Ranks | None]


def at_random(workflow: Workflow) -> Ranks | None:  # noqa: ARG001
    """No ranks: drawn each time, all alike."""
    return None


def by_descendants(workflow: Workflow) -> Ranks:
    """The task with most descendants first."""
    below = [0] * len(workflow)
    count = [0] * len(workflow)
    for v in reversed(workflow.order.tolist()):
        # Sets of descendants as bits of one integer: a union is one operation on machine words.
        for c in workflow.children.of(v).tolist():
            below[v] |= below[c] | (1 << c)
        count[v] = below[v].bit_count()
    return _ranks([-c for c in count])


def by_longest_path(workflow: Workflow) -> Ranks:
    """The task with most hops to an exit first."""
    hops = [0] * len(workflow)
    for v in reversed(workflow.order.tolist()):
        hops[v] = max((1 + hops[c] for c in workflow.children.of(v).tolist()), default=0)
    return _ranks([-h for h in hops])


SELECTIONS: Mapping[str, Selection] = {
    "random": at_random,
    "descendants": by_descendants,
    "longest-path": by_longest_path,
}
"""By the names that users write."""


def find_selection(name: str) -> Selection:
    """The selection of that name. UserError if there is none."""
    if name not in SELECTIONS:
        raise unknown_name("selection", name, SELECTIONS)
    return SELECTIONS[name]


def first_draw(seed: int, number: int) -> int:
    """Where the draws of one workflow begin: the same for the same seed and number everywhere."""
    digest = hashlib.sha256(f"stream\0{seed}\0{number}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % (_MODULUS - 1)


class Ready(Protocol):
    """The eligible tasks of a workflow that do not run."""

    def __len__(self) -> int: ...

    def add(self, task: int) -> None:
        """The task may run now."""

    def choose(self) -> int:
        """The task to start next; it stays until it is taken."""

    def take(self) -> None:
        """The task chosen last has started."""


class RandomReady:
    """Every task is as likely as any other."""

    def __init__(self, state: int) -> None:
        self._tasks: list[int] = []
        self._state = state
        self._at = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: int) -> None:
        """The task may run now."""
        self._tasks.append(task)

    def choose(self) -> int:
        """Draws one."""
        self._state = self._state * _FACTOR % _MODULUS
        self._at = self._state % len(self._tasks)
        return self._tasks[self._at]

    def take(self) -> None:
        """The last task moves to the gap."""
        last = self._tasks.pop()
        if self._at < len(self._tasks):
            self._tasks[self._at] = last


class RankedReady:
    """The task of lowest rank first."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, task: int) -> None:
        """The task may run now."""
        heapq.heappush(self._heap, (self._ranks[task], task))

    def choose(self) -> int:
        """The one of lowest rank."""
        return self._heap[0][1]

    def take(self) -> None:
        """It has started."""
        heapq.heappop(self._heap)


def _ranks(keys: list[int]) -> Ranks:
    """Places of the tasks in the order of their keys; equals by number."""
    order = sorted(range(len(keys)), key=lambda v: (keys[v], v))
    ranks = [0] * len(keys)
    for place, v in enumerate(order):
        ranks[v] = place
    return ranks
