"""Limits, loose ends, later tries and stops, in real runs on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.waiting import wait_until

import windrow
from windrow.app.new_tasks import NewTask
from windrow.app.runs import RunView, find_run
from windrow.cli.main import main
from windrow.errors import UserError
from windrow.story.states import RunState

pytestmark = pytest.mark.slow
HEAD = """
limits: {net: 2}
defaults: {runtime: 1s}
tasks:
"""
TAKERS = """
  - id: get-{i}
    matrix: {i: 1..6}
    takes: net
    command: echo + >> log; sleep 0.2; echo - >> log
"""
ENDS = """
  - id: bad
    memory: [10MiB, 20MiB]
    command: echo $WINDROW_ATTEMPT >> tries; exit 1
  - {id: needs-bad, command: "true", after: bad}
  - {id: tidy, command: touch tidy, after: {bad: any}}
  - {id: mail, command: touch mail, after: {bad: failed}}
  - {id: praise, command: touch praise, after: {tidy: failed}}
  - {id: report, command: ls > report, outputs: report, at-end: true}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "windrow.toml").write_text(
        '[queues.local]\nnodes = 1\ncores = 8\nmemory = "1GiB"\n'
    )
    return tmp_path


def most_at_once(log: Path) -> int:
    most = now = 0
    for sign in log.read_text().split():
        now += 1 if sign == "+" else -1
        most = max(most, now)
    return most


def test_no_more_tasks_run_than_a_limit_allows_and_ends_run_whatever_happens(here: Path) -> None:
    (here / "w.yaml").write_text(HEAD + TAKERS + ENDS)
    run = windrow.run("w.yaml", wait=True)
    assert run.state is RunState.FAILED
    assert most_at_once(here / "log") == 2
    assert (here / "tries").read_text().split() == ["1", "2"]
    states = {name: task.state for name, task in run.tasks.items()}
    assert states["needs-bad"] == "blocked"
    assert states["tidy"] == states["report"] == "finished"
    assert "tidy" in (here / "report").read_text().split()


def test_nothing_starts_after_a_failure_that_stops_the_run(here: Path) -> None:
    (here / "windrow.toml").write_text("[queues.local]\nnodes = 1\ncores = 1\n")
    (here / "w.yaml").write_text(
        "tasks:\n"
        '  - {id: first, command: "exit 1", on-fail: stop, priority: 1, runtime: 1s}\n'
        '  - {id: "then-{i}", matrix: {i: 1..3}, command: "touch then-{i}", runtime: 1s}\n'
        "  - {id: tidy, command: touch tidy, at-end: true, runtime: 1s}\n"
    )
    run = windrow.run("w.yaml", wait=True)
    assert run.state is RunState.FAILED
    assert not list(here.glob("then-*"))
    assert (here / "tidy").exists()


def test_tasks_of_a_program_take_of_limits_of_their_run(here: Path) -> None:
    (here / "w.yaml").write_text(HEAD + '  - {id: first, command: "true"}\n')
    run = windrow.run("w.yaml")
    command = "echo + >> log; sleep 0.2; echo - >> log"
    take: dict[str, int] = {"db": 1}
    new = [NewTask(id=f"n{i}", command=command, takes=take, limits=take) for i in range(3)]
    run.add(*new)
    with pytest.raises(UserError, match="takes 2 of db, of which there is 1"):
        run.add(NewTask(id="much", command="true", takes={"db": 2}))
    loose = NewTask(id="last", command="test ! -e log || touch last", after_any=["n0", "n1", "n2"])
    run.add(loose)
    assert run.wait(60) is RunState.COMPLETE
    assert most_at_once(here / "log") == 1
    assert (here / "last").exists()


RANKED = """
defaults: {runtime: 1s, cores: 8}
tasks:
  - {id: gate, command: "until test -e go; do sleep 0.05; done"}
  - {id: "old-{i}", matrix: {i: 1..3}, command: "echo {id} >> ran", after: gate, priority: 3}
  - {id: "new-{i}", matrix: {i: 1..3}, command: "echo {id} >> ran", after: gate}
  - {id: last, command: "echo {id} >> ran", after: gate}
"""


def test_priorities_change_while_a_run_goes_on(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "w.yaml").write_text(RANKED)
    run = windrow.run("w.yaml")
    wait_until(lambda: run.tasks["gate"].state == "running")
    assert main(["priority", "5", "new", "--json"]) == 0
    assert '"tasks": [\n    "new-1",' in capsys.readouterr().out
    assert main(["priority", "-1", "old-2", "old-3"]) == 0
    assert main(["priority", "9", "nosuch"]) == 2
    assert "has no task 'nosuch'" in capsys.readouterr().err
    # The agent looks for wishes now and then: it has when it has dropped this task.
    assert main(["cancel", run.name, "last"]) == 0
    wait_until(lambda: RunView(find_run(None)).story.tasks[-1].dropped != [])
    (here / "go").touch()
    assert run.wait() is RunState.STOPPED
    ran = (here / "ran").read_text().split()
    assert ran == ["new-1", "new-2", "new-3", "old-1", "old-2", "old-3"]
    assert main(["explain", "old-2"]) == 0
    assert "priority -1 since" in capsys.readouterr().out
    assert main(["priority", "1", "new"]) == 2
    assert "over; nothing to change" in capsys.readouterr().err
