"""The reproduction of Zhang's chapter 6: measures in words, a part that does not depend on what
else runs, the page."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from windrow.kernels.jit import in_python
from windrow_lab.grid.faults import METHODS, Planner
from windrow_lab.reproductions.calls import run_calls
from windrow_lab.reproductions.faults import page, plan
from windrow_lab.reproductions.faults.plan import (
    FAMILIES,
    OURS,
    READINGS,
    SEEDS,
    SHAPE,
    SUMMED,
    FamilySums,
    plan_faults,
)
from windrow_lab.reproductions.faults.sums import Sums
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed


def made_up(success: float = 0.5) -> np.ndarray:
    sums = np.zeros(SHAPE)
    rng = np.random.default_rng(1)
    sums[..., 0] = 10
    sums[..., 1] = 10 * success
    sums[..., 2:] = rng.uniform(1, 2, (*SHAPE[:-1], len(SUMMED) - 2))
    return sums


def test_measures_are_of_what_their_words_say() -> None:
    sums = made_up()
    sums[0, 2, 1, 2, 0] = [10, 4, 8, 1, 2, 3, 6]  # long shapes, stable, optimistic, limit 10, HEFT
    of = Sums({family: sums * (family == "fft") for family in FAMILIES})
    words = "HEFT stable optimistic 10 long fft"
    found = {
        name: of.value(f"{name} {words}")
        for name in ("success", "slr", "cpu", "with_potential", "expected", "failed")
    }
    assert found == pytest.approx(
        {"success": 40, "slr": 2, "cpu": 0.6, "with_potential": 1.2, "expected": 1.5, "failed": 0.3}
    )
    assert of.value(f"success {words.replace('stable', 'stable|shaky')}") == 50
    assert of.value(f"success {words.replace('stable', 'stable&shaky')}") == 40
    assert of.value(f"success {words.replace('stable', 'stable+shaky')}") == 45
    assert of.compared(f"success {words}", "success DSH") == pytest.approx(-20)
    assert Sums(of.by_family, "long").value("success HEFT stable optimistic 10") == 40
    assert np.isnan(of.value("slr HEFT gauss"))


def test_page_markdown_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "grouped_bars", lambda *_: "<svg/>")
    monkeypatch.setattr(page, "READINGS", READINGS[:1])
    parts = [
        FamilySums(name, seed, f, made_up())
        for name in (OURS, *READINGS[:1])
        for seed in SEEDS
        for f in FAMILIES
    ]
    for part in parts:
        if part.reading != OURS:
            part.sums[:, :, 1:] = part.sums[:, :, :, 1:] = 0  # one accuracy, one limit
    made = page.report(PaperPlan("quick"), parts)
    count = len(printed("faults")["claims"])
    assert len(made.blocks[0].rows) == len(made.blocks[1].rows) == count
    assert f"of {count} claims agree" in made.findings[0]
    assert "Figures 6.4 to 6.16" in made.html()
    assert "Figure 6.16" in made.markdown()
    assert "D17: nodes fail" in made.markdown()
    told = json.loads(json.dumps(made.json(), allow_nan=False))
    assert told["runs"] == 10 * np.prod(SHAPE[:-1]) * len(FAMILIES) * len(SEEDS)
    assert {claim["agrees"] for claim in told["claims"]} == {True, False}


def test_the_plan_has_635_workflows_of_the_right_sizes() -> None:
    full, quick = plan_faults(Wishes(full=True)), plan_faults(Wishes())
    ours = [call.args for call in full.calls if isinstance(call, partial) and call.args[0] == OURS]
    assert sum(len(numbers) for *_, numbers in ours) == 635
    assert len({(seed, family, n) for _, seed, family, numbers in ours for n in numbers}) == 635
    assert len(quick.calls) == len(SEEDS) * len(FAMILIES) * (2 + len(READINGS))
    sizes = plan.STAND_INS["workflows"]["tasks"]
    assert all(50 <= size <= 1000 for each in sizes.values() for size in each)
    assert np.mean([np.mean(each) for each in sizes.values()]) >= 300


@pytest.mark.slow
def test_a_part_is_the_same_each_time_and_limits_only_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that the limit did not cut are not made again; the sums are as if they were."""
    monkeypatch.setitem(plan.STAND_INS["reliability"], "draws", 1)
    monkeypatch.setitem(plan.STAND_INS["workflows"], "tasks", {family: [9] for family in FAMILIES})
    few = plan.nine_sites(1).part({0: 2, 1: 2, 8: 1})
    monkeypatch.setattr(plan, "nine_sites", lambda *_, **_more: few)
    with in_python():
        costs = plan.workflow_on(plan.nine_sites(1), 1, "gauss", 0)
        assert 7 <= Planner(costs).bases["heft"].makespan_s / 3600 <= 720
        one = plan.run(OURS, 1, "gauss", range(1))
        monkeypatch.setattr(plan, "_is_cut", lambda *_: True)
        again = plan.run(OURS, 1, "gauss", range(1))
    assert one.sums.tolist() == again.sums.tolist()
    assert (one.sums[..., 0] == 1).all()
    assert one.sums.shape[-2] == len(METHODS)


def tiny(seed: int) -> FamilySums:
    """One workflow of nine tasks on three clusters, under one draw of failures."""
    plan.STAND_INS["reliability"]["draws"] = 1
    plan.STAND_INS["workflows"]["tasks"] = {family: [9] for family in FAMILIES}
    with pytest.MonkeyPatch.context() as patch, in_python():
        few = plan.nine_sites(seed).part({0: 2, 1: 2, 8: 1})
        patch.setattr(plan, "nine_sites", lambda *_, **_more: few)
        return plan.run(READINGS[0], seed, "gauss", range(1))


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for table in (
        "reliability",
        "workflows",
    ):  # which `tiny` changes, here and in its own processes
        monkeypatch.setitem(plan.STAND_INS, table, dict(plan.STAND_INS[table]))
    calls = [partial(tiny, seed) for seed in (1, 2)]
    told = list[tuple[int, int]]()
    one, two = (
        [call() for call in calls],
        run_calls(calls, 2, lambda *done: told.append(done), tmp_path),
    )
    assert told == [(0, 2), (1, 2), (2, 2)]
    calls.append(partial(tiny, 3))
    assert len(run_calls(calls, 2, lambda *done: told.append(done), tmp_path)) == 3
    assert told[3:] == [(2, 3), (3, 3)], "what was kept did not run again"
    assert [part.sums.tolist() for part in one] == [part.sums.tolist() for part in two]
    assert [part[:3] for part in one] == [part[:3] for part in two]
