"""Warm workers: one process loads what tasks need, and forks for each of them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, task
from tests.waiting import wait_until

from windrow.agent.event_file import AttemptFailed, AttemptFinished, AttemptStarted
from windrow.agent.job_file import TaskSpec
from windrow.agent.worker import program_of
from windrow.model.cause import Cause

PYTHON = sys.executable
WORKER = (PYTHON, "-m", "windrow.agent.worker")
LOADS = """import os
with open("loads", "a") as file: file.write(f"{os.getpid()}\\n")
"""
MODULE = """import os, sys
import slow
print("module", slow.__name__, os.getppid() == int(sys.argv[1]), sys.argv[1:])
"""
FRESH = """import atexit, os, random, sys, threading
atexit.register(print, "the end")
threading.Thread(target=lambda: print("a thread")).start()
print(__name__, sys.argv, sys.stdin.read(), sys.path[0], sorted(os.environ) == sorted(set(os.environ)))
print(random.random(), os.environ["WINDROW_TASK"], os.getcwd(), os.getpgid(0) == os.getpid())
sys.modules["__main__"].here
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where tasks run: with a module that tells who loaded it."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "slow.py").write_text(LOADS)
    return place


def warm(
    number: int, folder: Path, *command: str, worker: str = "slow", **more: object
) -> TaskSpec:
    given = {"workdir": str(folder), "worker": (*WORKER, worker), **more}
    return task(number, PYTHON, *command, **given)


def printed(run: Run, number: int, attempt: int = 1) -> str:
    try:
        return run.folder.task_out(number, attempt).read_text()
    except FileNotFoundError:
        return ""


@pytest.mark.slow
def test_a_worker_loads_once_and_tasks_are_as_in_a_fresh_python(run: Run, folder: Path) -> None:
    (folder / "job.py").write_text("here = 1\n" + FRESH)
    (folder / "mod.py").write_text("import slow\nprint('module', __name__)")
    code = "import slow, sys; print(sys.argv, repr(sys.path[0]))"
    specs = [warm(n, folder, "job.py", f"a {n}", cores=1) for n in range(6)]
    specs += [warm(6, folder, "-m", "mod"), warm(7, folder, "-u", "-c", code, "x")]
    assert run.run(*specs) == (0, "")
    assert sorted(run.finished()) == list(range(8))
    assert len((folder / "loads").read_text().split()) == 1
    told = [printed(run, n).splitlines() for n in range(6)]
    assert {lines[0] for lines in told} | {lines[1] for lines in told} >= {"a thread"}
    assert f"__main__ ['job.py', 'a 3']  {folder} True" in told[3]
    assert all(lines[-1] == "the end" for lines in told)
    drawn = {line.split()[0] for lines in told for line in lines if line.startswith("0.")}
    assert len(drawn) == 6
    assert any(line.endswith(f" t3 {folder} True") for line in told[3])
    assert printed(run, 6) == "module __main__\n"
    assert printed(run, 7) == "['-c', 'x'] ''\n"


@pytest.mark.slow
def test_how_they_end_is_told_as_of_any_task(run: Run, folder: Path) -> None:
    ends = {
        0: "import sys; sys.exit(3)",
        1: "raise ValueError('of the program')",
        2: "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        3: "import sys; sys.exit('in words')",
        4: "taken = bytearray(80 << 20)",
        5: "import os; os._exit(7)",
        6: "raise KeyboardInterrupt",
        7: "import time\nwhile True: time.sleep(1)",
    }
    specs = [warm(n, folder, "-c", code) for n, code in ends.items() if n != 7]
    specs.append(warm(7, folder, "-c", ends[7], limit_s=1.0, expected_s=0.1))
    assert run.run(*specs)[0] == 0
    failed = {one.task: one.of for one in run.of(AttemptFailed)}
    assert [failed[n].exit for n in (0, 1, 3, 5)] == [3, 1, 1, 7]
    assert [failed[n].signal for n in (2, 6)] == [signal.SIGSEGV, signal.SIGINT]
    assert failed[1].tail.splitlines()[-1] == "ValueError: of the program"
    assert "worker" not in failed[1].tail
    assert failed[3].tail == "in words"
    assert failed[7].cause == Cause.TIME_LIMIT
    (fine,) = run.of(AttemptFinished)
    assert fine.of.peak_bytes > 80 << 20
    assert len((folder / "loads").read_text().split()) == 1


