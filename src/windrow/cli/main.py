"""The door: picks the command, turns errors into one line and an exit code.

Each command is a module of `commands` with `add_arguments(parser)` and `run(args)`, and a text beside it: in its first
line a sentence, then what ends its help, examples above all.
Rule 1: their top level imports nothing that needs more than the standard library, so that help comes at once. Rule 2:
exceptions stop here, and only those of Windrow's own tree; anything else is a bug and shows its traceback.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from windrow.cli import terminal
from windrow.errors import UserError, WindrowError, unknown_name
from windrow.version import __version__

GROUPS = {
    "run a workflow": ("run", "plan", "resume", "retry", "cancel", "forecast", "reliability", "sites", "doctor"),
    "inspect a run": ("status", "watch", "tasks", "files", "logs", "shell", "explain", "report", "runs"),
    "share a pool of nodes": ("pool", "submit"),
    "try it in simulation": ("compare", "timeline", "simulate", "stream", "grid", "lab", "reproduce"),
    "generate and inspect files": ("generate", "show", "profile", "traces"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what writing to stdout may answer

_DESCRIPTION = "Windrow cuts workflows into batch jobs, runs them, and simulates the clusters that they run on."

_EPILOG = """\
examples:
  windrow run workflow.yaml                      on this machine; --on slurm: on a cluster
  windrow report                                 an HTML page about the latest run
  windrow generate montage --tasks 250 --work 500h -o montage.json
  windrow compare montage.json --html compare.html

Each command has its own help: windrow help run
"""


class Command(Protocol):
    """What a command's module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, args: argparse.Namespace) -> int | None:
        """Do it; the exit code, where that is not 0."""


class _Once(argparse._StoreAction):
    """Stores a value, and refuses a second one; argparse would silently keep the last."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None and isinstance(parser, Parser):
            if self.dest in parser.given:
                parser.error(f"{option_string} is given twice; keep one")
            parser.given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Like its base, but a mistake becomes a UserError, so that all errors look alike, and a value is given once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, _Once)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "expected one argument")  # its base takes that for a separator
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Refuse what was typed."""
        raise UserError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (by default this process's own) and return its exit code."""
    for name in ("stdout", "stderr"):  # some callers close them (`>&-`): the next file would take their place
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  (for the life of the process)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without blocks for bars gets question marks, not an error
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except WindrowError as error:
        terminal.say(f"windrow: error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        terminal.say("windrow: interrupted")
        return 130
    except BrokenPipeError:
        terminal.send_nowhere(sys.stdout)  # the reader of our output has seen enough
        return 141
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        terminal.send_nowhere(sys.stdout)
        terminal.say(f"windrow: error: the output cannot be written: {error.strerror}")
        return 1
    return code


def _run(argv: Sequence[str]) -> int:
    if argv and argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    chosen = argv[0] if argv and not argv[0].startswith("-") else None
    if chosen is not None and chosen not in COMMANDS:
        raise unknown_name("command", chosen, COMMANDS)
    parser = _parser(chosen)
    args, unknown = parser.parse_known_args(argv)
    if unknown:  # said here, since argparse would point at the help of all commands
        command = "windrow" if chosen is None else f"windrow {chosen}"
        raise UserError(f"unrecognized arguments: {' '.join(unknown)}; see {command} --help")
    if chosen is None:  # only options stood in front, or nothing at all
        parser.print_help()
        return 0
    _announce_compiling()
    return _module(chosen).run(args) or 0


def _announce_compiling() -> None:
    """From now on, say what is compiled. Kernels, which most commands do without, log it."""
    import logging

    class Announcing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from windrow.cli.progress import say_compiling

            say_compiling(record.getMessage())

    kernels = logging.getLogger("windrow.kernels.jit")
    kernels.setLevel(logging.INFO)
    kernels.handlers[:] = [Announcing()]


def _parser(chosen: str | None) -> Parser:
    looks: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = Parser(
        prog="windrow",
        usage="windrow [-h] [--version] COMMAND ..." if chosen is None else None,
        description=_DESCRIPTION if chosen is not None else f"{_DESCRIPTION}\n\n{_overview()}",
        epilog=_EPILOG,
        **looks,
    )
    parser.add_argument("--version", action="version", version=f"windrow {__version__}")
    if chosen is not None:
        module = _module(chosen)
        commands = parser.add_subparsers(dest="command", metavar="COMMAND")
        summary, epilog = _texts(chosen)
        module.add_arguments(commands.add_parser(chosen, description=summary, epilog=epilog, **looks))
    return parser


def _overview() -> str:
    """Every command with its sentence, by what one wants to do."""
    columns = max(40, min(120, shutil.get_terminal_size().columns)) - 2
    width = 4 + max(map(len, COMMANDS))
    indent = " " * width
    blocks = []
    for title, names in GROUPS.items():
        lines = [
            textwrap.fill(_texts(name)[0], columns, initial_indent=f"  {name:<{width - 2}}", subsequent_indent=indent)
            for name in names
        ]
        blocks.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(blocks)


def _texts(command: str) -> tuple[str, str]:
    """Its sentence, and what ends its help."""
    summary, _, end = Path(__file__).parent.joinpath("commands", f"{command}.txt").read_text("utf-8").partition("\n")
    return summary, end


def _module(command: str) -> Command:
    return cast(Command, import_module(f"windrow.cli.commands.{command}"))


if __name__ == "__main__":
    sys.exit(main())
