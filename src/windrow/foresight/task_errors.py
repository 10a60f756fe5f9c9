"""How this run's own tasks may err: as far as they are told to, until some of them have shown it.

Before `_FEW_TASKS` are done, unknown whether expected times are right. So every other future takes
them as exact, and the others draw a factor for each task, log-normal with `spread`: a course must
do well in both. Later on all factors are drawn from what the tasks that are done took; if those
were exact, so is all that follows.
"""

import numpy as np

from windrow.model.workflow import Floats

_FEW_TASKS = 5  # own tasks that must have ended before their errors tell anything
_MOST_LATE = 3.0
_DRAWS = 8  # of which the worst is how long a job may take
_LATE_DRAWS = 32


class OwnErrors:
    """Factors on the expected times of `count` tasks; the same ones whenever they are asked for."""

    def __init__(
        self, count: int, known: Floats | None, spread: float, seed: tuple[int, ...]
    ) -> None:
        """`known` are what own tasks took so far, as parts of what was expected."""
        self._count = count
        self._seed = seed
        self._known = known if known is not None and len(known) >= _FEW_TASKS else None
        self._spread = spread
        self._drawn: dict[int, Floats] = {}

    @property
    def are_possible(self) -> bool:
        """Whether any task may take longer than expected."""
        if self._known is None:
            return self._spread > 0
        return bool(self._known.max() > 1)

    @property
    def are_excluded(self) -> bool:
        """Whether enough tasks are done, and none took longer than expected."""
        return self._known is not None and bool(self._known.max() <= 1)

    def factors(self, future: int) -> Floats:
        """What each task takes in that future, as a part of what is expected."""
        if future not in self._drawn:
            exact = self._known is None and future % 2 == 0
            self._drawn[future] = np.ones(self._count) if exact else self._some(future, self._count)
        return self._drawn[future]

    def late(self, future: int) -> float:
        """By which factor later jobs will be asked for longer in that future, when errors are
        known."""
        if self._known is None and future % 2 == 0:
            return 1.0
        return min(_MOST_LATE, max(1.0, float(self._some(-1, _LATE_DRAWS).max())))

    def draws(self) -> Floats:
        """Some more factors, a row for each draw: what a job that is submitted now has to expect
        with."""
        return self._some(-2, _DRAWS * self._count).reshape(_DRAWS, self._count)

    def _some(self, future: int, count: int) -> Floats:
        draw = np.random.default_rng([*self._seed, future + 2])
        if self._known is not None:
            return draw.choice(self._known, count)
        return np.exp(self._spread * draw.standard_normal(count))
