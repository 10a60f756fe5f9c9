"""The schedulers by name: the one place that lists them. A new one is a file, and a line here.

A scheduler is a function from costs to a schedule. `eacp+NAME` is NAME on the clusters that EACP chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

from windrow.errors import unknown_name
from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule

Scheduler = Callable[[Costs], Schedule]

SCHEDULERS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    # name: what it does, where it is, its options
    "heft": ("by upward rank, each task where it ends first, gaps included", "heft:heft", {}),
    "hhs": ("level by level, inside a level as heft", "hhs:hhs", {}),
    "greedy": ("level by level, each task where it ends first (greedy LHBS)", "lhbs:greedy", {}),
    "lhbs": ("level by level, the best of min-min, max-min and sufferage for each", "lhbs:lhbs", {}),
    "min-min": ("level by level, next the task that can end first", "lhbs:lhbs", {"heuristics": ["min-min"]}),
    "max-min": ("level by level, next the task that ends last", "lhbs:lhbs", {"heuristics": ["max-min"]}),
    "sufferage": ("level by level, next what loses most elsewhere", "lhbs:lhbs", {"heuristics": ["sufferage"]}),
    "cluster-sufferage": (
        "the same, elsewhere being another cluster",
        "lhbs:lhbs",
        {"heuristics": ["cluster-sufferage"]},
    ),
    "dsh": ("by static level, with copies of ancestors where that pays", "dsh:dsh", {}),
    "cpop": ("the tasks of a critical path on one processor", "cpop:cpop", {}),
    "matchmaking": ("first come, first served, on the fastest idle processor", "matchmaking:matchmaking", {}),
    "round-robin": ("processors in turn", "blind:round_robin", {}),
    "random": ("processors by lot", "blind:at_random", {}),
}
EACP = "eacp+"
"""What stands before a scheduler's name where EACP is to choose the clusters."""


def find_scheduler(name: str, **options: Any) -> Scheduler:
    """The scheduler of that name, with these options of its function. UserError where there is none."""
    plain = name.removeprefix(EACP)
    if plain not in SCHEDULERS:
        raise unknown_name("scheduler", name, [*SCHEDULERS, *(f"{EACP}{one}" for one in SCHEDULERS)])
    _, where, fixed = SCHEDULERS[plain]
    scheduler: Scheduler = partial(resolve_name(f"windrow.grid.{where}"), **{**fixed, **options})
    if plain == name:
        return scheduler
    return partial(resolve_name("windrow.grid.eacp:on_chosen"), scheduler=scheduler)
