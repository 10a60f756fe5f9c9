"""The trials of foresight: what is run, and what is said of it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from windrow.lab.campaign import Campaign
from windrow.lab.foresight import Plan, plan_foresight
from windrow.lab.foresight_results import Results
from windrow.lab.rows import SCHEMA
from windrow.report.foresight import blocks, foresight_json, foresight_markdown, foresight_page, summary

HOURS = {"glume": 10.0, "one-job": 9.0, "foresight": 8.0, "hindsight": 6.0, "node-hours": 20.0}
NODE_H = {"foresight": 105, "node-hours": 50}


def told(campaign: Campaign, *, foresight_on_kth_short: float = 8.0) -> pa.Table:
    """A table in which each strategy always takes as long as told, and two runs failed."""
    rows = []
    cells = product(campaign.logs, campaign.requests, campaign.rules, campaign.workflows, campaign.strategies)
    for log, requests, rules, workflow, strategy in cells:
        hours = HOURS.get(strategy.name, 12.0)
        if strategy.name == "foresight" and log.name == "KTH" and workflow.name.endswith("short"):
            hours = foresight_on_kth_short
        for at in campaign.submit_s:
            row: dict[str, object] = {
                "log": log.name,
                "requests": requests,
                "policy": rules.label,
                "workflow": workflow.name,
            }
            row |= {"strategy": strategy.name, "submit_s": at, "seed": 0, "cap": 16}
            row |= {"makespan_s": int(hours * 3600), "used_node_s": 3600 * NODE_H.get(strategy.name, 100)}
            rows.append(row)
    rows[0] = rows[0] | {"error": "AssertionError", "makespan_s": None, "used_node_s": None}
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_foresight(None, full=False)


@pytest.fixture(scope="module")
def results(plan: Plan) -> Results:
    return Results(plan, [told(c, foresight_on_kth_short=9.2 if c.name == "grid" else 8.0) for c in plan.campaigns])


def test_cells_are_means_beside_the_best_fixed_strategy(results: Results) -> None:
    cells = {(c.log, c.requests, c.length): c for c in results.cells["grid"]}
    assert len(cells) == 12
    good, bad = cells["SDSC", "actual", "short"], cells["KTH", "actual", "short"]
    assert good.best == "one-job"
    assert good.against("foresight", "one-job") == pytest.approx(8 / 9 - 1)
    assert good.cost("foresight") == pytest.approx(1.05)
    assert good.wins == (8, 0)
    assert bad.against("foresight", bad.best) == pytest.approx(9.2 / 9 - 1)
    failed = cells["KTH", "accurate", "short"]
    assert failed.runs == good.runs - 1  # a run that one strategy did not finish counts for none


def test_the_page_says_what_was_kept(results: Results) -> None:
    lines = summary(results)
    assert "grid: no more than 1 % behind the best fixed strategy in 10 of 12 cells" in lines[0]
    assert any(
        "Where glume is not the best on the grid: 5 % better than it in 12 of 12 cells" in line for line in lines
    )
    assert any("FAILED" in line or "failed" in line for line in lines)
    first = blocks(results)[0]
    verdicts = {row[0]: row[-1] for row in first.rows}
    assert verdicts["KTH actual short"] == "not kept"
    assert verdicts["SDSC actual short"] == "kept"


def test_three_forms_hold_the_same(results: Results) -> None:
    text, html = foresight_markdown(results), foresight_page(results)
    numbers = json.loads(json.dumps(foresight_json(results), allow_nan=False))
    assert numbers["totals"]["objectives"]["node-hours"] == pytest.approx([2.0, 0.5])
    for words in ("-20.0 %", "without sizes", "hindsight"):
        assert words in text
        assert words in html
    assert html.count("<svg") >= 1


def test_what_judges_was_not_used_for_tuning(data: Path) -> None:
    campaigns = {c.name: c for c in plan_foresight(data, full=True).campaigns}
    weeks = [c for name, c in campaigns.items() if name.startswith("weeks-")]
    assert {log.name for c in weeks for log in c.logs} == {"KTH", "SDSC"}
    assert min(at for c in weeks for at in c.submit_s) > 8 * 86_400
    assert {log.name for log in campaigns["logs"].logs} == {"CTC", "SDSC-BLUE"}
    assert max(campaigns["grid"].submit_s) <= 7 * 86_400
