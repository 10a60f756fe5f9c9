"""The head of a run's page: how it stands, what failed and what to type next; then where its time
went."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from html import escape

from windrow.model import format_duration
from windrow.model.wording import count, node_span, percent, span
from windrow.report.run.about import About, next_commands
from windrow.report.run.starts import misses
from windrow.story import figures
from windrow.story.states import ACTIVE, RunState, TaskState

_FAILURES = 3
_COMMAND = 400
_TONES = {
    RunState.COMPLETE: "good",
    RunState.FAILED: "bad",
    RunState.RUNNING: "going",
    RunState.STOPPING: "warn",
    RunState.STOPPED: "warn",
    RunState.INTERRUPTED: "warn",
}
_MARKS = {"good": "✓", "bad": "✗", "going": "●", "warn": "‖"}
_SEGMENTS = (
    (TaskState.FINISHED, "good"),
    (TaskState.RUNNING, "going"),
    (TaskState.FAILED, "bad"),
    (TaskState.BLOCKED, "warn"),
)


def tone_of(state: str) -> str:
    """The colour of a state, as a class of the page."""
    return next((tone for one, tone in _TONES.items() if one == state), "warn")


def head(told: figures.RecordedRun, about: About) -> str:
    """HTML: a coloured line, a bar of all tasks, then failures and commands."""
    tone = tone_of(told.state)
    story = told.story
    parts = [
        f'<header id="verdict" class="verdict t-{tone}"><p class="big">'
        f'<span aria-hidden="true">{_MARKS[tone]}</span> {escape(_verdict(told))}</p>',
        _bar(told),
        f"<p>{escape(_when(told, about))}</p>",
    ]
    if story.trouble:
        parts.append(f'<p class="why">The run gave up: {escape(story.trouble)}</p>')
    parts += [f'<p class="why">{escape(words)}</p>' for words in about.warnings]
    if not told.is_simulated:
        parts += [*_failed(told, about), *_next(told)]
    return "\n".join([*parts, "</header>"])


def _verdict(told: figures.RecordedRun) -> str:
    story = told.story
    done = story.count(TaskState.FINISHED)
    words = f"{told.state.capitalize()}: {done:,} of {count(len(story.tasks), 'task')} finished"
    if told.is_simulated:
        words = f"Simulated: done in {format_duration(told.makespan_s)}"
    for state in (TaskState.FAILED, TaskState.BLOCKED, TaskState.RUNNING):
        if number := story.count(state):
            words += f", {number:,} {state}"
    return words


def _bar(told: figures.RecordedRun) -> str:
    total = max(1, len(told.story.tasks))
    parts = "".join(
        f'<i class="t-{tone}" style="width:{100 * number / total:.3f}%" '
        f'title="{number:,} {state}"></i>'
        for state, tone in _SEGMENTS
        if (number := told.story.count(state))
    )
    return f'<div class="progress" role="img" aria-label="{escape(_verdict(told))}">{parts}</div>'


def _when(told: figures.RecordedRun, about: About) -> str:
    by = f"by {told.strategy} on {told.queue}"
    if told.is_simulated:
        by = f"by {told.strategy} on a simulated cluster"
        waited = _without_tasks(figures.visible_wait_s(told))
        return f"{by}, with {count(len(told.story.jobs), 'job')}; {waited}."
    began = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(told.begun_s))
    if told.state in ACTIVE:
        left = _left(told.until_s, about.left_s)
        return f"{by}; started {began}, {span(told.makespan_s)} so far{left}."
    return f"{by}; started {began}, took {span(told.makespan_s)}."


def _without_tasks(idle_s: float) -> str:
    if round(idle_s, 2) <= 0:
        return "some task ran all the time"
    return f"no task ran for {span(idle_s)} of it"


def _to_copy(about: About, number: int, attempt: int) -> Iterator[str]:
    if command := about.command(number):
        yield f'<dt>command</dt><dd><code class="copy">{escape(command[:_COMMAND])}</code></dd>'
    if log := about.log(number, attempt):
        yield f'<dt>log</dt><dd><code class="copy">{escape(log)}</code></dd>'


def _left(now_s: float, left_s: float | None) -> str:
    if left_s is None:
        return ""
    end = time.strftime("%H:%M:%S", time.localtime(now_s + left_s))
    return f", about {span(left_s)} left: done about {end}"


def _failed(told: figures.RecordedRun, about: About) -> Iterator[str]:
    """The first tasks that failed: what happened, the last line printed, the command, the log."""
    story = told.story
    numbers = [
        number
        for number, task in enumerate(story.tasks)
        if task.state is TaskState.FAILED and task.attempts
    ]
    for number in numbers[:_FAILURES]:
        attempt = story.tasks[number].attempts[-1]
        name = story.workflow.ids[number]
        said = attempt.tail.strip().splitlines()[-1:]
        words = f"{attempt.why or attempt.outcome}" + "".join(f": {line[:200]}" for line in said)
        yield (
            f'<p class="failure"><strong>{task_link(name)}</strong> failed in job {attempt.job}, '
            f"{escape(words)}</p>"
        )
        if lines := "".join(_to_copy(about, number, attempt.number)):
            yield f"<dl>{lines}</dl>"
    if len(numbers) > _FAILURES:
        yield f'<p class="failure">And {len(numbers) - _FAILURES:,} more tasks failed.</p>'


def _next(told: figures.RecordedRun) -> Iterator[str]:
    commands = next_commands(told)
    if commands:
        lines = "".join(
            f'<dt><code class="copy">{escape(command)}</code></dt><dd>{escape(why)}</dd>'
            for command, why in commands
        )
        yield f'<dl class="next">{lines}</dl>'


def task_link(name: str) -> str:
    """A link to a task on its own page."""
    from urllib.parse import quote  # noqa: PLC0415  (few pages have one)

    return f'<a href="#task={quote(name, safe="")}">{escape(name)}</a>'


Tile = tuple[str, str, Sequence[tuple[str, float]], str]
"""A name, a figure, the parts of a bar (class and share), and a line of small print."""


def tiles(told: figures.RecordedRun) -> str:
    """Four of them: time, queue, nodes, forecast; those that a run has."""
    return f'<div id="tiles" class="tiles">{"".join(_tile(*one) for one in _tiles(told))}</div>'


def _tile(name: str, value: str, parts: Sequence[tuple[str, float]], words: str) -> str:
    bar = "".join(
        f'<i class="t-{tone}" style="width:{100 * min(1.0, share):.2f}%"></i>'
        for tone, share in parts
        if share > 0
    )
    if bar:
        bar = f'<div class="progress" aria-hidden="true">{bar}</div>'
    return (
        f'<div class="tile"><span class="name">{escape(name)}</span>'
        f'<span class="value">{escape(value)}</span>{bar}'
        f'<span class="words">{escape(words)}</span></div>'
    )


def _tiles(told: figures.RecordedRun) -> Iterator[Tile]:
    so_far = " so far" if told.state in ACTIVE else ""
    idle_s = figures.visible_wait_s(told)
    whole_s = max(1e-9, told.makespan_s)
    yield (
        "time",
        f"{span(told.makespan_s)}{so_far}",
        (("wait", idle_s / whole_s), ("good", 1 - idle_s / whole_s)),
        _without_tasks(idle_s),
    )
    yield from _queue_tile(told)
    yield from _node_time_tile(figures.node_time(told))
    found = misses(told)
    if found:
        yield (
            "forecast of starts",
            f"{span(found.median_s)} off",
            (),
            f"median of {count(found.starts, 'start')} that decisions were based on",
        )


def _queue_tile(told: figures.RecordedRun) -> Iterator[Tile]:
    story = told.story
    waits = [figures.wait_s(job, told.until_s) for job in story.jobs.values()]
    waited_s, hidden_s = figures.queue_waits_s(told)
    words = count(len(story.jobs), "job")
    if max(waits, default=0.0) < 1:
        yield "queue", "no wait", (), words
        return
    words = f"longest wait of {words}"
    if waited_s >= 1:
        words += f"; {percent(hidden_s / waited_s)} of all waits hidden behind running tasks"
    shares: Sequence[tuple[str, float]] = ()
    if waited_s >= 1:
        shares = (("good", hidden_s / waited_s), ("wait", 1 - hidden_s / waited_s))
    yield "queue", span(max(waits)), shares, words


def _node_time_tile(used: figures.NodeTime) -> Iterator[Tile]:
    if used.allocated_s <= 0:
        return
    shares = [part / used.allocated_s for part in (used.used_s, used.idle_s, used.lost_s)]
    named = zip(("used", "idle", "lost"), shares, strict=True)
    words = ", ".join(f"{percent(share)} {name}" for name, share in named)
    if used.cpu_efficiency is not None:
        words += f"; CPU efficiency {percent(used.cpu_efficiency)}"
    parts = tuple(zip(("good", "wait", "bad"), shares, strict=True))
    yield "node time allocated", node_span(used.allocated_s), parts, words
