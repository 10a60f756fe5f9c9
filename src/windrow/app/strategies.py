"""The strategies by name: the one place that lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from windrow import strategies
from windrow.errors import unknown_name
from windrow.strategies import Strategy

_CLASSES = {
    "individual": "Individual",
    "giant": "Giant",
    "one-job": "OneJob",
    "level-by-level": "LevelByLevel",
    "zhang": "Zhang",
    "glume": "Glume",
    "foresight": "Foresight",
}


@cache
def _made(name: str) -> Strategy:
    if name == "foresight":
        from windrow.foresight.strategy import Foresight  # noqa: PLC0415  (with all that plays futures)

        return Foresight()
    made: Strategy = getattr(strategies, _CLASSES[name])()
    return made


class _Strategies(Mapping[str, Strategy]):
    """By name. Each is loaded when it is first asked for."""

    def __getitem__(self, name: str) -> Strategy:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


STRATEGIES: Mapping[str, Strategy] = _Strategies()

MEANINGS: Mapping[str, str] = {
    "individual": "one job per ready task, under the cap",
    "giant": "everything in one job, on as many nodes as it can use",
    "one-job": "everything in one job, on the number of nodes that ends first",
    "level-by-level": "one job per level, each when the one before is done",
    "zhang": "groups of levels by the ratio of wait to run, each submitted when the one before starts",
    "glume": "groups of levels by estimated makespan, each submitted when the one before starts",
    "foresight": "the cut that finishes first in simulations of likely futures of the queue",
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
