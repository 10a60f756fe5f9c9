"""The campaigns that redo the experiments of the GLUME thesis (chapters 4, 5 and 7, appendices A
and B).

All on the cases of the thesis (`reproductions.cases`), with accurate and actual requests,
under conservative backfilling. Four campaigns: everything with a cap of 16 jobs (figures 5.3,
7.1-7.4, B.1-B.4, table 7.1); workflows of 250 tasks with a cap of 128 (figure 5.2, A.1); all eight
versions of `zhang` under five caps (section 5.3); and `glume` with several values of `beat`, which
the thesis does not print.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from windrow.app.strategies import STRATEGIES
from windrow.strategies import Glume, Individual, Strategy, Zhang
from windrow_lab.campaign.campaign import BatchRules, Campaign, Option
from windrow_lab.reproductions.cases import SIZES, SUBMIT_S, find_cases
from windrow_lab.reproductions.glume.log import ThesisLog
from windrow_lab.reproductions.paper import PaperPlan, Wishes

RIVALS = ("individual", "one-job", "level-by-level", "glume")
"""What the thesis compares with `zhang`."""

QUICK_SIZES = (50, 250)
QUICK_EVERY = 12

VERSIONS: Mapping[str, Zhang] = {
    "none": Zhang(sizing=False, name="zhang-none"),
    "1": Zhang(global_search=True, sizing=False, name="zhang-1"),
    "2": Zhang(name="zhang-2"),
    "3": Zhang(sizing=False, binary=True, name="zhang-3"),
    "1+2": Zhang(global_search=True, name="zhang-12"),
    "1+3": Zhang(global_search=True, sizing=False, binary=True, name="zhang-13"),
    "2+3": Zhang(binary=True, name="zhang-23"),
    "1+2+3": Zhang(global_search=True, binary=True, name="zhang-123"),
}
"""Zhang with the enhancements of section 5.3; everywhere else it has number 2 alone, as in the
thesis."""

CAPS = (8, 16, 32, 64, 128)
BEAT_SWEEP: Mapping[float, Glume] = {
    beat: Glume(beat=beat, name=f"glume-beat-{beat:g}") for beat in (0.05, 0.1, 0.2)
}
"""Beside `glume` itself, whose beat is 0."""


@dataclass(frozen=True, slots=True)
class GlumePlan(PaperPlan):
    """Four campaigns."""

    @property
    def cap_16(self) -> Campaign:
        """All cases."""
        return self.campaigns[0]

    @property
    def enhancements(self) -> Campaign:
        """The variants of `zhang`."""
        return self.campaigns[2]


THESIS_ZHANG = Zhang(
    global_search=True,
    binary=True,
    whole_is_baseline=False,
    hidden_waits_count=True,
    by_number=True,
)
THESIS_INDIVIDUAL = Individual(by_number=True)
THESIS_TERMS: tuple[tuple[str, Option], ...] = (
    ("margin", 1.1),
    ("forecast_with_margin", False),
    ("busy_is_request", True),
)
THESIS_RULES = BatchRules(placement="contiguous")
"""What the thesis's own simulator did, as far as its source tells."""


def plan_wished(wishes: Wishes) -> GlumePlan:
    """As the options of the command say."""
    options = wishes.options
    if options.get("as_thesis"):
        return plan_as_thesis(wishes.data, full=wishes.full)
    given = {name: options[name] for name in ("policy", "placement") if options.get(name)}
    return plan_glume(wishes.data, full=wishes.full, rules=BatchRules(**given))


def plan_as_thesis(data: str | Path | None, *, full: bool) -> GlumePlan:
    """The campaigns under the settings of the thesis's own simulator."""
    plan = plan_glume(data, full=full, rules=THESIS_RULES, terms=THESIS_TERMS, zhang=THESIS_ZHANG)
    logs = tuple(
        ThesisLog(log.name, path=log.path) if log.path else log for log in plan.cap_16.logs
    )
    own = {STRATEGIES["individual"]: THESIS_INDIVIDUAL}
    campaigns = tuple(
        replace(c, logs=logs, strategies=tuple(own.get(s, s) for s in c.strategies))
        for c in plan.campaigns
    )
    return replace(plan, campaigns=campaigns, variant="-as-thesis")


def plan_glume(
    data: str | Path | None,
    *,
    full: bool,
    rules: BatchRules = BatchRules(),  # noqa: B008  (a frozen value)
    terms: tuple[tuple[str, Option], ...] = (),
    zhang: Zhang = Zhang(),  # noqa: B008
) -> GlumePlan:
    """The campaigns, on what is found in the folder `data`.

    Not `full`: every twelfth submission time, and no workflow of 500 tasks. `rules`, `terms` and
    `zhang` (which stands for `zhang` in all comparisons) serve to look for the cause of a
    difference from print.
    """
    cases = find_cases(data, SIZES if full else QUICK_SIZES)
    main = Campaign(
        "cap-16",
        cases.logs,
        cases.workflows,
        SUBMIT_S if full else SUBMIT_S[::QUICK_EVERY],
        (zhang, *(STRATEGIES[name] for name in RIVALS)),
        requests=("accurate", "actual"),
        rules=(rules,),
        terms=terms,
    )
    accurate = replace(main, requests=("accurate",))
    middle = tuple(w for w in cases.workflows if "-250-" in w.name)
    five = main.strategies[:-1]
    wide = replace(accurate, name="cap-128", workflows=middle, strategies=five, caps=(128,))
    versions: tuple[Strategy, ...] = tuple(VERSIONS.values())
    variants = replace(accurate, name="enhancements", workflows=middle, strategies=versions)
    beats = replace(main, name="beat", strategies=tuple(BEAT_SWEEP.values())[1:2])
    if not full:
        return GlumePlan("quick", (main, wide, variants, beats), cases.stand_ins)
    every = replace(variants, caps=CAPS)
    sweep = replace(beats, strategies=tuple(BEAT_SWEEP.values()))
    return GlumePlan("full", (main, wide, every, sweep), cases.stand_ins)
