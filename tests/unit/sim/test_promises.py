"""Promises: under conservative backfilling no job starts later than it was told when it arrived."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from windrow.formats import read_log
from windrow.model import Log
from windrow.sim import Cluster


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
