"""The cluster with blocks of four segments and a queue that is long from two jobs on, so that small
random cases go through all that long plans and queues do. Kernels run as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sim.scenarios import Pair, Scenario, scenarios, small_log

from windrow.kernels.cluster import (
    advance,
    depths,
    estimate,
    failures,
    holes,
    jobs,
    policies,
    profile,
    queue_index,
    queue_times,
    slides,
    state,
)
from windrow.kernels.jit import Kernel, in_python

MODULES: tuple[ModuleType, ...] = (
    *(advance, depths, estimate, failures, holes, jobs, policies, profile),
    *(queue_index, queue_times, slides),
)


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            for kernel in vars(module).values():
                if isinstance(kernel, Kernel):
                    patch.setattr(kernel, "__call__", kernel._first)
        for module in (profile, state):
            patch.setattr(module, "BLOCK", 4)
        patch.setattr(profile, "_FILLED", 3)
        patch.setattr(state, "LONG_QUEUE", 2)
        patch.setattr(policies, "_MANY_PLACED", 2)
        patch.setattr(state, "INDEX_BLOCK", 2)
        patch.setattr(state, "SLIDE_SLOTS", 8)
        patch.setattr(holes, "_SHORTEST", 1)
        with in_python():
            yield


@pytest.mark.slow
@examples(300)
@given(st.booleans().flatmap(lambda failing: scenarios(failing=failing)))
def test_every_start_and_event_is_the_same(scenario: Scenario) -> None:
    pair = Pair(scenario)
    for step in scenario.steps:
        pair.step(*step)
    pair.finish()


@st.composite
def crowds(draw: st.DrawFn) -> Scenario:
    """Many jobs at once, of which most end early."""
    size, time = st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from([2, 3, 4, 6, 8, 12, 40])
    job = st.tuples(st.integers(0, 1), size, time, st.integers(1, 12), st.just(0))
    log = small_log(draw(st.lists(job, min_size=20, max_size=40)), 8)
    policy = draw(st.sampled_from(["conservative", "conservative", "easy"]))
    return Scenario(8, log, policy, "arrival", "batched", "count", None, [])


@pytest.mark.slow
@examples(120)
@given(crowds())
def test_who_may_start_in_a_long_queue_is_found(scenario: Scenario) -> None:
    Pair(scenario).finish()


@pytest.mark.slow
@examples(60)
@given(crowds())
def test_bounded_passes_start_everybody_whoever_is_looked_at(scenario: Scenario) -> None:
    def starts() -> list[int]:
        cluster = replace(scenario, policy="conservative").cluster().coarser(5, 2)
        while cluster.advance():
            pass
        return list(map(int, cluster.log_starts_s))

    found = starts()
    assert min(found) >= 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_times, "can_skip", lambda _, __: False)
        assert starts() == found


@pytest.mark.slow
@examples(150)
@given(
    scenarios(),
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
    assert pair.fast.estimate(nodes, lengths, user).tolist() == expected
    pair.finish_quietly()
