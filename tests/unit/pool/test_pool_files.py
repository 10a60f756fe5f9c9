"""A pool's folder and journal: many submit at once, and nothing that was written is lost or
changed."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.waiting import PATIENCE_S

from windrow.errors import InputError, OutsideError, UserError
from windrow.model import File, Runnable, Step, Task, Workflow
from windrow.pool import events as e
from windrow.pool.folder import PoolFolder, find_pool, pool_at
from windrow.pool.journal import PoolJournal
from windrow.pool.server import VARIABLE, kill_leftovers
from windrow.pool.settings import choose
from windrow.pool.story import PoolFigure
from windrow.pool.view import PoolView
from windrow.records.lock import RunLock


def small(name: str = "one") -> Runnable:
    tasks = [
        Task("a", 1.5, kind="k", outputs=("x",)),
        Task("b", 2.0, parents=("a",), inputs=("x",), cores=2),
    ]
    steps = (Step(("echo", "1"), "/tmp", env=(("A", "1"),)), Step(("echo", "2"), "/tmp", retries=2))
    return Runnable(Workflow.from_tasks(name, tasks, [File("x", 7)]), steps)


@pytest.fixture
def folder(tmp_path: Path) -> PoolFolder:
    made = PoolFolder(tmp_path / "pools" / "lab")
    made.make()
    return made


def test_a_workflow_comes_back_as_it_was_submitted(folder: PoolFolder) -> None:
    given = small()
    assert folder.submit(given) == 1
    found = folder.read(1)[0]
    assert list(found.workflow) == list(given.workflow)
    assert found.workflow.files == given.workflow.files
    assert found.steps == given.steps


SUBMITTER = """
import sys
from pathlib import Path
from windrow.model import Runnable, Step, Task, Workflow
from windrow.pool.folder import PoolFolder
for i in range(15):
    task = Task(f"{sys.argv[2]}-{i}", 1.0)
    print(PoolFolder(Path(sys.argv[1])).submit(Runnable(Workflow.from_tasks("w", [task]), (Step(("true",), "/"),))))
