"""The compiled cluster against the slow reference, on random small cases; thousands of them in `make prove`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sim.scenarios import Pair, Scenario, scenarios


def play(scenario: Scenario) -> None:
    pair = Pair(scenario)
    for step in scenario.steps:
        pair.step(*step)
    pair.finish()


@pytest.mark.slow
@examples(300)
@given(scenarios())
def test_every_start_and_event_is_the_same(scenario: Scenario) -> None:
    play(scenario)


@pytest.mark.slow
@examples(300)
@given(scenarios(placements=("leftmost", "contiguous")))
def test_every_start_and_event_is_the_same_with_identities(scenario: Scenario) -> None:
    play(scenario)


@pytest.mark.slow
@examples(400)
@given(scenarios(placements=("count", "count", "leftmost", "contiguous"), failing=True))
def test_every_start_and_event_is_the_same_where_nodes_fail(scenario: Scenario) -> None:
    play(scenario)


@pytest.mark.slow
@examples(200)
@given(
    st.booleans().flatmap(
        lambda failing: scenarios(placements=("count", "count", "leftmost", "contiguous"), failing=failing)
    ),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_estimates_are_what_then_happens(scenario: Scenario, asked: list[tuple[int, int]], user: int) -> None:
    pair = Pair(scenario)
    for step in scenario.steps:
        pair.step(*step)
    nodes = [min(n, scenario.nodes) for n, _ in asked]
    lengths = [length for _, length in asked]
    expected = [pair.reference_estimate(n, length, user) for n, length in zip(nodes, lengths, strict=True)]
    assert pair.fast.estimate(nodes, lengths, user).tolist() == expected
    pair.finish_quietly()  # asking changes nothing


@pytest.mark.slow
@examples(100)
@given(scenarios(placements=("count", "leftmost")), st.integers(0, 40))
def test_a_clone_and_its_original_live_apart(scenario: Scenario, at: int) -> None:
    pair, alone = Pair(scenario), scenario.cluster()
    pair.fast.advance(at)
    twin = pair.fast.clone()
    twin.submit(scenario.nodes, 50, 50)
    twin.advance(at + 60)
    pair.fast.advance()
    alone.advance()
    np.testing.assert_array_equal(pair.fast.log_starts_s, alone.log_starts_s)
