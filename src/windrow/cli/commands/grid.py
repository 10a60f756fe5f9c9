"""`windrow grid`: generate grids, show them, select nodes by a description, schedule a workflow on many clusters."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import assignment, node_count, number, once_each, seed
from windrow.errors import UserError
from windrow.model.size import format_size
from windrow.model.wording import count, span

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.grid.clusters import Grid
    from windrow.grid.costs import Costs
    from windrow.grid.schedule import Schedule
    from windrow.grid.select import Bag, Refusal

SUMMARY = "Study many clusters: generate a grid, select nodes by a description, schedule a workflow on them."

EPILOG = """\
A grid is a TOML or JSON file: clusters of equal nodes that are free, and links between them. Schedules are plans: run
times are exact and there are no queues. (To run on several real clusters, see windrow run --on.)

examples:
  windrow grid generate list
  windrow grid generate many-cluster -o grid.toml
  windrow grid select grid.toml --describe 'TightBagOf(node)[1:20] { node = [Clock >= 2] [Rank = Clock] }'
  windrow grid schedule grid.toml montage.json --schedulers heft,eacp+heft --html schedule.html

Each action has its own help: windrow grid schedule --help
"""

GRID_FILES = "a grid: .toml or .json, plain or .gz"
THESIS = "heft,hhs,greedy,lhbs"
_SHOWN = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)

    def action(name: str, words: str, epilog: str = "") -> argparse.ArgumentParser:
        looks: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        return actions.add_parser(name, help=words, description=words, epilog=epilog, **looks)

    made = action("generate", "write a grid by a recipe; `list` shows the recipes")
    add = options.adder(made)
    add("recipe RECIPE", help="a recipe's name, or `list`")
    add("-o --output FILE", help="where to write: .toml or .json, plain or .gz")
    add("--seed S", seed, 0, help="random seed")
    add("--set NAME=VALUE", assignment, action="append", help="set a parameter of the recipe; may be repeated")
    shown = action("show", "show a grid: clusters, speeds, links")
    options.adder(shown)("grid GRID", help=GRID_FILES)
    options.add_json(shown, "instead of tables")
    chosen = action(
        "select", "select nodes by a description, or say which condition left too few (exit code 1)", _LANGUAGE
    )
    options.adder(chosen)("grid GRID", help=GRID_FILES)
    how = options.adder(chosen.add_mutually_exclusive_group(required=True))
    how("--describe TEXT", help="a description, or a file that holds one")
    how("--fastest K", node_count, help="the K fastest nodes")
    how("--for WORKFLOW", dest="workflow", help="what suits this workflow, by its width and its CCR on this grid")
    _add_tight(chosen)
    options.adder(chosen)("-o --output FILE", help="write what was selected as a grid of its own")
    options.add_json(chosen)
    _add_schedule(action("schedule", "schedule a workflow on a grid, and compare schedulers", _schedulers()))


def _add_tight(parser: argparse.ArgumentParser) -> None:
    words = "latency in milliseconds within which clusters are well connected, in a TightBag"
    options.adder(parser)("--tight MS", number(0, 1e6), 10.0, help=words)


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("grid GRID", help=GRID_FILES)
    options.add_workflow(parser)
    add("--schedulers LIST", default=THESIS, help="names, with commas between them, or `all`; see below")
    add("--eacp", action="store_true", help="also with EACP's choice of clusters before each of them")
    how = options.adder(parser.add_mutually_exclusive_group())
    how("--describe TEXT", help="on the nodes that this description selects; a text, or a file that holds one")
    how("--fastest K", node_count, help="on the K fastest nodes")
    _add_tight(parser)
    options.add_html(parser)
    options.add_json(parser)


_LANGUAGE = """\
a description (the part of vgDL that Zhang's thesis uses):
  LooseBagOf(node)[50:100] { node = [Clock >= 2.5] [Rank = Clock] }       any nodes, the fastest first
  TightBagOf(node)[1:20] { node = [Processor == OPTERON && Memory_GB >= 4] }    well connected ones
  ClusterOf(node)[8:16] [Rank = Nodes] { node = [Clock > 0] }             nodes of one cluster
  LooseBagOf(bag)[1:3] { bag = TightBagOf(node)[1:500] [Rank = Nodes] { node = [Rank = Clock] } }
"""


def _schedulers() -> str:
    from windrow.grid.schedulers import EACP, SCHEDULERS

    listed = {name: words for name, (words, *_) in SCHEDULERS.items()}
    return options.listings({f"schedulers (with {EACP} before a name: on clusters that EACP chooses)": listed})


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if args.action == "generate":
        return _generate(args)
    from windrow.formats.grid_file import read_grid

    with terminal.waiting(f"reading {args.grid}"):
        grid = read_grid(args.grid)
    return {"show": _show, "select": _select, "schedule": _schedule}[args.action](args, grid)


def _generate(args: argparse.Namespace) -> int:
    from windrow.formats.grid_file import write_grid
    from windrow.recipes import GRID_RECIPES, generate_grid

    if args.recipe == "list":
        heads = ("recipe", "what", "stand-ins")
        parameters = {p.name: p.meaning for recipe in GRID_RECIPES.values() for p in recipe.parameters}
        rows = [(r.name, r.summary, r.stand_ins) for r in GRID_RECIPES.values()]
        terminal.show(terminal.table(heads, rows, "<l"), terminal.table(None, list(parameters.items()), "<l"))
        return 0
    if not args.output and args.recipe in GRID_RECIPES:
        raise UserError(f"name the file to write, for example -o {args.recipe}.json")
    with terminal.waiting(f"generating {args.output}"):
        grid = generate_grid(args.recipe, seed=args.seed, parameters=once_each(args.set or []))
        write_grid(grid, args.output)
    print(f"{args.output}: {count(len(grid.clusters), 'cluster')}, {count(grid.processors, 'node')}")
    print(f"stand-ins: {GRID_RECIPES[args.recipe].stand_ins}")
    return 0


def _show(args: argparse.Namespace, grid: Grid) -> int:
    facts = {
        "clusters": len(grid.clusters),
        "nodes": grid.processors,
        "mean_latency_s": grid.mean_latency_s,
        "mean_bandwidth_bytes_s": grid.mean_bandwidth_bytes_s,
        "reference_speed": grid.reference_speed,
    }
    if args.json:
        rows = [{"name": c.name, "nodes": c.nodes, "speed": c.speed, **c.attributes} for c in grid.clusters]
        terminal.print_json(facts | {"mean_bandwidth_bytes_s": _finite(grid), "cluster_list": rows})
        return 0
    words = {
        "clusters": f"{len(grid.clusters):,}",
        "nodes": f"{grid.processors:,}",
        "between two nodes": f"{1000 * grid.mean_latency_s:.3g} ms, {_bandwidth(grid)} in the mean",
        "run times are those": f"at a speed of {grid.reference_speed:.3g}, the mean",
    }
    order = sorted(range(len(grid.clusters)), key=lambda c: (-grid.speeds[c], c))
    terminal.show(terminal.table(None, list(words.items()), "l"), _clusters(grid, {c: grid.nodes[c] for c in order}))
    return 0


def _finite(grid: Grid) -> float | None:
    return grid.mean_bandwidth_bytes_s if grid.mean_s_per_byte else None


def _bandwidth(grid: Grid) -> str:
    return f"{format_size(grid.mean_bandwidth_bytes_s)}/s" if grid.mean_s_per_byte else "no bandwidth"


def _clusters(grid: Grid, nodes: dict[int, Any]) -> RenderableType:
    """A table of clusters, with so many nodes of each."""
    rows = []
    for c, used in list(nodes.items())[:_SHOWN]:
        cluster = grid.clusters[c]
        about = ", ".join(f"{name} {value}" for name, value in cluster.attributes.items())
        rows.append((cluster.name, f"{used:,}", f"{cluster.nodes:,}", f"{cluster.speed:g}", about))
    if len(nodes) > _SHOWN:
        rows.append((f"and {len(nodes) - _SHOWN:,} more", "", "", "", ""))
    return terminal.table(("cluster", "nodes", "of", "speed", ""), rows, "<>>>l")


def _selected(args: argparse.Namespace, grid: Grid, text: str | None) -> Bag | Refusal:
    from windrow.grid.describe import fastest, parse_description
    from windrow.grid.select import select

    if text is None:
        return select(fastest(args.fastest), grid)
    return select(parse_description(*_description(text)), grid, tight_s=args.tight / 1000)


def _description(text: str) -> tuple[str, str]:
    """A description and where it is from: a text that cannot be one is the name of a file."""
    if "(" in text or "=" in text:
        return text, "description"
    from windrow.formats.disk import read_text

    return read_text(text), text


def _select(args: argparse.Namespace, grid: Grid) -> int:
    from windrow.formats.grid_file import write_grid
    from windrow.grid.select import Refusal

    text, why = args.describe, ""
    if args.workflow:
        from windrow.formats import read_workflow
        from windrow.grid.costs import Costs
        from windrow.grid.describe import propose

        costs = Costs(read_workflow(args.workflow), grid)
        proposal = propose(costs.ccr, costs.width, grid.processors)
        text, why = proposal.text, f"{proposal.name}: {proposal.why}\n{proposal.text}"
    found = _selected(args, grid, text)
    if isinstance(found, Refusal):
        if args.json:
            terminal.print_json({"selected": None, "why": found.why, "condition": found.condition})
        else:
            terminal.show(terminal.text(f"nothing selected: {found.why}"))
        return 1
    if args.output:
        write_grid(grid.part(found.nodes), args.output)
    if args.json:
        nodes = {grid.clusters[c].name: n for c, n in found.nodes.items()}
        bags = [{grid.clusters[c].name: n for c, n in bag.nodes.items()} for bag in found.bags]
        terminal.print_json({"selected": nodes, "nodes": found.size, "bags": bags, "description": text})
        return 0
    blocks: list[RenderableType] = [terminal.text(why)] if why else []
    head = f"{found.kind}: {count(found.size, 'node')} of {count(len(found.nodes), 'cluster')}"
    blocks.append(terminal.heading(head + (f", in {count(len(found.bags), 'bag')}" if found.bags else "")))
    terminal.show(*blocks, _clusters(grid, dict(found.nodes)), *terminal.files_written(grid=args.output))
    return 0


def _schedule(args: argparse.Namespace, grid: Grid) -> int:
    from windrow.formats import read_workflow
    from windrow.grid.costs import Costs
    from windrow.grid.schedule import on_part
    from windrow.grid.schedulers import EACP, SCHEDULERS, find_scheduler
    from windrow.grid.select import Refusal

    given = list(SCHEDULERS) if args.schedulers == "all" else [name.strip() for name in args.schedulers.split(",")]
    names = list(dict.fromkeys([*given, *(f"{EACP}{name.removeprefix(EACP)}" for name in given if args.eacp)]))
    ways = {name: find_scheduler(name) for name in names}
    costs = Costs(read_workflow(args.workflow), grid)
    nodes = {c: int(n) for c, n in enumerate(grid.nodes)}
    if args.describe or args.fastest:
        found = _selected(args, grid, args.describe)
        if isinstance(found, Refusal):
            raise UserError(f"nothing selected: {found.why}")
        nodes = dict(found.nodes)
    made: dict[str, tuple[Schedule, float]] = {}
    for name, scheduler in ways.items():
        with terminal.waiting(f"{name} ({len(made) + 1} of {len(ways)})"):
            began = time.perf_counter()
            schedule = on_part(costs, nodes, scheduler)
            made[name] = schedule, time.perf_counter() - began
    if args.html:
        from windrow.report.schedule import schedule_page

        page = schedule_page(costs, {name: schedule for name, (schedule, _) in made.items()}, Path(args.grid).name)
        terminal.write_page(args.html, page)
    if args.json:
        terminal.print_json(_as_json(costs, made, sum(nodes.values())))
        return 0
    least = min(schedule.makespan_s for schedule, _ in made.values())
    rows = [_row(name, schedule, took_s, least) for name, (schedule, took_s) in made.items()]
    heads = ("scheduler", "makespan", "", "SLR", "clusters", "nodes", "copies", "planned in")
    head = f"{costs.workflow.name} on {count(sum(nodes.values()), 'node')} of {count(len(nodes), 'cluster')}"
    lines = terminal.text(f"{len(costs.workflow):,} tasks, at most {costs.width:,} on a level, CCR {costs.ccr:.3g}")
    written = terminal.files_written(page=args.html)
    terminal.show(terminal.heading(head), lines, terminal.table(heads, rows, "<>"), *written)
    return 0


def _row(name: str, schedule: Schedule, took_s: float, least: float) -> tuple[str, ...]:
    more = f"+{100 * (schedule.makespan_s / least - 1):.1f} %" if least and schedule.makespan_s > least else "best"
    used = f"{len(set(schedule.cluster.tolist())):,}", f"{len(set(schedule.processor.tolist())):,}"
    return name, span(schedule.makespan_s), more, f"{schedule.slr:.3g}", *used, f"{schedule.copies:,}", span(took_s)


def _as_json(costs: Costs, made: dict[str, tuple[Schedule, float]], nodes: int) -> dict[str, object]:
    ids, names, first = costs.workflow.ids, [c.name for c in costs.grid.clusters], costs.grid.first
    found = []
    for name, (schedule, took_s) in made.items():
        columns = (schedule.task, schedule.cluster, schedule.processor - first[schedule.cluster])
        times = schedule.start_s.tolist(), schedule.end_s.tolist()
        rows = [
            {"task": ids[i], "cluster": names[c], "node": n, "start_s": a, "end_s": b}
            for i, c, n, a, b in zip(*(column.tolist() for column in columns), *times, strict=True)
        ]
        figures = {"makespan_s": schedule.makespan_s, "slr": schedule.slr, "copies": schedule.copies}
        found.append({"scheduler": name, **figures, "planning_s": took_s, "rows": rows})
    about = {"workflow": costs.workflow.name, "tasks": len(ids), "width": costs.width, "nodes": nodes}
    ccr = costs.ccr if costs.workflow.work_s else None
    return {**about, "ccr": ccr, "critical_s": costs.critical_s, "schedules": found}
