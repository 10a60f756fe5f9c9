"""Whatever stops an agent: no task runs on, and the events say what was lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell, task
from tests.waiting import PATIENCE_S, is_alive, read_pid, wait_until

from windrow.agent.event_file import AgentLeft, AttemptLost, TaskDeclined
from windrow.model.attempt import Leave, Leaving

pytestmark = pytest.mark.slow


def sleeper(number: int, folder: Path, ignoring: str = "") -> str:
    """A script that writes its process number and sleeps, after ignoring signals."""
    trap = f"trap '' {ignoring}; " if ignoring else ""
    return f"{trap}echo $$ > '{folder}/{number}.pid'; while :; do sleep 0.05; done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("ignoring", ["", "TERM"])
def test_a_signal_ends_tasks_and_records_them_as_lost(
    run: Run, tmp_path: Path, number: int, ignoring: str
) -> None:
    run.write(
        shell(0, sleeper(0, tmp_path, ignoring), children=(1,)),
        task(1, "true", parents=(0,)),
        grace_s=1.0,
    )
    with run.begin() as agent:
        pid = read_pid(tmp_path / "0.pid")
        agent.send_signal(number)
        agent.communicate(timeout=PATIENCE_S)
    assert agent.returncode == 128 + number
    assert not is_alive(pid)
    assert [event.task for event in run.of(AttemptLost)] == [0]
    assert [event.task for event in run.of(TaskDeclined)] == [1]
    assert run.failed() == []
    assert run.of(AgentLeft)[0].why == Leaving(Leave.SIGNAL, signal.Signals(number).name)


def test_a_task_that_still_succeeds_when_told_to_go_is_done(run: Run, tmp_path: Path) -> None:
    script = (
        f"trap 'echo saved > saved; exit 0' TERM; echo $$ > '{tmp_path}/0.pid'; while :; do "
        "sleep 0.05; done"
    )
    run.write(shell(0, script, workdir=str(tmp_path), outputs=("saved",)))
    with run.begin() as agent:
        read_pid(tmp_path / "0.pid")
        agent.terminate()
        agent.communicate(timeout=PATIENCE_S)
    assert run.finished() == [0]
    assert run.of(AttemptLost) == []


def test_a_task_ended_by_the_queue_an_instant_before_the_agent_has_not_failed(
    run: Run, tmp_path: Path
) -> None:
    run.write(shell(0, sleeper(0, tmp_path)))
    with run.begin() as agent:
        os.kill(read_pid(tmp_path / "0.pid"), signal.SIGTERM)
        time.sleep(0.1)
        agent.terminate()
        agent.communicate(timeout=PATIENCE_S)
    assert [(event.task, event.cause) for event in run.of(AttemptLost)] == [(0, "cancelled")]
    assert run.failed() == []
    assert run.of(AgentLeft)[-1].why == Leaving(Leave.SIGNAL, "SIGTERM"), (
        "it has not done all it could"
    )
    assert agent.returncode == 128 + signal.SIGTERM


def test_a_task_ended_by_hand_has_failed(run: Run, tmp_path: Path) -> None:
    run.write(shell(0, sleeper(0, tmp_path)))
    with run.begin() as agent:
        os.kill(read_pid(tmp_path / "0.pid"), signal.SIGTERM)
        agent.communicate(timeout=PATIENCE_S)
    assert [(failed.of.signal, failed.final) for failed in run.failed()] == [(15, True)]


@pytest.mark.slow
def test_the_agent_stops_before_the_walltime(run: Run, tmp_path: Path) -> None:
    begun = time.monotonic()
    run.write(shell(0, sleeper(0, tmp_path), expected_s=0), walltime_s=6.0, grace_s=1.0)
    with run.begin() as agent:
        pid = read_pid(tmp_path / "0.pid")
        agent.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - begun >= 5.0
    assert agent.returncode == 0
    assert not is_alive(pid)
    assert [event.why for event in run.of(AttemptLost)] == ["the walltime is nearly over"]


@pytest.mark.parametrize("victim", ["worker", "guardian", "group"])
def test_nothing_survives_a_kill(run: Run, tmp_path: Path, victim: str) -> None:
    """Nor a process that has left its task's group and session."""
    stray = f"setsid sh -c 'echo $$ > {tmp_path}/stray.pid; exec sleep 1000' & "
    run.write(shell(0, stray + sleeper(0, tmp_path)), shell(1, sleeper(1, tmp_path)), grace_s=1.0)
    with run.begin() as agent:
        pids = [read_pid(tmp_path / name) for name in ("0.pid", "1.pid", "stray.pid")]
        worker = run.agent_pid()
        if victim == "worker":
            os.kill(worker, signal.SIGKILL)
        elif victim == "guardian":
            agent.kill()
        else:
            os.killpg(agent.pid, signal.SIGKILL)
        agent.communicate(timeout=PATIENCE_S)
    if victim == "worker":
        assert agent.returncode == 128 + 9
    else:
        wait_until(lambda: not is_alive(worker))
        assert sorted(event.task for event in run.of(AttemptLost)) == [0, 1]
    wait_until(lambda: not any(map(is_alive, pids)))


