"""What other strategies would have come to on the same queue, as bars beside what happened."""

from __future__ import annotations

import shlex

from windrow.model import format_duration
from windrow.model.wording import count, node_span, span
from windrow.report import plot
from windrow.report.page import Time, figure, note, table
from windrow.report.plot import Axis, Frame, time_axis
from windrow.report.run.about import About
from windrow.report.run.bars import STEP, Bar, bar
from windrow.story.figures import RecordedRun
from windrow.trials.replay import Replayed, WhatIf

_LEFT = 170


def what_if(told: RecordedRun, known: About) -> str:
    """The picture and its table; how to ask for them if no one has; empty if no one can."""
    found = known.what_if
    if found is not None:
        return "\n".join([_picture(found), _table(found), note(_words(found))])
    if not known.can_replay:
        return ""
    command = f"windrow report {shlex.quote(told.name)} --what-if"
    return (
        f'<p>This run kept what it saw of its queue: <code class="copy">{command}</code> plays it '
        "again by every strategy and shows here what each would have come to.</p>"
    )


def _words(found: WhatIf) -> str:
    others = "no one else was in the queue"
    if found.others:
        others = (
            f"{count(found.others, 'job')} of others, seen for {span(found.seen_s)}, come and go "
            "as they did; they do not react to what is submitted instead, and one that was not "
            "seen to end holds its nodes for all of the time that it requested"
        )
    return (
        f"A simulation on the queue as the run saw it: {others}. Tasks take what they really took, "
        "rounded up to whole seconds; starts of jobs and of tasks take no time. So compare the "
        "replays with each other."
    )


def _table(found: WhatIf) -> str:
    heads = ["strategy", "makespan", "to this run's replay", "no task ran", "node time", "jobs"]
    base_s = found.as_it_was.makespan_s
    rows = [_row(f"{found.strategy}, as it really was", found.actual, "")]
    for one in found.by_makespan:
        name = one.strategy
        difference = _difference(one.makespan_s, base_s)
        if name == found.strategy:
            name = f"{name}, replayed"
            difference = "–"
        rows.append(_row(name, one, difference))
    return table(heads, rows)


def _row(name: str, one: Replayed, difference: str) -> list[str]:
    return [
        name,
        Time(one.makespan_s),
        difference,
        Time(one.visible_wait_s),
        node_span(one.allocated_node_s),
        f"{one.jobs:,}",
    ]


def _difference(makespan_s: float, base_s: float) -> str:
    if base_s <= 0:
        return "–"
    return f"{100 * (makespan_s - base_s) / base_s:+.0f} %"


def _picture(found: WhatIf) -> str:
    rows = [("as it really was", found.actual), *((r.strategy, r) for r in found.by_makespan)]
    longest_s = max(1.0, *(one.makespan_s for _, one in rows))
    axis = time_axis(0, longest_s, "from the beginning of the run")
    frame = Frame(_LEFT, 10, 560, STEP * len(rows), axis, Axis(0, 1, ()))
    parts = [plot.axes(frame)]
    for row, (name, one) in enumerate(rows):
        is_own = one is found.actual or name == found.strategy
        parts += bar(frame, row, _bar(name, one, is_own=is_own))
    caption = (
        "How long the run would have taken by each strategy, the quickest first; blue: the "
        "strategy of this run. Grey is the time in which no task runs."
    )
    drawn = plot.picture(960, frame.bottom + 48, "Makespans by strategy, replayed", parts)
    return figure(drawn, caption)


def _bar(name: str, one: Replayed, *, is_own: bool) -> Bar:
    words = f"{format_duration(one.makespan_s)}, {node_span(one.allocated_node_s)}"
    busy_s = one.makespan_s - one.visible_wait_s
    hint = f"{name}: {words}"
    return Bar(name, one.visible_wait_s, busy_s, one.makespan_s, words, hint, is_own)
