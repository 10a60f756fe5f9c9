"""One workload under several policies at one utilization: what `windrow stream` shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import UserError
from windrow.model import Log, Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.streams import Policy, find_estimates, find_policy, find_selection
from windrow_lab.stream.metrics import StreamFigures, StreamRun, columns, figures
from windrow_lab.stream.simulation import Simulator
from windrow_lab.stream.stability import verdict
from windrow_lab.stream.workload import arriving_like, draw_workload, own_workload, with_jobs

_FEWEST = 30  # below that, nothing is left after the warm-up that a mean could be taken of
_TRACE_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """What one policy gave. `trace` has rows of time, processors at work, waiting for, kept."""

    figures: StreamFigures
    run: StreamRun
    trace: Floats
    keeps_up: bool | None
    """None if the stream is too short to tell."""


@dataclass(frozen=True, slots=True)
class StreamComparison:
    """All policies on the same workflows with the same arrivals."""

    workload: str
    utilization: float
    slots: int
    workflows: int
    selection: str
    estimates: str
    seed: int
    jobs: float
    tasks: Ints
    """Of each workflow, added entries and exits included."""
    last_arrival_s: float
    runs: tuple[PolicyRun, ...]


def compare_streams(
    policies: Sequence[str],
    *,
    workload: str = "mixture",
    utilization: float = 0.5,
    slots: int = 100,
    workflows: int = 3000,
    selection: str = "random",
    estimates: str = "exact",
    seed: int = 0,
    jobs: float = 0.0,
    own: Sequence[Workflow] = (),
    arrivals: Log | None = None,
) -> StreamComparison:
    """Draw a workload, or take `own` workflows in turn, and run it under each policy, given by
    name. With `arrivals` they come as the jobs of that log. UserError for what cannot be used."""
    chosen = list({policy.name: policy for policy in map(find_policy, policies)}.values())
    find_selection(selection)
    source = find_estimates(estimates)
    if workflows < _FEWEST:
        raise UserError(
            f"a stream needs at least {_FEWEST} workflows to be measured, not {workflows}"
        )
    if own:
        workload = "own"
        drawn = with_jobs(own_workload(own, workflows=workflows, seed=seed), jobs, seed)
    else:
        drawn = draw_workload(workload, workflows=workflows, seed=seed, jobs=jobs)
    if arrivals is not None:
        drawn = arriving_like(drawn, arrivals)
    simulator = Simulator(drawn, slots, selection=selection, seed=seed)
    arrival_s = drawn.arrivals_s(utilization, slots)
    lengths_s = simulator.lengths_s(source)
    return StreamComparison(
        workload=workload,
        utilization=utilization,
        slots=slots,
        workflows=workflows,
        selection=selection,
        estimates=estimates,
        seed=seed,
        jobs=jobs,
        tasks=simulator.layout.flows[:, 1].copy(),
        last_arrival_s=float(arrival_s[-1]),
        runs=tuple(_run(simulator, one, arrival_s, lengths_s, utilization) for one in chosen),
    )


def _run(
    simulator: Simulator, policy: Policy, arrival_s: Floats, lengths_s: Floats, utilization: float
) -> PolicyRun:
    """Up to the last arrival; traced when the first third, which is not measured, is over."""
    until_s = float(arrival_s[-1])
    outcome = simulator.run(
        policy,
        arrival_s,
        lengths_s=lengths_s,
        until_s=until_s,
        trace_rows=_TRACE_ROWS,
        trace_from_s=until_s / 3,
    )
    result = figures(simulator, outcome, policy.name, utilization)
    keeps_up = verdict(simulator, result)
    return PolicyRun(result, columns(simulator, outcome), outcome.trace, keeps_up)
