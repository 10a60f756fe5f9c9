"""Zhang, Koelbel and Cooper, repeated: their figures and claims beside ours."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from typing import Any

from windrow.model.usage import Usage
from windrow.report.page import Block
from windrow_lab.reproductions.cases import logs_words
from windrow_lab.reproductions.charts import grouped_bars, short, value_rows
from windrow_lab.reproductions.paired import PairedTest
from windrow_lab.reproductions.paper import (
    AGREEMENT,
    Gallery,
    Listing,
    Paper,
    Picture,
    Report,
    Texts,
    claims_words,
)
from windrow_lab.reproductions.zhang.claims import claims, told_claim
from windrow_lab.reproductions.zhang.plan import (
    CLUSTERS,
    POLICIES,
    STRATEGY_NAMES,
    ZhangPlan,
    plan_wished,
)
from windrow_lab.reproductions.zhang.results import (
    Means,
    ZhangFigure,
    ZhangResults,
    figure_11,
    ranking,
)

_TEXTS = Texts("zhang")


def report(plan: ZhangPlan, found: Sequence[Any]) -> Report:
    """What the campaigns, and the calls behind them, came to."""
    count = len(plan.campaigns)
    results = ZhangResults(plan, found[:count])
    said = claims(results)
    if found[count:]:
        said.append(told_claim(found[count:]))
    means = results.means()
    usages = list(figure_11(plan))
    findings = [claims_words(said), _figure_10(means), _advice(results)]
    if plan.cap is not None:
        bound = "a bound that print does not have"
        findings.append(f"A run may have {plan.cap} jobs in the system at once, {bound}.")
    return _TEXTS.report(
        plan,
        findings,
        [
            _TEXTS.claims(said),
            _printed_waits([m for m in means if m.printed_h]),
            Gallery("The figures", _TEXTS["figures"], [*map(_picture, results.figures())]),
            _all_means(results, means),
            _groups(results),
            _tests(results),
            _figure_11(usages),
            Listing("What was run", [*_what(results)]),
            Listing("Why numbers may differ from print", _TEXTS["differences"]),
        ],
        {
            "cap": plan.cap,
            "readings": plan.readings,
            "strategies": STRATEGY_NAMES,
            "means": [asdict(m) | {"agrees": m.agrees} for m in means],
            "groups": [asdict(g) for g in results.groups()],
            "claims": [asdict(c) for c in said],
            "t_tests": [asdict(c) for c in results.comparisons()],
            "figures": [asdict(f) for f in results.figures()],
            "figure_11": [_usage_json(*usage) for usage in usages],
        },
        results.counted,
        trials=results.trials,
        clusters=len(results.clusters),
    )


def _usage_json(cluster: str, ours: Usage, there: Usage | None) -> dict[str, object]:
    printed = asdict(there) if there else None
    return {"cluster": cluster, "ours": asdict(ours), "printed": printed}


def _figure_10(means: Sequence[Means]) -> str:
    known = [m for m in means if m.agrees is not None]
    first = [m for m in known if m.printed_h and ranking(m.wait_h)[0] == ranking(m.printed_h)[0]]
    return (
        "Figure 10 (a), the one with printed numbers: the same strategy waits least on "
        f"{len(first)} of {len(known)} "
        f"clusters, and all three come in print's order on {sum(m.agrees is True for m in known)}."
    )


def _advice(results: ZhangResults) -> str:
    cells = [(cluster, policy) for cluster in results.clusters for policy in POLICIES]
    counts = Counter(strategy for cell in cells for strategy in results.leaders(*cell))
    ranked = sorted(STRATEGY_NAMES, key=lambda name: -counts[name])
    words = ", ".join(f"{name} in {counts[name]}" for name in ranked)
    return (
        f"Which strategy none beats, by mean wait with p below 0.05, in {len(cells)} cases of "
        "cluster and policy: "
        f"{words}. zhang is the paper's hybrid."
    )


def _picture(f: ZhangFigure) -> Picture:
    rows = value_rows(f.groups, f.values)
    block = Block(f"Figure {f.figure}", f"{f.caption} Values: {f.unit}.", ("", *f.values), rows)
    return Picture(
        grouped_bars(f.groups, f.values, f.unit, f"Figure {f.figure}. {f.caption}", short), block
    )


def _what(results: ZhangResults) -> Iterator[tuple[str, str]]:
    plan = results.plan
    first = plan.campaigns[0]
    yield "scale", plan.scale
    yield "clusters", logs_words(plan.logs)
    yield "policies", ", ".join(f"{name} ({rules.label})" for name, rules in POLICIES.items())
    workflows = ", ".join(c.name for c in plan.configurations)
    yield "workflows", f"{len(plan.configurations)}: {workflows}"
    yield "submission times", f"{len(first.submit_s)} random ones of each log"
    yield "strategies", ", ".join(s.name for s in first.strategies)
    if plan.cap is None:
        cap = "no cap on jobs"
    else:
        cap = f"a cap of {plan.cap} jobs"
    yield "terms", ", ".join([cap, *(f"{name} {value}" for name, value in first.terms)])
    yield "averages over clusters", ", ".join(CLUSTERS)
    yield from plan.campaign_facts()


def _printed_waits(means: Sequence[Means]) -> Block:
    rows = []
    for m in means:
        assert m.printed_h is not None
        both = (m.printed_h, m.wait_h)
        numbers = [_three(values) for values in both]
        ratios = [f"{_ratio(values, 0)} / {_ratio(values, 1)}" for values in both]
        rows.append((m.cluster, *numbers, *ratios, AGREEMENT[m.agrees]))
    head = ("", "print, h", "here, h", "ratios in print", "ratios here", "")
    return _TEXTS.block("printed_waits", head, rows)


def _all_means(results: ZhangResults, means: Sequence[Means]) -> Block:
    rows = []
    best = set()
    for i, m in enumerate(means):
        best |= {(i, 1 + STRATEGY_NAMES.index(s)) for s in results.leaders(m.cluster, m.policy)}
        waits = (_hours(v) for v in m.wait_h)
        rows.append((f"{m.policy}, {m.cluster}", *waits, _three(m.relative_wait), _three(m.cpu_h)))
    head = ("", *STRATEGY_NAMES, "relative waits", "CPU hours")
    return _TEXTS.block("means", head, rows, best)


def _groups(results: ZhangResults) -> Block:
    rows = []
    for g in results.groups():
        means = (*map(_hours, g.wait_h), _three(g.relative_wait), _three(g.cpu_h))
        rows.append((f"{g.policy}, {g.name}", *means, *map(p_words, g.tests)))
    head = ("", *STRATEGY_NAMES, "relative waits", "CPU hours", "p, individual", "p, giant")
    return _TEXTS.block("groups", head, rows)


def _tests(results: ZhangResults) -> Block:
    mine = [c for c in results.comparisons() if c.second == "zhang"]
    rows = ((c, c.by_run.difference / 3600, p_words(c.by_run), p_words(c.by_time)) for c in mine)
    return _TEXTS.table("tests", rows)


def _figure_11(usages: Sequence[tuple[str, Usage, Usage | None]]) -> Block:
    rows = []
    for name, *both in usages:
        for where, row in zip(("here", "print"), both, strict=True):
            if row:
                nodes, *means = astuple(row)
                numbers = (f"{value:,.0f}" if value >= 100 else f"{value:.2f}" for value in means)
                rows.append((f"{name}, {where}", f"{nodes:,}", *numbers))
    head = (
        "",
        "nodes",
        "jobs a day",
        "width",
        "run, h",
        "request, node h",
        "load",
        "requested load",
    )
    return _TEXTS.block("usage", head, rows)


def p_words(test: PairedTest) -> str:
    """The p-value as people write it."""
    if test.p is None:
        return "too few pairs"
    if test.p < 0.0001:
        return "below 0.0001"
    return f"{test.p:.4f}"


def _hours(value: float) -> str:
    if math.isnan(value):
        return "no run"
    return f"{short(value)} h"


def _three(values: Sequence[float]) -> str:
    return " / ".join(map(short, values))


def _ratio(values: Sequence[float], other: int) -> str:
    if values[other]:
        return f"{values[2] / values[other]:.2f}"
    return "-"


PAPER = Paper(
    plan_wished,
    report,
    "own three policies",
    options=("data", "cap", "reading"),
    needs=("matplotlib", "scipy"),
)
