"""How far one workflow is: its eligible sets of every generation, kept up to date as tasks
complete.

Ilyushkin, Ghit and Epema (2015), section III-A. The eligible set (generation 0) holds the tasks
that run or could run. Generation i + 1 holds what becomes eligible when exactly the generations up
to i have completed. So the generation of a task that has not completed is 0 if no parent is
left, else one more than the highest generation of a parent left; of a workflow that has not started
it is the task's level. The widest generation is the token approximation of the level of
parallelism.

Rule 1: generations only fall. A task's *support* counts its parents of the generation just below
its own; it falls when the last of them is gone or has fallen, and only then are its parents looked
at again. So all completions of a workflow together cost at most (levels x edges), if recomputing
at each costs (tasks x edges).

Rule 2: sizes are counted in processors. A task of several cores counts as many.
"""

from collections import deque

from windrow.model import Workflow
from windrow.streams.parallelism import ExactParallelism

_GONE = -1


class Progress:
    """The remaining part of one workflow. `finish` is the only change."""

    def __init__(self, workflow: Workflow) -> None:
        children = workflow.children
        parents = workflow.parents
        self.workflow = workflow
        self.cores: list[int] = workflow.cores.tolist()
        self.left = len(workflow)
        """Tasks that have not completed."""
        self.generations: list[int] = workflow.levels.tolist()
        """Of each task; -1 once it has completed."""
        self.sizes: list[int] = [0] * workflow.depth
        """Processors that each generation could use at once."""
        self._parents: list[list[int]] = [parents.of(v).tolist() for v in range(len(workflow))]
        self._children: list[list[int]] = [children.of(v).tolist() for v in range(len(workflow))]
        self._support = [0] * len(workflow)
        self._exact: ExactParallelism | None = None
        for v, generation in enumerate(self.generations):
            self.sizes[generation] += self.cores[v]
            self._support[v] = sum(self.generations[p] == generation - 1 for p in self._parents[v])

    @property
    def eligible(self) -> int:
        """Processors that the tasks that run or could run need together."""
        return self.sizes[0]

    @property
    def parallelism(self) -> int:
        """The widest generation: never above the exact level of parallelism."""
        return max(self.sizes)

    def widest(self, depth: int) -> int:
        """The widest of the generations 0 to `depth`."""
        return max(self.sizes[: depth + 1])

    @property
    def exact_parallelism(self) -> int:
        """The exact level of parallelism of what is left; from the first time it is asked for, kept
        up to date."""
        if self._exact is None:
            gone = [v for v, generation in enumerate(self.generations) if generation == _GONE]
            self._exact = ExactParallelism(self.workflow, gone)
        return self._exact.value

    def entries(self) -> list[int]:
        """The tasks without parents, ascending."""
        return [v for v, parents in enumerate(self._parents) if not parents]

    def finish(self, task: int) -> list[int]:
        """The task has completed. Returns the tasks that are eligible because of that,
        ascending."""
        assert self.generations[task] == 0, "only an eligible task can complete"
        self.left -= 1
        if self._exact is not None:
            self._exact.finish(task)
        fallen = deque(self._move(task, _GONE))
        fresh = []
        while fallen:
            v = fallen.popleft()
            fallen.extend(self._move(v, self._supported(v)))
            if self.generations[v] == 0:
                fresh.append(v)
        return sorted(fresh)

    def _supported(self, v: int) -> int:
        """The generation that the parents left give to `v`; counts its support."""
        below = [self.generations[p] for p in self._parents[v]]
        highest = max(below)
        self._support[v] = below.count(highest)
        return highest + 1

    def _move(self, v: int, generation: int) -> list[int]:
        """Give `v` a lower generation; returns the children that have lost their last support by
        that."""
        before = self.generations[v]
        self.generations[v] = generation
        self.sizes[before] -= self.cores[v]
        if generation != _GONE:
            self.sizes[generation] += self.cores[v]
        lost = []
        for c in self._children[v]:
            if self.generations[c] == before + 1:
                self._support[c] -= 1
                if self._support[c] == 0:
                    lost.append(c)
        return lost
