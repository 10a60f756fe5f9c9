"""One workflow in the pool: which of its tasks are done, run, failed, or can never run.

`streams.Pool` is shown only what is left of a workflow: a workflow of those tasks that can still
run. For one that has just arrived that is all of it. After a restart it is the rest, whose eligible
sets and level of parallelism are by their definition those that the whole would have, so a policy
decides as if nothing had happened.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windrow.manager.specs import shared_outputs
from windrow.model import Adjacency, NodeShape, Runnable, Workflow
from windrow.model.nodes import Need
from windrow.streams import in_processors


@dataclass(frozen=True, slots=True)
class WorkflowPast:
    """What became of a workflow's tasks before the server began: run times of those done, and of
    the others how often each was started and failed; `given_up` are those that will not be tried
    again."""

    took_s: Mapping[int, float] = field(default_factory=dict)
    attempts: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, int] = field(default_factory=dict)
    given_up: frozenset[int] = frozenset()


class ServedWorkflow:
    """A workflow that the pool serves. Tasks go by their numbers in the whole workflow."""

    def __init__(
        self, number: int, runnable: Runnable, shape: NodeShape, past: WorkflowPast
    ) -> None:
        """UserError if a task does not fit on a node of this shape."""
        workflow = runnable.workflow
        self.number = number
        self.runnable = runnable
        self.took_s = dict(past.took_s)
        self.attempts = dict(past.attempts)
        self.failures = dict(past.failures)
        self.given_up = set(past.given_up)
        self.running: set[int] = set()
        self.is_withdrawn = False
        self.taken: list[int] = in_processors(workflow, shape).cores.tolist()
        """Of each task: how many of the pool's processors it takes."""
        self.shared = shared_outputs(workflow)
        """Outputs in which several tasks write."""
        self.blocked = workflow.children.below(past.given_up)
        out = self.blocked | self.given_up | set(self.took_s)
        self.rest = [task for task in range(len(workflow)) if task not in out]
        """What `streams.Pool` sees: its task i is ours of number rest[i]."""
        self._place = {task: i for i, task in enumerate(self.rest)}
        self.left = len(self.rest)
        """Tasks that may yet run, or run now."""
        self.unseen = len(self.rest)
        """Tasks of which `streams.Pool` has not heard that they are over."""

    def place(self, task: int) -> int:
        """The number that `streams.Pool` knows the task by."""
        return self._place[task]

    def rest_workflow(self) -> Workflow:
        """What is left, as `streams.Pool` sees it."""
        whole = self.runnable.workflow
        kept = self._place
        parents = [[kept[p] for p in whole.parents.of(t).tolist() if p in kept] for t in self.rest]
        return Workflow(
            whole.name,
            ids=[whole.ids[t] for t in self.rest],
            kinds=[whole.kinds[t] for t in self.rest],
            runtime_s=whole.runtime_s[self.rest],
            cores=np.array([self.taken[t] for t in self.rest], dtype=np.int64),
            parents=Adjacency.from_lists(parents),
        )

    def need(self, task: int) -> Need:
        """What the task takes on a node."""
        return self.runnable.workflow.task(task).need

    def finish(self, task: int, runtime_s: float) -> None:
        """The task is done."""
        self.running.remove(task)
        self.took_s[task] = runtime_s
        self.left -= 1

    def give_up(self, task: int) -> None:
        """The task will not be tried again, and what depends on it will never run."""
        self.running.remove(task)
        self.given_up.add(task)
        fresh = self.runnable.workflow.children.below([task]) - self.blocked
        self.blocked |= fresh
        self.left -= 1 + len(fresh)
