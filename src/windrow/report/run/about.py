"""What the page of a run says beside what its records tell: commands, logs, what was run by whom.

A simulated run has nothing of it. `about` reads the run's folder; all else is values.
"""

from __future__ import annotations

import os
import pwd
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.model import Step, format_duration
from windrow.story.states import ACTIVE, RunState, TaskState

if TYPE_CHECKING:
    from windrow.app.facts import RunFacts
    from windrow.app.runs import RunView
    from windrow.story.figures import RecordedRun
    from windrow.trials.background import Background
    from windrow.trials.replay import WhatIf


_SHELLS = ("bash", "sh")


@dataclass(frozen=True, slots=True)
class About:
    """Of one run. `out` is the folder of logs, `logs` are the names of those that exist."""

    steps: Sequence[Step] = ()
    out: str = ""
    logs: frozenset[str] = frozenset()
    provenance: Sequence[tuple[str, str]] = ()
    reports_every_s: float = 0.0
    """How often the page is written again while the run is active; 0: it is written once."""
    left_s: float | None = None
    """How long the run will need yet, if that is known."""
    warnings: Sequence[str] = field(default=())
    """What keeps the run from going on."""
    around: Background | None = None
    """What others did on the nodes, as far as the run saw it."""
    what_if: WhatIf | None = None
    """What other strategies would have come to, if that was asked for."""
    can_replay: bool = False
    """Whether it can be asked for."""

    def log(self, task: int, attempt: int) -> str:
        """Where what this attempt printed is; empty if it printed nothing."""
        name = f"{task}.{attempt}"
        if name in self.logs:
            return f"{self.out}/{name}"
        return ""

    def command(self, task: int) -> str:
        """What is executed, as a shell would take it; empty if the run is simulated."""
        if task >= len(self.steps):
            return ""
        match self.steps[task].command:
            case (shell, *_, "-c", code) if shell.rpartition("/")[2] in _SHELLS:
                return code  # as it is in the workflow file
            case command:
                return shlex.join(command)


NOTHING = About()


def _names_in(folder: Path) -> frozenset[str]:
    try:
        return frozenset(entry.name for entry in os.scandir(folder))
    except OSError:
        return frozenset()


def about(told: RunView, now_s: float, every_s: float = 0.0) -> About:
    """All of it, as it is now."""
    out = told.paths.folder.out
    left_s = told.left_s(now_s) if told.state == RunState.RUNNING else None
    around = what_if = None
    can_replay = told.paths.seen.exists()
    if can_replay:
        from windrow.trials import replay  # noqa: PLC0415  (most runs on this machine have nothing of it)

        around = replay.around(told)
        what_if = replay.kept(told.paths, told.story.last_s)
    return About(
        steps=told.runnable.steps,
        out=str(out),
        logs=_names_in(out),
        provenance=tuple(_provenance(told)),
        reports_every_s=every_s,
        left_s=left_s,
        warnings=[line.removeprefix("warning: ") for line in told.warnings()],
        around=around,
        what_if=what_if,
        can_replay=can_replay and told.state not in ACTIVE,
    )


def _provenance(told: RunView) -> Iterator[tuple[str, str]]:
    """What was run, by whom, where, with what, in which versions."""
    facts = told.facts
    yield "workflow", f"{told.story.workflow.name}, from {facts.workflow}"
    yield "command line", facts.origin.command or "not recorded"
    yield "working folder", facts.origin.folder or "not recorded"
    yield "run folder", str(told.paths.path)
    yield (
        "user and host",
        f"{_owner(told)} on {facts.origin.host or 'a host that was not recorded'}",
    )
    yield "created", moment(facts.created_s)
    yield from _ends(told)
    yield from _choices(facts)
    yield from _versions(facts)
    yield "as linked data", f"windrow report {shlex.quote(told.paths.name)} --crate FOLDER"


def _ends(told: RunView) -> Iterator[tuple[str, str]]:
    if told.story.begun_s is not None:
        yield "first decision", moment(told.story.begun_s)
    if told.state not in ACTIVE:
        yield "last event", moment(told.story.last_s)


def _choices(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """What the run was told to do."""
    request = facts.request
    yield "queue", facts.on
    settings = ", ".join(f"{name}={value}" for name, value in sorted((request.shell or {}).items()))
    if settings:
        yield "settings of the queue", settings
    yield "strategy", f"{request.strategy}, aiming at {request.objective}"
    yield "limits", f"at most {request.cap} jobs at a time, margin {request.margin:g}"
    if request.deadline_s is not None:
        yield "deadline", format_duration(request.deadline_s)
    yield "nodes", f"{facts.node_cores} cores each"


def _versions(facts: RunFacts) -> Iterator[tuple[str, str]]:
    yield "Windrow", facts.version
    if facts.origin.commit:
        yield "commit of the workflow's folder", facts.origin.commit
    if facts.continues:
        yield "continues", facts.continues
    if facts.continued_by:
        yield "continued by", facts.continued_by


def moment(at_s: float) -> str:
    """An instant with its time zone, as people anywhere can read it."""
    if at_s <= 0:
        return "not recorded"
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at_s))


def _owner(told: RunView) -> str:
    uid = told.paths.path.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def next_commands(told: RecordedRun) -> list[tuple[str, str]]:
    """What to type next about a run as it stands, with why; the most useful first."""
    name = shlex.quote(told.name)
    ids = told.story.workflow.ids
    tasks = enumerate(told.story.tasks)
    failed = [shlex.quote(ids[n]) for n, task in tasks if task.state is TaskState.FAILED]
    found = [*_for_the_run(told.state, name)]
    for first in failed[:1]:
        if told.state == RunState.RUNNING:
            found.append((f"windrow retry {first} --run {name}", "tries the task again at once"))
        found.append((f"windrow logs {first} --run {name}", "prints all that the task printed"))
    return found


def _for_the_run(state: str, name: str) -> Iterator[tuple[str, str]]:
    if state == RunState.FAILED:
        yield (
            f"windrow resume {name}",
            "once the cause is fixed, in the workflow file or elsewhere: runs what is not done",
        )
    elif state in (RunState.INTERRUPTED, RunState.STOPPED):
        yield f"windrow resume {name}", "continues it"
    elif state == RunState.RUNNING:
        yield f"windrow watch {name}", "shows it live in a terminal"
