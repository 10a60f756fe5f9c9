"""`windrow reproduce`: redo the experiments of a paper and set our numbers beside the printed
ones."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.app.ownership import refuse_foreign
from windrow.cli import options, terminal
from windrow.cli.arguments import place, positive
from windrow.cli.progress import counting
from windrow.errors import UserError
from windrow_lab.campaign.watching import watching
from windrow_lab.reproductions import PAPERS

if TYPE_CHECKING:
    from windrow_lab.reproductions.paper import Paper, PaperPlan, Report, Wishes


_INTERRUPTED = 130  # the exit code of whatever Ctrl-C ended

_OPTIONS = ("cap", "reading", "policy", "placement", "as_thesis", "data")
"""Those that not every paper takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_listings(parser, {"papers, and our own claims": PAPERS})
    add = options.adder(parser)
    add("paper PAPER", choices=tuple(PAPERS), help="see below")
    scale = options.adder(parser.add_mutually_exclusive_group())
    words = "a sample: a minute or two, five (grid, faults) or twenty (foresight) (default)"
    scale("--quick", action="store_true", help=words)
    words = (
        "everything: on two cores minutes (bent, glume, ilyushkin), half an hour (zhang, "
        "grid, faults) or hours"
    )
    scale("--full", action="store_true", help=f"{words} (foresight)")
    options.add_out(parser, "where results go (default: windrow-PAPER-SCALE)")
    options.add_workers(parser)
    _add_of_some(add)
    add(
        "--data FOLDER",
        place,
        help="where logs and workflows are (default: $WINDROW_DATA, else here)",
    )


def _add_of_some(add: Callable[..., Any]) -> None:
    """What not every paper takes."""
    add("--cap N", positive, help="zhang only: at most N jobs queued or running (default: any)")
    words = (
        "zhang only: what is read in another way: sessions, small, strict, or several with commas"
    )
    add("--reading R", help=words)
    add("--policy P", help="glume only: as in windrow simulate (default: conservative)")
    add("--placement L", help="glume only: as in windrow simulate (default: count)")
    words = (
        "glume only: cluster, margins and zhang as in the thesis's own simulator: contiguous "
        "jobs, ..."
    )
    add("--as-thesis", action="store_true", help=words)


def run(args: argparse.Namespace) -> int:
    """Run what is missing, then write the page."""
    from windrow_lab.reproductions.paper import find_paper, write_report

    paper = find_paper(args.paper)
    plan: PaperPlan = paper.plan(_wishes(args, paper))
    out = Path(args.out or f"windrow-{args.paper}-{plan.scale}{plan.variant}")
    for line in plan.stand_ins:
        terminal.say(line)
    try:
        found = _found(plan, out, args.workers)
    except KeyboardInterrupt:
        terminal.say(
            f"interrupted; what has finished is kept in {out}, and the same command continues "
            "from there"
        )
        return _INTERRUPTED
    report = paper.report(plan, found)
    _show(report, write_report(report, out / args.paper))
    if not report.failed:
        return 0
    failed = f"{report.failed:,} of {report.trials:,} trials FAILED"
    terminal.say(f"WARNING: {failed}; see column error in {out}")
    return 1


def _show(report: Report, files: Mapping[str, str]) -> None:
    """The first table, and the findings."""
    block = report.blocks[0]
    terminal.show(
        terminal.heading(report.title),
        terminal.table(block.head, block.rows, "lrrrl", gap=3),
        terminal.text(*report.summary),
        *terminal.files_written(**files),
    )


def _wishes(args: argparse.Namespace, paper: Paper) -> Wishes:
    """UserError if an option is another paper's, or the folder of the data is not there."""
    from windrow_lab.reproductions.paper import Wishes

    given = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name)}
    for name in given.keys() - paper.options:
        option = f"--{name.replace('_', '-')}"
        raise UserError(
            f"{option} is not for {args.paper}, which has its {paper.has_own}: leave it out"
        )
    if "data" in paper.options:
        data = Path(args.data or os.environ.get("WINDROW_DATA") or ".")
    else:
        data = None
    if data is not None and not data.is_dir():
        raise UserError(f"{data}: no such folder; give the one with the logs as --data")
    return Wishes(args.full, data, given)


def _found(plan: PaperPlan, out: Path, workers: int | None) -> list[Any]:
    """What campaigns and calls give, in the plan's order."""
    from windrow_lab.campaign.workers import run_campaigns, worker_count
    from windrow_lab.reproductions.calls import run_calls

    refuse_foreign(out)
    found: list[Any] = []
    if plan.campaigns:
        with watching() as watch:
            found += run_campaigns(plan.campaigns, out, workers=workers, watch=watch)
    with counting(plan.calls_are) as tell:
        return found + run_calls(plan.calls, worker_count(workers), tell, out / "calls")
