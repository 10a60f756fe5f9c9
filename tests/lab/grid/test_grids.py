"""Grids by recipe: what the thesis prints is exact under every seed, and links obey their law."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UserError
from windrow_lab.grid.recipes import GRID_RECIPES, generate_grid

PRINTED = {  # table 3.1 and figure 5.5
    "universal": [(78, 4.2), (6, 4.2), (103, 4.1), (118, 4.1)],
    "big-cluster": [(38, 4.2), (52, 3.0), (88, 2.8), (34, 2.0)],
    "many-cluster": [(13, 4.2), (18, 3.8), (17, 3.7), (6, 3.6)],
    "four-queues": [(8, 2.2), (16, 0.9), (16, 0.9), (64, 2.6)],
}
SIZES = {
    "universal": (500, 18_000, 20_000),
    "many-cluster": (20, 290, 310),
    "universe": (1000, 36_000, 40_000),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", GRID_RECIPES)
def test_printed_clusters_are_exact_and_links_obey_their_law(name: str, seed: int) -> None:
    grid = generate_grid(name, seed=seed)
    printed = PRINTED.get(name, [])
    assert [(c.nodes, c.speed) for c in grid.clusters[: len(printed)]] == printed
    rest = grid.clusters[len(printed) :]
    assert not printed or max([c.speed for c in rest], default=0) < min(
        speed for _, speed in printed
    )
    if name in SIZES:
        clusters, low, high = SIZES[name]
        assert (len(grid.clusters), low < grid.processors < high) == (clusters, True)
    assert (grid.latency_s == grid.latency_s.T).all()
    above = np.triu_indices(len(grid.clusters), 1)
    order = np.argsort(grid.latency_s[above])
    assert (np.diff(grid.bandwidth_bytes_s[above][order]) <= 0).all()
    if name == "big-cluster":
        assert grid.latency_s[0, 1] == grid.latency_s.max()


def test_same_seed_same_grid_and_other_seeds_others() -> None:
    a, b, c = (generate_grid("many-cluster", seed=seed) for seed in (1, 1, 2))
    assert a.clusters == b.clusters
    assert (a.latency_s == b.latency_s).all()
    assert a.clusters != c.clusters


@pytest.mark.parametrize("bad", ["more=-1", "more=99999", "nodes=0", "spread=9", "size=3"])
def test_what_cannot_be_drawn_is_refused(bad: str) -> None:
    with pytest.raises(UserError):
        generate_grid("universe", parameters=dict([bad.split("=")]))
    with pytest.raises(UserError, match="did you mean universe"):
        generate_grid("univers")
