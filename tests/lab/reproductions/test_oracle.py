"""The oracle: its beam against all scripts there are, and its rows against trials run by hand."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.trials.trial import Trial, run_trial
from windrow_lab.campaign.campaign import Campaign, Chunk
from windrow_lab.campaign.rows import chunk_table, rows_of
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.workers import run_campaigns
from windrow_lab.reproductions.foresight.decision_times import crowded, decision_times
from windrow_lab.reproductions.foresight.oracle import HINDSIGHT, Oracle, _Beam, _Scripted

WIDTH, DEPTH = 2, 3
SCRIPTS = list(product(range(WIDTH), repeat=DEPTH))
LOG = LogSource("small", model="lublin", seed=3, days=6, nodes=16, parameters=(("load", "0.9"),))
WORKFLOW = WorkflowSource("fork-join-12-short", recipe="fork-join", tasks=12, work_s=40_000, seed=1)
CAMPAIGN = Campaign("oracle", (LOG,), (WORKFLOW,), (86_400, 100_000), (Oracle(),), caps=(4,))


def chunk() -> Chunk:
    [only] = CAMPAIGN.chunks()
    return only


@given(st.lists(st.integers(1, 1000), min_size=len(SCRIPTS), max_size=len(SCRIPTS)))
def test_a_beam_as_wide_as_everything_finds_the_best_script(lengths: list[int]) -> None:
    ends = dict(zip(SCRIPTS, lengths, strict=True))
    played: list[tuple[int, ...]] = []

    def play(script: _Scripted) -> int:
        played.append(script.ranks)
        script.open = [WIDTH] * DEPTH
        return ends[(*script.ranks, *[0] * (DEPTH - len(script.ranks)))]

    wide = _Beam(play, float, len(SCRIPTS))
    wide_scripts = wide.search(DEPTH)
    assert min(wide_scripts) == min(lengths)
    assert len(played) == len(set(played)) == len(SCRIPTS)


def test_a_narrow_beam_goes_on_from_the_best_beginnings() -> None:
    ends = {(): 10, (1,): 20, (2,): 9, (0, 1): 11, (0, 2): 12, (2, 1): 8, (2, 2): 30}

    def play(script: _Scripted) -> int:
        script.open = [3, 3]
        return ends[script.ranks]

    beam = _Beam(play, float, 2)
    assert min(beam.search(2)) == 8
    assert (1, 1) not in beam.found  # its beginning was the third best


def test_only_courses_that_were_there_are_taken() -> None:
    def play(script: _Scripted) -> int:
        script.open = [1]
        return 7

    beam = _Beam(play, float, 4)
    assert beam.search(3) == [7]


@pytest.mark.slow
def test_rows_of_the_oracle_are_its_trials() -> None:
    table = rows_of(chunk())
    assert table.column("submit_s").to_pylist() == [86_400, 100_000]
    assert set(table.column("strategy").to_pylist()) == {"oracle"}
    log = LOG.load("actual")
    cluster = Cluster(log, start_s=int(log.submit_s[0]))
    for row in table.to_pylist():
        cluster.advance(int(log.submit_s[0]) + row["submit_s"])
        assert row["makespan_s"] == min(trial.makespan_s for trial in trials_by_hand(cluster))


def trials_by_hand(cluster: Cluster) -> list[Trial]:
    workflow = WORKFLOW.load()
    play = partial(run_trial, site=Site.of(cluster.nodes, cap=4))
    beam = _Beam(
        lambda script: play(cluster.clone(), workflow, script),
        lambda trial: trial.makespan_s,
        WIDTH,
    )
    return beam.search(Oracle().depth)


def test_the_oracle_is_never_later_than_hindsight() -> None:
    known = chunk_table(
        next(
            iter(
                Campaign(
                    "h", (LOG,), (WORKFLOW,), CAMPAIGN.submit_s, (HINDSIGHT,), caps=(4,)
                ).chunks()
            )
        )
    )
    best = rows_of(chunk())
    pairs = list(
        zip(
            best.column("makespan_s").to_pylist(),
            known.column("makespan_s").to_pylist(),
            strict=True,
        )
    )
    assert all(oracle <= hindsight for oracle, hindsight in pairs)


@pytest.mark.slow
def test_a_campaign_of_the_oracle_is_kept_like_any_other(tmp_path: pytest.TempPathFactory) -> None:
    table = run_campaigns([CAMPAIGN], str(tmp_path), workers=1)[0]
    assert (
        table.column("makespan_s").to_pylist() == rows_of(chunk()).column("makespan_s").to_pylist()
    )


def test_decisions_are_of_foresight_in_a_crowd() -> None:
    cluster = crowded(LOG)
    [times] = decision_times(cluster, [WORKFLOW])
    assert times.workflow == WORKFLOW.name
    assert times.waiting == len(cluster.queue()) > 50
    assert 1 <= len(times.decisions_s) <= 3
    assert all(took_s > 0 for took_s in times.decisions_s)
