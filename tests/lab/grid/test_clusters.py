"""A grid's means against loops over its processors, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_lab.grid.clusters import Grid, GridCluster, GridError


@st.composite
def grids(draw: st.DrawFn, clusters: int = 4, nodes: int = 3) -> Grid:
    """Small ones, with links of any kind."""
    n = draw(st.integers(1, clusters))
    sizes = st.lists(st.integers(1, nodes), min_size=n, max_size=n)
    square = st.lists(st.integers(0, 9), min_size=n * n, max_size=n * n).map(
        lambda x: np.array(x, float).reshape(n, n)
    )
    speeds = st.lists(st.sampled_from([1.0, 2.0, 2.5, 4.2]), min_size=n, max_size=n)
    named = [
        GridCluster(f"c{i}", k, s)
        for i, (k, s) in enumerate(zip(draw(sizes), draw(speeds), strict=True))
    ]
    return Grid(tuple(named), draw(square), 1.0 + draw(square))


@given(grids())
def test_means_are_those_over_processors_and_pairs_of_them(grid: Grid) -> None:
    of = grid.cluster_of(np.arange(grid.processors)).tolist()
    assert of == [c for c, cluster in enumerate(grid.clusters) for _ in range(cluster.nodes)]
    pairs = [(c, d) for p, c in enumerate(of) for q, d in enumerate(of) if p != q]
    latency = sum(grid.latency_s[pair] for pair in pairs) / max(1, len(pairs))
    per_byte = sum(1 / grid.bandwidth_bytes_s[pair] for pair in pairs) / max(1, len(pairs))
    assert (grid.mean_latency_s, grid.mean_s_per_byte) == pytest.approx((latency, per_byte))
    assert np.mean(grid.slowness[of]) == pytest.approx(1)


def test_a_part_has_its_links_and_is_as_fast_as_in_the_whole() -> None:
    latency = np.arange(9.0).reshape(3, 3)
    grid = Grid(
        tuple(GridCluster(name, 4, speed) for name, speed in zip("abc", (1, 2, 4), strict=True)),
        latency,
        1 + latency,
    )
    part = grid.part({2: 1, 0: 3})
    assert [(c.name, c.nodes) for c in part.clusters] == [("c", 1), ("a", 3)]
    assert part.latency_s.tolist() == [[8, 6], [2, 0]]
    assert part.slowness.tolist() == grid.slowness[[2, 0]].tolist()
    assert grid.part([1]).processors == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clusters": ()}, "at least one cluster"),
        (
            {"clusters": (GridCluster("a", 1, 1), GridCluster("a", 1, 1))},
            "two clusters are called 'a'",
        ),
        ({"latency_s": np.zeros((1, 1))}, "a row and a column for each of the 2"),
        (
            {"latency_s": np.array([[0, 1], [-1, 0]])},
            "latency_s from b to a is -1.0; it must be 0 or more",
        ),
        (
            {"bandwidth_bytes_s": np.array([[1, 0], [1, np.nan]])},
            "bandwidth_bytes_s from a to b is 0.0",
        ),
    ],
)
def test_what_is_no_grid_is_refused(change: dict[str, object], message: str) -> None:
    good = {
        "clusters": (GridCluster("a", 1, 1), GridCluster("b", 1, 1)),
        "latency_s": np.zeros((2, 2)),
    }
    with pytest.raises(GridError, match=message):
        Grid(**{**good, "bandwidth_bytes_s": np.ones((2, 2))} | change)  # type: ignore[arg-type]


def test_a_cluster_has_nodes_and_a_speed() -> None:
    with pytest.raises(GridError, match="'x' has 0 nodes"):
        GridCluster("x", 0, 1)
    with pytest.raises(GridError, match="'x' has a speed of nan"):
        GridCluster("x", 1, float("nan"))
