"""Promises: under conservative backfilling no job starts later than it was told when it arrived.
And what waiting jobs are told under every policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.sim.scenarios import Scenario, scenarios

from windrow.formats import read_log
from windrow.model import Log
from windrow.sim import Cluster

COLUMNS = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")


def broken_promises(log: Log, policy: str) -> NDArray[np.int64]:
    """By how much each job starts later than planned at its arrival."""
    cluster = Cluster(log, policy=policy, record=True)
    promised = np.full(len(log), -1, dtype=np.int64)
    for at in np.unique(log.submit_s).tolist():
        cluster.advance(at)
        new = [job for job in cluster.queue() if promised[job.job] < 0]
        for job in new:
            assert job.planned_s is not None
            promised[job.job] = job.planned_s
    cluster.advance()
    waited = promised >= 0
    late: NDArray[np.int64] = np.maximum(0, cluster.log_starts_s - promised)[waited]
    return late


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "broken", "worst_s"), [("conservative", 0, 0), ("conservative-replan", 342, 96_297)]
)
def test_on_kth(logs: Path, policy: str, broken: int, worst_s: int) -> None:
    slips = broken_promises(read_log(logs / "KTH-SP2-1996-2.1-cln.swf.gz"), policy)
    assert (int((slips > 0).sum()), int(slips.max())) == (broken, worst_s)


@pytest.mark.slow
@given(scenarios(), st.integers(0, 30))
def test_expected_starts_are_those_of_a_log_that_ends_now(scenario: Scenario, now: int) -> None:
    """If no other comes, and what has not ended yet runs as long as it requested."""
    cluster = replace(scenario, failures=()).cluster()
    cluster.advance(now)
    told = cluster.expected_starts()
    ended = {j for j, at in enumerate(cluster.log_starts_s.tolist()) if at >= 0}
    ended -= {job.job for job in cluster.running()}
    log = scenario.log
    there = log.submit_s <= now
    runs = [
        log.run_s[j] if j in ended else log.requested_s[j] for j in np.flatnonzero(there).tolist()
    ]
    columns = {name: getattr(log, name)[there] for name in COLUMNS if name != "run_s"}
    known = replace(log, run_s=np.array(runs, dtype=np.int64), **columns)
    if not len(known):
        assert told == {}
        return
    alone = replace(scenario, log=known, failures=()).cluster()
    alone.advance()
    waits = [job for job in range(len(known)) if cluster.log_starts_s[job] < 0]
    assert told == {job: int(alone.log_starts_s[job]) for job in waits}
