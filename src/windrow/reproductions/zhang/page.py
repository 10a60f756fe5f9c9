"""The reproduction of Zhang, Koelbel and Cooper for people and programs: one page, the same as Markdown and as JSON.

Rule: every number stands beside the printed one where there is one, and every such row says whether they agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from windrow.report.block import Block, html_table, markdown_table
from windrow.report.page import facts, figure, note, notes, page, section
from windrow.report.svg import plot
from windrow.reproductions.zhang.claims import claims
from windrow.reproductions.zhang.clusters import figure_11
from windrow.reproductions.zhang.plan import CLUSTERS, POLICIES, STRATEGY_NAMES
from windrow.reproductions.zhang.plots import grouped_bars, short
from windrow.reproductions.zhang.results import Bars, Means, Results, ranking
from windrow.reproductions.zhang.tables import HYBRID, blocks

TITLE = "Zhang, Koelbel and Cooper, run again"

_REASONS = (
    "Its logs are private. Ours have the same means, but no weeks that are fuller than others.",
    "It does not say how many jobs a user may have in the system. Here any number, unless --cap sets a bound.",
    "The sizes and task times of its 125 workflows are not published; ours span the ranges that it names.",
    "The weights of its policies FL and FS are not published.",
    "Its pseudo-code has errors that its prose and later work mend; zhang is built from the mended version.",
    "Runs that share a submission time share a queue, so a t-test over all runs finds too much. The test over "
    "submission times is the sounder one.",
)


def zhang_page(results: Results) -> str:
    """The page as one HTML document."""
    tables = [section(b.title, note(b.words), html_table(b)) for b in blocks(results)]
    sections = [
        section("In short", notes(summary(results))),
        *tables[:2],
        section("The figures", note(_HOW_TO_READ), *_pictures(results.figures())),
        *tables[2:],
        section("What was run", facts(_what(results))),
        section("Why numbers may differ from print", notes(_REASONS)),
    ]
    return page(TITLE, _lead(results), sections)


def zhang_markdown(results: Results) -> str:
    """The same numbers as Markdown; figures become tables."""
    parts = [f"# {TITLE}", _lead(results), _list(summary(results))]
    for b in (*blocks(results), *map(_figure_block, results.figures())):
        parts += [f"## {b.title}", b.words, markdown_table(b)]
    parts += ["## What was run", _list([f"{k}: {v}" for k, v in _what(results)])]
    parts += ["## Why numbers may differ from print", _list(_REASONS)]
    return "\n\n".join(parts) + "\n"


def zhang_json(results: Results) -> dict[str, object]:
    """The same numbers for programs; a mean over no run is null."""
    plan = results.plan
    clusters = ((name, asdict(ours), asdict(printed) if printed else None) for name, ours, printed in figure_11(plan))
    return {
        "reproduction": "zhang",
        "scale": plan.scale,
        "cap": plan.cap,
        "trials": results.trials,
        "failed": results.failed,
        "stand_ins": list(plan.stand_ins),
        "digests": {campaign.name: campaign.digest() for campaign in plan.campaigns},
        "strategies": list(STRATEGY_NAMES),
        "means": [_without_nan(asdict(m) | {"agrees": m.agrees}) for m in results.means()],
        "groups": [_without_nan(asdict(g)) for g in results.groups()],
        "claims": [asdict(c) for c in claims(results)],
        "t_tests": [_without_nan(asdict(c)) for c in results.comparisons()],
        "figures": [_without_nan(asdict(f)) for f in results.figures()],
        "figure_11": [{"cluster": name, "ours": ours, "printed": printed} for name, ours, printed in clusters],
    }


def summary(results: Results) -> list[str]:
    """The findings, in sentences."""
    said = claims(results)
    lines = [
        f"The text: {sum(c.agrees is True for c in said)} of {len(said)} claims agree, "
        f"{sum(c.agrees is False for c in said)} differ.",
        _figure_10(results.means()),
        _advice(results),
        *results.plan.stand_ins,
    ]
    if results.plan.cap is not None:
        lines.append(f"A run may have {results.plan.cap} jobs in the system at once, a bound that print does not have.")
    if results.plan.scale == "quick":
        lines.append("A quick run: 2 of 25 workflows of each application, at 6 times instead of 100. --full runs all.")
    if results.failed:
        lines.append(f"WARNING: {results.failed:,} of {results.trials:,} trials failed and are left out.")
    return lines


def _figure_10(means: Sequence[Means]) -> str:
    known = [m for m in means if m.agrees is not None]
    first = [m for m in known if m.printed_h and ranking(m.wait_h)[0] == ranking(m.printed_h)[0]]
    return (
        f"Figure 10 (a), the one with printed numbers: the same strategy waits least on {len(first)} of {len(known)} "
        f"clusters, and all three come in print's order on {sum(m.agrees is True for m in known)}."
    )


def _advice(results: Results) -> str:
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


def _pictures(figures: Sequence[Bars]) -> Iterator[str]:
    for f in figures:
        words = f"Figure {f.figure}. {f.caption}"
        yield figure(grouped_bars(f.groups, f.values, f.unit, words), words, plot.legend(list(f.values), marks=False))


def _figure_block(f: Bars) -> Block:
    rows = tuple((name, *(short(values[i]) for values in f.values.values())) for i, name in enumerate(f.groups))
    return Block(f"Figure {f.figure}", f"{f.caption} Values: {f.unit}.", ("", *f.values), rows)


def _lead(results: Results) -> str:
    return (
        f"{results.trials:,} simulated runs of five applications on {len(results.clusters)} clusters under three "
        "policies, by three ways of submitting them: our figures beside those of the paper that introduced zhang."
    )


def _what(results: Results) -> Iterator[tuple[str, str]]:
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
    for campaign in plan.campaigns:
        yield f"campaign {campaign.name}", f"{campaign.trials:,} trials, digest {campaign.digest()}"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _without_nan(value: object) -> object:
    """JSON has no NaN."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _without_nan(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_nan(item) for item in value]
        case _:
            return value
