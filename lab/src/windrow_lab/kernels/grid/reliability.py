"""How likely a cluster is to fail while a task runs there, as a planner believes it.

The time from when a cluster is new to its failure has a Weibull distribution: it is above t with a
probability of exp(-(t / scale) ^ shape). What the probability is of, for a task that runs from
`begin` to `end` since then, is a decision (`kind`): CONDITIONAL, a failure between the two if there
was none before; OVER_RUN, one within as much time of a new cluster; FROM_START, one before the end.
Wrong beliefs multiply it by `factor`, and stay below 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windrow.kernels.jit import lean
from windrow_lab.kernels.grid.rooms import Floats

CONDITIONAL, OVER_RUN, FROM_START = range(3)
JUST_UNDER_1 = 1.0 - 1e-9


class Beliefs(NamedTuple):
    """Of each cluster; and what failure probabilities of tasks are of."""

    shape: Floats
    scale_s: Floats
    factor: Floats
    kind: int


@lean
def failure(beliefs: Beliefs, c: int, begin: float, end: float) -> float:
    """The probability that a task fails there."""
    shape = beliefs.shape[c]
    scale_s = beliefs.scale_s[c]
    if beliefs.kind == CONDITIONAL:
        since = (begin / scale_s) ** shape
    else:
        since = 0.0
    until = ((end - begin if beliefs.kind == OVER_RUN else end) / scale_s) ** shape
    risk = -np.expm1(since - until)
    if beliefs.factor[c] == 1.0:
        return risk
    return min(risk * beliefs.factor[c], JUST_UNDER_1)
