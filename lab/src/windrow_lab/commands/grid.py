"""`windrow grid`: generate grids, show them, select nodes by a description, schedule a workflow on
many clusters."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from windrow.cli import options, terminal
from windrow.cli.arguments import assignment, node_count, number, once_each, output_file, seed
from windrow.errors import UserError
from windrow.model.wording import count, span

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow_lab.grid.clusters import Grid
    from windrow_lab.grid.costs import Costs
    from windrow_lab.grid.schedule import Schedule
    from windrow_lab.grid.schedulers import Scheduler
    from windrow_lab.grid.select import Bag, Refusal


_LANGUAGE = """\
a description (the part of vgDL that Zhang's thesis uses):
  LooseBagOf(node)[50:100] { node = [Clock >= 2.5] [Rank = Clock] }       any nodes, the fastest first
  TightBagOf(node)[1:20] { node = [Processor == OPTERON && Memory_GB >= 4] }    well connected ones
  ClusterOf(node)[8:16] [Rank = Nodes] { node = [Clock > 0] }             nodes of one cluster
  LooseBagOf(bag)[1:3] { bag = TightBagOf(node)[1:500] [Rank = Nodes] { node = [Rank = Clock] } }
"""  # noqa: E501

_SHOWN = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    _add_generate(
        _action(actions, "generate", "generate a grid from a recipe; `list` shows the recipes")
    )
    _on_a_grid(_action(actions, "show", "show a grid: clusters, speeds, links"))
    words = "select nodes by a description, or say which condition left too few (exit code 1)"
    _add_select(_action(actions, "select", words, _LANGUAGE))
    words = "schedule a workflow on a grid, and compare schedulers"
    _add_schedule(_action(actions, "schedule", words, _scheduler_names()))


def _action(actions: Any, name: str, words: str, epilog: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=words,
        description=words,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return parser


def _on_a_grid(parser: argparse.ArgumentParser) -> None:
    options.adder(parser)("grid GRID", help="a grid: .toml or .json, plain or .gz")
    options.add_json(parser)


def _add_tight(parser: argparse.ArgumentParser) -> None:
    words = "latency in milliseconds within which clusters are well connected, in a TightBag"
    options.adder(parser)("--tight MS", number(0, 1e6), 10.0, help=words)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("recipe RECIPE", help="a recipe's name, or `list`")
    add("-o --output FILE", output_file, help="where to write: .toml or .json, plain or .gz")
    add("--seed S", seed, 0, help="random seed")
    words = "set a parameter of the recipe; may be repeated"
    add("--set NAME=VALUE", assignment, action="append", help=words)


def _add_select(parser: argparse.ArgumentParser) -> None:
    _on_a_grid(parser)
    _add_tight(parser)
    how = options.adder(parser.add_mutually_exclusive_group(required=True))
    how("--describe TEXT", help="a description, or a file that contains one")
    how("--fastest K", node_count, help="the K fastest nodes")
    words = "what suits this workflow, by its width and its CCR on this grid"
    how("--for WORKFLOW", dest="workflow", help=words)
    options.adder(parser)(
        "-o --output FILE", output_file, help="write the selected nodes as a new grid"
    )


def _scheduler_names() -> str:
    from windrow_lab.grid.schedulers import EACP, SCHEDULERS

    listed = {name: words for name, (_, words) in SCHEDULERS.items()}
    head = f"schedulers (with {EACP} before a name: on clusters that EACP chooses)"
    return options.listings({head: listed})


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    _on_a_grid(parser)
    _add_tight(parser)
    how = options.adder(parser.add_mutually_exclusive_group())
    options.add_workflow(parser)
    add = options.adder(parser)
    words = "names, separated by commas, or `all`; see below"
    add("--schedulers LIST", default="heft,hhs,greedy,lhbs", help=words)
    words = "also run each of them on the clusters that EACP chooses"
    add("--eacp", action="store_true", help=words)
    words = "on the nodes that this description selects; a text, or a file that contains one"
    how("--describe TEXT", help=words)
    how("--fastest K", node_count, help="on the K fastest nodes")
    words = "a .csv file with each task's seconds on each cluster (default: by clusters' speeds)"
    add("--run-times FILE", help=words)
    options.add_html(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if args.action == "generate":
        return _generate(args)
    from windrow_lab.grid.file import read_grid

    with terminal.waiting(f"reading {args.grid}"):
        grid = read_grid(args.grid)
    return {"show": _show, "select": _select, "schedule": _schedule}[args.action](args, grid)


def _generate(args: argparse.Namespace) -> int:
    from windrow_lab.grid.file import write_grid
    from windrow_lab.grid.recipes import GRID_RECIPES, generate_grid

    if args.recipe == "list":
        _show_recipes()
        return 0
    if not args.output and args.recipe in GRID_RECIPES:
        raise UserError(f"name the file to write, for example -o {args.recipe}.json")
    with terminal.waiting(f"generating {args.output}"):
        grid = generate_grid(args.recipe, seed=args.seed, parameters=once_each(args.set or []))
        write_grid(grid, args.output)
    print(
        f"{args.output}: {count(len(grid.clusters), 'cluster')}, {count(grid.processors, 'node')}"
    )
    print(f"stand-ins: {GRID_RECIPES[args.recipe].stand_ins}")
    return 0


def _show_recipes() -> None:
    from windrow_lab.grid.recipes import GRID_RECIPES

    recipes = GRID_RECIPES.values()
    parameters = {p.name: p.meaning for recipe in recipes for p in recipe.parameters}
    rows = [(recipe.name, recipe.summary, recipe.stand_ins) for recipe in recipes]
    table = terminal.table(("recipe", "what", "stand-ins"), rows, "<l")
    terminal.show(table, terminal.table(None, list(parameters.items()), "<l"))


def _show(args: argparse.Namespace, grid: Grid) -> int:
    figures = {
        "clusters": len(grid.clusters),
        "nodes": grid.processors,
        "reference_speed": grid.reference_speed,
        "mean_latency_s": grid.mean_latency_s,
        "mean_s_per_byte": grid.mean_s_per_byte,
    }
    if args.json:
        clusters = [cluster.table() for cluster in grid.clusters]
        terminal.print_json(figures | {"cluster_list": clusters})
        return 0
    rows = [(name.replace("_", " "), f"{value:,.6g}") for name, value in figures.items()]
    order = sorted(range(len(grid.clusters)), key=lambda c: (-grid.speeds[c], c))
    nodes = {c: int(grid.nodes[c]) for c in order}
    terminal.show(terminal.table(None, rows), _clusters(grid, nodes))
    return 0


def _clusters(grid: Grid, nodes: dict[int, int]) -> RenderableType:
    """A table of clusters, with that many nodes of each."""
    rows = []
    for c, used in list(nodes.items())[:_SHOWN]:
        cluster = grid.clusters[c]
        about = ", ".join(f"{name} {value}" for name, value in cluster.attributes.items())
        rows.append((cluster.name, f"{used:,}", f"{cluster.nodes:,}", f"{cluster.speed:g}", about))
    if len(nodes) > _SHOWN:
        rows.append((f"and {len(nodes) - _SHOWN:,} more", "", "", "", ""))
    return terminal.table(("cluster", "nodes", "of", "speed", ""), rows, "<>>>l")


def _selected(args: argparse.Namespace, grid: Grid, text: str | None) -> Bag | Refusal:
    """What a description selects; a text that cannot be one is the name of a file that holds it."""
    from windrow.formats.disk import read_text
    from windrow_lab.grid.describe import fastest, parse_description
    from windrow_lab.grid.select import select

    if text is None:
        return select(fastest(args.fastest), grid)
    if "(" in text or "=" in text:
        source = (text, "description")
    else:
        source = (read_text(text), text)
    return select(parse_description(*source), grid, tight_s=args.tight / 1000)


def _select(args: argparse.Namespace, grid: Grid) -> int:
    from windrow_lab.grid.select import Refusal

    text = args.describe
    blocks = list[Any]()
    if args.workflow:
        lead, text = _suits(args.workflow, grid)
        blocks.append(lead)
    found = _selected(args, grid, text)
    if isinstance(found, Refusal):
        told: dict[str, Any] = {"selected": None, "why": found.why, "condition": found.condition}
        blocks.append(terminal.text(f"nothing selected: {found.why}"))
    else:
        told = _bag_json(found, grid)
        blocks += _bag_blocks(found, grid, args.output)
    if args.json:
        terminal.print_json({"description": text, **told})
    else:
        terminal.show(*blocks)
    return int(isinstance(found, Refusal))


def _suits(workflow: str, grid: Grid) -> tuple[Any, str]:
    """The description that suits the workflow in this file, and what is said of it."""
    from windrow.formats import read_workflow
    from windrow_lab.grid.costs import Costs
    from windrow_lab.grid.describe import propose

    costs = Costs(read_workflow(workflow), grid)
    name, text, why = propose(_ccr(costs), costs.width, grid.processors)
    return terminal.text(f"{name}: {why}", text), text


def _bag_json(found: Bag, grid: Grid) -> dict[str, Any]:
    def named(bag: Bag) -> dict[str, int]:
        return {grid.clusters[c].name: nodes for c, nodes in bag.nodes.items()}

    bags = [named(bag) for bag in found.bags or (found,)]
    return {"selected": named(found), "nodes": found.size, "bags": bags}


def _bag_blocks(found: Bag, grid: Grid, output: str | None) -> list[Any]:
    """What is shown of a selection, which is written as a grid if a file is given."""
    from windrow_lab.grid.file import write_grid

    head = f"{found.kind}: {count(found.size, 'node')} of {count(len(found.nodes), 'cluster')}"
    head = f"{head}, in {count(len(found.bags) or 1, 'bag')}"
    blocks = [terminal.heading(head), _clusters(grid, dict(found.nodes))]
    if output:
        write_grid(grid.part(found.nodes), output)
        blocks += terminal.files_written(grid=output)
    return blocks


def _ccr(costs: Costs) -> float:
    return costs.workflow.ccr(costs.grid.mean_s_per_byte)


def _schedule(args: argparse.Namespace, grid: Grid) -> int:
    from windrow.formats import read_workflow
    from windrow_lab.grid.costs import Costs
    from windrow_lab.grid.page import schedule_page

    ways = _ways(args.schedulers, with_eacp=args.eacp)
    costs = Costs(read_workflow(args.workflow), grid)
    if args.run_times:
        from windrow_lab.grid.run_times import read_run_times

        costs = replace(costs, given_run_s=read_run_times(args.run_times, costs.workflow, grid))
    nodes = _nodes(args, grid)
    made = _planned(ways, costs, nodes)
    if args.html:
        schedules = {name: one.schedule for name, one in made.items()}
        terminal.write_page(args.html, schedule_page(costs, schedules, Path(args.grid).name))
    if args.json:
        terminal.print_json(_schedules_json(costs, nodes, made))
    else:
        _show_schedules(costs, nodes, made, args.html)
    return 0


def _ways(listed: str, *, with_eacp: bool) -> dict[str, Scheduler]:
    """The schedulers of a list, by name; with EACP, each of them twice."""
    from windrow_lab.grid.schedulers import EACP, SCHEDULERS, find_scheduler

    if listed == "all":
        given = list(SCHEDULERS)
    else:
        given = [name.strip() for name in listed.split(",")]
    if with_eacp:
        given += [f"{EACP}{name.removeprefix(EACP)}" for name in given]
    return {name: find_scheduler(name) for name in given}


class _TimedSchedule(NamedTuple):
    """What a scheduler made, and how long it took."""

    schedule: Schedule
    took_s: float


def _nodes(args: argparse.Namespace, grid: Grid) -> dict[int, int]:
    """How many nodes of which cluster are used: all of them, if none are selected."""
    from windrow_lab.grid.select import Refusal

    if not args.describe and not args.fastest:
        return {c: int(n) for c, n in enumerate(grid.nodes)}
    found = _selected(args, grid, args.describe)
    if isinstance(found, Refusal):
        raise UserError(f"nothing selected: {found.why}")
    return dict(found.nodes)


def _planned(
    ways: Mapping[str, Scheduler], costs: Costs, nodes: Mapping[int, int]
) -> dict[str, _TimedSchedule]:
    """What each scheduler makes of the workflow. To load or compile what plans is not planning, and
    no scheduler's own: it is done before."""
    from windrow.kernels import jit
    from windrow.model import Task, Workflow
    from windrow_lab.grid.costs import Costs
    from windrow_lab.grid.schedule import on_part

    if not costs.is_small:
        jit.load()
    tiny = Costs(Workflow.from_tasks("one", [Task("one", 1.0)]), costs.grid)
    made: dict[str, _TimedSchedule] = {}
    for name, scheduler in ways.items():
        on_part(tiny, nodes, scheduler)
        with terminal.waiting(f"{name} ({len(made) + 1} of {len(ways)})"):
            began = time.perf_counter()
            schedule = on_part(costs, nodes, scheduler)
            made[name] = _TimedSchedule(schedule, time.perf_counter() - began)
    return made


def _schedules_json(
    costs: Costs, nodes: Mapping[int, int], made: Mapping[str, _TimedSchedule]
) -> dict[str, Any]:
    return {
        "workflow": costs.workflow.name,
        "tasks": len(costs.workflow),
        "width": costs.width,
        "ccr": _ccr(costs),
        "nodes": sum(nodes.values()),
        "critical_s": costs.critical_s,
        "schedules": [
            _as_json(name, one.schedule) | {"planning_s": one.took_s} for name, one in made.items()
        ],
    }


def _show_schedules(
    costs: Costs, nodes: Mapping[int, int], made: Mapping[str, _TimedSchedule], page: str | None
) -> None:
    from windrow_lab.grid.page import HEAD, row

    where = f"{count(sum(nodes.values()), 'node')} of {count(len(nodes), 'cluster')}"
    words = (
        f"{len(costs.workflow):,} tasks, at most {costs.width:,} on a level, CCR {_ccr(costs):.3g}"
    )
    rows = []
    for name, (schedule, took_s) in made.items():
        took = span(took_s) if took_s >= 1 else f"{1000 * took_s:.3g} ms"
        rows.append((*row(name, schedule), took))
    figures = terminal.table((*HEAD, "planned in"), rows, "<>")
    head = terminal.heading(f"{costs.workflow.name} on {where}")
    terminal.show(head, words, figures, *terminal.files_written(page=page))


def _as_json(name: str, schedule: Schedule) -> dict[str, object]:
    ids = schedule.costs.workflow.ids
    names = [c.name for c in schedule.costs.grid.clusters]
    node = schedule.processor - schedule.costs.grid.first[schedule.cluster]
    columns = (schedule.task, schedule.cluster, node, schedule.start_s, schedule.end_s)
    rows = [
        {"task": ids[i], "cluster": names[c], "node": n, "start_s": a, "end_s": b}
        for i, c, n, a, b in zip(*(column.tolist() for column in columns), strict=True)
    ]
    figures = {"makespan_s": schedule.makespan_s, "slr": schedule.slr, "copies": schedule.copies}
    return {"scheduler": name, **figures, "rows": rows}
