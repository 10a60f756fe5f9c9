"""WDO, whole-DAG over-provisioning (Zhang 2009, figure 6.2): the whole workflow on each of a few
clusters.

Clusters by how likely they fail within the workflow's exclusive time there, the least likely first
(the text sorts the other way), until it is likely enough that one of them does not, or until the
limit. By the law of TOP these are the fewest. It ends when the first of them has ended it. Why:
tasks multiply, and 0.99 to the 100th is 0.37.
"""

import numpy as np

from windrow.strategies.top import top
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.estimate import LoopWork, Model, estimate
from windrow_lab.grid.reliability import risks
from windrow_lab.kernels.grid.reliability import Beliefs


def exclusive_s(costs: Costs) -> Floats:
    """Of each cluster, how long it takes alone: level by level, each in rounds of its nodes
    (chapter 5's estimate)."""
    none = np.zeros(len(costs.grid.nodes))
    grid = costs.grid
    model = Model(grid.nodes, none, grid.slowness, none, none, np.zeros((len(none), len(none))))
    work = LoopWork(costs.workflow, costs.workflow.runtime_s, np.zeros(len(costs.workflow)))
    return estimate(work, model)[0]


def wdo(costs: Costs, beliefs: Beliefs, *, wanted: float = 0.95, limit: int = 3) -> list[int]:
    """The clusters, the most reliable first."""
    alone_s = exclusive_s(costs)
    return top(alone_s.tolist(), risks(beliefs, alone_s), wanted=wanted, limit=limit)
