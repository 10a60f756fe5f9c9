"""Grids by name: `generate_grid("universal", seed=1)`. The grids of Zhang's thesis, and any of
their kind.

Law 1: same recipe, seed and parameters give the same grid, under any PYTHONHASHSEED. Clusters that
the thesis prints are exact under every seed and come first; what it does not print is drawn, and
`stand_ins` says what (`grids.toml`).
Law 2: links are the same both ways, and the higher the latency of a link, the lower its bandwidth.
Law 3: sizes are evenly spread quantiles, shuffled, so that grids of all seeds have equally many
processors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from windrow.errors import unknown_name
from windrow.files import table_beside
from windrow.model.bounds import NODES_MAX
from windrow.recipes.chance import Chance, seeded
from windrow.recipes.workflows.recipe import Parameter, require, settings
from windrow_lab.grid.clusters import Floats, Grid, GridCluster

_PROCESSORS = ("OPTERON", "ITANIUM", "XEON", "PENTIUM", "POWER")
_MEMORY_GB = (1.0, 2.0, 4.0, 8.0, 16.0)
_CLUSTERS_MAX = 10_000  # links are a table of all pairs


@dataclass(frozen=True, slots=True)
class GridRecipe:
    """A way to draw grids; `stand_ins` says which parts are not the source's own."""

    name: str
    summary: str
    source: str
    stand_ins: str
    parameters: tuple[Parameter, ...]
    fixed: Sequence[tuple[int, float]]
    speed: Mapping[str, float]
    network: Mapping[str, Any]
    names: Sequence[str] = ()
    attributes: Mapping[str, Sequence[str | float]] | None = None
    is_worst_first: bool = False
    """The slowest link is between the first two clusters."""


def _recipes(**tables: Any) -> Mapping[str, GridRecipe]:
    networks = tables.pop("networks")
    made = {}
    for name, said in tables.items():
        parameters = tuple(Parameter(each, *more) for each, more in said["parameters"].items())
        made[name] = GridRecipe(
            name, **said | {"parameters": parameters, "network": networks[said["network"]]}
        )
    return made


GRID_RECIPES: Mapping[str, GridRecipe] = _recipes(**table_beside(__file__))
"""Every recipe by name, in the order in which they are shown."""


def generate_grid(
    recipe: str, *, seed: int = 0, parameters: Mapping[str, str] | None = None
) -> Grid:
    """A grid by the recipe of that name. UserError if recipe, parameter or value cannot be
    used."""
    if recipe not in GRID_RECIPES:
        raise unknown_name("grid recipe", recipe, GRID_RECIPES)
    chosen = GRID_RECIPES[recipe]
    values = settings(recipe, chosen.parameters, parameters or {})
    more = int(values["more"])
    count = len(chosen.fixed) + more
    is_possible = more >= 0 and 1 <= count <= _CLUSTERS_MAX
    require(is_possible, recipe, f"a grid has from 1 to {_CLUSTERS_MAX:,} clusters")
    rng = seeded(seed, f"grid/{recipe}")
    sizes = _sizes(rng, more, float(values["nodes"]), float(values["spread"]))
    clusters = _clusters(rng, chosen, sizes)
    latency_s = _latencies(rng, count, chosen.network)
    if chosen.is_worst_first:
        latency_s = _worst_first(latency_s)
    return Grid(clusters, *_links(latency_s, chosen.network))


def _sizes(rng: Chance, count: int, median: float, spread: float) -> list[int]:
    """Evenly spread quantiles, shuffled."""
    drawn = [median] * count
    if spread:
        normal = NormalDist(np.log(median), spread)
        drawn = [np.exp(normal.inv_cdf((i + 0.5) / count)) for i in range(count)]
    return [int(size) for size in rng.permutation(np.clip(np.round(drawn), 1, NODES_MAX))]


