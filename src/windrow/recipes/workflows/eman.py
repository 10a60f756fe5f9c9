"""EMAN: refinement of a three-dimensional model from electron micrographs (biology).

Two parallel phases connected by single steps (Zhang-paper IV-B): the model is prepared and
projected (proc3d, project3d, proc2d), every batch of particles is classified (classesbymra), the
classes are collected, every class is aligned and averaged (classalign2), and a new model is built
(make3d, proc3d). Eight levels at any size, all tasks of a level equally long (Zhang-thesis 3.3.2
and 5.3.1).

Ours, as the texts give none: all times (the thesis says only that steps like classesbymra take
most), the number of single steps and their names, which are programs of EMAN, and `collect` for the
one between the phases.
"""

import numpy as np
from numpy.typing import ArrayLike

from windrow.model import Workflow
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft
from windrow.recipes.workflows.recipe import require, require_tasks

_SINGLE_TASKS = 6


def build_eman(
    _rng: Chance,
    tasks: int,
    *,
    first_share: float,
    first_s: float,
    second_s: float,
    single_s: float,
    data_mb: float,
) -> Workflow:
    """An EMAN of exactly `tasks` tasks. Nothing in it is random: tasks of a level are alike."""
    require_tasks("eman", tasks, _SINGLE_TASKS + 2)
    require(0 < first_share < 1, "eman", f"first_share must be between 0 and 1, not {first_share}")
    require(
        min(first_s, second_s, single_s) > 0 and data_mb >= 0,
        "eman",
        "times must be above 0, data_mb not below",
    )
    parallel = tasks - _SINGLE_TASKS
    first = min(max(1, round(first_share * parallel)), parallel - 1)
    draft = RecipeDraft(f"eman-{tasks}")
    phases: list[tuple[str, ArrayLike]] = [
        *((kind, single_s) for kind in ("proc3d", "project3d", "proc2d")),
        ("classesbymra", np.full(first, first_s)),
        ("collect", single_s),
        ("classalign2", np.full(parallel - first, second_s)),
        *((kind, single_s) for kind in ("make3d", "proc3d")),
    ]
    draft.phases(phases, data_mb * MEGABYTE)
    return draft.workflow()
