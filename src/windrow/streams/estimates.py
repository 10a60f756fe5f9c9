"""How long a workflow would take alone on the pool, by estimates of its tasks' run times.

The length is the larger of two lower bounds of its makespan: the longest path, and the work over
the pool's processors. Estimates are of one of these kinds:

- `exact`: the true run times; what a policy could do at best.
- `noisy`: each true run time times exp(N(0, noise)), drawn once per task.
- `learned`: nothing is known in advance. A task of some kind is taken to last as long as tasks of
  that kind did so far, as a *share of their workflow's work*, times the mean work of workflows that
  have finished. Shares and not seconds, because what a run time says about the next workflow
  depends on how many tasks the work was divided among.

Law: an estimate is made when the workflow arrives, from what had been seen by then, and is not
changed after that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from windrow.errors import UserError, unknown_name
from windrow.model import Workflow
from windrow.streams.selection import first_draw


class Estimates(Protocol):
    """A source of run times of tasks that have not run yet."""

    def runtimes_s(self, number: int, workflow: Workflow) -> Sequence[float]:
        """One estimate for each task."""

    def learn(self, workflow: Workflow, took_s: Sequence[float]) -> None:
        """A workflow has finished; its tasks took that long."""


class Exact:
    """The true run times."""

    def runtimes_s(self, number: int, workflow: Workflow) -> Sequence[float]:  # noqa: ARG002
        """As they will be."""
        times: list[float] = workflow.runtime_s.tolist()
        return times

    def learn(self, workflow: Workflow, took_s: Sequence[float]) -> None:
        """Nothing is left to learn."""


class Noisy:
    """The true run times with an error; the same for the same seed and number."""

    def __init__(self, noise: float = 1.0, seed: int = 0) -> None:
        if not noise >= 0:
            raise UserError(f"the noise of estimates must be at least 0, not {noise:g}")
        self.noise = noise
        self.seed = seed

    def runtimes_s(self, number: int, workflow: Workflow) -> Sequence[float]:
        """Each true time times a factor around 1."""
        rng = np.random.default_rng(first_draw(self.seed, number))
        times: list[float] = (
            workflow.runtime_s * np.exp(rng.normal(0, self.noise, len(workflow)))
        ).tolist()
        return times

    def learn(self, workflow: Workflow, took_s: Sequence[float]) -> None:
        """Errors stay as they are."""


class Learned:
    """From what has finished so far."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._tasks: dict[str, int] = {}
        self._work_s = 0.0
        self._workflows = 0

    def runtimes_s(self, number: int, workflow: Workflow) -> Sequence[float]:  # noqa: ARG002
        """The mean work so far, divided among the tasks by the weights of their kinds; an unknown
        kind weighs 1."""
        if self._workflows:
            mean_s = self._work_s / self._workflows
        else:
            mean_s = 1.0
        weights = [
            self._shares[k] / self._tasks[k] if k in self._shares else 1.0 for k in workflow.kinds
        ]
        total = sum(weights) or 1.0
        return [mean_s * weight / total for weight in weights]

    def learn(self, workflow: Workflow, took_s: Sequence[float]) -> None:
        """Adds what each task weighed against the mean task of its workflow."""
        work_s = sum(took_s)
        self._work_s += work_s
        self._workflows += 1
        for kind, runtime_s in zip(workflow.kinds, took_s, strict=True):
            if work_s:
                weight = runtime_s * len(took_s) / work_s
            else:
                weight = 1.0
            self._shares[kind] = self._shares.get(kind, 0.0) + weight
            self._tasks[kind] = self._tasks.get(kind, 0) + 1


ESTIMATES: Mapping[str, Callable[[], Estimates]] = {
    "exact": Exact,
    "noisy": Noisy,
    "learned": Learned,
}
"""By the names that users write."""


def find_estimates(name: str) -> Estimates:
    """A fresh source of that name. UserError if there is none."""
    if name not in ESTIMATES:
        raise unknown_name("kind of estimates", name, ESTIMATES)
    return ESTIMATES[name]()


def length_s(workflow: Workflow, runtimes_s: Sequence[float], slots: int) -> float:
    """The larger of longest path and work over processors, by these run times."""
    start: list[int] = workflow.parents.start.tolist()
    parents: list[int] = workflow.parents.index.tolist()
    end_s = list(runtimes_s)
    for v in workflow.order.tolist():
        end_s[v] += max([end_s[p] for p in parents[start[v] : start[v + 1]]], default=0.0)
    work_s: float = sum(t * c for t, c in zip(runtimes_s, workflow.cores.tolist(), strict=True))
    return max(*end_s, work_s / slots)
