"""The five storage allocations and their models against what the thesis and arithmetic say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_lab.reproductions.bent.baselines import BASELINES, WHERE
from windrow_lab.storage.allocations import (
    ALL,
    ALL_BATCH,
    ALL_PRIVATE,
    ALLOCATIONS,
    MINIMAL,
    SLICE,
    Environment,
    PipelineWorkload,
    at_once,
    best,
    groups,
    least_storage,
    possible,
    run_time_s,
)

S = WHERE.storage


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("batch", {SLICE: 17, MINIMAL: 183}),
        ("batch, V as printed", {SLICE: 10, MINIMAL: 180}),
        ("private", {ALL_BATCH: 20, MINIMAL: 44}),
        ("mixed", {ALL_BATCH: 25, SLICE: 60, MINIMAL: 205}),
    ],
)
def test_baselines_are_possible_and_as_wide_as_the_thesis_says(
    name: str, said: dict[str, int]
) -> None:
    work = BASELINES[name]
    assert {one: at_once(one, work, S) for one in possible(work, S)} == said


def test_minimal_runs_groups_of_which_the_last_is_the_rest() -> None:
    mixed = BASELINES["mixed"]
    assert groups(MINIMAL, mixed, S) == [205, 145]
    assert groups(MINIMAL, replace(mixed, width=410), S) == [205, 205]
    assert groups(SLICE, mixed, S) == [350]


@pytest.mark.parametrize(
    ("name", "allocation", "batch", "private"),
    [
        ("batch", ALL_BATCH, 19.97, None),
        ("batch", SLICE, 71.9, 0.084),
        ("batch", MINIMAL, 99.8, 14.7),
        ("private", ALL_BATCH, 19.6, 20.0),
        ("private", SLICE, None, 0.251),
        ("private", MINIMAL, 98.0, 44.0),
        ("mixed", ALL_BATCH, 19.92, 5.0),
        ("mixed", SLICE, 29.8, 0.234),
        ("mixed", MINIMAL, 99.6, 41.0),
    ],
)
def test_end_points_of_the_sweeps(
    name: str, allocation: str, batch: float | None, private: float | None
) -> None:
    """In percent of the storage, per volume; none where it is never possible."""
    for field, share in (("batch", batch), ("private", private)):
        work = BASELINES[name]
        low, high = 0, S
        while low < high:
            size = (low + high + 1) // 2
            fits = least_storage(allocation, replace(work, **{field: size})) <= S
            low, high = (size, high) if fits else (low, size - 1)
        if share is not None:
            assert 100 * low / S == pytest.approx(share, rel=0.006)
        else:
            assert low in (0, S)


def test_where_slice_ends_as_workloads_widen_and_all_batch_as_they_deepen() -> None:
    ends = {"mixed": (7.2, 8.18), "batch": (6.34, 7.32)}
    for name, (narrow, last) in ends.items():
        work = BASELINES[name]
        widths = range(1, 500)
        full = max(
            w for w in widths if at_once(SLICE, replace(work, width=w), S) >= min(w, WHERE.nodes)
        )
        able = max(w for w in widths if least_storage(SLICE, replace(work, width=w)) <= S)
        assert full / WHERE.nodes == pytest.approx(narrow)
        assert able / WHERE.nodes == pytest.approx(last)
    deep = {
        "mixed": [205, 160, 115, 70, 25],
        "private": [44, 38, 32, 26, 20, 14, 8, 2],
        "batch": [183],
    }
    for name, said in deep.items():
        wide = [replace(BASELINES[name], depth=depth) for depth in range(1, 12)]
        assert [at_once(ALL_BATCH, w, S) for w in wide if ALL_BATCH in possible(w, S)] == said


def test_one_of_each_is_the_same_everywhere_and_three_of_each_leave_minimal_alone() -> None:
    assert len({least_storage(one, PipelineWorkload(1, 1, 7, 5)) for one in ALLOCATIONS}) == 1
    assert possible(PipelineWorkload(3, 3, 49, 24), 100) == (MINIMAL,)


works = st.builds(
    PipelineWorkload,
    *[st.integers(1, 12)] * 2,
    *[st.integers(0, 40)] * 2,
    st.integers(1, 99),
    st.just(0.1),
)
places = st.builds(Environment, st.integers(1, 9), st.integers(1, 400), *[st.integers(1, 9)] * 2)


@given(works, st.integers(1, 400))
def test_what_one_allocation_implies(work: PipelineWorkload, storage: int) -> None:
    able = possible(work, storage)
    for one, others in {ALL: (ALL_BATCH, ALL_PRIVATE), ALL_PRIVATE: (SLICE,)}.items():
        assert one not in able or set(others) <= set(able)
    assert not able or MINIMAL in able
    for one in able:
        assert at_once(one, work, storage) >= 1
        assert sum(groups(one, work, storage)) == work.width


@given(works, places)
def test_models_by_the_formulas_of_the_thesis_in_fractions(
    work: PipelineWorkload, where: Environment
) -> None:
    """What All and AllBatch take, written down once more: a cold phase, then warm ones."""
    r, local = Fraction(int(where.remote)), Fraction(int(where.local))
    through = 1 / (1 / r + 1 / local)
    rest = (
        2 * (work.private / through + work.private * (work.depth - 1) / local)
        + Fraction(work.run_s) * work.depth
    )
    for one in (ALL, ALL_BATCH):
        took = run_time_s(one, work, where)
        if one not in possible(work, where.storage):
            assert took == inf
            continue
        phases = -(-work.width // min(at_once(one, work, where.storage), where.nodes))
        total = (
            work.depth * work.batch / through
            + (phases - 1) * work.depth * work.batch / local
            + phases * rest
        )
        assert took == pytest.approx(float(total))


@given(works, places)
def test_the_best_is_possible_and_none_is_faster(
    work: PipelineWorkload, where: Environment
) -> None:
    for is_printed in (False, True):
        chosen = best(work, where, is_printed=is_printed)
        able = possible(work, where.storage)
        assert (chosen is None) == (not able)
        if chosen is not None:
            times = [run_time_s(one, work, where, is_printed=is_printed) for one in able]
            assert run_time_s(chosen, work, where, is_printed=is_printed) == min(times)


def test_failures_turn_the_mixed_workload_from_slice_to_all_batch() -> None:
    mixed = BASELINES["mixed"]
    told = {
        0.0: (857, 559, 828),
        1e-5: (903, 829, 1098),
        2e-5: (903, 1100, 1369),
        1e-4: (993, 2499, 2769),
    }
    for rate, thousands in told.items():
        where = replace(WHERE, failures_per_s=rate)
        times = [run_time_s(one, mixed, where) for one in (ALL_BATCH, SLICE, MINIMAL)]
        assert [round(time_s / 1000) for time_s in times] == list(thousands)
    assert run_time_s(SLICE, mixed, replace(WHERE, failures_per_s=2e-4)) == inf
    assert run_time_s(ALL_BATCH, mixed, replace(WHERE, failures_per_s=2e-4)) == pytest.approx(
        1.128e6, rel=1e-3
    )


def test_as_printed_the_batch_workload_is_mistaken_and_with_caps_it_is_not() -> None:
    work = BASELINES["batch, V as printed"]
    assert (best(work, WHERE, is_printed=True), best(work, WHERE)) == (SLICE, MINIMAL)
