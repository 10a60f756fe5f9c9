"""The numbers in the text of the GLUME thesis (sections 5.2, 5.3, 7.1, 7.2), each beside ours.

A count of workflows agrees where the majority is on the same side. A percentage agrees where ours is within a quarter
of the printed one, or within three points; where print gives two, both must. On a synthetic log nothing can agree or
differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from windrow.reproductions.claim import Claim
from windrow.reproductions.glume.results import BEATS, Floats, Results

_POINTS = 3.0
_PART = 0.25


def claims(results: Results) -> list[Claim]:
    """All of them, in the order of the text."""
    parts = (_cap_128(results), _cap_16(results), _enhanced(results), _chapter_7(results))
    all_claims = [claim for part in parts for claim in part]
    return [replace(c, agrees=None) for c in all_claims] if results.is_synthetic else all_claims


def _cap_128(r: Results) -> Iterator[Claim]:
    names = r.workflows("-250-")
    where = "figure 5.2"
    single = _means(r, "KTH", 128, names, "individual")
    better = single[single > 0]
    yield _count(where, "workflows on which individual is better than zhang", 9, 12, len(better), len(names))
    yield _figure(where, "its improvement there, mean", 11.16, _mean(better), absent=False)
    yield _figure(where, "its improvement there, at most", 21.06, _most(better), absent=False)
    yield _figure(where, "runs in which zhang goes task by task", 23.79, _share(_alone(r, 128, names)))
    gains = np.concatenate([r.gains("KTH", "accurate", 128, n, "individual") for n in names])
    grouped = gains[~_alone(r, 128, names)] if len(gains) == len(_alone(r, 128, names)) else gains[:0]
    ahead = _share(grouped < 0)
    is_so = None if ahead is None else ahead < 30
    yield Claim(where, "of the others, those in which zhang beats individual", "under 30 %", _percent(ahead), is_so)
    one = _means(r, "KTH", 128, names, "one-job")
    yield _count(where, "workflows on which one-job is similar or better", 6, 12, int((one > -BEATS).sum()), len(names))
    level = _means(r, "KTH", 128, names, "level-by-level")
    number = int((level >= BEATS).sum())
    yield _count(where, "workflows on which level-by-level is better by 5 %", 2, 12, number, len(names))


def _cap_16(r: Results) -> Iterator[Claim]:
    names = r.workflows("-250-")
    where = "figure 5.3"
    one = _means(r, "KTH", 16, names, "one-job")
    yield _count(where, "workflows on which one-job is better than zhang", 9, 12, int((one > 0).sum()), len(names))
    single = _means(r, "KTH", 16, names, "individual")
    yield _count(where, "workflows on which individual loses to zhang", 9, 12, int((single < 0).sum()), len(names))
    runs = [r.runs("KTH", "accurate", 16, name, "zhang") for name in names]
    whole = np.concatenate([(run.jobs == 1) & ~run.individually for run in runs])
    yield _figure(where, "runs in which zhang sends one job", 48.32, _share(whole))
    gains = np.concatenate([r.gains("KTH", "accurate", 16, n, "one-job") for n in names])
    cut = gains[~whole] if len(gains) == len(whole) else gains[:0]
    yield _figure(where, "of the others, those in which zhang beats one-job", 52.53, _share(cut < 0))


def _enhanced(r: Results) -> Iterator[Claim]:
    printed = {
        ("SDSC", "short"): (88, 1068, 3.57),
        ("KTH", "long"): (222, 822, 6.52),
        ("SDSC", "long"): (425, 819, 5.36),
    }
    rows = {(e.log, e.length, e.version): e for e in r.enhancements()}
    for (log, length), (improved, runs, by) in printed.items():
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


def _chapter_7(r: Results) -> Iterator[Claim]:
    lost = _means(r, "SDSC", 16, r.workflows("-medium"), "glume", "actual")
    lost = -lost[lost <= -BEATS]
    where = "7.1.2"
    yield _figure(where, "by how much zhang beats glume where it does, mean", 24.6, _mean(lost), absent=False)
    yield _figure(where, "the same, at most", 55.3, _most(lost), absent=False)
    short = -_means(r, "SDSC", 16, r.workflows("-short"), "glume")
    yield _figure("7.2, accurate", "by how much zhang beats glume, at most", 8.0, float(short.max()))
    worst = -_means(r, "SDSC", 16, r.workflows("-short"), "glume", "actual")
    is_so = bool(worst.mean() >= 50)
    yield Claim(
        "7.2, actual",
        "by how much zhang beats glume, mean",
        "a factor of 2",
        _percent(worst.mean()),
        is_so,
    )


def _means(r: Results, log: str, cap: int, names: Sequence[str], strategy: str, requests: str = "accurate") -> Floats:
    return np.array([r.improvement(log, requests, cap, name, strategy) for name in names])


def _alone(r: Results, cap: int, names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.concatenate([r.runs("KTH", "accurate", cap, name, "zhang").individually for name in names])


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _most(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None


def _share(flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    return 100 * float(flags.mean()) if len(flags) else None


def _percent(value: float | None) -> str:
    return "no such run" if value is None else f"{value:.2f} %"


def _count(where: str, what: str, printed: int, of: int, ours: int, ours_of: int) -> Claim:
    agrees = (2 * printed > of) == (2 * ours > ours_of)
    if 2 * printed == of:
        agrees = abs(ours / ours_of - printed / of) <= 0.25
    return Claim(where, what, f"{printed} of {of}", f"{ours} of {ours_of}", agrees)


def _is_close(printed: float, ours: float) -> bool:
    return abs(ours - printed) <= max(_POINTS, _PART * printed)


def _figure(where: str, what: str, printed: float, ours: float | None, *, absent: bool | None = None) -> Claim:
    """`absent` is the verdict where we have no such run: it differs where print has some, else it stays open."""
    agrees = absent if ours is None else _is_close(printed, ours)
    return Claim(where, what, f"{printed} %", _percent(ours), agrees)
