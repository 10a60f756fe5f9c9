"""FFT: the recursive fast Fourier transform as a workflow.

Over m = 2^k points: a binary tree of 2 m - 1 recursive calls, then k levels of m butterflies, each of which reads two
results of the level above (as counted by Topcuoglu, Hariri, Wu, TPDS 13(3), 2002). So 2 m - 1 + m k tasks in 2 k + 1
levels, at most m wide; every path from the root to a last butterfly is critical, as all tasks of a level are equally
long. Zhang-paper reports up to 256 wide (m = 256: 2,559 tasks, 17 levels).
"""

import numpy as np

from windrow.model import Workflow
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks


def fft_tasks(k: int) -> int:
    """How many tasks an FFT over 2^k points has."""
    points = 1 << k
    return 2 * points - 1 + points * k


def build_fft(rng: Chance, tasks: int, *, task_s: float, data_mb: float, **spread: float) -> Workflow:
    """The FFT whose number of tasks is nearest to `tasks`, the smaller of two that are equally near."""
    reach = spread["range"]
    require_tasks("fft", tasks, fft_tasks(1))
    require(task_s > 0 and data_mb >= 0, "fft", "task_s must be above 0 and data_mb not below 0")
    require(0 <= reach < 1, "fft", f"range must be from 0 to below 1, not {reach}")
    k = min(range(1, tasks.bit_length() + 1), key=lambda k: (abs(fft_tasks(k) - tasks), k))
    points = 1 << k
    level_s = task_s * rng.uniform(1 - reach, 1 + reach, 2 * k + 1)
    depth = np.repeat(np.arange(k + 1), 2 ** np.arange(k + 1))
    draft = RecipeDraft(f"fft-{fft_tasks(k)}")

    # Calls are numbered as in a heap: those below call i are 2 i + 1 and 2 i + 2; each reads the part its caller cut.
    calls = draft.add("recurse", level_s[depth])
    sizes = data_mb * MEGABYTE * points / 2.0**depth
    parts = draft.files(numbered("part_{}", len(calls)), sizes, read_by=calls)
    draft.writes((calls[1:] - 1) // 2, parts[1:])

    place = np.arange(points)
    done = draft.files(numbered("stage_0_{}", points), data_mb * MEGABYTE, written_by=calls[-points:])
    for stage in range(k):
        butterflies = draft.add("butterfly", np.full(points, level_s[k + 1 + stage]))
        draft.reads(butterflies, done)
        draft.reads(butterflies, done[place ^ 2**stage])
        names = numbered(f"stage_{stage + 1}_{{}}", points)
        done = draft.files(names, data_mb * MEGABYTE, written_by=butterflies)
    return draft.workflow()
