"""The few raw numbers that the GLUME thesis's own simulator left behind, on KTH, against our runs
under its settings.

Its settings: nodes with identities and contiguous jobs, waits asked for the bare run, a margin of
1.1, requests equal to run times, tasks that go out one by one in the workflow's order. One of the
runs replays the log as we do: it must come out the same, to the seconds by which our tasks are
rounded up. The others were made on another conversion of the log by an older version, so their
figures agree to about two percent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.formats import read_workflow
from windrow.manager.terms import Terms
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.strategies import Zhang
from windrow.trials.figures import Figures
from windrow.trials.trial import Trial, run_trial
from windrow_lab.reproductions.glume.log import ThesisLog

LEVELS = 4
"""Of CyberShake: so many tasks stand behind each other, each rounded up to a whole second."""


def thesis_run(
    data: Path,
    workflow: str,
    start_s: int,
    cap: int,
    *,
    binary: bool,
    placement: str = "contiguous",
    margin: float = 1.1,
    by_number: bool = True,
) -> Trial:
    log = ThesisLog("KTH", path=str(data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")).load("accurate")
    cluster = Cluster(log, placement=placement)
    cluster.advance(start_s)
    terms = Terms(margin=margin, forecast_with_margin=False, busy_is_request=True)
    strategy = Zhang(
        binary=binary, whole_is_baseline=False, hidden_waits_count=True, by_number=by_number
    )
    return run_trial(
        cluster,
        read_workflow(data / "dax" / "glume" / f"{workflow}.dax.gz"),
        strategy,
        terms=terms,
        site=Site.of(100, cap=cap),
    )


def test_cybershake_is_cut_after_its_first_level_and_then_goes_out_task_by_task(data: Path) -> None:
    trial = thesis_run(data, "CYBERSHAKE_250_3600000", 104_400, 100, binary=False)
    first = trial.story.jobs[0]
    assert (first.plan.nodes, len(first.plan.tasks), first.started_s) == (2, 2, 104_400)
    assert [len(job.plan.tasks) for job in list(trial.story.jobs.values())[1:]] == [1] * 248
    assert Figures.of(trial).node_time.idle_s == pytest.approx(
        1948.12, abs=2
    )  # the second node idles while the first runs on
    assert trial.makespan_s == pytest.approx(90_928.53, abs=LEVELS)


@pytest.mark.parametrize(("margin", "by_number"), [(1.1, False), (1.5, True)])
def test_neither_another_order_nor_another_margin_gives_that_makespan(
    data: Path, margin: float, by_number: bool
) -> None:
    trial = thesis_run(
        data,
        "CYBERSHAKE_250_3600000",
        104_400,
        100,
        binary=False,
        margin=margin,
        by_number=by_number,
    )
    assert abs(trial.makespan_s - 90_928.53) > 100  # far beyond what rounding could do


def test_counted_nodes_would_not_have_done_so(data: Path) -> None:
    """The placing of jobs decides: with counted nodes the queue at that time is three times as
    long."""
    trial = thesis_run(
        data, "CYBERSHAKE_250_3600000", 104_400, 100, binary=False, placement="count"
    )
    assert len(trial.story.jobs) == 2


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
