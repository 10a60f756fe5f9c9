"""Workflow recipes by name: `generate_workflow("montage", tasks=250, work_s=1_800_000, seed=1)`.

Law: same recipe, seed, size, work and parameters give the same workflow, under any PYTHONHASHSEED and on any machine
with the same numpy. Work only stretches run times: structure, files and the order of the draws do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from windrow.errors import UserError
from windrow.model import Workflow
from windrow.recipes.chance import seeded
from windrow.recipes.workflows.blast import BLAST
from windrow.recipes.workflows.cybershake import CYBERSHAKE
from windrow.recipes.workflows.eman import EMAN
from windrow.recipes.workflows.fft import FFT
from windrow.recipes.workflows.forkjoin import FORK_JOIN
from windrow.recipes.workflows.gauss import GAUSS
from windrow.recipes.workflows.genome import GENOME
from windrow.recipes.workflows.inspiral import INSPIRAL
from windrow.recipes.workflows.layered import CHOKE, LEVEL, RANDOM
from windrow.recipes.workflows.montage import MONTAGE
from windrow.recipes.workflows.recipe import Recipe
from windrow.recipes.workflows.sipht import SIPHT

_ALL = (MONTAGE, CYBERSHAKE, GENOME, INSPIRAL, SIPHT, EMAN, BLAST, FFT, GAUSS, FORK_JOIN, RANDOM, LEVEL, CHOKE)

WORKFLOW_RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in _ALL})
"""Every recipe by name, in the order in which they are shown."""


def generate_workflow(
    recipe: str,
    *,
    tasks: int | None = None,
    work_s: float | None = None,
    seed: int = 0,
    parameters: Mapping[str, str] | None = None,
) -> Workflow:
    """A workflow by the recipe of that name. UserError where recipe, parameter or value cannot be used.

    `tasks` is met exactly, except by fft and gauss, which give the nearest size that exists. With `work_s`, run times
    are stretched until they sum to it. Linear in tasks and files; a million tasks take 5 to 20 s.
    """
    if recipe not in WORKFLOW_RECIPES:
        raise UserError(f"there is no recipe {recipe!r}; the recipes are {', '.join(WORKFLOW_RECIPES)}")
    chosen = WORKFLOW_RECIPES[recipe]
    if work_s is not None and not (math.isfinite(work_s) and work_s > 0):
        raise UserError(f"work must be above 0 seconds, not {work_s}")
    settings = chosen.settings(parameters or {})
    size = chosen.default_tasks if tasks is None else tasks
    workflow = chosen.build(seeded(seed, chosen.name), size, **settings)
    if work_s is None:
        return workflow
    return workflow.with_times(chosen.stretch(workflow, work_s, **settings))
