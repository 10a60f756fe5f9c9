"""The GLUME reproduction: the right campaigns, the thesis's arithmetic, and a page that says what
it found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from windrow.cli.main import main
from windrow_lab.campaign.campaign import BatchRules, Campaign
from windrow_lab.campaign.rows import KEY, SCHEMA
from windrow_lab.reproductions.cases import PRINTED_WINS, SUBMIT_S, configurations
from windrow_lab.reproductions.glume import plan as glume
from windrow_lab.reproductions.glume.claims import claims
from windrow_lab.reproductions.glume.page import report
from windrow_lab.reproductions.glume.plan import VERSIONS, GlumePlan, plan_glume
from windrow_lab.reproductions.glume.results import GlumeResults, compare_wins
from windrow_lab.reproductions.paper import Report

pytestmark = pytest.mark.usefixtures("few_bars")

MAKESPAN_S = 100_000


def made_up(campaign: Campaign, makespan_s: dict[tuple[str, ...], int]) -> pa.Table:
    """A table of the campaign: every makespan as given for (log, requests, workflow, strategy),
    else 100,000 s."""
    rows = []
    for chunk in campaign.chunks():
        for strategy in chunk.strategies:
            key = chunk.log.name, chunk.requests, chunk.workflow.name, strategy.name
            makespan = makespan_s.get(key, MAKESPAN_S)
            for submit_s in chunk.submit_s:
                rows.append(
                    dict.fromkeys(SCHEMA.names)
                    | dict(zip(("log", "requests", "workflow", "strategy"), key, strict=True))
                    | {
                        "policy": "conservative",
                        "cap": chunk.cap,
                        "seed": 0,
                        "submit_s": submit_s,
                        "jobs": 1,
                    }
                    | {
                        "makespan_s": makespan,
                        "visible_wait_s": 10,
                        "allocated_node_s": 200,
                        "used_node_s": 150,
                    }
                    | {"individually": False}
                )
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    return table.sort_by([(column, "ascending") for column in KEY])


def real(plan: GlumePlan) -> GlumePlan:
    """As if the logs had been found; nothing opens them."""
    logs = tuple(replace(log, path=__file__, model="") for log in plan.cap_16.logs)
    return replace(
        plan, campaigns=tuple(replace(c, logs=logs) for c in plan.campaigns), stand_ins=()
    )


PLAN = real(plan_glume(None, full=False))


def results(makespan_s: dict[tuple[str, ...], int], plan: GlumePlan = PLAN) -> GlumeResults:
    return GlumeResults(plan, [made_up(campaign, makespan_s) for campaign in plan.campaigns])


def reported(makespan_s: dict[tuple[str, ...], int], plan: GlumePlan = PLAN) -> Report:
    return report(plan, [made_up(campaign, makespan_s) for campaign in plan.campaigns])


def test_the_full_grid_is_that_of_the_thesis() -> None:
    plan = plan_glume(None, full=True)
    assert plan.cap_16.trials == 208_080 == 2 * 2 * 36 * 289 * 5
    assert (SUBMIT_S[0], SUBMIT_S[-1], len(SUBMIT_S)) == (86_400, 604_800, 48 * 6 + 1)
    assert len(set(configurations())) == 36
    assert {w.name for w in plan.campaigns[1].workflows} == {
        n for n in configurations() if "-250-" in n
    }
    assert (plan.campaigns[1].caps, plan.campaigns[1].requests, plan.cap_16.caps) == (
        (128,),
        ("accurate",),
        (16,),
    )
    sizes = {(v.global_search, v.sizing, v.binary) for v in VERSIONS.values()}
    assert len(sizes) == len(VERSIONS) == 8  # each with and without each


def test_real_data_are_used_where_they_are(data: Path) -> None:
    plan = plan_glume(data, full=True)
    assert all(log.path for log in plan.cap_16.logs)
    assert [log.load("actual").machine_nodes for log in plan.cap_16.logs] == [100, 128]
    made = [w for w in plan.cap_16.workflows if w.recipe]
    assert [w.name for w in made] == ["S-500-short", "S-500-medium", "S-500-long"]
    for source, work_s in zip(made, (360_000, 1_800_000, 3_600_000), strict=True):
        workflow = source.load()
        assert abs(len(workflow) - 500) <= 5
        assert workflow.runtime_s.sum() == pytest.approx(
            work_s, rel=0.03
        )  # 3 hours of 100 in the thesis
    montage = next(w for w in plan.cap_16.workflows if w.name == "M-250-long").load()
    assert montage.runtime_s.sum() == pytest.approx(3_600_000, rel=0.01)
    assert plan.stand_ins == (f"Generated workflows, 3 of 36: {', '.join(w.name for w in made)}.",)


def test_what_is_missing_is_generated_and_said(tmp_path: Path) -> None:
    plan = plan_glume(tmp_path, full=False)
    assert [log.load("actual").machine_nodes for log in plan.cap_16.logs] == [100, 128]
    assert len([line for line in plan.stand_ins if "synthetic" in line]) == 2
    assert any("Generated workflows, 24 of 24" in line for line in plan.stand_ins)


def test_a_log_beside_is_found_too(logs: Path, tmp_path: Path) -> None:
    name = "KTH-SP2-1996-2.1-cln.swf.gz"
    (tmp_path / name).symlink_to(logs / name)
    kth, sdsc = plan_glume(tmp_path, full=False).cap_16.logs
    assert kth.path.endswith(name)
    assert sdsc.model == "lublin"


@pytest.mark.slow
def test_wins_count_from_five_percent_on() -> None:
    key = ("KTH", "accurate")
    found = results(
        {
            (*key, "C-50-short", "glume"): 95_000,  # 5 % better: a win
            (*key, "C-250-short", "glume"): 95_001,  # just not
            (*key, "G-50-short", "glume"): 105_000,  # 5 % worse: Zhang's
            (*key, "G-250-short", "glume"): 104_999,
            (*key, "M-50-short", "glume"): 50_000,
            ("SDSC", "accurate", "M-50-short", "glume"): 1_000,  # another cell
        }
    )
    cell = found.cells()[0]
    assert (cell.log, cell.requests, cell.length, cell.of) == ("KTH", "accurate", "short", 8)
    assert cell.ours == (2, 1)
    assert cell.near == 4
    assert [c.ours for c in found.cells()[1:6]] == [(0, 0)] * 5
    assert found.cells()[6].ours == (1, 0)


@pytest.mark.slow
def test_improvement_is_the_mean_of_ratios_not_the_ratio_of_means() -> None:
    name = ("KTH", "accurate", 16, "C-50-short")
    table = made_up(PLAN.cap_16, {})
    mine = np.array(
        [row["log"] == "KTH" and row["workflow"] == "C-50-short" for row in table.to_pylist()]
    )
    numbers = np.array(table["makespan_s"].to_pylist(), dtype=object)
    first = (
        mine
        & (np.array(table["submit_s"]) == SUBMIT_S[0])
        & (np.array(table["requests"]) == "accurate")
    )
    numbers[first & (np.array(table["strategy"]) == "zhang")] = 10
    numbers[first & (np.array(table["strategy"]) == "glume")] = 30
    last = mine & (np.array(table["submit_s"]) == SUBMIT_S[-1])
    numbers[last & (np.array(table["strategy"]) == "glume")] = None  # a failed trial is left out
    column = table.schema.get_field_index("makespan_s")
    table = table.set_column(column, "makespan_s", pa.array(numbers.tolist(), pa.int64()))
    found = GlumeResults(PLAN, [table, *(made_up(c, {}) for c in PLAN.campaigns[1:])])
    assert found.improvement(*name, "glume") == pytest.approx(-200 / 24)
    assert found.improvement(*name, "one-job") == pytest.approx((10 - MAKESPAN_S) / 10 * 100 / 25)


@pytest.mark.parametrize(
    ("printed", "ours", "agrees"),
    [
        ((5, 0), (5, 0), True),
        ((5, 0), (1, 0), True),
        ((5, 0), (0, 0), False),
        ((5, 0), (2, 3), False),
        ((0, 12), (3, 2), False),
        ((3, 1), (0, 2), None),
        ((2, 0), (0, 0), None),
    ],
)
def test_only_a_clear_difference_in_print_must_be_met(
    printed: tuple[int, int], ours: tuple[int, int], agrees: bool | None
) -> None:
    assert compare_wins(printed, ours)[0] is agrees


def test_printed_wins_are_those_of_the_table() -> None:
    rows = {log: [v for k, v in PRINTED_WINS.items() if k[0] == log] for log in ("KTH", "SDSC")}
    assert " ".join(f"{a}/{b}" for a, b in rows["KTH"]) == "3/1 5/0 2/0 5/2 6/0 2/0"
    assert " ".join(f"{a}/{b}" for a, b in rows["SDSC"]) == "0/6 7/0 4/0 0/12 0/10 4/0"


def test_enhancements_are_compared_with_the_plain_version() -> None:
    long = ("KTH", "accurate", "C-250-long")
    found = results({(*long, "zhang-2"): 90_000, (*long, "zhang-1"): 110_000})
    rows = {(e.log, e.length, e.version): e for e in found.enhancements() if e.cap == 16}
    assert len(found.enhancements()) == 3 * 7 * len(PLAN.enhancements.logs)
    two, one = rows["KTH", "long", "2"], rows["KTH", "long", "1"]
    assert (two.runs, two.improved, two.worsened) == (100, 25, 0)
    assert two.improvement == pytest.approx(10)
    assert (one.improved, one.worsened, one.improvement) == (0, 25, 0)
    said = {(c.where, c.what): c for c in claims(found)}
    assert said["5.3", "runs that enhancement 1 changes"].agrees is False
    assert said["5.3", "runs that enhancement 3 changes"].agrees is True


def test_claims_differ_where_numbers_do() -> None:
    names = [w.name for w in PLAN.cap_16.workflows if "-250-" in w.name]
    better: dict[tuple[str, ...], int] = {
        ("KTH", "accurate", name, "individual"): 88_840 for name in names[:9]
    }
    worse: dict[tuple[str, ...], int] = {
        ("KTH", "accurate", name, "individual"): 110_000 for name in names[9:]
    }
    said = {(c.where, c.what): c for c in claims(results(better | worse))}
    count = said["figure 5.2", "workflows on which individual is better than zhang"]
    assert (count.printed, count.ours, count.agrees) == ("9 of 12", "9 of 12", True)
    mean = said["figure 5.2", "its improvement there, mean"]
    assert (mean.ours, mean.agrees) == ("11.16 %", True)
    assert said["figure 5.2", "its improvement there, at most"].agrees is False
    assert said["figure 5.3", "workflows on which individual loses to zhang"].agrees is False
    assert said["figure 5.3", "runs in which zhang sends one job"].ours == "100.00 %"


@pytest.mark.slow
def test_a_claim_of_two_numbers_needs_both() -> None:
    names = [w.name for w in PLAN.enhancements.workflows if w.name.endswith("long")]
    for makespan, agrees in (
        (93_500, True),
        (80_000, False),
    ):  # one workflow in four: 25 % of runs, print has 27 %
        found = results({("KTH", "accurate", names[0], "zhang-2"): makespan})
        said = {(c.where, c.what): c.agrees for c in claims(found)}
        assert said["5.3, KTH", "runs of 250-long that enhancement 2 improves"] is agrees


def test_what_print_has_and_we_never_see_differs() -> None:
    said = {(c.where, c.what): c for c in claims(results({}))}
    lost = said["7.1.2", "by how much zhang beats glume where it does, mean"]
    assert (lost.ours, lost.agrees) == ("no such run", False)


@pytest.mark.slow
def test_synthetic_logs_neither_agree_nor_differ() -> None:
    synthetic = plan_glume(None, full=False)
    found = results({}, synthetic)
    assert {c.agrees for c in found.cells()} == {None}
    assert {c.agrees for c in claims(found)} == {None}
    assert "nothing here can be compared" in reported({}, synthetic).summary[0]


@pytest.mark.slow
def test_page_markdown_and_json_hold_the_same_wins() -> None:
    found = reported({("KTH", "accurate", "C-50-short", "glume"): 50_000})
    html, text, numbers = found.html(), found.markdown(), found.json()
    assert "<td>1/0 of 8</td>" in html
    assert "| KTH, accurate, short | 3/1 of 12 | 1/0 of 8 |" in text
    back = json.loads(json.dumps(numbers, allow_nan=False))
    assert back["table_7_1"][0]["ours"] == [1, 0]
    assert html.count("<figure>") == len(back["figures"]) == 16
    assert text.count("\n## Figure ") == 16


@pytest.mark.slow
def test_failures_are_told_first_hand() -> None:
    tables = [made_up(campaign, {}) for campaign in PLAN.campaigns]
    errors = pa.array(["boom", *[None] * (len(tables[0]) - 1)], pa.string())
    tables[0] = tables[0].set_column(SCHEMA.get_field_index("error"), "error", errors)
    assert any("WARNING: 1 of" in line for line in report(PLAN, tables).summary)


@pytest.mark.slow
def test_the_command_runs_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(glume, "SUBMIT_S", (86_400,))
    out = tmp_path / "out"
    arguments = ["reproduce", "glume", "--data", str(tmp_path), "--out", str(out), "--workers", "1"]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "synthetic" in shown.err
    assert f"page: {out / 'glume.html'}" in shown.out
    numbers = json.loads((out / "glume.json").read_text())
    assert (numbers["failed"], numbers["trials"]) == (0, 24 * 4 * 6 + 12 * 2 * 4 + 12 * 2 * 8)
    first = {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()}
    assert main(arguments) == 0
    assert {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()} == first


@pytest.mark.slow
def test_a_difference_done_away_with_is_not_listed() -> None:
    neighbours = real(plan_glume(None, full=False, rules=BatchRules(placement="contiguous")))
    there, gone = reported({}).markdown(), reported({}, neighbours).markdown()
    assert "neighbouring nodes only" in there
    assert "neighbouring nodes only" not in gone
    assert "batch system: conservative contiguous" in gone


def test_an_unknown_placement_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "reproduce",
        "glume",
        "--data",
        str(tmp_path),
        "--out",
        str(tmp_path / "o"),
        "--placement",
        "left",
    ]
    assert main(arguments) == 2
    assert "placement" in capsys.readouterr().err


def test_a_data_folder_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "glume", "--data", str(tmp_path / "no")]) == 2
    assert "no such folder" in capsys.readouterr().err
