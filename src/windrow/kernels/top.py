"""The fewest resources on which a task is likely enough to end in time (TOP; Kandaswamy, Mandal,
Reed 2008).

Law: no set of fewer resources, all of which end by the deadline, fails with a probability of at
most 1 - `wanted`. The deadline is a filter on single resources, and of all sets of one size that of
the least failure probabilities fails least: so the answer is a prefix of the resources in that
order, and no sets need to be tried.
"""

from __future__ import annotations

from windrow.kernels.jit import lean
from windrow.model.graph import Ints
from windrow.model.workflow import Floats


@lean
def choose_copies(
    end_s: Floats, failure: Floats, deadline_s: float, wanted: float, chosen: Ints, held: int
) -> int:
    """Fill `chosen`, behind its first `held`, which stay and count; how many there are then. Its
    length is the limit.

    Of equal probabilities the earlier end comes first, then the lower number. If the resources
    that end in time do not suffice, these are all of them.
    """
    risk = 1.0
    n = held
    for k in range(held):
        risk *= failure[chosen[k]]
    while n < len(chosen) and risk > 1.0 - wanted:
        best = -1
        for r in range(len(end_s)):
            is_new = end_s[r] <= deadline_s
            for k in range(n):
                is_new = is_new and chosen[k] != r
            if is_new and (
                best < 0
                or failure[r] < failure[best]
                or (failure[r] == failure[best] and end_s[r] < end_s[best])
            ):
                best = r
        if best < 0:
            return n
        chosen[n] = best
        risk = risk * failure[best]
        n = n + 1
    return n
