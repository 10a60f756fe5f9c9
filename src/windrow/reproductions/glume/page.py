"""The GLUME reproduction for people and programs: one page, the same as Markdown, the same as JSON.

Rule: every number stands beside the printed one, and every row says in words whether they agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from windrow.app.strategies import MEANINGS
from windrow.report.block import Block, html_table, markdown_table
from windrow.report.page import facts, figure, note, notes, page, section
from windrow.report.svg import plot
from windrow.report.svg.bars import FLOOR, improvement_bars
from windrow.reproductions.claim import Claim
from windrow.reproductions.glume.claims import claims
from windrow.reproductions.glume.plan import RIVALS
from windrow.reproductions.glume.results import DECISIVE, Bars, Cell, Results

TITLE = "The GLUME thesis, run again"

_AGREEMENT = {True: "agrees", False: "differs", None: "open"}

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


def reproduction_page(results: Results) -> str:
    """The page as one HTML document."""
    sections = [
        section("In short", notes(summary(results))),
        *(section(b.title, note(b.words), html_table(b)) for b in blocks(results)),
        section("The figures", note(_HOW_TO_READ), *_pictures(results.figures())),
        section("What was run", facts(_what(results))),
        section("Where the thesis's simulator is known to differ", notes(_differences(results))),
    ]
    return page(TITLE, _lead(results), sections)


def reproduction_markdown(results: Results) -> str:
    """The same numbers as Markdown; figures become tables."""
    parts = [f"# {TITLE}", _lead(results), "\n".join(f"- {line}" for line in summary(results))]
    for b in (*blocks(results), *map(_figure_block, results.figures())):
        parts += [f"## {b.title}", b.words, markdown_table(b)]
    parts += ["## What was run", "\n".join(f"- {k}: {v}" for k, v in _what(results))]
    parts += [
        "## Where the thesis's simulator is known to differ",
        "\n".join(f"- {line}" for line in _differences(results)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def reproduction_json(results: Results) -> dict[str, object]:
    """The same numbers for programs; a mean over no run is null."""
    plan = results.plan
    return {
        "reproduction": "glume",
        "scale": plan.scale,
        "trials": results.trials,
        "failed": results.failed,
        "stand_ins": list(plan.stand_ins),
        "digests": {campaign.name: campaign.digest() for campaign in plan.campaigns},
        "table_7_1": [asdict(c) for c in results.cells()],
        "claims": [asdict(c) for c in claims(results)],
        "figures": [_without_nan(asdict(f)) for f in results.figures()],
        "enhancements": [asdict(e) for e in results.enhancements()],
        "costs": [asdict(c) for c in results.costs()],
    }


def summary(results: Results) -> list[str]:
    """The findings, in sentences."""
    lines = ["Synthetic logs: nothing here can be compared with print."] if results.is_synthetic else _verdicts(results)
    lines += [_advice(results), *results.plan.stand_ins]
    if results.plan.scale == "quick":
        lines.append("A quick run: every twelfth submission time, and no workflow of 500 tasks. --full runs all.")
    if results.failed:
        lines.append(f"WARNING: {results.failed:,} of {results.trials:,} trials failed and are left out.")
    return lines


def _verdicts(results: Results) -> list[str]:
    cells, said = results.cells(), claims(results)
    decisive = [c for c in cells if abs(c.printed[0] - c.printed[1]) >= DECISIVE]
    same = sum(c.agrees is True for c in decisive)
    return [
        f"Table 7.1: of the {len(decisive)} cells where print shows a difference of {DECISIVE} or more wins, the same "
        f"strategy wins here in {same}; of the other {len(cells) - len(decisive)}, in "
        f"{sum(c.agrees is True for c in cells) - same}.",
        f"The text: {sum(c.agrees is True for c in said)} of {len(said)} claims agree, "
        f"{sum(c.agrees is False for c in said)} differ.",
    ]


def _advice(results: Results) -> str:
    counts = dict.fromkeys(("zhang", *RIVALS), 0)
    for _, _, _, means in results.averages():
        everyone = {"zhang": 0.0, **means}
        counts[max(everyone, key=lambda s: everyone[s])] += 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    words = ", ".join(f"{name} in {count}" for name, count in ranked if count)
    return f"Which strategy ends first on average, by log, requests and length of the workflows (12 cases): {words}."


def blocks(results: Results) -> list[Block]:
    """Every table of the page."""
    return [
        _wins(results.cells()),
        _averages(results),
        _costs(results),
        _claims(claims(results)),
        _enhancements(results),
    ]


def _wins(cells: Sequence[Cell]) -> Block:
    rows = tuple(
        (
            f"{c.log}, {c.requests}, {c.length}",
            f"{c.printed[0]}/{c.printed[1]} of 12",
            f"{c.ours[0]}/{c.ours[1]} of {c.of}",
            str(c.near),
            _AGREEMENT[c.agrees],
            c.verdict,
        )
        for c in cells
    )
    words = (
        "Wins of glume / wins of zhang: on how many workflows one beats the other, by a mean improvement in makespan "
        "of 5 % or more. Near: workflows within one point of that line, which a small change would move."
    )
    return Block("Table 7.1: glume against zhang", words, ("", "print", "here", "near", "", "in words"), rows)


def _averages(results: Results) -> Block:
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


def _costs(results: Results) -> Block:
    rows = tuple(
        (c.strategy, f"{c.makespan_h:.1f} h", f"{c.visible_wait_h:.1f} h", f"{c.wasted_share:.1%}", f"{c.jobs:.1f}")
        for c in results.costs()
    )
    words = "Means over all runs with a cap of 16. Visible wait: time in which no task ran. Wasted: held but not used. "
    words += "; ".join(f"{c.strategy}: {MEANINGS[c.strategy]}" for c in results.costs()) + "."
    return Block("What each strategy takes", words, ("", "makespan", "visible wait", "wasted", "jobs"), rows)


def _claims(said: Sequence[Claim]) -> Block:
    rows = tuple((f"{c.where}: {c.what}", c.printed, c.ours, _AGREEMENT[c.agrees]) for c in said)
    words = (
        "A count agrees where the majority is on the same side, a percentage where it is within a quarter of print, or "
        "within three points. Figures 5.2 and 5.3 are KTH with caps of 128 and 16, chapter 7 here SDSC."
    )
    return Block("Claims of the text", words, ("", "print", "here", ""), rows)


def _enhancements(results: Results) -> Block:
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


_HOW_TO_READ = (
    "As the thesis draws them: the mean improvement in makespan relative to zhang, in percent, for each workflow. A "
    f"bar that rises is better than zhang; one cut at {FLOOR:.0f} carries its value. C, G, M, S: CyberShake, Genome, "
    "Montage, SIPHT, with the number of tasks. Figure A.1 is drawn for workflows of 250 tasks, as its text has it."
)


def _pictures(figures: Sequence[Bars]) -> Iterator[str]:
    for f in figures:
        svg = improvement_bars(_short(f.configurations), f.improvement, _caption(f))
        yield figure(svg, _caption(f), plot.legend(list(f.improvement), marks=False))


def _caption(f: Bars) -> str:
    return f"Figure {f.figure}: {f.log}, {f.requests} requests, cap {f.cap}, {_common(f.configurations)} workflows."


def _short(names: Sequence[str]) -> list[str]:
    """Without the part that all names share, so that they fit under their bars."""
    parts = [name.split("-") for name in names]
    return ["-".join(p for i, p in enumerate(mine) if i == 0 or len({x[i] for x in parts}) > 1) for mine in parts]


def _common(names: Sequence[str]) -> str:
    parts = list(zip(*(name.split("-") for name in names), strict=True))
    return "-".join(p[0] if len(set(p)) == 1 else "*" for p in parts)


def _figure_block(f: Bars) -> Block:
    rows = tuple((name, *(f"{v[i]:+.1f} %" for v in f.improvement.values())) for i, name in enumerate(f.configurations))
    return Block(f"Figure {f.figure}", _caption(f), ("", *f.improvement), rows)


def _lead(results: Results) -> str:
    return (
        f"{results.trials:,} simulated runs of workflows on two logged clusters, by five strategies: our figures "
        "beside those printed in the thesis that introduced GLUME."
    )


def _differences(results: Results) -> list[str]:
    """Those that this run has not done away with."""
    main = results.plan.cap_16
    is_gone = {
        "placement": main.rules[0].placement == "contiguous",
        "forecast_with_margin": ("forecast_with_margin", False) in main.terms,
        "busy_is_request": ("busy_is_request", True) in main.terms,
    }
    return [words for name, words in _DIFFERENCES.items() if not is_gone.get(name, False)]


def _what(results: Results) -> Iterator[tuple[str, str]]:
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
    for campaign in plan.campaigns:
        yield f"campaign {campaign.name}", f"{campaign.trials:,} trials, digest {campaign.digest()}"


def _without_nan(f: Mapping[str, object]) -> dict[str, object]:
    """JSON has no NaN."""
    values = f["improvement"]
    assert isinstance(values, dict)
    known = {s: [None if math.isnan(v) else v for v in series] for s, series in values.items()}
    return {**f, "improvement": known}
