"""Why a run was cut as it was: for each decision, what was considered, as bars up to its end.

Each bar is a candidate: grey its wait, coloured its run, and a line where all tasks would be done,
if the strategy knew. What was chosen is marked; the others follow, the best first.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from windrow.model import format_duration
from windrow.model.wording import count, span
from windrow.report import plot
from windrow.report.page import figure, note
from windrow.report.plot import Axis, Frame, time_axis
from windrow.report.run.bars import STEP, Bar, bar
from windrow.story.figures import RecordedRun
from windrow.story.story import DecisionStory
from windrow.strategies.base import Candidate

MOST_DRAWN = 3
_MOST_BARS = 14
_LEFT = 300


def why(told: RecordedRun) -> str:
    """The decisions that had a choice, the first of them open; empty if none had."""
    story = told.story
    drawn = [one for one in story.decisions if len(_ends(one)) > 1]
    parts = []
    for decision in drawn[:MOST_DRAWN]:
        parts += [_reason(told, decision), _picture(decision)]
    if len(drawn) > MOST_DRAWN:
        parts.append(
            note(
                f"{len(drawn) - MOST_DRAWN:,} later decisions with a choice are under “Decisions”."
            )
        )
    return "\n".join(parts)


def _reason(told: RecordedRun, decision: DecisionStory) -> str:
    every = told.story.decisions
    at = span(max(0.0, decision.at_s - told.begun_s))
    head = f"decision {every.index(decision) + 1:,} of {len(every):,}, at +{at}"
    return f"<p><strong>{escape(head)}</strong>: {escape(decision.decision.why)}</p>"


def _ends(decision: DecisionStory) -> list[tuple[Candidate, float]]:
    """Candidates with the time at which each would be done: all tasks, or else the job."""
    return [
        (
            one,
            float(
                one.wait_s + one.data_s + one.run_s if one.makespan_s is None else one.makespan_s
            ),
        )
        for one in decision.decision.candidates
        if one.makespan_s is not None or not one.site
    ]


def _chosen(decision: DecisionStory, found: Sequence[tuple[Candidate, float]]) -> int:
    """Which of them was chosen: the first of a look ahead, else the one that became a job."""
    if decision.decision.is_played:
        return 0
    jobs = decision.decision.jobs
    for i, (one, _) in enumerate(found):
        if any(job.nodes == one.nodes and job.run_s == one.run_s for job in jobs):
            return i
    return -1


def _picture(decision: DecisionStory) -> str:
    found = _ends(decision)
    chosen = _chosen(decision, found)
    order = sorted(range(len(found)), key=lambda i: (i != chosen, found[i][1], i))[:_MOST_BARS]
    axis = time_axis(0, max(1.0, *(found[i][1] for i in order)), "from the decision on")
    frame = Frame(_LEFT, 10, 500, STEP * len(order), axis, Axis(0, 1, ()))
    parts = [plot.axes(frame)]
    best_s = found[order[0]][1]
    for row, i in enumerate(order):
        one, end_s = found[i]
        words = format_duration(end_s)
        if i != chosen and chosen >= 0 and best_s > 0:
            words += f" ({100 * (end_s - best_s) / best_s:+.0f} %)"
        parts += bar(frame, row, _bar(one, end_s, words, is_chosen=i == chosen))
    caption = (
        "Blue: what was chosen; then the others, the one that would end first on top. Grey is the "
        "wait in the queue, colour the run of the job. The pale rest, up to the mark, is what all "
        "other tasks would take after it."
    )
    if len(found) > len(order):
        caption += f" {count(len(found) - len(order), 'candidate')} that end later are left out."
    return figure(plot.picture(960, frame.bottom + 48, "Candidates and their ends", parts), caption)


def _bar(one: Candidate, end_s: float, words: str, *, is_chosen: bool) -> Bar:
    wait_s = float(one.wait_s + one.data_s)
    hint = f"{one.what}: {count(one.nodes, 'node')}, wait {span(wait_s)}, run {span(one.run_s)}"
    if one.note:
        hint += f" ({one.note})"
    return Bar(one.what, wait_s, one.run_s, end_s, words, hint, is_chosen)
