"""A manager in a process of its own: it lives on when the terminal closes or the program that
started it ends.

Rule: the one who starts it hears whether it lives. What it says goes to the run's `manager.log`.
"""

import subprocess
import sys
import time
from contextlib import closing

from windrow.app.runs import RunPaths
from windrow.errors import OutsideError
from windrow.records.lock import holder_of
from windrow.story.events import RunBegan
from windrow.story.journal import RunJournal

NO_RETRY = "--no-retry"
"""For the process of its own: `resume` leaves tasks alone that failed, and the workflow as it
is."""
_BIRTH_S = 30.0
_LOOK_S = 0.05


class Stillborn(OutsideError):  # noqa: N818  (it says what happened)
    """A manager ended at once. `code` is what it ended with, `said` what it said."""

    def __init__(self, paths: RunPaths, code: int, said: list[str]) -> None:
        self.code = code
        self.said = said
        super().__init__(
            f"{paths.name} does not run in the background: its manager ended at once"
            f" ({said[-1] if said else f'see {paths.log}'})"
        )


def start_manager(paths: RunPaths, *, retry: bool = True) -> None:
    """Let a process of its own manage the run. It has started, or the run is over, on return.

    `retry`: tasks that failed are tried again. Stillborn if it ends before it has started,
    OutsideError if it is not heard of.
    """
    said_bytes = paths.log.stat().st_size if paths.log.exists() else 0
    begun = _times_begun(paths)
    command = [sys.executable, "-P", "-m", "windrow.cli.main", "resume", str(paths.folder.path)]
    if not retry:
        command.append(NO_RETRY)
    with paths.log.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    until = time.monotonic() + _BIRTH_S
    while _times_begun(paths) == begun:
        code = process.poll()
        if code is not None and _times_begun(paths) == begun:
            if code == 0:
                return
            said = paths.log.read_bytes()[said_bytes:].decode(errors="replace").splitlines()
            raise Stillborn(paths, code % 256, said)
        if time.monotonic() > until:
            if holder_of(paths.lock) is not None:  # it is there, and takes its time
                break
            raise OutsideError(f"the run's manager did not start; see {paths.log}")
        time.sleep(_LOOK_S)
    process.returncode = 0  # it is on its own: no one here waits for its end, or warns of it


def _times_begun(paths: RunPaths) -> int:
    """How often the run was started or continued."""
    with closing(RunJournal.open(paths.journal)) as journal:
        return sum(1 for _ in journal.records(kinds=(RunBegan,)))
