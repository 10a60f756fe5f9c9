"""Ways to cut a workflow into batch jobs: pure, one file each. `STRATEGIES` names them."""

from __future__ import annotations

from collections.abc import Mapping

from windrow.errors import unknown_name
from windrow.strategies.base import (
    Candidate,
    Course,
    Decision,
    Forecast,
    Futures,
    Group,
    Habits,
    JobPlan,
    Outcome,
    Sampling,
    Strategy,
    View,
    decided,
    habits_of,
)
from windrow.strategies.foresight import Foresight
from windrow.strategies.glume import Glume
from windrow.strategies.individual import Individual
from windrow.strategies.level_by_level import LevelByLevel
from windrow.strategies.levels import Levels, Work, whole_seconds
from windrow.strategies.whole import Giant, OneJob
from windrow.strategies.zhang import Zhang

STRATEGIES: Mapping[str, Strategy] = {
    "individual": Individual(),
    "giant": Giant(),
    "one-job": OneJob(),
    "level-by-level": LevelByLevel(),
    "zhang": Zhang(),
    "glume": Glume(),
    "foresight": Foresight(),
}

MEANINGS: Mapping[str, str] = {
    "individual": "one job per ready task, under the cap",
    "giant": "everything in one job, on as many nodes as it can use",
    "one-job": "everything in one job, on the number of nodes that ends first",
    "level-by-level": "one job per level, each when the one before is done",
    "zhang": "groups of levels by the ratio of wait to run, each submitted when the one before starts",
    "glume": "groups of levels by estimated makespan, each submitted when the one before starts",
    "foresight": "whatever ends first when it is played on likely futures of the cluster",
}


AUTO = "auto"
"""What users write who do not want to choose: the best that there is."""


def find_strategy(name: str) -> Strategy:
    """The strategy of that name; `auto` is the one that we would take. UserError where there is none."""
    if name == AUTO:
        return STRATEGIES["foresight"]
    if name not in STRATEGIES:
        raise unknown_name("strategy", name, [*STRATEGIES, AUTO])
    return STRATEGIES[name]


__all__ = [
    "AUTO",
    "MEANINGS",
    "STRATEGIES",
    "Candidate",
    "Course",
    "Decision",
    "Forecast",
    "Foresight",
    "Futures",
    "Giant",
    "Glume",
    "Group",
    "Habits",
    "Individual",
    "JobPlan",
    "LevelByLevel",
    "Levels",
    "OneJob",
    "Outcome",
    "Sampling",
    "Strategy",
    "View",
    "Work",
    "Zhang",
    "decided",
    "find_strategy",
    "habits_of",
    "whole_seconds",
]
