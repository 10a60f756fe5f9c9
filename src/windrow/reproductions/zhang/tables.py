"""The tables of the Zhang reproduction, as plain text: claims, waits, CPU hours, t-tests, logs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from windrow.report.block import Block
from windrow.reproductions.charts import short
from windrow.reproductions.paper import AGREEMENT, claims_block
from windrow.reproductions.zhang.claims import claims
from windrow.reproductions.zhang.clusters import Usage, figure_11
from windrow.reproductions.zhang.paired import PairedTest
from windrow.reproductions.zhang.plan import STRATEGY_NAMES
from windrow.reproductions.zhang.results import Means, StrategyPair, WorkflowGroup, ZhangResults

HYBRID = "zhang is the paper's hybrid."
_CLAIMS = (
    "A claim about order agrees only where our means come in that order in every case it speaks of. 'About', "
    "'almost' and ranges allow a quarter either way. Claims are about the paper's five clusters. " + HYBRID
)


def blocks(results: ZhangResults) -> list[Block]:
    """Every table of the page."""
    means = results.means()
    return [
        claims_block(claims(results), _CLAIMS),
        _printed_waits([m for m in means if m.printed_h]),
        _all_means(results, means),
        _groups(results.groups()),
        _tests(results.comparisons()),
        _figure_11(results),
    ]


def _printed_waits(means: Sequence[Means]) -> Block:
    rows = []
    for m in means:
        assert m.printed_h is not None
        both = (m.printed_h, m.wait_h)
        numbers = [_three(values) for values in both]
        ratios = [f"{_ratio(values, 0)} / {_ratio(values, 1)}" for values in both]
        rows.append((m.cluster, *numbers, *ratios, AGREEMENT[m.agrees]))
    words = (
        "Mean wait of individual / giant / zhang under FCFS, in hours; then zhang's wait over that of individual / "
        "giant. It agrees where all three come in print's order."
    )
    head = ("", "print, h", "here, h", "ratios in print", "ratios here", "")
    return Block("Figure 10 (a): mean waits", words, head, tuple(rows))


def _all_means(results: ZhangResults, means: Sequence[Means]) -> Block:
    rows, best = [], set()
    for i, m in enumerate(means):
        best |= {(i, 1 + STRATEGY_NAMES.index(s)) for s in results.leaders(m.cluster, m.policy)}
        waits = (_hours(v) for v in m.wait_h)
        rows.append((f"{m.policy}, {m.cluster}", *waits, _three(m.relative_wait), _three(m.cpu_h)))
    words = (
        "Mean wait: turnaround less the time that the workflow takes alone. Bold: no other waits less with p below "
        "0.05. Then mean relative waits and mean CPU hours of individual / giant / zhang."
    )
    head = ("", *STRATEGY_NAMES, "relative waits", "CPU hours")
    return Block("Waits and CPU hours by cluster and policy", words, head, tuple(rows), frozenset(best))


def _groups(groups: Sequence[WorkflowGroup]) -> Block:
    rows = tuple(
        (
            f"{g.policy}, {g.name}",
            *map(_hours, g.wait_h),
            _three(g.relative_wait),
            _three(g.cpu_h),
            *map(p_words, g.tests),
        )
        for g in groups
    )
    words = (
        "The same by application, and for small workflows (up to 128 wide) and large ones, over the paper's five "
        "clusters. The p-values are of paired t-tests by run of individual and of giant against zhang."
    )
    head = ("", *STRATEGY_NAMES, "relative waits", "CPU hours", "p, individual", "p, giant")
    return Block("Waits and CPU hours by application and width", words, head, rows)


def _tests(comparisons: Sequence[StrategyPair]) -> Block:
    rows = tuple(
        (
            f"{c.policy}, {c.cluster}: {c.first} - {c.second}",
            f"{c.by_run.difference / 3600:+.2f} h",
            f"{c.by_run.pairs:,}",
            p_words(c.by_run),
            f"{c.by_time.pairs:,}",
            p_words(c.by_time),
        )
        for c in comparisons
        if c.second == "zhang"
    )
    words = (
        "Two-tailed paired t-tests of the waits. By run: every workflow at every submission time is a pair, as in the "
        "paper. By time: the mean over workflows at each submission time. Above zero, zhang waits less."
    )
    head = ("", "difference", "pairs by run", "p", "pairs by time", "p")
    return Block("Paired t-tests", words, head, rows)


def _figure_11(results: ZhangResults) -> Block:
    rows = []
    for name, ours, printed in figure_11(results.plan):
        rows.append((f"{name}, here", *_usage(ours)))
        if printed:
            rows.append((f"{name}, print", *_usage(printed)))
    head = ("", "nodes", "jobs a day", "width", "run, h", "request, node h", "load", "requested load")
    return Block("Figure 11: the clusters' logs", "Means over the whole log.", head, tuple(rows))


def _usage(u: Usage) -> tuple[str, ...]:
    means = (u.jobs_per_day, u.width, u.run_h, u.request_node_h, u.actual_load, u.requested_load)
    return (f"{u.nodes:,}", *(f"{value:,.0f}" if value >= 100 else f"{value:.2f}" for value in means))


def p_words(test: PairedTest) -> str:
    """The p-value as people write it."""
    if test.p is None:
        return "too few pairs"
    return "below 0.0001" if test.p < 0.0001 else f"{test.p:.4f}"


def _hours(value: float) -> str:
    return "no run" if math.isnan(value) else f"{short(value)} h"


def _three(values: Sequence[float]) -> str:
    return " / ".join(map(short, values))


def _ratio(values: Sequence[float], other: int) -> str:
    return f"{values[2] / values[other]:.2f}" if values[other] else "-"
