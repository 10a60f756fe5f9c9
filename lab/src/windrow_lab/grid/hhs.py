"""HHS (Sakellariou and Zhao 2004): level by level, inside a level as HEFT."""

from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule, listed


def hhs(costs: Costs, *, insertion: bool = True) -> Schedule:
    """The schedule; a level is an order in which tasks are placed, and no barrier in time."""
    return listed(costs, costs.by(costs.workflow.levels, -costs.ranks[0]), insertion=insertion)
