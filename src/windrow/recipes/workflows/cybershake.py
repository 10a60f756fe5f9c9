"""CyberShake: seismic hazard at one place (earthquake science).

Four levels: strain tensors are extracted (ExtractSGT), each serves many synthetic seismograms
(SeismogramSynthesis), each seismogram gives peak values (PeakValCalcOkaya), and both are zipped
(ZipSeis, ZipPSA).

Means and deviations of run times and sizes are those that the Pegasus workflow generator uses. That
generator multiplies PeakValCalcOkaya's time by its run-time factor twice, so its share of the work
grows with the work asked for: 1.5 % in the gallery's files, 34 to 89 % in those of the GLUME
thesis. Work asked for is therefore reached here by the same law (`square_peaks`), and evenly if
that is switched off.
"""

import math

import numpy as np

from windrow.errors import UserError
from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes.chance import Chance, around, near_even_parts
from windrow.recipes.draft import RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require_tasks, scale_evenly

_ZIPS = 2
_EXTRACTS_PER_TASK = 0.0081


def build_cybershake(rng: Chance, tasks: int, *, extracts: int, square_peaks: bool) -> Workflow:  # noqa: ARG001
    """A CyberShake of exactly `tasks` tasks. `square_peaks` matters only to
    `stretch_cybershake`."""
    require_tasks("cybershake", tasks, 7)
    if extracts:
        count = _checked(tasks, extracts)
    else:
        count = _draw_extracts(rng, tasks)
    parts = near_even_parts(rng, (tasks - _ZIPS - count) // 2, count, 0.25)
    return _drawn(RecipeDraft(f"cybershake-{tasks}"), rng, np.sort(parts))


def _checked(tasks: int, extracts: int) -> int:
    rest = tasks - _ZIPS - extracts
    if extracts < 1 or rest % 2 or rest < 2 * extracts:
        if tasks % 2 == 0:
            parity = "even"
        else:
            parity = "odd"
        most = (tasks - _ZIPS) // 3
        raise UserError(
            f"cybershake of {tasks} tasks: extracts must be {parity} and 1 to {most}, not "
            f"{extracts}"
        )
    return extracts


def _draw_extracts(rng: Chance, tasks: int) -> int:
    """Around 0.8 % of the tasks, at least two; one less if an even number of tasks must
    remain."""
    mean = int((tasks - _ZIPS) * _EXTRACTS_PER_TASK)
    low = math.ceil(mean / 2)
    high = math.floor(mean * 3 / 2)
    count = max(2, int(rng.integers(low, high)) if high > low else low)
    return count - (tasks - count) % 2


def _drawn(draft: RecipeDraft, rng: Chance, parts: Ints) -> Workflow:
    sites = len(parts)
    runs = int(parts.sum())
    extract = draft.add("ExtractSGT", around(rng, 137.45, 206, sites))
    synthesis = draft.add("SeismogramSynthesis", around(rng, 43.40, 31, runs))
    peak = draft.add("PeakValCalcOkaya", around(rng, 1.09, 1.926, runs))
    _tensors(draft, rng, extract, synthesis, np.repeat(np.arange(sites), parts))
    sizes = around(rng, 3_708_599, 3_187_576, runs)
    variation = draft.files(numbered("FFI_{}_txt.variation", runs), sizes, read_by=synthesis)
    draft.reads(extract, variation[np.cumsum(parts) - 1])
    seismogram = draft.files(
        numbered("Seismogram_FFI_{}.grm", runs), 24_000, written_by=synthesis, read_by=peak
    )
    values = draft.files(numbered("PeakVals_FFI_{}.bsa", runs), 216, written_by=peak)

    seismograms_bytes, values_bytes = runs * rng.uniform(0.25, 1.25, 2) * (24_000, 216) / 6
    zip_seismograms = draft.add("ZipSeis", seismograms_bytes / 228_180)
    draft.reads(zip_seismograms, seismogram)
    draft.files("Cybershake_Seismograms.zip", seismograms_bytes, written_by=zip_seismograms)
    zip_values = draft.add("ZipPSA", values_bytes / 2_782)
    draft.reads(zip_values, values)
    draft.files("Cybershake_PSA.zip", values_bytes, written_by=zip_values)
    return draft.workflow()


def _tensors(draft: RecipeDraft, rng: Chance, extract: Ints, synthesis: Ints, site: Ints) -> None:
    """What is extracted at each site, along both axes, for the seismograms there."""
    sites = len(extract)
    tensor = around(rng, 19_958_666_972, 306_030_527, sites)
    part = around(rng, 231_720_132, 164_565_041, sites)
    for axis in ("x", "y"):
        draft.files(numbered(f"FFI_{{}}_f{axis}.sgt", sites), tensor, read_by=extract)
        extracted = draft.files(
            numbered(f"FFI_{{}}_subf{axis}.sgt", sites), part, written_by=extract
        )
        draft.reads(synthesis, extracted[site])


def stretch_cybershake(
    workflow: Workflow, work_s: float, *, extracts: int, square_peaks: bool
) -> Floats:
    """Times a factor f for all tasks but PeakValCalcOkaya, f² for those, with the f that gives this
    work."""
    if not square_peaks:
        return scale_evenly(workflow, work_s, extracts=extracts)
    peaks = np.array([kind == "PeakValCalcOkaya" for kind in workflow.kinds])
    squared = float(workflow.runtime_s[peaks].sum())
    others = float(workflow.runtime_s[~peaks].sum())
    # The positive root of squared f² + others f = work, written so that nothing cancels.
    factor = 2 * work_s / (others + math.sqrt(others**2 + 4 * squared * work_s))
    factors: Floats = np.where(peaks, factor**2, factor)
    return workflow.runtime_s * factors
