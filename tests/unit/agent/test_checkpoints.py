"""Tasks with checkpoints: asked before every end and while they run, and continued by one attempt
at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.jobs import Run, shell, task
from tests.waiting import PATIENCE_S, is_alive, read_pid, wait_until

from windrow.agent import checkpoints
from windrow.agent.checkpoints import Checkpoints, remove_files
from windrow.agent.event_file import (
    AgentLeft,
    AttemptFailed,
    AttemptFinished,
    AttemptLost,
    AttemptSaved,
    AttemptStarted,
    TaskDeclined,
)
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import TaskSpec
from windrow.agent.kept_files import KeptFiles, found
from windrow.agent.machine import takers
from windrow.model.attempt import NOTICED, OUT_OF_TIME
from windrow.model.checkpoint import Checkpoint

STEPS = Path(__file__).parents[3] / "examples" / "steps.py"
KEPT = Checkpoint(("state-*",), "USR1", 2.0)


def steps(folder: Path, kept: Checkpoint = KEPT, count: int = 1000, **more: Any) -> TaskSpec:
    """The program of the examples, a twentieth of a second for each step."""
    command = (sys.executable, str(STEPS), "long.txt", str(count), "0.05")
    return task(
        0,
        *command,
        workdir=str(folder),
        outputs=("long.txt",),
        expected_s=60.0,
        checkpoint=kept,
        **more,
    )


def at_step(folder: Path) -> int:
    return int((folder / "state-long.txt").read_text().split()[0])


@pytest.mark.slow
def test_a_task_is_asked_before_the_deadline_and_the_next_job_continues_it(
    run: Run, tmp_path: Path
) -> None:
    run.run(steps(tmp_path, KEPT._replace(notice_s=1.5)), walltime_s=5.0, grace_s=1.0)
    saved = run.of(AttemptSaved)
    assert (saved[-1].ended, saved[-1].idle) == (True, 0)
    assert 2.0 < saved[-1].done_s < 3.4, (
        "it counts up to when it was asked, a little later on a busy machine"
    )
    assert run.of(AttemptLost) == []
    assert [event.why for event in run.of(TaskDeclined)] == [
        "its time in this job is over; it continues in another"
    ]
    assert run.of(AgentLeft)[0].why == OUT_OF_TIME
    assert not list(run.folder.leases.iterdir())
    done = at_step(tmp_path)
    assert 10 <= done <= 60
    more = {"attempts": 1, "done_s": saved[-1].done_s}
    run.run(steps(tmp_path, count=done + 10, **more), job=1, walltime_s=20.0)
    assert run.finished(1) == [0]
    assert run.of(AttemptStarted, 1)[0].of.number == 2
    (finished,) = run.of(AttemptFinished, 1)
    assert finished.of.before_s == more["done_s"]
    assert (tmp_path / "long.txt").exists()
    assert not list(tmp_path.glob("state-*")), "nobody needs them any more"
    assert run.folder.task_out(0, 2).read_text() == f"attempt 2 starts at step {done}\n"


@pytest.mark.slow
def test_a_stop_is_a_notice(run: Run, tmp_path: Path) -> None:
    """SIGTERM to the agent: the task has its notice, and not three seconds; it may leave before."""
    script = (
        "trap 'sleep 1.5; echo 1 > state-1; exit 75' USR1; echo $$ > pid; while :; do sleep "
        "0.05; done"
    )
    run.write(
        shell(0, script, workdir=str(tmp_path), checkpoint=KEPT._replace(notice_s=30.0)),
        grace_s=0.5,
    )
    with run.begin() as agent:
        pid = read_pid(tmp_path / "pid")
        time.sleep(0.2)
        agent.terminate()
        agent.communicate(timeout=PATIENCE_S)
    assert not is_alive(pid)
    assert agent.returncode == 128 + signal.SIGTERM
    (saved,) = run.of(AttemptSaved)
    assert saved.ended
    assert (tmp_path / "state-1").exists()
    assert run.failed() == []


@pytest.mark.slow
def test_word_of_a_batch_system_is_a_notice(run: Run, tmp_path: Path) -> None:
    """SIGUSR1 to the agent, as by `--signal=B:USR1@60`: the task is asked, nothing starts, and
    nothing is ended."""
    script = (
        "trap 'sleep 0.3; echo 1 > state-1; exit 75' USR1; echo $$ > pid; while :; do sleep "
        "0.05; done"
    )
    asked = shell(0, script, workdir=str(tmp_path), checkpoint=KEPT)
    other = shell(1, f"until test -e '{tmp_path}/go'; do sleep 0.05; done", expected_s=2.0)
    run.write(asked, other, shell(2, "true", parents=(1,)), grace_s=0.5)
    with run.begin() as agent:
        read_pid(tmp_path / "pid")
        run.wait_for_start(1)
        agent.send_signal(signal.SIGUSR1)
        wait_until(lambda: bool(run.of(AttemptSaved)))
        (tmp_path / "go").touch()
        agent.communicate(timeout=PATIENCE_S)
    assert agent.returncode == 0
    assert [saved.ended for saved in run.of(AttemptSaved)] == [True]
    assert run.finished() == [1]
    assert [declined.task for declined in run.of(TaskDeclined)] == [2, 0]
    assert run.of(AgentLeft)[0].why == NOTICED


@pytest.mark.slow
def test_a_task_that_leaves_when_asked_is_started_again_at_once(run: Run, tmp_path: Path) -> None:
    """Some programs can only write a checkpoint and end: no failure, and no retry is used up."""
    script = """
    n=$(cat state-n 2> /dev/null || echo 0); [ $n -ge 3 ] && exit 0
    trap 'echo $((n + 1)) > state-n; exit 75' USR1; while :; do sleep 0.05; done"""
    run.run(shell(0, script, workdir=str(tmp_path), checkpoint=KEPT._replace(every_s=0.5)))
    assert run.finished() == [0]
    assert [event.ended for event in run.of(AttemptSaved)] == [True] * 3
    assert [event.of.number for event in run.of(AttemptStarted)] == [1, 2, 3, 4]


@pytest.mark.slow
def test_three_pieces_without_a_checkpoint_fail(run: Run, tmp_path: Path) -> None:
    for job, idle in enumerate((0, 1, 2)):
        more: dict[str, Any] = {"attempts": job, "idle": idle, "expected_s": 60.0, "retries": 5}
        spec = shell(
            0,
            "exec sleep 60",
            workdir=str(tmp_path),
            checkpoint=KEPT._replace(notice_s=0.2),
            **more,
        )
        run.run(spec, job=job, walltime_s=1.5, grace_s=0.5)
    assert [run.of(AttemptSaved, job)[-1].idle for job in (0, 1)] == [1, 2]
    (failed,) = run.of(AttemptFailed, 2)
    assert failed.final
    assert failed.of.why.startswith(
        "3 jobs in a row ran out of time before it had written state-*; allow longer jobs"
    )


@pytest.mark.slow
def test_a_job_that_another_has_replaced_kills_its_attempt(run: Run, tmp_path: Path) -> None:
    """Its lease is another's: as when a node was cut off, its job given up, and the task continued
    elsewhere."""
    run.write(steps(tmp_path))
    with run.begin() as agent:
        run.wait_for_start(0)
        other = Checkpoints(run.folder, 7)
        assert other.take(0, 2) == checkpoints.HANDOVER_S
        agent.communicate(timeout=PATIENCE_S)
    assert [event.why for event in run.of(AttemptLost)] == ["another job continues it"]
    assert (run.folder.leases / "0").read_text() == "7 2\n"


@pytest.mark.slow
def test_a_signal_goes_to_those_who_take_it() -> None:
    """The leader if it does; else whoever in its group does, and not the shell around it."""
    program = (
        f"{sys.executable} -c 'import signal; signal.signal(signal.SIGUSR1, print); "
        "print(1, flush=True); input()'"
    )
    for script, has_leader in (
        (f"{program}; true", False),
        (f"exec {program}", True),
        ("read x; true", None),
    ):
        with subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
        ) as leader:
            assert leader.stdout is not None
            if has_leader is not None:
                leader.stdout.readline()
            found = takers(leader.pid, signal.SIGUSR1)
            assert [pid == leader.pid for pid in found] == (
                [] if has_leader is None else [has_leader]
            )
            os.killpg(leader.pid, signal.SIGKILL)


class Clockwork:
    """Checkpoints of one task, at times that a test says, with files that it writes."""

    def __init__(
        self,
        folder: Path,
        kept: Checkpoint,
        rate: float = 0.0,
        done_s: float = 0.0,
        attempt: int = 1,
    ) -> None:
        self.spec = task(0, "x", workdir=str(folder), checkpoint=kept, done_s=done_s)
        self.all = Checkpoints(RunFolder.at(folder / "run"), 0, rate)
        (folder / "run").mkdir(exist_ok=True)
        self.wait_s = self.all.take(0, attempt)
        self.is_whole = self.all.begin(self.spec, attempt, 100.0)
        self.file = folder / "state-1"


def test_progress_counts_up_to_the_request_or_the_first_change(tmp_path: Path) -> None:
    it = Clockwork(tmp_path, KEPT._replace(every_s=40.0))
    assert it.all.asks(139.0, 1000.0) == []
    assert it.all.asks(140.0, 1000.0) == [0]
    it.file.write_text("a")
    assert it.all.look(145.0) == ({}, []), "it may still be writing"
    assert it.all.look(146.0) == ({0: 40.0}, [])
    it.file.write_text("by itself")
    assert it.all.look(160.0) == ({}, [])
    assert it.all.look(170.0) == ({}, []), "not too often"
    assert it.all.look(176.0) == ({0: 60.0}, [])
    assert it.all.asks(998.0, 1000.0) == [0]
    assert it.all.have_time(999.9)
    assert not it.all.have_time(1000.0)
    it.file.write_text("the end")
    assert it.all.ended(0, 999.0) == (0.0, 898.0, True, True, True, False)


def test_the_interval_without_every_is_youngs(tmp_path: Path) -> None:
    """sqrt(2 * cost / rate): the notice stands for the cost until one was measured."""
    assert (
        Clockwork(tmp_path, KEPT).all.due_s(1000.0) == 0.0
    )  # to look; nothing to ask before the end
    it = Clockwork(tmp_path, KEPT._replace(notice_s=8.0), rate=1 / 400)
    assert it.all.asks(100.0 + 79.9, 1e9) == []
    assert it.all.asks(100.0 + 80.0, 1e9) == [0]
    it.file.write_text("a")
    it.all.look(182.0)
    it.all.look(183.0)
    assert it.all.asks(180.0 + 39.9, 1e9) == []
    assert it.all.asks(180.0 + 40.0, 1e9) == [0], "it had cost 2 s"


def test_what_is_found_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "state-1").write_text("of an earlier run")
    (tmp_path / "state-d").mkdir()
    (tmp_path / "state-d" / "part").touch()
    (tmp_path / "run").mkdir()
    of_earlier = found(str(tmp_path), ["state-*"])
    KeptFiles(RunFolder.at(tmp_path / "run").kept / "0", str(tmp_path), of_earlier).write()
    first = Clockwork(tmp_path, KEPT)
    assert (first.wait_s, first.is_whole) == (0.0, True)
    assert found(str(tmp_path), ["state-*"]) == {}
    first.file.write_text("a")
    second = Clockwork(tmp_path, KEPT, done_s=30.0, attempt=2)
    assert (second.wait_s, second.is_whole) == (checkpoints.HANDOVER_S, True), (
        "the first never gave its lease back"
    )
    assert first.all.look(200.0) == ({}, [0])
    assert second.file.exists()
    remove_files(RunFolder.at(tmp_path / "run"), 0, str(tmp_path), ["state-*"])
    assert found(str(tmp_path), ["state-*"]) == {}
    assert not Clockwork(tmp_path, KEPT, done_s=30.0, attempt=3).is_whole, "its files are gone"


def test_what_came_after_an_attempt_had_died_is_not_its_own(tmp_path: Path) -> None:
    """The user has put files there meanwhile, which look like checkpoints; some are long there."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    spec = steps(tmp_path)
    first = Checkpoints(folder, 0)
    first.take(0, 1)
    first.begin(spec, 1, 0.0)
    (tmp_path / "state-1").write_text("recorded")
    first.look(1.0)
    first.look(32.0)
    (tmp_path / "state-1").write_text("grown")
    (tmp_path / "state-2").write_text("not yet recorded")  # the agent dies here
    os.utime(folder.leases / "0", (time.time() - 3600, time.time() - 3600))
    (tmp_path / "state-of-last-month").write_text("precious")
    second = Checkpoints(folder, 1)
    assert second.take(0, 1) == checkpoints.HANDOVER_S
    second.begin(spec, 1, 0.0)
    (tmp_path / "state-3").write_text("by the second")
    second.ended(0, 5.0)
    remove_files(folder, 0, str(tmp_path), KEPT.files)
    left = {path.name for path in tmp_path.glob("state-*")}
    assert left == {"state-2", "state-of-last-month"}, "what is not proven stays"


