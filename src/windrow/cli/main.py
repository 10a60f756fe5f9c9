"""The door: picks the command, turns errors into one line and an exit code.

Each command is a module of this package with `SUMMARY` (a sentence), `add_arguments(parser)` and `run(args) -> int`.
Rule 1: their top level imports the standard library only, so that help comes at once. Rule 2: exceptions stop here, and
only those of Windrow's own tree; anything else is a bug and shows its traceback.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol, cast

from windrow.errors import UserError, WindrowError
from windrow.version import __version__

COMMANDS = (
    *("run", "plan", "status", "watch", "resume", "cancel", "report", "explain", "runs", "forecast"),
    *("compare", "timeline", "simulate", "stream", "pool", "submit", "lab", "reproduce", "generate", "show", "traces"),
)

_EPILOG = """\
examples:
  windrow generate montage --tasks 250 --work 500h --seed 1 -o montage.json
  windrow show montage.json --html montage.html
  windrow compare montage.json --html compare.html
  windrow traces fetch KTH-SP2
  windrow simulate KTH-SP2-1996-2.1-cln.swf.gz --policy easy --policy conservative --report report.html

Each command has its own help: windrow simulate --help
"""


class Command(Protocol):
    """What a command's module offers."""

    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


class Parser(argparse.ArgumentParser):
    """Like its base, but a mistake becomes a UserError, so that all errors look alike."""

    def error(self, message: str) -> NoReturn:
        """Refuse what was typed."""
        raise UserError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (by default this process's own) and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without blocks for bars gets question marks, not an error
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except WindrowError as error:
        print(f"windrow: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("windrow: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain when it flushes at exit: give it nowhere to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _run(argv: Sequence[str]) -> int:
    chosen = argv[0] if argv and argv[0] in COMMANDS else None
    parser = _parser(chosen)
    args = parser.parse_args(argv)
    if chosen is None:  # only options stood in front, or nothing at all
        parser.print_help()
        return 0
    return _module(chosen).run(args)


def _parser(chosen: str | None) -> Parser:
    parser = Parser(
        prog="windrow",
        description="Windrow cuts workflows into batch jobs, and simulates the clusters that they run on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"windrow {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name in COMMANDS if chosen is None else (chosen,):
        module = _module(name)
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name == chosen:
            module.add_arguments(command)
    return parser


def _module(command: str) -> Command:
    return cast(Command, import_module(f"windrow.cli.{command}"))


if __name__ == "__main__":
    sys.exit(main())
