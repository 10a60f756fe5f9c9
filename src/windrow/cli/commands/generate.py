"""`windrow generate`: workflows by recipe, logs by model, and the list of both."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from windrow.cli import arguments, options, terminal
from windrow.errors import UserError, unknown_name
from windrow.model import format_duration
from windrow.model.bounds import LOG_JOBS_MAX

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.recipes import Recipe
    from windrow.recipes.logs.models import LogModel


_WORKFLOW_ONLY = ("tasks", "work", "ccr", "bandwidth", "even_levels")
_LOG_ONLY = ("model", "jobs", "days", "nodes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("recipe RECIPE", help="a recipe's name, `log`, or `list`")
    add(
        "-o --output FILE",
        arguments.output_file,
        help="where to write: .json[.gz], .yaml (workflow, see below), .swf[.gz] (log)",
    )
    options.add_json(parser)
    add("--seed S", arguments.seed, 0, help="random seed")
    words = (
        "set a parameter of the recipe or model; may be repeated (defaults: see `windrow "
        "generate list`)"
    )
    add("--set NAME=VALUE", arguments.assignment, action="append", help=words)
    workflow = options.adder(parser.add_argument_group("for a workflow"))
    workflow("--tasks N", arguments.positive, help="number of tasks (default: the recipe's own)")
    words = "sum of all run times, e.g. 500h; seconds without a unit (default: the recipe's own)"
    workflow("--work TIME", arguments.some_time_s, help=words)
    words = (
        "ratio of communication to computation: sets run times by the data that tasks read "
        "from each other"
    )
    workflow("--ccr R", arguments.number(0, 1e6, above=True), help=words)
    workflow(
        "--bandwidth SIZE",
        arguments.size_bytes,
        help="bytes per second in that ratio (default: 12.5MB)",
    )
    words = "give all tasks of a level the same run time and size of files: the mean"
    workflow("--even-levels", action="store_true", help=words)
    log = options.adder(parser.add_argument_group("for a log"))
    log("--model M", help="which model (default: lublin)")
    log(
        "--jobs N",
        arguments.whole(1, LOG_JOBS_MAX),
        help="number of jobs (default: the model's own length)",
    )
    log(
        "--days D",
        arguments.number(0, 36_500, above=True),
        help="days of submissions (default: the model's own length)",
    )
    log("--nodes N", arguments.node_count, help="number of nodes (default: the model's own)")


def run(args: argparse.Namespace) -> None:
    """Make and write, or list."""
    if args.recipe == "list":
        _list(as_json=args.json)
        return
    from windrow.recipes.workflows.catalog import OTHER_NAMES, WORKFLOW_RECIPES

    if args.recipe not in (known := ("log", *WORKFLOW_RECIPES, *OTHER_NAMES, "list")):
        raise unknown_name("recipe", args.recipe, known)
    if not args.output:
        if args.recipe == "log":
            suffix = ".swf.gz"
        else:
            suffix = ".json"
        raise UserError(f"name the file to write, for example -o {args.recipe}{suffix}")
    (_log if args.recipe == "log" else _workflow)(args)


def _costs(args: argparse.Namespace) -> dict[str, Any]:
    costs = {"ccr": args.ccr, "even_levels": args.even_levels, "work_s": args.work}
    if args.bandwidth is not None:
        costs["bandwidth_bytes_s"] = args.bandwidth
    return costs


def _workflow(args: argparse.Namespace) -> None:
    from windrow.formats import write_workflow
    from windrow.formats.native.stand_in import write_stand_in
    from windrow.recipes import generate_workflow

    _refuse(args, _LOG_ONLY, "a log")
    with terminal.waiting(f"generating {args.output}"):
        given = arguments.once_each(args.set or [])
        workflow = generate_workflow(
            args.recipe, tasks=args.tasks, seed=args.seed, parameters=given, **_costs(args)
        )
        (write_stand_in if args.output.endswith(".yaml") else write_workflow)(workflow, args.output)
    if args.json:
        terminal.print_json(
            {
                "file": args.output,
                "workflow": workflow.name,
                "tasks": len(workflow),
                "levels": workflow.depth,
                "dependencies": workflow.parents.edges,
                "work_s": workflow.work_s,
            }
        )
        return
    size = (
        f"{len(workflow):,} tasks on {workflow.depth:,} levels, {workflow.parents.edges:,} "
        "dependencies"
    )
    print(f"{args.output}: {size}, {format_duration(workflow.work_s)} of work")


def _log(args: argparse.Namespace) -> None:
    from windrow.formats import write_log
    from windrow.recipes import generate_log

    _refuse(args, _WORKFLOW_ONLY, "a workflow")
    with terminal.waiting(f"generating {args.output}"):
        model = "lublin" if args.model is None else args.model
        size = {"jobs": args.jobs, "days": args.days, "nodes": args.nodes}
        log = generate_log(
            model, seed=args.seed, parameters=arguments.once_each(args.set or []), **size
        )
        write_log(log, args.output)
    length_s = float(log.submit_s[-1] - log.submit_s[0])
    if args.json:
        terminal.print_json(
            {
                "file": args.output,
                "log": log.name,
                "jobs": len(log),
                "nodes": log.machine_nodes,
                "length_s": length_s,
                "load": log.load,
            }
        )
        return
    span = format_duration(length_s)
    print(
        f"{args.output}: {len(log):,} jobs over {span} on {log.machine_nodes:,} nodes, load "
        f"{log.load:.2f}"
    )


def _refuse(args: argparse.Namespace, names: Iterable[str], what: str) -> None:
    given = [
        f"--{name.replace('_', '-')}" for name in names if getattr(args, name) not in (None, False)
    ]
    if given:
        raise UserError(
            f"{given[0]} is for {what} only, which {args.recipe!r} does not generate; leave it out"
        )


def _list(*, as_json: bool) -> None:
    from windrow.recipes import LOG_MODELS, WORKFLOW_RECIPES

    if as_json:
        recipes = [_known(one) for one in WORKFLOW_RECIPES.values()]
        terminal.print_json(
            {"recipes": recipes, "models": [_known(one) for one in LOG_MODELS.values()]}
        )
        return
    blocks: list[RenderableType] = [
        "[bold]Workflow recipes[/]: windrow generate RECIPE -o FILE.json"
    ]
    for recipe in WORKFLOW_RECIPES.values():
        blocks.append(_description(recipe, f"{recipe.default_tasks:,} tasks"))
    blocks.append("[bold]Log models[/]: windrow generate log --model MODEL -o FILE.swf.gz")
    for model in LOG_MODELS.values():
        if model.jobs is not None:
            length = f"{model.jobs:,} jobs"
        else:
            length = f"{model.days:g} days"
        blocks.append(_description(model, f"{model.nodes:,} nodes, {length}"))
    terminal.show(*blocks)


def _known(what: Recipe | LogModel) -> dict[str, object]:
    """For programs."""
    parameters = {one.name: one.default for one in what.parameters}
    return {"name": what.name, "summary": what.summary, "parameters": parameters}


def _description(what: Recipe | LogModel, size: str) -> RenderableType:
    """Name, source, default size, and a table of the parameters with their defaults."""
    from rich.console import Group
    from rich.markup import escape

    rows = [
        (f"  {parameter.name}", f"{parameter.default}", parameter.meaning)
        for parameter in what.parameters
    ]
    head = (
        f"[bold cyan]{what.name}[/]  {escape(what.summary)}\n  [dim]{escape(what.source)}; "
        f"default: {size}[/]"
    )
    if rows:
        return Group(head, terminal.table(None, rows, "l"))
    return head
