"""Up to which utilization is a pool stable under a policy? Two independent answers.

**By the stream**, as the paper goes: raise the utilization in steps of 0.05 until the pool no
longer keeps up. It keeps up if, when the last of n workflows arrives, fewer than 3 % of n are
still in the system. Why 3 %: a stable pool holds (rate x response) workflows, which for these
workloads of 3,000 is at most 2.7 % (SIPHT at 0.95); a pool one step above what it can take falls
behind by at least 0.05 of each 1.0 offered, so 5 %. The threshold lies between. A pool that can
take up to 3 % less than what is offered passes for stable; its waits tell.

**By saturation** (Baccelli and Foss, 1995): let all workflows be there from the start. The work
done per time while a backlog remains is what the pool can take in the long run: below it the stream
is stable, above it not. One run gives it without steps. It is measured from the first start of the
workflow one tenth down the queue to that of the last one.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from windrow.streams import Policy
from windrow_lab.stream.metrics import StreamFigures, run_stream
from windrow_lab.stream.simulation import Simulator

BEHIND = 0.03
STEPS = tuple(round(0.05 * k, 2) for k in range(1, 20))
"""Utilizations 0.05 to 0.95."""


def keeps_up(figures: StreamFigures, workflows: int) -> bool:
    """Whether the pool was stable in this run."""
    return figures.in_system < BEHIND * workflows


def verdict(simulator: Simulator, figures: StreamFigures) -> bool | None:
    """As `keeps_up`, but None if the stream is too short to tell.

    That is where 3 % of it are fewer than would be in the system if none ever waited: rate x mean
    length alone.
    """
    workflows = len(simulator.workload)
    if keeps_up(figures, workflows):
        return True
    rate = figures.offered * simulator.slots / simulator.workload.mean_work_s
    if BEHIND * workflows < rate * float(simulator.empty_s.mean()):
        return None
    return False


def climb(
    simulator: Simulator, policy: Policy, steps: Iterable[float] = STEPS
) -> Iterator[StreamFigures]:
    """Runs at rising utilizations; the last one is the first at which the pool does not keep up, if
    there is one."""
    for utilization in steps:
        figures = run_stream(simulator, policy, utilization)
        yield figures
        if not keeps_up(figures, len(simulator.workload)):
            return


def saturation(simulator: Simulator, policy: Policy) -> float:
    """The utilization of a pool with all workflows there from the start, while any of them has not
    started."""
    workflows = len(simulator.workload)
    outcome = simulator.run(policy, np.zeros(workflows))
    first_s = np.sort(simulator.by_workflow(np.minimum, outcome.start_s))
    begin_s = float(first_s[workflows // 10])
    end_s = float(first_s[-1])
    if end_s <= begin_s:
        return float("nan")
    within = np.minimum(outcome.end_s, end_s) - np.maximum(outcome.start_s, begin_s)
    busy_s = float(np.clip(within, 0, None) @ simulator.cores)
    return busy_s / (simulator.slots * (end_s - begin_s))
