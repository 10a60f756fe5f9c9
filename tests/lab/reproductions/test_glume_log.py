"""A log as the thesis's simulator replayed it: rules by hand on a few lines, and what they add to
the real log."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from windrow.app.strategies import STRATEGIES
from windrow.errors import UserError
from windrow.model import Log, Task, Workflow
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.strategies import Individual, Zhang
from windrow.trials.trial import run_trial
from windrow_lab.campaign.sources import LogSource
from windrow_lab.reproductions.glume.log import ThesisLog
from windrow_lab.reproductions.glume.plan import plan_as_thesis

SDSC = "SDSC-SP2-1998-4.2-cln.swf.gz"

LINES = """\
; MaxProcs: 8
1  100 5  500  4 -1 -1  4  600 -1 1 1 1 1 1 1 -1 -1
2  110 5   -1 -1 -1 -1  2 3600 -1 5 1 1 1 1 1 -1 -1
3  120 5 1000  1 -1 -1  1  900 -1 1 1 1 1 1 1 -1 -1
4  130 5    0  1 -1 -1  1  900 -1 0 1 1 1 1 1 -1 -1
5  140 5   -1 -1 -1 -1  1   -1 -1 5 1 1 1 1 1 -1 -1
6  150 5   59  8 -1 -1 -1   -1 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def source(tmp_path: Path) -> ThesisLog:
    path = tmp_path / "few.swf"
    path.write_text(LINES)
    return ThesisLog("few", path=str(path))


def test_who_runs_how_long(source: ThesisLog) -> None:
    """Job 2 never ran: as long as it asked. Job 3 ran over: to its end. Job 5 is known by nothing,
    and left out."""
    log = source.load("actual")
    assert log.job.tolist() == [1, 2, 3, 4, 6]
    assert log.nodes.tolist() == [4, 2, 1, 1, 8]
    assert log.run_s.tolist() == [499, 3599, 999, 1, 58]


def test_what_they_ask_for(source: ThesisLog) -> None:
    """The next whole minute above the request, or above the run where that is longer, and six
    seconds."""
    assert source.load("actual").requested_s.tolist() == [666, 3666, 1026, 966, 66]
    assert source.load("accurate").requested_s.tolist() == [546, 3666, 1026, 66, 66]


@pytest.mark.slow
def test_nobody_is_killed_at_his_request(logs: Path) -> None:
    for requests in ("actual", "accurate"):
        log = ThesisLog("SDSC", path=str(logs / SDSC)).load(requests)
        assert (log.run_s < log.requested_s).all()


@pytest.mark.slow
def test_the_jobs_that_never_ran_weigh_half_as_much_as_those_that_did(logs: Path) -> None:
    """Counted from the text of the log: the figures that the docs give."""
    text = gzip.decompress((logs / SDSC).read_bytes()).decode()
    rows = np.array(
        [line.split()[:9] for line in text.splitlines() if line[:1] != ";"], dtype=np.float64
    )
    submit, run, asked, requested = rows[:, 1] - rows[0, 1], rows[:, 3], rows[:, 7], rows[:, 8]
    never_ran = (run < 0) & (requested > 0)
    early = submit < 8 * 86_400
    added = (asked * requested)[never_ran & early].sum()
    log = ThesisLog("SDSC", path=str(logs / SDSC)).load("actual")
    first = log.submit_s < 8 * 86_400
    ran = np.isin(log.job, rows[run > 0, 0])
    work = (log.nodes * log.run_s)[first & ran].sum()
    assert (never_ran.sum(), (never_ran & early).sum()) == (5640, 53)
    assert (log.nodes * (log.run_s + 1))[first & ~ran].sum() == added
    assert 0.4 < added / work < 0.6


def test_it_is_told_apart_from_a_log_read_otherwise(source: ThesisLog) -> None:
    plain = LogSource("few", path=source.path)
    assert source.content != plain.content
    assert source != plain
    assert pickle.loads(pickle.dumps(source)) == source  # it travels to worker processes


def test_only_a_file_can_be_replayed() -> None:
    with pytest.raises(UserError, match="only a file"):
        ThesisLog("made up", model="lublin", nodes=8)


def test_as_thesis_takes_it_and_sends_tasks_in_their_order(data: Path) -> None:
    plan = plan_as_thesis(data, full=True)
    assert {type(log) for campaign in plan.campaigns for log in campaign.logs} == {ThesisLog}
    assert {s.name for s in plan.cap_16.strategies} == {
        "zhang",
        "individual",
        "one-job",
        "level-by-level",
        "glume",
    }
    for strategy in plan.cap_16.strategies:
        if isinstance(strategy, Individual | Zhang):
            assert strategy.by_number
    assert STRATEGIES["individual"] == Individual()
    assert not Individual().by_number
    assert not Zhang().by_number


def test_as_thesis_without_logs_has_synthetic_ones() -> None:
    assert all(log.model == "lublin" for log in plan_as_thesis(None, full=False).cap_16.logs)


@pytest.mark.parametrize(("by_number", "order"), [(False, [1, 3, 2, 0]), (True, [0, 1, 2, 3])])
def test_tasks_go_out_in_their_order_or_the_longest_first(
    by_number: bool, order: list[int]
) -> None:
    """A cap of two lets the order show. Four tasks of 100, 400, 200 and 300 s on two nodes."""
    workflow = Workflow.from_tasks(
        "bag", [Task(f"t{k}", run) for k, run in enumerate((100, 400, 200, 300))]
    )
    trial = run_trial(
        Cluster(nodes=2), workflow, Individual(by_number=by_number), site=Site.of(2, cap=2)
    )
    assert [job.plan.tasks[0] for job in trial.story.jobs.values()] == order


@pytest.mark.parametrize(("by_number", "order"), [(False, [1, 3, 2, 0]), (True, [0, 1, 2, 3])])
def test_so_they_do_once_zhang_has_given_up_groups(by_number: bool, order: list[int]) -> None:
    """The one node is taken for longer than twice the 1,000 s of all four tasks in one job."""
    workflow = Workflow.from_tasks(
        "bag", [Task(f"t{k}", run) for k, run in enumerate((100, 400, 200, 300))]
    )
    zero, one, long = np.array([0]), np.array([1]), np.array([5000])
    busy = Log(
        "busy", 1, job=one, submit_s=zero, nodes=one, requested_s=long, run_s=long, user=zero
    )
    trial = run_trial(Cluster(busy), workflow, Zhang(by_number=by_number), site=Site.of(1, cap=2))
    assert [job.plan.tasks for job in trial.story.jobs.values()] == [(task,) for task in order]
