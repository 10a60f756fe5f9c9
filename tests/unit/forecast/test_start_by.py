"""Jobs that are to start by a given time: when to submit them, by hand and on a real log."""

from pathlib import Path

import numpy as np
import pytest

from windrow.forecast.waits import History, Level, PastWait
from windrow.formats.swf.reader import read_log
from windrow.model import Log
from windrow.model.graph import Ints
from windrow.sim.replay import simulate

DAY_S = 86_400.0
HOUR_S = 3600.0


def waited(history: History, hour: float, wait_s: float, count: int = 20) -> None:
    """Jobs of 4 nodes and an hour, submitted at that hour, that waited for so long."""
    at_s = 100 * DAY_S + hour * HOUR_S
    jobs = [PastWait(f"{hour}-{n}", 4, 3600, at_s, at_s + wait_s) for n in range(count)]
    history.record("q", jobs)


@pytest.fixture
def history(tmp_path: Path) -> History:
    found = History(tmp_path / "waits.sqlite")
    waited(found, hour=2, wait_s=HOUR_S)
    waited(found, hour=8, wait_s=5 * HOUR_S)
    return found


def test_the_last_moment_that_is_early_enough(history: History) -> None:
    midnight_s = 200 * DAY_S
    now_s = midnight_s + HOUR_S

    def latest_h(start_h: float) -> float | None:
        between = (now_s, midnight_s + start_h * HOUR_S)
        found = history.last_submission_s("q", (4, 3600), between)
        return None if found is None else (found - midnight_s) / HOUR_S

    assert latest_h(4) == 3
    assert latest_h(11.5) == 6.5  # in the morning jobs wait for five hours
    assert latest_h(10) == pytest.approx(6, abs=0.001), "before the morning, when they wait for one"
    assert latest_h(1.5) is None, "it is too late"


def test_without_waits_no_moment_is_told(history: History) -> None:
    assert history.last_submission_s("other", (4, 3600), (0.0, DAY_S)) is None
    sure = Level(part=0.99, confidence=0.95)  # 20 waits say nothing of one in a hundred
    assert history.last_submission_s("q", (4, 3600), (0.0, DAY_S), sure) is None


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.5, 0.9])
def test_on_a_real_log_jobs_start_in_time_as_often_as_was_asked(
    logs: Path, tmp_path: Path, part: float
) -> None:
    """Each of some hundred jobs is asked for with the waits that were known when it was submitted;
    it is to start when its bound says."""
    log = read_log(logs / "KTH-SP2-1996-2.1-cln.swf.gz")
    start_s = log.submit_s + simulate(log, policy="easy").wait_s
    history = History(tmp_path / "waits.sqlite")
    by_start = np.argsort(start_s, kind="stable")
    recorded = 0
    in_time = []
    for row in range(2000, len(log), 60):
        now_s = float(log.submit_s[row])
        until = int(np.searchsorted(start_s[by_start], now_s, side="left"))
        history.record("q", [past(log, start_s, one) for one in by_start[recorded:until].tolist()])
        recorded = max(recorded, until)
        (bound,) = history.bounds(
            "q", [(int(log.nodes[row]), int(log.requested_s[row]))], now_s, Level(part)
        )
        if bound is not None:
            in_time.append(start_s[row] <= now_s + bound.wait_s)
    assert len(in_time) > 300
    share = float(np.mean(in_time))
    assert share > part - 0.05, "what was promised is kept, but for the queue's moods"


def past(log: Log, start_s: Ints, row: int) -> PastWait:
    """A job of the log that has started."""
    return PastWait(
        f"j{row}",
        int(log.nodes[row]),
        int(log.requested_s[row]),
        float(log.submit_s[row]),
        float(start_s[row]),
    )
