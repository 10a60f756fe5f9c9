"""Random, level and choke graphs with the parameters of Zhang-thesis 3.3.1 and 3.3.2.

Tasks stand in levels: about √n / α of them, about α √n wide. (The thesis's text has α upside down;
its figure 3.6 and the generator that it cites, Topcuoglu, Hariri, Wu, TPDS 13(3), 2002, have it
this way round: a large α is wide.) The height is uniform within ±50 % of its mean, widths are
uniform with the mean that then fits, and the sum is exact.

Rule 1: every task below the first level has a parent on the level just above, so levels are as
drawn.
Rule 2: every task above the last level has a child; out-degrees are uniform with mean η as far as
rule 1 and the
        number of tasks to point at allow.
Rule 3: `random` points at any lower level; `level` only at the next; in `choke` one level has a
single task, which
        all tasks of the level above lead to and all of the level below come from, and no edge goes past it.

Every edge carries a file of uniform size ε..φ, in a level graph one size for all edges between two
levels. The mean run time is total data / bandwidth / (n CCR), run times are uniform on the mean ×
(1 ± range).
"""  # noqa: E501

import math

import numpy as np

from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes.chance import Chance
from windrow.recipes.draft import MEGABYTE, RecipeDraft, numbered
from windrow.recipes.workflows.recipe import require, require_range, require_tasks

_ROUNDS = 100


def build_random(rng: Chance, tasks: int, **settings: float) -> Workflow:
    """A random graph of exactly `tasks` tasks."""
    _check("random", tasks, 2, settings)
    first = _first_tasks(_widths(rng, tasks, _height(rng, tasks, settings["alpha"], 2)))
    edges = _edges(rng, first, settings["eta"], next_only=False)
    sizes = rng.uniform(settings["epsilon"], settings["phi"], len(edges))
    return _workflow(
        RecipeDraft(f"random-{tasks}"), rng, tasks, edges, sizes, choke=None, **settings
    )


def build_level(rng: Chance, tasks: int, **settings: float) -> Workflow:
    """A level graph of exactly `tasks` tasks."""
    _check("level", tasks, 2, settings)
    first = _first_tasks(_widths(rng, tasks, _height(rng, tasks, settings["alpha"], 2)))
    edges = _edges(rng, first, settings["eta"], next_only=True)
    level_sizes = rng.uniform(settings["epsilon"], settings["phi"], len(first) - 2)
    source_level = np.searchsorted(first, edges[:, 0], side="right") - 1
    sizes = level_sizes[source_level]
    return _workflow(
        RecipeDraft(f"level-{tasks}"), rng, tasks, edges, sizes, choke=None, **settings
    )


def build_choke(rng: Chance, tasks: int, **settings: float) -> Workflow:
    """A choke graph of exactly `tasks` tasks."""
    _check("choke", tasks, 3, settings)
    height = _height(rng, tasks, settings["alpha"], 3)
    at = int(rng.integers(1, height - 1))
    first = _first_tasks(np.insert(_widths(rng, tasks - 1, height - 1), at, 1))
    choke = int(first[at])
    above = np.arange(first[at - 1], choke)
    below = np.arange(choke + 1, first[at + 2])
    edges = np.concatenate(
        [
            _edges(rng, first[: at + 1], settings["eta"], next_only=False),
            np.stack([above, np.full(len(above), choke)], axis=1),
            np.stack([np.full(len(below), choke), below], axis=1),
            _edges(rng, first[at + 1 :], settings["eta"], next_only=False),
        ]
    )
    sizes = rng.uniform(settings["epsilon"], settings["phi"], len(edges))
    return _workflow(
        RecipeDraft(f"choke-{tasks}"), rng, tasks, edges, sizes, choke=choke, **settings
    )


def _check(recipe: str, tasks: int, minimum: int, settings: dict[str, float]) -> None:
    alpha, eta, low, high = (settings[name] for name in ("alpha", "eta", "epsilon", "phi"))
    require_tasks(recipe, tasks, minimum)
    require(alpha > 0, recipe, f"alpha must be above 0, not {alpha}")
    require(
        eta >= 1,
        recipe,
        f"eta must be at least 1, as every task above the last level has a child, not {eta}",
    )
    require(
        0 <= low <= high and high > 0,
        recipe,
        f"0 <= epsilon <= phi and phi > 0 must hold, not {low} and {high}",
    )
    require(
        settings["ccr"] > 0 and settings["bandwidth_mb_s"] > 0,
        recipe,
        "ccr and bandwidth_mb_s must be above 0",
    )
    require_range(recipe, settings["range"])


