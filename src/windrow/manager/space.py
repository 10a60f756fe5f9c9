"""The space that the files of a run may take, as a job of it has it.

One job at a time has all of it: a run with a limit is cut by `giant`, into jobs of all that is left, one after the
other. Jobs side by side would each need a part for good, though a part that one of them does not use could let another
go on, and cuts by levels would begin all pipelines before one can end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from windrow.manager.core import Core

if TYPE_CHECKING:
    from windrow.storage.admission import Admission


def space_for(core: Core, sizes: Mapping[int, int] | None = None, begun: Collection[int] = ()) -> Admission | None:
    """What may start in a job, if space is limited. `sizes`: of files, as made; `begun`: tasks that were started.

    All tasks that are not done are thought of, those that failed among them: they are tried again, and need room then.
    """
    if (limit := core.work.space) is None:
        return None
    from windrow.storage.demand import demand_of  # noqa: PLC0415  (few runs have one)

    workflow = core.work.workflow
    demand = demand_of(workflow, [task for task in range(len(workflow)) if not core.is_done(task)], sizes)
    return limit.admission(demand, demand.order(begun, demand_of(workflow).order()))
