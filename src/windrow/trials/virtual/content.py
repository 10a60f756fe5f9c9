"""What files of a virtual world hold, and what they would hold in a perfect one.

Law: a file is the hash of its name, of the command that made it, and of what that command read,
where it read it and when it did. So whatever is wrong with an input, stale, half or of another
version, is in all that follows from it, and a file is right if and only if it is what it would be
if nothing had ever gone wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from windrow.model import Runnable, Task

HALF = "half"
"""What a task writes at first into each of its files."""


def made(command: Sequence[str], read: Sequence[str], name: str) -> str:
    """What this command writes into the file of this name when it has read these."""
    return f"whole {sha256(repr((tuple(command), tuple(read), name)).encode()).hexdigest()[:16]}"


def earlier(name: str) -> str:
    """What an earlier run, of other commands, left under this name."""
    return made(("earlier",), (), name)


def content(path: str | Path) -> str | None:
    """What is in the file; None if there is none."""
    try:
        with open(path) as file:  # noqa: PTH123  (on the way of every task)
            return file.read()
    except OSError:
        return None


def _outputs(task: Task, command: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """What a task makes of what it reads."""
    read = [known.get(Path(name).name, "") for name in task.inputs]
    return {name: made(command, read, name) for name in (Path(f).name for f in task.outputs)}


def perfect(runnable: Runnable) -> Mapping[str, str]:
    """What each file would hold in a perfect world, by its last name: no two tasks make files of
    the same."""
    workflow = runnable.workflow
    found = dict[str, str]()
    waits = [len(workflow.parents.of(task)) for task in range(len(workflow))]
    ready = [task for task, parents in enumerate(waits) if not parents]
    while ready:
        task = workflow.task(number := ready.pop())
        found |= _outputs(task, runnable.steps[number].command, found)
        ready += workflow.children.freed_by(number, waits)
    return found
