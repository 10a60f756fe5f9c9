"""FFT: the recursive fast Fourier transform as a workflow.

Over m = 2^k points: a binary tree of 2 m - 1 recursive calls, then k levels of m butterflies, each
of which reads two results of the level above (as counted by Topcuoglu, Hariri, Wu, TPDS 13(3),
2002). So 2 m - 1 + m k tasks in 2 k + 1 levels, at most m wide; every path from the root to a last
butterfly is critical, as all tasks of a level are equally long. Zhang-paper reports up to 256 wide
(m = 256: 2,559 tasks, 17 levels).
"""

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require_range, require_sizes, require_tasks


def fft_tasks(k: int) -> int:
    """How many tasks an FFT over 2^k points has."""
    points = 1 << k
    return 2 * points - 1 + points * k


def build_fft(
    rng: Chance, tasks: int, *, task_s: float, data_mb: float, **spread: float
) -> Workflow:
    """The FFT whose number of tasks is nearest to `tasks`, the smaller of two that are equally
    near."""
    reach = spread["range"]
    require_tasks("fft", tasks, fft_tasks(1))
    require_sizes("fft", task_s, data_mb)
    require_range("fft", reach)
    k = min(range(1, tasks.bit_length() + 1), key=lambda k: (abs(fft_tasks(k) - tasks), k))
    level_s = task_s * rng.uniform(1 - reach, 1 + reach, 2 * k + 1)
    draft = RecipeDraft(f"fft-{fft_tasks(k)}")
    leaves = _calls(draft, level_s[: k + 1], data_mb * MEGABYTE)
    _butterflies(draft, level_s[k + 1 :], leaves, data_mb * MEGABYTE)
    return draft.workflow()


def _calls(draft: RecipeDraft, level_s: Floats, point_bytes: float) -> Ints:
    """The tree of recursive calls. Returns its leaves.

    Calls are numbered as in a heap: those below call i are 2 i + 1 and 2 i + 2; each reads the part
    its caller cut.
    """
    levels = np.arange(len(level_s))
    depth = np.repeat(levels, 2**levels)
    points = 2 ** (len(level_s) - 1)
    calls = draft.add("recurse", level_s[depth])
    sizes = point_bytes * points / 2.0**depth
    parts = draft.files(numbered("part_{}", len(calls)), sizes, read_by=calls)
    draft.writes((calls[1:] - 1) // 2, parts[1:])
    return calls[-points:]


def _butterflies(draft: RecipeDraft, level_s: Floats, leaves: Ints, point_bytes: float) -> None:
    """The levels below: each butterfly reads two results of the level above."""
    points = len(leaves)
    place = np.arange(points)
    done = draft.files(numbered("stage_0_{}", points), point_bytes, written_by=leaves)
    for stage, butterfly_s in enumerate(level_s):
        butterflies = draft.add("butterfly", np.full(points, butterfly_s))
        draft.reads(butterflies, done)
        draft.reads(butterflies, done[place ^ 2**stage])
        names = numbered(f"stage_{stage + 1}_{{}}", points)
        done = draft.files(names, point_bytes, written_by=butterflies)
