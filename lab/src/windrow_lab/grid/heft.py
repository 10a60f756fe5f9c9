"""HEFT (Topcuoglu, Hariri, Wu 2002): by descending upward rank, each task where it ends first, gaps
included."""

from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule, listed


def heft(costs: Costs, *, insertion: bool = True) -> Schedule:
    """The schedule; without `insertion` tasks come behind those that are on their processors."""
    return listed(costs, costs.by(-costs.ranks[0]), insertion=insertion)