@pytest.mark.slow
def test_what_a_worker_cannot_do_is_done_without_it(run: Run, folder: Path) -> None:
    """It says so in what the task prints: nothing but time is lost."""
    (folder / "threads.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    hello = ("-c", "print('hello')")
    run.run(
        warm(0, folder, *hello, worker="no_such_module"),
        warm(1, folder, *hello, worker="threads"),
        warm(2, folder, "-I", *hello),
        task(3, "/bin/echo", "hello", workdir=str(folder), worker=WORKER),
        task(4, "/bin/echo", "hello", workdir=str(folder), worker=("/no/such/program",)),
        warm(5, folder, *hello, worker="threads"),
    )
    assert sorted(run.finished()) == list(range(6))
    notes = [printed(run, n).splitlines() for n in range(6)]
    assert [lines[-1] for lines in notes] == ["hello"] * 6
    assert all(lines[0].startswith("windrow: not started by its worker: ") for lines in notes)
    assert "no_such_module" not in notes[0][0]
    assert "it has 2 threads" in notes[1][0]
    assert "it has 2 threads" in notes[5][0]
    assert "it is not a command line of" in notes[2][0]
    assert "it cannot start '/no/such/program'" in notes[4][0]


@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing(run: Run, folder: Path) -> None:
    """What runs is the agent's child; the next task gets a new worker."""
    (folder / "job.py").write_text(
        "import os, pathlib, sys, time\n"
        "pathlib.Path(f'up-{sys.argv[1]}').touch()\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
    )
    run.write(*(warm(n, folder, "job.py", str(n)) for n in range(4)))
    with run.begin() as agent:
        wait_until(lambda: all((folder / f"up-{n}").exists() for n in (0, 1)))
        worker_pid = int((folder / "loads").read_text())
        os.kill(worker_pid, signal.SIGKILL)
        # Until the agent has noticed, the next tasks may go to the dead one, and then start cold.
        wait_until(lambda: not Path(f"/proc/{worker_pid}").exists())
        (folder / "go").touch()
        agent.communicate(timeout=200)
    assert sorted(run.finished()) == [0, 1, 2, 3]
    assert len(run.of(AttemptStarted)) == 4
    assert len((folder / "loads").read_text().split()) == 2


@pytest.mark.slow
def test_who_stops_the_agent_stops_what_its_workers_started(run: Run, folder: Path) -> None:
    (folder / "job.py").write_text(
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    run.write(warm(0, folder, "job.py"), grace_s=1.0)
    with run.begin() as agent:
        wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text() != "")
        agent.terminate()
        agent.communicate(timeout=200)
    pids = [int((folder / name).read_text()) for name in ("pid", "loads")]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not run.finished()


@pytest.mark.slow
def test_a_stop_reaches_what_its_worker_has_not_started_yet(run: Run, folder: Path) -> None:
    (folder / "slow.py").write_text(
        "import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(600)\n"
    )
    run.write(warm(0, folder, "-c", "print()"), grace_s=1.0)
    with run.begin() as agent:
        wait_until((folder / "loading").exists)
        agent.terminate()
        agent.communicate(timeout=200)
    assert not run.finished()
    assert not run.failed()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python fit.py 3", ("script", "fit.py", ("3",))),
        ("python -u -m fit -c", ("-m", "fit", ("-c",))),
        ("python -P -c code", ("-c", "code", ())),
    ],
)
def test_what_a_command_line_of_python_does(command: str, expected: tuple[object, ...]) -> None:
    found = program_of(command.split())
    assert found is not None
    assert found[:3] == expected


@pytest.mark.parametrize(
    "command", ["python", "python -m", "python -I a.py", "python -", "python -O a.py"]
)
def test_what_only_a_python_of_its_own_does(command: str) -> None:
    assert program_of(command.split()) is None
