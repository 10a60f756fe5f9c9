"""Predicted against actual starts of a run's jobs: who said what, and how far off it was."""

from collections.abc import Sequence

from windrow.forecast.ledger import Accuracy, PastPrediction, accuracies
from windrow.manager.figures import RecordedRun
from windrow.manager.journal import PredictedStart
from windrow.model.wording import percent, span
from windrow.report import plot
from windrow.report.page import figure, note, table
from windrow.report.plot import COLOURS, Frame, legend, log_duration_axis

_SIDE = 300
_LEFT = 74
_TOO_SHORT_S = 2.0
_MOST_POINTS = 300  # of each forecaster


def past(told: RecordedRun) -> list[PastPrediction]:
    """The run's predictions with what came true, in the order in which they were made."""
    jobs = told.story.jobs
    found = [
        PastPrediction(_source(told, p), str(p.job), p.at_s, p.start_s, jobs[p.job].queue_started_s)
        for p in told.predictions
        if p.job in jobs
    ]
    return sorted(found, key=lambda p: (p.at_s, p.source, int(p.tag)))


def _source(told: RecordedRun, said: PredictedStart) -> str:
    """Who said it; where there are several sites, of which."""
    job = told.story.jobs.get(said.job)
    return f"{said.source} at {job.plan.site}" if job is not None and job.plan.site else said.source


def starts(told: RecordedRun) -> str:
    """The section's HTML: a table, and a plot where anything can be plotted."""
    records = past(told)
    if not records:
        return note("Nothing was predicted in this run.")
    found = accuracies(records, last=len(records))
    known = [r for r in records if r.started_s is not None]
    if not known:
        return _table(told, found) + note("No job that was predicted has started yet.")
    return _table(told, found) + _figure(known, [one.source for one in found])


def _table(told: RecordedRun, found: Sequence[Accuracy]) -> str:
    used = [_source(told, p) for p in told.predictions if p.used]
    rows = []
    for one in found:
        told_of = zip((span, _bias, percent), (one.median_error_s, one.bias_s, one.coverage), strict=True)
        cells = ("–" if value is None else write(value) for write, value in told_of)
        rows.append((one.source, f"{one.starts:,}", f"{one.pending:,}", *cells, f"{used.count(one.source):,}"))
    heads = ["forecaster", "starts", "not started", "median error", "on average", "on time", "used to decide"]
    words = (
        "“On time”: the share of jobs that started at most a minute later than predicted. “Used to decide”: jobs that "
        "were cut by its prediction. The twin simulates the live queue with requested times as run times, so it "
        "predicts late starts; the system is the batch system's own estimate; history: how long such jobs waited."
    )
    return table(heads, rows) + note(words)


def _bias(bias_s: float) -> str:
    """The ledger counts predicted minus actual."""
    if abs(bias_s) < 0.5:
        return "even"
    return f"{span(abs(bias_s))} {'earlier' if bias_s > 0 else 'later'}"


def _figure(known: Sequence[PastPrediction], sources: Sequence[str]) -> str:
    waits = [(max(0.0, r.predicted_s - r.at_s), max(0.0, (r.started_s or r.at_s) - r.at_s)) for r in known]
    highest = max(max(pair) for pair in waits)
    if highest < _TOO_SHORT_S:
        return note("No job waited, or was predicted to wait, long enough for a plot.")
    x = log_duration_axis(1, highest, "predicted wait")
    frame = Frame(_LEFT, 14, _SIDE, _SIDE, x, log_duration_axis(1, highest, "actual wait"))
    ends = [x.low, x.high]
    parts = [plot.axes(frame), plot.line(frame, ends, ends, COLOURS - 1, thin=True)]
    is_thinned = False
    for i, source in enumerate(sources):
        mine = [(r, wait) for r, wait in zip(known, waits, strict=True) if r.source == source]
        step = -(-len(mine) // _MOST_POINTS) or 1
        is_thinned |= step > 1
        shown = mine[::step]
        hints = [f"job {r.tag}, {source}: predicted {span(said)}, waited {span(came)}" for r, (said, came) in shown]
        at = [wait for _, wait in shown]
        parts.append(plot.markers(frame, [a for a, _ in at], [b for _, b in at], i % COLOURS, hints))
    caption = (
        "Each mark is a job: to the right its predicted wait, upwards its actual wait; waits below a second "
        "count as one. On the line the prediction was right; above it the job started later than predicted."
    )
    caption += " Not every job is drawn." if is_thinned else ""
    picture = plot.picture(960, frame.bottom + 50, "Predicted and actual waits", parts)
    return figure(picture, caption, legend(list(sources)))
