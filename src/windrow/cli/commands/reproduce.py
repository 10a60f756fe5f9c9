"""`windrow reproduce`: redo the experiments of a paper and set our numbers beside the printed ones."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.cli.arguments import place, positive, whole
from windrow.cli.progress import watching
from windrow.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

    from windrow.lab.campaign.campaign import Campaign
    from windrow.report.block import Block

SUMMARY = "Redo the experiments of a paper and set our numbers beside the printed ones."

_EPILOG = """\
papers, and our own claims:
  foresight  the strategy foresight beside all others: on the GLUME grid, other weeks and logs, EASY, noise, ablation
  glume  grouping levels of a workflow by estimated makespan: figures 5.2, 5.3, 7.1-7.4, A.1, B.1-B.4, table 7.1
  ilyushkin  reservations for workflows that share a pool: figures 2, 4-8, tables I and II
  zhang  hybrid against individual and giant submission on five clusters and more: figures 10-15, paired t-tests

It may be stopped at any time: the same command continues where it was. Logs are looked for in the --data folder and in
swf/ there, workflows in dax/glume/; generated ones stand in for those that are missing, and the page says so. The
clusters of zhang are synthetic, as its logs are private; KTH and SDSC join them where their logs are found.

examples:
  windrow traces fetch KTH-SP2 SDSC-SP2
  windrow reproduce foresight --quick
  windrow reproduce glume --quick
  windrow reproduce glume --full --data logs --out glume
  windrow reproduce glume --as-thesis --out as-thesis
  windrow reproduce ilyushkin --quick
  windrow reproduce zhang --quick
  windrow reproduce zhang --quick --cap 16
"""
_INTERRUPTED = 130  # the exit code of whatever Ctrl-C ended

_OF_GLUME = {"policy": "conservative", "placement": "count"}


@dataclass(frozen=True, slots=True)
class _Findings:
    """What a paper's runs came to. `texts` are the files to write, by suffix; `block` is the table to show."""

    title: str
    block: Block
    lines: Sequence[str]
    texts: Mapping[str, str]
    trials: int
    failed: int


@dataclass(frozen=True, slots=True)
class _Experiments:
    """What to run for a paper, where its results go by default, and how to read them."""

    folder: str
    campaigns: Sequence[Campaign]
    stand_ins: Sequence[str]
    read: Callable[[Sequence[pa.Table]], _Findings]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "paper", choices=("foresight", "glume", "ilyushkin", "zhang"), metavar="PAPER", help="see below"
    )
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick", action="store_true", help="a sample: a minute or two, or twenty (foresight) (default)"
    )
    scale.add_argument(
        "--full",
        action="store_true",
        help="everything: on two cores some minutes (glume, ilyushkin), half an hour (zhang) or hours (foresight)",
    )
    parser.add_argument("--out", type=place, metavar="FOLDER", help="where results go (default: windrow-PAPER-SCALE)")
    parser.add_argument("--workers", type=whole(1, 1000), metavar="N", help="processes at work (default: one per core)")
    parser.add_argument(
        "--cap", type=positive, metavar="N", help="zhang only: at most N jobs in the system (default: any)"
    )
    parser.add_argument("--policy", metavar="P", help="glume only: as of simulate (default: conservative)")
    parser.add_argument("--placement", metavar="L", help="glume only: as of simulate (default: count)")
    parser.add_argument(
        "--as-thesis",
        action="store_true",
        help="glume only: cluster, margins and zhang as in the thesis's own simulator: contiguous jobs, ...",
    )
    parser.add_argument(
        "--data", type=place, metavar="FOLDER", help="where logs and workflows are (default: $WINDROW_DATA, else here)"
    )


def run(args: argparse.Namespace) -> int:
    """Run what is missing, then write the page."""
    if args.paper == "ilyushkin":
        return _ilyushkin(args)
    from windrow.formats.parquet import need_parquet

    need_parquet(f"windrow reproduce {args.paper}, which keeps its tables as Parquet files,")
    from windrow.lab.campaign.workers import run_campaigns

    data = Path(args.data or os.environ.get("WINDROW_DATA") or ".")
    if not data.is_dir():
        raise UserError(f"{data}: there is no such folder; give the one that holds the logs with --data")
    experiments = {"foresight": _foresight, "glume": _glume, "zhang": _zhang}[args.paper](args, data)
    out = Path(args.out or experiments.folder)
    for line in experiments.stand_ins:
        terminal.say(line)
    try:
        with watching() as watch:
            tables = run_campaigns(experiments.campaigns, out, workers=args.workers, watch=watch)
    except KeyboardInterrupt:
        terminal.say(f"interrupted; what is finished is kept in {out}, and the same command continues from there")
        return _INTERRUPTED
    findings = experiments.read(tables)
    _hand_out(findings, out / args.paper)
    if findings.failed:
        terminal.say(f"WARNING: {findings.failed:,} of {findings.trials:,} trials FAILED; see column error in {out}")
    return 1 if findings.failed else 0


