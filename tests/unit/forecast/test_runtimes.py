from __future__ import annotations

import logging
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import OutsideError, UserError
from windrow.forecast.runtimes import (
    RUNS_KEPT,
    PastRun,
    RunTimes,
    TimeSource,
    default_path,
    fill,
    upper_quantile,
)
from windrow.model import Runnable, Step, Task, Workflow

RISKS = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9])
TIMES = st.lists(st.floats(0, 1e6), min_size=2, max_size=60)


@pytest.mark.slow
@given(times=TIMES, risk=RISKS)
def test_coverage_is_exact_under_exchange(times: list[float], risk: float) -> None:
    """Whichever of n + 1 runs comes last, it is longer than expected in at most the stated share of
    cases."""
    longer = 0
    for last, time in enumerate(times):
        bound, stated = upper_quantile(times[:last] + times[last + 1 :], risk)
        longer += time > bound
    assert longer / len(times) <= stated + 1e-9
    if len(times) >= 1 / risk:
        assert stated <= risk + 1e-9


@pytest.mark.slow
@given(times=TIMES, risk=RISKS)
def test_no_shorter_time_would_do(times: list[float], risk: float) -> None:
    distinct = sorted(set(times))
    bound, _ = upper_quantile(distinct, risk)
    shorter = distinct[: distinct.index(bound)]
    # of n + 1 equally likely places for the next run, those above the next shorter time are too
    # many
    if shorter:
        assert 1 - len(shorter) / (len(distinct) + 1) > risk + 1e-9 or len(distinct) + 1 < 1 / risk


@pytest.mark.slow
@pytest.mark.parametrize("runs", [9, 19, 50, 200])
@pytest.mark.parametrize("skew", [0.1, 1.0, 2.0])
def test_coverage_on_drawn_run_times(runs: int, skew: float) -> None:
    """Lognormal run times, from nearly equal to heavy-tailed: 4000 histories, each followed by one
    run."""
    draws = np.random.default_rng(7).lognormal(3, skew, size=(4000, runs + 1))
    longer = sum(row[-1] > upper_quantile(row[:-1].tolist(), 0.1)[0] for row in draws)
    spread = math.sqrt(0.1 * 0.9 / len(draws))
    expected = math.floor(0.1 * (runs + 1) + 1e-9) / (runs + 1)
    assert abs(longer / len(draws) - expected) < 4 * spread


def test_few_runs_give_the_longest_and_say_what_it_risks() -> None:
    assert upper_quantile([5.0], 0.1) == (5.0, 0.5)
    assert upper_quantile([5.0, 9.0, 7.0], 0.1) == (9.0, 0.25)
    bound, stated = upper_quantile([float(i) for i in range(1, 20)], 0.1)
    assert bound == 18
    assert stated == pytest.approx(0.1)
    with pytest.raises(UserError, match="a risk is a number between 0 and 1"):
        upper_quantile([5.0], 1.0)


def runs(*times: float, kind: str = "k", cores: int = 1, start: float = 0) -> list[PastRun]:
    return [PastRun("w", kind, time, start + place, cores) for place, time in enumerate(times)]


def test_what_was_recorded_is_expected(tmp_path: Path) -> None:
    history = RunTimes(tmp_path / "deep" / "h.sqlite")
    assert history.expect("w", "k", guess_s=60).source is TimeSource.GUESS
    assert not history.path.exists(), "asking makes no file"
    history.record(runs(10, 30, 20))
    history.record([PastRun("w", "k", math.nan, 5)])
    found = history.expect("w", "k", 0.5)
    assert (found.runtime_s, found.runs, found.risk, found.source) == (
        20,
        3,
        0.5,
        TimeSource.LEARNED,
    )
    assert history.expect("w", "other", guess_s=7).runtime_s == 7
    assert history.expect("v", "k").source is TimeSource.GUESS
    assert history.path.parent.stat().st_mode & 0o777 == 0o700


def test_runs_on_as_many_cores_count_first(tmp_path: Path) -> None:
    history = RunTimes(tmp_path / "h.sqlite")
    history.record(runs(100, cores=1) + runs(30, cores=4))
    assert history.expect("w", "k", cores=4).runtime_s == 30
    assert history.expect("w", "k", cores=8).runtime_s == 100
    assert history.expect("w", "k").runs == 2


