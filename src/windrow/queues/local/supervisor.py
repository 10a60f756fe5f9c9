"""The process that stays with one job: starts its command, ends it when time is up, and writes down
how it ended.

Rule 1: a job is claimed before its command starts, by a file that only one can make; so it never
runs twice, however often a server dies. Rule 2: supervisors need no server: walltime and exit code
are theirs. Rule 3: SIGTERM to one of them means that the job should go.
"""

import contextlib
import errno
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from windrow.agent.machine import Identity, identity
from windrow.deletion import discard
from windrow.files import draft_beside, link_once, replacing
from windrow.queues.local.store import Launch

_SIGNALS = {signal.SIGTERM, signal.SIGCHLD}
_RESET = [
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGQUIT,
]
_LONGEST_NAP_S = 86_400.0
_KILL_AGAIN_S = 1.0
_WRITE_LIMIT_S = 3600.0
WALLTIME = "walltime"
STOPPED = "stopped"
NEVER_RAN = "never ran"


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a job ended: its exit code (negative: the signal) and why it was stopped, if it was."""

    ended_s: float
    code: int | None
    stop: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SupervisorTerms:
    """What a supervisor must know besides the command. `walltime_s` 0: the job may take as long as
    it needs."""

    folder: Path
    job: int
    walltime_s: float
    grace_s: float


def claim(folder: Path, job: int, who: Identity) -> bool:
    """Make this job ours. False if another process was first."""
    with draft_beside(_claim_file(folder, job)) as draft:
        draft.write_text(json.dumps(asdict(who)))
        return link_once(draft, _claim_file(folder, job))


def claimant(folder: Path, job: int) -> Identity | None:
    """Who claimed this job, or None."""
    try:
        return Identity(**json.loads(_claim_file(folder, job).read_text()))
    except FileNotFoundError:
        return None


def outcome(folder: Path, job: int) -> JobOutcome | None:
    """What the supervisor wrote down, or None."""
    try:
        return JobOutcome(**json.loads(_exit_file(folder, job).read_text()))
    except FileNotFoundError:
        return None


def clear(folder: Path, job: int, *, tries: int) -> None:
    """Remove the files of a job that is over, once the store knows what they say.

    The claim stays if more than one supervisor was started: a late one must find it.
    """
    discard(_exit_file(folder, job))
    if tries == 1:
        discard(_claim_file(folder, job))


def fork_supervisor(terms: SupervisorTerms, launch: Launch) -> int:
    """Start a supervisor and return its process id, when the job is claimed. Earlier signals are
    kept for it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _keep(terms, launch)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.close(writing)
    os.read(reading, 1)  # nothing is written: it ends when the supervisor closes its end
    os.close(reading)
    return pid


def _keep(terms: SupervisorTerms, launch: Launch) -> NoReturn:
    """The supervisor's life. It is a copy of the server and must neither return into its code nor
    keep its files."""
    try:
        os.setsid()
        me = identity(os.getpid())
        is_ours = me is not None and claim(terms.folder, terms.job, me)
        _close_servers_files()
        if is_ours:
            _write(_exit_file(terms.folder, terms.job), asdict(_run(terms, launch)))
    except OSError as error:
        print(f"job {terms.job}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def _close_servers_files() -> None:
    """The lock and the pipe above all: while a supervisor had them open, the server would seem to
    live on."""
    for file in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if file > 2:
            with contextlib.suppress(OSError):  # the one that listed them is among them
                os.close(file)


def _run(terms: SupervisorTerms, launch: Launch) -> JobOutcome:
    deadline_s = time.monotonic() + (terms.walltime_s or float("inf"))
    if signal.SIGTERM in signal.sigpending():
        return JobOutcome(time.time(), None, STOPPED)
    try:
        if launch.umask is not None:
            os.umask(launch.umask)
        os.chdir(launch.workdir)
        output = os.open(
            launch.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o666
        )
    except OSError as error:
        return JobOutcome(time.time(), None, NEVER_RAN, f"{error.filename}: {error.strerror}")
    try:
        child = _spawn(launch, output)
    except OSError as error:
        os.write(
            output,
            f"windrow: {launch.command[0]}: {error.strerror}\n".encode(errors="surrogateescape"),
        )
        return JobOutcome(time.time(), 127 if error.errno == errno.ENOENT else 126, "")
    os.close(output)
    os.chdir("/")
    return _watch(child, deadline_s, terms.grace_s)


def _spawn(launch: Launch, output: int) -> int:
    """Start the command as the leader of a session of its own. OSError if it cannot be
    started."""
    # The search path is the job's, but the C library takes it from the caller.
    os.putenv("PATH", launch.environment.get("PATH", os.defpath))
    return os.posix_spawnp(
        launch.command[0],
        launch.command,
        launch.environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=_RESET,
    )


def _watch(child: int, deadline_s: float, grace_s: float) -> JobOutcome:
    """Wait for the command's end, and hasten it if time is up or it is asked for."""
    stop = ""
    step = signal.SIGTERM
    while not _has_ended(child):
        left_s = min(max(0.0, deadline_s - time.monotonic()), _LONGEST_NAP_S)
        got = signal.sigtimedwait(_SIGNALS, left_s)
        is_wanted_gone = got is not None and got.si_signo == signal.SIGTERM and not stop
        if _has_ended(child) or not (is_wanted_gone or time.monotonic() >= deadline_s):
            continue
        stop = stop or (STOPPED if is_wanted_gone else WALLTIME)
        _signal_group(child, step)
        deadline_s = time.monotonic() + (grace_s if step is signal.SIGTERM else _KILL_AGAIN_S)
        step = signal.SIGKILL
    ended_s = time.time()
    # Nothing of a job outlives it. The group still has its leader, not yet waited for, so it is
    # still this one.
    _signal_group(child, signal.SIGKILL)
    return JobOutcome(ended_s, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stop)


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(
        PermissionError
    ):  # a command that became another user's is out of reach
        os.killpg(leader, number)


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _write(file: Path, content: dict[str, object]) -> None:
    """Write a file whole. A full disk may get room again, and an exit code is worth waiting for."""
    give_up_s = time.monotonic() + _WRITE_LIMIT_S
    while True:
        try:
            with replacing(file, lasting=False) as draft:
                draft.write(json.dumps(content).encode())
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or time.monotonic() > give_up_s:
                raise
            time.sleep(1.0)
        else:
            return


def _claim_file(folder: Path, job: int) -> Path:
    return folder / "jobs" / f"{job}.claim"


def _exit_file(folder: Path, job: int) -> Path:
    return folder / "jobs" / f"{job}.exit"
