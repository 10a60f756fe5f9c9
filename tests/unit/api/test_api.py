"""Runs from Python: by the same processes, journals and words as on the command line."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S, wait_until

import windrow
from windrow import api
from windrow.app.new_tasks import Amendment, NewTask
from windrow.records.lock import holder_of
from windrow.story.states import RunState

CHAIN = """\
tasks:
  - {id: make, command: "echo made; echo 1 > a", outputs: a, runtime: 1s}
  - {id: use, command: "cat a > b; test -e ok", inputs: a, outputs: b, runtime: 1s}
"""
SLOW = """\
tasks:
  - {id: "w{i}", matrix: {i: 1..3}, command: "sleep 30", runtime: 30s}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chain.yaml").write_text(CHAIN)
    return tmp_path


@pytest.mark.slow
def test_a_run_from_its_start_to_its_report(here: Path) -> None:
    planned = windrow.plan("chain.yaml")
    assert [job.tasks for job in planned.jobs] == [("make", "use")]
    assert not (here / ".windrow").exists()
    run = windrow.run("chain.yaml", wait=True)
    assert run.state == RunState.FAILED
    assert {name: task.state for name, task in run.tasks.items()} == {
        "make": "finished",
        "use": "failed",
    }
    assert run.logs("make") == "made\n"
    assert "exit code 1" in str(run.explain("use"))
    (here / "ok").touch()
    run.retry()
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    assert (here / "b").read_text() == "1\n"
    page = run.report(here / "page.html")
    assert "make" in page.read_text()
    names = [event.what for event in run.events()]
    assert names[0] == "RunBegan"
    assert names.count("TaskFinished") == 2
    finished = [event.task for event in run.events() if event.what == "TaskFinished"]
    assert finished == ["make", "use"]
    assert windrow.run("chain.yaml") == run, "it is complete and up to date"
    assert windrow.attach() == windrow.attach(run.name) == windrow.attach(run.folder) == run
    assert windrow.runs() == [run]


@pytest.mark.slow
def test_tasks_join_a_run_that_is_over_and_one_that_is_not(here: Path) -> None:
    (here / "ok").touch()
    run = windrow.run("chain.yaml", wait=True)
    (here / "more.yaml").write_text(
        'tasks: [{id: more, command: "sleep 3; cat b > c", inputs: b, outputs: c, runtime: 3s}]\n'
    )
    assert run.add("more.yaml") == ("more",)
    (here / "last.yaml").write_text(
        'tasks:\n  - {id: last, command: "cat c > d", inputs: c, outputs: d, runtime: 1s}\n'
    )
    assert run.add("last.yaml") == ("last",)
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    assert (here / "d").read_text() == "1\n"


@pytest.mark.slow
def test_a_run_is_cancelled_and_outlives_the_program_that_started_it(here: Path) -> None:
    (here / "slow.yaml").write_text(SLOW)
    program = "import windrow; print(windrow.run('slow.yaml').name)"
    name = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()
    run = windrow.attach(name)
    assert run.state == RunState.RUNNING
    with pytest.raises(TimeoutError):
        run.wait(0.1)
    assert run.cancel() == RunState.STOPPED
    assert run.cancel() == RunState.STOPPED


@pytest.mark.slow
def test_many_threads_use_one_run(here: Path) -> None:
    """Also one that was started in another thread."""
    (here / "ok").touch()
    before = set(threading.enumerate())
    with ThreadPoolExecutor(8) as pool:
        run = pool.submit(windrow.run, "chain.yaml").result()
        waits = [pool.submit(run.wait, 60) for _ in range(3)]
        looks = [pool.submit(lambda: len(run.tasks)) for _ in range(8)]
        follows = [pool.submit(lambda: list(run.events(follow=True))) for _ in range(2)]
        assert {wait.result() for wait in waits} == {RunState.COMPLETE}
        assert {look.result() for look in looks} == {2}
        first, second = (follow.result() for follow in follows)
    assert first == second
    assert [event.number for event in first] == sorted({event.number for event in first})
    assert set(threading.enumerate()) <= before


