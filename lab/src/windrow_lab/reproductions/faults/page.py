"""The page of chapter 6: each claim of the text beside ours (`printed.toml`), its figures, and our
decisions varied.

A claim agrees only if it does under each of the seeds; for each set of shapes alone as for both
together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from windrow.report.page import Block
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.faults import METHODS
from windrow_lab.reproductions import paper
from windrow_lab.reproductions.charts import grouped_bars, short, value_rows
from windrow_lab.reproductions.faults import plan as study
from windrow_lab.reproductions.faults.plan import FAMILIES, OURS, READINGS, SHAPES, FamilySums
from windrow_lab.reproductions.faults.sums import Sums, pooled

Seeds = Sequence[Mapping[str, Floats]]
_TEXTS = paper.Texts("faults")
_GROUPS: Mapping[str, Sequence[str]] = {
    "all": ("all",),
    "stability": study.STABILITIES,
    "accuracy": study.ACCURACIES,
    "limit": [str(limit) for limit in study.LIMITS],
    "family": FAMILIES,
    "shapes": SHAPES,
}


def claims(seeds: Seeds, shapes: str = "") -> list[paper.Claim]:
    """What the text says, each beside ours."""
    each = [Sums(seed, shapes) for seed in seeds]
    return paper.bounded_claims(
        paper.printed("faults")["claims"],
        lambda one: [sums.compared(one["of"], one.get("by", "")) for sums in each],
    )


def report(plan: paper.PaperPlan, found: Sequence[Any]) -> paper.Report:
    """What the calls gave."""
    by_reading = {name: _by_seed(found, name) for name in (OURS, *READINGS)}
    ours = pooled(by_reading[OURS])
    said = claims(by_reading[OURS])
    readings = {name: _reading(seeds) for name, seeds in by_reading.items()}
    figures = {name: ours.compared(what, *by) for name, what, *by in _TEXTS["numbers"]}
    findings = [paper.claims_words(said), *(text.format(**figures) for text in _TEXTS["findings"])]
    shown: list[paper.Part] = [
        _TEXTS.claims(said),
        _apart(by_reading[OURS], said),
        _readings_block(readings),
        _cpu_block(ours),
        paper.Gallery("Figures 6.4 to 6.16", "", [_picture(ours, *o) for o in _TEXTS["figures"]]),
        paper.Listing("What is ours", _TEXTS["ours"]),
    ]
    numbers = _numbers(ours, said, readings)
    return _TEXTS.report(
        plan, findings, shown, numbers, runs=ours.runs, **study.STAND_INS["workflows"]
    )


def _by_seed(parts: Sequence[FamilySums], reading: str) -> Seeds:
    """The sums of each family, seed by seed."""
    added = study.added(parts, reading)
    return [{family: added[seed, family] for family in FAMILIES} for seed in study.SEEDS]


def _numbers(
    ours: Sums,
    said: Sequence[paper.Claim],
    readings: Mapping[str, tuple[Sequence[float], int, int]],
) -> dict[str, Any]:
    """What is kept beside the page."""
    return {
        "runs": int(ours.runs),
        "claims": [asdict(claim) for claim in said],
        "readings": {
            name: dict(zip(_READING_HEAD[1:], (*values, agree), strict=True))
            for name, (values, agree, _) in readings.items()
        },
    }


_READING_HEAD = ("", *(title for title, *_ in _TEXTS["key"]), "claims that agree")


def _readings_block(readings: Mapping[str, tuple[Sequence[float], int, int]]) -> Block:
    rows = [
        (name, *(short(value) for value in values), f"{agree} of {able}")
        for name, (values, agree, able) in readings.items()
    ]
    return _TEXTS.block("readings", _READING_HEAD, rows)


def _cpu_block(ours: Sums) -> Block:
    kinds = ("used", "lost", "failed", "potential")
    rows = [(name, *(short(ours.value(f"{kind} {name}")) for kind in kinds)) for name in METHODS]
    return _TEXTS.block("cpu", ("", *kinds), rows)


def _reading(seeds: Seeds) -> tuple[list[float], int, int]:
    """The key numbers, how many claims agree, and how many can be checked."""
    sums = pooled(seeds)
    said = claims([sums.by_family])
    able = [claim.agrees for claim in said if claim.agrees is not None]
    return [sums.compared(*words) for _, *words in _TEXTS["key"]], sum(able), len(able)


def _apart(seeds: Seeds, together: Sequence[paper.Claim]) -> Block:
    """Both sets of shapes."""
    apart = [claims(seeds, shapes) for shapes in SHAPES]
    rows = [
        (
            f"{one.where}: {one.what}",
            one.printed,
            *(f"{claim.ours}{' *' if claim.agrees else ''}" for claim in (one, *more)),
        )
        for one, *more in zip(together, *apart, strict=True)
    ]
    return _TEXTS.block("shapes", ("", "print", "together", *SHAPES), rows)


def _picture(
    ours: Sums, title: str, unit: str, measure: str, groups: str, methods: str = "", where: str = ""
) -> paper.Picture:
    names = methods.split() or list(METHODS)
    series: dict[str, list[float]] = {}
    for label in _GROUPS[groups]:
        which = "" if label == "all" else label
        words = f"limit {label}" if groups == "limit" else label
        series[words] = [ours.value(f"{measure} {name} {which} {where}") for name in names]
    lines = value_rows(names, series)
    picture = grouped_bars(names, series, unit, title, short)
    return paper.Picture(picture, Block(title, f"{unit}.", ("", *series), lines))


PAPER = paper.Paper(study.plan_faults, report, "own fixed experiments", needs=("matplotlib",))