def test_what_an_attempt_made_just_before_it_died_is_its_own(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    first = Checkpoints(folder, 0)
    first.take(0, 1)
    first.begin(steps(tmp_path), 1, 0.0)
    (tmp_path / "state-1").write_text("not yet recorded")
    remove_files(folder, 0, str(tmp_path), KEPT.files)
    assert not (tmp_path / "state-1").exists()


def test_a_file_to_start_from_stays_though_the_task_replaces_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    (tmp_path / "state-1").write_text("of last month")
    os.link(tmp_path / "state-1", tmp_path / "kept")  # else its inode may have another file next
    kept = Checkpoints(folder, 0)
    kept.take(0, 1)
    kept.begin(steps(tmp_path), 1, 0.0)
    (tmp_path / "new").write_text("continued")
    (tmp_path / "new").rename(tmp_path / "state-1")
    (tmp_path / "state-2").write_text("its own")
    kept.ended(0, 5.0)
    remove_files(folder, 0, str(tmp_path), KEPT.files)
    assert [path.name for path in tmp_path.glob("state-*")] == ["state-1"]


def test_only_a_star_means_more_than_itself(tmp_path: Path) -> None:
    for name in ("a[1]", "a1", "b", "b?"):
        (tmp_path / name).touch()
    assert list(found(str(tmp_path), ["a[1]", "b?"])) == ["a[1]", "b?"]
