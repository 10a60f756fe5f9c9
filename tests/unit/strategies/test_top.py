"""TOP against all subsets."""

from __future__ import annotations

from itertools import combinations
from math import inf, prod

from hypothesis import given
from hypothesis import strategies as st

from windrow.strategies.top import top

RISKS = st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.223607, 0.3, 0.5, 0.9, 1.0])
RESOURCES = st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), RISKS), min_size=1, max_size=7)


def fewest(
    resources: list[tuple[float, float]], wanted: float, deadline: float, held: tuple[int, ...]
) -> set[int] | None:
    """By trying every subset: the least risk among the smallest that suffice; None where none
    does."""
    free = [r for r, (end, _) in enumerate(resources) if end <= deadline and r not in held]
    for size in range(len(free) + 1):
        subsets = [{*held, *some} for some in combinations(free, size)]
        best = min(subsets, key=lambda some: prod(resources[r][1] for r in sorted(some)))
        if _risk(resources, best) <= 1 - wanted:
            return best
    return None


def _risk(resources: list[tuple[float, float]], some: set[int]) -> float:
    return prod(resources[r][1] for r in some)


@given(
    RESOURCES,
    st.sampled_from([0.5, 0.9, 0.97]),
    st.sampled_from([0.5, 1.0, 2.0, inf]),
    st.booleans(),
)
def test_no_subset_is_smaller(
    resources: list[tuple[float, float]], wanted: float, deadline: float, has_own: bool
) -> None:
    """Nor less likely to fail at that size; where none suffices, all that end in time are
    chosen."""
    ends, risks = zip(*resources, strict=True)
    held = (0,) if has_own else ()
    chosen = top(ends, risks, wanted=wanted, deadline_s=deadline, held=held)
    assert tuple(chosen[: len(held)]) == held
    assert len(set(chosen)) == len(chosen)
    best = fewest(resources, wanted, deadline, held)
    if best is None:
        assert set(chosen) == {*held, *(r for r, end in enumerate(ends) if end <= deadline)}
    else:
        assert len(chosen) == len(best)
        assert _risk(resources, set(chosen)) <= max(_risk(resources, best), 1e-12) * (1 + 1e-9)
    for limit in range(len(resources) + 1):
        assert (
            top(ends, risks, wanted=wanted, deadline_s=deadline, held=held, limit=limit)
            == chosen[: max(limit, len(held))]
        )


def test_order() -> None:
    """Most reliable first; of equals the earlier, then the first."""
    assert top([3.0, 2.0, 2.0, 1.0], [0.5, 0.5, 0.5, 0.9], wanted=0.99) == [1, 2, 0, 3]
    assert top([1.0, 2.0], [0.04, 0.01]) == [1]
    assert top([1.0, 2.0], [0.04, 0.01], deadline_s=1.5) == [0]
    assert top([1.0], [0.5], deadline_s=0.5) == []
