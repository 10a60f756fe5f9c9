"""The numbers in the text of the GLUME thesis (sections 5.2, 5.3, 7.1, 7.2), each beside ours.

A count of workflows agrees where the majority is on the same side. A percentage agrees where ours is within a quarter
of the printed one, or within three points; where print gives two, both must. On a synthetic log nothing can agree or
differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from windrow.reproductions.glume.results import Floats, GlumeResults
from windrow.reproductions.grid import BEATS
from windrow.reproductions.paper import Claim, printed

_POINTS = 3.0
_PART = 0.25
_PRINTED = printed("glume")
_OF = 12  # workflows of 250 tasks, in print


def claims(results: GlumeResults) -> list[Claim]:
    """All of them, in the order of the text."""
    parts = (_cap_128(results), _cap_16(results), _enhanced(results), _chapter_7(results))
    all_claims = [claim for part in parts for claim in part]
    return [replace(c, agrees=None) for c in all_claims] if results.is_synthetic else all_claims


def _cap_128(r: GlumeResults) -> Iterator[Claim]:
    names, where, there = r.workflows("-250-"), "figure 5.2", _PRINTED["figure_5_2"]
    of = len(names)
    alone, better = _alone(r, 128, names), _means(r, "KTH", 128, names, "individual")
    better = better[better > 0]
    what = "workflows on which individual is better than zhang"
    yield _count(where, what, there["individual_better"], len(better), of)
    what = "its improvement there, mean"
    yield _figure(where, what, there["individual_better_mean"], _mean(better), absent=False)
    what = "its improvement there, at most"
    yield _figure(where, what, there["individual_better_most"], _most(better), absent=False)
    yield _figure(where, "runs in which zhang goes task by task", there["zhang_task_by_task"], _share(alone))
    gains = np.concatenate([r.gains("KTH", "accurate", 128, n, "individual") for n in names])
    grouped = gains[~alone] if len(gains) == len(alone) else gains[:0]
    ahead = _share(grouped < 0)
    is_so = None if ahead is None else ahead < 30
    yield Claim(where, "of the others, those in which zhang beats individual", "under 30 %", _percent(ahead), is_so)
    one = int((_means(r, "KTH", 128, names, "one-job") > -BEATS).sum())
    yield _count(where, "workflows on which one-job is similar or better", there["one_job_similar"], one, of)
    level = int((_means(r, "KTH", 128, names, "level-by-level") >= BEATS).sum())
    yield _count(where, "workflows on which level-by-level is better by 5 %", there["level_by_level_better"], level, of)


def _cap_16(r: GlumeResults) -> Iterator[Claim]:
    names, where, there = r.workflows("-250-"), "figure 5.3", _PRINTED["figure_5_3"]
    one = int((_means(r, "KTH", 16, names, "one-job") > 0).sum())
    yield _count(where, "workflows on which one-job is better than zhang", there["one_job_better"], one, len(names))
    single = int((_means(r, "KTH", 16, names, "individual") < 0).sum())
    yield _count(where, "workflows on which individual loses to zhang", there["individual_worse"], single, len(names))
    runs = [r.runs("KTH", "accurate", 16, name, "zhang") for name in names]
    whole = np.concatenate([(run.jobs == 1) & ~run.individually for run in runs])
    yield _figure(where, "runs in which zhang sends one job", there["zhang_one_job"], _share(whole))
    gains = np.concatenate([r.gains("KTH", "accurate", 16, n, "one-job") for n in names])
    cut = gains[~whole] if len(gains) == len(whole) else gains[:0]
    what = "of the others, those in which zhang beats one-job"
    yield _figure(where, what, there["zhang_beats_one_job"], _share(cut < 0))


def _enhanced(r: GlumeResults) -> Iterator[Claim]:
    rows = {(e.log, e.length, e.version): e for e in r.enhancements()}
    for log, length, (improved, runs, by) in (row.values() for row in _PRINTED["section_5_3"]):
        ours = rows[log, length, "2"]
        share, there = 100 * ours.improved / max(1, ours.runs), 100 * improved / runs
        words = f"{ours.improved} of {ours.runs}, by {ours.improvement:.2f} %"
        print_words = f"{improved} of {runs}, by {by} %"
        what = f"runs of 250-{length} that enhancement 2 improves"
        yield Claim(
            f"5.3, {log}", what, print_words, words, _is_close(there, share) and _is_close(by, ours.improvement)
        )
    for version in ("1", "3"):
        mine = [e for e in rows.values() if e.version == version]
        improved, worsened, total = (sum(getattr(e, f) for e in mine) for f in ("improved", "worsened", "runs"))
        words = f"{improved} better, {worsened} worse, of {total:,}"
        yield Claim(
            "5.3", f"runs that enhancement {version} changes", "none", words, improved + worsened <= total / 100
        )


def _chapter_7(r: GlumeResults) -> Iterator[Claim]:
    there = _PRINTED["chapter_7"]
    lost = -_means(r, "SDSC", 16, r.workflows("-medium"), "glume", "actual")
    lost = lost[lost >= BEATS]
    what = "by how much zhang beats glume where it does, mean"
    yield _figure("7.1.2", what, there["medium_lost_mean"], _mean(lost), absent=False)
    yield _figure("7.1.2", "the same, at most", there["medium_lost_most"], _most(lost), absent=False)
    short = -_means(r, "SDSC", 16, r.workflows("-short"), "glume")
    what = "by how much zhang beats glume, at most"
    yield _figure("7.2, accurate", what, there["short_lost_most"], float(short.max()))
    worst = float(-_means(r, "SDSC", 16, r.workflows("-short"), "glume", "actual").mean())
    what = "by how much zhang beats glume, mean"
    yield Claim("7.2, actual", what, "a factor of 2", _percent(worst), worst >= 50)


def _means(
    r: GlumeResults, log: str, cap: int, names: Sequence[str], strategy: str, requests: str = "accurate"
) -> Floats:
    return np.array([r.improvement(log, requests, cap, name, strategy) for name in names])


def _alone(r: GlumeResults, cap: int, names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.concatenate([r.runs("KTH", "accurate", cap, name, "zhang").individually for name in names])


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _most(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None


def _share(flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    return 100 * float(flags.mean()) if len(flags) else None


def _percent(value: float | None) -> str:
    return "no such run" if value is None else f"{value:.2f} %"


def _count(where: str, what: str, printed: int, ours: int, of: int) -> Claim:
    agrees = (2 * printed > _OF) == (2 * ours > of)
    if 2 * printed == _OF:
        agrees = abs(ours / of - printed / _OF) <= 0.25
    return Claim(where, what, f"{printed} of {_OF}", f"{ours} of {of}", agrees)


def _is_close(printed: float, ours: float) -> bool:
    return abs(ours - printed) <= max(_POINTS, _PART * printed)


def _figure(where: str, what: str, printed: float, ours: float | None, *, absent: bool | None = None) -> Claim:
    """`absent` is the verdict where we have no such run: it differs where print has some, else it stays open."""
    agrees = absent if ours is None else _is_close(printed, ours)
    return Claim(where, what, f"{printed} %", _percent(ours), agrees)
