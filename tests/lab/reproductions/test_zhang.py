"""The reproduction of Zhang, Koelbel and Cooper: the right campaigns, the thesis's wait, claims
that can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import UserError
from windrow.model.site import Site
from windrow.strategies import Work, whole_seconds
from windrow_lab.campaign.campaign import Campaign
from windrow_lab.campaign.rows import KEY, SCHEMA, chunk_table
from windrow_lab.campaign.sources import LogSource
from windrow_lab.reproductions.paper import Claim, Wishes
from windrow_lab.reproductions.zhang.claims import claims, told_claim
from windrow_lab.reproductions.zhang.plan import (
    CLUSTERS,
    HYBRID,
    LARGE,
    POLICIES,
    RUNNING_H,
    STRATEGY_NAMES,
    WIDTHS,
    WORK_H,
    Configuration,
    ZhangPlan,
    all_configurations,
    plan_wished,
    plan_zhang,
    submission_times,
)
from windrow_lab.reproductions.zhang.results import (
    PRINTED_WAIT_S,
    ZhangResults,
    figure_11,
    of_application,
    printed_usage,
    ranking,
)
from windrow_lab.reproductions.zhang.told import Told, told_waits

ALONE_S = 10_000
PLAN = plan_zhang(None, full=False)

Wait = Callable[[str, str, str, str, int], int]
"""From cluster, policy, workflow, strategy and the number of the submission time to a wait in
seconds."""


def made_up(plan: ZhangPlan, wait_s: Wait, cpu_s: dict[str, int] | None = None) -> ZhangResults:
    """Results of runs that take 10,000 s alone and wait as told."""
    return ZhangResults(
        plan, [_table(campaign, wait_s, cpu_s or {}) for campaign in plan.campaigns]
    )


def _table(campaign: Campaign, wait_s: Wait, cpu_s: dict[str, int]) -> pa.Table:
    rows = []
    names = {rules.label: name for name, rules in POLICIES.items()}
    for chunk in campaign.chunks():
        for strategy in STRATEGY_NAMES:
            for i, submit_s in enumerate(chunk.submit_s):
                place = chunk.log.name, names[chunk.rules.label], chunk.workflow.name, strategy
                wait = wait_s(*place, i)
                rows.append(
                    dict.fromkeys(SCHEMA.names)
                    | {
                        "log": chunk.log.name,
                        "requests": "actual",
                        "policy": chunk.rules.label,
                        "cap": chunk.cap,
                    }
                    | {
                        "workflow": chunk.workflow.name,
                        "strategy": strategy,
                        "seed": 0,
                        "submit_s": submit_s,
                    }
                    | {
                        "makespan_s": ALONE_S + wait,
                        "queue_wait_s": wait if strategy == "giant" else 77,
                    }
                    | {"allocated_node_s": cpu_s.get(strategy, 3600), "individually": False}
                )
    return pa.Table.from_pylist(rows, schema=SCHEMA).sort_by(
        [(column, "ascending") for column in KEY]
    )


def as_printed(cluster: str, _policy: str, workflow: str, strategy: str, i: int) -> int:
    """Waits as in figure 10 (a) under every policy, a little different each time; gauss as figure
    15 has it."""
    wait = PRINTED_WAIT_S[cluster][STRATEGY_NAMES.index(strategy)]
    if workflow.startswith("gauss") and strategy == "giant":
        wait = PRINTED_WAIT_S[cluster][2] + 100
    return wait + i


def find(said: list[Claim], words: str) -> Claim:
    (found,) = (c for c in said if words in c.what)
    return found


def test_the_full_grid_is_that_of_the_paper() -> None:
    plan = plan_zhang(None, full=True)
    assert [campaign.trials for campaign in plan.campaigns] == [3 * 125 * 100 * 3] * 5
    assert [log.name for log in plan.logs] == list(CLUSTERS)
    assert len({c.name for c in all_configurations()}) == 125
    assert all(
        len([c for c in all_configurations() if c.application == app]) == 25 for app in WIDTHS
    )
    assert not HYBRID.sizing
    assert [rules.label for rules in plan.campaigns[0].rules] == ["easy fcfs", "easy fl", "easy fs"]


def test_workflows_span_what_the_paper_says() -> None:
    full = list(all_configurations())
    assert (min(c.width for c in full), max(c.width for c in full)) == (5, 256)
    assert max(c.width for c in full if c.application == "gauss") == 55
    assert 0.25 < sum(c.width > LARGE for c in full) / len(full) < 0.35  # "about 30 %"
    assert RUNNING_H[-1] == 7 * 24
    assert sum(WORK_H) / len(WORK_H) == pytest.approx(200, rel=0.01)  # a third of "under 600"


@pytest.mark.parametrize("application", WIDTHS)
def test_workflows_are_as_wide_as_their_names_say(application: str) -> None:
    for width, tasks in WIDTHS[application].items():
        workflow = Configuration(application, width, 42).source().load()
        assert len(workflow) == tasks
        assert np.bincount(workflow.levels).max() == width
        assert workflow.runtime_s.sum() == pytest.approx(42 * 3600)


def test_submission_times_are_fixed_and_within_the_log() -> None:
    times = submission_times("Star", full=True)
    assert times == submission_times("Star", full=True)
    assert len(set(times)) == 100
    assert 7 * 86_400 <= times[0] < times[-1] < 274 * 86_400
    assert times != submission_times("RTC", full=True)
    assert max(submission_times("Star", full=False)) < 60 * 86_400


def test_a_cap_is_for_every_run() -> None:
    capped = plan_zhang(None, full=False, cap=16)
    assert (PLAN.cap, capped.cap) == (None, 16)
    assert {campaign.caps for campaign in capped.campaigns} == {(16,)}
    assert not {c.digest() for c in PLAN.campaigns} & {c.digest() for c in capped.campaigns}


def test_no_workflow_reaches_the_bound_that_means_none() -> None:
    most = max(c.source().tasks for c in all_configurations())
    assert most <= PLAN.campaigns[0].caps[0]


def test_public_logs_join_where_they_are(data: Path) -> None:
    plan = plan_zhang(data, full=True)
    assert [log.name for log in plan.logs] == [*CLUSTERS, "KTH", "SDSC"]
    assert len(plan.stand_ins) == 1
    for campaign in plan.campaigns[5:]:
        log = campaign.logs[0].load("actual")
        assert max(campaign.submit_s) < log.submit_s[-1] - log.submit_s[0] - 20 * 86_400


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    words = plan_zhang(tmp_path, full=False).stand_ins
    assert "private" in words[0]
    assert ["KTH" in words[1], "SDSC" in words[2]] == [True, True]


def test_wait_is_turnaround_less_the_time_alone() -> None:
    found = made_up(
        PLAN, lambda _c, _p, w, s, i: 1000 * STRATEGY_NAMES.index(s) + 10 * i + w.startswith("fft")
    )
    wait = found.runs("wait_s", "Ada", "FL", "zhang")
    assert wait.shape == (10, 6)
    fft = [c.application == "fft" for c in PLAN.configurations]
    assert (wait == np.array([2000 + 10 * np.arange(6) + is_fft for is_fft in fft])).all()
    assert found.runs("relative_wait", "Ada", "FL", "zhang") == pytest.approx(wait / ALONE_S)


def test_cells_do_not_get_mixed_up() -> None:
    places = product(CLUSTERS, POLICIES, (w.name for w in PLAN.configurations), STRATEGY_NAMES)
    code = {place: 7 * i for i, place in enumerate(places)}
    found = made_up(PLAN, lambda c, p, w, s, i: code[c, p, w, s] + i)
    for cluster, policy, strategy in (("Lonestar", "FS", "giant"), ("Star", "FCFS", "individual")):
        rows = found.runs("wait_s", cluster, policy, strategy)
        expected = [
            [code[cluster, policy, w.name, strategy] + i for i in range(6)]
            for w in PLAN.configurations
        ]
        assert rows.tolist() == expected
    only = found.runs("wait_s", "RTC", "FL", "zhang", of_application("blast"))
    assert only[:, 0].tolist() == [
        code["RTC", "FL", w.name, "zhang"] for w in PLAN.configurations if "blast" in w.name
    ]


def test_means_over_clusters_give_each_the_same_weight() -> None:
    found = made_up(PLAN, lambda c, *_: 3600 * (1 + CLUSTERS.index(c)))
    assert found.mean("wait_s", CLUSTERS, "FL", "zhang") == 3 * 3600
    assert [m.wait_h[0] for m in found.means()[:5]] == [1, 2, 3, 4, 5]


def test_the_time_alone_is_that_of_an_empty_cluster() -> None:
    """The definition rests on giant: its makespan less its wait must be the run by list scheduling
    at full width."""
    campaign = replace(PLAN.campaigns[3], submit_s=PLAN.campaigns[3].submit_s[:2])
    chunk = next(c for c in campaign.chunks() if c.workflow.name == "montage-160-296h")
    rows = [row for row in chunk_table(chunk).to_pylist() if row["strategy"] == "giant"]
    workflow = chunk.workflow.load()
    work = Work(workflow, whole_seconds(workflow), Site.of(270))
    alone = int(work.run_s(np.arange(len(workflow)), 160)[-1])
    critical = _critical_path_s(
        workflow.parents.of, whole_seconds(workflow).tolist(), workflow.levels.tolist()
    )
    assert (
        alone == critical
    )  # nothing waits for a node where there are as many as the widest level has tasks
    assert {row["makespan_s"] - row["queue_wait_s"] for row in rows} == {alone}


def _critical_path_s(
    parents: Callable[[int], np.ndarray], runtime_s: list[int], levels: list[int]
) -> int:
    ends: dict[int, int] = {}
    for task in sorted(range(len(levels)), key=lambda v: levels[v]):
        ends[task] = runtime_s[task] + max((ends[int(p)] for p in parents(task)), default=0)
    return max(ends.values())


@pytest.mark.slow
def test_a_failed_run_is_left_out_of_means_and_pairs() -> None:
    tables = [
        _table(c, lambda _c, _p, _w, s, i: 100 * i + 10 * STRATEGY_NAMES.index(s), {})
        for c in PLAN.campaigns
    ]
    first = tables[0].to_pylist()
    lost = next(row for row in first if row["strategy"] == "zhang" and row["policy"] == "easy fcfs")
    lost |= {
        "makespan_s": None,
        "queue_wait_s": None,
        "allocated_node_s": None,
        "individually": None,
        "error": "boom",
    }
    tables[0] = pa.Table.from_pylist(first, schema=SCHEMA)
    found = ZhangResults(PLAN, tables)
    assert (found.failed, found.trials) == (1, 5 * 3 * 10 * 6 * 3)
    test = found.compare("Lonestar", "FCFS", "giant", "zhang")
    assert (test.by_run.pairs, test.by_time.pairs) == (59, 5)
    assert found.compare("Ada", "FCFS", "giant", "zhang").by_run.pairs == 60
    assert test.by_run.difference == pytest.approx(-10)


def test_print_agrees_with_itself() -> None:
    found = made_up(PLAN, as_printed, {"individual": 100, "giant": 290, "zhang": 250})
    assert [m.agrees for m in found.means() if m.policy == "FCFS"] == [True] * 5
    assert {m.agrees for m in found.means() if m.policy != "FCFS"} == {None}
    said = claims(found)
    for words in (
        "hybrid waits least",
        "hybrid removes",
        "policy does not change",
        "least on Lonestar",
    ):
        assert all(c.agrees for c in said if words in c.what and "RTC" not in c.what), words
    assert find(said, "individual waits longer than giant").agrees
    assert find(said, "giant waits longer than individual").agrees
    # A fifth of the workflows are gauss: 1 - 33,990 / (0.8 x 62,854 + 0.2 x 34,090).
    assert find(said, "better of the other two").ours == "LeMieux (40 %)"
    assert find(said, "gauss: giant").agrees
    assert find(said, "CPU hours of giant over").ours == "2.90"
    assert find(said, "fewer CPU hours").agrees


def test_claims_differ_where_numbers_do() -> None:
    upside_down = made_up(PLAN, lambda c, p, w, s, i: 90_000 - as_printed(c, p, w, s, i))
    said = claims(upside_down)
    for words in (
        "hybrid waits least",
        "another waits less",
        "least on Lonestar",
        "gauss: giant",
        "giant over those",
    ):
        assert not any(c.agrees for c in said if words in c.what), words
    another = find(said, "another waits less than hybrid")
    assert another.ours.startswith("15: Lonestar FCFS")


def test_ties_are_not_taken_for_differences() -> None:
    said = claims(made_up(PLAN, lambda *_: 500))
    assert find(said, "another waits less than hybrid").agrees
    assert find(said, "paired t-test").ours == "0 of 45"
    assert find(said, "hybrid removes").ours == "0 %"


def test_leaders_are_those_that_none_beats() -> None:
    noise = (0, 900, 100, 800, 300, 600)
    waits: dict[str, Callable[[int], int]] = {
        "individual": lambda i: 5000 + noise[i],
        "zhang": lambda i: 5000 + noise[-1 - i],  # the same on average
        "giant": lambda i: 9000 + noise[i],
    }
    found = made_up(PLAN, lambda _c, _p, _w, s, i: waits[s](i))
    assert found.leaders("Ada", "FS") == ("individual", "zhang")


def test_groups_are_by_application_and_width() -> None:
    hours = {"eman": 1, "montage": 2, "blast": 3, "fft": 4, "gauss": 5}
    found = made_up(
        PLAN, lambda _c, _p, w, s, _i: 3600 * hours[w.split("-")[0]] * (2 if s == "giant" else 1)
    )
    groups = {(g.policy, g.name): g for g in found.groups()}
    assert len(groups) == 3 * 7
    assert groups["FS", "blast"].wait_h == (3, 6, 3)
    assert groups["FS", "blast"].relative_wait == pytest.approx((1.08, 2.16, 1.08))
    assert groups["FL", "large"].wait_h == (
        2,
        4,
        2,
    )  # in a quick run eman, montage and blast have one each
    assert groups["FL", "small"].wait_h[0] == pytest.approx((1 + 2 + 3 + 8 + 10) / 7)
    same, worse = groups["FCFS", "fft"].tests
    assert (same.pairs, same.p) == (5 * 2 * 6, 1)
    assert worse.difference == 4 * 3600


def test_ranking_is_from_the_least() -> None:
    assert ranking((3, 1, 2)) == ("giant", "zhang", "individual")


def test_figures_are_those_of_the_paper() -> None:
    figures = {f.figure: f for f in made_up(PLAN, as_printed).figures()}
    assert [*figures] == ["10 (a) in print", "10 (a)", "10 (b)", "10 (c)", "12", "13", "14", "15"]
    assert figures["10 (a) in print"].values["giant"][3] == pytest.approx(90681 / 3600)
    assert figures["14"].groups == (
        "FCFS, small",
        "FL, small",
        "FS, small",
        "FCFS, large",
        "FL, large",
        "FS, large",
    )
    assert figures["15"].groups == tuple(WIDTHS)
    assert figures["13"].values["zhang"] == (1.0,) * 5


def test_stand_ins_have_the_means_of_figure_11() -> None:
    small = replace(PLAN, campaigns=PLAN.campaigns[3:])
    for name, ours, printed in figure_11(small):
        assert printed is not None, name
        assert ours.jobs_per_day == pytest.approx(printed.jobs_per_day, rel=0.01)
        assert ours.width == pytest.approx(printed.width, rel=0.01)
        assert ours.actual_load == pytest.approx(printed.actual_load, rel=0.01)
        assert ours.requested_load == pytest.approx(printed.requested_load, rel=0.01)
    assert printed_usage("KTH") is None


def test_readings_change_logs_work_or_policy() -> None:
    plan = plan_zhang(None, full=False, readings=("sessions", "small", "strict"))
    assert plan.variant == "-sessions-small-strict"
    assert plan.campaigns[0].rules[0].label == "easy-strict fcfs"
    assert plan.configurations[-1].work_h == RUNNING_H[3]
    assert dict(plan.logs[1].parameters) == {"session": "40", "session_most": "2000"}
    assert "at once" in " ".join(plan.stand_ins)
    with pytest.raises(UserError, match="unknown reading 'sesions'"):
        plan_wished(Wishes(options={"reading": "sesions"}))


@pytest.mark.slow
def test_numbers_agree_within_the_tolerance_on_both_sides() -> None:
    def said(cpu_s: dict[str, int]) -> list[Claim]:
        return claims(made_up(PLAN, as_printed, cpu_s))

    for giant_h, agrees in ((400, False), (550, True), (601, False)):
        found = said({"individual": 1, "giant": giant_h * 3600, "zhang": 1})
        assert find(found, "CPU hours of a giant job on Star").agrees is agrees
    for giant, agrees in ((250, False), (290, True)):
        found = said({"individual": 100, "giant": giant, "zhang": 250})
        assert find(found, "CPU hours of giant over").agrees is agrees
    waits = made_up(PLAN, lambda _c, _p, _w, s, _i: 100 if s == "zhang" else 100_000)
    assert find(claims(waits), "hybrid removes").agrees is False, "99 % is not 70 %"


def test_giant_is_better_for_larger_workflows_or_not() -> None:
    def wait(_cluster: str, _policy: str, workflow: str, strategy: str, _i: int) -> int:
        if strategy == "giant":
            return 900 if "-160-" in workflow else 2000
        return 1000

    assert find(claims(made_up(PLAN, wait)), "giant's wait by individual's is less").agrees
    other = made_up(PLAN, lambda c, p, w, s, i: 3000 - wait(c, p, w, s, i))
    assert find(claims(other), "giant's wait by individual's is less").ours == "0 of 3"


def test_what_waiting_jobs_are_told_beside_what_they_wait() -> None:
    """Requests are far longer than runs on Star, and so are the waits that jobs are told."""
    source = LogSource("Star", model="star", seed=1, days=20, parameters=(("load", "1.5"),))
    told = told_waits((source,), (500_000, 900_000), "fcfs")
    assert told.jobs > 10
    assert told.told_s > told.waited_s > 0
    near = Told("a", 10, 104.0, 100.0)
    assert told_claim([near, near]).agrees
    assert told_claim([near, Told("b", 30, 150.0, 100.0)]).agrees is False
