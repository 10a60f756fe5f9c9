"""A run on a whole terminal, redrawn while it runs: `windrow watch`.

Rule 1: it only shows; what changes a run is a command, which the screen names. Rule 2: what is
shown follows from the story, the size of the terminal and what the person looks at (`Look`), and
nothing else: `lines` is pure. Rule 3: failures stand above what goes well.
"""

from __future__ import annotations

import os
import select
import shlex
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.cli.run_screen import clock, span
from windrow.errors import printable
from windrow.story.states import ACTIVE, AttemptState, JobStage, RunState, TaskState
from windrow.story.waiting import waits_because

if TYPE_CHECKING:
    from rich.text import Text

    from windrow.app.runs import RunView
    from windrow.story.story import JobStory

_LOOK_S = 0.5
_SELDOM = 4
"""How many times as long as it took to draw a screen, at least, it stays; a key does not wait."""
_BAR = 24
_NARROW_BAR = 12
_NARROW = 80
_MOST_FAILURES = 4
_KEYS = {
    "o": "overview",
    "f": "failed",
    "j": "jobs",
    "t": "tasks",
}
_HELPS = (
    "q leave (the run continues)  o overview  f failed  j jobs  t tasks  / search  ↑ ↓ scroll",
    "q leave (the run continues)  o overview  f failed  j jobs  t tasks  / search",
    "q leave  o overview  f failed  j jobs  t tasks  / search",
)
_STYLES: dict[str, str] = {
    TaskState.FAILED: "bold red",
    TaskState.BLOCKED: "yellow",
    TaskState.RUNNING: "cyan",
    TaskState.FINISHED: "green",
    JobStage.KILLED: "red",
    JobStage.WAITING: "yellow",
}


@dataclass(frozen=True, slots=True)
class Look:
    """What the person looks at: a list, from which line on, and which names."""

    what: str = "overview"
    top: int = 0
    query: str = ""
    is_typing: bool = False
    is_narrow: bool = False
    """Whether lines have little room."""


def pressed(look: Look, key: str) -> Look | None:
    """What is looked at after a key; None: the person leaves."""
    if look.is_typing:
        return _typed(look, key)
    moves = {"up": -1, "down": 1, "page up": -10, "page down": 10}
    if key in moves:
        return replace(look, top=max(0, look.top + moves[key]))
    if key in _KEYS:
        return replace(look, what=_KEYS[key], top=0)
    if key == "/":
        return replace(look, what="tasks", query="", is_typing=True, top=0)
    if key in ("q", "\x03", "\x04"):
        return None
    if key == "escape":
        return Look()
    return look


def _typed(look: Look, key: str) -> Look:
    if key in ("\r", "\n"):
        return replace(look, is_typing=False)
    if key in ("escape", "\x03"):
        return replace(look, is_typing=False, query="")
    if key in ("\x7f", "\x08"):
        return replace(look, query=look.query[:-1])
    if len(key) == 1 and key.isprintable():
        return replace(look, query=look.query + key)
    return look


def lines(told: RunView, look: Look, now_s: float, width: int, height: int) -> list[Text]:
    """The screen, exactly `height` lines."""
    head = [*_head(told, now_s, width), *_failures(told), *_warnings(told)]
    body = list(_BODIES[look.what](told, replace(look, is_narrow=width < _NARROW), now_s))
    room = max(1, height - len(head) - 2)
    top = min(look.top, max(0, len(body) - room))
    shown = [*head, _line(""), *body[top : top + room]]
    shown += [_line("")] * (height - 1 - len(shown))
    foot = next((one for one in _HELPS if len(one) <= width), _HELPS[-1])
    if look.is_typing:
        foot = f"search: {look.query}█   Enter ends, Escape clears"
    elif len(body) > room:
        foot = f"{top + 1} to {min(len(body), top + room)} of {len(body)}  {foot}"
    shown = [*shown[: height - 1], _line(foot, "reverse")]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    return shown


