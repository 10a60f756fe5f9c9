"""Gaussian elimination as a workflow, column by column.

For a matrix of n columns, step k = 1..n-1 has one pivot task and one update task for each of the n
- k columns to its right: (n² + n - 2) / 2 tasks in 2 (n - 1) levels, of which the widest has n - 1
tasks (Topcuoglu, Hariri, Wu, TPDS 13(3), 2002; Zhang-thesis 2.2.2). The critical path runs through
the pivots. Zhang-paper's longest has over 100 levels and is 55 wide, which is n = 56: 1,595 tasks
in 110 levels.

Times follow the operations: an update at step k works on n - k rows, and a pivot does half as much
on each.
"""

import math

import numpy as np

from windrow.model import Workflow
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require_sizes, require_tasks


def gauss_tasks(n: int) -> int:
    """How many tasks an elimination of n columns has."""
    return (n * n + n - 2) // 2


def build_gauss(_rng: Chance, tasks: int, *, task_s: float, data_mb: float) -> Workflow:
    """The elimination with the number of tasks nearest to `tasks`, of two equally near the smaller;
    no chance in it."""
    require_tasks("gauss", tasks, gauss_tasks(2))
    require_sizes("gauss", task_s, data_mb)
    below = (math.isqrt(8 * tasks + 9) - 1) // 2
    n = min((max(2, below), below + 1), key=lambda n: (abs(gauss_tasks(n) - tasks), n))
    draft = RecipeDraft(f"gauss-{gauss_tasks(n)}")
    columns = draft.files(numbered("column_{}", n), data_mb * MEGABYTE)
    for step in range(1, n):
        rows = n - step
        update_s = task_s * rows / (n - 1)
        size = data_mb * MEGABYTE * rows / n
        pivot = draft.add("pivot", update_s / 2)
        draft.reads(pivot, columns[0])
        updates = draft.add("update", np.full(rows, update_s))
        draft.files(f"factors_{step}", size, written_by=pivot, read_by=updates)
        draft.reads(updates, columns[1:])
        columns = draft.files(numbered(f"step_{step}_column_{{}}", rows), size, written_by=updates)
    return draft.workflow()
