"""The reproduction of Zhang's chapters 3 and 4: what is measured, on made-up rows, and a page of
them."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from windrow.recipes.workflows.catalog import generate_workflow
from windrow_lab.grid.clusters import Grid, GridCluster
from windrow_lab.grid.recipes import generate_grid
from windrow_lab.reproductions.grid import page, plan
from windrow_lab.reproductions.grid.claims import (
    FOURTH,
    KINDS,
    THREE,
    UNIVERSAL,
    WIDE,
    Runs,
    SlrRows,
    claims,
)
from windrow_lab.reproductions.grid.plan import SELECTIONS, STAND_INS, Selected, SlrRow, plan_grid
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed


def made_up(seed: int, experiment: str = "arithmetic") -> list[SlrRow]:
    """Each algorithm is worse than the one before, more so at high CCR; EACP's versions are twice
    as good."""
    rows = []
    shapes = ((0.5, 50), (1.0, 200), (5.0, 400))
    for grid, kind, (alpha, width), ccr in product(
        STAND_INS["chapter_3"]["grids"], KINDS, shapes, (0.1, 1.0, 10.0)
    ):
        slr = [1 + 0.1 * k * ccr + 0.01 * (width % 7) * k for k in range(4)]
        slr += [slr[0] / 2, slr[3] / 2, slr[2], *slr[1:4]]
        rows.append(SlrRow(experiment, seed, grid, kind, alpha, ccr, width, tuple(slr)))
    return rows


def runs(seed: int) -> list[Selected]:
    """Makespans of 100 s, but for one TightBag, which halves them at CCR 10; times by hosts."""
    hosts = dict(zip(SELECTIONS, (36_000, 1_000, 100, 1_500), strict=True))
    found = [
        Selected(seed, "montage", 1.0, 518, 1_000, "growth", 3_600 * k, 1.0, 0.1 * k)
        for k in range(1, 11)
    ]
    for kind, ccr, selection in product(
        ("eman", "montage"), STAND_INS["chapter_4"]["ccr"], SELECTIONS
    ):
        makespan_s = 50.0 if (selection, ccr) == ("one TightBag", 10.0) else 100.0
        found.append(
            Selected(
                seed,
                kind,
                ccr,
                64,
                500,
                selection,
                hosts[selection],
                makespan_s,
                hosts[selection] / 1e6,
            )
        )
    return found


def test_every_claim_has_its_measure_and_every_measure_its_claim() -> None:
    names = [said["measure"] for said in printed("grid")["claims"]]
    assert sorted(names) == sorted([*THREE, *UNIVERSAL, *WIDE, *FOURTH])
    assert all(low <= high for low, high in (said["between"] for said in printed("grid")["claims"]))


def test_measures_of_made_up_rows() -> None:
    rows, four = SlrRows(made_up(1)), Runs(runs(1))
    wide = rows.of("universal", ["random", "level", "choke"])
    assert WIDE["eacp_heft_10"](wide) == pytest.approx(2)
    assert WIDE["spread_by_ccr"](wide) > 1
    assert wide.of(ccr=10, width=(200, 200)).spread == pytest.approx((1 + 3 + 0.12) / 1)
    assert rows.of("universal").p("heft", "hhs") < 0.001
    assert rows.of("universal").is_best("heft").all()
    assert four.linear() == pytest.approx(100)
    assert FOURTH["tight_gain_makespan"](four) == pytest.approx(50)
    assert four.turnaround("one-step", 1) == pytest.approx(
        100 + 3 * 3600 / 2
    )  # half as many tasks and edges as the widest
    assert four.time_share("eman") == pytest.approx(100 * 100 / 36_000)


def test_a_claim_agrees_if_it_does_under_every_seed() -> None:
    worse = [row._replace(slr=(row.slr[0], 2 * row.slr[0], *row.slr[2:])) for row in made_up(2)]
    seeds = [(SlrRows(made_up(1)), Runs(runs(1))), (SlrRows(worse), Runs(runs(2)))]
    same = {c.what: c for c in claims(seeds[:1])}
    both = {c.what: c for c in claims(seeds)}
    said = next(what for what in both if what.startswith("EACP at CCR 10: HEFT"))
    assert same[said].agrees
    assert both[said].agrees
    off = next(what for what in both if what.startswith("HEFT and HHS 1 %"))
    assert both[off].agrees is False
    assert "to 100.0 %" in both[off].ours


def test_page_markdown_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "grouped_bars", lambda *_: "<svg/>")
    rows = [made_up(seed, name) for seed in STAND_INS["seeds"] for name in STAND_INS["experiments"]]
    made = page.report(PaperPlan("quick"), [*rows, *(runs(seed) for seed in STAND_INS["seeds"])])
    assert len(made.blocks[0].rows) == len(printed("grid")["claims"])
    assert "of 49 claims agree" in made.findings[0]
    assert "Figure 4.4" in made.html()
    assert "Figure 3.10" in made.markdown()
    assert len(json.loads(json.dumps(made.json()))["rows"]) == sum(map(len, rows))


def test_the_plan_has_every_part_once_and_links_keep_their_order() -> None:
    calls = plan_grid(Wishes()).calls
    assert len(calls) == 5 * (3 * 9 + 2)
    grid = Grid(
        tuple(GridCluster(x, 2, 1) for x in "abc"),
        np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0.0]]),
        np.full((3, 3), 1000.0),
    )
    linked = plan._linked(grid, "even").bandwidth_bytes_s
    assert linked.tolist() == [[1000, 1, 100], [1, 1000, 50.5], [100, 50.5, 1000]]
    assert plan._linked(grid, "arithmetic") is grid


def test_a_row_has_what_its_grid_and_type_ask_for() -> None:
    costs = plan._on(plan._application("montage", 15, 1, 1.0), generate_grid("big-cluster", seed=1))
    known = np.isfinite(
        [
            plan._slr(*of, costs, False)
            for of in product(("big-cluster", "many-cluster"), ("random", "eman"))
        ]
    )
    assert known.sum(axis=1).tolist() == [6, 4, 4, 4]
    assert costs.workflow.ccr(1 / costs.grid.mean_bandwidth_bytes_s) == pytest.approx(1)
    rate = plan._on(plan._application("montage", 15, 1, 1.0), costs.grid, by_mean_rate=False)
    assert rate.workflow.ccr(costs.grid.mean_s_per_byte) == pytest.approx(1)


def test_applications_have_the_cost_model_of_the_thesis() -> None:
    """Edges of 20 to 1000 MB, all from one level to the next the same; the structure stays."""
    for kind in ("eman", "montage"):
        there = plan._application(kind, 56, 3, 2.0)
        plain = generate_workflow(kind, tasks=56, seed=3, even_levels=True)
        sizes = there.edge_bytes / 1e6
        assert 20 <= sizes.min() < sizes.max() <= 1000
        pairs = np.stack((there.levels[there.parents.index], sizes), axis=1)
        assert len(np.unique(pairs, axis=0)) == there.depth - 1
        assert there.parents.index.tolist() == plain.parents.index.tolist()
        assert there.ccr(1 / 12.5e6) == pytest.approx(2)


def test_what_a_run_cannot_judge_is_said_not_judged() -> None:
    seeds = [(SlrRows(made_up(1)), Runs(runs(1)))]
    quick = {c.what: c for c in claims(seeds, full=False)}
    timed = next(c for what, c in quick.items() if what.startswith("EMAN: time of one"))
    assert timed.agrees is None
    assert timed.verdict == "not applicable: needs scheduling that takes long"
    slow = [run._replace(took_s=run.took_s * 1e4) for run in runs(1)]
    again = {c.what: c for c in claims([(seeds[0][0], Runs(slow))], full=False)}
    assert again[timed.what].agrees is True
    judged = sum(c.agrees is not None for c in claims(seeds, full=True))
    assert judged == sum(c.agrees is not None for c in quick.values()) + 4