def _clusters(
    rng: Chance, recipe: GridRecipe, drawn_sizes: Sequence[int]
) -> tuple[GridCluster, ...]:
    """Those that are printed, then as many more as there are sizes."""
    more = len(drawn_sizes)
    count = len(recipe.fixed) + more
    speeds = [speed for _, speed in recipe.fixed] + _speeds(rng, more, recipe.speed)
    sizes = [nodes for nodes, _ in recipe.fixed] + list(drawn_sizes)
    names = [*recipe.names, *(f"c{i + 1:03d}" for i in range(len(recipe.names), count))]
    attributes = _attributes(rng, count, recipe)
    return tuple(map(GridCluster, names, sizes, speeds, attributes))


def _speeds(rng: Chance, count: int, law: Mapping[str, float]) -> list[float]:
    drawn = np.clip(rng.normal(law["mean"], law["deviation"], count), law["least"], law["most"])
    return [round(float(speed), 1) for speed in drawn]


def _attributes(rng: Chance, count: int, recipe: GridRecipe) -> list[Mapping[str, str | float]]:
    """Drawn, but for what is printed."""
    kinds = rng.choice(_PROCESSORS, count).tolist()
    memory = rng.choice(_MEMORY_GB, count).tolist()
    found: list[Mapping[str, str | float]] = []
    for i in range(count):
        drawn = {"processor": kinds[i], "memory_gb": memory[i]}
        printed = recipe.attributes or {}
        if i < len(recipe.fixed):
            drawn |= {key: given[i] for key, given in printed.items()}
        found.append(drawn)
    return found


def _worst_first(latency_s: Floats) -> Floats:
    """Places are drawn alike: those of the slowest link become the first two clusters'."""
    worst = [int(i) for i in np.unravel_index(np.argmax(latency_s), latency_s.shape)]
    order = [*worst, *(i for i in range(len(latency_s)) if i not in worst)]
    return latency_s[np.ix_(order, order)]


def _latencies(rng: Chance, count: int, law: Mapping[str, Any]) -> Floats:
    """Of all pairs, in seconds, the same both ways; the diagonal counts for nothing."""
    if "equal_ms" in law:
        return np.full((count, count), law["equal_ms"] / 1000)
    if "mean_ms" in law:
        drawn = _normal_within(rng, count, law)
    else:
        drawn = _by_regions(rng, count, law)
    above = np.triu(drawn, 1)
    latency_s: Floats = (above + above.T) / 1000
    return latency_s


def _normal_within(rng: Chance, count: int, law: Mapping[str, Any]) -> Floats:
    """What falls out of the range is drawn again."""
    low, high = law["range_ms"]
    drawn = rng.normal(law["mean_ms"], law["deviation_ms"], (count, count))
    while (outside := (drawn < low) | (drawn > high)).any():
        drawn[outside] = rng.normal(law["mean_ms"], law["deviation_ms"], int(outside.sum()))
    return drawn


def _by_regions(rng: Chance, count: int, law: Mapping[str, Any]) -> Floats:
    """By the distance of places around the centres of regions, and a last mile to each."""
    regions = np.array(law["regions_ms"], dtype=np.float64)
    centres = regions[rng.integers(len(regions), size=count)]
    at = centres + rng.normal(0, law["region_ms"], (count, 2))
    mile = rng.exponential(law["last_mile_ms"], count)
    across = (at[:, None, :] - at[None, :, :]).transpose(2, 0, 1)
    drawn: Floats = 1 + np.hypot(*across) + mile[:, None] + mile[None, :]
    return drawn


def _links(latency_s: Floats, law: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Latencies and bandwidths, which fall in powers from one end of their range to the other as
    latency grows."""
    (low, high), (fast, slow) = law["range_ms"], law["bandwidth_bytes_s"]
    share = np.log(np.clip(latency_s * 1000, low, high) / low) / np.log(high / low)
    bandwidth = fast * (slow / fast) ** share
    latency = latency_s.copy()
    np.fill_diagonal(latency, law["inside"][0])
    np.fill_diagonal(bandwidth, law["inside"][1])
    return latency, bandwidth
