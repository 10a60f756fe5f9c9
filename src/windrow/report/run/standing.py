"""How a run stands: how long it will need yet, whether it is late, and what keeps it from going on.

Every `windrow run` asks this all the time, so what is seldom needed is loaded where it is.
"""

from windrow.app.runs import RunView
from windrow.manager.states import RunState, TaskState


def left_s(told: RunView, now_s: float) -> float | None:
    """How long the run will need yet. None where that is unknown: nothing is done, and all run times are guesses."""
    from windrow.report.run.time_left import time_left_s  # noqa: PLC0415

    facts = told.facts
    if facts.get("guesses", 0) >= len(told.story.tasks) and not told.story.count(TaskState.FINISHED):
        return None
    return time_left_s(told.story, told.predictions(), int(facts.get("node_cores") or 1), now_s)


def missed_by_s(told: RunView, end_s: float) -> float | None:
    """By how much the run is, or was, late; None where it has no deadline or is in time."""
    deadline_s, begun_s = told.facts.get("deadline_s"), told.story.begun_s
    late_s = 0.0 if deadline_s is None or begun_s is None else end_s - begun_s - deadline_s
    return late_s if late_s > 0 else None


def warnings(told: RunView) -> list[str]:
    """What keeps the run from going on while it is meant to."""
    if told.state not in (RunState.RUNNING, RunState.INTERRUPTED):
        return []
    found = [told.trouble_with_queue] if told.state == RunState.RUNNING else []
    if any(job.reason for job in told.story.jobs.values()):
        from windrow.report.run.explanation import nothing_can_start  # noqa: PLC0415

        found.append(nothing_can_start(told.story))
    return [f"warning: {words}" for words in found if words]