def _glume(args: argparse.Namespace, data: Path) -> _Experiments:
    from windrow.lab.campaign.campaign import BatchRules
    from windrow.reproductions.glume import page as report
    from windrow.reproductions.glume.plan import plan_as_thesis, plan_glume
    from windrow.reproductions.glume.results import Results

    if args.cap:
        raise UserError("--cap is for zhang only; glume has its own caps, 16 and 128: leave it out")
    if args.as_thesis:
        plan = plan_as_thesis(data, full=args.full)
    else:
        given = {name: getattr(args, name) or usual for name, usual in _OF_GLUME.items()}
        plan = plan_glume(data, full=args.full, rules=BatchRules(given["policy"], placement=given["placement"]))

    def read(tables: Sequence[pa.Table]) -> _Findings:
        found = Results(plan, tables)
        texts = _texts(
            report.reproduction_page(found), report.reproduction_markdown(found), report.reproduction_json(found)
        )
        first = report.blocks(found)[0]
        return _Findings(report.TITLE, first, report.summary(found), texts, found.trials, found.failed)

    folder = f"windrow-glume-{plan.scale}" + ("-as-thesis" if args.as_thesis else "")
    return _Experiments(folder, plan.campaigns, plan.stand_ins, read)


def _foresight(args: argparse.Namespace, data: Path) -> _Experiments:
    from windrow.reproductions.foresight import page as report
    from windrow.reproductions.foresight.decision_times import measure_paces
    from windrow.reproductions.foresight.plan import plan_foresight
    from windrow.reproductions.foresight.results import Results

    alien = [f"--{name.replace('_', '-')}" for name in (*_OF_GLUME, "as_thesis", "cap") if getattr(args, name)]
    if alien:
        raise UserError(f"{alien[0]} is not for foresight, whose experiments are fixed: leave it out")
    plan = plan_foresight(data, full=args.full)

    def read(tables: Sequence[pa.Table]) -> _Findings:
        terminal.say("timing decisions in a long queue")
        found = Results(plan, tables, measure_paces(data, full=args.full))
        texts = _texts(report.foresight_page(found), report.foresight_markdown(found), report.foresight_json(found))
        first = report.blocks(found)[0]
        return _Findings(report.TITLE, first, report.summary(found), texts, found.trials, found.failed)

    return _Experiments(f"windrow-foresight-{plan.scale}", plan.campaigns, plan.stand_ins, read)


def _zhang(args: argparse.Namespace, data: Path) -> _Experiments:
    from windrow.reproductions.zhang import page as report
    from windrow.reproductions.zhang.plan import NO_CAP, plan_zhang
    from windrow.reproductions.zhang.results import Results
    from windrow.reproductions.zhang.tables import blocks

    alien = [f"--{name.replace('_', '-')}" for name in (*_OF_GLUME, "as_thesis") if getattr(args, name)]
    if alien:
        raise UserError(f"{alien[0]} is for glume only; zhang has its own three policies: leave it out")
    plan = plan_zhang(data, full=args.full, cap=args.cap or NO_CAP)

    def read(tables: Sequence[pa.Table]) -> _Findings:
        found = Results(plan, tables)
        texts = _texts(report.zhang_page(found), report.zhang_markdown(found), report.zhang_json(found))
        first = blocks(found)[0]
        return _Findings(report.TITLE, first, report.summary(found), texts, found.trials, found.failed)

    folder = f"windrow-zhang-{plan.scale}" + (f"-cap-{args.cap}" if args.cap else "")
    return _Experiments(folder, plan.campaigns, plan.stand_ins, read)


def _ilyushkin(args: argparse.Namespace) -> int:
    """Runs of its own, which need no logs and are not kept: all together take minutes."""
    from windrow.cli.commands.compare import counting
    from windrow.reproductions.ilyushkin import page as report
    from windrow.reproductions.ilyushkin.plan import reproduce_ilyushkin

    alien = [f"--{name.replace('_', '-')}" for name in (*_OF_GLUME, "as_thesis", "cap", "data") if getattr(args, name)]
    if alien:
        raise UserError(f"{alien[0]} is not for ilyushkin, which draws its own workloads: leave it out")
    out = Path(args.out or f"windrow-ilyushkin-{'full' if args.full else 'quick'}")
    out.mkdir(parents=True, exist_ok=True)
    with counting("simulating streams") as tell:
        found = reproduce_ilyushkin(full=args.full, workers=args.workers or os.cpu_count() or 1, watch=tell)
    texts = _texts(report.ilyushkin_page(found), report.ilyushkin_markdown(found), report.ilyushkin_json(found))
    _hand_out(_Findings(report.TITLE, report.blocks(found)[0], report.summary(found), texts, 0, 0), out / args.paper)
    return 0


def _hand_out(findings: _Findings, stem: Path) -> None:
    files = _write(findings.texts, stem)
    terminal.show(*_blocks(findings), *terminal.files_written(**files))


def _texts(page: str, text: str, numbers: Mapping[str, object]) -> dict[str, str]:
    """The files of a reproduction, by suffix."""
    return {"html": page, "md": text, "json": json.dumps(numbers, indent=2, allow_nan=False) + "\n"}


def _write(texts: Mapping[str, str], stem: Path) -> dict[str, str]:
    from windrow.formats.disk import replace_bytes

    for suffix, text in texts.items():
        with replace_bytes(stem.with_suffix(f".{suffix}")) as stream:
            stream.write(text.encode())
    return {"page": f"{stem}.html", "text": f"{stem}.md", "numbers": f"{stem}.json"}


def _blocks(findings: _Findings) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    yield terminal.heading(findings.title)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for k, name in enumerate(findings.block.head):
        table.add_column(name, justify="right" if 0 < k < 4 else "left")
    for row in findings.block.rows:
        table.add_row(*row)
    yield table
    yield Text("\n".join(findings.lines))
