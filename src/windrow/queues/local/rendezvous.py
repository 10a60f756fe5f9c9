"""How clients and the server of the queue on this machine meet: a folder with a lock and a pipe.

Rule 1: who holds the lock is the server; there is never a second. Rule 2: the pipe can be opened
for writing exactly while a server reads it, so one call both asks for a server and wakes it. Rule
3: a client commits, then knocks; a server that wants to leave shuts the door, then looks for work
once more. So no job is left without a server.
"""

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

from windrow.agent.machine import SHARES
from windrow.errors import UserError
from windrow.queues.port import QueueError

JOB_VARIABLES = (
    "WINDROW_QUEUE",
    "WINDROW_QUEUE_FOLDER",
    "WINDROW_JOB_ID",
    "WINDROW_JOB_NODES",
    SHARES,
)
"""What a job finds in its environment besides what its submitter had."""
_START_LIMIT_S = 30.0


MACHINE = "queue"
"""The folder of the queue that is this machine; those of small clusters are named after their
settings."""


def job_id(folder: Path, number: int) -> str:
    """A job as users and agents know it: no two jobs of a user have the same name, whatever queue
    they are in."""
    if folder.name == MACHINE:
        return str(number)
    return f"{folder.name}.{number}"


def check_machine() -> None:
    """Raise UserError if processes cannot be watched without polling."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        raise UserError(
            "the local queue needs Linux 5.4 or later (pidfd, to watch processes)"
        ) from error


def make_folder(folder: Path) -> None:
    """Make the folder, for its owner alone, or check that it is so: it holds the environments of
    jobs."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "jobs").mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise UserError(
            f"{folder}: {error.strerror}; a queue needs its own folder that you can write to"
        ) from error
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UserError(
            f"{folder}: a queue's folder must belong to you and be closed to others; chmod 700 "
            "it, or name another"
        )


def is_served(folder: Path) -> bool:
    """Whether there is a server."""
    pipe = _open_to_knock(folder)
    if pipe is not None:
        os.close(pipe)
    return pipe is not None


def knock(folder: Path) -> bool:
    """Wake the server. False if there is none."""
    pipe = _open_to_knock(folder)
    if pipe is None:
        return False
    try:
        os.write(pipe, b"!")
    except BlockingIOError:
        pass  # the pipe is full of knocks
    except BrokenPipeError:
        return False
    finally:
        os.close(pipe)
    return True


def _open_to_knock(folder: Path) -> int | None:
    try:
        return os.open(folder / "wake", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise QueueError(f"{folder / 'wake'}: {error.strerror}") from error


def start_server(folder: Path) -> None:
    """Start a server and return when there is one, this or another client's. QueueError if there
    will be none."""
    command = [sys.executable, "-P", "-m", "windrow.queues.local.server", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name not in JOB_VARIABLES}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
            timeout=_START_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise QueueError(f"the server of the queue in {folder} failed to start: {error}") from error
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise QueueError(f"the server of the queue in {folder} failed to start: {said}")


def lock(folder: Path, limit_s: float = 5.0) -> int | None:
    """Become the server: returns the lock. None if another one serves."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up_s = time.monotonic() + limit_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another one serves, or is about to leave: its door tells.
            if is_served(folder):
                os.close(file)
                return None
            if time.monotonic() > give_up_s:
                raise QueueError(
                    f"{folder / 'lock'}: held by a process that is not the server of the queue"
                ) from None
            time.sleep(0.02)
        else:
            return file


def open_door(folder: Path) -> int:
    """The reading end of the pipe. Opened for both, so that it never seems closed when a client
    leaves."""
    pipe = folder / "wake"
    if not pipe.exists():
        os.mkfifo(pipe, 0o600)
    return os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def sign(lock_file: int, pid: int) -> None:
    """Write the server's process id into the lock, for people."""
    os.ftruncate(lock_file, 0)
    os.pwrite(lock_file, f"{pid}\n".encode(), 0)
