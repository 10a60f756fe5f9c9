"""`windrow report`: one page about a run, and the run as an RO-Crate."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import output_folder
from windrow.errors import OutsideError, UserError

if TYPE_CHECKING:
    from windrow.app.runs import RunView
    from windrow.report.run.crate import CrateFile
    from windrow.story.figures import RecordedRun
    from windrow.trials.replay import WhatIf


_EVERY_S = 2.0
_COST = 10  # times what a page takes, until the next


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    options.add_html(
        parser,
        "-o",
        "--output",
        words="the page to write (default: report.html in the run's folder)",
    )
    add = parser.add_argument
    add(
        "--crate",
        type=output_folder,
        metavar="DIR",
        help="also export the run as an RO-Crate to this new folder",
    )
    words = "play the run again by every strategy, on the queue as it was seen, and show that too"
    add("--what-if", action="store_true", help=words)
    how = parser.add_mutually_exclusive_group()
    words = "write the page again and again until the run ends; an open page shows it"
    how.add_argument("-f", "--follow", action="store_true", help=words)
    how.add_argument(
        "--json", action="store_true", help="print one JSON object with paths and figures"
    )


def run(args: argparse.Namespace) -> None:
    """Read, write, and say where."""
    from windrow.report.run.page import page_now
    from windrow.report.run.view import report_view

    if args.crate is None:
        folder = None
    else:
        folder = Path(args.crate)
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            f"{folder} already exists and is not empty; name a new folder for the crate"
        )
    told = options.run_of(args)
    if args.html:
        page = Path(args.html)
    else:
        page = told.paths.folder.path / "report.html"
    if args.follow:
        print(page, flush=True)
        follow(told, page)
    if args.what_if:
        play_again(told)
    now_s = time.time()
    report = told.recorded(now_s)
    terminal.write_page(page, page_now(told, now_s))
    if folder is not None:
        with terminal.waiting("reading files"):
            write_crate(folder, told, report)
    if args.json:
        terminal.print_json(report_view(report, page, args.crate, what_if_of(told)))
    else:
        written = [] if args.follow else [str(page)]
        written += [] if args.crate is None else [args.crate]
        if written:
            print(*written, sep="\n")


def play_again(told: RunView) -> None:
    """By every strategy, and keep the answer beside the run, unless one is kept."""
    from windrow.trials import replay

    if replay.kept(told.paths, told.story.last_s) is None:
        with terminal.waiting("playing the run again by every strategy"):
            replay.keep(told.paths, replay.what_if(told))


def what_if_of(told: RunView) -> WhatIf | None:
    """The answer that is kept beside the run."""
    if not told.paths.what_if.exists():
        return None
    from windrow.trials import replay

    return replay.kept(told.paths, told.story.last_s)


def follow(told: RunView, page: Path) -> None:
    """Write the page until the run is over; it is written once more after that.

    A page that takes long to make is made less often.
    """
    from windrow.report.run.page import page_now
    from windrow.story.states import ACTIVE

    every_s = _EVERY_S
    while told.state in ACTIVE:
        begun = time.monotonic()
        terminal.write_page(page, page_now(told, time.time(), every_s))
        every_s = max(_EVERY_S, _COST * (time.monotonic() - begun))
        time.sleep(every_s)
        told.refresh()


def write_crate(folder: Path, told: RunView, report: RecordedRun) -> None:
    """Make the folder, with the workflow and the metadata in it."""
    import getpass
    import json

    from windrow.records.runnable_file import runnable_json
    from windrow.report.run.crate import METADATA, CrateOf, crate_metadata

    source = _workflow_file(told)
    crate = CrateOf(report, told.runnable.steps, getpass.getuser(), source.name, time.time(), look)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if told.story.additions:
            content = runnable_json(told.runnable)
        else:
            content = source.read_bytes()
        (folder / source.name).write_bytes(content)
        (folder / METADATA).write_text(
            json.dumps(crate_metadata(crate), indent=1) + "\n", encoding="utf-8"
        )
    except OSError as error:
        raise OutsideError(
            f"{error.filename or folder} cannot be written: {error.strerror}"
        ) from error


def _workflow_file(told: RunView) -> Path:
    """The user's file, unless it changed since the run began, or the run has other tasks too; then
    the run's own."""
    named = told.facts.request.workflow
    try:
        is_same = (
            not told.story.additions
            and named.is_file()
            and named.stat().st_mtime <= told.facts.created_s
        )
    except OSError:
        is_same = False
    if is_same:
        return named
    return told.paths.workflow


def look(path: Path) -> CrateFile | None:
    """How a file is now; None if it is not there or cannot be read."""
    import hashlib

    from windrow.report.run.crate import CrateFile

    try:
        if path.is_dir():
            return CrateFile(None, None)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return CrateFile(path.stat().st_size, digest)
    except OSError:
        return None
