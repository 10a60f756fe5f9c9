"""What the files of a workflow take, in a few figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.storage.demand import demand_of
from windrow.storage.roles import roles
from windrow.storage.timeline import all_at_once, drawn, over_time, peak

if TYPE_CHECKING:
    from windrow.model import Workflow


def space_of(workflow: Workflow) -> dict[str, Any]:
    """Bytes at the `peak` if all runs that can, the `smallest` space that would do, `every` file together, by role.

    And of how many files the size is `unknown`. Nothing where no sizes are known, or the workflow is too large.
    """
    written = [workflow.files[f].size_bytes for f in workflow.outputs.index.tolist()]
    if not any(written) or len(workflow) > 20_000:
        return {}
    demand, by_role = demand_of(workflow), dict[str, int]()
    points = over_time(demand, all_at_once(demand, workflow.runtime_s.tolist()))
    for file, role in zip(workflow.files, roles(workflow)[0], strict=True):
        by_role[role] = by_role.get(role, 0) + file.size_bytes
    known = {"peak": peak(points), "smallest": demand.peak(demand.order()), "every": sum(written), "roles": by_role}
    return known | {"unknown": sum(not size for size in written), "drawn": drawn(points)}
