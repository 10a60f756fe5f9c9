"""One manager for a run: who has the lock, who is told, and when it is free again."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windrow.errors import OutsideError, UserError
from windrow.queues.command import run
from windrow.records.lock import RunLock, holder_of

HOLDER = """
import sys, time
from pathlib import Path
from windrow.records.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""

# Takes the lock, lends it, and runs a command as the queue's commands are run.
LENDER = """
import os, sys
from pathlib import Path
from windrow.records.lock import RunLock
from windrow.queues.command import run
lock = RunLock(Path(sys.argv[1]))
lock.lend()
run(["sh", "-c", f"echo held > {sys.argv[2]}; sleep 1"], stdin="", env=os.environ, timeout_s=60)
"""


def test_only_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run-1" / "lock"
    path.parent.mkdir()
    assert holder_of(path) is None
    first = RunLock(path)
    assert holder_of(path) == f"process {os.getpid()} on {os.uname().nodename}"
    with pytest.raises(
        UserError, match=rf"run-1 is being managed by process {os.getpid()} on .*windrow status -f"
    ):
        RunLock(path)
    first.release()
    assert holder_of(path) is None
    RunLock(path).release()


@pytest.mark.slow
def test_it_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match=f"process {holder.pid}"):
            RunLock(path, wait_s=0.15)
        holder.send_signal(signal.SIGKILL)
        RunLock(path, wait_s=5).release()


@pytest.mark.slow
def test_a_command_under_way_holds_it_after_its_holder(tmp_path: Path) -> None:
    """The manager is killed while its submission is on its way: nobody may take over before that
    has ended."""
    path, begun = tmp_path / "lock", tmp_path / "begun"
    with subprocess.Popen([sys.executable, "-c", LENDER, str(path), str(begun)]) as lender:
        while not begun.exists():
            time.sleep(0.01)
        lender.send_signal(signal.SIGKILL)
        lender.wait()
    with pytest.raises(UserError, match=f"process {lender.pid}"):
        RunLock(path)
    RunLock(path, wait_s=10).release()


def test_commands_inherit_nothing_but_what_is_lent(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / "lock")
    with (tmp_path / "private").open("w"):
        before = run(["ls", "/proc/self/fd"], stdin="", env=os.environ, timeout_s=10).out.split()
        lock.lend()
        after = run(["ls", "/proc/self/fd"], stdin="", env=os.environ, timeout_s=10).out.split()
    assert len(after) == len(before) + 1
    lock.release()


def test_those_who_ask_do_not_take_each_other_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    RunLock(path).release()
    asking = os.open(path, os.O_RDWR)
    fcntl.flock(asking, fcntl.LOCK_SH)  # as another `windrow status` does for an instant
    assert holder_of(path) is None
    os.close(asking)


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Lustre does where it is mounted without them."""

    def unknown(_descriptor: int, _kind: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    path = tmp_path / "lock"
    path.touch()
    monkeypatch.setattr(fcntl, "flock", unknown)
    for ask in (RunLock, holder_of):
        with pytest.raises(
            OutsideError,
            match=r"lock cannot be locked: Function not implemented; start it in a folder",
        ):
            ask(path)


def test_where_no_lock_can_be_made(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="No such file or directory"):
        RunLock(tmp_path / "missing" / "lock")
