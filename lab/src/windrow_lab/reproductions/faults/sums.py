"""What is measured of the sums of plays, in words: `success HEFT_O shaky`, `slr WDO fft 10
pessimistic`.

A measure, a method and, in any order, what they are of: shapes, stability, accuracy (accurate),
limit (3), family; what is not said is all of it. a+b is the mean of two, a|b the greater, a&b the
lesser.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.faults import METHODS
from windrow_lab.reproductions.faults.plan import (
    ACCURACIES,
    FAMILIES,
    LIMITS,
    SHAPES,
    STABILITIES,
    SUMMED,
)

_AXES: tuple[tuple[str, ...], ...] = (
    SHAPES,
    STABILITIES,
    ACCURACIES,
    tuple(map(str, LIMITS)),
    tuple(METHODS),
)
_FOLDS: Mapping[str, Callable[[list[float]], float]] = {"+": fmean, "|": max, "&": min}


@dataclass(frozen=True, eq=False)
class Sums:
    """Of each family. `shapes`: of one set of shapes alone, if it is given."""

    by_family: Mapping[str, Floats]
    shapes: str = ""

    @cached_property
    def _all(self) -> Floats:
        return np.asarray(sum(self.by_family.values()))

    @property
    def runs(self) -> float:
        """How many."""
        return float(self._all[..., 0].sum())

    def value(self, text: str) -> float:
        """Of a measure in these words; NaN if nothing was run."""
        for sign, fold in _FOLDS.items():
            word = next((word for word in text.split() if sign in word), "")
            if word:
                return fold([self.value(text.replace(word, part)) for part in word.split(sign)])
        measure, *words = text.split()
        sums = next((self.by_family[word] for word in words if word in FAMILIES), self._all)
        at = tuple(
            _selected(axis, [*words, self.shapes], default)
            for axis, default in zip(_AXES, (None, None, 0, 0, None), strict=True)
        )
        added = sums[at].reshape(-1, len(SUMMED)).sum(axis=0)
        return _measured(measure, dict(zip(SUMMED, added.tolist(), strict=True)))

    def compared(self, of: str, by: str = "") -> float:
        """The measure, or by how many percent it is more than another one; EACH: of the method
        where that is most."""
        if "EACH" in of:
            return max(
                self.compared(of.replace("EACH", name), by.replace("EACH", name))
                for name in METHODS
            )
        if by:
            return 100 * (self.value(of) / self.value(by) - 1)
        return self.value(of)


def _selected(axis: Sequence[str], words: Sequence[str], default: int | None) -> int | slice:
    """The place on an axis that the first of these words names, or else the default, or all."""
    found = next((axis.index(word) for word in words if word in axis), default)
    if found is None:
        return slice(None)
    return found


def _measured(measure: str, of: Mapping[str, float]) -> float:
    if not of["ended"]:
        if measure == "success" and of["runs"]:
            return 0.0
        return np.nan
    cpu_h = of["used"] + of["lost"] + of["failed"]
    runs = of["runs"]
    measured = {name: value / runs for name, value in of.items()} | {
        "success": 100 * of["ended"] / runs,
        "slr": of["slr"] / of["ended"],
        "cpu": cpu_h / runs,
        "with_potential": (cpu_h + of["potential"]) / runs,
        "expected": cpu_h / of["ended"],  # retried until it works, 1 / success times
    }
    return measured[measure]


def pooled(seeds: Sequence[Mapping[str, Floats]], shapes: str = "") -> Sums:
    """All seeds in one."""
    return Sums(
        {family: np.asarray(sum(seed[family] for seed in seeds)) for family in FAMILIES}, shapes
    )
