"""SIPHT: the search for small untranslated RNAs in bacteria (bioinformatics).

One part per replicon, all alike and independent: the searches (Patser, many; Findterm, RNAMotif,
Transterm, Blast), their gathering (Patser_concate, SRNA), the comparisons of the candidates
(FFN_Parse, four kinds of Blast), the annotation (SRNA_annotate): five levels. Most tasks are a
short Patser; Blast, Findterm and Blast_QRNA hold the work.

Means and deviations of run times and sizes are those that the Pegasus workflow generator uses. Left
out: files of less than 3 kB. The some 900 partner files of a Blast are one file of their summed
size.

Sizes. A part has twelve tasks and its Patsers; the Patsers take up whatever size is asked for.
"""

import numpy as np

from windrow.files import table_beside
from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.recipes.chance import Chance, around, near_even_parts
from windrow.recipes.draft import RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_tasks


def build_sipht(rng: Chance, tasks: int, *, patsers: float) -> Workflow:
    """A SIPHT of exactly `tasks` tasks."""
    times = table_beside(__file__)["times"]
    once = len(times)
    require_tasks("sipht", tasks, once + 1)
    require(patsers >= 1, "sipht", f"patsers must be at least 1, not {patsers}")
    # The Pegasus generator counts thirteen tasks besides the Patsers where there are twelve; this
    # keeps its parts.
    parts = max(1, min(round(tasks / (patsers + once + 1)), tasks // (once + 1)))
    draft = RecipeDraft(f"sipht-{tasks}")
    codes = numbered("NC_{}", parts)
    of_kind = {
        kind: draft.add(kind, around(rng, mean, by, parts)) for kind, (mean, by) in times.items()
    }
    genomes = _draw_files(draft, rng, codes, of_kind)
    _draw_patsers(
        draft, rng, of_kind, genomes, near_even_parts(rng, tasks - once * parts, parts, 0.2)
    )
    return draft.workflow()


def _draw_files(
    draft: RecipeDraft, rng: Chance, codes: list[str], of_kind: dict[str, Ints]
) -> Ints:
    """All files but those of the Patsers. Returns the genomes, the first of the table."""
    numbers = []
    for name, mean, deviation, writer, readers in table_beside(__file__)["files"]:
        files = draft.files(
            [name.format(code) for code in codes], around(rng, mean, deviation, len(codes))
        )
        numbers.append(files)
        if writer:
            draft.writes(of_kind[writer], files)
        for reader in readers:
            draft.reads(of_kind[reader], files)
    for name, size, readers in table_beside(__file__)["shared"]:
        shared = draft.files(name, size)
        for reader in readers:
            draft.reads(of_kind[reader], shared)
    return numbers[0]


def _draw_patsers(
    draft: RecipeDraft, rng: Chance, of_kind: dict[str, Ints], genomes: Ints, counts: Ints
) -> None:
    total = int(counts.sum())
    part = np.repeat(np.arange(len(counts)), counts)
    patser = draft.add("Patser", around(rng, 1.27, 0.332, total))
    draft.reads(patser, genomes[part])
    draft.files(numbered("matrix_{}.txt", total), 170_917, read_by=patser)
    sizes = around(rng, 91_780, 248_987, total)
    concate = of_kind["Patser_concate"]
    annotate = of_kind["SRNA_annotate"]
    draft.files(
        numbered("PatserOut_{}.txt", total), sizes, written_by=patser, read_by=concate[part]
    )
    joined_bytes = np.bincount(part, sizes)
    draft.files(
        numbered("NC_{}_PatserOut.txt", len(counts)),
        joined_bytes,
        written_by=concate,
        read_by=annotate,
    )
