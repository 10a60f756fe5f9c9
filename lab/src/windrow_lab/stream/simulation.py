"""Runs a workload on a simulated pool: compiled (`Simulator`), or by the very object that serves a
real one.

Law: both ways give the same starts, task by task (tests/unit/streams). A million task events take
about a quarter of a second compiled, and some fifteen by the pool, which also takes policies that
the kernels do not know.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.errors import UserError
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.streams import Estimates, Pool, Start, TaskFinished, WorkflowArrived, find_selection
from windrow.streams import policies as p
from windrow.streams.estimates import Exact, length_s
from windrow_lab.kernels import streams as kernel
from windrow_lab.stream.layout import Layout, lay_out
from windrow_lab.stream.workload import Workload

_NO_DEPTH = 1 << 40


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """When each task started and ended (NaN: not within the simulated time), and sums over that
    time."""

    arrival_s: Floats
    start_s: Floats
    end_s: Floats
    busy_s: float
    kept_s: float
    """Processor-seconds that stood idle because they were kept for a workflow."""
    in_system: int
    """Workflows not finished at the end of the simulated time."""
    events: int
    trace: Floats
    """Rows of time, processors at work, processors that waiting eligible tasks could use,
    processors kept."""


class Simulator:
    """A workload on `slots` processors, ready to be run under many policies and utilizations."""

    def __init__(
        self, workload: Workload, slots: int = 100, *, selection: str = "random", seed: int = 0
    ) -> None:
        widest = max(int(w.cores.max()) for w in workload.workflows)
        if widest > slots:
            raise UserError(f"the workload has a task of {widest} cores, but the pool has {slots}")
        self.workload = workload
        self.slots = slots
        self.seed = seed
        self.selection = selection
        self.layout: Layout = lay_out(workload.workflows, find_selection(selection), seed)

    @cached_property
    def empty_s(self) -> Floats:
        """The makespan of each workflow alone on the pool: the same simulation, with arrivals too
        rare to meet."""
        apart_s = float(self.workload.work_s.max()) + 1.0
        arrival_s = apart_s * np.arange(len(self.workload), dtype=np.float64)
        outcome = self.run(p.Backfilling(), arrival_s)
        return self.by_workflow(np.maximum, outcome.end_s) - arrival_s

    @property
    def cores(self) -> Ints:
        """Of each task, all workflows end to end."""
        return self.layout.tasks[:-1, kernel.CORES]

    def by_workflow(self, function: np.ufunc, values: Floats) -> Floats:
        """The tasks' values brought together for each workflow, by `np.maximum`, `np.add` and the
        like."""
        return np.asarray(function.reduceat(values, self.layout.flows[:, kernel.FIRST]))

    @cached_property
    def exact_length_s(self) -> Floats:
        """The length of each workflow by its true run times (see `streams.estimates`)."""
        return self.lengths_s(Exact())

    def lengths_s(self, estimates: Estimates) -> Floats:
        """The length of each workflow by estimates that learn from each workflow before they see
        the next."""
        lengths = []
        for number, workflow in enumerate(self.workload.workflows):
            lengths.append(length_s(workflow, estimates.runtimes_s(number, workflow), self.slots))
            estimates.learn(workflow, workflow.runtime_s.tolist())
        return np.array(lengths)

    def run(
        self,
        policy: p.Policy,
        arrival_s: Floats,
        *,
        lengths_s: Floats | None = None,
        until_s: float = math.inf,
        trace_rows: int = 0,
        trace_from_s: float = 0.0,
    ) -> StreamOutcome:
        """All arrivals by the compiled simulation, up to `until_s`. `lengths_s` are exact if not
        given."""
        if lengths_s is None:
            if isinstance(policy, p.DueDates):
                lengths_s = self.exact_length_s
            else:
                lengths_s = np.zeros(len(self.workload))
        if _code(policy) is None:
            return self._by_pool(policy, arrival_s, until_s)
        arrivals = zip(arrival_s.tolist(), lengths_s.tolist(), strict=True)
        places = np.array([policy.place(at, length) for at, length in arrivals])
        code = _code(policy)
        assert code is not None
        rules = kernel.StreamRules(self.slots, *code, until_s, trace_from_s)
        times = np.full((len(self.layout.runtime_s), 3), np.nan)
        times[:, kernel.RUNTIME_S] = self.layout.runtime_s
        sums = np.zeros(kernel.SUMS)
        trace = np.zeros((trace_rows, kernel.TRACE_COLUMNS))
        self._simulate(rules, arrival_s, places, times, sums, trace)
        end_s = times[:, kernel.END_S]
        return StreamOutcome(
            arrival_s,
            start_s=times[:, kernel.START_S].copy(),
            end_s=np.where(end_s <= until_s, end_s, np.nan),
            busy_s=float(sums[kernel.BUSY_S]),
            kept_s=float(sums[kernel.KEPT_S]),
            in_system=int(sums[kernel.IN_SYSTEM]),
            events=int(sums[kernel.EVENTS]),
            trace=trace[: int(sums[kernel.TRACED])],
        )

    def _by_pool(self, policy: p.Policy, arrival_s: Floats, until_s: float) -> StreamOutcome:
        """The same by the pool itself, for policies that kernels do not know. It does not say what
        was kept, and there is no trace."""
        pool = Pool(self.slots, policy, selection=find_selection(self.selection), seed=self.seed)
        starts, ends = run_by_pool(pool, self.workload, arrival_s.tolist())
        start_s = np.concatenate(starts)
        end_s = np.concatenate(ends)
        ran_s = np.clip(np.minimum(end_s, until_s) - start_s, 0, None)
        over_s = self.by_workflow(np.maximum, end_s)
        return StreamOutcome(
            arrival_s,
            start_s=np.where(start_s <= until_s, start_s, np.nan),
            end_s=np.where(end_s <= until_s, end_s, np.nan),
            busy_s=float(ran_s @ self.cores),
            kept_s=math.nan,
            in_system=int((over_s > until_s).sum()),
            events=2 * len(start_s),
            trace=np.zeros((0, kernel.TRACE_COLUMNS)),
        )

    def _simulate(
        self,
        rules: kernel.StreamRules,
        arrival_s: Floats,
        places: Floats,
        times: Floats,
        sums: Floats,
        trace: Floats,
    ) -> None:
        """Fill in times, sums and trace; the tables that the kernel changes are copies."""
        kernel.simulate(
            rules,
            arrival_s,
            places,
            self.layout.tasks.copy(),
            self.layout.flows.copy(),
            self.layout.edges,
            np.zeros(kernel.HEAP + 2 * self.slots, dtype=np.int64),
            times,
            np.zeros(self.slots),
            sums,
            trace,
        )


def _code(policy: p.Policy) -> tuple[int, float, int] | None:
    """As kernels know it; None if only a pool does."""
    match policy:
        case p.Backfilling() | p.DueDates():
            return kernel.BF, 0.0, 0
        case p.StrictReservation(exact=False):
            return kernel.SR, 0.0, _NO_DEPTH
        case p.ScaledParallelism():
            return kernel.SLOP, policy.fraction, _NO_DEPTH
        case p.FutureEligibleSets():
            return kernel.FES, 0.0, min(policy.depth, _NO_DEPTH)
        case _:
            return None


def run_by_pool(
    pool: Pool, workload: Workload, arrival_s: Sequence[float]
) -> tuple[list[Floats], list[Floats]]:
    """Starts and ends of the tasks of each workflow, by the very object that serves a real pool."""
    runtimes_s = [w.runtime_s.tolist() for w in workload.workflows]
    start_s = [np.full(len(w), np.nan) for w in workload.workflows]
    end_s = [np.full(len(w), np.nan) for w in workload.workflows]
    running: list[tuple[float, int, Start]] = []
    started = 0
    arrived = 0
    while running or arrived < len(workload):
        if running and (arrived == len(workload) or running[0][0] <= arrival_s[arrived]):
            now_s, _, done = heapq.heappop(running)
            runtime_s = runtimes_s[done.number][done.task]
            starts = pool.handle(TaskFinished(done.number, done.task, runtime_s))
        else:
            now_s = arrival_s[arrived]
            starts = pool.handle(WorkflowArrived(arrived, workload.workflows[arrived], now_s))
            arrived += 1
        for start in starts:
            started += 1
            end = now_s + runtimes_s[start.number][start.task]
            start_s[start.number][start.task] = now_s
            end_s[start.number][start.task] = end
            heapq.heappush(running, (end, started, start))
    return start_s, end_s