def test_only_the_latest_runs_are_kept(tmp_path: Path) -> None:
    history = RunTimes(tmp_path / "h.sqlite")
    history.record(runs(*[1000.0] * 50))
    history.record(runs(*[10.0] * RUNS_KEPT, start=100))
    history.record(runs(5.0, kind="other"))
    found = history.expect("w", "k", 0.001)
    assert (found.runtime_s, found.runs) == (10, RUNS_KEPT)
    with sqlite3.connect(history.path) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (RUNS_KEPT + 1,)


def test_names_are_data(tmp_path: Path) -> None:
    history = RunTimes(tmp_path / "h.sqlite")
    name = "'; DROP TABLE runs; --\n\"é"
    history.record([PastRun(name, name, 3, 1)])
    assert history.expect(name, name).runtime_s == 3


@pytest.mark.parametrize("kind_of_damage", ["text", "truncated", "scribbled"])
def test_a_broken_file_is_set_aside(
    kind_of_damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = RunTimes(tmp_path / "h.sqlite")
    history.record(runs(*map(float, range(150))) + runs(*map(float, range(150)), kind="l"))
    data = history.path.read_bytes()
    damaged = {
        "text": b"not a database at all" * 99,
        "truncated": data[:5000],
        "scribbled": data[:4096] + b"\xff" * 9999,
    }
    history.path.write_bytes(damaged[kind_of_damage])
    with caplog.at_level(logging.WARNING):
        history.record(runs(42.0))
    assert history.expect("w", "k").runtime_s == 42
    assert (tmp_path / "h.sqlite.broken-1").read_bytes() == damaged[kind_of_damage]
    assert "was broken; it is now h.sqlite.broken-1" in caplog.text
    history.path.write_bytes(b"broken once more" * 100)
    assert history.expect("w", "k", guess_s=60).source is TimeSource.GUESS
    assert (tmp_path / "h.sqlite.broken-2").exists()


def test_the_databases_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(
        UserError,
        match=r"h\.sqlite: a database of another program or of another version of Windrow; set WINDROW_",  # noqa: E501
    ):
        RunTimes(path).record(runs(1.0))
    with pytest.raises(UserError):
        RunTimes(path).expect("w", "k")
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutsideError, match=r"file/h\.sqlite: cannot be created"):
        RunTimes(tmp_path / "file" / "h.sqlite").record(runs(1.0))
    with pytest.raises(OutsideError, match="cannot be used"):
        RunTimes(tmp_path).record(runs(1.0))


@pytest.mark.slow
def test_many_processes_record_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from windrow.forecast.runtimes import *\n"
        "for i in range(20): RunTimes(sys.argv[1]).record([PastRun('w', sys.argv[2], float(i), "
        "float(i))])"
    )
    path = tmp_path / "h.sqlite"
    path.write_bytes(b"broken at the start, so all of them find it so" * 50)
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), f"k{n}"]) for n in range(4)]
    assert [process.wait(timeout=60) for process in started] == [0] * 4
    assert [RunTimes(path).expect("w", f"k{n}").runs for n in range(4)] == [20] * 4
    assert [p.name for p in sorted(tmp_path.glob("*.broken-*"))] == ["h.sqlite.broken-1"]


def test_where_the_history_is() -> None:
    assert default_path({"WINDROW_HISTORY": "/x/y", "XDG_DATA_HOME": "/z"}) == Path("/x/y")
    assert default_path({"XDG_DATA_HOME": "/z"}) == Path("/z/windrow/history.sqlite")
    assert (
        default_path({"XDG_DATA_HOME": "not/whole"})
        == Path.home() / ".local/share/windrow/history.sqlite"
    )


def test_fill_replaces_what_is_missing_and_says_so(tmp_path: Path) -> None:
    history = RunTimes(tmp_path / "h.sqlite")
    history.record(runs(200, kind="learned", cores=2))
    tasks = [
        Task("a", 5, "learned", cores=2),
        Task("b", 60, "learned", ("a",), cores=2),
        Task("c", 60, "new"),
        Task("d", 60, "learned"),
    ]
    steps = tuple(Step(("x",), "/", runtime_known=task.id == "a") for task in tasks)
    filled, sources = fill(Runnable(Workflow.from_tasks("w", tasks), steps), history, 33, 0.1)
    assert [(found.source, found.runtime_s, found.runs) for found in sources] == [
        (TimeSource.KNOWN, 5, 0),
        (TimeSource.LEARNED, 200, 1),
        (TimeSource.GUESS, 33, 0),
        (TimeSource.LEARNED, 200, 1),
    ]
    assert filled.workflow.runtime_s.tolist() == [5, 200, 33, 200]
    assert [step.runtime_known for step in filled.steps] == [True, True, False, True]
    assert filled.workflow.task(1).parents == ("a",)
