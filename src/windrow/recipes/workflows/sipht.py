"""SIPHT: the search for small untranslated RNAs in bacteria (bioinformatics).

One part per replicon, all alike and independent: the searches (Patser, many; Findterm, RNAMotif, Transterm, Blast),
their gathering (Patser_concate, SRNA), the comparisons of the candidates (FFN_Parse, four kinds of Blast), the
annotation (SRNA_annotate): five levels. Most tasks are a short Patser; Blast, Findterm and Blast_QRNA hold the work.

Means and deviations of run times and sizes are those that the Pegasus workflow generator uses. Left out: files of less
than 3 kB. The some 900 partner files of a Blast are one file of their summed size.

Sizes. A part has twelve tasks and its Patsers; the Patsers take up whatever size is asked for.
"""

from __future__ import annotations

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.recipes.chance import Chance, around, near_even_parts
from windrow.recipes.draft import RecipeDraft, numbered
from windrow.recipes.workflows.recipe import Parameter, Recipe, require, require_tasks

_TIMES = {
    "Findterm": (1349.47, 797.0),
    "RNAMotif": (36.42, 8.84),
    "Transterm": (55.78, 48.5),
    "Blast": (2350.58, 1016.8),
    "Patser_concate": (0.08, 0.1),
    "SRNA": (361.33, 342.7),
    "FFN_Parse": (1.64, 0.245),
    "Blast_candidate": (5.18, 0.995),
    "Blast_QRNA": (1412.09, 98.5),
    "Blast_paralogues": (4.99, 1.149),
    "Blast_synteny": (33.0, 0.0),
    "SRNA_annotate": (1.68, 0.959),
}
"""Mean and standard deviation, in seconds, of each kind that a part has once."""

_CANDIDATE_READERS = (
    "FFN_Parse",
    "Blast_candidate",
    "Blast_QRNA",
    "Blast_paralogues",
    "Blast_synteny",
    "SRNA_annotate",
)

_FILES: tuple[tuple[str, float, float, str, tuple[str, ...]], ...] = (
    ("{}.fna", 5_248_967, 1_516_927, "", ("Findterm", "RNAMotif", "Transterm", "SRNA")),
    ("{}.ptt", 328_511, 8_754, "", ("Transterm", "SRNA", "FFN_Parse")),
    ("{}.gbk", 11_664_926, 2_242_179, "", ("SRNA",)),
    ("{}.ffn", 4_202_875, 410_748, "", ("FFN_Parse",)),
    ("{}_IGR_partners", 259_700_000, 0, "", ("Blast", "Blast_QRNA")),
    ("{}_term.txt", 16_463_275, 9_778_443, "Findterm", ("SRNA",)),
    ("{}_term_candidates_non_redund", 385_620, 124_773, "Findterm", ("SRNA",)),
    ("{}_vienna_input_tmp", 3_974_004, 921_726, "Findterm", ("SRNA",)),
    ("{}_vienna_output", 7_729_973, 4_842_970, "Findterm", ("SRNA",)),
    ("{}_vienna_index_tmp", 5_827_902, 1_292_286, "Findterm", ("SRNA",)),
    ("{}_rnamotif.out", 1_053_511, 91_713, "RNAMotif", ("SRNA",)),
    ("{}_transterm.out", 440_409, 14_559, "Transterm", ("SRNA",)),
    ("{}_BLAST_sorted.out", 5_270_722, 3_443_485, "Blast", ("SRNA",)),
    ("{}_Blast_Out", 2_491_818, 1_667_390, "SRNA", ()),
    ("{}_OutBlastParsed", 1_002_637, 997_881, "SRNA", ()),
    ("{}_OutCandidates", 222_136, 97_513, "SRNA", ()),
    ("{}_OutCandidates1", 222_136, 97_513, "SRNA", ()),
    ("{}_OutCandidates2", 222_136, 97_513, "SRNA", ()),
    ("{}_OutConsIG", 422_673, 245_582, "SRNA", ()),
    ("{}_OutIG", 605_995, 10_195, "SRNA", ()),
    ("{}_OutORF", 328_413, 23_658, "SRNA", ()),
    ("{}_OutTerm_temp", 115_601, 36_474, "SRNA", ()),
    ("{}_OutTerms", 53_734, 13_588, "SRNA", ()),
    ("{}_OutTermsIG", 18_804, 4_861, "SRNA", ()),
    ("{}_srna.out", 331_824, 21_958, "SRNA", ("SRNA_annotate",)),
    ("Seq_{}", 84_073, 3_507, "SRNA", _CANDIDATE_READERS),
    ("{}_parsed.ffn", 802_507, 134_396, "FFN_Parse", ("Blast_synteny",)),
    ("BLAST_{}", 11_427, 4_680, "Blast_candidate", ("SRNA_annotate",)),
    ("{}_QRNA.txt", 773_387, 14_207, "Blast_QRNA", ()),
    ("{}_QRNAblast.txt", 3_115_450, 658_417, "Blast_QRNA", ()),
    ("{}_QRNAblast.txt.q", 163_635, 10_162, "Blast_QRNA", ()),
    ("{}_QRNAblast.txt.q.gff", 38_934, 6_918, "Blast_QRNA", ()),
    ("{}_QRNAblast.txt.q.rep", 39_148, 7_890, "Blast_QRNA", ()),
    ("{}_qrna.out", 4_810, 3_087, "Blast_QRNA", ()),
    ("{}_QRNA.gff", 175_490, 9_527, "Blast_QRNA", ("SRNA_annotate",)),
    ("{}_paralogues.txt", 690_732, 602_251, "Blast_paralogues", ("SRNA_annotate",)),
    ("{}_synteny.txt", 1_146_801, 667_524, "Blast_synteny", ("SRNA_annotate",)),
    ("{}_srna_annotate.out", 565_462, 314_208, "SRNA_annotate", ()),
    ("{}_Block0_Parsed_temp_PatserOut.txt", 567_814, 938_343, "SRNA_annotate", ()),
    ("{}_paralogues_temp.txt", 90_155, 82_551, "SRNA_annotate", ()),
    ("{}_synteny_temp.txt", 20_552, 11_553, "SRNA_annotate", ()),
    ("{}_QRNA_out", 6_573, 3_549, "SRNA_annotate", ()),
)
"""Name, mean and deviation of the size in bytes, writer (none: given), readers. One of each for every part."""

