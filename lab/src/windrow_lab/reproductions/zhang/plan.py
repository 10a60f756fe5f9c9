"""The campaigns that redo the experiments of Y. Zhang, C. Koelbel and K. Cooper, "Batch Queue
Resource Scheduling for Workflow Applications", 2009 (section IV, figures 10 to 15; chapter 7 of
Zhang's thesis).

Five clusters, three policies (FCFS, FL, FS), five applications of 25 configurations, 100 random
submission times, three strategies. KTH and SDSC, two public logs, are run besides, if they are
found.

What the paper does not give is chosen here, once, and was not fitted to its results:
- its logs are private: `recipes` draws stand-ins that have the means of its figure 11, and no more.
  With users who submit several jobs at once (the reading `sessions`) waits are as long as print's,
  but a run of Ada takes a hundred times as long;
- the 25 configurations are five widths times five amounts of work (below). "Total running time" is
  not read as work, but as the time that a run takes: by figure 13 a giant job on Star holds just
  under 600 CPU hours in the mean, almost three times what individual ones do, which so have 200;
- the weights of FL and FS are those of `sim.settings`; all three are backfilling with one
  reservation, as Maui's;
- a run is under no cap, and asks for exactly the time it should need, since the paper speaks of
  neither cap nor margin;
- `zhang` is without the job sizing that the GLUME thesis added.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from windrow.app.strategies import STRATEGIES
from windrow.errors import unknown_name
from windrow.strategies import Strategy, Zhang
from windrow_lab.campaign.campaign import BatchRules, Campaign, Option
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.reproductions.cases import find_log, missing_log
from windrow_lab.reproductions.paper import PaperPlan, Wishes
from windrow_lab.reproductions.zhang.told import told_waits

CLUSTERS = ("Lonestar", "Ada", "LeMieux", "RTC", "Star")
"""Those of the paper, in its order."""

POLICIES: Mapping[str, BatchRules] = {
    name: BatchRules("easy", priority=name.lower()) for name in ("FCFS", "FL", "FS")
}
STRATEGY_NAMES = ("individual", "giant", "zhang")
HYBRID = Zhang(sizing=False)
"""The strategy that the paper calls hybrid."""

WIDTHS: Mapping[str, Mapping[int, int]] = {
    "eman": {5: 16, 32: 70, 96: 198, 160: 326, 256: 518},
    "montage": {5: 19, 32: 56, 96: 150, 160: 246, 256: 390},
    "blast": {5: 12, 32: 66, 96: 194, 160: 322, 256: 514},
    "fft": {8: 39, 32: 223, 64: 511, 128: 1151, 256: 2559},
    "gauss": {5: 20, 14: 119, 28: 434, 42: 945, 55: 1595},
}
"""For each application, how many tasks make it so wide. Up to 256 and, for gauss, 55 wide, as the
paper says."""

RUNNING_H = (6, 42, 84, 126, 168)
"""Several hours, then quarters of a week up to a week."""
WORK_BY_RUNNING = 2.35
"""Calibrated: what makes these 200 CPU hours in the mean."""
WORK_H = tuple(round(WORK_BY_RUNNING * hours) for hours in RUNNING_H)
"""Hours of work."""

_SESSIONS = {
    "Lonestar": (6, 400),
    "Ada": (40, 2000),
    "LeMieux": (2.5, 30),
    "RTC": (6, 400),
    "Star": (6, 400),
}
"""Jobs of a session in the mean and at most, as first tried. With longer sessions LeMieux, whose
jobs are wide, is never done with its queue."""

READINGS: Mapping[str, str] = {
    "sessions": "users of the logs submit several jobs at once",
    "small": "the hours of the paper are read as work",
    "strict": "a backfilled job must end before the reservation, wherever it runs",
}
"""Where a decision was ours, the other way."""

LARGE = 128
"""Workflows wider than this are the paper's large DAGs (figure 14)."""

NO_CAP = 10_000
TERMS: tuple[tuple[str, Option], ...] = (("margin", 1.0),)

