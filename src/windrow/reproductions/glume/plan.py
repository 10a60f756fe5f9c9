"""The campaigns that redo the experiments of the GLUME thesis (chapters 4, 5 and 7, appendices A and B).

Two logs, KTH and SDSC, with accurate and actual requests, under conservative backfilling; 36 workflows: four
applications of 50, 250 and 500 tasks and 100, 500 and 1000 hours of work ("short", "medium", "long"); 289 submission
times, every half hour from day 1 to day 7 of the log. Three campaigns: all of that with a cap of 16 jobs (figures 5.3,
7.1-7.4, B.1-B.4, table 7.1); workflows of 250 tasks with a cap of 128 (figure 5.2, A.1); variants of `zhang`
(section 5.3).

Three of the thesis's workflows, SIPHT with 500 tasks, are not public: they are generated. Where a log or a workflow is
not found, a generated one of the same size stands in, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from windrow.app.strategies import STRATEGIES
from windrow.lab.campaign.campaign import BatchRules, Campaign, Option
from windrow.lab.campaign.sources import LogSource, WorkflowSource
from windrow.reproductions.glume.log import ThesisLog
from windrow.strategies import Individual, Strategy, Zhang

APPLICATIONS: Mapping[str, str] = {"C": "cybershake", "G": "genome", "M": "montage", "S": "sipht"}
SIZES = (50, 250, 500)
LENGTHS: Mapping[str, int] = {"short": 360_000, "medium": 1_800_000, "long": 3_600_000}
"""Work in seconds, by the thesis's word for it."""

RIVALS = ("individual", "one-job", "level-by-level", "glume")
"""What the thesis compares with `zhang`."""

SUBMIT_S = tuple(range(86_400, 604_801, 1800))
QUICK_SIZES = (50, 250)
QUICK_EVERY = 12

VERSIONS: Mapping[str, Zhang] = {
    "none": Zhang(sizing=False, name="zhang-none"),
    "1": Zhang(global_search=True, sizing=False, name="zhang-1"),
    "2": Zhang(name="zhang-2"),
    "3": Zhang(sizing=False, binary=True, name="zhang-3"),
    "1+2+3": Zhang(global_search=True, binary=True, name="zhang-123"),
}
"""Zhang with the enhancements of section 5.3; everywhere else it has number 2 alone, as in the thesis."""

_LOGS = {
    "KTH": ("KTH-SP2-1996-2.1-cln.swf.gz", 100, "0.7", "1.0"),
    "SDSC": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128, "0.83", "3.0"),
}
_SYNTHETIC_DAYS = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `stand_ins` says in words what was generated in place of the thesis's own data."""

    scale: str
    cap_16: Campaign
    cap_128: Campaign
    enhancements: Campaign
    stand_ins: tuple[str, ...]

    @property
    def campaigns(self) -> tuple[Campaign, ...]:
        """All of it."""
        return self.cap_16, self.cap_128, self.enhancements


THESIS_ZHANG = Zhang(global_search=True, binary=True, whole_is_baseline=False, hidden_waits_count=True, by_number=True)
THESIS_INDIVIDUAL = Individual(by_number=True)
THESIS_TERMS: tuple[tuple[str, Option], ...] = (
    ("margin", 1.1),
    ("forecast_with_margin", False),
    ("busy_is_request", True),
)
THESIS_RULES = BatchRules(placement="contiguous")
"""What the thesis's own simulator did, as far as its source tells."""


def plan_as_thesis(data: str | Path | None, *, full: bool) -> Plan:
    """The campaigns under the settings of the thesis's own simulator."""
    plan = plan_glume(data, full=full, rules=THESIS_RULES, terms=THESIS_TERMS, zhang=THESIS_ZHANG)
    logs = tuple(ThesisLog(log.name, path=log.path) if log.path else log for log in plan.cap_16.logs)
    cap_16, cap_128, enhancements = (_as_thesis(campaign, logs) for campaign in plan.campaigns)
    return replace(plan, cap_16=cap_16, cap_128=cap_128, enhancements=enhancements)