"""  # noqa: E501


@pytest.mark.slow
def test_many_submit_at_once_and_each_gets_a_number_of_its_own(folder: PoolFolder) -> None:
    command = [sys.executable, "-c", SUBMITTER, str(folder.path)]
    shells = [
        subprocess.Popen([*command, str(k)], stdout=subprocess.PIPE, text=True) for k in range(4)
    ]
    numbers = {
        k: [int(line) for line in shell.communicate(timeout=60)[0].split()]
        for k, shell in enumerate(shells)
    }
    assert sorted(n for found in numbers.values() for n in found) == list(range(1, 61))
    for k, found in numbers.items():
        assert found == sorted(found)
        assert [folder.read(n)[0].workflow.ids[0] for n in found] == [f"{k}-{i}" for i in range(15)]
    assert [p.name for p in folder.workflows.iterdir() if p.suffix != ".json"] == []


def test_the_folder_is_private(folder: PoolFolder) -> None:
    for path in (folder.path, folder.workflows, folder.wishes):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "data"
    mine.mkdir(mode=0o755)
    mine.chmod(0o755)
    (mine / "outputs.csv").touch()
    with pytest.raises(
        UserError, match=r"data is not a pool: it contains outputs\.csv; name a folder"
    ):
        PoolFolder(mine).make()
    assert stat.S_IMODE(mine.stat().st_mode) == 0o755
    assert [p.name for p in mine.iterdir()] == ["outputs.csv"]
    (mine / "outputs.csv").unlink()
    for _ in range(2):  # an empty one may become a pool, and one that was just made is one
        PoolFolder(mine).make()


def test_a_pool_is_named_as_commands_must_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pool_at("lab").address == "lab"
    assert pool_at(".windrow/pools/lab").address == "lab"
    assert pool_at("./lab").address == str(tmp_path / "lab")


def test_wishes_stay_until_they_are_fulfilled(folder: PoolFolder) -> None:
    for wish in ("stop", "cancel-2", "stop"):
        folder.wish(wish)
    assert folder.wished() == ["cancel-2", "stop"]
    folder.fulfil("stop")
    folder.fulfil("stop")
    assert folder.wished() == ["cancel-2"]


@pytest.mark.parametrize("name", ["", "..", ".x", "a b", "a\n"])
def test_odd_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        pool_at(name, tmp_path)


def test_who_asks_for_an_unknown_pool_hears_of_the_known(
    folder: PoolFolder, tmp_path: Path
) -> None:
    root = tmp_path / "pools"
    with pytest.raises(UserError, match="windrow pool lab starts one"):
        find_pool("lab", root)
    PoolJournal.create(folder.journal, {})
    assert find_pool("lab", root) == folder
    assert find_pool(str(folder.path)) == folder
    with pytest.raises(UserError, match="did you mean lab"):
        find_pool("lap", root)


def test_a_broken_workflow_file_is_named(folder: PoolFolder) -> None:
    folder.workflow(1).write_text("{")
    with pytest.raises(InputError, match=r"1\.json"):
        folder.read(1)


def _example(kind: Any) -> e.Event:
    values: dict[Any, object] = {float: 1.5, int: 3, str: "x", bool: True, tuple[int, ...]: (1, 2)}
    values[tuple[str, ...]] = ("a", "b")
    made: e.Event = kind(**{f.name: values[f.type] for f in fields(kind)})
    return made


def test_every_kind_of_event_comes_back_as_it_was(folder: PoolFolder) -> None:
    PoolJournal.create(folder.journal, {"id": "7"})
    written = [_example(kind) for kind in get_args(e.Event)]
    journal = PoolJournal.open(folder.journal, writable=True)
    journal.append(written[:3], {"reserved": 2})
    journal.append(written[3:])
    reader = PoolJournal.open(folder.journal)
    assert [event for _, event in reader.records()] == written
    assert [seq for seq, _ in reader.records(after=2)] == list(range(3, len(written) + 1))
    assert reader.facts() == {"format": 4, "id": "7", "reserved": 2}


def test_a_journal_is_never_made_over_another(folder: PoolFolder) -> None:
    PoolJournal.create(folder.journal, {"id": "first"})
    PoolJournal.create(folder.journal, {"id": "second"})
    assert PoolJournal.open(folder.journal).facts()["id"] == "first"


def test_a_journal_of_rubbish_is_named(folder: PoolFolder) -> None:
    folder.journal.write_bytes(b"rubbish" * 1000)
    with pytest.raises(OutsideError, match=r"journal\.sqlite"):
        PoolJournal.open(folder.journal)


def test_names_in_a_journal_are_those_of_the_first_version(folder: PoolFolder) -> None:
    """The right-hand sides were written before classes were renamed."""
    written: list[tuple[e.Event, str, bytes]] = [
        (
            e.WorkflowAccepted(10.0, 1, "w", 2),
            "WorkflowArrived",
            b'{"at_s":10.0,"number":1,"name":"w","tasks":2}',
        ),
        (
            e.PoolTaskStarted(12.0, 1, 0, 1, (0,), 2),
            "TaskStarted",
            b'{"at_s":12.0,"number":1,"task":0,"attempt":1,"nodes":[0],"slots":2}',
        ),
        (
            e.PoolTaskFinished(15.0, 1, 0, 1, 12.0, 0.5, 7),
            "TaskFinished",
            b'{"at_s":15.0,"number":1,"task":0,"attempt":1,"begun_s":12.0,"cpu_s":0.5,"peak_bytes":7}',
        ),
        (
            e.PoolTaskFailed(15.0, 1, 1, 1, 12.0, "exit 1", False, "t"),
            "TaskFailed",
            b'{"at_s":15.0,"number":1,"task":1,"attempt":1,"begun_s":12.0,"why":"exit '
            b'1","final":false,"tail":"t"}',
        ),
        (
            e.PoolTaskLost(16.0, 1, 1, 2, "gone"),
            "TaskLost",
            b'{"at_s":16.0,"number":1,"task":1,"attempt":2,"why":"gone"}',
        ),
        (e.PoolClosed(19.0, "x"), "PoolClosed", b'{"at_s":19.0,"why":"x"}'),
    ]
    PoolJournal.create(folder.journal, {})
    PoolJournal.open(folder.journal, writable=True).append([event for event, _, _ in written])
    with sqlite3.connect(folder.journal) as db:
        rows = db.execute("SELECT kind, body FROM events ORDER BY seq").fetchall()
    assert rows == [(kind, body) for _, kind, body in written]
    assert [event for _, event in PoolJournal.open(folder.journal).records()] == [
        event for event, _, _ in written
    ]


def test_wait_makespan_response_and_slowdown_by_hand(folder: PoolFolder) -> None:
    """Submitted at 10, first start at 12, end at 20, 4 seconds alone."""
    PoolJournal.create(folder.journal, {})
    journal = PoolJournal.open(folder.journal, writable=True)
    journal.append([e.WorkflowAccepted(10.0, 1, "w", 2), e.WorkflowAccepted(11.0, 2, "v", 1)])
    journal.append(
        [e.PoolTaskStarted(12.0, 1, 0, 1, (0,), 2), e.PoolTaskFinished(15.0, 1, 0, 1, 12.0)]
    )
    told = PoolView(folder)
    workflow = told.story.workflows[1]
    assert (workflow.state, told.story.workflows[2].state) == ("waiting", "waiting")
    journal.append([e.PoolTaskStarted(16.0, 1, 1, 1, (0,), 3)])
    told.refresh()
    assert (workflow.state, told.story.busy) == (
        "waiting",
        0,
    )  # nobody serves the pool: then nothing can run
    lock = RunLock(folder.lock)
    journal.append([e.PoolTaskStarted(16.0, 1, 1, 2, (0,), 3)])
    told.refresh()
    assert (workflow.state, told.story.busy) == ("running", 3)
    lock.release()
    journal.append(
        [e.PoolTaskFinished(20.0, 1, 1, 1, 16.0), e.WorkflowEnded(20.0, 1, e.COMPLETE, 4.0)]
    )
    told.refresh()
    assert (workflow.wait_s, workflow.makespan_s, workflow.response_s, workflow.slowdown) == (
        2.0,
        8.0,
        10.0,
        2.5,
    )
    assert told.story.figures()["slowdown"] == PoolFigure(2.5, 2.5)
    journal.append(
        [e.PoolTaskStarted(21.0, 2, 0, 1, (0,), 1), e.PoolTaskFinished(31.0, 2, 0, 1, 21.0)]
    )
    journal.append([e.WorkflowEnded(31.0, 2, e.COMPLETE, 5.0)])
    told.refresh()
    figures = {
        "wait_s": PoolFigure(6.0, 10.0),
        "makespan_s": PoolFigure(9.0, 10.0),
        "response_s": PoolFigure(15.0, 20.0),
    }
    assert told.story.figures() == {**figures, "slowdown": PoolFigure(3.25, 4.0)}
    assert (workflow.state, told.story.busy) == ("complete", 0)


def test_settings_wanted_now_come_before_those_kept_and_those_before_the_defaults() -> None:
    first, _ = choose({"policy": "sr", "cores": 3, "nodes": 2}, {}, {})
    assert (first.policy, first.selection, first.slots) == ("sr", "random", 6)
    kept = asdict(first)
    again, hosts = choose({"policy": None, "cores": 5}, kept, {})
    assert (again.policy, again.nodes, again.cores) == ("sr", 2, 5)
    assert (len(hosts.names), hosts.are_here) == (2, True)
    with pytest.raises(UserError, match="unknown policy"):
        choose({"policy": "fair"}, {}, {})


def test_what_an_earlier_server_left_is_killed_and_nothing_else() -> None:
    with (
        subprocess.Popen(["sleep", "60"], env={**os.environ, VARIABLE: "test-left"}) as left,
        subprocess.Popen(["sleep", "60"], env={**os.environ, VARIABLE: "test-left-2"}) as other,
    ):
        assert kill_leftovers("test-left") >= 1
        assert left.wait(timeout=PATIENCE_S) == -9
        assert other.poll() is None
        other.kill()
    assert kill_leftovers("test-left") == 0
