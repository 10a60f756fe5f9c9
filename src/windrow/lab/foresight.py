"""The campaigns that put `foresight` to the test: where it was tuned, where it was not, and without its ingredients.

It was chosen and tuned on days 1-7 of KTH and SDSC alone, the days of the GLUME grid. All else judges it: later weeks
of these logs, other logs, EASY instead of conservative backfilling, and task times that are off by a fifth.

grid        the GLUME grid, with `hindsight`, which is foresight on the true future
weeks       later weeks of KTH and SDSC
logs        CTC and SDSC-BLUE
easy        the grid's actual requests under EASY
noise       the grid's actual requests, with task times off by 20 %
objectives  node-hours and both, on the grid's actual requests
ablation    each ingredient left out, on the grid's actual requests
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from windrow.lab.campaign import Campaign, Rules
from windrow.lab.glume import SUBMIT_S, plan_glume
from windrow.lab.oracle import HINDSIGHT
from windrow.lab.sources import LogSource, WorkflowSource
from windrow.strategies import STRATEGIES, Foresight, Sampling, Strategy
from windrow.strategies.foresight_courses import KINDS

RIVALS = ("individual", "one-job", "level-by-level", "zhang", "glume")
"""The fixed strategies that it must not lose to."""

OBJECTIVES = (
    Foresight(),
    Foresight(objective="balanced", name="balanced"),
    Foresight(objective="node-hours", name="node-hours"),
)

ABLATIONS: tuple[Foresight, ...] = (
    Foresight(),
    Foresight(sampling=Sampling("shares"), name="shares only"),
    Foresight(sampling=Sampling("last two"), name="last two only"),
    Foresight(sampling=Sampling("requests"), name="requests only"),
    Foresight(sampling=Sampling(arrivals=False), name="nobody arrives"),
    Foresight(futures=1, name="one future"),
    Foresight(slack=0.0, name="no slack"),
    Foresight(doubt=0.0, name="no doubt"),
    *(Foresight(kinds=tuple(k for k in KINDS if k != kind), name=f"without {kind}") for kind in KINDS[1:-1]),
)
"""Foresight, and what is left of it without each ingredient."""

_NOISE = 0.2
NOISY = (Foresight(sampling=Sampling(spread=_NOISE)), Foresight(name="foresight, not told"))
"""With task times that are off: told by how much they are, or left to find out."""

_WEEK_S = 7 * 86_400
_WEEKS = {"KTH": (5, 15, 25, 35), "SDSC": (10, 30, 50, 70)}
"""Weeks of each log, counted from its beginning, that judge."""

_OTHERS = {"CTC": "CTC-SP2-1996-3.1-cln.swf.gz", "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln.swf.gz"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `stand_ins` says in words what was generated or left out."""

    scale: str
    campaigns: tuple[Campaign, ...]
    stand_ins: tuple[str, ...]


def plan_foresight(data: str | Path | None, *, full: bool) -> Plan:
    """The campaigns, on what is found in the folder `data` (see `plan_glume`); logs that are missing are left out.

    Not `full`: workflows of 50 and 250 tasks, at one time a day.
    """
    glume = plan_glume(data, full=full)
    fixed: tuple[Strategy, ...] = tuple(STRATEGIES[name] for name in RIVALS)
    daily = SUBMIT_S[::48]
    times = SUBMIT_S[::6] if full else daily
    six = (*fixed, Foresight())
    grid = replace(glume.cap_16, name="grid", submit_s=times, strategies=(*six, HINDSIGHT))
    actual = replace(grid, requests=("actual",), submit_s=daily)
    some = replace(actual, workflows=_some(actual.workflows), strategies=six)
    weeks = [_weeks(some, log, full=full) for log in some.logs if log.path]
    others = _others(data)
    judges = [replace(some, name="logs", logs=others, submit_s=_week(10))] if others else []
    campaigns = (
        grid,
        *weeks,
        *judges,
        replace(some, name="easy", rules=(Rules("easy"),)),
        replace(some, name="noise", noise=_NOISE, strategies=(*fixed, *NOISY)),
        replace(some, name="objectives", strategies=(STRATEGIES["glume"], *OBJECTIVES)),
        replace(some, name="ablation", strategies=(STRATEGIES["glume"], *ABLATIONS)),
    )
    missing = [f"The log {name} was not found and is left out." for name in _OTHERS if name not in _names(others)]
    return Plan("full" if full else "quick", campaigns, (*glume.stand_ins, *missing))


def _some(workflows: tuple[WorkflowSource, ...]) -> tuple[WorkflowSource, ...]:
    """Workflows of 250 tasks, short and medium: where queues matter most."""
    return tuple(w for w in workflows if "-250-" in w.name and not w.name.endswith("long"))


def _weeks(some: Campaign, log: LogSource, *, full: bool) -> Campaign:
    chosen = _WEEKS[log.name] if full else _WEEKS[log.name][1:2]
    times = tuple(at for week in chosen for at in _week(week))
    return replace(some, name=f"weeks-{log.name}", logs=(log,), submit_s=times)


def _week(number: int) -> tuple[int, ...]:
    """A time on each day of a week, each at another hour."""
    return tuple(number * _WEEK_S + day * 86_400 + day * 3 * 3600 for day in range(7))


def _others(data: str | Path | None) -> tuple[LogSource, ...]:
    folder = Path(data) if data is not None else None
    found = []
    for name, file in _OTHERS.items():
        places = (folder / "swf" / file, folder / file) if folder else ()
        found += [LogSource(name, path=str(place)) for place in places if place.is_file()][:1]
    return tuple(found)


def _names(logs: tuple[LogSource, ...]) -> set[str]:
    return {log.name for log in logs}
