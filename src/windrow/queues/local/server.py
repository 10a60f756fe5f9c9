"""The server of the queue on this machine: starts waiting jobs and takes note of their ends. Run by
clients.

Rule 1: it may be killed at any instruction. All it knows is in the store and in supervisors' files;
the next server adopts what runs. Rule 2: it sleeps until a client knocks or a supervisor ends, and
never polls. Rule 3: it leaves when nothing has been left to do for a while.
"""

import contextlib
import os
import select
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from windrow.agent.machine import SHARES, Identity, identity
from windrow.errors import WindrowError
from windrow.files import kill_marked
from windrow.queues.local import supervisor
from windrow.queues.local.plan import jobs_to_start
from windrow.queues.local.rendezvous import (
    JOB_VARIABLES,
    job_id,
    lock,
    make_folder,
    open_door,
    sign,
)
from windrow.queues.local.store import LocalSettings, QueuedJob, QueueStore
from windrow.queues.local.supervisor import (
    NEVER_RAN,
    STOPPED,
    WALLTIME,
    JobOutcome,
    SupervisorTerms,
    claim,
)
from windrow.queues.port import JobState

LOOK_AHEAD = 1000
"""How many waiting jobs a pass looks at."""
_MEMORY_S = 30 * 86_400.0
_SCRUB_AGAIN_S = 1.0
_NOBODY = Identity(0, 0)


@dataclass(frozen=True, slots=True)
class Watched:
    """A supervisor, and a file that becomes readable when it has ended."""

    who: Identity
    file: int


class QueueServer:
    """One life of the server, from the lock to the last job."""

    def __init__(self, folder: Path, door: int) -> None:
        self._folder = folder
        self._door = door
        self._store = QueueStore(folder / "queue.sqlite")
        self._boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self._supervisors: dict[int, Watched] = {}
        self._told: set[int] = set()  # jobs whose supervisors were told to stop

    def serve(self) -> None:
        """Serve until there has been nothing to do for a while."""
        self._sweep()
        self._adopt()
        while True:
            self._pass()
            if not self._store.scrub():
                self._sleep(_SCRUB_AGAIN_S)
                continue
            if self._store.is_busy():
                idle_s = None
            else:
                idle_s = self._settings().idle_s
            if self._sleep(idle_s) or idle_s is None:
                continue
            os.close(self._door)
            if not self._store.is_busy():
                self._store.has_begun([])
                self._store.scrub()
                return
            self._door = open_door(self._folder)

    def _pass(self) -> None:
        """Ends, wishes and starts, in one transaction: writing to disk is what takes time."""
        with self._store.together():
            over = self._settle()
            self._remove_unwanted()
            starting = self._choose()
            self._store.start(starting, time.time(), time.monotonic(), self._boot)
        for job in over:
            supervisor.clear(self._folder, job.id, tries=job.keepers)
        self._fork_supervisors(starting)

    def _settings(self) -> LocalSettings:
        return self._store.settings() or LocalSettings(nodes=None)

    def _sleep(self, at_most_s: float | None) -> bool:
        """Sleep until a client knocks or a supervisor ends; False if the time was up."""
        poll = select.poll()
        for file in (self._door, *(watched.file for watched in self._supervisors.values())):
            poll.register(file, select.POLLIN)
        happened = poll.poll(None if at_most_s is None else at_most_s * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self._door, 65_536)
        return bool(happened)

    def _sweep(self) -> None:
        """Forget jobs that are long over, and remove files that earlier servers had no time to."""
        self._store.forget(time.time() - _MEMORY_S)
        begins = {file.name.partition(".")[0] for file in (self._folder / "jobs").iterdir()}
        numbers = {
            int(begin) for begin in begins if begin.isdecimal()
        }  # a network file system has files of its own
        known = {job.id: job for job in self._store.jobs(numbers)}
        for number in numbers:
            if number not in known:
                supervisor.clear(self._folder, number, tries=1)
            elif known[number].state.is_over:
                supervisor.clear(self._folder, number, tries=known[number].keepers)

    # -- adopting ----------------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Take over what an earlier server started. What it meant to start and was not claimed is
        started now."""
        unclaimed: list[int] = []
        claimed: list[int] = []
        for job in self._store.running():
            if job.boot != self._boot:
                self._store.finish(
                    job.id, JobState.NODE_FAILED, time.time(), None, "the machine was restarted"
                )
            elif supervisor.claimant(self._folder, job.id) is None:
                unclaimed.append(job.id)
            else:
                claimed.append(job.id)
        self._store.start(unclaimed, time.time(), time.monotonic(), self._boot)
        self._store.has_begun(claimed)
        self._fork_supervisors(unclaimed)

    def _watch(self, job: int, who: Identity) -> bool:
        """Watch a supervisor; False if it is gone."""
        try:
            file = os.pidfd_open(who.pid)
        except ProcessLookupError:
            return False
        if identity(who.pid) == who:  # looked up after opening, so it is what was opened
            self._supervisors[job] = Watched(who, file)
            return True
        os.close(file)
        return False

    # -- ending ------------------------------------------------------------------------------------

    def _let_go(self, job_id: int) -> None:
        """Of a supervisor that has ended."""
        file = self._supervisors.pop(job_id).file
        with contextlib.suppress(ChildProcessError):  # an adopted one is not our child
            os.waitid(os.P_PIDFD, file, os.WEXITED)
        os.close(file)
        self._told.discard(job_id)

    def _settle(self) -> list[QueuedJob]:
        """Take note of jobs whose supervisors have ended, and return them."""
        over = []
        for job in self._store.running():
            watched = self._supervisors.get(job.id)
            if watched is not None and not select.select([watched.file], [], [], 0)[0]:
                continue
            if watched is not None:
                self._let_go(job.id)
            who = supervisor.claimant(self._folder, job.id)
            # Not the one we watched: an earlier server's supervisor was quicker, or there was no
            # server for a while.
            if (
                who is None
                or (watched is not None and who == watched.who)
                or not self._watch(job.id, who)
            ):
                self._finish(job)
                over.append(job)
        return over

    def _finish(self, job: QueuedJob) -> None:
        """A job's supervisor has ended: by itself, after writing how it went, or not."""
        told = supervisor.outcome(self._folder, job.id)
        if told is None:
            claim(
                self._folder, job.id, _NOBODY
            )  # if it died before it claimed the job, no one may any more
            _kill_remains(self._folder, job.id)
            told = JobOutcome(time.time(), None, STOPPED, "the process that watched it was killed")
        elif (
            told.code is not None and told.code < 0
        ):  # it could not end what it had started in other groups
            _kill_remains(self._folder, job.id)
        state, code, reason = _verdict(told, job.is_unwanted)
        self._store.finish(job.id, state, told.ended_s, code, reason)

    def _remove_unwanted(self) -> None:
        """Cancel what should go: waiting jobs at once, running ones by way of their supervisors."""
        self._store.drop_unwanted(time.time())
        for job in self._store.unwanted():
            if job.id in self._supervisors and job.id not in self._told:
                self._told.add(job.id)
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._supervisors[job.id].file, signal.SIGTERM)

    # -- starting ----------------------------------------------------------------------------------

    def _choose(self) -> list[int]:
        """The waiting jobs that start now."""
        waiting = self._store.waiting(LOOK_AHEAD)
        if not waiting:
            return []
        settings = self._settings()
        if settings.nodes is None:  # jobs share the machine, and their agents see to that
            return [job.id for job in waiting]
        running = [job.held for job in self._store.running()]
        wanted = [job.wanted for job in waiting]
        return [
            job.job
            for job in jobs_to_start(
                settings.policy, settings.nodes, running, wanted, time.monotonic()
            )
        ]

    def _fork_supervisors(self, numbers: list[int]) -> None:
        """Start jobs that are on disk as running. A server that dies before has its successor do
        it."""
        if not numbers:
            return
        settings = self._settings()
        for job in self._store.jobs(numbers):
            launch = self._store.launch(job.id)
            outer = {
                name: value
                for name, value in launch.environment.items()
                if name not in JOB_VARIABLES
            }
            own = {
                "WINDROW_QUEUE": "local",
                "WINDROW_QUEUE_FOLDER": str(self._folder),
                "WINDROW_JOB_ID": job_id(self._folder, job.id),
                "WINDROW_JOB_NODES": str(job.nodes),
                **({SHARES: str(self._folder / "shares")} if settings.nodes is None else {}),
            }
            terms = SupervisorTerms(self._folder, job.id, job.walltime_s, settings.grace_s)
            pid = supervisor.fork_supervisor(terms, replace(launch, environment={**outer, **own}))
            who = identity(pid)
            assert who is not None, "a child stays until it is waited for"
            self._supervisors[job.id] = Watched(who, os.pidfd_open(pid))
        self._store.has_begun(
            [number for number in numbers if supervisor.claimant(self._folder, number) is not None]
        )


