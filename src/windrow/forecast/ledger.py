"""How good past predictions were, source by source, and whom to trust next.

Everything here is pure: what keeps predictions (the manager, in a run's journal) hands them in as
rows.

Rule 1: errors are predicted minus actual start. Above zero: the job started earlier than predicted.
Rule 2: sources are compared on the same jobs only; otherwise one that answers just the easy
questions would win.
Rule 3: a job that has not started says nothing yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_low

DEFAULT = "twin"
LEAST = 5  # starts that must be known before a source is believed, or doubted
LAST = 50  # starts that count; queues change
TOO_MUCH = 1.5  # times as long as expected: who promises that little is not believed
PROMISES_DAYS = 7  # for how long a promise is remembered
BY_REQUESTS = ("twin", "system")  # sources that take all jobs to run as long as requested
USUAL_PART = (
    0.5  # of a wait by requests comes true: 0.63, 0.46 and 0.35 on the logs of KTH, SDSC and CTC
)


@dataclass(frozen=True, slots=True)
class PastPrediction:
    """At `at_s` the source said that job `tag` would start at `predicted_s`; it started at
    `started_s`, or not yet."""

    source: str
    tag: str
    at_s: float
    predicted_s: float
    started_s: float | None = None

    @property
    def error_s(self) -> float | None:
        """Predicted minus actual start; None before the start."""
        if self.started_s is None:
            return None
        return self.predicted_s - self.started_s


@dataclass(frozen=True, slots=True)
class StartAccuracy:
    """The errors of one source.

    `starts` is how many predictions were put to the test, `pending` how many jobs have not started.
    The miss is how far off a prediction was, either way: always to predict late starts does not
    make it small. The median is one of the misses. Figures are None with fewer than `LEAST` starts:
    then the misses themselves say more.
    """

    source: str
    starts: int
    pending: int
    median_error_s: float | None
    bias_s: float | None


@dataclass(frozen=True, slots=True)
class Promise:
    """At `at_s` a look ahead expected a run to take `expected_s` from then on; it took `took_s`."""

    at_s: float
    expected_s: float
    took_s: float


def promised_too_much(promises: Iterable[Promise], now_s: float) -> bool:
    """Whether looks ahead on this queue were far too hopeful of late: half of the runs took much
    longer than expected.

    Only the last days count. So after a week of plain decisions it gets another chance.
    """
    late = [p for p in promises if now_s - p.at_s <= PROMISES_DAYS * 86_400 and p.expected_s > 0]
    last = sorted(late, key=lambda p: p.at_s)[-LAST:]
    return len(last) >= LEAST and median(p.took_s / p.expected_s for p in last) > TOO_MUCH


def accuracies(records: Iterable[PastPrediction], *, last: int = LAST) -> list[StartAccuracy]:
    """How good each source was over its last starts; by name."""
    by_source: dict[str, list[PastPrediction]] = {}
    for record in records:
        by_source.setdefault(record.source, []).append(record)
    found = []
    for source, told in sorted(by_source.items()):
        errors = [record.error_s for record in _by_start(told) if record.error_s is not None]
        pending = len(told) - len(errors)
        counted = errors[-last:]
        figures = (
            (median_low(map(abs, counted)), fmean(counted))
            if len(counted) >= LEAST
            else (None, None)
        )
        found.append(StartAccuracy(source, len(counted), pending, *figures))
    return found


def _errors_of_both(
    records: Sequence[PastPrediction], one: str, other: str
) -> list[tuple[float, float]]:
    """Where both sources spoke of one job at one time, in the order of starts."""
    others_s = {(r.tag, r.at_s): r.error_s for r in records if r.source == other}
    both = (
        (r.error_s, others_s.get((r.tag, r.at_s))) for r in _by_start(records) if r.source == one
    )
    return [(a, b) for a, b in both if a is not None and b is not None]


def choose(records: Sequence[PastPrediction], *, default: str = DEFAULT, last: int = LAST) -> str:
    """The source to plan with next: the one that was better than the default by the largest factor,
    else the default.

    Better means: a smaller median absolute error over the last predictions that both made, at least
    `LEAST` of them.
    """
    best = default
    best_ratio = 1.0
    for rival in sorted({record.source for record in records} - {default}):
        pairs = _errors_of_both(records, rival, default)[-last:]
        if len(pairs) < LEAST:
            continue
        theirs, ours = (median(abs(pair[side]) for pair in pairs) for side in (0, 1))
        ratio = theirs / ours if ours > 0 else 1.0
        if ratio < best_ratio:
            best = rival
            best_ratio = ratio
    return best


def part_waited(records: Sequence[PastPrediction], source: str) -> float:
    """Which part of the waits that this source predicts jobs do wait: of late, or usually if too
    little is known."""
    told = [r for r in _by_start(records) if r.source == source and r.predicted_s > r.at_s][-LAST:]
    if len(told) < LEAST:
        if source in BY_REQUESTS:
            return USUAL_PART
        return 1.0
    return sum((r.started_s or 0) - r.at_s for r in told) / sum(
        r.predicted_s - r.at_s for r in told
    )


def too_few(
    records: Sequence[PastPrediction], found: Iterable[StartAccuracy]
) -> list[PastPrediction]:
    """The predictions that came true, or not, of sources with too few of them for figures; in the
    order of starts."""
    few = {one.source for one in found if one.starts < LEAST}
    return [record for record in _by_start(records) if record.source in few]


def _by_start(records: Iterable[PastPrediction]) -> list[PastPrediction]:
    started = [record for record in records if record.started_s is not None]
    return sorted(started, key=lambda r: (r.started_s, r.at_s, r.tag))
