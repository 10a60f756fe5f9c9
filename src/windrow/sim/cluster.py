"""A batch-scheduled cluster in virtual time, with a log's jobs in the background and clients in the
foreground.

Rule 1: time only moves in `advance`. Rule 2: what a client does takes effect at the current time,
after everything that the log does at that time. Rule 3: a clone shares the log and the failures
with its original, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from windrow.errors import UserError
from windrow.kernels.cluster import state as k
from windrow.kernels.cluster.advance import (
    EVENTS_HAPPENED,
    NEEDS_ROOM,
    advance,
    has_room,
    stop,
    submit,
)
from windrow.kernels.cluster.estimate import PASS_WIDTH, as_requested, estimate, most_passes
from windrow.kernels.cluster.jobs import give_back, hold
from windrow.kernels.jit import in_python
from windrow.model import Log
from windrow.model.graph import Ints
from windrow.sim.job_rows import (
    Runs,
    adopt,
    coarsen,
    held_rows,
    redraw,
    running_rows,
    waiting_rows,
    whole_steps,
)
from windrow.sim.settings import (
    REQUESTS,
    ClusterSettings,
    choice,
    parse_priority,
    thousandths,
)

Numbers = int | Sequence[int] | Ints

_NO_LOG: Ints = np.zeros((0, 5), dtype=np.int64)
_NO_LOG.flags.writeable = False
_NO_STARTS: Ints = np.zeros(0, dtype=np.int64)
_NO_PASSES: Ints = np.zeros((0, PASS_WIDTH), dtype=np.int64)


class EventKind(IntEnum):
    """What can happen to a client's job."""

    STARTED = k.STARTED
    ENDED = k.ENDED
    KILLED = k.KILLED_EVENT
    CANCELLED = k.CANCELLED
    FAILED = k.FAILED  # a node of it failed


class Event(NamedTuple):
    """Something happened to a client's job."""

    at_s: int
    kind: EventKind
    job: int


class WaitingJob(NamedTuple):
    """A waiting job as anyone may see it. `planned_s` is None if the policy gave it no
    reservation."""

    job: int
    nodes: int
    requested_s: int
    user: int
    planned_s: int | None


class RunningJob(NamedTuple):
    """A running job as anyone may see it: its real end is not known before it comes."""

    job: int
    nodes: int
    requested_s: int
    user: int
    expected_end_s: int


class QueueEntry(NamedTuple):
    """A job of a queue that was read: it may hold its nodes for `left_s`, of the `requested_s` that
    it asked for."""

    nodes: int
    left_s: int
    requested_s: int
    user: int = 0
    is_own: bool = False


class Closures(NamedTuple):
    """Announced times at which nodes have no jobs: rows (from when, until when, how many nodes).

    The first `running` jobs of the log run already, and keep running.
    """

    rows: Sequence[tuple[int, int, int]]
    running: int = 0


