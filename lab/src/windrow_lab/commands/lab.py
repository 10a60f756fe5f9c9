"""`windrow lab`: run the campaign of a file, here or as an array job, and sum it up."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import assignment, once_each, output_file, place, whole
from windrow.errors import UserError
from windrow_lab.campaign.watching import watching

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow_lab.campaign.shards import Shard
    from windrow_lab.campaign.slurm_array import ArrayJob
    from windrow_lab.campaign.summary import Summary
    from windrow_lab.campaign.sweep import Sweep, SweepResults


# Title, key of the summary, what to divide by, how to write it.
_COLUMNS = (
    ("runs", "runs", 1, ",.0f"),
    ("failed", "failed", 1, ",.0f"),
    ("makespan h", "makespan_s_mean", 3600, ",.2f"),
    ("visible wait h", "visible_wait_s_mean", 3600, ",.2f"),
    ("node-h allocated", "allocated_node_h_mean", 1, ",.1f"),
    ("idle", "idle_node_h_mean", 1, ",.1f"),
    ("lost", "lost_node_h_mean", 1, ",.1f"),
    ("jobs", "jobs_mean", 1, ",.1f"),
    ("killed", "killed_jobs_mean", 1, ",.1f"),
    ("node failures", "node_failures_mean", 1, ",.1f"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = options.adder(parser.add_argument_group("what to do").add_mutually_exclusive_group())
    what("campaign CAMPAIGN", nargs="?", help="a campaign file (.toml): run what is missing")
    words = "write a campaign file with every key explained, or print it if no FILE is given"
    what("--example FILE", output_file, nargs="?", const="-", help=words)
    what("--summary FOLDER", place, help="summarize what is finished in a folder; run nothing")
    options.add_out(parser, "where results go (default: windrow-NAME)", "-o")
    options.add_workers(parser)
    add = options.adder(parser)
    add("--shard I/N", _shard, help="run only shard I of N")
    add("--by A,B,...", help="columns to group by, besides the strategy, such as log,cap")
    options.add_json(parser)
    _add_array(options.adder(parser.add_argument_group("as an array job")))


def _add_array(add: Callable[..., Any]) -> None:
    words = "submit the shards to this batch system instead of running here"
    add("--on", choices=("slurm",), help=words)
    add("--array N", whole(1, 100_000), help="number of shards (default: as before, else 16)")
    add("--partition P", help="partition of the array job (default: the site's)")
    add("--account A", help="account of the array job (default: yours)")
    words = "any other long option of sbatch for each element, such as time=2:00:00 or mem=4G"
    add("--set OPTION=VALUE", assignment, action="append", help=words)


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    if args.example is not None:
        return _write_example(args.example)
    from windrow.formats.parquet import need_parquet

    need_parquet("windrow lab, which keeps its tables as Parquet files,")
    args.by = _columns(args.by)
    if args.summary is not None:
        return _sum_up(args.summary, args)
    if args.campaign is None:
        raise UserError("give a campaign file; windrow lab --example FILE writes one")
    options = _check_options(args)
    from windrow_lab.campaign.file import read_campaign

    with terminal.waiting(f"reading {args.campaign}"):
        sweep = read_campaign(args.campaign)
    folder = args.out or f"windrow-{sweep.name}"
    if args.on == "slurm":
        return _submit(args, sweep, folder, options)
    return _run_here(args, sweep, folder)


def _columns(given: str | None) -> list[str]:
    """The columns to group by; UserError if one cannot be."""
    from windrow_lab.campaign.summary import check_columns

    by = list(dict.fromkeys(name.strip() for name in (given or "").split(",") if name.strip()))
    if given is not None and not by:
        raise UserError("--by needs at least one column, such as --by log,cap")
    check_columns(by)
    return by


def _write_example(path: str) -> int:
    from windrow.formats.disk import replace_text
    from windrow_lab.campaign import EXAMPLE

    if path == "-":
        print(EXAMPLE.read_text(encoding="utf-8"), end="")
        return 0
    if Path(path).exists():
        raise UserError(f"{path} already exists; delete it, or give another name")
    replace_text(path, EXAMPLE.read_text(encoding="utf-8"))
    terminal.say(f"{path} written: edit it, then windrow lab {shlex.quote(path)}")
    return 0


def _shard(text: str) -> Shard:
    from windrow_lab.campaign.shards import parse_shard

    try:
        return parse_shard(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _check_options(args: argparse.Namespace) -> dict[str, str]:
    """The options for sbatch, after a check that all options go together."""
    named = {"partition": args.partition, "account": args.account}
    options = {name: value for name, value in named.items() if value is not None} | once_each(
        args.set or []
    )
    if args.on is None and (options or args.array):
        raise UserError(
            "--array, --partition, --account and --set are for array jobs; give --on slurm too"
        )
    if args.on is not None and (args.shard or args.workers):
        own = "each array element has its own shard and workers"
        raise UserError(f"with --on slurm {own}; leave out --shard and --workers")
    for name in options:
        if not name.replace("-", "").isalnum() or name in ("array", "output", "parsable", "wrap"):
            raise UserError(
                f"--set {name}: this cannot be set; give a long option of sbatch without its dashes"
            )
    return options


def _run_here(args: argparse.Namespace, sweep: Sweep, folder: str) -> int:
    from windrow_lab.campaign.shards import run_sweep

    try:
        with watching() as watch:
            run_sweep(sweep, folder, shard=args.shard, workers=args.workers, watch=watch)
    except KeyboardInterrupt:
        terminal.say(
            f"what has finished is kept in {folder}; the same command continues from there"
        )
        raise
    return _sum_up(folder, args)


def _submit(args: argparse.Namespace, sweep: Sweep, folder: str, options: Mapping[str, str]) -> int:
    from windrow_lab.campaign.slurm_array import submit_array

    array = submit_array(sweep, args.campaign, folder, count=args.array, options=options)
    if array is None:
        terminal.say("nothing left to run")
        return _sum_up(folder, args)
    if args.json:
        told = {
            "job": array.job,
            "shards": array.count,
            "submitted": list(array.shards),
            "folder": folder,
        }
        terminal.print_json(told)
    else:
        print(*_submitted(array, sweep, shlex.quote(folder)), sep="\n")
    return 0


def _submitted(array: ArrayJob, sweep: Sweep, here: str) -> Iterator[str]:
    shards = f"{len(array.shards):,} of {array.count:,} shards"
    trials = f"{sweep.trials:,} trials"
    yield f"submitted array job {array.job}: {shards}, campaign {sweep.name} of {trials}"
    yield f"progress:  squeue --job {array.job}"
    yield f"results:   windrow lab --summary {here}"
    yield f"output:    {here}/slurm/{array.job}_*.out"
    yield "if some are lost, the same command submits what is missing"


def _sum_up(folder: str, args: argparse.Namespace) -> int:
    from windrow_lab.campaign.summary import summarize
    from windrow_lab.campaign.sweep import read_results

    results = read_results(folder)
    summaries = summarize(results.rows, args.by)
    if args.json:
        if results.table_path is None:
            table = None
        else:
            table = str(results.table_path)
        about = {
            "campaign": results.name,
            "folder": str(results.folder),
            "table": table,
            "trials": results.trials,
        }
        terminal.print_json(
            {**about, "done": len(results.rows), "failed": results.failed, "strategies": summaries}
        )
    else:
        terminal.show(*_blocks(results, summaries, args.by))
    if results.failed:
        terminal.say(
            f"WARNING: {results.failed:,} of {len(results.rows):,} trials FAILED; see column error"
        )
    if results.failed:
        return 1
    return 0


def _blocks(
    results: SweepResults, summaries: list[Summary], by: list[str]
) -> Iterator[RenderableType]:
    done = len(results.rows)
    if results.table_path:
        far = f"{done:,} trials"
        files = {"table": str(results.table_path)}
    else:
        far = f"{done:,} of {results.trials:,} trials are finished"
        files = {"finished chunks": str(results.folder / "chunks")}
    yield terminal.text(f"campaign {results.name}: {far}")
    if summaries:
        yield _table(summaries, (*by, "strategy"))
    yield from terminal.files_written(**files)


def _table(summaries: list[Summary], names: Sequence[str]) -> RenderableType:
    """Failures of nodes have a column if there were any."""
    shown = list(_COLUMNS)
    if not any(summary["node_failures_mean"] for summary in summaries):
        shown.pop()
    head = [*names, *(title for title, *_ in shown)]
    rows = [list(_row(summary, names, shown)) for summary in summaries]
    return terminal.table(head, rows, "<" * len(names) + ">")


def _row(
    summary: Summary, names: Sequence[str], shown: Sequence[tuple[str, str, int, str]]
) -> Iterator[str]:
    yield from (str(summary[name]) for name in names)
    for _, key, unit, form in shown:
        value = summary[key]
        yield format(value / unit, form) if isinstance(value, int | float) else "-"