def _line(words: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(printable(words), style, no_wrap=True)


def _head(told: RunView, now_s: float, width: int) -> Iterator[Text]:
    """How it stands, in colour, and when it should end, on a line of its own if need be."""
    story = told.story
    colours = {RunState.COMPLETE: "bold green", RunState.FAILED: "bold red"}
    state = told.state
    style = next((colour for one, colour in colours.items() if one == state), "bold")
    words = f"{told.paths.name}  {state}  {story.count(TaskState.FINISHED)}/{len(story.tasks)}"
    for one in (TaskState.FAILED, TaskState.BLOCKED, TaskState.RUNNING):
        if number := story.count(one):
            words += f"  {number} {one}"
    yield _line(words, style)
    end_s = now_s if state in ACTIVE else story.last_s
    gone = "not started" if story.begun_s is None else f"{span(end_s - story.begun_s)} gone"
    on = f"{told.facts.request.strategy} on {told.facts.on}"
    left_s = told.left_s(now_s) if state == RunState.RUNNING else None
    ends = ""
    if left_s is not None:
        ends = f"done about {clock(now_s + left_s)}, in {span(left_s)}"
    words = f"{on}, started {clock(story.begun_s)}, {gone}"
    if not ends:
        yield _line(words)
    elif len(words) + 3 + len(ends) <= width:
        yield _line(f"{words}   {ends}")
    else:
        yield _line(words)
        yield _line(ends)


def _failures(told: RunView) -> Iterator[Text]:
    story = told.story
    ids = story.workflow.ids
    failed = [
        n for n, task in enumerate(story.tasks) if task.state is TaskState.FAILED and task.attempts
    ]
    for number in failed[:_MOST_FAILURES]:
        yield _failure(told, number)
    if len(failed) > _MOST_FAILURES:
        yield _line(f"  and {len(failed) - _MOST_FAILURES} more: press f", "red")
    if failed:
        first = shlex.quote(ids[failed[0]])
        name = shlex.quote(told.paths.name)
        yield _line(f"  windrow logs {first} --run {name}")
        if told.state not in ACTIVE:
            yield _line(f"  windrow resume {name}: once the cause is fixed")


def _failure(told: RunView, number: int) -> Text:
    last = told.story.tasks[number].attempts[-1]
    said = last.tail.strip().splitlines()[-1:]
    words = "".join(f": {line}" for line in said)
    return _line(f"✗ {told.story.workflow.ids[number]}  {last.why}{words}", "bold red")


def _warnings(told: RunView) -> Iterator[Text]:
    for words in told.warnings():
        yield _line(words, "yellow")


def _overview(told: RunView, look: Look, now_s: float) -> Iterator[Text]:
    """Kinds with how far they are, then what runs, then jobs that are in the system."""
    yield from _kinds(told, _NARROW_BAR if look.is_narrow else _BAR)
    running = list(_running(told, now_s))
    if running:
        yield _line("")
        yield _line("running", "bold")
        yield from running
    alive = [n for n, job in told.story.jobs.items() if job.outcome is None]
    if alive:
        yield _line("")
        yield from _job_lines(told, alive, now_s)


_SIGNS = ((TaskState.FINISHED, "█"), (TaskState.RUNNING, "▒"), (TaskState.FAILED, "✗"))


def _draw_states(line: Text, found: Mapping[TaskState, int], total: int, room: int) -> None:
    """A bar of what is done, runs and failed, of that many characters; a single failure shows,
    too."""
    cells = 0
    for state, sign in _SIGNS:
        many = room * found[state] // total
        if state is TaskState.FAILED:
            many = ceil(room * found[state] / total)
        many = min(many, room - cells)
        cells += many
        line.append(sign * many, _STYLES[state])
    line.append("·" * (room - cells))


def _kinds(told: RunView, room: int) -> Iterator[Text]:
    from rich.text import Text

    story = told.story
    states: dict[str, dict[TaskState, int]] = defaultdict(lambda: defaultdict(int))
    ran: dict[str, list[float]] = defaultdict(list)
    for kind, task in zip(story.workflow.kinds, story.tasks, strict=True):
        states[kind][task.state] += 1
        last = task.last
        if last is not None and last.outcome is AttemptState.FINISHED and last.ended_s is not None:
            ran[kind].append(last.ended_s - last.started_s)
    width = min(24, max(map(len, states), default=0))
    for kind, found in states.items():
        total = sum(found.values())
        line = _line(f"{(kind or 'task')[:width]:<{width}}  ")
        _draw_states(line, found, total, room)
        line.append(f"  {found[TaskState.FINISHED]}/{total}")
        if ran[kind]:
            line.append(f"  {span(sum(ran[kind]) / len(ran[kind]))} each")
        if found[TaskState.FAILED]:
            line.append(Text(f"  {found[TaskState.FAILED]} failed", _STYLES[TaskState.FAILED]))
        yield line


def _running(told: RunView, now_s: float) -> Iterator[Text]:
    """Tasks that run, the longest first."""
    story = told.story
    found = [
        (now_s - task.attempts[-1].started_s, number)
        for number, task in enumerate(story.tasks)
        if task.state is TaskState.RUNNING and task.attempts
    ]
    for gone_s, number in sorted(found, reverse=True)[:8]:
        attempt = story.tasks[number].attempts[-1]
        hosts = story.jobs[attempt.job].hosts
        node = min(attempt.nodes, default=0)
        where = hosts[node] if node < len(hosts) else f"node {node}"
        expected = span(float(story.workflow.runtime_s[number]))
        words = f"  {story.workflow.ids[number]}  {span(gone_s)} of {expected}"
        yield _line(f"{words}  job {attempt.job}, {where}", _STYLES[TaskState.RUNNING])
    if len(found) > 8:
        yield _line(f"  and {len(found) - 8} more run")


def _jobs(told: RunView, look: Look, now_s: float) -> Iterator[Text]:
    del look
    yield from _job_lines(told, sorted(told.story.jobs), now_s)


def _job_lines(told: RunView, numbers: list[int], now_s: float) -> Iterator[Text]:
    said = {p.job: p for p in told.predictions() if p.used}
    yield _line(f"{'job':>5}  {'id':<12} {'state':<10} {'nodes':>5} {'tasks':>9}  start", "bold")
    for number in numbers:
        job = told.story.jobs[number]
        done = sum(
            told.story.tasks[task].state is TaskState.FINISHED for task in job.plan.all_tasks
        )
        tasks = f"{done}/{len(job.plan.all_tasks)}"
        start = _start(job, said[number].start_s if number in said else None, now_s)
        words = f"{number:>5}  {job.id or '':<12} {job.state:<10} {job.plan.nodes:>5}"
        words += f" {tasks:>9}  {start}"
        why = job.note or waits_because(job)
        yield _line(words + (f"  {why}" if why else ""), _STYLES.get(job.state, ""))


def _start(job: JobStory, said_s: float | None, now_s: float) -> str:
    """When it started, with by how much the prediction missed; or when it should."""
    if job.started_s is not None:
        words = clock(job.started_s)
        if said_s is not None and abs(job.started_s - said_s) >= 1:
            sign = "+" if job.started_s > said_s else "-"
            words += f" ({sign}{span(abs(job.started_s - said_s))})"
        return words
    if said_s is None or job.outcome is not None:
        return ""
    if said_s < now_s:
        return f"predicted {clock(said_s)}, {span(now_s - said_s)} late"
    return f"predicted {clock(said_s)}, in {span(said_s - now_s)}"


def _tasks(told: RunView, look: Look, now_s: float) -> Iterator[Text]:
    """All that a search finds; those that failed and run first."""
    story = told.story
    ids = story.workflow.ids
    rank = {TaskState.FAILED: 0, TaskState.RUNNING: 1}
    query = look.query.lower()
    found = [n for n in range(len(ids)) if query in ids[n].lower()]
    for number in sorted(found, key=lambda n: (rank.get(story.tasks[n].state, 2), n)):
        task = story.tasks[number]
        words = f"{ids[number]:<28} {task.state:<10}"
        if task.last is not None:
            end_s = now_s if task.last.ended_s is None else task.last.ended_s
            words += (
                f" job {task.last.job:<5} {span(end_s - task.last.started_s):>8}  {task.last.why}"
            )
        yield _line(words, _STYLES.get(task.state, ""))
    if not found:
        yield _line(f"no task has {look.query!r} in its name")


def _failed(told: RunView, look: Look, now_s: float) -> Iterator[Text]:
    """Each task that failed, with the last lines that it printed."""
    del look, now_s
    for number, task in enumerate(told.story.tasks):
        if task.state is TaskState.FAILED and task.attempts:
            yield _failure(told, number)
            for line in task.attempts[-1].tail.strip().splitlines()[-8:]:
                yield _line(f"    {line}")
    if not told.story.count(TaskState.FAILED):
        yield _line("no task failed")


_BODIES = {"overview": _overview, "jobs": _jobs, "tasks": _tasks, "failed": _failed}


def watch(told: RunView) -> int:
    """Show the run until the person leaves; 0, or 1 if the run is over and not complete."""
    from rich.console import Group
    from rich.live import Live

    console = terminal.console()
    look: Look | None = Look()
    with _keys() as key, Live(console=console, screen=True, auto_refresh=False) as live:
        while look is not None:
            began_s = time.monotonic()
            told.refresh()
            size = console.size
            now_s = time.time()
            live.update(Group(*lines(told, look, now_s, size.width, size.height)), refresh=True)
            pause_s = max(_LOOK_S, _SELDOM * (time.monotonic() - began_s))
            for one in key(pause_s):
                look = pressed(look, one)
                if look is None:
                    break
    return 1 if told.state not in (*ACTIVE, RunState.COMPLETE) else 0


@contextmanager
def _keys() -> Iterator[Keys]:
    """Keys as they are pressed, without Enter; the terminal is as it was afterwards."""
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield Keys(file)
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


_SEQUENCES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1bOA": "up",
    "\x1bOB": "down",
}


@dataclass(frozen=True, slots=True)
class Keys:
    """What is typed at a terminal."""

    file: int

    def __call__(self, patience_s: float) -> list[str]:
        """The keys pressed within this time, as soon as there is one."""
        if not select.select([self.file], [], [], patience_s)[0]:
            return []
        typed = os.read(self.file, 1024).decode(errors="replace")
        if not typed:  # the terminal is gone
            return ["q"]
        return named(typed)


def named(typed: str) -> list[str]:
    """Keys by their names: characters as they are, others in words."""
    found = []
    while typed:
        for sequence, name in _SEQUENCES.items():
            if typed.startswith(sequence):
                found.append(name)
                typed = typed[len(sequence) :]
                break
        else:
            found.append("escape" if typed[0] == "\x1b" else typed[0])
            typed = typed[1:]
    return found
