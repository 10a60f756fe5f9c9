"""The page of the Zhang reproduction: the same numbers in HTML, Markdown and JSON, and pictures
that show them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from windrow_lab.campaign.campaign import Campaign
from windrow_lab.campaign.rows import KEY, SCHEMA
from windrow_lab.reproductions.charts import short
from windrow_lab.reproductions.paired import PairedTest
from windrow_lab.reproductions.paper import Report
from windrow_lab.reproductions.zhang.page import p_words, report
from windrow_lab.reproductions.zhang.plan import STRATEGY_NAMES, plan_zhang

pytestmark = pytest.mark.usefixtures("few_bars")

PLAN = plan_zhang(None, full=False)
WAIT_S = {"individual": 7200, "giant": 10_800, "zhang": 3600}


def table(campaign: Campaign, *, fail_first: bool = False) -> pa.Table:
    """Runs of an hour that wait 2, 3 and 1 hours."""
    rows = [
        dict.fromkeys(SCHEMA.names)
        | {
            "log": chunk.log.name,
            "policy": chunk.rules.label,
            "requests": "actual",
            "workflow": chunk.workflow.name,
        }
        | {
            "cap": 1,
            "seed": 0,
            "strategy": strategy,
            "submit_s": at,
            "allocated_node_s": 7200,
            "individually": True,
        }
        | {"makespan_s": 3600 + WAIT_S[strategy], "queue_wait_s": WAIT_S[strategy]}
        for chunk in campaign.chunks()
        for strategy in STRATEGY_NAMES
        for at in chunk.submit_s
    ]
    if fail_first:
        rows[0] |= {"error": "boom", "makespan_s": None, "queue_wait_s": None}
    return pa.Table.from_pylist(rows, schema=SCHEMA).sort_by(
        [(column, "ascending") for column in KEY]
    )


@pytest.fixture(scope="module")
def results() -> Report:
    return report(PLAN, [table(campaign) for campaign in PLAN.campaigns])


@pytest.mark.slow
def test_page_markdown_and_json_hold_the_same_numbers(results: Report) -> None:
    html, text = results.html(), results.markdown()
    numbers = json.loads(json.dumps(results.json(), allow_nan=False))
    assert '<td class="best">1.00 h</td>' in html
    assert (
        "| FS, Star | 2.00 h | 3.00 h | **1.00 h** | 2.00 / 3.00 / 1.00 | 2.00 / 2.00 / 2.00 |"
        in text
    )
    assert numbers["means"][0]["wait_h"] == [2, 3, 1]
    assert (
        html.count("<figure>") == len(numbers["figures"]) == text.count("\n## Figure ") - 2
    )  # and two tables
    assert len(numbers["t_tests"]) == 5 * 3 * 3
    assert len(numbers["figure_11"]) == 5


def test_print_stands_beside_ours(results: Report) -> None:
    text = results.markdown()
    assert (
        "| RTC | 6.42 / 25.2 / 4.43 | 2.00 / 3.00 / 1.00 | 0.69 / 0.18 | 0.50 / 0.33 | agrees |"
        in text
    )
    assert (
        "| Ada | 20.2 / 7.81 / 7.20 | 2.00 / 3.00 / 1.00 | 0.36 / 0.92 | 0.50 / 0.33 | differs |"
        in text
    )
    assert (
        "figure 10: clusters and policies where hybrid waits least | 14 of 15 and a tie | 15 of "
        "15 | agrees" in text
    )


def test_the_summary_says_what_is_not_the_papers_own(results: Report) -> None:
    lines = results.summary
    assert any("private" in line for line in lines)
    assert any("KTH was not found" in line for line in lines)
    assert any("A quick run" in line for line in lines)
    assert any("zhang in 15, individual in 0, giant in 0" in line for line in lines)


@pytest.mark.slow
def test_failures_are_told_first_hand() -> None:
    tables = [table(campaign, fail_first=i == 0) for i, campaign in enumerate(PLAN.campaigns)]
    found = report(PLAN, tables)
    assert any("WARNING: 1 of 2,700" in line for line in found.summary)
    json.dumps(found.json(), allow_nan=False)


def test_numbers_fit_over_bars() -> None:
    assert [short(v) for v in (0.034, 9.876, 12.34, 1234.5)] == ["0.03", "9.88", "12.3", "1,234"]


def test_small_p_values_are_not_printed_as_zero() -> None:
    assert p_words(PairedTest(10, 1.0, 99.0, 1e-12)) == "below 0.0001"
    assert p_words(PairedTest(10, 1.0, 2.0, 0.04321)) == "0.0432"
    assert p_words(PairedTest(1, 1.0, None, None)) == "too few pairs"
