"""The few raw numbers that the GLUME thesis's own simulator left behind, on KTH, against our runs under its settings.

Its settings: nodes with identities and contiguous jobs, waits asked for the bare run, a margin of 1.1, requests equal
to run times. Its clock has fractions and its replay of the log pads requests by seconds, so figures agree to about a
percent, and the cuts themselves must be the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.formats import read_log, read_workflow
from windrow.lab.trial import Trial, run_trial
from windrow.manager.terms import Terms
from windrow.sim import Cluster
from windrow.strategies import Zhang


def thesis_run(
    data: Path, workflow: str, start_s: int, cap: int, *, binary: bool, placement: str = "contiguous"
) -> Trial:
    log = read_log(data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    cluster = Cluster(log, requests="accurate", placement=placement)
    cluster.advance(start_s)
    terms = Terms(100, cap=cap, forecast_with_margin=False, busy_is_request=True)
    strategy = Zhang(binary=binary, whole_is_baseline=False, hidden_waits_count=True)
    return run_trial(cluster, read_workflow(data / "dax" / "glume" / f"{workflow}.dax.gz"), strategy, terms=terms)


def test_cybershake_is_cut_after_its_first_level_and_then_goes_out_task_by_task(data: Path) -> None:
    trial = thesis_run(data, "CYBERSHAKE_250_3600000", 104_400, 100, binary=False)
    first = trial.jobs[0]
    assert (first.plan.nodes, len(first.plan.tasks), first.started_s) == (2, 2, 104_400)
    assert [len(job.plan.tasks) for job in trial.jobs[1:]] == [1] * 248
    assert trial.used_node_s - trial.work_s == pytest.approx(
        1948.12, abs=2
    )  # the second node idles while the first runs on
    assert trial.makespan_s == pytest.approx(90_928.53, rel=0.015)


def test_counted_nodes_would_not_have_done_so(data: Path) -> None:
    """The placing of jobs decides: with counted nodes the queue at that time is three times as long."""
    trial = thesis_run(data, "CYBERSHAKE_250_3600000", 104_400, 100, binary=False, placement="count")
    assert len(trial.jobs) == 2


@pytest.mark.parametrize(
    ("workflow", "makespan_s"),
    [
        ("CYBERSHAKE_50_360000", 32_645.10),
        ("GENOME_50_360000", 63_732.42),
        ("MONTAGE_50_360000", 39_962.48),
        ("SIPHT_50_360000", 134_835.65),
    ],
)
def test_small_workflows(data: Path, workflow: str, makespan_s: float) -> None:
    trial = thesis_run(data, workflow, 86_400, 10, binary=True)
    assert trial.makespan_s == pytest.approx(makespan_s, rel=0.025)
