"""The space that the files of a run may take, as a job of it has it.

One job at a time has all of it: a run with a limit is cut by `giant`, into jobs of all that is
left, one after the other. Jobs side by side would each need a part for good, though a part that one
of them does not use could let another continue, and cuts by levels would begin all pipelines before
one can end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from windrow.manager.core import Core
from windrow.model import NodeShape
from windrow.model.allocation import lasting_s

if TYPE_CHECKING:
    from windrow.storage.admission import Admission


def space_for(
    core: Core,
    number: int,
    shape: NodeShape,
    sizes: Mapping[int, int] | None = None,
    begun: Collection[int] = (),
) -> Admission | None:
    """What may start in a job, if space is limited. `sizes`: of files, as made; `begun`: tasks that
    were started.

    All tasks that are not done are thought of, those that failed among them: they are tried again,
    and need room then. So the order is chosen again for each job, by what is left and by sizes as
    they turned out.
    """
    if (limit := core.work.space) is None:
        return None
    from windrow.storage.demand import demand_of, with_likely_sizes  # noqa: PLC0415  (few runs have one)

    workflow = core.work.workflow
    members = core.members(number)
    if sizes is None:
        likely = None
    else:
        likely = with_likely_sizes(workflow, sizes)
    demand = demand_of(
        workflow, [task for task in range(len(workflow)) if not core.is_done(task)], likely
    )
    sequence = demand.order(begun, demand_of(workflow).order())
    nodes = core.jobs[number].plan.nodes
    return limit.admission(demand, sequence, lambda space: lasting_s(nodes, shape, members, space))