def test_a_stray_process_ends_with_the_job(run: Run, tmp_path: Path) -> None:
    run.run(shell(0, f"setsid sh -c 'echo $$ > {tmp_path}/stray.pid; exec sleep 1000' & sleep 0.3"))
    assert run.finished() == [0]
    assert not is_alive(read_pid(tmp_path / "stray.pid"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB; only root can make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill_up(disk: Path, leaving_bytes: int) -> None:
    free_bytes = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(b"x" * (free_bytes - leaving_bytes))


def check_full_disk_run(run: Run, code: int, printed: str) -> None:
    assert code == 1
    assert "cannot be written" in printed
    assert "Traceback" not in printed
    assert run.folder.events(0).read_bytes().endswith(b"\n")
    assert len(set(run.finished())) == len(run.finished())


def test_a_full_disk_stops_the_agent_in_good_order(small_disk: Path, tmp_path: Path) -> None:
    run = Run(small_disk / "run")
    many = (shell(n, f"echo x >> '{tmp_path}/began.{n}'") for n in range(400))
    run.write(*many)
    fill_up(small_disk, leaving_bytes=20 << 10)
    code, printed = run.run()
    check_full_disk_run(run, code, printed)
    assert "No space left on device" in printed
    began = len(list(tmp_path.glob("began.*")))
    assert (
        began - 4 <= len(run.finished()) <= began < 400
    )  # two running, two started but not yet told


def test_a_file_size_limit_is_like_a_full_disk(run: Run) -> None:
    run.write(*(task(n, "true") for n in range(400)))
    code = (
        "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with run.begin(prefix=(sys.executable, "-c", code)) as agent:
        out, err = agent.communicate(timeout=60)
    check_full_disk_run(run, agent.returncode, out + err)
    assert 0 < len(run.finished()) < 400


def test_an_output_folder_that_is_gone_stops_the_agent_and_is_recorded(run: Run) -> None:
    run.write(shell(0, f"rm -rf '{run.folder.out}'", children=(1,)), task(1, "true", parents=(0,)))
    code, printed = run.run()
    assert code == 1
    assert "out/1.1 cannot be written: No such file" in printed
    assert run.finished() == [0]
    assert [event.task for event in run.of(AttemptLost)] == [1]
    assert "out/1.1 cannot be written" in run.of(AgentLeft)[0].why.about


def test_an_output_folder_that_is_no_folder_any_more_loses_no_result(run: Run) -> None:
    """The empty file of what it printed cannot be removed, which is no reason to forget that it
    finished."""
    run.write(shell(0, f"rm -rf '{run.folder.out}'; : > '{run.folder.out}'"))
    code, printed = run.run()
    assert (code, printed) == (0, "")
    assert run.finished() == [0]


def test_a_read_only_run_folder_is_told(small_disk: Path) -> None:
    run = Run(small_disk / "run")
    run.write(task(0, "true"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    code, printed = run.run()
    assert code == 1
    assert "claim cannot be created: Read-only file system" in printed
    assert not run.folder.claim(0).exists()


def test_a_task_that_cannot_even_say_that_the_disk_is_full_has_not_failed(small_disk: Path) -> None:
    run = Run(small_disk / "run")
    code, printed = run.run(shell(0, f"cat /dev/zero > '{small_disk}/much'; exit 3", retries=3))
    assert code == 0, printed
    assert [(lost.cause, lost.why) for lost in run.of(AttemptLost)] == [
        ("space", "exit code 3; the disk for what it prints is full")
    ]
    assert not run.failed()
