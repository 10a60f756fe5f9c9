"""`windrow show`: the shape of a workflow, in the terminal, as JSON or as a page."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import size_bytes
from windrow.model import format_duration
from windrow.model.resources import amount_text
from windrow.model.size import format_size
from windrow.model.wording import count

if TYPE_CHECKING:
    from rich.table import Table

    from windrow.model import Workflow
    from windrow.shape import Shape


_EXACT_UP_TO = 100_000
_MOST_ROWS = 32
_BAR = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_workflow(parser)
    options.add_html(parser)
    options.add_json(parser, "instead of tables")
    exact = (
        f"compute the level of parallelism even above {_EXACT_UP_TO:,} dependencies, where "
        "it may take minutes"
    )
    words = "bytes per second, to convert data to time in the ratio of communication to computation"
    options.adder(parser)("--bandwidth SIZE", size_bytes, "12.5MB", help=words)
    parser.add_argument("--exact", action="store_true", help=exact)


def run(args: argparse.Namespace) -> None:
    """Read, measure, print."""
    from windrow.app.volumes import told_volumes
    from windrow.formats import read_runnable, read_workflow
    from windrow.formats.disk import format_suffix
    from windrow.shape import level_of_parallelism, shape, token_parallelism
    from windrow.storage.roles import roles
    from windrow.storage.volumes import volumes_used

    with terminal.waiting(f"reading {args.workflow}"):
        if format_suffix(args.workflow) in (".yaml", ".yml"):
            native = read_runnable(args.workflow)
        else:
            native = None
        if native:
            workflow = native.workflow
        else:
            workflow = read_workflow(args.workflow)
    with terminal.waiting("measuring"):
        figures = shape(workflow)
        token = token_parallelism(workflow)
        ccr = workflow.ccr(1 / args.bandwidth)
        if args.exact or figures.edges <= _EXACT_UP_TO:
            exact = level_of_parallelism(workflow)
        else:
            exact = None
    if args.html:
        from windrow.report.workflow import workflow_page

        terminal.write_page(args.html, workflow_page(workflow, figures, token=token, exact=exact))
    if native:
        used = volumes_used(step.mounts for step in native.steps)
    else:
        used = []
    if args.json:
        if used:
            volumes = {"volumes": [use._asdict() for use in used]}
        else:
            volumes = {}
        terminal.print_json(_as_json(workflow, figures, token, exact) | {"ccr": ccr} | volumes)
    else:
        repairs = [*workflow.repairs(), *roles(workflow)[1], *told_volumes(used)]
        written = terminal.files_written(page=args.html)
        blocks = (_facts(workflow, figures, token, exact, ccr), _levels(figures), _kinds(workflow))
        terminal.show(terminal.heading(workflow.name), *repairs, *blocks, *written)


def _as_json(
    workflow: Workflow, figures: Shape, token: int, exact: int | None
) -> dict[str, object]:
    from windrow.shape import kinds
    from windrow.storage.timeline import space_of

    return {
        "name": workflow.name,
        **asdict(figures),
        "guessed_run_times": workflow.guessed_run_times,
        "mended_run_times": workflow.mended_run_times,
        "token_parallelism": token,
        "level_of_parallelism": exact,
        "kinds": [asdict(kind) for kind in kinds(workflow)],
        "largest_needs": _most(workflow),
    } | ({"space": space} if (space := space_of(workflow)) else {})


def _space_rows(workflow: Workflow) -> dict[str, str]:
    """What files take, for people."""
    from windrow.storage.timeline import space_of

    if not (space := space_of(workflow)):
        return {}
    peak = format_size(space["peak"])
    least = format_size(space["smallest"])
    rows = {
        "space": f"at most {peak}, if everything runs that can; {least} is enough (windrow run "
        "--space)"
    }
    rows["  over time"] = space["drawn"]
    rows["  by role"] = ", ".join(
        f"{role} {format_size(size)}" for role, size in space["roles"].items()
    )
    unknown = (
        f"the sizes of {count(space['unknown'], 'file')} that tasks write: they count as empty"
    )
    return rows | ({"  not known": unknown} if space["unknown"] else {})


def _most(workflow: Workflow) -> dict[str, int]:
    """The most that a task needs of each resource, without what no task needs."""
    columns = {
        "cores": workflow.cores,
        "memory": workflow.memory_bytes,
        "disk": workflow.disk_bytes,
        **workflow.counts,
    }
    return {name: int(column.max()) for name, column in columns.items() if column.any()}


def _facts(workflow: Workflow, figures: Shape, token: int, exact: int | None, ccr: float) -> Table:
    path = f"{format_duration(figures.critical_path_s)} along {len(figures.critical_tasks):,} tasks"
    unknown = f"not computed above {_EXACT_UP_TO:,} dependencies; compute it with --exact"
    rows = {
        "tasks": f"{figures.tasks:,}",
        "dependencies": f"{figures.edges:,}",
        **_data_rows(figures, ccr),
        "levels": f"{figures.levels:,}",
        "width": f"{figures.width:,} tasks on the widest level",
        "work": f"{format_duration(figures.work_s)}{terminal.guesses(workflow)}",
        "critical path": path,
        "level of parallelism": unknown if exact is None else f"{exact:,}",
        "  by tokens": f"{token:,}",
    }
    rows |= _space_rows(workflow)
    if len(most := _most(workflow)) > 1 or most["cores"] > 1:
        rows["a task needs"] = "at most " + ", ".join(
            amount_text(name, amount) for name, amount in most.items()
        )
    return terminal.table(None, list(rows.items()), "l")


def _data_rows(figures: Shape, ccr: float) -> dict[str, str]:
    if not figures.size_bytes:
        return {"files": f"{figures.files:,}, none of known size"}
    return {
        "files": f"{figures.files:,}, {format_size(figures.size_bytes)} in all",
        "data between tasks": f"{format_size(figures.moved_bytes)}, CCR {ccr:.3g}",
    }


def _levels(figures: Shape) -> Table:
    """One row per level, or per range of levels if there are many: then the widest of them
    counts."""
    step = -(-figures.levels // _MOST_ROWS)
    if step == 1:
        heads = ("level", "tasks", "", "work")
    else:
        heads = ("levels", "at most", "", "work")
    rows = []
    for first in range(0, figures.levels, step):
        last = min(first + step, figures.levels) - 1
        width = max(figures.widths[first : last + 1])
        eighths = max(
            1, round(width / figures.width * _BAR * 8)
        )  # of a column; what is there at all is seen
        bar = terminal.text("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip(), style="cyan")
        work = format_duration(sum(figures.level_work_s[first : last + 1]))
        rows.append((f"{first}" if first == last else f"{first}–{last}", f"{width:,}", bar, work))
    return terminal.table(heads, rows, "lrlr")


def _kinds(workflow: Workflow) -> Table:
    from windrow.shape import kinds

    found = kinds(workflow)
    rows: list[tuple[str, ...]] = []
    for kind in found[:_MOST_ROWS]:
        mean = format_duration(kind.work_s / kind.tasks)
        rows.append(
            (kind.name or "(no name)", f"{kind.tasks:,}", mean, format_duration(kind.work_s))
        )
    if len(found) > _MOST_ROWS:
        rows.append((f"and {len(found) - _MOST_ROWS:,} more",))
    return terminal.table(("kind", "tasks", "mean run", "work"), rows, "lr")
