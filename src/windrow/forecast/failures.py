"""How jobs of a site were lost, and what that says of jobs to come (`docs/theory/forecasts.md`).

What is known are *lives*: a job, the nodes that it had, from when to when, and what ended it, from
the accounts of the batch system or a user's own runs. One that ended well says for how long nothing
happened (it is *censored*).

Rule 1: the clock of a node is the time for which jobs had it, back to zero when it fails. A job's
start renews nothing, and before its first failure a node has the age of one at any moment
(`model.hazard`), never zero.
Rule 2: below `ENOUGH` failures of nodes their rate is constant, with a Gamma prior; from there on a
Weibull law is fitted. Losses of the whole cluster and preemptions hit a job at a constant rate, and
if none was seen never.
Rule 3: nodes that fail together are one failure of the cluster. Of a job of several nodes the one
to blame is the one that is named, or else the one that stays without a job for longest.
"""

import json
import math
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.forecast.waits import default_path
from windrow.model.cause import Cause
from windrow.model.hazard import Hazard, log_upper_gamma
from windrow.queues.port import Life
from windrow.records.database import Database

ENOUGH = 30
PRIOR_EVENTS = 0.1
PRIOR_NODES_S = 3 * 365 * 86400
"""How long a node is up, by the prior, which weighs as much as `PRIOR_EVENTS` failures."""
TOGETHER_S = 120
KNOWN_FOR_S = 30 * 86400
"""For how long what was learned of a site counts, and how far back it is learned from."""
CLUSTER = "cluster"
_Z = 1.959964
_LIVES = """
CREATE TABLE IF NOT EXISTS lives (
    place TEXT NOT NULL, tag TEXT NOT NULL, nodes INTEGER NOT NULL, started_s REAL NOT NULL, ended_s REAL NOT NULL,
    cause TEXT NOT NULL, node TEXT NOT NULL, PRIMARY KEY (place, tag)
) WITHOUT ROWID
"""  # noqa: E501
_HAZARDS = (
    "CREATE TABLE IF NOT EXISTS hazards (place TEXT PRIMARY KEY, at_s REAL NOT NULL, "
    "hazard TEXT NOT NULL)"
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node with significantly more failures than the rest: `times` as many as they would have had
    in its hours."""

    node: str
    failures: int
    node_s: float
    times: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """What was seen of a site, and what jobs there may expect. `node_s`, `job_s`: the time that
    jobs had.

    `losses` counts by cause. `spread`: of the logarithms of shape and scale; None if a rate was
    learned.
    """

    jobs: int = 0
    node_s: float = 0.0
    job_s: float = 0.0
    since_s: float = 0.0
    losses: Mapping[str, int] = field(default_factory=dict)
    hazard: Hazard = field(default_factory=Hazard)
    spread: NDArray[np.float64] | None = None
    suspects: tuple[Suspect, ...] = ()

    @property
    def evident(self) -> Hazard:
        """The hazard without what is only assumed."""
        if Cause.NODE_FAILED in self.losses:
            return self.hazard
        return replace(self.hazard, scale_s=None)

    def survival(self, nodes: int, seconds: float) -> tuple[float, float, float]:
        """The chance that such a job is not lost, and the interval that holds it with 95 %."""
        parts = [self._of_nodes(nodes, seconds)]
        for cause, rate in (
            (CLUSTER, self.hazard.cluster_rate),
            (Cause.PREEMPTED, self.hazard.preemption_rate),
        ):
            seen = self.losses.get(cause, 0)
            per = seconds * rate / max(seen, 1)
            parts.append(
                (
                    seen * per,
                    gamma_quantile(seen, 0.025) * per,
                    gamma_quantile(seen + 1, 0.975) * per,
                )
            )
        mean = sum(part[0] for part in parts)
        least, most = (math.sqrt(sum((part[0] - part[i]) ** 2 for part in parts)) for i in (1, 2))
        return math.exp(-mean), math.exp(-mean - most), math.exp(-max(0.0, mean - least))

    def _of_nodes(self, nodes: int, seconds: float) -> tuple[float, float, float]:
        """The cumulative hazard of this many nodes, and its interval."""
        alone = replace(self.hazard, cluster_rate=0.0, preemption_rate=0.0)
        mean = -alone.log_survival(nodes, seconds)
        if self.spread is None:
            events = PRIOR_EVENTS + self.losses.get(Cause.NODE_FAILED, 0)
            over_s = PRIOR_EVENTS * PRIOR_NODES_S
            ends = [
                gamma_quantile(events, p) * nodes * seconds / (over_s + self.node_s)
                for p in (0.025, 0.975)
            ]
            return mean, ends[0], ends[1]

        def at(logs: Floats) -> float:
            return math.log(-Hazard(math.exp(logs[0]), math.exp(logs[1])).log_survival(1, seconds))

        middle = np.log([alone.shape, alone.scale_s or 1.0])
        slope = np.array(
            [(at(middle + step) - at(middle - step)) / 2e-4 for step in 1e-4 * np.eye(2)]
        )
        factor = math.exp(_Z * math.sqrt(max(0.0, float(slope @ self.spread @ slope))))
        return mean, mean / factor, mean * factor


def reliability(lives: Iterable[Life]) -> Reliability:
    """What these lives say."""
    known = [life for life in lives if life.ended_s > life.started_s]
    if not known:
        return Reliability(hazard=_prior(0, 0.0))
    node_s = sum(life.nodes * life.run_s for life in known)
    job_s = sum(life.run_s for life in known)
    of_nodes, of_cluster = _failures(known)
    preempted = sum(life.cause is Cause.PREEMPTED for life in known)
    busy = _busy(known)
    hazard, spread = _of_single_nodes(busy, of_nodes, node_s)
    since_s = min(life.started_s for life in known)
    until_s = max(life.ended_s for life in known)
    rates = {"cluster_rate": of_cluster / (until_s - since_s), "preemption_rate": preempted / job_s}
    losses = {Cause.NODE_FAILED: len(of_nodes), CLUSTER: of_cluster, Cause.PREEMPTED: preempted}
    seen = {str(cause): count for cause, count in losses.items() if count}
    suspects = _suspects(busy, Counter(node for _, node in of_nodes))
    return Reliability(
        len(known), node_s, job_s, since_s, seen, replace(hazard, **rates), spread, suspects
    )


def _of_single_nodes(
    busy: Mapping[str, tuple[Floats, Floats]],
    failures: Sequence[tuple[float, str]],
    node_s: float,
) -> tuple[Hazard, Floats | None]:
    """Their hazard, and the covariance of its parameters if it was fitted."""
    if sum(node in busy for _, node in failures) >= ENOUGH:
        found = fitted(*_times(busy, failures))
        if found:
            shape, scale_s, spread = found
            return Hazard(shape, scale_s), spread
    return _prior(len(failures), node_s), None


def gamma_quantile(events: float, chance: float) -> float:
    """The quantile of a Gamma distribution of this shape, and a scale of 1."""
    low = 0.0
    high = events + 10 * math.sqrt(events) + 30
    for _ in range(200 if events > 0 else 0):
        middle = (low + high) / 2
        if -math.expm1(log_upper_gamma(events, middle)) > chance:
            high = middle
        else:
            low = middle
    return low


def fitted(first: Floats, later: Floats) -> tuple[float, float, NDArray[np.float64]] | None:
    """Shape and scale by maximum likelihood, and the covariance of their logarithms; None if
    there is no peak.

    Of rows of times that nodes ran, with 1 if they failed then: `first` from an unknown age on,
    `later` from a failure on. By Newton's method, damped.
    """
    likelihood = _Likelihood(first, later)
    total_s, failures = first.sum(axis=0) + later.sum(axis=0)
    at = np.array([0.0, math.log(total_s / max(1, failures))])
    for _ in range(100):
        here = likelihood(at)
        slope, curve = _slope_and_curve(likelihood, at, here)
        if not np.isfinite(curve).all():
            return None
        is_peak = np.linalg.eigvalsh(curve).max() < 0
        if is_peak:
            move = -np.linalg.solve(curve, slope)
        else:
            move = slope
        move /= max(1.0, np.abs(move).max())
        while not likelihood(at + move) >= here and np.abs(move).max() > 1e-9:
            move /= 2
        at = at + move
        if is_peak and np.abs(move).max() < 1e-6:
            return math.exp(at[0]), math.exp(at[1]), -np.linalg.inv(curve)
    return None


def _slope_and_curve(
    likelihood: Callable[[Floats], float], at: Floats, here: float
) -> tuple[Floats, NDArray[Any]]:
    """First and second derivatives of a function of two numbers, by differences; `here`: its value
    there."""
    steps = 1e-3 * np.eye(2)
    slope = np.array([(likelihood(at + s) - likelihood(at - s)) / 2e-3 for s in steps])
    curve = np.diag([(likelihood(at + s) - 2 * here + likelihood(at - s)) / 1e-6 for s in steps])
    corner = [
        likelihood(at + i * steps[0] + j * steps[1]) * i * j for i in (1, -1) for j in (1, -1)
    ]
    curve[0, 1] = curve[1, 0] = sum(corner) / 4e-6
    return slope, curve


class _Likelihood:
    """The logarithm of the likelihood of log shape and log scale."""

    def __init__(self, first: Floats, later: Floats) -> None:
        self._open = _in_chunks(first[first[:, 1] == 0, 0])
        self._failed = later[later[:, 1] == 1, 0]
        self._every = np.concatenate([first[first[:, 1] == 1, 0], later[:, 0]])
        self._first_failures = int(first[:, 1].sum())

    def __call__(self, logs: Floats) -> float:
        if abs(logs[0]) > 3 or abs(logs[1]) > 60:  # shapes from 0.05 to 20
            return -math.inf
        shape = math.exp(logs[0])
        scale = math.exp(logs[1])
        mean = float(logs[1]) + math.lgamma(1 + 1 / shape)
        total: float = -float(((self._every / scale) ** shape).sum()) - self._first_failures * mean
        logs_failed = np.log(self._failed) - logs[1]
        total += float((logs[0] - logs[1] + (shape - 1) * logs_failed).sum())
        return total + math.fsum(
            nodes * log_upper_gamma(1 / shape, (time_s / scale) ** shape)
            for nodes, time_s in self._open
        )


def _in_chunks(times_s: Floats) -> list[tuple[int, float]]:
    """Many nodes have run for about as long: how many, and their mean."""
    if not len(times_s):
        return []
    chunks = np.array_split(np.sort(times_s), min(len(times_s), 200))
    return [(len(chunk), float(chunk.mean())) for chunk in chunks]


def _prior(failures: int, node_s: float) -> Hazard:
    return Hazard.of_mean((PRIOR_EVENTS * PRIOR_NODES_S + node_s) / (PRIOR_EVENTS + failures))


def _failures(lives: Sequence[Life]) -> tuple[list[tuple[float, str]], int]:
    """When which node failed (empty: it is not known which), in order of time; and how often the
    whole cluster did."""
    starts: dict[str, list[float]] = defaultdict(list)
    for life in sorted(lives, key=lambda life: life.started_s):
        for host in life.hosts:
            starts[host].append(life.started_s)
    lost = sorted(
        (life for life in lives if life.cause is Cause.NODE_FAILED), key=lambda life: life.ended_s
    )
    together: list[list[tuple[float, str]]] = []
    for life in lost:
        node = life.node or _idle_longest(life, starts)
        if not together or life.ended_s - together[-1][0][0] > TOGETHER_S:
            together.append([])
        if not node or all(node != other for _, other in together[-1]):
            together[-1].append((life.ended_s, node))
    many = max(3, math.ceil(len(starts) / 4))
    of_nodes = [one for some in together if len(some) < many for one in some]
    return of_nodes, sum(len(some) >= many for some in together)


def _idle_longest(life: Life, starts: Mapping[str, Sequence[float]]) -> str:
    """The node of a lost job on which the next one started last."""

    def back_s(host: str) -> float:
        after = starts[host][bisect_right(starts[host], life.ended_s) :]
        return next(iter(after), math.inf)

    return max(life.hosts, key=back_s, default="")


def _busy(lives: Iterable[Life]) -> dict[str, tuple[Floats, Floats]]:
    """When jobs had each node: starts and ends of times that do not overlap."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for life in lives:
        for host in life.hosts:
            spans[host].append((life.started_s, life.ended_s))
    found = {}
    for host, some in spans.items():
        rows = np.array(sorted(some))
        until = np.maximum.accumulate(rows[:, 1])
        begins = np.append(True, rows[1:, 0] > until[:-1])
        found[host] = rows[begins, 0], until[np.append(begins[1:], True)]
    return found


def _times(
    busy: Mapping[str, tuple[Floats, Floats]], failures: Sequence[tuple[float, str]]
) -> tuple[Floats, Floats]:
    """How long the nodes ran until their first failure, and from failure to failure, by their own
    clocks."""
    of_node: dict[str, list[float]] = defaultdict(list)
    for at_s, node in failures:
        of_node[node].append(at_s)
    first = list[tuple[float, bool]]()
    later = list[tuple[float, bool]]()
    for host, (starts, ends) in busy.items():
        marks = [
            float(np.clip(at_s - starts, 0, ends - starts).sum()) for at_s in of_node.get(host, ())
        ]
        gaps = np.diff([0.0, *marks, float((ends - starts).sum())]).tolist()
        each = list(zip(gaps, [True] * len(marks) + [False], strict=True))
        first += each[:1]
        later += [one for one in each[1:] if one[0] > 0]
    return np.array(first, dtype=float).reshape(-1, 2), np.array(later, dtype=float).reshape(-1, 2)


def _suspects(
    busy: Mapping[str, tuple[Floats, Floats]], failures: Mapping[str, int]
) -> tuple[Suspect, ...]:
    """The nodes that failed more often than chance allows at the rate of the others (5 %, by
    Bonferroni)."""
    hours = {host: float((ends - starts).sum()) for host, (starts, ends) in busy.items()}
    total_s = sum(hours.values())
    total = sum(failures.get(host, 0) for host in hours)
    found = []
    for host, node_s in hours.items():
        count = failures.get(host, 0)
        rest_s = total_s - node_s
        if count < 2 or rest_s <= 0:
            continue
        expected = (total - count + 0.5) * node_s / rest_s
        if -math.expm1(log_upper_gamma(count, expected)) < 0.05 / len(hours):
            found.append(Suspect(host, count, node_s, count / expected))
    return tuple(sorted(found, key=lambda one: (-one.times, one.node)))


class Lives:
    """What became of a user's own jobs, and what was last learned of sites: beside the waits, made
    if missing."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = Database(
            path or default_path(), "the history of waits", "move it away, and a new one is created"
        )

    @contextmanager
    def _open(self, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
        self._file.make_folder("set WINDROW_WAITS to another file")
        with self._file.visit(writes=writes) as database:
            database.execute(_LIVES)
            database.execute(_HAZARDS)
            yield database

    def record(self, place: str, lives: Iterable[Life]) -> None:
        """Keep these. A job that is known stays as it is."""
        rows = [
            (place, one.job, one.nodes, one.started_s, one.ended_s, one.cause or "", one.node)
            for one in lives
        ]
        with self._open(writes=True) as database:
            database.executemany("INSERT OR IGNORE INTO lives VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def past(self, place: str, since_s: float) -> list[Life]:
        """Those of a place that ended since then."""
        columns = "tag, nodes, started_s, ended_s, cause, node FROM lives"
        rows = self._read(
            f"SELECT {columns} WHERE place = ? AND ended_s >= ? ORDER BY ended_s, tag",
            place,
            since_s,
        )
        return [
            Life(job, n, a, b, Cause(why) if why else None, (), node)
            for job, n, a, b, why, node in rows
        ]

    def keep(self, place: str, at_s: float, hazard: Hazard) -> None:
        """Remember what was learned of a place."""
        with self._open(writes=True) as database:
            told = json.dumps(asdict(hazard))
            database.execute("INSERT OR REPLACE INTO hazards VALUES (?, ?, ?)", (place, at_s, told))

    def hazard(self, place: str, at_s: float) -> Hazard:
        """What was last learned of a place, or what own jobs tell; none if none was ever lost
        there."""
        since_s = at_s - KNOWN_FOR_S
        for (told,) in self._read(
            "SELECT hazard FROM hazards WHERE place = ? AND at_s >= ?", place, since_s
        ):
            return Hazard(**json.loads(told))
        return reliability(self.past(place, since_s)).evident

    def _read(self, query: str, *values: str | float) -> list[tuple[Any, ...]]:
        if not self._file.path.exists():  # a question makes no files
            return []
        with self._open() as database:
            return database.execute(query, values).fetchall()
