"""Zhang, Koelbel and Cooper, run again: their figures and claims beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa

from windrow.report.block import Block
from windrow.reproductions.charts import grouped_bars, short
from windrow.reproductions.paper import (
    Fact,
    Gallery,
    Listing,
    Paper,
    Picture,
    Report,
    campaign_facts,
    claims_words,
)
from windrow.reproductions.zhang.claims import claims
from windrow.reproductions.zhang.clusters import figure_11
from windrow.reproductions.zhang.plan import CLUSTERS, POLICIES, STRATEGY_NAMES, ZhangPlan, plan_wished
from windrow.reproductions.zhang.results import Means, ZhangFigure, ZhangResults, ranking
from windrow.reproductions.zhang.tables import HYBRID, blocks

_REASONS = (
    "Its logs are private. Ours have the same means, but no weeks that are fuller than others.",
    "It does not say how many jobs a user may have in the system. Here any number, unless --cap sets a bound.",
    "The sizes and task times of its 125 workflows are not published; ours span the ranges that it names.",
    "The weights of its policies FL and FS are not published.",
    "Its pseudo-code has errors that its prose and later work correct; zhang is built from the corrected version.",
    "Runs that share a submission time share a queue, so a t-test over all runs finds too much. The test over "
    "submission times is the sounder one.",
)


def report(plan: ZhangPlan, tables: Sequence[pa.Table]) -> Report:
    """What the campaigns came to."""
    results = ZhangResults(plan, tables)
    said, drawn = claims(results), results.figures()
    lead = (
        f"{results.trials:,} simulated runs of five applications on {len(results.clusters)} clusters under three "
        "policies, by three ways of submitting them: our figures beside those of the paper that introduced zhang."
    )
    findings = [claims_words(said), _figure_10(results.means()), _advice(results)]
    if plan.cap is not None:
        findings.append(f"A run may have {plan.cap} jobs in the system at once, a bound that print does not have.")
    first, second, *others = blocks(results)
    return Report(
        plan,
        "Zhang, Koelbel and Cooper, run again",
        lead,
        findings,
        "2 of 25 workflows of each application, at 6 times instead of 100. --full runs all.",
        [
            first,
            second,
            Gallery("The figures", _HOW_TO_READ, [*map(_picture, drawn)]),
            *others,
            Listing("What was run", [*_what(results)]),
            Listing("Why numbers may differ from print", _REASONS),
        ],
        {
            "cap": plan.cap,
            "strategies": STRATEGY_NAMES,
            "means": [asdict(m) | {"agrees": m.agrees} for m in results.means()],
            "groups": [asdict(g) for g in results.groups()],
            "claims": [asdict(c) for c in said],
            "t_tests": [asdict(c) for c in results.comparisons()],
            "figures": [asdict(f) for f in drawn],
            "figure_11": [
                {"cluster": name, "ours": asdict(ours), "printed": asdict(there) if there else None}
                for name, ours, there in figure_11(plan)
            ],
        },
        results.trials,
        results.failed,
    )


def _figure_10(means: Sequence[Means]) -> str:
    known = [m for m in means if m.agrees is not None]
    first = [m for m in known if m.printed_h and ranking(m.wait_h)[0] == ranking(m.printed_h)[0]]
    return (
        f"Figure 10 (a), the one with printed numbers: the same strategy waits least on {len(first)} of {len(known)} "
        f"clusters, and all three come in print's order on {sum(m.agrees is True for m in known)}."
    )


def _advice(results: ZhangResults) -> str:
    counts = dict.fromkeys(STRATEGY_NAMES, 0)
    cells = [(cluster, policy) for cluster in results.clusters for policy in POLICIES]
    for place in cells:
        for strategy in results.leaders(*place):
            counts[strategy] += 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    words = ", ".join(f"{name} in {count}" for name, count in ranked)
    return (
        f"Which strategy none beats, by mean wait with p below 0.05, in {len(cells)} cases of cluster and policy: "
        f"{words}. {HYBRID}"
    )


_HOW_TO_READ = (
    "As the paper draws them. Groups of three bars: individual, giant and zhang. Only figure 10 (a) has printed "
    "numbers; it is drawn twice. KTH and SDSC, where they are, are not in print."
)


def _picture(f: ZhangFigure) -> Picture:
    rows = tuple((name, *(short(values[i]) for values in f.values.values())) for i, name in enumerate(f.groups))
    block = Block(f"Figure {f.figure}", f"{f.caption} Values: {f.unit}.", ("", *f.values), rows)
    return Picture(grouped_bars(f.groups, f.values, f.unit, f"Figure {f.figure}. {f.caption}", short), block)


def _what(results: ZhangResults) -> Iterator[Fact]:
    plan = results.plan
    first = plan.campaigns[0]
    yield "scale", plan.scale
    yield "clusters", ", ".join(f"{log.name} ({'synthetic' if log.model else 'the real log'})" for log in plan.logs)
    yield "policies", ", ".join(f"{name} ({rules.label})" for name, rules in POLICIES.items())
    yield "workflows", f"{len(plan.configurations)}: {', '.join(c.name for c in plan.configurations)}"
    yield "submission times", f"{len(first.submit_s)} random ones of each log"
    yield "strategies", ", ".join(s.name for s in first.strategies)
    cap = "no cap on jobs" if plan.cap is None else f"a cap of {plan.cap} jobs"
    yield "terms", f"{cap}, " + ", ".join(f"{name} {value}" for name, value in first.terms)
    yield "averages over clusters", ", ".join(CLUSTERS)
    yield from campaign_facts(plan)


PAPER = Paper(plan_wished, report, "own three policies", options=("data", "cap"), needs=("matplotlib", "scipy"))
