"""`windrow traces`: logs of the Parallel Workloads Archive."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windrow.cli import terminal
from windrow.cli.arguments import node_count, output_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    words = "list the logs that can be fetched"
    actions.add_parser("list", help=words, description=f"{words.capitalize()}.")
    fetch = actions.add_parser(
        "fetch",
        help="download logs and verify their checksums",
        description="Download logs and verify their checksums. Existing files are verified, not "
        "fetched again.",
        epilog="example: windrow traces fetch KTH-SP2 --to logs",
    )
    fetch.add_argument("names", nargs="+", metavar="NAME", help="as listed, like KTH-SP2")
    fetch.add_argument(
        "--to",
        type=output_folder,
        default=".",
        metavar="FOLDER",
        help="where to put the files (default: here)",
    )
    describe = actions.add_parser(
        "describe",
        help="describe a log",
        description="Describe a log: an archive log by its name, or any SWF file by its path.",
        epilog="example: windrow traces describe KTH-SP2-1996-2.1-cln.swf.gz",
    )
    describe.add_argument(
        "log", metavar="NAME|FILE", help="an archive log by its name, or an SWF file"
    )
    words = "number of nodes, for a file (default: as in its header)"
    describe.add_argument("--nodes", type=node_count, metavar="N", help=words)


def _list() -> None:
    from windrow.formats import archive

    heads = ("name", "jobs", "processors", "recorded", "machine")
    rows = [
        (a.name, f"{a.jobs:,}", f"{a.processors:,}", f"{a.start} to {a.end}", a.title)
        for a in archive.ARCHIVE
    ]
    terminal.show(terminal.table(heads, rows, "<rr<l"))


def run(args: argparse.Namespace) -> None:
    """Do what `action` says."""
    from windrow.formats import archive

    if args.action == "list":
        _list()
    elif args.action == "describe":
        print("\n".join(archive.describe(args.log, nodes=args.nodes).lines()))
    else:
        known = [archive.find(name).name for name in args.names]  # all, before the first download
        for name in known:
            with _download_bar(name) as progress:
                path = archive.fetch(name, args.to, progress=progress)
            print(f"{path}: checksum verified")


@contextmanager
def _download_bar(name: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """A bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=terminal.console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda received, total: bar.update(task, completed=received, total=total)
