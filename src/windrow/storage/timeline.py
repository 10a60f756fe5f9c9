"""What files take over time, as tasks run, planned or as it was; and in a few figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from windrow.storage.demand import demand_of
from windrow.storage.roles import roles
from windrow.storage.sequence import Demand

if TYPE_CHECKING:
    from windrow.model import Workflow

Points = list[tuple[float, int]]
"""From each of these times on, this many bytes."""


def over_time(
    demand: Demand, spans: Iterable[tuple[int, float, float]], sizes: dict[str, int] | None = None
) -> Points:
    """What is there if tasks run so: which, from when, until when. What ends at an instant makes
    room for what starts.

    `sizes` are those of files that turned out otherwise.
    """
    known = sizes or {}
    size = [known.get(file.name, file.size) for file in demand.files]
    left = [len(users) for users in demand.users]
    used = demand.there
    found: Points = []
    for at, starts, task in _changes(spans):
        if starts:
            used += sum(size[f] for f in demand.made[task])
        else:
            for f in demand.used[task]:
                left[f] -= 1
                if not left[f]:
                    used -= size[f]
        if found and found[-1][0] == at:
            found.pop()
        found.append((at, used))
    return found


def _changes(spans: Iterable[tuple[int, float, float]]) -> list[tuple[float, int, int]]:
    """Ends and starts (1) of tasks in order; at one instant ends come first."""
    return sorted(
        change for task, start, end in spans for change in ((start, 1, task), (end, 0, task))
    )


def all_at_once(demand: Demand, run_s: Sequence[float]) -> list[tuple[int, float, float]]:
    """When tasks run if each starts as soon as its parents are done."""
    ends: dict[int, float] = {}
    for task, parents in demand.parents.items():
        ends[task] = max((ends[parent] for parent in parents), default=0.0) + run_s[task]
    return [(task, end - run_s[task], end) for task, end in ends.items()]


def peak(points: Points) -> int:
    """The most that is ever there."""
    return max((used for _, used in points), default=0)


def drawn(points: Points, columns: int = 60) -> str:
    """A line of bars: the most that is there in each of as many equal times."""
    if not points or not (most := peak(points)):
        return ""
    end = points[-1][0] or 1.0
    heights = [0] * columns
    for (start, used), (until, _) in zip(points, [*points[1:], (end, 0)], strict=True):
        first = min(columns - 1, int(start / end * columns))
        last = max(first, min(columns, int(until / end * columns)) - 1)
        for at in range(first, last + 1):
            heights[at] = max(heights[at], used)
    return "".join(" ▁▂▃▄▅▆▇█"[-(-8 * height // most)] for height in heights)


def space_of(workflow: Workflow) -> dict[str, Any]:
    """Bytes at the `peak` if all runs that can, the `smallest` space that would do, `every` file
    together, by role.

    And of how many files the size is `unknown`. Nothing if no sizes are known, or the workflow
    is too large.
    """
    written = [workflow.files[f].size_bytes for f in workflow.outputs.index.tolist()]
    if not any(written) or len(workflow) > 20_000:
        return {}
    demand = demand_of(workflow)
    points = over_time(demand, all_at_once(demand, workflow.runtime_s.tolist()))
    return {
        "peak": peak(points),
        "smallest": demand.peak(demand.order()),
        "every": sum(written),
        "roles": _by_role(workflow),
        "unknown": sum(not size for size in written),
        "drawn": drawn(points),
    }


def _by_role(workflow: Workflow) -> dict[str, int]:
    """The bytes of all files of each role."""
    found = dict[str, int]()
    for file, role in zip(workflow.files, roles(workflow)[0], strict=True):
        found[role] = found.get(role, 0) + file.size_bytes
    return found
