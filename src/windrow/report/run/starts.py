"""Predicted against actual starts of a run's jobs: who said what, and how far off it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from windrow.forecast.ledger import LEAST, PastPrediction, StartAccuracy, accuracies, too_few
from windrow.model.wording import count, span
from windrow.report import plot
from windrow.report.page import Time, figure, note, table
from windrow.report.plot import COLOURS, Frame, legend, log_duration_axis
from windrow.story.figures import RecordedRun
from windrow.story.journal import PredictedStart

_SIDE = 300
_LEFT = 74
_TOO_SHORT_S = 2.0
_MOST_POINTS = 300  # of each forecaster
_WHO = (
    "The twin simulates the live queue with requested times as run times, so it predicts late "
    "starts; the system is the batch system's own estimate; history: how long such jobs waited."
)


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
    """Who said it; if there are several sites, of which."""
    job = told.story.jobs.get(said.job)
    if job is not None and job.plan.site:
        return f"{said.source} at {job.plan.site}"
    return said.source


@dataclass(frozen=True, slots=True)
class Misses:
    """How far the predictions on which decisions were based were off."""

    starts: int
    median_s: float


def misses(told: RecordedRun) -> Misses | None:
    """Of the jobs that have started; None if there are none of which this is known."""
    jobs = told.story.jobs
    found = [
        abs(at_s - p.start_s)
        for p in told.predictions
        if p.used and p.job in jobs and (at_s := jobs[p.job].queue_started_s) is not None
    ]
    if not found:
        return None
    return Misses(len(found), median(found))


def starts(told: RecordedRun) -> str:
    """The section's HTML: a table, and a plot if anything can be plotted."""
    records = past(told)
    if not records:
        return note("Nothing was predicted in this run.")
    found = accuracies(records, last=len(records))
    known = [r for r in records if r.started_s is not None]
    if not known:
        return _table(told, found) + note("No job that was predicted has started yet.")
    few = _listed(too_few(records, found))
    if all(one.starts < LEAST for one in found):  # figures would say less than each of them
        return few + note(_open(found) + _WHO)
    return _table(told, found) + few + _figure(known, [one.source for one in found])


def _open(found: Sequence[StartAccuracy]) -> str:
    """How many are not known yet."""
    pending = sum(one.pending for one in found)
    if not pending:
        return ""
    return f"{count(pending, 'prediction')} of jobs that have not started. "


def _listed(few: Sequence[PastPrediction]) -> str:
    """Predictions one by one, if they are too few for figures."""
    if not few:
        return ""
    rows = []
    for one in few:
        waited_s = max(0.0, (one.started_s or one.at_s) - one.at_s)
        waits = Time(max(0.0, one.predicted_s - one.at_s)), Time(waited_s)
        rows.append((f"job {one.tag}", one.source, *waits, _bias(one.error_s or 0.0)))
    heads = ["", "forecaster", "predicted to start in", "started in", "miss"]
    return table(heads, rows) + note("Times count from the moment of the prediction.")


def _table(told: RecordedRun, found: Sequence[StartAccuracy]) -> str:
    used = [_source(told, p) for p in told.predictions if p.used]
    rows = []
    for one in found:
        told_of = zip((span, _bias), (one.median_error_s, one.bias_s), strict=True)
        cells = ("–" if value is None else write(value) for write, value in told_of)
        rows.append(
            (
                one.source,
                f"{one.starts:,}",
                f"{one.pending:,}",
                *cells,
                f"{used.count(one.source):,}",
            )
        )
    heads = ["forecaster", "starts", "not started", "median miss", "on average", "used to decide"]
    words = (
        "Miss: how far a start was from its prediction, either way. “On average”: whether jobs "
        "started earlier or "
        "later than predicted. “Used to decide”: jobs that were cut by its prediction. "
    )
    return table(heads, rows) + note(words + _WHO)


def _bias(bias_s: float) -> str:
    """The ledger counts predicted minus actual."""
    if abs(bias_s) < 0.5:
        return "even"
    if bias_s > 0:
        return f"{span(bias_s)} earlier"
    return f"{span(-bias_s)} later"


_NOT_ALL = " Not every job is drawn."


def _figure(known: Sequence[PastPrediction], sources: Sequence[str]) -> str:
    highest = max(max(_waits(one)) for one in known)
    if highest < _TOO_SHORT_S:
        return ""
    x = log_duration_axis(1, highest, "predicted wait")
    frame = Frame(_LEFT, 14, _SIDE, _SIDE, x, log_duration_axis(1, highest, "actual wait"))
    ends = [x.low, x.high]
    parts = [plot.axes(frame), plot.line(frame, ends, ends, COLOURS - 1, thin=True)]
    caption = (
        "Each mark is a job: to the right its predicted wait, upwards its actual wait; waits "
        "below a second "
        "count as one. On the line the prediction was right; above it the job started later than "
        "predicted."
    )
    for i, source in enumerate(sources):
        mine = [one for one in known if one.source == source]
        step = -(-len(mine) // _MOST_POINTS) or 1
        parts.append(_marks(frame, mine[::step], i % COLOURS))
        if step > 1 and not caption.endswith(_NOT_ALL):
            caption += _NOT_ALL
    picture = plot.picture(960, frame.bottom + 50, "Predicted and actual waits", parts)
    return figure(picture, caption, legend(list(sources)))


def _waits(one: PastPrediction) -> tuple[float, float]:
    """What was predicted, and what came; or has come so far."""
    came_s = (one.started_s or one.at_s) - one.at_s
    return max(0.0, one.predicted_s - one.at_s), max(0.0, came_s)


def _marks(frame: Frame, shown: Sequence[PastPrediction], colour: int) -> str:
    across = []
    up = []
    hints = []
    for one in shown:
        said, came = _waits(one)
        across.append(said)
        up.append(came)
        hints.append(f"job {one.tag}, {one.source}: predicted {span(said)}, waited {span(came)}")
    return plot.markers(frame, across, up, colour, hints)
