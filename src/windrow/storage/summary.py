"""What the files of a workflow take, in a few figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.model import Workflow

MOST_TASKS = 20_000
"""Of larger workflows nothing is said."""


@dataclass(frozen=True)
class Space:
    """Bytes: `peak` if all runs that can, `smallest` with which it would go to its end, `every` file together.

    `roles`: of files by role. `unknown`: files that tasks write of which no size is known. `drawn`: the space over
    time if all runs that can, as bars.
    """

    peak: int
    smallest: int
    every: int
    roles: dict[str, int]
    unknown: int
    drawn: str


def space_of(workflow: Workflow) -> Space | None:
    """The figures; None where no sizes are known, or the workflow is too large."""
    from windrow.storage.demand import demand_of  # noqa: PLC0415
    from windrow.storage.roles import roles  # noqa: PLC0415
    from windrow.storage.timeline import all_at_once, drawn, over_time, peak  # noqa: PLC0415

    written = [workflow.files[f].size_bytes for f in workflow.outputs.index.tolist()]
    if not any(written) or len(workflow) > MOST_TASKS:
        return None
    demand = demand_of(workflow)
    points = over_time(demand, all_at_once(demand, workflow.runtime_s.tolist()))
    by_role: dict[str, int] = {}
    for file, role in zip(workflow.files, roles(workflow)[0], strict=True):
        by_role[role] = by_role.get(role, 0) + file.size_bytes
    smallest = demand.peak(demand.order())
    return Space(peak(points), smallest, sum(written), by_role, sum(not size for size in written), drawn(points))
