"""BLAST: many sequences compared with a database (bioinformatics).

A sequence of parallel executions (Zhang-paper IV-B; Zhang-thesis 2.2.2). Read here as: the input is
split, each part is searched for (blastall) and its matches are then parsed (parse_blast), all parts
side by side, and the answers are put together (cat_blast). Four levels. That there are two parallel
steps, and what the second does, is our reading.

Times: split_fasta, blastall (mean and spread) and cat_blast as in the measured run
`blast-chameleon-large` of WfInstances; the parsing step is not in that run, its time is ours.

Sizes. With an odd number of tasks between the ends, one part has no matches and is not parsed.
"""

import numpy as np

from windrow.model import Workflow
from windrow.recipes.chance import Chance, around
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks

_SPREAD = 0.11
_DATABASE_BYTES = 2_000_000_000


def build_blast(
    rng: Chance, tasks: int, *, search_s: float, parse_s: float, data_mb: float
) -> Workflow:
    """A BLAST of exactly `tasks` tasks."""
    require_tasks("blast", tasks, 4)
    require(
        min(search_s, parse_s) > 0 and data_mb >= 0,
        "blast",
        "times must be above 0, data_mb not below",
    )
    parsed = (tasks - 2) // 2
    parts = tasks - 2 - parsed
    draft = RecipeDraft(f"blast-{tasks}")
    split = draft.add("split_fasta", 3.0)
    search = draft.add("blastall", around(rng, search_s, _SPREAD * search_s, parts))
    parse = draft.add("parse_blast", around(rng, parse_s, _SPREAD * parse_s, parsed))
    join = draft.add("cat_blast", 17.0)

    size = data_mb * MEGABYTE
    draft.files("input.fasta", parts * size, read_by=split)
    draft.files(numbered("input_{}.fasta", parts), size, written_by=split, read_by=search)
    draft.files("database", _DATABASE_BYTES, read_by=search)
    matches = draft.files(numbered("matches_{}.out", parts), size, written_by=search)
    draft.reads(parse, matches[:parsed])
    tables = draft.files(numbered("matches_{}.tbl", parsed), size / 10, written_by=parse)
    draft.reads(join, np.concatenate([tables, matches[parsed:]]))
    draft.files("all_matches.tbl", parts * size / 10, written_by=join)
    return draft.workflow()
