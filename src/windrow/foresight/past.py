"""What a cluster's past says of its future: how long jobs will run, and who else will come.

Law: nothing here knows more than a user of the cluster does. Of jobs that wait or run, their
requests, users and elapsed times; of those that ended, how long they ran; of those to come,
nothing: the past days stand for them.

Users ask for more time than they need, each in a way of their own, and keep doing so. So a job's
run time is drawn from the shares of their requests that its user's last jobs took, and of a job
that runs already, from those shares that are above what it has had. If requests are exact, all
shares are one, and so are the forecasts. No way to predict is best everywhere, so futures take
turns among three (`TURNS`): what is good in all of them does not hang on one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.sim.cluster import Cluster

DAY_S = 86_400
TURNS = ("shares", "requests", "last two", "shares")
"""How run times are predicted in futures 0, 1, 2, 3, and so on again, if the ways are mixed."""

_REMEMBERED = 4000  # past jobs that count
_OF_USER = 10  # ended jobs of a user that count
_OF_ALL = 200  # ended jobs that stand for a user without a past
_LAST_TWO = (0, 1)  # which of a user's jobs count, from the last back
_LONGEST_OF = 3  # draws that stand for a request
_FEW = 3  # ended jobs below which a user has no past


SUBMIT, NODES, REQUESTED, RUN, USER = range(5)


@dataclass(frozen=True)
class QueuePast:
    """Jobs that others have submitted, in order, as rows of the columns above. RUN is 0 for those
    that have not ended.

    `since_s`: from when on all submissions are known.
    """

    rows: Ints
    since_s: int

    @cached_property
    def _ended(self) -> Ints:
        return self.rows[self.rows[:, RUN] > 0]

    @cached_property
    def shares(self) -> Floats:
        """The part of its request that each ended job ran, in order."""
        shares: Floats = self._ended[:, RUN] / self._ended[:, REQUESTED]
        return shares

    def shares_of(self, user: int, last: int = _OF_USER) -> Floats:
        """The shares of a user's last jobs, ascending; of all users', if there are too few."""
        own = self.shares[self._ended[:, USER] == user][-last:]
        return np.sort(own if len(own) >= min(_FEW, last) else self.everybody)

    @cached_property
    def everybody(self) -> Floats:
        """The shares of the last jobs, ascending."""
        return np.sort(self.shares[-_OF_ALL:])

    def mean_run_s(self, user: int, picks: tuple[int, ...] = _LAST_TWO) -> float:
        """The mean of what two of the user's last jobs ran, by default the last; 0 if there are
        none."""
        own = self._ended[self._ended[:, USER] == user, RUN][-_OF_USER:][::-1]
        if len(own) == 0:
            return 0.0
        if picks == _LAST_TWO:
            return float(own[:2].mean())
        return float(own[[pick % len(own) for pick in picks]].mean())


def past_of(cluster: Cluster) -> QueuePast:
    """The past of a simulated cluster: the log's jobs up to now, with the run times of those that
    are gone. How many are there now takes nothing away from the past."""
    there = cluster.jobs_waiting + cluster.jobs_running
    rows = cluster.arrived(max(_REMEMBERED, 2 * there))
    if not len(rows):
        return QueuePast(rows, cluster.now_s)
    return QueuePast(rows, int(rows[0, SUBMIT]))


def failures_of(cluster: Cluster, since_s: int) -> Failures:
    """How often the nodes of a simulated cluster fail, by failures from then to now: too few for
    more than means."""
    rows = cluster.failed()
    rows = rows[rows[:, 0] >= since_s]
    if not len(rows):
        return NO_FAILURES
    up_s = cluster.nodes * max(cluster.now_s - since_s, DAY_S) / len(rows)
    return Failures(up_s, float((rows[:, 2] - rows[:, 0]).mean()), loses=bool(rows[-1, 3]))


class RunPredictor:
    """Draws run times. One for each decision: it remembers what it knows of each user."""

    def __init__(self, past: QueuePast, how: str) -> None:
        self._past = past
        self._how = how
        self._shares: dict[int, Floats] = {}
        self._means: dict[int, float] = {}
        self._picks = _LAST_TWO

    def draw(self, rows: Ints, elapsed_s: Ints, draw: np.random.Generator, turn: int = 0) -> Ints:
        """A run time for each row (requested time, user) of a job that has run for `elapsed_s` and
        still runs.

        Two ways leave nothing to chance. From the second turn on they do: else the same future
        came again. Requests are then what the longest of three draws takes, and the last two jobs
        any two of the last.
        """
        chance = draw.random(
            len(rows)
        )  # drawn even if it is not used: what is drawn next must not depend on the way
        if turn and self._how == "requests":
            chance = chance ** (1 / _LONGEST_OF)
        if turn and self._how == "last two":
            self._picks = tuple(draw.integers(0, _OF_USER, 2).tolist())
            self._means = {}
        if self._how == "requests" and not turn:
            return rows[:, 0].copy()
        one = self._by_last_two if self._how == "last two" else self._by_share
        drawn = np.zeros(len(rows), dtype=np.int64)
        order = np.argsort(rows[:, 1], kind="stable")
        users, begins = np.unique(rows[order, 1], return_index=True)
        for user, mine in zip(users.tolist(), np.split(order, begins[1:]), strict=False):
            drawn[mine] = one(user, rows[mine, 0], elapsed_s[mine], chance[mine])
        return drawn

    def _by_share(self, user: int, requested: Ints, elapsed: Ints, luck: Floats) -> Ints:
        """From the user's shares, of which only those count that the job has not outlived; failing
        these, from everybody's, or at any time that is left."""
        if user not in self._shares:
            self._shares[user] = self._past.shares_of(user)
        drawn = np.minimum(requested, elapsed + 1 + (luck * (requested - elapsed)).astype(np.int64))
        for shares in (self._past.everybody, self._shares[user]):  # the last one counts
            first = np.searchsorted(shares, elapsed / requested, side="right")
            left = len(shares) - first
            place = np.minimum(first + (luck * left).astype(np.int64), len(shares) - 1)
            if len(shares):
                run = np.rint(shares[place] * requested).astype(np.int64)
                run = np.minimum(requested, np.maximum(elapsed + 1, run))
                drawn = np.where(left > 0, run, drawn)
        return drawn

    def _by_last_two(self, user: int, requested: Ints, elapsed: Ints, _luck: Floats) -> Ints:
        """The mean of the user's last two (Tsafrir, Etsion and Feitelson, 2007); an outlived one is
        doubled."""
        if user not in self._means:
            self._means[user] = self._past.mean_run_s(user, self._picks)
        predicted = np.full(len(requested), self._means[user])
        if not self._means[user]:
            predicted = requested.astype(np.float64)
        while (predicted <= elapsed).any():
            predicted = np.where(predicted <= elapsed, 2 * predicted, predicted)
        run: Ints = np.rint(predicted).astype(np.int64)
        return np.minimum(requested, np.maximum(1, run))


def arrivals(
    past: QueuePast,
    now_s: int,
    runs: RunPredictor,
    days: int,
    draw: np.random.Generator,
    turn: int = 0,
) -> Ints:
    """Who arrives from now on, as rows of a log: day by day, each day one of the last seven at the
    same hours."""
    known = min(7, max(1, (now_s - past.since_s) // DAY_S))
    rows = past.rows.copy()
    still = np.flatnonzero(rows[:, RUN] == 0)
    none = np.zeros(len(still), dtype=np.int64)
    rows[still, RUN] = np.maximum(1, runs.draw(rows[still][:, [REQUESTED, USER]], none, draw, turn))
    blocks = [rows[:0]]
    for day, ago in enumerate(draw.integers(1, known, days, endpoint=True).tolist()):
        low, high = np.searchsorted(
            rows[:, SUBMIT], [now_s - ago * DAY_S, now_s - (ago - 1) * DAY_S], side="right"
        )
        block = rows[low:high].copy()
        block[:, SUBMIT] += (ago + day) * DAY_S
        blocks.append(block)
    return np.concatenate(blocks)
