"""What the files of a run took, and what they need, if its space is limited."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windrow.model.size import format_size, size_option
from windrow.model.wording import count, span
from windrow.story.states import TaskState

if TYPE_CHECKING:
    from windrow.storage.timeline import Points
    from windrow.story.figures import RecordedRun


def taken(run: RecordedRun) -> Points:
    """What the files of a run took over time, by their sizes as made; times count from its
    start."""
    from windrow.storage.demand import demand_of  # noqa: PLC0415
    from windrow.storage.timeline import over_time  # noqa: PLC0415

    workflow = run.story.workflow
    story = run.story
    sizes = {workflow.files[f].id: size for f, size in story.sizes().items()}
    spans = []
    for number, task in enumerate(story.tasks):
        if task.attempts and task.state is TaskState.FINISHED:
            last = task.attempts[-1]
            if last.ended_s is None:
                ended_s = run.until_s
            else:
                ended_s = last.ended_s
            spans.append((number, last.started_s - run.begun_s, ended_s - run.begun_s))
    return over_time(demand_of(workflow), spans, sizes)


def exceeded(run: RecordedRun) -> tuple[float, int] | None:
    """When the files of a run took most, and how much, if that was more than its limit."""
    if run.space is None:
        return None
    at_s, most = max(taken(run), key=lambda point: (point[1], -point[0]), default=(0.0, 0))
    if most > run.space.size:
        return (at_s, most)
    return None


class Needed(NamedTuple):
    """The least space with which what is left of a run would go to its end, and how many of the
    files that it makes have a size of which nothing is known, and count as empty."""

    size: int
    unknown: int


def needed(run: RecordedRun) -> Needed:
    """By all that is known of sizes now."""
    from windrow.storage.demand import demand_of, with_likely_sizes  # noqa: PLC0415

    workflow = run.story.workflow
    story = run.story
    left = [
        number for number, task in enumerate(story.tasks) if task.state is not TaskState.FINISHED
    ]
    sizes = with_likely_sizes(workflow, story.measured())
    unknown = sum(
        f not in sizes and not workflow.files[f].size_bytes
        for number in left
        for f in workflow.outputs.of(number).tolist()
    )
    demand = demand_of(workflow, left, sizes)
    return Needed(demand.peak(demand.order()), unknown)


def words_on_space(run: RecordedRun) -> list[str]:
    """Whether the limit was exceeded, and what a run that gave up for lack of space needs."""
    if run.space is None:
        return []
    limit = format_size(run.space.size)
    lines = []
    if (most := exceeded(run)) is not None:
        at_s, size = most
        lines.append(f"the limit of {limit} was exceeded: {format_size(size)} after {span(at_s)}")
    if run.story.trouble and (least := needed(run)).size > run.space.size:
        fix = f"windrow resume {run.name} --space {size_option(least.size)}"
        if least.unknown:
            fix += f", or more: {count(least.unknown, 'file')} of unknown size would come to it"
        lines.append(
            f"its files need at least {format_size(least.size)} at a time, and may take {limit}: "
            f"{fix}"
        )
    return lines