_DAY_S = 86_400
_WARM_UP_DAYS = 7
_RUN_OUT_DAYS = 30
_TIMES = 100
_QUICK_TIMES = 6
_QUICK_DAYS = 60
_QUICK_PLACES = ((1, 1), (3, 3))
_DAYS = {
    "Lonestar": 365,
    "Ada": 365,
    "LeMieux": 365,
    "RTC": 365,
    "Star": 304,
    "KTH": 330,
    "SDSC": 700,
}
_PUBLIC = ("KTH", "SDSC")
_PRIVATE = (
    "The logs of the paper's five clusters are private: synthetic ones with the means of its "
    "figure 11 stand in. "
    "So its orders and ratios can be compared, its seconds cannot."
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One of the paper's DAGs: an application, how wide it is, and how much work it holds."""

    application: str
    width: int
    work_h: int

    @property
    def name(self) -> str:
        """Like eman-160-84h."""
        return f"{self.application}-{self.width}-{self.work_h}h"

    @property
    def is_large(self) -> bool:
        """Whether it is one of the paper's large DAGs."""
        return self.width > LARGE

    def source(self) -> WorkflowSource:
        """Where it comes from."""
        tasks = WIDTHS[self.application][self.width]
        return WorkflowSource(
            self.name, recipe=self.application, tasks=tasks, work_s=3600 * self.work_h, seed=1
        )


@dataclass(frozen=True, slots=True)
class ZhangPlan(PaperPlan):
    """One campaign for each log, under its name."""

    configurations: tuple[Configuration, ...] = ()
    readings: tuple[str, ...] = ()

    @property
    def cap(self) -> int | None:
        """The most jobs of a run in the system; None if there is no such bound."""
        cap = self.campaigns[0].caps[0]
        if cap == NO_CAP:
            return None
        return cap

    @property
    def logs(self) -> tuple[LogSource, ...]:
        """The clusters' logs, those of the paper first."""
        return tuple(campaign.logs[0] for campaign in self.campaigns)


def plan_wished(wishes: Wishes) -> ZhangPlan:
    """As the options of the command say."""
    given = wishes.options.get("reading") or ""
    readings = tuple(sorted(name.strip() for name in given.split(",") if name.strip()))
    for name in readings:
        if name not in READINGS:
            raise unknown_name("reading", name, READINGS)
    return plan_zhang(
        wishes.data,
        full=wishes.full,
        cap=wishes.options.get("cap") or NO_CAP,
        readings=readings,
    )


def plan_zhang(
    data: str | Path | None, *, full: bool, cap: int = NO_CAP, readings: Sequence[str] = ()
) -> ZhangPlan:
    """The campaigns; KTH and SDSC are in it if their logs lie in the folder `data` or in `swf/`
    there.

    Not `full`: two of the 25 configurations of each application, and 6 submission times in the
    log's first 60 days. `cap` bounds a run's jobs in the system; it serves to look for the cause of
    a difference from print; so do `readings`.
    """
    public = {name: find_log(name, data) for name in _PUBLIC}
    logs = [_stand_in(name, sessions="sessions" in readings) for name in CLUSTERS]
    logs += [log for log in public.values() if log]
    fate = "that cluster, which print does not have, is left out"
    missing = [missing_log(name, fate) for name, log in public.items() if not log]
    work_h = RUNNING_H if "small" in readings else WORK_H
    configurations = tuple((all_configurations if full else quick_configurations)(work_h))
    workflows = tuple(c.source() for c in configurations)
    policy = "easy-strict" if "strict" in readings else "easy"
    strategies: tuple[Strategy, ...] = (STRATEGIES["individual"], STRATEGIES["giant"], HYBRID)
    campaigns = tuple(
        Campaign(
            f"zhang-{log.name.lower()}",
            (log,),
            workflows,
            submission_times(log.name, full=full),
            strategies,
            rules=tuple(replace(rules, policy=policy) for rules in POLICIES.values()),
            caps=(cap,),
            terms=TERMS,
        )
        for log in logs
    )
    changed = [*([] if cap == NO_CAP else [f"cap-{cap}"]), *readings]
    return ZhangPlan(
        "full" if full else "quick",
        campaigns,
        (_PRIVATE, *(f"Another reading: {READINGS[name]}." for name in readings), *missing),
        calls=tuple(
            partial(told_waits, c.logs, c.submit_s, "fcfs") for c in campaigns[: len(CLUSTERS)]
        ),
        calls_are="telling waiting jobs their starts",
        variant="".join(f"-{one}" for one in changed),
        configurations=configurations,
        readings=tuple(readings),
    )


def _stand_in(name: str, *, sessions: bool) -> LogSource:
    mean, most = _SESSIONS[name]
    values = (("session", str(mean)), ("session_most", str(most))) if sessions else ()
    return LogSource(name, model=name.lower(), seed=1, parameters=values)


def all_configurations(hours: Sequence[int] = WORK_H) -> Iterator[Configuration]:
    """The 125 of a full run: 25 of each application."""
    return (
        Configuration(app, width, work_h)
        for app, sizes in WIDTHS.items()
        for width in sizes
        for work_h in hours
    )


def quick_configurations(hours: Sequence[int] = WORK_H) -> Iterator[Configuration]:
    """A narrow one with little work and a wide one with much, of each application."""
    return (
        Configuration(app, [*sizes][i], hours[k])
        for app, sizes in WIDTHS.items()
        for i, k in _QUICK_PLACES
    )


def submission_times(cluster: str, *, full: bool) -> tuple[int, ...]:
    """Random moments of the log in seconds, without its first week and last month; the same for
    each call."""
    if full:
        last_day = _DAYS[cluster] - _RUN_OUT_DAYS
    else:
        last_day = _QUICK_DAYS
    span = range(_WARM_UP_DAYS * _DAY_S, last_day * _DAY_S)
    return tuple(sorted(Random(f"zhang {cluster}").sample(span, _TIMES if full else _QUICK_TIMES)))
