"""What the tables of foresight's campaigns come to, worked out by hand (see `made_up_foresight`),
and what is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lab.reproductions.made_up_foresight import made_up

from windrow_lab.reproductions.foresight.plan import BESIDE, plan_foresight
from windrow_lab.reproductions.foresight.results import BEST_KNOWN, RunsCell
from windrow_lab.reproductions.paper import PaperPlan


def cell_of(campaign: str, requests: str = "actual") -> RunsCell:
    [cell] = [cell for cell in made_up().cells[campaign] if cell.requests == requests]
    return cell


def test_means_are_over_all_runs_of_a_cell() -> None:
    cell = cell_of("grid")
    assert (cell.log, cell.requests, cell.policy, cell.length) == (
        "SDSC",
        "actual",
        "conservative",
        "short",
    )
    assert len(cell.runs) == 4
    assert cell.workflows == ("A-250-short", "B-250-short")
    assert cell.makespan_s("glume") == 250
    assert cell.makespan_s("foresight") == 235
    assert cell.node_h("glume") == pytest.approx(0.25)
    assert cell.best == "one-job"
    assert cell.against("foresight", "glume") == pytest.approx(-0.06)
    assert cell.against("foresight", "one-job") == pytest.approx(235 / 240 - 1)
    assert cell.cost("foresight") == pytest.approx(1.2)
    assert cell.jobs("foresight") == (3, 0.5)  # at the second time, one of them is killed
    assert cell.jobs("glume") == (3, 0)


def test_wins_are_counted_by_workflow_as_in_the_thesis() -> None:
    cell = cell_of("grid")
    assert cell.improvement("A-250-short", "foresight", "glume") == pytest.approx(20)
    assert cell.improvement("A-250-short", "glume", "zhang") == pytest.approx(
        -(100 / 9 + 100 / 19) / 2
    )
    assert cell.wins("foresight", "glume") == (1, 0)
    assert cell.wins("glume", "foresight") == (0, 1)
    assert cell.wins("foresight", "individual") == (2, 0)
    assert cell.wins("foresight", "one-job") == (1, 1)
    assert cell.glume_loses
    assert cell.glume_loses_in_print  # table 7.1: SDSC actual short, 0/12


def test_the_three_demands() -> None:
    cell = cell_of("grid")
    assert cell.is_within()
    assert cell.is_better()
    assert not cell.is_cheap()
    late = {
        "grid": {"foresight": (100, 170, 400, 300)}
    }  # a mean of 242.5: 1.04 % above one-job, 3 % below glume
    [slower] = [cell for cell in made_up(late).cells["grid"] if cell.requests == "actual"]
    assert not slower.is_within()
    assert not slower.is_better()
    cheaper = cell_of("grid")
    assert cheaper.is_cheap("zhang")


def test_a_run_that_one_strategy_did_not_finish_counts_for_none() -> None:
    results = made_up({"easy": {"zhang": (90, 0, 400, 300)}})
    [cell] = results.cells["easy"]
    assert len(cell.runs) == 3
    assert cell.makespan_s("glume") == pytest.approx(800 / 3)
    assert results.failed == 1
    assert results.trials == 6 * 4 * 2 + 6 * 4 + 7 * 4 + 2 + 2 + 2 * 2 + 2 * 10


def test_a_cell_that_nobody_finished_is_left_out() -> None:
    results = made_up({"easy": {"zhang": (0, 0, 0, 0)}})
    assert results.cells["easy"] == []


@pytest.mark.parametrize("campaign", BESIDE)
def test_what_stands_beside_the_grid_is_compared_on_the_same_runs(campaign: str) -> None:
    cell = cell_of(campaign)
    assert {run[1] for run in cell.runs} == {0}
    assert cell.makespan_s("glume") == 250
    assert cell.makespan_s("foresight") == 240
    assert cell.requests == "actual"


def test_the_distance_to_hindsight_and_to_the_best_known_run() -> None:
    assert cell_of("hindsight").against("foresight", "hindsight") == pytest.approx(240 / 180 - 1)
    oracle = cell_of("oracle")
    assert oracle.makespan_s("oracle") == 145
    assert (
        oracle.makespan_s(BEST_KNOWN) == (80 + 200) / 2
    )  # foresight is the best on A, the oracle on B
    assert all(oracle.makespan_s(BEST_KNOWN) <= oracle.makespan_s(name) for name in oracle.names)


def test_a_failed_run_is_not_the_best_known() -> None:
    oracle = made_up({"oracle": {"oracle": (0, 200)}}).cells["oracle"]
    assert [run[0] for run in oracle[0].runs] == ["B-250-short"]


def test_ingredients_are_measured_against_all_of_foresight() -> None:
    changes = {change.name: change for change in made_up().changes("ablation")}
    assert changes["no slack"].makespan == pytest.approx(244 / 240 - 1)
    assert changes["no slack"].worst == pytest.approx(244 / 240 - 1)
    assert changes["no slack"].node_hours == pytest.approx(2.0)
    assert list(changes)[-1] == "glume"
    assert changes["glume"].makespan == pytest.approx(250 / 240 - 1)


def test_lengths_together() -> None:
    [cell] = made_up().by_log("objectives")
    assert (cell.log, cell.length, len(cell.runs)) == ("SDSC", "all", 2)
    assert cell.makespan_s("node-hours") == 400
    assert cell.node_h("node-hours") == pytest.approx(500 / 3600)


@pytest.fixture(scope="module", params=[False, True], ids=["quick", "full"])
def plan(request: pytest.FixtureRequest, data: Path) -> PaperPlan:
    return plan_foresight(data, full=request.param)


def test_what_judges_was_not_used_for_tuning(plan: PaperPlan) -> None:
    campaigns = {c.name: c for c in plan.campaigns}
    weeks = [c for name, c in campaigns.items() if name.startswith("weeks-")]
    assert {log.name for c in weeks for log in c.logs} == {"KTH", "SDSC"}
    assert min(at for c in weeks for at in c.submit_s) > 8 * 86_400
    assert {log.name for log in campaigns["logs"].logs} == {"CTC", "SDSC-BLUE"}
    assert max(campaigns["grid"].submit_s) <= 7 * 86_400


def test_what_stands_beside_the_grid_is_in_it(plan: PaperPlan) -> None:
    campaigns = {c.name: c for c in plan.campaigns}
    grid = campaigns["grid"]
    for name in BESIDE:
        beside = campaigns[name]
        assert set(beside.submit_s) <= set(grid.submit_s)
        assert set(beside.workflows) <= set(grid.workflows)
        assert set(beside.logs) <= set(grid.logs)
        assert set(beside.requests) <= set(grid.requests)
        assert (beside.rules, beside.caps, beside.noise) == (grid.rules, grid.caps, grid.noise)
        assert not {s.name for s in beside.strategies} & {s.name for s in grid.strategies}


def test_the_documentation_counts_the_trials(data: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "reproductions" / "foresight.md").read_text()
    plans = [
        {c.name: c.trials for c in plan_foresight(data, full=full).campaigns}
        for full in (False, True)
    ]
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if re.match(r"\| `[a-zA-Z-]+`", line)
    ]
    told = {tuple(re.findall(r"`([a-zA-Z-]+)`", row[0])): row[2:] for row in rows if len(row) == 4}
    assert {name for names in told for name in names} == set(plans[0])
    for names, counts in told.items():
        assert counts == [f"{sum(plan[name] for name in names):,}" for plan in plans]


def test_the_times_of_a_quick_run_are_at_different_hours(data: Path) -> None:
    grid = plan_foresight(data, full=False).campaigns[0]
    assert len({at % 86_400 for at in grid.submit_s}) == len(grid.submit_s) == 7


def test_logs_that_are_missing_are_left_out_and_told() -> None:
    plan = plan_foresight(None, full=False)
    names = [c.name for c in plan.campaigns]
    assert "logs" not in names
    assert not any(name.startswith("weeks") for name in names)
    assert any("CTC" in line for line in plan.stand_ins)