@pytest.mark.slow
def test_errors_are_those_of_the_command_line(here: Path) -> None:
    with pytest.raises(windrow.UserError, match=r"nothere\.yaml"):
        windrow.run("nothere.yaml")
    with pytest.raises(windrow.UserError, match="no runs"):
        windrow.attach()
    with pytest.raises(windrow.UserError, match="unknown queue 'abc'"):
        windrow.plan("chain.yaml", on="abc")
    run = windrow.run("chain.yaml", wait=True)
    with pytest.raises(windrow.UserError, match="resume=True"):
        windrow.run("chain.yaml")
    with pytest.raises(windrow.UserError, match="did you mean make"):
        run.logs("mak")
    assert windrow.run("chain.yaml", resume=True).wait(PATIENCE_S) == RunState.FAILED


def test_looking_starts_nothing_and_costs_little(here: Path) -> None:
    began_s = time.process_time()
    assert windrow.runs() == []
    assert time.process_time() - began_s < 5
    assert not (here / ".windrow").exists()


def test_names_and_signatures_are_those_that_others_build_on() -> None:
    """Plugins and notebooks stand on these: what is here may grow, and never go."""
    kept = json.loads((Path(__file__).parent / "signatures.json").read_text())
    now = {
        name: str(inspect.signature(getattr(api, name)))
        for name in (
            *("run", "plan", "attach", "runs"),
            *("run_tasks", "hold_tasks", "plan_tasks", "largest_node"),
        )
    } | {
        f"{kind.__name__}.{name}": str(inspect.signature(member))
        for kind in (api.Run, api.Hold, api.Watch)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
    assert now == kept


def test_all_names_of_the_package_can_be_had() -> None:
    for name in windrow.__all__:
        assert getattr(windrow, name) is not None


HOLDER = """\
import time, windrow
hold = windrow.attach().hold("the test", keep_s=300, lease_s=1.5)
print("held", flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
def test_a_held_run_waits_for_tasks_and_does_them_on_the_nodes_that_it_has(here: Path) -> None:
    (here / "ok").touch()
    run = windrow.run("chain.yaml", wait=True)
    with run.hold(keep_s=300) as hold:
        for n in range(3):
            (here / f"{n}.yaml").write_text(
                f"tasks: [{{id: t{n}, command: 'cat b > {n}', inputs: b, outputs: '{n}', "
                "runtime: 1s}]\n"
            )
            run.add(f"{n}.yaml")
            wait_until(partial(is_finished, run, f"t{n}"))
        assert run.state == RunState.RUNNING
        hold.revive()
        os.kill(manager_of(run), signal.SIGKILL)
        wait_until(lambda: not run.is_managed)
        hold.revive()
        assert run.is_managed
        assert not hold.is_over
        assert not run.trouble
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    taken = [event.job for event in run.events() if event.what == "JobTaken"]
    submitted = [event.job for event in run.events() if event.what == "JobSubmitted"]
    assert (submitted, taken) == ([0, 1], [2, 3]), "one job for all that joined"


@pytest.mark.slow
def test_a_holder_that_dies_closes_its_run_and_one_whose_run_is_stopped_knows(here: Path) -> None:
    (here / "ok").touch()
    run = windrow.run("chain.yaml", wait=True)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert "held open for tasks to come by the test" in told_by_status(run.name)
        holder.kill()
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    closed = [event for event in run.events() if event.what == "RunClosed"]
    assert len(closed) == 1
    hold = run.hold(lease_s=0.6)
    run.cancel()
    wait_until(lambda: hold.is_over)
    hold.close()
    assert run.wait(PATIENCE_S) in (RunState.COMPLETE, RunState.STOPPED)
    with pytest.raises(windrow.UserError, match="lease"):
        run.hold(lease_s=0)


def manager_of(run: api.Run) -> int:
    """The number of its process."""
    found = re.search(r"\d+", holder_of(run.folder / "lock") or "")
    assert found
    return int(found[0])


def is_finished(run: api.Run, task: str) -> bool:
    return run.tasks[task].state == "finished"


def told_by_status(name: str) -> str:
    command = [sys.executable, "-m", "windrow.cli.main", "status", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_program_adds_tasks_without_a_file(here: Path) -> None:
    (here / "ok").touch()
    run = windrow.run("chain.yaml", wait=True)
    with run.hold() as hold:
        made = hold.add(
            NewTask(id="c", command="cat b > c", inputs=["b"], outputs=["c"], runtime="1s"),
            NewTask(id="d", command=["cp", "c", "d"], inputs=["c"], outputs=["d"]),
        )
        assert made == ("c", "d")
        wait_until(partial(is_finished, run, "d"))
        assert (here / "d").read_text() == "1\n"
        for wrong, words in (
            ({"id": "c", "command": "true"}, "given more than once: c"),
            ({"id": "e", "command": "true", "inputs": ["x"]}, "e reads x, which no task writes"),
            ({"id": "e", "command": "true", "after": ["x"]}, "unknown parents: x"),
            ({"id": "e", "command": "true", "outputs": ["b"]}, "e writes b, and so does use"),
            ({"id": "e", "command": "true", "outputs": ["../b"]}, "which is outside of"),
            ({"id": "e", "command": "true", "outputs": ["chain.yaml"]}, "the workflow file"),
            ({"id": "e", "command": "true", "cores": 9999}, "needs 9,999 cores"),
            ({"id": "e", "command": "true", "memory": "much"}, "much"),
            ({"id": "e", "command": ""}, "has no command"),
            ({"id": "", "command": "true"}, "cannot be called"),
            ({"id": "e", "command": "true", "retries": -1}, "tried again -1 times"),
            ({"id": "e", "command": "a\0b"}, "zero byte"),
            (
                {"id": "e", "command": "true", "inputs": ["f"], "outputs": ["f"]},
                "e reads f, which it writes",
            ),
        ):
            with pytest.raises(windrow.UserError, match=words):
                hold.add(NewTask(**wrong))
        assert len(run.tasks) == 4
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    assert run.add(NewTask(id="late", command="cp d late", inputs=["d"], outputs=["late"]))
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    assert (here / "late").exists()


LONG = """\
tasks:
  - {id: long, command: "touch began; exec sleep 1000", runtime: 1s}
  - {id: next, command: "touch no", after: long, runtime: 1s}
  - {id: big, command: "test $BIG = yes", after: go, env: {BIG: "no"}, runtime: 1s}
  - {id: go, command: "while [ ! -e go ]; do sleep 0.1; done", runtime: 1s}
"""


@pytest.mark.slow
def test_tasks_are_cancelled_and_changed_one_by_one(here: Path) -> None:
    (here / "long.yaml").write_text(LONG)
    run = windrow.run("long.yaml")
    wait_until((here / "began").exists)
    wait_until(lambda: run.tasks["go"].state == "running")
    with pytest.raises(windrow.UserError, match="task long runs; cancel it first"):
        run.amend(Amendment(id="long", memory="1MiB"))
    run.cancel("long")
    wait_until(lambda: run.tasks["long"].why)
    states = {name: task.state for name, task in run.tasks.items()}
    assert (states["long"], states["next"], states["go"]) == ("cancelled", "blocked", "running")
    assert "windrow retry long" in str(run.explain("long"))
    run.amend(Amendment(id="big", env={"BIG": "yes"}, memory="1MiB"))
    (here / "go").touch()
    assert run.wait(PATIENCE_S) == RunState.STOPPED
    assert run.tasks["big"].state == "finished"
    assert not (here / "no").exists()
    run.amend(Amendment(id="long", command="touch no", runtime="1s"))
    assert run.wait(PATIENCE_S) == RunState.COMPLETE
    assert (here / "no").exists()
    with pytest.raises(windrow.UserError, match="task long has finished"):
        run.amend(Amendment(id="long", cores=1))
    with pytest.raises(windrow.UserError, match="did you mean long"):
        run.amend(Amendment(id="lon", cores=1))
