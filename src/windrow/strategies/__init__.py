"""Ways to cut a workflow into batch jobs: pure, one file each. `windrow.app.strategies` names
them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.strategies.base import Decision, JobPlan, Strategy, View
from windrow.strategies.levels import Work, whole_seconds

if TYPE_CHECKING:
    from windrow.strategies.glume import Glume
    from windrow.strategies.individual import Individual
    from windrow.strategies.one_job import OneJob
    from windrow.strategies.zhang import Zhang

# Loaded when first asked for: a run needs one of them.
_LAZY = {"Glume": "glume", "Individual": "individual", "OneJob": "one_job", "Zhang": "zhang"}

__all__ = [
    "Decision",
    "Glume",
    "Individual",
    "JobPlan",
    "OneJob",
    "Strategy",
    "View",
    "Work",
    "Zhang",
    "whole_seconds",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"windrow.strategies.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
