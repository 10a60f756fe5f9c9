"""What a recipe is: a named way to draw a workflow of a size asked for, with parameters that have
defaults.

Rule 1: a recipe draws only from the random stream it is given, so seed, name, size and parameters
decide everything.
Rule 2: values from a command line arrive as text and take the type of the parameter's default.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import UserError
from windrow.model import Workflow
from windrow.model.workflow import Floats

Value = int | float | bool | str

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a recipe or a model. The default's type is the type of every value."""

    name: str
    default: Value
    meaning: str
    among: Sequence[Any] = ()
    """The words that it may be, or the least and the most number."""

    def parse(self, text: str) -> Value:
        """The value that `text` means. UserError if it is not of the default's type, or out of
        bounds."""
        kinds = {bool: "true or false", int: "a whole number", float: "a number"}
        wanted = kinds.get(type(self.default)) or f"one of {', '.join(self.among)}"
        try:
            if isinstance(self.default, str | bool):
                return (
                    _TRUTH
                    if isinstance(self.default, bool)
                    else {word: word for word in self.among}
                )[text.strip().lower()]
            value = type(self.default)(text)
            if math.isfinite(value) and (not self.among or self.among[0] <= value <= self.among[1]):
                return value
        except (ValueError, KeyError):
            pass
        if self.among and not isinstance(self.default, str):
            wanted += f" from {self.among[0]:,} to {self.among[1]:,}"
        raise UserError(f"parameter {self.name} must be {wanted}, not {text!r}")


def scale_evenly(workflow: Workflow, work_s: float, **_parameters: Value) -> Floats:
    """All run times times one factor, so that they sum to `work_s`."""
    return workflow.runtime_s * (work_s / workflow.work_s)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to draw workflows.

    `build(rng, tasks, **parameters)` gives the workflow; `stretch(workflow, work_s, **parameters)`
    the run times that sum to the work asked for.
    """

    name: str
    summary: str
    source: str
    default_tasks: int
    parameters: tuple[Parameter, ...]
    build: Callable[..., Workflow]
    stretch: Callable[..., Floats] = scale_evenly

    def settings(self, given: Mapping[str, str]) -> dict[str, Value]:
        """A value for every parameter: as given, else its default. UserError for names that the
        recipe lacks."""
        return settings(self.name, self.parameters, given)


def settings(
    recipe: str, parameters: Iterable[Parameter], given: Mapping[str, str]
) -> dict[str, Value]:
    """A value for every parameter: as given, else its default. UserError for names that the recipe
    lacks."""
    known = {parameter.name: parameter for parameter in parameters}
    unknown = [name for name in given if name not in known]
    if unknown:
        if known:
            has = ", ".join(known)
        else:
            has = "no parameters"
        raise UserError(f"{recipe} has no parameter {', '.join(unknown)}; it has {has}")
    return {name: p.parse(given[name]) if name in given else p.default for name, p in known.items()}


def require_tasks(recipe: str, tasks: int, minimum: int) -> None:
    """UserError if `tasks` is below what the recipe's structure needs."""
    if tasks < minimum:
        raise UserError(f"{recipe} needs at least {minimum} tasks, not {tasks}")


def require_sizes(recipe: str, task_s: float, data_mb: float) -> None:
    """UserError if tasks take no time, or files have less than nothing in them."""
    require(task_s > 0 and data_mb >= 0, recipe, "task_s must be above 0 and data_mb not below 0")


def require_range(recipe: str, reach: float) -> None:
    """UserError if a value that is drawn from 1 - reach to 1 + reach could be 0."""
    require(0 <= reach < 1, recipe, f"range must be from 0 to below 1, not {reach}")


def require(holds: bool, recipe: str, rule: str) -> None:
    """UserError naming the rule, if a parameter breaks it."""
    if not holds:
        raise UserError(f"{recipe}: {rule}")
