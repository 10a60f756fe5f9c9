"""Ways to cut a workflow into batch jobs: pure, one file each. `windrow.app.strategies` names them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.strategies.base import (
    Candidate,
    Decision,
    Forecast,
    Habits,
    JobPlan,
    LooksAhead,
    Objective,
    Strategy,
    View,
    decided,
    habits_of,
)
from windrow.strategies.levels import Levels, Work, whole_seconds

if TYPE_CHECKING:
    from windrow.strategies.giant import Giant
    from windrow.strategies.glume import Glume
    from windrow.strategies.individual import Individual
    from windrow.strategies.level_by_level import LevelByLevel
    from windrow.strategies.one_job import OneJob
    from windrow.strategies.zhang import Zhang

# Loaded when first asked for: a run needs one of them.
_LAZY = {
    "Giant": "giant",
    "Glume": "glume",
    "Individual": "individual",
    "LevelByLevel": "level_by_level",
    "OneJob": "one_job",
    "Zhang": "zhang",
}

__all__ = [
    "Candidate",
    "Decision",
    "Forecast",
    "Giant",
    "Glume",
    "Habits",
    "Individual",
    "JobPlan",
    "LevelByLevel",
    "Levels",
    "LooksAhead",
    "Objective",
    "OneJob",
    "Strategy",
    "View",
    "Work",
    "Zhang",
    "decided",
    "habits_of",
    "whole_seconds",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"windrow.strategies.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
