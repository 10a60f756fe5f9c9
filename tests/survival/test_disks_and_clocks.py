"""Full disks, read-only disks, walltimes that are too short, and clocks that are set while a run
goes on."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.survival.world import World, braid

from windrow.agent.folder import RunFolder
from windrow.app.assembly import twin_of
from windrow.app.execute import drive
from windrow.app.facts import RunFacts, RunRequest
from windrow.app.strategies import find_strategy
from windrow.formats import read_runnable
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import Terms
from windrow.model.cause import Cause
from windrow.model.site import Site
from windrow.queues.local.queue import LocalQueue
from windrow.story.events import JobKilled, JobsPlanned
from windrow.story.journal import RunJournal
from windrow.strategies import JobPlan, Work, whole_seconds

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def mounted(path: Path, size: str) -> Iterator[None]:
    """A small disk in memory at this path."""
    if os.geteuid() != 0:
        pytest.skip("a disk that can be full or read-only: mounting one needs root")
    path.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(
            "a disk that can be full or read-only: mounting one is not allowed here "
            f"({done.stderr.strip()})"
        )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path) -> Path:
    """A file that takes what room there is."""
    ballast = path / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return ballast


def test_a_run_does_without_histories_that_cannot_be_used(world: World) -> None:
    waits, notes = world.state / "waits.sqlite", "buy milk\n" * 200
    world.state.mkdir(parents=True, exist_ok=True)
    waits.write_text(notes)
    world.env |= {"WINDROW_WAITS": str(waits), "WINDROW_HISTORY": str(waits / "history.sqlite")}
    world.write(braid())
    code, said = world.run()
    assert code == 0, said
    world.check_complete()
    assert said.count("run times are not remembered") == 1, said
    assert said.count("waits of earlier jobs are neither used nor remembered") == 1, said
    assert waits.read_text() == notes


def test_the_disk_is_full_from_the_beginning(world: World) -> None:
    with mounted(world.folder, "2m"):
        world.write(braid())
        ballast = fill(world.folder)
        code, said = world.run()
        assert code == 2, "nothing was started"
        assert f"{world.folder}/.windrow" in said or ".windrow/runs" in said
        assert "No space left on device" in said or "disk is full" in said
        assert world.tags() == []
        ballast.unlink()
        assert world.run()[0] == 0
        world.check_complete()


def test_the_disk_fills_up_in_mid_run(world: World) -> None:
    """Manager and agents run out of room; when there is room again, the run goes on where it
    was."""
    with mounted(world.folder, "4m"):
        world.write(braid(work_s=0.5))
        with world.start("run", "workflow.yaml", "--strategy", "level-by-level") as process:
            world.wait_for(lambda: world.has_run("first"))
            ballast = fill(world.folder)
            out, err = process.communicate(timeout=90)
        assert process.returncode == 1, out + err
        assert "Traceback" not in err
        # Either its own journal had no room, or tasks had none for their outputs; both are said.
        assert "full" in err or "No space left" in out + err or "failed" in out
        ballast.unlink()
        world.check_nothing_left()
        code, said = world.windrow("resume")
        assert code == 0, said
        world.check_complete()


def test_the_run_becomes_read_only(world: World) -> None:
    with mounted(world.folder / ".windrow", "8m"):
        disk = str(world.folder / ".windrow")
        world.write(braid(work_s=0.2))
        with world.start("run", "workflow.yaml") as process:
            world.wait_for(lambda: world.has_run("first"))
            process.kill()
            process.communicate()
        world.check_nothing_left()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        code, said = world.windrow("resume")
        assert code == 1, said
        assert "Read-only file system" in said
        world.write(
            "name: other\ntasks:\n  - {id: t, command: 'true', runtime: 1s}\n", "other.yaml"
        )
        code, said = world.windrow("run", "other.yaml")
        assert code == 2, "nothing was started"
        assert "Read-only file system" in said
        code, said = world.windrow("run", "workflow.yaml", "--again")
        assert code == 2
        assert "braid-1" in said
        world.check_nothing_left()
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        assert world.windrow("resume")[0] == 0
        world.check_complete()


def test_a_read_only_run_can_still_be_looked_at(world: World) -> None:
    with mounted(world.folder / ".windrow", "8m"):
        world.write(braid())
        assert world.run()[0] == 0
        world.check_nothing_left()
        subprocess.run(["mount", "-o", "remount,ro", str(world.folder / ".windrow")], check=True)
        assert world.status()["state"] == "complete"
        assert world.windrow("resume")[0] == 0  # nothing to do


def manager_of(world: World, now_s: Callable[[], float], overhead_s: int) -> Manager:
    """A manager in this process, with a clock and terms of its own."""
    queue = LocalQueue(Path(world.env["XDG_STATE_HOME"]) / "windrow", nodes=4, grace_s=2)
    runnable = read_runnable(world.folder / "workflow.yaml")
    folder = RunFolder.at(world.folder / ".windrow" / "runs" / "braid-1")
    folder.path.mkdir(parents=True, mode=0o700)
    request = RunRequest(Path("w.yaml"), strategy="glume")
    facts = RunFacts(request=request, uid="clocks").written()
    journal = RunJournal.create(folder.path / "journal.sqlite", facts)
    workflow, shape = runnable.workflow, queue.limits().shape
    given = Terms(round_s=1, patience=PATIENCE, overhead_s=overhead_s)
    return Manager(
        folder=folder,
        journal=journal,
        core=Core(Work(workflow, whole_seconds(workflow), Site.of(4, shape)), given),
        outposts=[Outpost(queue, forecasters=[twin_of(queue)])],
        strategy=find_strategy("glume"),
        dispatch=Dispatch(folder, runnable, "clocks", "braid-1"),
        now_s=now_s,
    )


@pytest.fixture
def _own_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_own_environment")
@pytest.mark.parametrize("step_s", [-86_400.0, 86_400.0])
def test_the_clock_is_set_in_mid_run(world: World, step_s: float) -> None:
    world.write(braid(work_s=0.2))
    manager = manager_of(
        world,
        lambda: time.time() + (step_s if (world.folder / "first.out").exists() else 0.0),
        overhead_s=8,
    )
    manager.begin()
    drive(manager)
    assert manager.core.is_complete
    assert max(plan.requested_s for plan in planned(manager)) < 60
    world.check_nothing_left()
    world.check_nothing_twice()
    assert len(world.ran()) == 8


def planned(manager: Manager) -> list[JobPlan]:
    events = [record.event for _, record in manager.journal.records()]
    return [
        plan for event in events if isinstance(event, JobsPlanned) for plan in event.decision.jobs
    ]


@pytest.mark.usefixtures("_own_environment")
def test_the_walltime_ends_in_mid_task(world: World) -> None:
    """A task that needs 4 s is expected to need 1: the first job is too short for it, the second is
    not."""
    text = "name: slow\ntasks:\n  - {id: quick, command: echo quick >> ran, runtime: 1s}\n"
    text += "  - {id: slow, command: sleep 4; echo slow >> ran, after: quick, runtime: 1s}\n"
    world.write(text)
    manager = manager_of(world, time.time, overhead_s=6)
    manager.begin()
    drive(manager)
    killed = [r.event for _, r in manager.journal.records() if isinstance(r.event, JobKilled)]
    assert [(event.job, event.cause, event.why) for event in killed] == [
        (0, Cause.TIME_LIMIT, "its time was up")
    ]
    assert world.ran() == ["quick", "slow"]
    world.check_nothing_left()
    world.check_nothing_twice()
