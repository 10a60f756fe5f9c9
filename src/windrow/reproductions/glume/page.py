"""The GLUME thesis, run again: its tables, figures and claims beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa

from windrow.app.strategies import MEANINGS
from windrow.report.block import Block
from windrow.reproductions.charts import FLOOR, grouped_bars
from windrow.reproductions.glume.claims import claims
from windrow.reproductions.glume.plan import RIVALS, GlumePlan, plan_wished
from windrow.reproductions.glume.results import DECISIVE, GlumeFigure, GlumeResults, WinsCell
from windrow.reproductions.paper import (
    AGREEMENT,
    Fact,
    Gallery,
    Listing,
    Paper,
    Picture,
    Report,
    campaign_facts,
    claims_block,
    claims_words,
)

_DIFFERENCES = {
    "placement": "Its batch system gave a job neighbouring nodes only; here nodes are just counted. "
    "--placement contiguous does as it did.",
    "forecast_with_margin": "It asked for the wait of a job's bare run, and then requested that run times 1.1 in whole "
    "minutes; here the wait is asked for what will be requested.",
    "busy_is_request": "It took a running job to last as long as it had asked for; here, as long as its tasks should "
    "still need.",
    "log": "It gave each job of the log, too, a minute and some seconds more than its request.",
    "missing": "Its own runs were cut off after an hour of computing, so that slow ones are missing from print.",
}


def report(plan: GlumePlan, tables: Sequence[pa.Table]) -> Report:
    """What the campaigns came to."""
    results = GlumeResults(plan, tables)
    figures, said = results.figures(), claims(results)
    lead = (
        f"{results.trials:,} simulated runs of workflows on two logged clusters, by five strategies: our figures "
        "beside those printed in the thesis that introduced GLUME."
    )
    synthetic = ["Synthetic logs: nothing here can be compared with print."]
    return Report(
        plan,
        "The GLUME thesis, run again",
        lead,
        [*(synthetic if results.is_synthetic else _verdicts(results)), _advice(results)],
        "every twelfth submission time, and no workflow of 500 tasks. --full runs all.",
        [
            _wins(results.cells()),
            _averages(results),
            _costs(results),
            claims_block(said, _CLAIMS),
            _enhancements(results),
            Gallery("The figures", _HOW_TO_READ, [*map(_picture, figures)]),
            Listing("What was run", [*_what(results)]),
            Listing("Where the thesis's simulator is known to differ", _differences(plan)),
        ],
        {
            "table_7_1": [asdict(c) for c in results.cells()],
            "claims": [asdict(c) for c in said],
            "figures": [asdict(f) for f in figures],
            "enhancements": [asdict(e) for e in results.enhancements()],
            "costs": [asdict(c) for c in results.costs()],
        },
        results.trials,
        results.failed,
    )


def _verdicts(results: GlumeResults) -> list[str]:
    cells = results.cells()
    decisive = [c for c in cells if abs(c.printed[0] - c.printed[1]) >= DECISIVE]
    same = sum(c.agrees is True for c in decisive)
    return [
        f"Table 7.1: of the {len(decisive)} cells where print shows a difference of {DECISIVE} or more wins, the same "
        f"strategy wins here in {same}; of the other {len(cells) - len(decisive)}, in "
        f"{sum(c.agrees is True for c in cells) - same}.",
        claims_words(claims(results)),
    ]


def _advice(results: GlumeResults) -> str:
    counts = dict.fromkeys(("zhang", *RIVALS), 0)
    for _, _, _, means in results.averages():
        everyone = {"zhang": 0.0, **means}
        counts[max(everyone, key=lambda s: everyone[s])] += 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    words = ", ".join(f"{name} in {count}" for name, count in ranked if count)
    return f"Which strategy ends first on average, by log, requests and length of the workflows (12 cases): {words}."


def _wins(cells: Sequence[WinsCell]) -> Block:
    rows = tuple(
        (
            f"{c.log}, {c.requests}, {c.length}",
            f"{c.printed[0]}/{c.printed[1]} of 12",
            f"{c.ours[0]}/{c.ours[1]} of {c.of}",
            str(c.near),
            AGREEMENT[c.agrees],
            c.verdict,
        )
        for c in cells
    )
    words = (
        "Wins of glume / wins of zhang: on how many workflows one beats the other, by a mean improvement in makespan "
        "of 5 % or more. Near: workflows within one point of that line, which a small change would move."
    )
    return Block("Table 7.1: glume against zhang", words, ("", "print", "here", "near", "", "in words"), rows)


def _averages(results: GlumeResults) -> Block:
    names = ("zhang", *RIVALS)
    rows, best = [], set()
    for i, (log, requests, length, means) in enumerate(results.averages()):
        values = [0.0, *(means[name] for name in RIVALS)]
        best.add((i, 1 + max(range(len(values)), key=lambda k: values[k])))
        rows.append((f"{log}, {requests}, {length}", *(f"{v:+.1f} %" for v in values)))
    words = (
        "Mean improvement in makespan over zhang, over all workflows and submission times. Bold: the one to use there."
    )
    return Block("Which strategy, where", words, ("", *names), tuple(rows), frozenset(best))


def _costs(results: GlumeResults) -> Block:
    rows = tuple(
        (c.strategy, f"{c.makespan_h:.1f} h", f"{c.visible_wait_h:.1f} h", f"{c.wasted_share:.1%}", f"{c.jobs:.1f}")
        for c in results.costs()
    )
    words = "Means over all runs with a cap of 16. Visible wait: time in which no task ran. Wasted: held but not used. "
    words += "; ".join(f"{c.strategy}: {MEANINGS[c.strategy]}" for c in results.costs()) + "."
    return Block("What each strategy takes", words, ("", "makespan", "visible wait", "wasted", "jobs"), rows)


def _enhancements(results: GlumeResults) -> Block:
    rows = tuple(
        (
            f"{e.log}, 250-{e.length}, enhancement {e.version}",
            f"{e.runs:,}",
            f"{e.improved:,} ({e.improved / max(1, e.runs):.1%})",
            f"{e.improvement:.2f} %",
            f"{e.worsened:,}",
        )
        for e in results.enhancements()
    )
    words = (
        "Zhang with enhancement 1 (global search), 2 (job sizing), 3 (binary search for the leeway) or all, against "
        "Zhang with none; cap 16, accurate requests. The thesis found that 2 alone helps and none harms."
    )
    return Block("Section 5.3: three enhancements of zhang", words, ("", "runs", "better", "by, mean", "worse"), rows)


_CLAIMS = (
    "A count agrees where the majority is on the same side, a percentage where it is within a quarter of print, or "
    "within three points. Figures 5.2 and 5.3 are KTH with caps of 128 and 16, chapter 7 here SDSC."
)
_HOW_TO_READ = (
    "As the thesis draws them: the mean improvement in makespan relative to zhang, in percent, for each workflow. A "
    f"bar that rises is better than zhang; one cut at {FLOOR:.0f} carries its value. C, G, M, S: CyberShake, Genome, "
    "Montage, SIPHT, with the number of tasks. Figure A.1 is drawn for workflows of 250 tasks, as its text has it."
)


def _picture(f: GlumeFigure) -> Picture:
    rows = tuple((name, *(f"{v[i]:+.1f} %" for v in f.improvement.values())) for i, name in enumerate(f.configurations))
    block = Block(f"Figure {f.figure}", _caption(f), ("", *f.improvement), rows)
    names, unit = _short(f.configurations), "better than zhang, %"
    return Picture(grouped_bars(names, f.improvement, unit, _caption(f), "{:.0f}".format), block)


def _caption(f: GlumeFigure) -> str:
    return f"Figure {f.figure}: {f.log}, {f.requests} requests, cap {f.cap}, {_common(f.configurations)} workflows."


def _short(names: Sequence[str]) -> list[str]:
    """Without the part that all names share, so that they fit under their bars."""
    parts = [name.split("-") for name in names]
    return ["-".join(p for i, p in enumerate(mine) if i == 0 or len({x[i] for x in parts}) > 1) for mine in parts]


def _common(names: Sequence[str]) -> str:
    parts = list(zip(*(name.split("-") for name in names), strict=True))
    return "-".join(p[0] if len(set(p)) == 1 else "*" for p in parts)


def _differences(plan: GlumePlan) -> list[str]:
    """Those that this run has not done away with."""
    main = plan.cap_16
    is_gone = {
        "placement": main.rules[0].placement == "contiguous",
        "forecast_with_margin": ("forecast_with_margin", False) in main.terms,
        "busy_is_request": ("busy_is_request", True) in main.terms,
    }
    return [words for name, words in _DIFFERENCES.items() if not is_gone.get(name, False)]


def _what(results: GlumeResults) -> Iterator[Fact]:
    plan = results.plan
    main = plan.cap_16
    yield "scale", plan.scale
    yield "logs", ", ".join(f"{log.name} ({'synthetic' if log.model else 'the real log'})" for log in main.logs)
    yield "workflows", f"{len(main.workflows)}: {', '.join(w.name for w in main.workflows)}"
    first, last = main.submit_s[0] / 86400, main.submit_s[-1] / 86400
    yield "submission times", f"{len(main.submit_s)}, from day {first:g} to day {last:g} of the log"
    yield "batch system", main.rules[0].label
    if main.terms:
        yield "terms", ", ".join(f"{name} {value}" for name, value in main.terms)
    yield "strategies", ", ".join(s.name for s in main.strategies)
    yield from campaign_facts(plan)


_OPTIONS = ("data", "policy", "placement", "as_thesis")
PAPER = Paper(plan_wished, report, "own caps, 16 and 128", _OPTIONS, needs=("matplotlib",))