_BLASTS = ("Blast", "Blast_candidate", "Blast_QRNA", "Blast_paralogues", "Blast_synteny")

_SHARED: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("blasta", 786_856, _BLASTS),
    ("xdformat", 380_164, _BLASTS),
    ("time", 11_944, _BLASTS),
    ("RNAfold", 591_942, ("Findterm",)),
    ("eqrna", 953_556, ("Blast_QRNA",)),
    ("blastn2qrnadepth.pl", 69_426, ("Blast_QRNA",)),
    ("qrna2gff.pl", 16_995, ("Blast_QRNA",)),
    ("mix_tied_linux.cfg", 11_964, ("Blast_QRNA",)),
    ("RIBOPROB.mat", 8_350, ("Blast_QRNA",)),
    ("access_genomes2.txt", 83_722, ("SRNA",)),
    ("access_matrix.txt", 170_917, ("SRNA_annotate",)),
    ("All_known_sRNAs.txt", 1_028_403, ("SRNA",)),
    ("Seq_known_sRNAs_IGRs.txt", 172_432, ("Blast_candidate",)),
    ("Flanking_ORFs_known.txt", 1_419_426, ("Blast_synteny",)),
    ("RNAMofficial_descriptor.txt", 17_626, ("RNAMotif",)),
    ("expterm.dat", 45_788, ("Transterm",)),
)
"""Name, size in bytes and readers of the programs and data that all parts share."""


def build_sipht(rng: Chance, tasks: int, *, patsers: float) -> Workflow:
    """A SIPHT of exactly `tasks` tasks."""
    once = len(_TIMES)
    require_tasks("sipht", tasks, once + 1)
    require(patsers >= 1, "sipht", f"patsers must be at least 1, not {patsers}")
    # The Pegasus generator counts thirteen tasks besides the Patsers where there are twelve; this keeps its parts.
    parts = max(1, min(round(tasks / (patsers + once + 1)), tasks // (once + 1)))
    draft = RecipeDraft(f"sipht-{tasks}")
    codes = numbered("NC_{}", parts)
    of_kind = {kind: draft.add(kind, around(rng, *time, parts)) for kind, time in _TIMES.items()}
    genomes = _draw_files(draft, rng, codes, of_kind)
    _draw_patsers(draft, rng, of_kind, genomes, near_even_parts(rng, tasks - once * parts, parts, 0.2))
    return draft.workflow()


def _draw_files(draft: RecipeDraft, rng: Chance, codes: list[str], of_kind: dict[str, Ints]) -> Ints:
    """All files but those of the Patsers. Returns the genomes, the first of `_FILES`."""
    numbers = []
    for name, mean, deviation, writer, readers in _FILES:
        files = draft.files([name.format(code) for code in codes], around(rng, mean, deviation, len(codes)))
        numbers.append(files)
        if writer:
            draft.writes(of_kind[writer], files)
        for reader in readers:
            draft.reads(of_kind[reader], files)
    for name, size, readers in _SHARED:
        shared = draft.files(name, size)
        for reader in readers:
            draft.reads(of_kind[reader], shared)
    return numbers[0]


def _draw_patsers(draft: RecipeDraft, rng: Chance, of_kind: dict[str, Ints], genomes: Ints, counts: Ints) -> None:
    total = int(counts.sum())
    part = np.repeat(np.arange(len(counts)), counts)
    patser = draft.add("Patser", around(rng, 1.27, 0.332, total))
    draft.reads(patser, genomes[part])
    draft.reads(patser, draft.files(numbered("matrix_{}.txt", total), 170_917))
    sizes = around(rng, 91_780, 248_987, total)
    found = draft.files(numbered("PatserOut_{}.txt", total), sizes)
    draft.writes(patser, found)
    concate, annotate = of_kind["Patser_concate"], of_kind["SRNA_annotate"]
    draft.reads(concate[part], found)
    joined = draft.files(numbered("NC_{}_PatserOut.txt", len(counts)), np.bincount(part, sizes))
    draft.writes(concate, joined)
    draft.reads(annotate, joined)


SIPHT = Recipe(
    name="sipht",
    summary="small RNAs: independent parts, many short tasks beside a few that hold the work",
    source="Pegasus workflow generator (S. Bharathi, G. Juve; pegasus-isi/WorkflowGenerator)",
    default_tasks=250,
    parameters=(Parameter("patsers", 18.0, "Patser tasks per part, about"),),
    build=build_sipht,
)
