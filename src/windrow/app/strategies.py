"""The strategies by name: the one place that lists them."""

from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import resolve_name

from windrow.errors import UserError, unknown_name
from windrow.strategies import Strategy

MEANINGS: Mapping[str, str] = {
    "individual": "one job per ready task, under the cap",
    "giant": "everything in one job, on as many nodes as it can use",
    "one-job": "everything in one job, on the number of nodes with the earliest end",
    "level-by-level": "one job per level, each submitted when the one before is done",
    "zhang": "groups of levels by the ratio of wait to run, each submitted when the one before "
    "starts",
    "glume": "groups of levels by estimated makespan, each submitted when the one before starts",
    "foresight": "the cut that finishes first in simulations of likely futures of the queue",
}
_ELSEWHERE = {"foresight": "windrow.foresight.strategy"}  # with all that plays futures


@cache
def _made(name: str) -> Strategy:
    module = _ELSEWHERE.get(name, f"windrow.strategies.{name.replace('-', '_')}")
    made: Strategy = resolve_name(f"{module}:{name.title().replace('-', '')}")()
    return made


class _Strategies(Mapping[str, Strategy]):
    """By name. Each is loaded when it is first asked for."""

    def __getitem__(self, name: str) -> Strategy:
        if name not in MEANINGS:
            raise KeyError(name)
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MEANINGS)

    def __len__(self) -> int:
        return len(MEANINGS)


STRATEGIES: Mapping[str, Strategy] = _Strategies()

AUTO = "auto"
"""What users write who do not want to choose: the best that there is."""


def find_strategy(name: str) -> Strategy:
    """The strategy of that name; `auto` is the one that we would take. UserError if there is
    none."""
    if name == AUTO:
        return STRATEGIES["foresight"]
    if name in STRATEGIES:
        return STRATEGIES[name]
    return _theirs(name)


def _theirs(name: str) -> Strategy:
    """A strategy of another package."""
    from windrow import extensions  # noqa: PLC0415  (few runs use one)

    make = extensions.loaded(extensions.STRATEGIES, name)
    if make is None:
        theirs = (one.name for one in extensions.entries(extensions.STRATEGIES))
        raise unknown_name("strategy", name, [*STRATEGIES, AUTO, *theirs])
    made: Strategy = make()
    if not all(hasattr(made, part) for part in ("name", "habits", "decide")):
        raise UserError(
            f"the strategy {name} of another package is none: it has no name, habits or decide"
        )
    return made
