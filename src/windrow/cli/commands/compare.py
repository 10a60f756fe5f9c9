"""`windrow compare`: one workflow, several strategies, many submission times, in one table."""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli import scenario as shared
from windrow.cli.arguments import duration_s, size_bytes
from windrow.cli.progress import counting
from windrow.errors import UserError
from windrow.model import format_duration
from windrow.model.size import format_size

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from windrow.report.comparison import Column
    from windrow.trials.compare import Comparison
    from windrow.trials.scenario import Scenario


_PLOT = 60
_WIDE = 116  # columns that the whole table may take


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_meanings(parser)
    shared.add_workflow_and_log(parser)
    parser.add_argument(
        "--strategies", metavar="A,B,...", help="which to compare, see below (default: all)"
    )
    when = parser.add_argument_group("when the workflow is submitted")
    times = (
        ("from", "first time", "1d"),
        ("to", "last time", "7d"),
        ("every", "gap between times", "6h"),
    )
    for name, words, default in times:
        hint = f"{words} (default: {default}, or less in a short log)"
        when.add_argument(f"--{name}", dest=f"{name}_s", type=duration_s, metavar="T", help=hint)
    when.add_argument("--at", dest="at_s", type=duration_s, metavar="T", help="submit once, at T")
    shared.add_cluster(parser)
    data = parser.add_argument_group(
        "what it would change to have data nearby, from the sizes of the workflow's files"
    )
    words = (
        "compare four ways: all data to and from home, or with files kept on nodes, shared "
        "data cached, or both"
    )
    data.add_argument("--data", action="store_true", help=words)
    add = options.adder(data)
    add(
        "--home-rate SIZE",
        size_bytes,
        "12.5MB",
        help="with --data: bytes per second of the link to home, which tasks share",
    )
    add(
        "--disk-rate SIZE",
        size_bytes,
        "200MB",
        help="with --data: bytes per second of a node's own disk",
    )
    output = parser.add_argument_group("output")
    options.add_html(output)
    options.add_json(output)


def run(args: argparse.Namespace) -> None:
    """Read, try everything, and hand out the results."""
    if args.data and args.html:
        raise UserError("--data writes no page; leave --html out")
    from windrow.app.strategies import find_strategy
    from windrow.report.comparison import comparison_page
    from windrow.trials.compare import compare_in

    strategies: list[str] | None = None
    if args.strategies is not None:
        names = dict.fromkeys(
            name.strip().lower() for name in args.strategies.split(",") if name.strip()
        )
        if not names:
            raise UserError("--strategies needs at least one name; see windrow compare --help")
        strategies = [find_strategy(name).name for name in names]
    scenario = shared.read_scenario(args)
    times = _times(args, scenario)
    if args.data:
        _show_data(args, scenario, times, strategies)
        return
    with counting("comparing") as tell:
        comparison = compare_in(scenario, times, strategies, tell)
    lines = shared.words(scenario, args)
    if args.html:
        terminal.write_page(args.html, comparison_page(comparison, lines))
    if args.json:
        terminal.print_json(_as_json(comparison, args))
    else:
        _show(comparison, lines, args.html)


def _show_data(
    args: argparse.Namespace, scenario: Scenario, times: list[int], strategies: list[str] | None
) -> None:
    """What local data and caches would give: the same with the time for data in all run times."""
    from windrow.storage.staging import SCOPES, Rates, with_moves
    from windrow.trials.compare import compare_in

    if not any(file.size_bytes for file in scenario.workflow.files):
        raise UserError(
            f"no file of {args.workflow} has a size, so nothing can be compared; give sizes "
            "under files:"
        )
    rates = Rates(args.home_rate, args.disk_rate)
    slots = scenario.log.machine_nodes * scenario.shape.cores
    found: list[tuple[str, int, Comparison]] = []
    for scope in SCOPES:
        workflow, home_bytes = with_moves(scenario.workflow, rates, scope, slots)
        with counting(f"comparing {scope}") as tell:
            found.append(
                (
                    scope,
                    home_bytes,
                    compare_in(replace(scenario, workflow=workflow), times, strategies, tell),
                )
            )
    rows = [
        {"scope": scope, "home_bytes": size, "strategies": one.summaries()}
        for scope, size, one in found
    ]
    if args.json:
        return terminal.print_json({**shared.facts(scenario, args), "times_s": times, "data": rows})
    spans = [
        [format_duration(s["makespan_s_mean"]) for s in one.summaries()] for _, _, one in found
    ]
    cells = [
        [scope, format_size(size), *span]
        for (scope, size, _), span in zip(found, spans, strict=True)
    ]
    heads = ["data", "over the link", *(f"makespan {name}" for name in found[0][2].strategies)]
    return terminal.show(terminal.text(*shared.words(scenario, args)), terminal.table(heads, cells))


