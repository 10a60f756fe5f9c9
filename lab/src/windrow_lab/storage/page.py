"""The page of `windrow plan --environment`: storage allocations side by side, and nodes at work
under each."""

from windrow.report import plot
from windrow.report.page import figure, note, page, section, table
from windrow.report.plot import Frame, count_axis, time_axis
from windrow_lab.storage.plan import HEADS, DataPlan, busy_nodes

_WIDTH = 960
_HEIGHT = 130
_GAP = 34
_CAPTION = "Nodes that have a job, over time, under each allocation that is possible."


def data_plan_page(plan: DataPlan) -> str:
    """The whole document."""
    rows = table(HEADS, [option.row() for option in plan.options])
    which = section("Which allocation", note(plan.why), rows)
    work = section("Nodes at work", figure(_picture(plan), _CAPTION))
    return page(f"Space for {plan.name}", plan.lead, [which, work])


def _picture(plan: DataPlan) -> str:
    span = max((option.runs[0].time_s for option in plan.ending), default=1.0)
    parts = []
    for k, option in enumerate(plan.ending):
        x = time_axis(0, span, "since the start")
        y = count_axis(plan.where.nodes, option.allocation, most_ticks=3)
        frame = Frame(64, 12 + k * (_HEIGHT + _GAP), _WIDTH - 84, _HEIGHT, x, y)
        parts.append(plot.axes(frame, x_labels=option is plan.ending[-1]))
        parts.append(plot.step_line(frame, *busy_nodes(option.runs[0]), k))
    return plot.picture(_WIDTH, 60 + len(plan.ending) * (_HEIGHT + _GAP), _CAPTION, parts)
