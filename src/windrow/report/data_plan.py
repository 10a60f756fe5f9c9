"""The page of `windrow plan --environment`: storage allocations side by side, and nodes at work under each."""

from math import inf

from windrow.lab.data_plan import DataPlan, busy_nodes
from windrow.model import format_duration
from windrow.model.size import format_size
from windrow.report import plot
from windrow.report.page import figure, note, page, section, table
from windrow.report.plot import Frame, count_axis, time_axis

_WIDTH, _HEIGHT, _GAP = 960, 130, 34


def data_plan_page(name: str, plan: DataPlan) -> str:
    """The whole document."""
    rows, ending = [], [option for option in plan.options if option.time_s < inf]
    for option in plan.options:
        takes = format_duration(option.time_s) if option.time_s < inf else "never ends" if option.runs else "no space"
        sizes = [format_size(option.runs[0].moved), str(option.runs[0].fetches)] if option.runs else ["", ""]
        model = format_duration(option.model_s) if option.model_s < inf else ""
        rows.append([option.allocation, format_size(option.least_bytes), takes, model, *sizes])
    heads = ("allocation", "space needed", "takes", "Bent's model", "over the wide area", "fetches of batch volumes")
    span = max((option.runs[0].time_s for option in ending), default=1.0)
    parts = []
    for k, option in enumerate(ending):
        x = time_axis(0, span, "since the start" if option is ending[-1] else "")
        y = count_axis(plan.where.nodes, option.allocation, most_ticks=3)
        frame = Frame(64, 12 + k * (_HEIGHT + _GAP), _WIDTH - 84, _HEIGHT, x, y)
        drawn = plot.step_line(frame, *busy_nodes(option.runs[0]), k)
        parts += [plot.axes(frame, x_labels=option is ending[-1]), drawn]
    height = 60 + len(ending) * (_HEIGHT + _GAP)
    caption = "Nodes that have a job, over time, under each allocation that is possible."
    drawing = figure(plot.picture(_WIDTH, height, caption, parts), caption)
    lead = f"{len(plan.flow.level):,} tasks in {len(plan.flow.pipes) - 1:,} pipelines, {plan.where.nodes:,} nodes, "
    lead += f"{format_size(plan.where.storage)} of space."
    body = [section("Which allocation", note(plan.why), table(heads, rows)), section("Nodes at work", drawing)]
    return page(f"Space for {name}", lead, body)
