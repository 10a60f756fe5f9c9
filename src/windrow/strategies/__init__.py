"""Ways to cut a workflow into batch jobs: pure, one file each. `windrow.app.strategies` names them."""

from __future__ import annotations

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
from windrow.strategies.giant import Giant
from windrow.strategies.glume import Glume
from windrow.strategies.individual import Individual
from windrow.strategies.level_by_level import LevelByLevel
from windrow.strategies.levels import Levels, Work, whole_seconds
from windrow.strategies.one_job import OneJob
from windrow.strategies.zhang import Zhang

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