def _as_thesis(campaign: Campaign, logs: tuple[LogSource, ...]) -> Campaign:
    usual = STRATEGIES["individual"]
    strategies = tuple(THESIS_INDIVIDUAL if strategy is usual else strategy for strategy in campaign.strategies)
    return replace(campaign, logs=logs, strategies=strategies)


def plan_glume(
    data: str | Path | None,
    *,
    full: bool,
    rules: BatchRules = BatchRules(),  # noqa: B008  (a frozen value)
    terms: tuple[tuple[str, Option], ...] = (),
    zhang: Zhang = Zhang(),  # noqa: B008
) -> Plan:
    """The campaigns, on what is found in the folder `data`: logs there or in `swf/`, workflows in `dax/glume/`.

    Not `full`: every twelfth submission time, and no workflow of 500 tasks. `rules`, `terms` and `zhang` (which stands
    for `zhang` in all comparisons) serve to look for the cause of a difference from print.
    """
    folder = None if data is None else Path(data)
    logs = tuple(_log(name, folder) for name in _LOGS)
    workflows = {name: _workflow(name, folder) for name in configurations(SIZES if full else QUICK_SIZES)}
    submit_s = SUBMIT_S if full else SUBMIT_S[::QUICK_EVERY]
    middle = tuple(w for name, w in workflows.items() if "-250-" in name)
    ends = tuple(w for w in middle if not w.name.endswith("medium"))
    five = (zhang, *(STRATEGIES[name] for name in RIVALS))
    versions: tuple[Strategy, ...] = tuple(VERSIONS.values())
    main = Campaign(
        "cap-16",
        logs,
        tuple(workflows.values()),
        submit_s,
        five,
        requests=("accurate", "actual"),
        rules=(rules,),
        terms=terms,
    )
    wide = replace(main, name="cap-128", workflows=middle, strategies=five[:-1], requests=("accurate",), caps=(128,))
    variants = replace(main, name="enhancements", workflows=ends, strategies=versions, requests=("accurate",))
    return Plan("full" if full else "quick", main, wide, variants, tuple(_stand_ins(logs, workflows)))


def configurations(sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """Names as the thesis writes them: C-50-short, ..."""
    return (f"{app}-{size}-{length}" for app in APPLICATIONS for size in sizes for length in LENGTHS)


def _log(name: str, folder: Path | None) -> LogSource:
    file, nodes, load, overestimate = _LOGS[name]
    for place in (folder / "swf" / file, folder / file) if folder else ():
        if place.is_file():
            return LogSource(name, path=str(place))
    parameters = (("load", load), ("overestimate", overestimate))
    return LogSource(name, model="lublin", seed=1, days=_SYNTHETIC_DAYS, nodes=nodes, parameters=parameters)


def _workflow(name: str, folder: Path | None) -> WorkflowSource:
    app, size, length = name.split("-")
    recipe, tasks, work_s = APPLICATIONS[app], int(size), LENGTHS[length]
    file = f"{recipe.upper()}_{size}_{work_s}.dax.gz"
    if folder and (path := folder / "dax" / "glume" / file).is_file():
        return WorkflowSource(name, path=str(path), tasks=tasks)
    return WorkflowSource(name, recipe=recipe, tasks=tasks, work_s=work_s, seed=1)


def _stand_ins(logs: tuple[LogSource, ...], workflows: Mapping[str, WorkflowSource]) -> Iterator[str]:
    for log in (log for log in logs if log.model):
        yield (
            f"The log {log.name} was not found ({_LOGS[log.name][0]}): a synthetic one on {log.nodes} nodes stands in, "
            "so its figures cannot be compared with print."
        )
    made = [w.name for w in workflows.values() if w.recipe]
    if made:
        yield f"Generated workflows, {len(made)} of {len(workflows)}: {', '.join(made)}."