def _verdict(told: JobOutcome, is_unwanted: bool) -> tuple[JobState, int | None, str]:
    """State, exit code and reason, from what a supervisor wrote."""
    if told.code is None:
        code = None
    elif told.code >= 0:
        code = told.code
    else:
        code = 128 - told.code
    if told.stop == WALLTIME:
        return JobState.TIMED_OUT, code, "walltime"
    if told.stop == STOPPED and is_unwanted:
        return JobState.CANCELLED, code, "cancelled"
    if told.stop in (STOPPED, NEVER_RAN):
        return JobState.KILLED, code, told.detail or "someone stopped it"
    if told.code == -signal.SIGKILL:
        return JobState.KILLED, code, "SIGKILL from outside, as when memory runs out"
    if told.code is None or told.code >= 0:
        reason = ""
    else:
        reason = f"signal {-told.code}"
    return JobState.ENDED, code, reason


def _kill_remains(folder: Path, job: int) -> None:
    """Kill what is left of a job that lost its supervisor: processes that carry its mark in their
    environment."""
    marks = {
        os.fsencode(f"WINDROW_QUEUE_FOLDER={folder}"),
        f"WINDROW_JOB_ID={job_id(folder, job)}".encode(),
    }
    kill_marked(marks)


def _daemonize(folder: Path, lock_file: int) -> None:
    """Let the starter continue, our process id in the lock; from now on words go to a file."""
    if pid := os.fork():
        sign(lock_file, pid)
        os._exit(0)
    log = os.open(folder / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.fchmod(log, 0o600)
    os.umask(0o077)  # claims and exit codes are private, too; jobs have their submitters' umask
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir("/")


def main(folder: Path) -> int:
    """Become the server of this folder and return to the caller's shell; or find that there is
    one."""
    try:
        make_folder(folder)
        lock_file = lock(folder)
        if lock_file is None:
            return 0
        QueueStore(folder / "queue.sqlite").close()
        door = open_door(folder)
    except (WindrowError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    _daemonize(folder, lock_file)
    QueueServer(folder, door).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
