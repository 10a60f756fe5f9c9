"""The ten methods: plans that are valid, plays as a slow obvious twin has them, and what failures
cannot change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.grid.played import Slow, events_of
from tests.lab.grid.twin import costs as any_costs
from tests.lab.grid.twin import exact, reliably

from windrow.kernels.jit import in_python
from windrow_lab.grid.clusters import Grid, GridCluster
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.faults import AIMS, METHODS, NO_RESTARTS, Planner, Restarts
from windrow_lab.grid.reliability import KINDS, ClusterReliability, Repair, risks
from windrow_lab.grid.wdo import exclusive_s, wdo
from windrow_lab.kernels.grid.reliability import JUST_UNDER_1, failure

REPAIRS = [
    Repair(2.0),
    Repair(0.0),
    Repair(inf),
    Repair(2.0, unit="node"),
    Repair(inf, unit="node"),
    Repair(3.0, loses_data=True),
    Repair(0.0, loses_data=True),
    Repair(2.0, is_aged=True),
]


@pytest.fixture(autouse=True)
def _not_compiled() -> Iterator[None]:
    """All is small here."""
    with in_python():
        yield


def reliability(clusters: int, seed: int, scale_s: float) -> ClusterReliability:
    rng = np.random.default_rng(seed)
    shape = rng.choice([0.7, 1.0, 12.0], clusters)
    return ClusterReliability(shape, scale_s * rng.uniform(0.5, 1.5, clusters))


@given(
    any_costs(7),
    st.sampled_from([*METHODS]),
    st.integers(0, 1000),
    st.sampled_from([3.0, 8.0, 30.0]),
    st.sampled_from(REPAIRS),
    st.sampled_from([*KINDS]),
    st.integers(1, 3),
)
def test_plays_are_those_of_the_twin(
    costs: Costs, method: str, seed: int, scale_s: float, how: Repair, kind: str, limit: int
) -> None:
    """Of valid plans, for every method, unit, repair and kind of belief."""
    way, planner = METHODS[method], Planner(costs)
    believed = reliability(len(costs.grid.clusters), seed, scale_s).beliefs(kind)
    plans = planner.plans(way, believed, AIMS._replace(limit=limit))
    for plan in plans:
        plan.check()
    model = reliability(len(costs.grid.clusters), seed, scale_s)
    failing = model.failing(costs.grid, np.random.default_rng(seed), 2, 200.0, how)
    restarts = (
        Restarts(is_total=seed % 3 == 0, is_apart=seed % 2 == 0) if way.restarts else NO_RESTARTS
    )
    for plan in plans:
        out = planner._play(plan, failing, believed, restarts, np.array([inf, 9.0]))
        for draw, until in enumerate((inf, 9.0)):
            allowed = (
                set(plan.cluster.tolist())
                if restarts.is_apart
                else set(range(len(costs.grid.clusters)))
            )
            slow = Slow(
                costs,
                lambda *of: failure(believed, *of),
                restarts,
                allowed,
                failing.is_losing,
                failing.is_final,
            )
            assert out[draw].tolist() == pytest.approx(
                slow.play(plan, events_of(failing, draw), until), abs=1e-9
            )


@given(
    any_costs(7),
    st.sampled_from(["HEFT_O", "DSH_O"]),
    st.integers(0, 1000),
    st.sampled_from([3.0, 30.0]),
    st.sampled_from([*KINDS]),
    st.integers(1, 4),
    st.booleans(),
)
def test_copies_are_those_of_the_twin(
    costs: Costs, method: str, seed: int, scale_s: float, kind: str, limit: int, is_relative: bool
) -> None:
    """Put where TOP wants them, when the last child is placed."""
    costs = exact(costs)
    way, aims = METHODS[method], AIMS._replace(limit=limit, is_relative=is_relative, wanted=0.8)
    believed = reliability(len(costs.grid.clusters), seed, scale_s).beliefs(kind)
    (plan,) = Planner(costs).plans(way, believed, aims)
    order = costs.by(-(costs.ranks[0] if way.base == "heft" else costs.static_level)).tolist()
    slow = reliably(costs, order, lambda *of: failure(believed, *of), aims, way.base == "dsh")
    rows = zip(plan.task.tolist(), plan.processor.tolist(), plan.start_s.tolist(), strict=True)
    assert sorted(rows) == sorted(
        (i, p, begin) for i, runs in slow.runs.items() for p, begin, _ in runs
    )


@given(any_costs(), st.integers(0, 50))
def test_without_failures_restarts_change_nothing_and_all_end_as_planned(
    costs: Costs, seed: int
) -> None:
    planner, model = Planner(costs), reliability(len(costs.grid.clusters), seed, 5.0)
    never = replace(
        model, shape=np.full(len(model.shape), 1.0), scale_s=np.full(len(model.shape), 1e12)
    )
    failing = never.failing(costs.grid, np.random.default_rng(seed), 2, 1e6, Repair())
    found = {}
    for name, way in METHODS.items():
        plans = planner.plans(way, model.beliefs())
        found[name] = planner.play(
            plans, failing, model.beliefs(), Restarts() if way.restarts else NO_RESTARTS
        )
        assert found[name].has_ended.all()
        rows = [np.full(len(costs.workflow), inf) for _ in plans]
        for ends, plan in zip(rows, plans, strict=True):
            np.minimum.at(ends, plan.task, plan.end_s)
        assert found[name].end_s.tolist() == pytest.approx([min(ends.max() for ends in rows)] * 2)
        assert not found[name].failed_s.any()
    for base in ("HEFT", "HEFT_O", "DSH", "DSH_O", "WDO"):
        again = found["W_C" if base == "WDO" else base + ("C" if base.endswith("O") else "_C")]
        assert found[base].end_s.tolist() == again.end_s.tolist()
        assert found[base].cpu_s.tolist() == again.cpu_s.tolist()


@given(any_costs(), st.integers(0, 1000), st.sampled_from([0.5, 0.95, 0.999]), st.integers(1, 4))
def test_wdo_is_no_worse_than_any_subset(
    costs: Costs, seed: int, wanted: float, limit: int
) -> None:
    """The fewest clusters that suffice, or of so many the least likely to fail."""
    model = reliability(len(costs.grid.clusters), seed, 10.0)
    alone_s = exclusive_s(costs)
    chosen, risk = (
        wdo(costs, model.beliefs(), wanted=wanted, limit=limit),
        risks(model.beliefs(), alone_s),
    )
    assert risk == pytest.approx([1 - model.survival(t)[c] for c, t in enumerate(alone_s)])
    sizes = range(1, min(limit, len(risk)) + 1)
    best = {
        n: min(prod(risk[c] for c in some) for some in combinations(range(len(risk)), n))
        for n in sizes
    }
    enough = next((n for n in sizes if best[n] <= 1 - wanted), sizes[-1])
    assert len(chosen) == enough
    assert prod(risk[c] for c in chosen) == pytest.approx(best[enough])


def test_failure_probabilities_and_wrong_beliefs() -> None:
    model = ClusterReliability(np.array([0.755, 12.05]), np.array([46.0, 46.0]))
    assert model.survival(24).tolist() == pytest.approx([0.542, 1.000], abs=1e-3)
    assert model.survival(48).tolist() == pytest.approx([0.356, 0.188], abs=1e-3)
    assert model.mtbf_s.tolist() == pytest.approx([54.5, 44.1], abs=0.05)
    of = {kind: failure(model.beliefs(kind), 0, 10.0, 30.0) for kind in KINDS}
    wrong = failure(model.beliefs(factor=np.array([1e9, 0.5])), 0, 10.0, 30.0)
    after, before = model.survival(30)[0], model.survival(10)[0]
    assert [*of.values()] == pytest.approx(
        [1 - after / before, 1 - model.survival(20)[0], 1 - after]
    )
    assert wrong == JUST_UNDER_1


def test_draws_have_the_means_that_they_should() -> None:
    model = ClusterReliability(np.array([0.7, 12.0]), np.array([10.0, 20.0]))
    two = Grid(
        (GridCluster("a", 2, 1.0), GridCluster("b", 3, 1.0)), np.zeros((2, 2)), np.ones((2, 2))
    )
    drawn = model.failing(two, np.random.default_rng(1), 20, 5000.0, Repair(4.0))
    for u in range(2):
        mine = (drawn.which == u) & np.isfinite(drawn.time_s)
        fails = (mine & (drawn.is_repair == 0)).sum() / 20
        assert fails == pytest.approx(5000 / (model.mtbf_s[u] + 4), rel=0.05)
    assert (
        len(model.failing(two, np.random.default_rng(1), 1, 50.0, Repair(4.0, unit="node")).unit)
        == 6
    )
