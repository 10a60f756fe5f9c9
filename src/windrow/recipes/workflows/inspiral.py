"""Inspiral (LIGO): the search for gravitational waves (physics).

Six levels: templates are made for every stretch of data (TmpltBank) and matched against it
(Inspiral); groups of detectors' triggers are tested for coincidence (Thinca); what passes is made
into new templates (TrigBank), matched again (Inspiral) and tested again (Thinca). Each group is
independent of the others, except that neighbouring groups of the upper half may share a stretch.

Means and deviations of run times and sizes are those that the Pegasus workflow generator uses.

Sizes. The structure has an even number of tasks; an odd one is met by dividing the last test of the
largest group between two Thinca tasks.
"""

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.recipes.chance import Chance, around, near_even_parts, random_parts
from windrow.recipes.draft import RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks

_TIMES = {
    "TmpltBank": (18.14, 0.424),
    "Inspiral": (460.21, 545),
    "Thinca": (5.37, 0.245),
    "TrigBank": (5.11, 0.316),
}
"""Mean and standard deviation of each kind's run time, in seconds."""

_SIZES = {
    "TmpltBank": (986_917, 18_948),
    "Inspiral": (312_936, 579_468),
    "Thinca": (33_821, 43_453),
    "TrigBank": (12_780, 11_730),
}
"""Mean and standard deviation of each kind's output, in bytes."""

_STAGES = (
    ("TmpltBank", "H1-TMPLTBANK-{}.xml"),
    ("Inspiral", "H1-INSPIRAL-{}.xml"),
    ("Thinca", "H1-THINCA-{}.xml"),
    ("TrigBank", "H1-TRIGBANK-{}.xml"),
    ("Inspiral", "H1-INSPIRAL_H1-{}.xml"),
    ("Thinca", "H1-THINCA_H1-{}.xml"),
)
"""Kind and name of the output, by level."""


def build_inspiral(rng: Chance, tasks: int, *, groups: int) -> Workflow:
    """An Inspiral of exactly `tasks` tasks."""
    require_tasks("inspiral", tasks, 16)
    odd = tasks % 2
    # Fewer than 5 % of the tasks, or 1 or 2.
    drawn = groups or int(rng.integers(1, max(3, (tasks - odd) // 20)))
    if not groups and drawn == 1 and (tasks - odd - 2) % 4:
        count = 2
    else:
        count = drawn
    half = (tasks - odd) // 2 - count
    rule = (
        f"{tasks} tasks cannot have {groups} groups; take fewer, and 1 only where tasks - 2 "
        "divides by 4"
    )
    require(
        half // 2 >= count + odd and (count > 1 or half % 2 == 0) and groups >= 0, "inspiral", rule
    )
    upper, lower = np.sort(near_even_parts(rng, half, 2, 0.1 if count > 1 else 0.0)).tolist()
    sizes = _group_sizes(rng, lower, count, upper)
    if not odd:
        last_sizes = sizes
    else:
        last_sizes = np.concatenate([[sizes[0] - sizes[0] // 2, sizes[0] // 2], sizes[1:]])
    return _drawn(RecipeDraft(f"inspiral-{tasks}"), rng, upper, sizes, last_sizes)


def _group_sizes(rng: Chance, lower: int, count: int, most: int) -> Ints:
    """Pipelines of each group, largest first; no group is larger than the number of stretches above
    it."""
    sizes = np.sort(random_parts(rng, lower, count))[::-1].copy()
    excess = max(0, int(sizes[0]) - most)
    sizes[0] -= excess
    sizes[-1] += excess
    return np.sort(sizes)[::-1]


class _Levels:
    """The levels of an Inspiral, each with as many outputs as tasks."""

    def __init__(self, draft: RecipeDraft, rng: Chance) -> None:
        self._draft = draft
        self._rng = rng
        self._level = 0

    def add(self, count: int) -> tuple[Ints, Ints]:
        """The next level: its tasks, and what they write."""
        kind, output = _STAGES[self._level]
        self._level += 1
        tasks = self._draft.add(kind, around(self._rng, *_TIMES[kind], count))
        sizes = around(self._rng, *_SIZES[kind], count)
        return tasks, self._draft.files(numbered(output, count), sizes, written_by=tasks)


def _drawn(draft: RecipeDraft, rng: Chance, upper: int, sizes: Ints, last_sizes: Ints) -> Workflow:
    groups = len(sizes)
    lower = int(sizes.sum())
    strain = draft.files(
        numbered("H-H1_RDS_L4-{}.gwf", 2 * lower), around(rng, 15_595_958, 18_293, 2 * lower)
    )
    calibration = draft.files(["H-CAL_FAC_DARM.gwf", "H-CAL_REF_DARM.gwf"], [8_415_922, 902_334])
    injections = draft.files("HL-INJECTIONS.xml", 2_421_423)

    stages = _Levels(draft, rng)
    banks, templates = stages.add(upper)
    matches, matched = stages.add(upper)
    tests, tested = stages.add(groups)
    triggers, triggered = stages.add(lower)
    rematches, rematched = stages.add(lower)
    retests, _ = stages.add(len(last_sizes))

    for search in (banks, matches, rematches):
        draft.reads(search[:, np.newaxis], strain.reshape(lower, 2)[: len(search)])
        draft.reads(search[:, np.newaxis], calibration)
    draft.reads(np.concatenate([matches, rematches]), injections)
    draft.reads(matches, templates)
    group = np.repeat(np.arange(groups), sizes)
    draft.reads(tests[group], matched[_windows(sizes, upper)])
    draft.reads(triggers, tested[group])
    draft.reads(rematches, triggered)
    draft.reads(retests[np.repeat(np.arange(len(last_sizes)), last_sizes)], rematched)
    return draft.workflow()


def _windows(sizes: Ints, upper: int) -> Ints:
    """Each group's stretches: those after the previous group's, moved up if fewer are left than
    the group needs."""
    picked = []
    start = 0
    for size in sizes.tolist():
        start = min(start, upper - size)
        picked.append(np.arange(start, start + size))
        start += size
    return np.concatenate(picked)
