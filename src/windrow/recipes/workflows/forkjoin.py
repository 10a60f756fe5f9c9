"""Fork-join: a task forks into parallel ones, another joins them, as often as asked for.

The plainest workflow with parallelism, and the barrier-by-barrier shape of many codes. Levels: 2
stages + 1.
"""

from windrow.model import Workflow
from windrow.model.workflow import Floats
from windrow.recipes.chance import Chance, even_parts
from windrow.recipes.draft import MEGABYTE, RecipeDraft
from windrow.recipes.workflows.recipe import require, require_range, require_sizes, require_tasks


def build_fork_join(
    rng: Chance, tasks: int, *, stages: int, task_s: float, data_mb: float, **spread: float
) -> Workflow:
    """A fork-join of exactly `tasks` tasks; the stages' widths differ by at most one."""
    reach = spread["range"]
    require(stages >= 1, "fork-join", f"stages must be at least 1, not {stages}")
    require_sizes("fork-join", task_s, data_mb)
    require_range("fork-join", reach)
    require_tasks("fork-join", tasks, 2 * stages + 1)

    def phase(kind: str, count: int) -> tuple[str, Floats]:
        return kind, task_s * rng.uniform(1 - reach, 1 + reach, count)

    phases = [phase("fork", 1)]
    for width in even_parts(tasks - stages - 1, stages).tolist():
        phases += [phase("work", width), phase("join", 1)]
    draft = RecipeDraft(f"fork-join-{tasks}")
    draft.phases(phases, data_mb * MEGABYTE)
    return draft.workflow()
