"""The compiled cluster against the slow reference, on random small cases; thousands of them in
`make prove`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.oracle.reference import DOWN
from tests.unit.sim.scenarios import Pair, Scenario, scenarios

from windrow.sim import simulate


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
@examples(100)
@given(scenarios(failing=True))
def test_a_replay_with_failures_is_what_one_sees_second_by_second(scenario: Scenario) -> None:
    """Who waits, which nodes are busy and out, and what was lost: counted at every second of the
    slow cluster."""
    names = ("nodes", "policy", "priority", "events", "cap")
    rules: dict[str, Any] = {name: getattr(scenario, name) for name in names}
    found = simulate(
        scenario.log, **rules, failures=np.array(scenario.failures, dtype=np.int64).reshape(-1, 4)
    )
    slow, last = scenario.reference(), int(found.end_s.max())
    seen = []
    for now in range(last):
        slow.advance(now)
        down = sum(job.number == DOWN for job in slow.running)
        seen.append(
            (len(slow.queue) + len(slow.held), sum(job.nodes for job in slow.running) - down, down)
        )
    slow.advance(last)
    waiting, busy, out = np.array(seen, dtype=np.int64).reshape(-1, 3).T
    first = int(scenario.log.submit_s[0])
    for (times, values), expected in (
        (found.queue_length(), waiting),
        (found.busy_nodes(), busy),
        (found.nodes_up(), scenario.nodes - out),
    ):
        place = np.searchsorted(times, np.arange(first, last), side="right") - 1
        assert np.where(place >= 0, values[place], 0).tolist() == expected[first:].tolist()
    summary, lost = (
        found.summary(),
        [found.log.nodes[job] * (when - began) for when, job, began, _ in slow.hits],
    )
    assert summary.runs_hit == len(slow.hits)
    assert summary.lost_node_h == pytest.approx(sum(lost) / 3600)
    assert summary.out_node_h == pytest.approx(out[first:].sum() / 3600)
    assert summary.makespan_s * scenario.nodes * summary.utilization == pytest.approx(
        busy.sum() - sum(lost)
    )


@pytest.mark.slow
@examples(200)
@given(
    st.booleans().flatmap(
        lambda failing: scenarios(
            placements=("count", "count", "leftmost", "contiguous"), failing=failing
        )
    ),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_estimates_are_what_then_happens(
    scenario: Scenario, asked: list[tuple[int, int]], user: int
) -> None:
    pair = Pair(scenario)
    for step in scenario.steps:
        pair.step(*step)
    nodes = [min(n, scenario.nodes) for n, _ in asked]
    lengths = [length for _, length in asked]
    expected = [
        pair.reference_estimate(n, length, user) for n, length in zip(nodes, lengths, strict=True)
    ]
    ones = zip(nodes, lengths, strict=True)
    assert [pair.fast.estimate(n, length, user)[0] for n, length in ones] == expected
    assert pair.fast.estimate(nodes, lengths, user).tolist() == expected
    later = pair.fast.now_s + 3  # what was learned of the time ahead must not outlive a change
    while pair.fast.advance(later) or pair.slow.advance(later):
        pass
    expected = [
        pair.reference_estimate(n, length, user) for n, length in zip(nodes, lengths, strict=True)
    ]
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
