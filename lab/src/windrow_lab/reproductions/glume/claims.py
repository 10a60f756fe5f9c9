"""The numbers in the text of the GLUME thesis (sections 5.2, 5.3, 7.1, 7.2), each beside ours.

A count of workflows agrees if the majority is on the same side. A percentage agrees if ours
is within a quarter of the printed one, or within three points; if print gives two, both must. On
a synthetic log nothing can agree or differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow_lab.reproductions.cases import BEATS
from windrow_lab.reproductions.glume.results import Enhancement, Floats, GlumeResults
from windrow_lab.reproductions.paper import Claim, printed

_POINTS = 3.0
_PART = 0.25
_PRINTED = printed("glume")
_OF = 12  # workflows of 250 tasks, in print


def claims(results: GlumeResults) -> list[Claim]:
    """All of them, in the order of the text."""
    ours = _figure_5_2(results) | _figure_5_3(results) | _chapter_7(results)
    of = len(results.workflows("-250-"))
    by_chapter = {
        chapter: [_claim(row, ours[row["ours"]], of) for row in rows]
        for chapter, rows in _PRINTED["claims"].items()
    }
    said = [
        *by_chapter["chapter_5"],
        *_losses(results),
        *_enhanced(results),
        *by_chapter["chapter_7"],
    ]
    if results.is_synthetic:
        return [replace(c, agrees=None) for c in said]
    return said


def _figure_5_2(r: GlumeResults) -> dict[str, float | None]:
    names = r.workflows("-250-")
    better = _means(r, "KTH", 128, "-250-", "individual")
    better = better[better > 0]
    runs = [r.runs["KTH", "accurate", 128, name, "zhang"] for name in names]
    alone = np.concatenate([run.individually for run in runs])
    gains = np.concatenate([r.gains("KTH", "accurate", 128, name, "individual") for name in names])
    return {
        "individual_better": len(better),
        "individual_better_mean": float(better.mean()) if len(better) else None,
        "individual_better_most": float(better.max()) if len(better) else None,
        "zhang_task_by_task": _share(alone),
        "zhang_beats_individual": _share(gains[~alone] < 0) if len(gains) == len(alone) else None,
    } | _of_whole_levels(r)


def _of_whole_levels(r: GlumeResults) -> dict[str, float | None]:
    one_job = _means(r, "KTH", 128, "-250-", "one-job")
    by_level = _means(r, "KTH", 128, "-250-", "level-by-level")
    return {
        "one_job_similar": int((one_job > -BEATS).sum()),
        "level_by_level_better": int((by_level >= BEATS).sum()),
    }


def _figure_5_3(r: GlumeResults) -> dict[str, float | None]:
    names = r.workflows("-250-")
    runs = [r.runs["KTH", "accurate", 16, name, "zhang"] for name in names]
    whole = np.concatenate([(run.jobs == 1) & ~run.individually for run in runs])
    gains = np.concatenate([r.gains("KTH", "accurate", 16, name, "one-job") for name in names])
    return {
        "one_job_better": int((_means(r, "KTH", 16, "-250-", "one-job") > 0).sum()),
        "individual_worse": int((_means(r, "KTH", 16, "-250-", "individual") < 0).sum()),
        "zhang_one_job": _share(whole),
        "zhang_beats_one_job": _share(gains[~whole] < 0) if len(gains) == len(whole) else None,
    }


def _losses(r: GlumeResults) -> Iterator[Claim]:
    """By how much the other wins on the workflows on which it is not better in figures 5.2 and 5.3;
    print has three each."""
    for where, cap, strategy, there in _PRINTED["losses"]:
        gains = _means(r, "KTH", cap, "-250-", strategy)
        ours = sorted(-gains[gains < 0], reverse=True)
        pairs = zip(sorted(there, reverse=True), ours, strict=False)
        agrees = len(ours) == len(there) and all(_is_close(a, b) for a, b in pairs)
        words = [", ".join(f"{by:.2f}" for by in some) + " %" for some in (there, ours)]
        what = f"where zhang is better than {strategy}, by"
        yield Claim(where, what, words[0], words[1] if ours else "nowhere", agrees)


def _enhanced(r: GlumeResults) -> Iterator[Claim]:
    rows = {(e.log, e.length, e.version): e for e in r.enhancements() if e.cap == 16}
    for log, length, there in (row.values() for row in _PRINTED["section_5_3"]):
        yield _improved(rows[log, length, "2"], *there)
    for version in ("1", "3"):
        yield _unchanged(version, [e for e in rows.values() if e.version == version])


def _improved(ours: Enhancement, improved: int, runs: int, by: float) -> Claim:
    """What enhancement 2 improves, beside how many runs of how many it does in print, and by how
    much."""
    share = 100 * ours.improved / max(1, ours.runs)
    agrees = _is_close(100 * improved / runs, share) and _is_close(by, ours.improvement)
    what = f"runs of 250-{ours.length} that enhancement 2 improves"
    there = f"{improved} of {runs}, by {by} %"
    here = f"{ours.improved} of {ours.runs}, by {ours.improvement:.2f} %"
    return Claim(f"5.3, {ours.log}", what, there, here, agrees)


def _unchanged(version: str, rows: Sequence[Enhancement]) -> Claim:
    improved = sum(e.improved for e in rows)
    worsened = sum(e.worsened for e in rows)
    runs = sum(e.runs for e in rows)
    what = f"runs that enhancement {version} changes"
    here = f"{improved} better, {worsened} worse, of {runs:,}"
    return Claim("5.3", what, "none", here, improved + worsened <= runs / 100)


def _chapter_7(r: GlumeResults) -> dict[str, float | None]:
    lost = -_means(r, "SDSC", 16, "-medium", "glume", "actual")
    lost = lost[lost >= BEATS]
    return {
        "medium_lost_mean": float(lost.mean()) if len(lost) else None,
        "medium_lost_most": float(lost.max()) if len(lost) else None,
        "short_lost_most": float((-_means(r, "SDSC", 16, "-short", "glume")).max()),
        "short_lost_mean": float(-_means(r, "SDSC", 16, "-short", "glume", "actual").mean()),
    }


def _means(
    r: GlumeResults, log: str, cap: int, part: str, strategy: str, requests: str = "accurate"
) -> Floats:
    return np.array(
        [r.improvement(log, requests, cap, name, strategy) for name in r.workflows(part)]
    )


def _share(flags: NDArray[np.bool_]) -> float | None:
    if len(flags):
        return 100 * float(flags.mean())
    return None


def _is_close(printed: float, ours: float) -> bool:
    return abs(ours - printed) <= max(_POINTS, _PART * printed)


def _claim(row: Mapping[str, Any], ours: float | None, of: int) -> Claim:
    """What print has in `row` beside ours; `of` is how many workflows there are here."""
    where = row["where"]
    what = row["what"]
    count = row.get("count")
    if ours is not None and count is not None:
        there = f"{count} of {_OF}"
        return Claim(where, what, there, f"{ours} of {of}", _is_same_side(count, ours, of))
    words = row.get("words") or f"{row['percent']} %"
    if ours is None:
        return Claim(where, what, words, "no such run", row.get("absent"))
    match row:
        case {"below": bound}:
            is_so = ours < bound
        case {"least": bound}:
            is_so = ours >= bound
        case _:
            is_so = _is_close(row["percent"], ours)
    return Claim(where, what, words, f"{ours:.2f} %", is_so)


def _is_same_side(printed: int, ours: float, of: int) -> bool:
    """Whether it is the majority in both, or the minority; if it is half in print, about half."""
    if 2 * printed == _OF:
        return abs(ours / of - printed / _OF) <= 0.25
    return (2 * printed > _OF) == (2 * ours > of)
