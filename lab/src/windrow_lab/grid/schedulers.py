"""The schedulers by name: the one place that lists them. A new one is a file, and a line here.

A scheduler is a function from costs to a schedule. `eacp+NAME` is NAME on the clusters that EACP
chooses.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

from windrow.errors import unknown_name
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule

Scheduler = Callable[[Costs], Schedule]

SCHEDULERS: Mapping[str, tuple[str, str]] = {
    "heft": ("heft:heft", "by upward rank, each task where it ends first, gaps included"),
    "hhs": ("hhs:hhs", "level by level, inside a level as heft"),
    "greedy": ("lhbs:greedy", "level by level, each task where it ends first (greedy LHBS)"),
    "fastest": ("lhbs:fastest", "level by level, on the fastest idle node, wherever its data are"),
    "lhbs": ("lhbs:lhbs", "level by level, for each the best of min-min, max-min and sufferage"),
    "min-min": ("lhbs:min_min", "level by level, next the task that can end first"),
    "max-min": ("lhbs:max_min", "level by level, next the task that ends last"),
    "sufferage": ("lhbs:sufferage", "level by level, next what loses most elsewhere"),
    "cluster-sufferage": ("lhbs:cluster_sufferage", "the same, elsewhere being another cluster"),
    "dsh": ("dsh:dsh", "by static level, with copies of ancestors where that pays"),
    "cpop": ("baselines:cpop", "the tasks of a critical path on one processor"),
    "matchmaking": (
        "baselines:matchmaking",
        "first come, first served, on the fastest idle processor",
    ),
    "round-robin": ("baselines:round_robin", "processors in turn"),
    "random": ("baselines:at_random", "processors by lot"),
}
"""Of each, where it is, and what it does."""

EACP = "eacp+"
"""What stands before a scheduler's name if EACP is to choose the clusters."""


def find_scheduler(name: str, **options: Any) -> Scheduler:
    """The scheduler of that name, with these options of its function. UserError if there is
    none."""
    plain = name.removeprefix(EACP)
    if plain not in SCHEDULERS:
        raise unknown_name(
            "scheduler", name, [*SCHEDULERS, *(f"{EACP}{one}" for one in SCHEDULERS)]
        )
    found: Scheduler = partial(resolve_name(f"windrow_lab.grid.{SCHEDULERS[plain][0]}"), **options)
    if plain == name:
        return found
    return partial(resolve_name("windrow_lab.grid.eacp:on_chosen"), scheduler=found)