def _times(args: argparse.Namespace, scenario: Scenario) -> list[int]:
    from windrow.trials.scenario import submission_times

    span = {name: getattr(args, f"{name}_s") for name in ("from", "to", "every")}
    if args.at_s is not None:
        if any(value is not None for value in span.values()):
            raise UserError(
                "--at is one time, --from, --to and --every are many; give one or the other"
            )
        shared.check_within(scenario, "--at", math.floor(args.at_s))
        return [math.floor(args.at_s)]
    for name in ("from", "to"):
        if span[name] is not None:
            shared.check_within(scenario, f"--{name}", math.floor(span[name]))
    if span["every"] is not None and span["every"] < 1:
        raise UserError("--every must be at least a second")
    seconds = {name: None if value is None else math.floor(value) for name, value in span.items()}
    if None not in (seconds["from"], seconds["to"]) and span["from"] > span["to"]:
        raise UserError("--from must not be after --to")
    return list(submission_times(scenario.log, seconds["from"], seconds["to"], seconds["every"]))


def _as_json(comparison: Comparison, args: argparse.Namespace) -> dict[str, object]:
    from windrow.report.comparison import verdict

    wins = comparison.wins()
    return {
        **shared.facts(comparison.scenario, args),
        "times_s": list(comparison.times_s),
        "best": comparison.best(),
        "verdict": verdict(comparison),
        "strategies": [
            {**summary, "wins": wins[summary["strategy"]]} for summary in comparison.summaries()
        ],
    }


def _show(comparison: Comparison, lines: list[str], page: str | None) -> None:
    from windrow.report.comparison import columns, ranked, verdict

    comparison = ranked(comparison)
    shown = columns(comparison)
    # On a narrow terminal two tables: times, and nodes and jobs.
    is_narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE
    terminal.show(
        terminal.text(*lines),
        *(_table(comparison, part) for part in ((shown[:5], shown[5:]) if is_narrow else (shown,))),
        _spread(comparison),
        terminal.text(*verdict(comparison)),
        *terminal.files_written(page=page),
    )


def _table(comparison: Comparison, shown: Sequence[Column]) -> Table:
    summaries = comparison.summaries()
    marks = [column.best_of(summaries) for column in shown]
    rows = [
        [
            s["strategy"],
            *(
                terminal.text(c.write(s), style="green" if marks[k][i] else "")
                for k, c in enumerate(shown)
            ),
        ]
        for i, s in enumerate(summaries)
    ]
    return terminal.table(["strategy", *(column.title for column in shown)], rows)


def _spread(comparison: Comparison) -> Text:
    """A line per strategy: a bar over the middle eight tenths of the makespans, `|` the median, `o`
    the mean."""
    from windrow.report.comparison import longest_s, unit_of

    unit = unit_of(comparison)
    high = longest_s(comparison)
    width = max(map(len, comparison.strategies))
    text = terminal.text(f"{'makespan':<{width}}  ─ 10 to 90 %   | median   o mean\n", style="dim")
    for summary in comparison.summaries():
        row = [" "] * (_PLOT + 1)
        keys = (f"makespan_s_{key}" for key in ("p10", "median", "mean", "p90"))
        low, middle, mean, last = (round(summary[key] / high * _PLOT) for key in keys)
        row[low : last + 1] = "─" * (last + 1 - low)
        row[middle] = "|"
        row[mean] = "o"
        is_best = summary["strategy"] == comparison.best()
        text.append(f"{summary['strategy']:<{width}}  ", style="not dim")
        text.append(
            "".join(row).rstrip() + "\n", style="not dim green" if is_best else "not dim cyan"
        )
    return text.append(f"{'':<{width}}  0{unit.write(high):>{_PLOT}}")
