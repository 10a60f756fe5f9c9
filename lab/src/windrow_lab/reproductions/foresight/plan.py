"""The campaigns that put `foresight` to the test: where it was tuned, where it was not, and without
its ingredients.

It was chosen and tuned on days 1-7 of KTH and SDSC alone, the days of the GLUME grid. All else
judges it: later weeks of these logs, other logs, EASY instead of conservative backfilling, and task
times that are off by a fifth.

grid        the GLUME grid
weeks       later weeks of KTH and SDSC
logs        CTC and SDSC-BLUE
easy        days 1-7, actual requests, under EASY
noise       days 1-7, actual requests, with task times off by 20 %
hindsight   foresight on the true future, on part of the grid
oracle      a beam search on the true future, on a smaller part of it
objectives  node-hours and both, on part of the grid
ablation    each ingredient left out, on part of the grid

Law: the last four run what is run in `grid` as well, by other strategies; so what they are compared
with already exists and is not run again (`BESIDE`).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from windrow.app.strategies import STRATEGIES
from windrow.foresight.course import Sampling
from windrow.foresight.courses import KINDS
from windrow.foresight.strategy import Foresight
from windrow.strategies import Strategy
from windrow_lab.campaign.campaign import BatchRules, Campaign
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.reproductions.cases import SUBMIT_S, Cases, find_cases, find_log, missing_log
from windrow_lab.reproductions.foresight.decision_times import measure_decisions
from windrow_lab.reproductions.foresight.oracle import HINDSIGHT, Oracle
from windrow_lab.reproductions.paper import PaperPlan, Wishes

RIVALS = ("individual", "one-job", "level-by-level", "zhang", "glume")
"""The fixed strategies that it must not lose to."""

OBJECTIVES = tuple(
    Foresight(objective=objective, name=objective) for objective in ("balanced", "node-hours")
)

ABLATIONS: tuple[Foresight, ...] = (
    Foresight(sampling=Sampling("shares"), name="shares only"),
    Foresight(sampling=Sampling("last two"), name="last two only"),
    Foresight(sampling=Sampling("requests"), name="requests only"),
    Foresight(sampling=Sampling(arrivals=False), name="nobody arrives"),
    Foresight(futures=1, name="one future"),
    Foresight(slack=0.0, name="no slack"),
    *(
        Foresight(kinds=tuple(k for k in KINDS if k != kind), name=f"without {kind}")
        for kind in KINDS[1:-1]
    ),
)
"""What is left of foresight without each ingredient."""

_NOISE = 0.2
TOLD = Foresight(sampling=Sampling(spread=_NOISE), name="foresight, told")
"""With task times that are off: it knows by how much. Plain foresight is left to find out."""

BESIDE = ("hindsight", "oracle", "objectives", "ablation")
"""The campaigns whose runs are compared with those of `grid`."""

_WEEK_S = 7 * 86_400
_WEEKS = {"KTH": (5, 15, 25, 35), "SDSC": (10, 30, 50, 70)}
"""Weeks of each log, counted from its beginning, that judge."""
_WEEKS_OF_OTHERS = (5, 10, 20, 30)

# of the half hours of the grid: every 21 hours, so that each of the seven is at another time of day
_EVERY = 42
_EVERY_OF_FULL = 6  # every three hours; the seven are among them

_OTHERS = ("CTC", "SDSC-BLUE")


def plan_wished(wishes: Wishes) -> PaperPlan:
    """As the command says."""
    return plan_foresight(wishes.data, full=wishes.full)


def plan_foresight(data: str | Path | None, *, full: bool) -> PaperPlan:
    """The campaigns, on what is found in the folder `data`; logs that judge are left out if they
    are missing.

    Not `full`: seven times in the week.
    """
    found = find_cases(data)
    others = tuple(log for name in _OTHERS if (log := find_log(name, data)))
    there = {log.name for log in others}
    missing = [missing_log(name, "it is left out") for name in _OTHERS if name not in there]
    return PaperPlan(
        "full" if full else "quick",
        tuple(_campaigns(found, others, full=full)),
        (*found.stand_ins, *missing),
        (partial(measure_decisions, data, full=full),),
        "timing decisions in a long queue",
    )


def _campaigns(found: Cases, others: tuple[LogSource, ...], *, full: bool) -> Iterator[Campaign]:
    """In the order of the table above; `others` are the logs that judge alone."""
    fixed: tuple[Strategy, ...] = tuple(STRATEGIES[name] for name in RIVALS)
    every = (*fixed, Foresight())
    seven = SUBMIT_S[::_EVERY]
    times = SUBMIT_S[::_EVERY_OF_FULL] if full else seven
    both = ("accurate", "actual")
    grid = Campaign("grid", found.logs, found.workflows, times, every, requests=both)
    yield grid
    actual = replace(grid, requests=("actual",), submit_s=seven)
    some = replace(actual, workflows=tuple(filter(_is_middle, grid.workflows)))
    yield from _judges(some, others, full=full)
    few = replace(some, submit_s=seven if full else seven[::2])
    yield replace(actual, name="hindsight", strategies=(HINDSIGHT,))
    yield replace(few, name="oracle", strategies=(Oracle(),))
    yield replace(some, name="objectives", strategies=OBJECTIVES)
    yield replace(few, name="ablation", strategies=ABLATIONS)


def _judges(some: Campaign, others: tuple[LogSource, ...], *, full: bool) -> Iterator[Campaign]:
    """Where it was not tuned: other weeks, logs, policies and task times."""
    for log in some.logs:
        if log.path:
            weeks = _times(_WEEKS[log.name], full=full)
            yield replace(some, name=f"weeks-{log.name}", logs=(log,), submit_s=weeks)
    if others:
        weeks = _times(_WEEKS_OF_OTHERS, full=full)
        yield replace(some, name="logs", logs=others, submit_s=weeks)
    yield replace(some, name="easy", rules=(BatchRules("easy"),))
    yield replace(some, name="noise", noise=_NOISE, strategies=(*some.strategies, TOLD))


def _is_middle(workflow: WorkflowSource) -> bool:
    """Of 250 tasks, short or medium: where queues matter most."""
    return workflow.name.endswith(("-250-short", "-250-medium"))


def _times(weeks: tuple[int, ...], *, full: bool) -> tuple[int, ...]:
    """A time on each day, each at another hour, of all of these weeks, or of the second of them
    alone."""
    return tuple(
        week * _WEEK_S + day * 86_400 + day * 3 * 3600
        for week in (weeks if full else weeks[1:2])
        for day in range(7)
    )
