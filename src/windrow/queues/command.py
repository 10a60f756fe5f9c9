"""Running a batch system's commands: the one place that spawns sbatch, squeue, qsub and their like.

(Inside an allocation, agents start steps on their nodes by themselves: `agent.hosts`,
`agent.remote`.)

Rule 1: arguments go to the program as a list; no shell sees them.
Rule 2: every command has a time limit. What a timeout means depends on the command, so it is an
answer, not an error.
"""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow.errors import UserError
from windrow.queues.port import QueueError


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed and how it ended. `code` is None if it was killed at its time
    limit."""

    code: int | None
    out: str
    err: str

    @property
    def is_good(self) -> bool:
        """Whether the command says that it succeeded."""
        return self.code == 0

    @property
    def words(self) -> str:
        """The command's own words on what went wrong, on one line."""
        if self.code is None:
            return "no answer in time"
        lines = [line.strip() for line in (self.err or self.out).splitlines()]
        return "; ".join(line for line in lines if line) or f"exit code {self.code} and no message"


class Run(Protocol):
    """How commands are run; tests put recorded answers in its place."""

    def __call__(
        self, argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float
    ) -> Answer:
        """Run one command to its end or its time limit."""


def user_name() -> str:
    """Who asks, as the batch system sees it: by user id, whatever the environment says.

    In a container the id may have no name; then it stands for itself.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def run(argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float) -> Answer:
    """Run one command. Raises UserError if there is no such program, QueueError if this machine
    cannot start it now."""
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            env=dict(env),
            timeout=timeout_s,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            # it may hold the run's lock until it ends (records/lock.py); all else is not
            # inheritable
            close_fds=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "", "")
    except (FileNotFoundError, PermissionError) as error:
        raise UserError(
            f"cannot run {argv[0]}: {error.strerror}; run Windrow where the batch system's "
            "commands work"
        ) from error
    except OSError as error:  # no more processes for this user, say, or no memory; it did not begin
        raise QueueError(f"cannot run {argv[0]}: {error.strerror}") from error
    return Answer(done.returncode, done.stdout, done.stderr)