class Cluster:
    """A simulated cluster. Jobs of the log are numbered from 0 (rows of the log), clients' jobs -1,
    -2, ..."""

    def __init__(
        self,
        log: Log | None = None,
        *,
        nodes: int | None = None,
        policy: str = "conservative",
        priority: str = "arrival",
        requests: str = "actual",
        events: str = "batched",
        placement: str = "count",
        cap: int | None = None,
        start_s: int = 0,
        record: bool = False,
        failures: Ints | None = None,
        closures: Closures | None = None,
    ) -> None:
        """A cluster at `start_s` with just the log's jobs submitted at that second; earlier ones
        are left out.

        `failures` has a row (time, node, until when it is out) for each failure of a node, by time.
        A job of the log that loses a node is submitted again at that second, as batch systems do by
        default, or is lost, if a fourth column has a 1; a client's job is over. `closures` need
        a plan for every job.

        `record` keeps the starts of the log's jobs (see `log_starts_s`), and which lost a node
        (`log_hits`); a clone does not take them along.
        """
        self.settings = ClusterSettings(
            policy=policy, priority=priority, events=events, placement=placement, cap=cap
        )
        self.nodes = _machine_nodes(log, nodes)
        choice("kind of requests", requests, REQUESTS)
        self._log = _NO_LOG
        if log is not None and requests == "accurate":
            self._log = _rows(log.accurate())
        elif log is not None:
            self._log = _rows(log)
        self._jobs = len(self._log)
        self._ahead: tuple[Ints, Ints] | None = None
        self.log_users = 0
        if self._jobs:
            self.log_users = int(self._log[:, k.BY].max()) + 1
        self._state = k.new_state(
            self.nodes,
            users=self.log_users + 1,
            identities=placement != "count",
            start=start_s,
            rules=self.settings.rules(),
        )
        self._prefer_users(log)
        self._state[k.NEXT] = np.searchsorted(self._log[:, k.SUBMIT], start_s)
        if failures is not None and len(failures):
            self._let_fail(failures, start_s)
        self._starts = np.full(2 * len(self._log) - self._jobs if record else 0, -1, dtype=np.int64)
        if closures is not None and closures.rows:
            self._close(closures)
        self.advance(start_s)  # clients come after the log, at the first instant too

    def _prefer_users(self, log: Log | None) -> None:
        """Tell the state what jobs of some users have more, by the priority."""
        priority = parse_priority(self.settings.priority)
        last = int(self._state[k.USERS_AT] + 3 * self._state[k.USERS_ROOM])
        for source_id, points in priority.users if priority else ():
            user = None if log is None else log.user_called(source_id)
            if user is None:
                raise UserError(
                    f"priority {self.settings.priority!r}: no user {source_id} in the log"
                )
            self._state[last + user] = thousandths(points)

    @classmethod
    def of_queue(
        cls,
        nodes: int,
        jobs: Sequence[QueueEntry],
        *,
        policy: str = "conservative",
        record: bool = False,
        closures: Closures | None = None,
    ) -> Cluster:
        """A cluster at second 0 with these jobs: those that run, which must fit together, then
        those that wait.

        Everybody holds nodes for as long as is left; own jobs, which are clients' jobs -1, -2, ...
        in this order, until they are ended.
        """
        count, size, left, requested, user, own = (
            len(jobs),
            *np.array(jobs, dtype=np.int64).reshape(-1, 5).T,
        )
        none = np.zeros(count, dtype=np.int64)
        log = Log("queue", nodes, np.arange(count), none, size, left, left, user)
        cluster = cls(log, policy=policy, record=record, closures=closures)
        cluster.make_room(int(own.sum()) + 1)
        adopt(cluster._state, own > 0, requested)
        return cluster

    @property
    def now_s(self) -> int:
        """The current time."""
        return int(self._state[k.NOW])

    @property
    def free_nodes(self) -> int:
        """Nodes that are up and that no running job holds."""
        return int(self._state[k.FREE])

    @property
    def log_starts_s(self) -> Ints:
        """When each job of the log started, or -1 (needs `record`)."""
        return self._starts[: self._jobs]

    @property
    def log_hits(self) -> Ints:
        """Rows (when, job, when it had started, whether that was its last run) of log jobs that
        lost a node.

        Needs `record`.
        """
        when, loses = self._log[self._jobs :, [k.SUBMIT, k.LOSES]].T
        hits = np.stack([when, *self._starts[self._jobs :].reshape(2, -1), loses], axis=1)
        return hits[hits[:, 1] >= 0]

    def failed(self) -> Ints:
        """Rows (time, node, until when it is out, whether it loses jobs) of the failures up to
        now."""
        return self._log[self._jobs + 1 : int(self._state[k.FAILURE]), : k.LOSES + 1]

    @property
    def jobs_waiting(self) -> int:
        """How many jobs are in the queue; those that the cap holds back are not."""
        return int(self._state[k.TAIL] - self._state[k.HEAD] - self._state[k.GONE])

    @property
    def jobs_running(self) -> int:
        """How many jobs run."""
        return len(self.running())

    @property
    def keeps_plan(self) -> bool:
        """Whether estimates come from a standing plan, and need no simulation."""
        return self.settings.code == k.CONSERVATIVE

    def clone(self) -> Cluster:
        """An independent cluster in the same state. Jobs and plan are copied, the log is shared."""
        return self._twin(self._state.copy())

    def roomy_clone(self, jobs: int) -> Cluster:
        """A clone with room for this number of further jobs within a kernel. Events not fetched yet
        are left behind."""
        twin = self._twin(k.grown(self._state, more=jobs))
        twin._state[k.HAPPENED] = 0
        return twin

    def redrawn(self, runs: Runs, jobs: int) -> Cluster:
        """A roomy clone in which the log's jobs that are there run as long as `runs` says, and no
        job arrives."""
        twin = self.roomy_clone(jobs)
        redraw(twin._state, runs)
        return twin.with_arrivals(_NO_LOG)

    def with_arrivals(self, rows: Ints, failures: Ints | None = None) -> Cluster:
        """This cluster, if from now on these jobs arrive instead of the log's; rows as `arrived`
        has them.

        These nodes fail, by default none; those that are out come back.
        """
        self._log = np.ascontiguousarray(rows)
        self._jobs = len(rows)
        self._ahead = None
        self._log.flags.writeable = False
        self._state[[k.NEXT, k.FAILURE]] = 0, k.FOREVER
        if failures is not None and len(failures):
            self._let_fail(failures, self.now_s)
        return self

    def coarser(self, grid_s: int, looks: int) -> Cluster:
        """This cluster, if from now on others come and go in whole steps of `grid_s`, and a pass
        looks for earlier starts for the first `looks` that wait, and for clients' jobs."""
        coarsen(self._state, grid_s)
        self._state[k.LOOKS] = looks
        rows = self._log.copy()
        jobs = rows[: self._jobs]
        steps = -(-(jobs[:, k.SUBMIT] - self.now_s) // grid_s)
        jobs[:, k.SUBMIT] = self.now_s + steps * grid_s
        jobs[:, k.LOG_RUN] = whole_steps(jobs[:, k.LOG_RUN], grid_s)
        self._log = rows
        self._log.flags.writeable = False
        return self

    def _let_fail(self, failures: Ints, from_s: int) -> None:
        self._state[k.FAILURE] = self._jobs + 1 + np.searchsorted(failures[:, 0], from_s)
        self._log = _with_failures(self._log, failures, self.nodes)

    def _close(self, closures: Closures) -> None:
        """Take what will be closed out of the plan, once those have their nodes who run already."""
        if not self.keeps_plan or self.settings.placement != "count":
            raise UserError("closures need policy conservative, and nodes that are only counted")
        every = self._log
        self._log = every[: closures.running]
        self.advance(self.now_s)
        self._log = every
        with in_python():
            for begin_s, end_s, nodes in closures.rows:
                if end_s > self.now_s:
                    self._close_from(max(begin_s, self.now_s), end_s, min(nodes, self.nodes))

    def _close_from(self, begin_s: int, end_s: int, nodes: int) -> None:
        """These nodes are not in the plan for so long, and a pass is due when they are back."""
        self._state[k.CLOSURES] += 1
        self._make_room(0)
        left_s = end_s - self.now_s
        hold(self._state, k.DOWN, 0, left_s, left_s, self.nodes)
        give_back(self._state, begin_s, end_s, -nodes, 0)  # of less than nothing: taken

    def arrived(self, most: int) -> Ints:
        """The log's last jobs up to now: submission, nodes, requested time, run time (0 until it is
        over), user."""
        s = self._state
        last = int(self._state[k.NEXT])
        first = max(0, last - most)
        rows = self._log[first:last].copy()
        rows[:, k.LOG_RUN] = np.minimum(rows[:, k.LOG_RUN], rows[:, k.LOG_REQUESTED])
        there = np.concatenate(
            [part(s)[:, k.JOB] for part in (running_rows, waiting_rows, held_rows)]
        )
        rows[there[there >= first] - first, k.LOG_RUN] = 0
        return rows

    def clients_there(self) -> dict[int, bool]:
        """The clients' jobs that are in the system, and whether each runs."""
        s = self._state
        parts = (waiting_rows, False), (held_rows, False), (running_rows, True)
        return {
            job: runs
            for rows, runs in parts
            for job in rows(s)[:, k.JOB].tolist()
            if k.DOWN < job < 0
        }

    def _twin(self, state: Ints) -> Cluster:
        twin = object.__new__(Cluster)
        twin.settings = self.settings
        twin.nodes = self.nodes
        twin.log_users = self.log_users
        twin._log = self._log
        twin._jobs = self._jobs
        twin._starts = _NO_STARTS
        twin._state = state
        twin._ahead = None
        return twin

    def advance(self, until_s: int | None = None) -> list[Event]:
        """Advance to `until_s`, inclusive, or to the first instant at which something happens to a
        client's job.

        Returns what happened, in order; nothing if `until_s` was reached first. Without `until_s`,
        an empty result means that nothing will ever happen again.
        """
        until = k.FOREVER if until_s is None else int(until_s)
        if until < self.now_s:
            raise UserError(f"time cannot go back from {self.now_s} s to {until} s")
        if until > self.now_s or self._state[k.PENDING]:
            self._ahead = None
        while (outcome := advance(self._state, self._log, self._starts, until)) == NEEDS_ROOM:
            self._grow()
        if outcome != EVENTS_HAPPENED:
            return []
        return self._take_events()

    def _take_events(self) -> list[Event]:
        """What happened since this was asked last."""
        s = self._state
        rows = (
            s[s[k.EVENTS_AT] :][: int(s[k.HAPPENED]) * k.EVENT_WIDTH]
            .reshape(-1, k.EVENT_WIDTH)
            .tolist()
        )
        s[k.HAPPENED] = 0
        return [Event(at, EventKind(kind), job) for at, kind, job in rows]

    def submit(
        self, nodes: int, requested_s: int, run_s: int | None = None, user: int | None = None
    ) -> int:
        """Submit a job now and return its number.

        It runs for `run_s`, or until a client ends it, and is killed after `requested_s`. Without
        `user` it belongs to a user who has no job in the log.
        """
        self._check_request(nodes, requested_s)
        if run_s is not None and run_s < 1:
            raise UserError(f"a job runs for at least 1 s, not {run_s}")
        owner = self._user(user)
        self._make_room(owner)
        self._ahead = None
        if run_s is None:
            run = k.FOREVER
        else:
            run = run_s
        return int(submit(self._state, self._starts, nodes, requested_s, run, owner))

    @property
    def clients(self) -> int:
        """How many jobs clients have submitted."""
        return int(self._state[k.CLIENTS])

    @property
    def events_room(self) -> int:
        """How many events may have to be fetched at once."""
        return int(self._state[k.EVENTS_ROOM])

    def make_room(self, jobs: int) -> None:
        """Room for this number of jobs to be submitted within a kernel, at an instant of any
        kind."""
        while not has_room(self._state, jobs):
            self._state = k.grown(self._state, more=max(jobs, int(self._state[k.QUEUE_ROOM])))

    def play(self, kernel: Callable[..., int], *tables: object) -> int:
        """Hand the state and the log to a kernel that moves this cluster on."""
        self._ahead = None
        return kernel(self._state, self._log, *tables)

    def cancel(self, job: int) -> bool:
        """Cancel a client's job, whether it waits or runs. False if it does neither."""
        return self._stop(job, EventKind.CANCELLED)

    def end(self, job: int) -> bool:
        """A client's running job has nothing left to do and releases its nodes now. False if it is
        gone."""
        return self._stop(job, EventKind.ENDED)

    def _pass_if_due(self) -> None:
        """The pass that a client's change made due; its events stay, for `advance` to fetch."""
        if self._state[k.PENDING]:
            while advance(self._state, self._log, self._starts, self.now_s) == NEEDS_ROOM:
                self._grow()
            self._ahead = None

    def estimate(
        self, nodes: Numbers, requested_s: Numbers, user: int | None = None, *, exact: bool = True
    ) -> Ints:
        """When each (nodes, requested time) would start if it alone were submitted now and no other
        job arrived.

        From the requests of running and waiting jobs, as the batch system knows them. Exact under
        every policy. Without `exact`, conservative backfilling answers with the first fit in its
        plan, as batch systems do: never too early, rarely too late, and always quick.
        """
        wanted, lengths = _as_columns(nodes, requested_s)
        if wanted.size:
            self._check_request(int(wanted.min()), int(lengths.min()))
            self._check_request(int(wanted.max()), int(lengths.min()))
        owner = self._user(user)
        self._make_room(owner)
        self._pass_if_due()
        answers = np.empty(wanted.shape, dtype=np.int64)
        later, passes = self._known_ahead()
        estimate(self._state, _NO_LOG, wanted, lengths, owner, exact, answers, later, passes)
        return answers

    def _known_ahead(self) -> tuple[Ints, Ints]:
        """What earlier estimates found out of the time ahead, as the kernel keeps it; nothing if a
        plan tells all."""
        if self.keeps_plan:
            return _NO_STARTS, _NO_PASSES
        if self._ahead is None:
            passes = np.empty((most_passes(self._state), PASS_WIDTH), dtype=np.int64)
            passes[0] = 0
            self._ahead = self._state.copy(), passes
        return self._ahead

    def waits_s(self, nodes: Numbers, requested_s: Numbers, user: int | None = None) -> Ints:
        """How long each would wait, by the quick estimate: what a forecaster says."""
        return self.estimate(nodes, requested_s, user, exact=False) - self.now_s

    def queue(self) -> list[WaitingJob]:
        """The waiting jobs, in the order of the queue."""
        rows = waiting_rows(self._state)[
            :, [k.JOB, k.NODES, k.REQUESTED, k.USER, k.PLANNED]
        ].tolist()
        return [
            WaitingJob(job, n, time, user, None if at < 0 else at)
            for job, n, time, user, at in rows
        ]

    def expected_starts(self) -> dict[int, int]:
        """When each waiting job, and each that is held back, would start if no other came and all
        ran as long as they requested: what Maui's showstart says of a job that is there. Under
        every policy, by a simulation of what is known."""
        self._pass_if_due()
        s = self._state
        jobs = np.concatenate([waiting_rows(s)[:, k.JOB], held_rows(s)[:, k.JOB]]).tolist()
        twin = self.roomy_clone(1)
        as_requested(twin._state)
        starts = np.full(self._jobs, -1, dtype=np.int64)
        twin = twin.with_arrivals(_NO_LOG)
        twin._starts = starts
        told = dict[int, int]()
        while len(told) < len(jobs):
            events = twin.advance()
            told |= {e.job: e.at_s for e in events if e.kind is EventKind.STARTED}
            if not events:
                break
        found = {job: starts[job] if job >= 0 else told.get(job, -1) for job in jobs}
        return {job: int(at) for job, at in found.items() if at >= 0}

    def running(self) -> list[RunningJob]:
        """The running jobs, by number."""
        columns = [k.JOB, k.NODES, k.REQUESTED, k.USER, k.EXPECTED]
        return sorted(
            RunningJob(*row)
            for row in running_rows(self._state)[:, columns].tolist()
            if row[0] != k.DOWN
        )

    def _stop(self, job: int, kind: EventKind) -> bool:
        if job >= 0:
            raise UserError(
                f"job {job} belongs to the log; only clients' jobs, numbered below 0, can be "
                "stopped"
            )
        self._make_room(0)
        self._ahead = None
        return bool(
            stop(self._state, self._starts, job, int(kind))
        )  # an enum would take numba's slow path

    def _grow(self) -> None:
        """Twice the room: however many jobs arrive at the next instant, a few calls will do."""
        self._state = k.grown(self._state, more=int(self._state[k.QUEUE_ROOM]))

    def _make_room(self, user: int) -> None:
        if user >= self._state[k.USERS_ROOM] or not has_room(self._state, 2):
            self._state = k.grown(self._state, more=2, users=user + 1)

    def _check_request(self, nodes: int, requested_s: int) -> None:
        if not 1 <= nodes <= self.nodes:
            raise UserError(f"a job on this cluster needs 1 to {self.nodes} nodes, not {nodes}")
        if requested_s < 1:
            raise UserError(f"a job requests at least 1 s, not {requested_s}")

    def _user(self, user: int | None) -> int:
        if user is not None and user < 0:
            raise UserError(f"users are numbered from 0, not {user}")
        if user is None:
            return self.log_users
        return user


def _as_columns(one: Numbers, other: Numbers) -> tuple[Ints, Ints]:
    """Two arrays of one length, as kernels want them."""
    a = np.atleast_1d(np.asarray(one, dtype=np.int64))
    b = np.atleast_1d(np.asarray(other, dtype=np.int64))
    if a.shape != b.shape:
        a, b = np.broadcast_arrays(a, b)
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def _machine_nodes(log: Log | None, nodes: int | None) -> int:
    if nodes is None and log is None:
        raise UserError("a cluster without a log needs a number of nodes")
    if nodes is not None:
        size = nodes
    elif log is not None:
        size = log.machine_nodes
    else:
        size = 0
    if log is not None and len(log):
        widest = int(log.nodes.max())
    else:
        widest = 1
    if size < widest:
        raise UserError(
            f"a cluster of {size} nodes is too small: the widest job of the log needs {widest}"
        )
    return size


def _rows(log: Log) -> Ints:
    """The log as kernels want it; read-only, since clones share it."""
    rows = np.stack([log.submit_s, log.nodes, log.requested_s, log.run_s, log.user], axis=1)
    rows = np.ascontiguousarray(rows)
    rows.flags.writeable = False
    return rows


def _with_failures(rows: Ints, failures: Ints, nodes: int) -> Ints:
    """The log's rows, one that is never reached, and a row for each failure; UserError if one
    cannot be."""
    at, node, until = failures.T[:3]
    if (np.diff(at) < 0).any() or node.min() < 0 or node.max() >= nodes or (until <= at).any():
        raise UserError(
            f"failures go by time, concern nodes 0 to {nodes - 1}, and end after they begin"
        )
    more = np.zeros((len(failures) + 1, rows.shape[1]), dtype=np.int64)
    more[0, k.SUBMIT] = k.FOREVER
    more[1:, : failures.shape[1]] = failures
    both = np.concatenate([rows, more])
    both.flags.writeable = False
    return both
