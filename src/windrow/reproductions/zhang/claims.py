"""The claims in the text of Zhang, Koelbel and Cooper (section IV-C), each beside what our runs say.

A claim about order agrees only where our means come in that order in every cell it speaks of, whether or not the
differences are significant; the counts tell how far off it is. "About", "almost" and ranges allow a quarter either way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from windrow.reproductions.paper import Claim
from windrow.reproductions.zhang.plan import CLUSTERS, POLICIES, STRATEGY_NAMES, WIDTHS
from windrow.reproductions.zhang.results import PRINTED_WAIT_S, Chosen, ZhangResults, every_one, of_application, ranking

Place = tuple[str, str]


def claims(results: ZhangResults) -> list[Claim]:
    """All of them, in the order of the text."""
    parts = (_overall, _clusters, _ada, _cpu, _star, _rtc, _lemieux, _applications)
    return [claim for part in parts for claim in part(results)]


def _overall(r: ZhangResults) -> Iterator[Claim]:
    cells = _cells()
    least = [cell for cell in cells if ranking(_waits(r, *cell))[0] == "zhang"]
    words, of = "clusters and policies where hybrid waits least", len(cells)
    yield Claim("figure 10", words, "14 of 15 and a tie", f"{len(least)} of {of}", len(least) >= of - 1)
    worse = [cell for cell in cells if _is_beaten(r, *cell)]
    words = "clusters and policies where another waits less than hybrid, p below 0.05"
    yield Claim("figure 10", words, "none", _named(worse), not worse)
    tests = [c.by_run.is_significant() for c in r.comparisons() if c.cluster in CLUSTERS]
    words = "differences of mean waits with p below 0.05, paired t-test"
    printed, ours = f"all but 1 of {len(tests)}", f"{sum(tests)} of {len(tests)}"
    yield Claim("figure 10", words, printed, ours, sum(tests) >= len(tests) - 1)
    cuts = [1 - _share(w[2], max(w[:2])) for w in (_waits(r, *cell) for cell in cells)]
    most = max(cuts)
    yield Claim("abstract", "the most of another's mean wait that hybrid removes", "70 %", _percent(most), most >= 0.7)
    same = [c for c in CLUSTERS if len({ranking(_waits(r, c, policy)) for policy in POLICIES}) == 1]
    words = "clusters on which policy does not change the order of the three"
    yield _count("figure 10", words, len(CLUSTERS), len(same), len(CLUSTERS))


def _clusters(r: ZhangResults) -> Iterator[Claim]:
    lone = [p for p in POLICIES if all(_waits(r, "Lonestar", p)[2] < _waits(r, c, p)[2] for c in CLUSTERS[1:])]
    yield _count("figure 10", "policies under which waits are least on Lonestar", 3, len(lone), 3)
    for clusters, worse, better in ((("Ada", "LeMieux"), 0, 1), (("RTC", "Star"), 1, 0)):
        cells = _cells(clusters)
        here = [cell for cell in cells if _waits(r, *cell)[worse] > _waits(r, *cell)[better]]
        words = f"on {' and '.join(clusters)}, {STRATEGY_NAMES[worse]} waits longer than {STRATEGY_NAMES[better]}"
        yield _count("figure 10", words, len(cells), len(here), len(cells))


def _ada(r: ZhangResults) -> Iterator[Claim]:
    relative = {p: [r.mean("relative_wait", ("Ada",), p, s) for s in STRATEGY_NAMES] for p in POLICIES}
    giant = {p: values[1] for p, values in relative.items()}
    words = "giant's relative wait on Ada is longest under"
    longest = max(giant, key=lambda p: giant[p])
    numbers = ", ".join(f"{p} {value:.2f}" for p, value in giant.items())
    yield Claim("figure 12", words, "FS", f"{longest} ({numbers})", longest == "FS")
    least = [p for p, values in relative.items() if ranking(values)[0] == "zhang"]
    yield _count("figure 12", "policies under which hybrid's relative wait is least", 3, len(least), 3)


def _cpu(r: ZhangResults) -> Iterator[Claim]:
    used = {s: r.mean("cpu_s", CLUSTERS, "FS", s) / 3600 for s in STRATEGY_NAMES}
    ratio = _share(used["giant"], used["individual"])
    yield _about("figure 13", "CPU hours of giant over those of individual", "almost 3", 3, ratio, f"{ratio:.2f}")
    by_cluster = {c: [r.mean("cpu_s", (c,), "FS", s) for s in ("giant", "zhang")] for c in CLUSTERS}
    less = {c: 1 - _share(zhang, giant) for c, (giant, zhang) in by_cluster.items()}
    numbers = f"{100 * min(less.values()):.0f}-{_percent(max(less.values()))}"
    agrees = all(0.075 <= value <= 0.25 for value in less.values())
    yield Claim("figure 13", "by how much hybrid holds fewer CPU hours than giant", "10-20 %", numbers, agrees)
    star_h = r.mean("cpu_s", ("Star",), "FS", "giant") / 3600
    yield Claim("figure 13", "CPU hours of a giant job on Star", "under 600", f"{star_h:.0f}", star_h < 600)


def _star(r: ZhangResults) -> Iterator[Claim]:
    waits = {p: _waits(r, "Star", p) for p in POLICIES}
    best = [s for i, s in enumerate(STRATEGY_NAMES) if min(POLICIES, key=lambda p: waits[p][i]) == "FS"]
    yield _count("text, Star", "strategies that wait least under FS", 3, len(best), 3)


def _rtc(r: ZhangResults) -> Iterator[Claim]:
    large = [c.is_large for c in r.plan.configurations]
    share = sum(large) / len(large)
    yield _about("text, RTC", "workflows wider than 128", "about 30 %", 0.3, share, _percent(share))
    least = [p for p in POLICIES if ranking(_waits(r, "RTC", p, lambda c: not c.is_large))[0] == "zhang"]
    yield _count("figure 14", "policies under which hybrid waits least for small workflows on RTC", 3, len(least), 3)
    worst = [p for p in POLICIES if ranking(_waits(r, "RTC", p, lambda c: c.is_large))[-1] == "giant"]
    yield _count("figure 14", "policies under which giant waits longest for large ones", 3, len(worst), 3)
    alone = [r.mean("individually", ("RTC",), p, "zhang", lambda c: c.is_large) for p in POLICIES]
    mean = sum(alone) / len(alone)
    words = "large workflows on RTC that hybrid sends task by task, at least in part"
    yield Claim("text, RTC", words, "virtually all", _percent(mean), mean >= 0.9)


def _lemieux(r: ZhangResults) -> Iterator[Claim]:
    printed = {c: _advantage(waits) for c, waits in PRINTED_WAIT_S.items()}
    ours = {c: _advantage(_waits(r, c, "FCFS")) for c in CLUSTERS}
    there, here = (max(cuts, key=lambda c: cuts[c]) for cuts in (printed, ours))
    words = "where hybrid cuts most off the better of the other two, FCFS"
    yield Claim(
        "text, LeMieux",
        words,
        f"{there} ({_percent(printed[there])})",
        f"{here} ({_percent(ours[here])})",
        there == here,
    )


def _applications(r: ZhangResults) -> Iterator[Claim]:
    waits = {app: [r.mean("wait_s", CLUSTERS, "FL", s, of_application(app)) for s in STRATEGY_NAMES] for app in WIDTHS}
    gauss = waits["gauss"]
    words = "gauss: giant waits less than individual"
    numbers = f"{gauss[1] / 3600:.1f} h against {gauss[0] / 3600:.1f} h"
    yield Claim("figure 15", words, "yes", numbers, gauss[1] < gauss[0])
    worst = [app for app in WIDTHS if app != "gauss" and ranking(waits[app])[-1] == "giant"]
    yield _count("figure 15", "other applications for which giant waits longest", 4, len(worst), 4)
    least = [app for app in WIDTHS if ranking(waits[app])[0] == "zhang"]
    yield _count("figure 15", "applications for which hybrid waits least", 5, len(least), 5)


def _cells(clusters: Sequence[str] = CLUSTERS) -> list[Place]:
    return [(cluster, policy) for cluster in clusters for policy in POLICIES]


def _waits(r: ZhangResults, cluster: str, policy: str, chosen: Chosen = every_one) -> list[float]:
    return [r.mean("wait_s", (cluster,), policy, s, chosen) for s in STRATEGY_NAMES]


def _is_beaten(r: ZhangResults, cluster: str, policy: str) -> bool:
    return "zhang" not in r.leaders(cluster, policy)


def _named(cells: Sequence[Place]) -> str:
    return f"{len(cells)}: " + ", ".join(" ".join(cell) for cell in cells) if cells else "none"


def _advantage(waits: Sequence[float]) -> float:
    """How much of the better of the other two's wait the hybrid cuts off; below 0 where it waits longer."""
    return 1 - _share(waits[2], min(waits[:2]))


def _share(part: float, whole: float) -> float:
    """Of nothing, nothing is a whole: where both wait 0, neither is better."""
    if whole == 0:
        return 1.0 if part == 0 else math.inf
    return part / whole


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _count(where: str, what: str, printed: int, ours: int, of: int) -> Claim:
    return Claim(where, what, f"{printed} of {of}", f"{ours} of {of}", ours == printed)


def _about(where: str, what: str, words: str, printed: float, ours: float, ours_words: str) -> Claim:
    return Claim(where, what, words, ours_words, abs(ours - printed) <= 0.25 * printed)