def _height(rng: Chance, tasks: int, alpha: float, least: int) -> int:
    mean = math.sqrt(tasks) / alpha
    return min(tasks, max(least, round(rng.uniform(0.5, 1.5) * mean)))


def _widths(rng: Chance, tasks: int, height: int) -> Ints:
    """Each level's width, at least 1: uniform, then rounded so that the sum is `tasks`."""
    free = tasks - height
    weight = rng.uniform(0, 1, height)
    borders = np.floor(np.cumsum(weight) / weight.sum() * free + 0.5).astype(np.int64)
    borders[-1] = free
    widths: Ints = 1 + np.diff(borders, prepend=0)
    return widths


def _first_tasks(widths: Ints) -> Ints:
    """The number of each level's first task, and at the end the number of tasks."""
    return np.concatenate([[0], np.cumsum(widths)])


def _edges(rng: Chance, first: Ints, eta: float, *, next_only: bool) -> Ints:
    """Edges (source, target) among the levels that start at `first`, by rules 1 to 3."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for start, middle, end in zip(
        first[:-2].tolist(), first[1:-1].tolist(), first[2:].tolist(), strict=True
    ):
        if next_only:
            last = end
        else:
            last = int(first[-1])
        found.append(_edges_below(rng, (start, middle), (middle, end), (middle, last), eta))
    return np.concatenate(found)


def _edges_below(
    rng: Chance, level: tuple[int, int], below: tuple[int, int], reach: tuple[int, int], eta: float
) -> Ints:
    """Edges out of one level: first one into every task of the level below, the rest into any task
    in reach."""
    # Out-degrees: uniform on 1 .. 2 η - 1, rounded up or down by chance so that the mean is η, and
    # within reach.
    count = level[1] - level[0]
    exact = rng.uniform(1, 2 * eta - 1, count) + rng.uniform(0, 1, count)
    degrees = np.minimum(np.floor(exact).astype(np.int64), reach[1] - reach[0])
    source = rng.permutation(np.repeat(np.arange(*level), degrees))
    wanting = below[1] - below[0]
    short = max(0, wanting - len(source))
    source = np.concatenate([source, rng.integers(*level, short)])
    target = np.concatenate(
        [rng.permutation(np.arange(*below)), rng.integers(*reach, len(source) - wanting)]
    )
    return _without_doubles(rng, source, target, wanting, reach)


def _without_doubles(
    rng: Chance, source: Ints, target: Ints, fixed: int, reach: tuple[int, int]
) -> Ints:
    """The pairs; targets after the first `fixed` are redrawn while a pair comes twice, and dropped
    if it never ends."""
    for _ in range(_ROUNDS):
        _, first = np.unique(source * reach[1] + target, return_index=True)
        double = np.ones(len(source), dtype=bool)
        double[first] = False
        if not double.any():
            break
        # np.unique reports the first of equal pairs, and the fixed ones come first: they are never
        # redrawn.
        assert not double[:fixed].any()
        target[double] = rng.integers(*reach, int(double.sum()))
    _, first = np.unique(source * reach[1] + target, return_index=True)
    return np.stack([source[first], target[first]], axis=1)


def _workflow(
    draft: RecipeDraft,
    rng: Chance,
    tasks: int,
    edges: Ints,
    sizes_mb: Floats,
    *,
    choke: int | None,
    **settings: float,
) -> Workflow:
    mean_s = sizes_mb.sum() / settings["bandwidth_mb_s"] / (tasks * settings["ccr"])
    times = mean_s * rng.uniform(1 - settings["range"], 1 + settings["range"], tasks)
    if choke is None:
        draft.add("task", times)
    else:
        draft.add("task", times[:choke])
        draft.add("choke", times[choke])
        draft.add("task", times[choke + 1 :])
    names = numbered("edge_{}", len(edges))
    draft.files(names, sizes_mb * MEGABYTE, written_by=edges[:, 0], read_by=edges[:, 1])
    return draft.workflow()
