"""The GLUME thesis, repeated: its tables, figures and claims beside ours."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa

from windrow.app.strategies import MEANINGS
from windrow.report.page import Block
from windrow_lab.reproductions.cases import logs_words
from windrow_lab.reproductions.charts import FLOOR, grouped_bars
from windrow_lab.reproductions.glume.claims import claims
from windrow_lab.reproductions.glume.plan import RIVALS, GlumePlan, plan_wished
from windrow_lab.reproductions.glume.results import DECISIVE, GlumeFigure, GlumeResults
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

_TEXTS = Texts("glume")


def report(plan: GlumePlan, tables: Sequence[pa.Table]) -> Report:
    """What the campaigns came to."""
    results = GlumeResults(plan, tables)
    said = claims(results)
    if results.is_synthetic:
        findings = ["Synthetic logs: nothing here can be compared with print."]
    else:
        findings = _verdicts(results)
    improved = ((e, e.improved / max(1, e.runs)) for e in results.enhancements())
    pictures = [*map(_picture, results.figures())]
    return _TEXTS.report(
        plan,
        [*findings, _advice(results)],
        [
            _TEXTS.table("wins", ((c, AGREEMENT[c.agrees]) for c in results.cells())),
            _averages(results),
            _costs(results),
            _TEXTS.claims(said),
            _TEXTS.table("enhancements", improved),
            _TEXTS.table("beats", results.beats()),
            Gallery("The figures", _TEXTS["figures"].format(floor=FLOOR), pictures),
            Listing("What was run", [*_what(results)]),
            Listing("Where the thesis's simulator is known to differ", _differences(plan)),
        ],
        {
            "table_7_1": [asdict(c) for c in results.cells()],
            "claims": [asdict(c) for c in said],
            "figures": [asdict(f) for f in results.figures()],
            "enhancements": [asdict(e) for e in results.enhancements()],
            "costs": [asdict(c) for c in results.costs()],
        },
        results.counted,
        trials=results.trials,
    )


def _costs(results: GlumeResults) -> Block:
    costs = results.costs()
    meanings = "; ".join(f"{c.strategy}: {MEANINGS[c.strategy]}" for c in costs)
    return _TEXTS.table("costs", ((c,) for c in costs), meanings=meanings)


def _verdicts(results: GlumeResults) -> list[str]:
    cells = results.cells()
    decisive = [c for c in cells if abs(c.printed[0] - c.printed[1]) >= DECISIVE]
    same = sum(c.agrees is True for c in decisive)
    return [
        f"Table 7.1: of the {len(decisive)} cells where print shows a difference of {DECISIVE} "
        "or more wins, the same "
        f"strategy wins here in {same}; of the other {len(cells) - len(decisive)}, in "
        f"{sum(c.agrees is True for c in cells) - same}.",
        claims_words(claims(results)),
    ]


def _advice(results: GlumeResults) -> str:
    best = Counter(max(means, key=means.__getitem__) for means in results.averages().values())
    ranked = sorted(("zhang", *RIVALS), key=lambda name: -best[name])
    words = ", ".join(f"{name} in {best[name]}" for name in ranked if best[name])
    return (
        "Which strategy ends first on average, by log, requests and length of the workflows "
        f"(12 cases): {words}."
    )


def _averages(results: GlumeResults) -> Block:
    averages = results.averages()
    rows = tuple(
        (", ".join(cell), *(f"{v:+.1f} %" for v in means.values()))
        for cell, means in averages.items()
    )
    names = ("zhang", *RIVALS)
    best = [
        (i, 1 + names.index(max(of, key=of.__getitem__))) for i, of in enumerate(averages.values())
    ]
    return _TEXTS.block("averages", ("", *names), rows, best)


def _picture(f: GlumeFigure) -> Picture:
    """Under the bars, names are without the parts that all of them share; the caption has these."""
    rows = tuple(
        (name, *(f"{v[i]:+.1f} %" for v in f.improvement.values()))
        for i, name in enumerate(f.configurations)
    )
    common, names = _shared_parts(f.configurations)
    caption = f"Figure {f.figure}: {f.log}, {f.requests} requests, cap {f.cap}, {common} workflows."
    drawn = grouped_bars(names, f.improvement, "better than zhang, %", caption, "{:.0f}".format)
    return Picture(drawn, Block(f"Figure {f.figure}", caption, ("", *f.improvement), rows))


def _shared_parts(names: Sequence[str]) -> tuple[str, list[str]]:
    """The parts that all names share, with stars for the others; and each name without them, but
    with its first part."""
    parts = [name.split("-") for name in names]
    is_shared = [len(set(column)) == 1 for column in zip(*parts, strict=True)]
    common = [part if shared else "*" for part, shared in zip(parts[0], is_shared, strict=True)]
    own = [[part for i, part in enumerate(one) if i == 0 or not is_shared[i]] for one in parts]
    return "-".join(common), ["-".join(one) for one in own]


def _differences(plan: GlumePlan) -> list[str]:
    """Those that this run has not done away with."""
    main = plan.cap_16
    is_gone = {
        "placement": main.rules[0].placement == "contiguous",
        "forecast_with_margin": ("forecast_with_margin", False) in main.terms,
        "busy_is_request": ("busy_is_request", True) in main.terms,
    }
    return [words for name, words in _TEXTS["differences"].items() if not is_gone.get(name, False)]


def _what(results: GlumeResults) -> Iterator[tuple[str, str]]:
    plan = results.plan
    main = plan.cap_16
    yield "scale", plan.scale
    yield "logs", logs_words(main.logs)
    yield "workflows", f"{len(main.workflows)}: {', '.join(w.name for w in main.workflows)}"
    first = main.submit_s[0] / 86400
    last = main.submit_s[-1] / 86400
    yield "submission times", f"{len(main.submit_s)}, from day {first:g} to day {last:g} of the log"
    yield "batch system", main.rules[0].label
    if main.terms:
        yield "terms", ", ".join(f"{name} {value}" for name, value in main.terms)
    yield "strategies", ", ".join(s.name for s in main.strategies)
    yield from plan.campaign_facts()


_OPTIONS = ("data", "policy", "placement", "as_thesis")
PAPER = Paper(plan_wished, report, "own caps, 16 and 128", _OPTIONS, needs=("matplotlib",))
