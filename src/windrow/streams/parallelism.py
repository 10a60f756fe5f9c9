"""The exact level of parallelism of what is left of a workflow, kept up to date as tasks complete.

Dilworth: as many paths as tasks can stand side by side are needed to cover all. The least number of
covering paths is a minimum flow in which each task carries at least its cores (0 once it has
completed); see `kernels/antichain.py`, which computes it once and fast. Here the flow is kept,
together with a *witness*: a set of tasks, none of which precedes another, that together need as
many processors as there are paths.

Law: while no task of the witness completes, the level of parallelism cannot change, and nothing is
computed. When one does, the flow is lessened until no path can be spared, which also finds the next
witness. The witness nearest to the exits is taken, because its tasks complete last.

Nodes of the residual network: v is the task's inner side towards its parents, v + n the one towards
its children.
"""

from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from windrow.model import Workflow

_UNLIMITED = 1 << 62


class ExactParallelism:
    """`value` is the most processors that the tasks left can ever use at once."""

    def __init__(self, workflow: Workflow, done: Iterable[int] = ()) -> None:
        n = len(workflow)
        self._n = n
        self._least: list[int] = workflow.cores.tolist()
        for v in done:
            self._least[v] = 0
        self._parents: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self._children: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        sources = workflow.children.sources().tolist()
        for e, (v, c) in enumerate(zip(sources, workflow.children.index.tolist(), strict=True)):
            self._children[v].append((c, e))
            self._parents[c].append((v, e))
        self._flow = [0] * len(sources)
        self._through = [0] * n
        self._begin = [0] * n
        self._end = [0] * n
        self._cover(workflow.order.tolist())
        self.value = sum(self._begin)
        self._witness: frozenset[int] = frozenset()
        self._lessen()

    def finish(self, task: int) -> None:
        """The task has completed."""
        self._least[task] = 0
        if task in self._witness:
            self._lessen()

    def _cover(self, order: list[int]) -> None:
        """A flow that covers every task: each path continues while it can, first to what is not
        covered yet."""
        for v in order:
            self._begin[v] = max(0, self._least[v] - self._through[v])
            self._through[v] += self._begin[v]
            left = self._through[v]
            for i, (c, e) in enumerate(self._children[v]):
                is_last = i + 1 == len(self._children[v])
                if is_last:
                    amount = left
                else:
                    amount = min(left, max(0, self._least[c] - self._through[c]))
                self._flow[e] += amount
                self._through[c] += amount
                left -= amount
            self._end[v] = left

    def _lessen(self) -> None:
        """Take back what can be spared, then keep the witness that nothing more can."""
        while True:
            came, sink = self._search()
            if sink < 0:
                break
            self._take_back(came, sink)
        n = self._n
        members = (v for v in range(n) if self._least[v] and v + n in came and v not in came)
        self._witness = frozenset(members)
        assert sum(self._least[v] for v in self._witness) == self.value, "the cut proves the cover"

    def _search(self) -> tuple[dict[int, int], int]:
        """From the ends of paths through the residual network: where each node was reached from,
        and a beginning."""
        n = self._n
        came = {v + n: -1 for v in range(n) if self._end[v] > 0}
        queue = deque(came)
        while queue:
            node = queue.popleft()
            if node < n and self._begin[node] > 0:
                return came, node
            for target, room in self._arcs(node):
                if room > 0 and target not in came:
                    came[target] = node
                    queue.append(target)
        return came, -1

    def _arcs(self, node: int) -> list[tuple[int, int]]:
        """Where one more unit can go from here, and how many."""
        n = self._n
        if node < n:
            return [
                (node + n, _UNLIMITED),
                *((p + n, self._flow[e]) for p, e in self._parents[node]),
            ]
        v = node - n
        return [
            (v, self._through[v] - self._least[v]),
            *((c, _UNLIMITED) for c, _ in self._children[v]),
        ]

    def _take_back(self, came: dict[int, int], sink: int) -> None:
        """Move as many units as the path to `sink` allows from an end to a beginning, where they
        vanish."""
        path = [sink]
        while came[path[-1]] >= 0:
            path.append(came[path[-1]])
        path.reverse()
        source = path[0] - self._n
        steps = list(pairwise(path))
        rooms = (room for a, b in steps for target, room in self._arcs(a) if target == b)
        amount = min(self._end[source], self._begin[sink], *rooms)
        for a, b in steps:
            self._push(a, b, amount)
        self._end[source] -= amount
        self._begin[sink] -= amount
        self.value -= amount

    def _push(self, a: int, b: int, amount: int) -> None:
        n = self._n
        if b == a + n:
            self._through[a] += amount
        elif b == a - n:
            self._through[b] -= amount
        elif a < n:
            self._flow[next(e for p, e in self._parents[a] if p == b - n)] -= amount
        else:
            self._flow[next(e for c, e in self._children[a - n] if c == b)] += amount
