"""The claims in the text of Zhang, Koelbel and Cooper (section IV-C), each beside what our runs
say.

A claim about order agrees only if our means come in that order in every cell it speaks of,
whether or not the differences are significant; the counts tell how far off it is. A number agrees
within `TOLERANCE` of print's, either way; of what print says only how much it is at most or at
least, the printed words say so ("a bound").
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from windrow.model.wording import percent
from windrow_lab.reproductions.paper import Claim
from windrow_lab.reproductions.zhang.plan import CLUSTERS, POLICIES, STRATEGY_NAMES, WIDTHS
from windrow_lab.reproductions.zhang.results import (
    PRINTED_WAIT_S,
    Chosen,
    ZhangResults,
    every_one,
    of_application,
    ranking,
)
from windrow_lab.reproductions.zhang.told import Told

TOLERANCE = 0.15
"""Of the printed number; of a range, at both ends."""


def claims(results: ZhangResults) -> list[Claim]:
    """All of them, in the order of the text."""
    parts = (_figure_10, _figure_12, _sizes, _figure_13, _star, _rtc, _le_mieux, _applications)
    return [claim for part in parts for claim in part(results)]


def told_claim(told: Sequence[Told]) -> Claim:
    """How far the waits that jobs are told are off those that they have, in the mean of all."""
    jobs = max(1, sum(one.jobs for one in told))
    told_h = sum(one.jobs * one.told_s for one in told) / jobs / 3600
    waited_h = sum(one.jobs * one.waited_s for one in told) / jobs / 3600
    what = "mean wait that waiting jobs are told by the mean wait that they have, FCFS"
    words = f"{told_h:.1f} h by {waited_h:.1f} h, {jobs:,} jobs"
    agrees = abs(_share(told_h, waited_h) - 1) <= 0.05
    return Claim("thesis, 7.2", what, "within 5 %", words, agrees)


def _figure_10(r: ZhangResults) -> Iterator[Claim]:
    waits = {cell: _waits(r, *cell) for cell in product(CLUSTERS, POLICIES)}
    yield from _least_waits(r, waits)
    alike = (len({ranking(waits[c, p]) for p in POLICIES}) == 1 for c in CLUSTERS)
    what = "clusters on which policy does not change the order of the three"
    yield _all("figure 10", what, alike)
    lone = (all(waits["Lonestar", p][2] < waits[c, p][2] for c in CLUSTERS[1:]) for p in POLICIES)
    yield _all("figure 10", "policies under which waits are least on Lonestar", lone)
    for clusters, longer, less in ((("Ada", "LeMieux"), 0, 1), (("RTC", "Star"), 1, 0)):
        names = f"{STRATEGY_NAMES[longer]} waits longer than {STRATEGY_NAMES[less]}"
        cells = product(clusters, POLICIES)
        is_so = (waits[cell][longer] > waits[cell][less] for cell in cells)
        yield _all("figure 10", f"on {' and '.join(clusters)}, {names}", is_so)


def _least_waits(
    r: ZhangResults, waits: Mapping[tuple[str, str], Sequence[float]]
) -> Iterator[Claim]:
    """Where hybrid waits least, and whether that is significant."""
    least = sum(ranking(three)[0] == "zhang" for three in waits.values())
    what = "clusters and policies where hybrid waits least"
    ours = f"{least} of {len(waits)}"
    yield Claim("figure 10", what, "14 of 15 and a tie", ours, least >= len(waits) - 1)
    worse = [" ".join(cell) for cell in waits if "zhang" not in r.leaders(*cell)]
    what = "clusters and policies where another waits less than hybrid, p below 0.05"
    which = f"{len(worse)}: {', '.join(worse)}" if worse else "none"
    yield Claim("figure 10", what, "none", which, not worse)
    yield _significant(r)
    most = max(1 - _share(three[2], max(three[:2])) for three in waits.values())
    what = "the most of another's mean wait that hybrid removes"
    yield _about("abstract", what, "70 %", 0.7, most, percent(most))


def _significant(r: ZhangResults) -> Claim:
    tests = [c.by_run.is_significant() for c in r.comparisons() if c.cluster in CLUSTERS]
    found = sum(tests)
    of = len(tests)
    what = "differences of mean waits with p below 0.05, paired t-test"
    return Claim("figure 10", what, f"all but 1 of {of}", f"{found} of {of}", found >= of - 1)


def _figure_12(r: ZhangResults) -> Iterator[Claim]:
    relative = {
        p: [r.mean("relative_wait", ("Ada",), p, s) for s in STRATEGY_NAMES] for p in POLICIES
    }
    longest = max(relative, key=lambda p: relative[p][1])
    numbers = ", ".join(f"{p} {values[1]:.2f}" for p, values in relative.items())
    what = "giant's relative wait on Ada is longest under"
    yield Claim("figure 12", what, "FS", f"{longest} ({numbers})", longest == "FS")
    what = "policies under which hybrid's relative wait is least"
    yield _all("figure 12", what, (ranking(values)[0] == "zhang" for values in relative.values()))


def _sizes(r: ZhangResults) -> Iterator[Claim]:
    """Section 7.4.3: giant works better for bigger workflows, individual for smaller ones."""
    better = (_giant_by_individual(r, p, large=True) < _giant_by_individual(r, p) for p in POLICIES)
    what = "policies under which giant's wait by individual's is less for large workflows"
    yield _all("thesis, 7.4.3", what, better)


def _giant_by_individual(r: ZhangResults, policy: str, *, large: bool = False) -> float:
    giant, individual = (
        r.mean("relative_wait", CLUSTERS, policy, s, lambda c: c.is_large == large)
        for s in ("giant", "individual")
    )
    return _share(giant, individual)


def _figure_13(r: ZhangResults) -> Iterator[Claim]:
    def cpu_h(clusters: Sequence[str], strategy: str) -> float:
        return r.mean("cpu_s", clusters, "FS", strategy) / 3600

    ratio = _share(cpu_h(CLUSTERS, "giant"), cpu_h(CLUSTERS, "individual"))
    what = "CPU hours of giant over those of individual"
    yield _about("figure 13", what, "almost 3", 3, ratio, f"{ratio:.2f}")
    less = [1 - _share(cpu_h((c,), "zhang"), cpu_h((c,), "giant")) for c in CLUSTERS]
    what = "by how much hybrid holds fewer CPU hours than giant"
    numbers = f"{100 * min(less):.0f}-{percent(max(less))}"
    agrees = all(0.1 * (1 - TOLERANCE) <= part <= 0.2 * (1 + TOLERANCE) for part in less)
    yield Claim("figure 13", what, "10-20 %", numbers, agrees)
    star_h = cpu_h(("Star",), "giant")
    what = "CPU hours of a giant job on Star (work is calibrated by this figure)"
    agrees = 600 * (1 - TOLERANCE) <= star_h < 600
    yield Claim("figure 13", what, "just under 600", f"{star_h:.0f}", agrees)


def _star(r: ZhangResults) -> Iterator[Claim]:
    waits = {p: _waits(r, "Star", p) for p in POLICIES}
    least = (min(POLICIES, key=lambda p: waits[p][i]) == "FS" for i in range(len(STRATEGY_NAMES)))
    yield _all("text, Star", "strategies that wait least under FS", least)


def _rtc(r: ZhangResults) -> Iterator[Claim]:
    large = [c.is_large for c in r.plan.configurations]
    share = sum(large) / len(large)
    yield _about("text, RTC", "workflows wider than 128", "about 30 %", 0.3, share, percent(share))
    yield from _figure_14(r)
    alone = [r.mean("individually", ("RTC",), p, "zhang", lambda c: c.is_large) for p in POLICIES]
    mean = sum(alone) / len(alone)
    what = "large workflows on RTC that hybrid sends task by task, at least in part"
    yield Claim("text, RTC", what, "virtually all (a bound: 90 %)", percent(mean), mean >= 0.9)


def _figure_14(r: ZhangResults) -> Iterator[Claim]:
    what = "policies under which hybrid waits least for small workflows on RTC"
    least = (ranking(_waits(r, "RTC", p, lambda c: not c.is_large))[0] == "zhang" for p in POLICIES)
    yield _all("figure 14", what, least)
    most = (ranking(_waits(r, "RTC", p, lambda c: c.is_large))[-1] == "giant" for p in POLICIES)
    yield _all("figure 14", "policies under which giant waits longest for large ones", most)


def _le_mieux(r: ZhangResults) -> Iterator[Claim]:
    there, printed = _most_cut(PRINTED_WAIT_S)
    here, ours = _most_cut({c: _waits(r, c, "FCFS") for c in CLUSTERS})
    what = "where hybrid cuts most off the better of the other two, FCFS"
    yield Claim("text, LeMieux", what, printed, ours, there == here)


def _most_cut(waits: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """The cluster on which hybrid cuts most, by name, and with its share."""
    cut = {c: 1 - _share(three[2], min(three[:2])) for c, three in waits.items()}
    most = max(cut, key=cut.__getitem__)
    return most, f"{most} ({percent(cut[most])})"


def _applications(r: ZhangResults) -> Iterator[Claim]:
    waits = {
        app: [r.mean("wait_s", CLUSTERS, "FL", s, of_application(app)) for s in STRATEGY_NAMES]
        for app in WIDTHS
    }
    individual, giant, _ = waits["gauss"]
    numbers = f"{giant / 3600:.1f} h against {individual / 3600:.1f} h"
    yield Claim(
        "figure 15", "gauss: giant waits less than individual", "yes", numbers, giant < individual
    )
    worst = (ranking(waits[app])[-1] == "giant" for app in WIDTHS if app != "gauss")
    yield _all("figure 15", "other applications for which giant waits longest", worst)
    least = (ranking(three)[0] == "zhang" for three in waits.values())
    yield _all("figure 15", "applications for which hybrid waits least", least)


def _waits(
    r: ZhangResults, cluster: str, policy: str, chosen: Chosen = every_one
) -> Sequence[float]:
    return [r.mean("wait_s", (cluster,), policy, s, chosen) for s in STRATEGY_NAMES]


def _share(part: float, whole: float) -> float:
    """Of nothing, nothing is a whole: if both wait 0, neither is better."""
    if whole == 0:
        if part == 0:
            return 1.0
        return math.inf
    return part / whole


def _all(where: str, what: str, cases: Iterable[bool]) -> Claim:
    """That something is so in all cases."""
    found = list(cases)
    return Claim(
        where, what, f"{len(found)} of {len(found)}", f"{sum(found)} of {len(found)}", all(found)
    )


def _about(
    where: str, what: str, words: str, printed: float, ours: float, ours_words: str
) -> Claim:
    return Claim(where, what, words, ours_words, abs(ours - printed) <= TOLERANCE * printed)
