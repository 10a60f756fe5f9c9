"""Calls as tasks of a run: `windrow.Executor`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_S, wait_until

import windrow
from windrow.calls import MOST_BYTES, RemoteTraceback, TaskError
from windrow.forecast.runtimes import PastRun, RunTimes


def square(x: int) -> int:
    print("hello", x)
    return x * x


def total(values: list[int], **more: Any) -> tuple[int, Any]:
    return sum(values), more


def fail(text: str) -> None:
    raise ValueError(text)


def big() -> bytes:
    return bytes(MOST_BYTES + 1)


def unsendable() -> Any:
    return threading.Lock()


def wait_for(path: str) -> str:
    wait_until(Path(path).exists)
    return path


def append(path: str) -> str:
    with Path(path).open("a") as file:
        file.write("once\n")
    return path


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_calls_their_edges_and_what_becomes_of_them() -> None:
    before = set(threading.enumerate())
    with windrow.Executor(name="sums", guess_s=1) as pool:
        parts = [pool.submit(square, n) for n in range(5)]
        whole = pool.options(cores=2).submit(total, parts, deep={"in": [parts[2]]})
        bad = pool.submit(fail, "of the call")
        after = pool.submit(total, [bad])
        later = pool.submit(total, after)
        gone = pool.submit(os._exit, 3)
        much, stuck = pool.submit(big), pool.submit(unsendable)
        local = pool.submit(lambda: square.__name__)
        assert whole.result(PATIENCE_S) == (30, {"deep": {"in": [4]}})
        assert list(pool.map(square, range(5), chunksize=2)) == [0, 1, 4, 9, 16]
        assert {task for task in pool.run.tasks if "by-2" in task}
        for future in (bad, after, later):
            error = future.exception(PATIENCE_S)
            assert isinstance(error, ValueError)
            assert str(error) == "of the call"
            assert isinstance(error.__cause__, RemoteTraceback)
            assert "in fail\n    raise ValueError(text)" in str(error.__cause__)
        with pytest.raises(TaskError, match="exit code 3"):
            gone.result(PATIENCE_S)
        with pytest.raises(windrow.UserError, match="write it to a file"):
            much.result(PATIENCE_S)
        with pytest.raises(TaskError, match="cannot be sent"):
            stuck.result(PATIENCE_S)
        assert local.result(PATIENCE_S) == "square"
        with pytest.raises(ValueError, match="of the call"):
            pool.submit(total, [bad]).result(PATIENCE_S)
        run = pool.run
        assert parts[3].output() == "hello 3\n"
        assert "<td>5</td>" in pool._repr_html_()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(square, 1)
    assert run.wait(PATIENCE_S) == "failed"
    assert run.result(whole.task) == whole.result()
    with pytest.raises(ValueError, match="of the call"):
        windrow.attach(run.name).result(bad.task)
    assert run.tasks[whole.task].state == "finished"
    assert set(threading.enumerate()) <= before


@pytest.mark.slow
def test_what_was_not_started_can_be_cancelled_and_nothing_else() -> None:
    with windrow.Executor(guess_s=1) as pool:
        first = [pool.submit(wait_for, "go") for _ in range(os.cpu_count() or 1)]
        wait_until(lambda: all(future.running() for future in first))
        waits = pool.submit(append, "never")
        follows = pool.submit(append, waits)
        assert waits.cancel()
        assert not first[0].cancel()
        Path("go").touch()
        assert {future.result(PATIENCE_S) for future in first} == {"go"}
        with pytest.raises(futures.CancelledError):
            waits.result()
        assert isinstance(follows.exception(PATIENCE_S), futures.CancelledError)
        futures.wait([waits])
    assert not Path("never").exists()


@pytest.mark.slow
def test_a_program_that_dies_loses_nothing() -> None:
    """What it had handed over is done, and can be asked for."""
    program = """if True:
    import os, sys, windrow
    from tests.unit.python.test_executor import append, wait_for
    pool = windrow.Executor(name="left", guess_s=1)
    first = pool.submit(wait_for, "go")
    last = pool.submit(append, pool.submit(append, "made"))
    print(pool.run.name, last.task, flush=True)
    if len(sys.argv) > 1: os.kill(os.getpid(), 9)
    """
    here = str(Path(__file__).parents[3])
    for more in ((), ("kill",)):
        told = subprocess.run(
            [sys.executable, "-c", program, *more],
            env={**os.environ, "PYTHONPATH": here},
            capture_output=True,
            text=True,
            check=False,
        )
        name, task = told.stdout.split()
        run = windrow.attach(name)
        with pytest.raises(TaskError, match="has no result"):
            run.result("wait_for-1")
        Path("go").touch()
        assert run.wait(PATIENCE_S) == "complete"
        assert run.result(task) == "made"
        Path("go").unlink()
    assert Path("made").read_text() == "once\n" * 4


@pytest.mark.slow
def test_many_threads_submit_and_a_run_that_is_stopped_says_so() -> None:
    pool = windrow.Executor(guess_s=1)
    with futures.ThreadPoolExecutor(8) as threads:
        given = list(threads.map(lambda n: pool.submit(square, n), range(40)))
    assert sorted(future.result(PATIENCE_S) for future in given) == [n * n for n in range(40)]
    assert len({future.task for future in given}) == 40
    waits = pool.submit(wait_for, "never")
    wait_until(waits.running)
    pool.run.cancel()
    with pytest.raises(TaskError, match="was stopped"):
        waits.result(PATIENCE_S)
    with pytest.raises(TaskError, match="was stopped"):
        pool.submit(square, 1).result(PATIENCE_S)
    pool.shutdown()


def test_what_cannot_be_sent_is_said_at_once() -> None:
    pool = windrow.Executor()
    with pytest.raises(TypeError):
        pool.submit(square, threading.Lock()).result()
    with pytest.raises(ValueError, match="chunksize"):
        pool.map(square, [1], chunksize=0)
    pool.shutdown()
    assert windrow.runs() == []


@pytest.mark.parametrize(
    ("took_s", "calls"), [([], 1), ([0.1, 0.1, 9.0], 20), ([0.0], 1000), ([5.0], 1)]
)
def test_pieces_of_a_map_are_as_long_as_the_calls_before_were_short(
    took_s: list[float], calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history.sqlite"))
    RunTimes().record(PastRun("pieces", "square", time_s, 0.0) for time_s in took_s)
    assert windrow.Executor(name="pieces")._piece(square) == calls
    assert windrow.Executor(name="others")._piece(square) == 1


@pytest.mark.slow
def test_what_fits_no_node_fails_alone() -> None:
    with windrow.Executor(guess_s=1) as pool:
        wide = pool.options(cores=100_000).submit(square, 1)
        fits = pool.submit(square, 2)
        with pytest.raises(windrow.UserError, match="cores"):
            wide.result(PATIENCE_S)
        assert fits.result(PATIENCE_S) == 4


@pytest.mark.slow
def test_loops_of_joblib_are_calls() -> None:
    joblib = pytest.importorskip("joblib")
    from windrow.python import joblib_backend

    joblib_backend.register()
    with joblib.parallel_config("windrow", name="loops", guess_s=1):
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(square)(n) for n in range(6))
    assert found == [0, 1, 4, 9, 16, 25]
    with (
        pytest.raises(ValueError, match="in a loop"),
        joblib.parallel_config("windrow", guess_s=1),
    ):
        joblib.Parallel(n_jobs=2)([joblib.delayed(fail)("in a loop")])
