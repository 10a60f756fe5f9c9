"""Workflow recipes by name: `generate_workflow("montage", tasks=250, work_s=1_800_000, seed=1)`.

Law: same recipe, seed, size, work and parameters give the same workflow, under any PYTHONHASHSEED
and on any machine with the same numpy. Work and ccr only stretch run times: structure, files and
the order of draws do not depend on them.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from windrow.errors import UserError, unknown_name
from windrow.files import table_beside
from windrow.model import File, Workflow
from windrow.recipes.chance import seeded
from windrow.recipes.workflows.applications import build_pipelines
from windrow.recipes.workflows.blast import build_blast
from windrow.recipes.workflows.canonical import build_canonical
from windrow.recipes.workflows.cybershake import build_cybershake, stretch_cybershake
from windrow.recipes.workflows.eman import build_eman
from windrow.recipes.workflows.fft import build_fft
from windrow.recipes.workflows.forkjoin import build_fork_join
from windrow.recipes.workflows.gauss import build_gauss
from windrow.recipes.workflows.genome import build_genome
from windrow.recipes.workflows.inspiral import build_inspiral
from windrow.recipes.workflows.layered import build_choke, build_level, build_random
from windrow.recipes.workflows.montage import build_montage
from windrow.recipes.workflows.recipe import Parameter, Recipe, Value, scale_evenly
from windrow.recipes.workflows.sipht import build_sipht

_BUILD: Mapping[str, Callable[..., Workflow]] = {
    "montage": build_montage,
    "cybershake": build_cybershake,
    "genome": build_genome,
    "inspiral": build_inspiral,
    "sipht": build_sipht,
    "eman": build_eman,
    "blast": build_blast,
    "canonical": build_canonical,
    "fft": build_fft,
    "gauss": build_gauss,
    "fork-join": build_fork_join,
    "random": build_random,
    "level": build_level,
    "choke": build_choke,
    "pipelines": build_pipelines,
}
OTHER_NAMES: Mapping[str, str] = MappingProxyType({"epigenomics": "genome", "ligo": "inspiral"})
"""What papers and other tools call some recipes."""
BANDWIDTH_BYTES_S = 12.5e6
"""By which data become time in a ratio of communication to computation, if no other is given:
100 Mb/s."""
_STRETCH = {"cybershake": stretch_cybershake}


def _recipe(name: str, parameters: Mapping[str, tuple[Value, str]], **said: Any) -> Recipe:
    wanted = tuple(Parameter(each, *more) for each, more in parameters.items())
    return Recipe(
        name,
        parameters=wanted,
        build=_BUILD[name],
        stretch=_STRETCH.get(name, scale_evenly),
        **said,
    )


WORKFLOW_RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {name: _recipe(name, **said) for name, said in table_beside(__file__).items()}
)
"""Every recipe by name, in the order in which they are shown."""


def find_recipe(name: str) -> Recipe:
    """The recipe of that name. UserError if there is none."""
    known = OTHER_NAMES.get(name, name)
    if known not in WORKFLOW_RECIPES:
        raise unknown_name("recipe", name, (*WORKFLOW_RECIPES, *OTHER_NAMES))
    return WORKFLOW_RECIPES[known]


def generate_workflow(
    recipe: str,
    *,
    tasks: int | None = None,
    work_s: float | None = None,
    seed: int = 0,
    parameters: Mapping[str, str] | None = None,
    ccr: float | None = None,
    bandwidth_bytes_s: float = BANDWIDTH_BYTES_S,
    even_levels: bool = False,
) -> Workflow:
    """A workflow by the recipe of that name. UserError if recipe, parameter or value cannot be
    used.

    `tasks` is met exactly, except by fft and gauss, which give the nearest size that exists. With
    `work_s`, run times are stretched until they sum to it; with `ccr`, until they are that many
    times shorter than moving all data between tasks takes at that bandwidth. `even_levels` gives
    tasks of one level one run time and one size of files, the mean. Linear in tasks and files; a
    million tasks take 5 to 20 s.
    """
    chosen = find_recipe(recipe)
    if work_s is not None and not (math.isfinite(work_s) and work_s > 0):
        raise UserError(f"work must be above 0 seconds, not {work_s}")
    if ccr is not None and not (
        math.isfinite(ccr) and ccr > 0 and 0 < bandwidth_bytes_s < math.inf
    ):
        raise UserError(f"ccr and bandwidth must be above 0, not {ccr} and {bandwidth_bytes_s}")
    if ccr is not None and work_s is not None:
        raise UserError("work and ccr both set the run times; leave one out")
    settings = chosen.settings(parameters or {})
    if tasks is None:
        size = chosen.default_tasks
    else:
        size = tasks
    workflow = chosen.build(seeded(seed, chosen.name), size, **settings)
    if even_levels:
        workflow = _even(workflow)
    if ccr is not None:
        if not workflow.moved_bytes:
            raise UserError(
                f"{recipe} moves no data between tasks with these parameters, so it cannot have "
                "a ccr"
            )
        return workflow.with_times(
            scale_evenly(workflow, workflow.moved_bytes / bandwidth_bytes_s / ccr)
        )
    if work_s is None:
        return workflow
    return workflow.with_times(chosen.stretch(workflow, work_s, **settings))


def _even(workflow: Workflow) -> Workflow:
    """The same, with the mean run time of its level for each task, and the mean size of all that
    the level writes."""
    levels = workflow.levels
    times = np.bincount(levels, workflow.runtime_s) / np.bincount(levels)
    sizes = np.array([file.size_bytes for file in workflow.files], dtype=np.float64)
    level_of = levels[workflow.outputs.sources()]
    written = workflow.outputs.index
    counts = np.bincount(level_of, minlength=workflow.depth)
    means = np.bincount(level_of, sizes[written], workflow.depth) / np.maximum(counts, 1)
    sizes[written] = np.ceil(means[level_of])
    files = [File(file.id, int(size)) for file, size in zip(workflow.files, sizes, strict=True)]
    return workflow.changed(runtime_s=times[levels], files=files)
