"""The page of one workflow: its figures, its profile, its kinds of task, and a drawing where it is small enough."""

from collections.abc import Iterator, Sequence

from windrow.model import Workflow, format_duration
from windrow.model.size import format_size
from windrow.report.page import cell, facts, figure, note, page, section, table
from windrow.report.svg.plot import legend
from windrow.report.workflow.drawing import can_be_drawn, drawing, kind_colours
from windrow.report.workflow.profile import profile
from windrow.shape import Kind, Shape, kinds

_MOST_KINDS = 30


def workflow_page(workflow: Workflow, figures: Shape, *, token: int, exact: int | None) -> str:
    """HTML about a workflow. `exact` is its level of parallelism, or None where it was not computed."""
    colours, keys = kind_colours(workflow)
    picture, caption = profile(workflow, figures, colours)
    sections = [
        section("In figures", facts(_facts(figures, token, exact))),
        section("Level by level", figure(picture, caption, legend(keys, marks=False))),
        section("Kinds of task", _kinds(kinds(workflow))),
        section("Task by task", _drawing(workflow, figures, colours, keys)),
    ]
    lead = f"{figures.tasks:,} tasks on {figures.levels:,} levels, {format_duration(figures.work_s)} of work."
    return page(f"Workflow {workflow.name}", lead, sections)


def _facts(figures: Shape, token: int, exact: int | None) -> Iterator[tuple[str, str]]:
    yield "tasks", f"{figures.tasks:,}, with {figures.edges:,} dependencies"
    moved = f"tasks read {format_size(figures.moved_bytes)} of each other"
    yield "files", f"{figures.files:,}, {format_size(figures.size_bytes)} in all; {moved}"
    yield "levels", f"{figures.levels:,}, the widest with {figures.width:,} tasks"
    yield "work", f"{format_duration(figures.work_s)}, the sum of all run times"
    path = f"{format_duration(figures.critical_path_s)} along {len(figures.critical_tasks):,} tasks"
    yield "critical path", f"{path}: no number of nodes runs the workflow faster"
    speedup = figures.work_s / figures.critical_path_s if figures.critical_path_s else 1.0
    yield "mean parallelism", f"{speedup:,.1f}, work divided by critical path: more nodes cannot be busy all the time"
    words = "not computed" if exact is None else f"{exact:,} tasks can run at once at most"
    yield "level of parallelism", f"{words} (by tokens, an estimate from below: {token:,})"


def _kinds(found: Sequence[Kind]) -> str:
    rows = [
        [
            cell(kind.name or "(no name)"),
            cell(f"{kind.tasks:,}"),
            cell(format_duration(kind.work_s / kind.tasks)),
            cell(format_duration(kind.work_s)),
            cell("–".join(map(str, dict.fromkeys((kind.first_level, kind.last_level))))),
        ]
        for kind in found[:_MOST_KINDS]
    ]
    more = note(f"And {len(found) - _MOST_KINDS:,} more kinds.") if len(found) > _MOST_KINDS else ""
    return table(["kind", "tasks", "mean run", "work", "levels"], rows) + more


def _drawing(workflow: Workflow, figures: Shape, colours: dict[str, int], keys: Sequence[str]) -> str:
    if not can_be_drawn(figures):
        return note("The workflow is too large to draw every task in a way that could be read.")
    caption = (
        "Every dot is a task: its row is its level (numbers at the left), its colour its kind; of two in a row the "
        "larger runs longer. Curves are dependencies, downwards, the strong ones the critical path. Rest the pointer "
        "on a dot for its name."
    )
    return figure(drawing(workflow, figures, colours), caption, legend(keys, marks=False))
