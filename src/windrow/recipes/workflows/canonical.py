"""The canonical batch-pipeline workload (Bent, section 4.2): equal pipelines, each a chain of jobs.

Job d of every pipeline reads batch volume d and the private file that the job before it wrote (the
first: its own input), and writes one. Compute times are normal, never below 0. Sizes: whole
pipelines only.
"""

import numpy as np

from windrow.model import Workflow
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks


def build_canonical(
    rng: Chance,
    tasks: int,
    *,
    depth: int,
    batch_mb: float,
    private_mb: float,
    run_s: float,
    variation: float,
) -> Workflow:
    """As many pipelines of `depth` jobs as come nearest to this number of tasks."""
    require(depth >= 1, "canonical", "depth must be at least 1")
    require_tasks("canonical", tasks, depth)
    require(
        min(batch_mb, private_mb, variation) >= 0 and run_s > 0,
        "canonical",
        "nothing may be below 0, nor run_s 0",
    )
    width = (2 * tasks + depth) // (2 * depth)
    drawn = run_s * np.maximum(0.0, 1 + variation * rng.standard_normal((depth, width)))
    draft = RecipeDraft(f"canonical-{width}x{depth}")
    private = draft.files(numbered("in_{}", width), private_mb * MEGABYTE)
    for stage in range(depth):
        jobs = draft.add(f"stage{stage + 1}", np.maximum(drawn[stage], 1e-6))
        draft.files(f"batch_{stage + 1}", batch_mb * MEGABYTE, read_by=jobs)
        draft.reads(jobs, private)
        if stage == depth - 1:
            name = "out_{}"
        else:
            name = f"mid{stage + 1}_{{}}"
        private = draft.files(numbered(name, width), private_mb * MEGABYTE, written_by=jobs)
    return draft.workflow()
