"""Planned beside actual: what decisions expected of waits, runs and the whole, and what came of it.

Only what was said beforehand counts as planned: the prediction on which a decision was based, the
run time that its strategy expected, and the end that a look ahead promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windrow.model.wording import percent, span
from windrow.report import plot
from windrow.report.page import Time, figure, note, table
from windrow.report.plot import Axis, Frame, time_axis
from windrow.story.figures import RecordedRun, ran_s
from windrow.story.states import ACTIVE, JobStage, RunState, TaskState

_MOST_JOBS = 12
_LEFT = 74
_HIGH = 9
_STEP = 30
_MANY = 10
"""How many times as long as planned is told as such, and not in per cent."""
_NOT_ALL = "not all tasks done"


@dataclass(frozen=True, slots=True)
class Planned:
    """A job: what was expected, and what happened; None is what was not said, or not seen yet."""

    job: int
    submitted_s: float
    wait_s: float | None
    run_s: float
    waited_s: float | None
    ran_s: float | None
    is_over: bool
    is_done: bool
    """Whether all its tasks have finished, in it or elsewhere."""


def promised(told: RecordedRun) -> tuple[float, float] | None:
    """When the first look ahead was, and the makespan that it promised; None: nothing was."""
    for decision in told.story.decisions:
        if decision.decision.is_played and decision.decision.candidates:
            makespan_s = decision.decision.candidates[0].makespan_s
            if makespan_s is not None:
                return decision.at_s, float(makespan_s)
    return None


def planned_jobs(told: RecordedRun) -> list[Planned]:
    """The jobs that were submitted, in their order."""
    used = {p.job: p for p in told.predictions if p.used}
    found = []
    for number, job in told.story.jobs.items():
        if job.submitted_s is None or job.taken_by is not None:
            continue
        wait_s = waited_s = None
        if number in used:
            wait_s = max(0.0, used[number].start_s - job.submitted_s)
        if job.started_s is not None:
            waited_s = max(0.0, job.started_s - job.submitted_s)
        ran = ran_s(job, told.until_s)
        is_over = job.outcome is not None
        is_done = job.outcome is JobStage.ENDED and all(
            told.story.tasks[task].state is TaskState.FINISHED for task in job.plan.tasks
        )
        found.append(
            Planned(
                number, job.submitted_s, wait_s, job.plan.run_s, waited_s, ran, is_over, is_done
            )
        )
    return found


def miss(planned_s: float, actual_s: float) -> str:
    """By how much it was missed: `+12 s (+30 %)`."""
    late = actual_s - planned_s
    if abs(late) < 0.5:
        return "as planned"
    sign = "+" if late > 0 else "−"
    words = f"{sign}{span(abs(late))}"
    if planned_s < 1:
        return words
    if late >= _MANY * planned_s:
        return f"{words} ({actual_s / planned_s:,.0f} times)"
    return f"{words} ({sign}{percent(abs(late) / planned_s)})"


def planned(told: RecordedRun) -> str:
    """The section's HTML; empty if nothing was planned."""
    jobs = planned_jobs(told)
    if not jobs:
        return ""
    shown = jobs[:_MOST_JOBS]
    more = ""
    if len(jobs) > len(shown):
        more = note(f"The first {len(shown)} of {len(jobs):,} jobs; all are under “Jobs”.")
    heads = ["", "planned", "actual", "miss"]
    rows = [*_whole(told), *(row for job in shown for row in _rows(job, len(shown) > 1))]
    return _picture(told, shown) + table(heads, rows) + more


def _whole(told: RecordedRun) -> Iterator[Sequence[str]]:
    said = promised(told)
    if said is None:
        return
    at_s, makespan_s = said
    actual_s = told.until_s - at_s
    if told.state in ACTIVE:
        yield "whole run", Time(makespan_s), f"{span(actual_s)} so far", "–"
    elif told.state != RunState.COMPLETE and not told.is_simulated:
        yield "whole run", Time(makespan_s), Time(actual_s), _NOT_ALL
    else:
        yield "whole run", Time(makespan_s), Time(actual_s), miss(makespan_s, actual_s)


def _wait(job: Planned, of: str) -> Iterator[Sequence[str]]:
    if job.wait_s is not None and job.waited_s is not None:
        yield f"wait{of}", Time(job.wait_s), Time(job.waited_s), miss(job.wait_s, job.waited_s)
    elif job.wait_s is not None:
        yield f"wait{of}", Time(job.wait_s), "not started", "–"


def _rows(job: Planned, is_named: bool) -> Iterator[Sequence[str]]:
    of = f" of job {job.job}" if is_named else ""
    yield from _wait(job, of)
    if job.ran_s is None or not job.run_s:
        return
    if job.is_over and job.is_done:
        yield f"run{of}", Time(job.run_s), Time(job.ran_s), miss(job.run_s, job.ran_s)
    elif job.is_over:
        yield f"run{of}", Time(job.run_s), Time(job.ran_s), _NOT_ALL
    else:
        yield f"run{of}", Time(job.run_s), f"{span(job.ran_s)} so far", "–"


def _latest_end_s(job: Planned) -> float:
    planned = (job.wait_s or 0.0) + job.run_s
    return job.submitted_s + max(planned, (job.waited_s or 0.0) + (job.ran_s or 0.0))


def _both(frame: Frame, top: float, job: Planned, at_s: float) -> Iterator[str]:
    yield plot.text(_LEFT - 8, top + 13, f"job {job.job}", "end")
    yield from _bars(frame, top, at_s, job.wait_s or 0.0, job.run_s, "c4", "planned")
    if job.waited_s is not None:
        below = top + _HIGH + 1
        yield from _bars(frame, below, at_s, job.waited_s, job.ran_s or 0.0, "c2", "actual")


def _picture(told: RecordedRun, jobs: Sequence[Planned]) -> str:
    """Two bars for each job: planned above actual; grey is the wait, colour the run."""
    begun_s = told.begun_s
    ends = [_latest_end_s(job) - begun_s for job in jobs]
    x = time_axis(0, max([1.0, *ends]), "since the run started")
    frame = Frame(_LEFT, 10, 866, _STEP * len(jobs), x, Axis(0, 1, ()))
    parts = [plot.axes(frame)]
    for i, job in enumerate(jobs):
        parts += _both(frame, frame.top + i * _STEP + 4, job, job.submitted_s - begun_s)
    picture = plot.picture(960, frame.bottom + 48, "Planned and actual waits and runs", parts)
    caption = "For each job: planned above (yellow), actual below (green). Grey is the wait."
    return figure(picture, caption)


def _bars(
    frame: Frame, top: float, at_s: float, wait_s: float, run_s: float, colour: str, what: str
) -> list[str]:
    a, b, c = frame.across([at_s, at_s + wait_s, at_s + wait_s + run_s]).tolist()
    return [
        plot.box("veil", a, top, b - a, _HIGH, f"{what}: waits {span(wait_s)}"),
        plot.box(f"bar {colour}", b, top, max(1.0, c - b), _HIGH, f"{what}: runs {span(run_s)}"),
    ]
