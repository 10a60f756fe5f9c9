"""Workflows in phases: each phase waits for the one before through files. Used by fork-join and EMAN.

Law: of two neighbouring phases at least one is a single task, so the number of files read grows with the tasks only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.model.workflow import Floats
from windrow.recipes.draft import RecipeDraft, numbered

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Phase:
    """Tasks of one kind that run side by side: one for each run time."""

    kind: str
    runtime_s: Floats


def draw_phases(draft: RecipeDraft, phases: list[Phase], file_bytes: float) -> None:
    """Adds the phases in order. Every task writes one file; every task of the next phase reads all of them."""
    before = draft.files("input", file_bytes)
    for number, phase in enumerate(phases):
        tasks = draft.add(phase.kind, phase.runtime_s)
        assert len(tasks) == 1 or len(before) == 1, "two parallel phases need a single task between them"
        draft.reads(tasks, before)
        before = draft.files(numbered(f"phase_{number}_{{}}", len(tasks)), file_bytes)
        draft.writes(tasks, before)


def single(kind: str, runtime_s: float) -> Phase:
    """A phase of one task."""
    return Phase(kind, np.array([runtime_s]))
