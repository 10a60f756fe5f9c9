"""The door: picks the command, turns errors into one line and an exit code.

Each command is a module of `commands` with `add_arguments(parser)` and `run(args)`, and a text
beside it: in its first line a sentence, then what ends its help, examples above all.
Rule 1: their top level imports nothing that needs more than the standard library, so that help
comes at once. Rule 2: exceptions stop here, and only those of Windrow's own tree; anything else is
a bug and shows its traceback.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from windrow.cli import terminal
from windrow.errors import UserError, WindrowError, unknown_name
from windrow.version import __version__

GROUPS: Mapping[str, Sequence[str]] = {
    "run a workflow": (
        "run",
        "plan",
        "resume",
        "retry",
        "cancel",
        "priority",
        "wait",
        "forecast",
        "reliability",
        "sites",
    ),
    "inspect a run": (
        "status",
        "watch",
        "tasks",
        "files",
        "logs",
        "shell",
        "explain",
        "report",
        "serve",
        "runs",
        "rm",
        "clean",
    ),
    "share a pool of nodes": ("pool", "submit"),
    "try it in simulation": ("compare", "simulate"),
    "generate and inspect files": ("generate", "show", "profile", "traces"),
    "your settings and your shell": ("init", "config", "completion"),
}
EVERYDAY: Mapping[str, str] = {
    "run": "run a workflow, and follow it to the end",
    "plan": "show how a workflow would be cut into jobs, and why",
    "status": "how a run stands",
    "watch": "a run on the whole terminal, with keys",
    "tasks": "the tasks of a run: state, times, exit codes, why one failed",
    "logs": "what a task printed",
    "explain": "why a task or job is where it is",
    "report": "a page about a run",
    "serve": "the runs of this folder in a browser, live",
    "runs": "the runs of this folder",
    "resume": "continue a run that failed, stopped or was interrupted",
    "retry": "run tasks again",
    "cancel": "stop a run and its jobs",
    "sites": "what a cluster offers now; --check that it can be used",
}
"""What most people need, in the words of the first help page; `windrow help all` has the rest."""
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
"""Our own; `elsewhere` finds those of other packages."""

EARLIER_NAMES: Mapping[str, Sequence[str]] = {
    "doctor": ("sites", "--check"),
    "timeline": ("plan",),
}
"""Commands that are options of others now. They still work; help does not show them."""
_PAGE_OPTIONS = ("--html", "-o", "--output")

ASK = "__complete"
"""A question of a shell (`completion`)."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what writing to stdout may answer

_DESCRIPTION = "Windrow cuts workflows into batch jobs, runs them, and simulates clusters."

_EPILOG = """\
examples:
  windrow run workflow.yaml      on this machine; --on slurm: on a cluster
  windrow report                 a page about the latest run

More: windrow help COMMAND; windrow help all (simulation, pools, files, studies)
"""


class Command(Protocol):
    """What a command's module offers."""

    __file__: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, args: argparse.Namespace) -> int | None:
        """Do it; the exit code, if that is not 0."""


class _StoreOnce(argparse._StoreAction):
    """Stores a value, and refuses a second one; argparse would silently keep the last."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if isinstance(parser, Parser):
            if self.dest in parser.given:
                parser.error(
                    f"{option_string or self.metavar or self.dest} is given twice; keep one"
                )
            parser.given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Like its base, but a mistake becomes a UserError, so that all errors look alike, and a value
    is given once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            raise argparse.ArgumentError(
                action, "expected one argument"
            )  # its base takes that for a separator
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Refuse what was typed."""
        raise UserError(f"{message}; see {self.prog} --help")


def _ready_streams() -> None:
    """Some callers close them (`>&-`): the next file would take their place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  (for the life of the process)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a terminal without blocks for bars gets question marks, not an error
        sys.stdout.reconfigure(errors="replace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (by default this process's own) and return its exit code."""
    _ready_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except WindrowError as error:
        terminal.complain(f"windrow: error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        terminal.complain("windrow: interrupted")
        return 130
    except BrokenPipeError:
        terminal.send_nowhere(sys.stdout)  # the reader of our output has seen enough
        return 141
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        terminal.send_nowhere(sys.stdout)
        terminal.complain(f"windrow: error: the output cannot be written: {error.strerror}")
        return 1
    return code


def _parsed(
    parser: argparse.ArgumentParser, argv: Sequence[str], chosen: str | None
) -> argparse.Namespace:
    """UserError for what the command does not know: argparse would point at the help of all."""
    once: Sequence[str] | None = None
    if chosen == "run" and "--" in argv:  # what follows is a command with options of its own
        at = list(argv).index("--")
        once, argv = argv[at + 1 :], argv[:at]
    args, unknown = parser.parse_known_args(argv)
    args.once = once
    takes_run = getattr(args, "may_end_with_run", False) and args.run is None
    if takes_run and len(unknown) == 1 and unknown[0][:1] != "-":
        args.run = unknown.pop()  # argparse looks for it before the options only
    if unknown:
        command = "windrow" if chosen is None else f"windrow {chosen}"
        told = f"unrecognized arguments: {' '.join(unknown)}; {_likely_meant(unknown, chosen)}"
        raise UserError(f"{told}see {command} --help")
    return args


def _run(argv: Sequence[str]) -> int:
    if list(argv) == ["help", "all"]:
        from windrow.cli import elsewhere

        _parser(None, None, _overview({**GROUPS, **elsewhere.groups()})).print_help()
        return 0
    if argv and argv[0] == ASK:
        for word in _completed(argv[1:]):
            print(word)
        return 0
    if argv and argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    argv = _as_called_now(argv)
    chosen = argv[0] if argv and not argv[0].startswith("-") else None
    if chosen is None:
        module = None
        parser = _parser(None, None, _everyday())
    else:
        module = _module(chosen)
        parser = _parser(chosen, module)
    args = _parsed(parser, argv, chosen)
    if module is None:  # only options stood in front, or nothing at all
        parser.print_help()
        return 0
    terminal.behave(quiet=args.quiet, verbose=args.verbose, color=args.color)
    if not getattr(args, "takes_usual", ()):
        _announce_compiling()
        return module.run(args) or 0
    from windrow.app.settings import read_once
    from windrow.cli.usual import with_usual

    with read_once():
        with_usual(lambda: _parser(chosen, module), argv, args)
        _announce_compiling()
        return module.run(args) or 0


def _likely_meant(unknown: Sequence[str], chosen: str | None) -> str:
    """Options with a name like one that is unknown: of `--strategies` and `--strategy` each is
    right somewhere."""
    wrong = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
    if chosen is None or not wrong:
        return ""
    import difflib

    from windrow.cli.completion import options_of

    near = difflib.get_close_matches(wrong, options_of(parser_of(chosen)), n=1, cutoff=0.75)
    return f"did you mean {near[0]}? " if near else ""


def parser_of(chosen: str, columns: int | None = None) -> Parser:
    """The parser of what follows the name of a command, with its texts; help of it is as wide as
    that."""
    module = _module(chosen)
    summary, epilog = _texts(module)
    parser = Parser(
        prog=f"windrow {chosen}",
        description=summary,
        epilog=epilog,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=columns),
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    _add_manner(parser)
    return parser


def _completed(words: Sequence[str]) -> list[str]:
    """What the last of these words could become."""
    from windrow.cli.completion import candidates

    parser = None
    words = _as_called_now(words) if len(words) > 1 else words
    if len(words) > 1:
        try:
            parser = parser_of(words[0])
        except WindrowError:
            return []
    return candidates(words, COMMANDS, parser)


def _as_called_now(argv: Sequence[str]) -> Sequence[str]:
    """The same command line without names of earlier commands."""
    if not argv or argv[0] not in EARLIER_NAMES:
        return argv
    rest = list(argv[1:])
    given = {word.partition("=")[0] for word in rest}
    if argv[0] == "timeline" and not given & {*_PAGE_OPTIONS, "-h", "--help"}:
        rest += ["--html", "timeline.html"]
    return [*EARLIER_NAMES[argv[0]], *rest]


def _announce_compiling() -> None:
    """From now on, say what is compiled. Kernels, which most commands do without, log it."""
    import logging

    class Announcing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            terminal.say(record.getMessage())

    kernels = logging.getLogger("windrow.kernels.jit")
    kernels.setLevel(logging.INFO)
    kernels.handlers[:] = [Announcing()]


def _parser(chosen: str | None, module: Command | None, overview: str = "") -> Parser:
    looks: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = Parser(
        prog="windrow",
        usage="windrow [-h] [--version] COMMAND ..." if chosen is None else None,
        description=f"{_DESCRIPTION}\n\n{overview}".rstrip(),
        epilog=_EPILOG,
        **looks,
    )
    parser.add_argument("--version", action="version", version=f"windrow {__version__}")
    if chosen is not None and module is not None:
        commands = parser.add_subparsers(dest="command", metavar="COMMAND")
        summary, epilog = _texts(module)
        of_command = commands.add_parser(chosen, description=summary, epilog=epilog, **looks)
        module.add_arguments(of_command)
        _add_manner(of_command)
        of_command.set_defaults(given=of_command.given)
    return parser


def _add_manner(parser: argparse.ArgumentParser) -> None:
    """The options of every command."""
    add = parser.add_argument_group("of every command").add_argument
    add("-q", "--quiet", action="store_true", help="print results and errors alone")
    add("-v", "--verbose", action="store_true", help="print also what is done meanwhile")
    words = "colours: always, never, or on a terminal (default: auto)"
    add("--color", choices=("auto", "always", "never"), default="auto", help=words)


def _everyday() -> str:
    """The commands that most people need, one line each."""
    return "\n".join(f"  {name:<9} {words}" for name, words in EVERYDAY.items())


def _overview(groups: Mapping[str, Sequence[str]]) -> str:
    """Every command of the groups with its sentence."""
    columns = max(40, min(120, shutil.get_terminal_size().columns)) - 2
    width = 4 + max(map(len, COMMANDS))
    indent = " " * width
    blocks = []
    for title, names in groups.items():
        lines = [
            textwrap.fill(
                _summary(name),
                columns,
                initial_indent=f"  {name:<{width - 2}}",
                subsequent_indent=indent,
            )
            for name in names
        ]
        blocks.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(blocks)


def _summary(command: str) -> str:
    """Its sentence, without loading it if it is ours."""
    if command in COMMANDS:
        return _split(Path(__file__).parent / "commands" / f"{command}.txt")[0]
    return _texts(_module(command))[0]


def _texts(module: Command) -> tuple[str, str]:
    """Its sentence, and what ends its help."""
    return _split(Path(module.__file__).with_suffix(".txt"))


def _split(text: Path) -> tuple[str, str]:
    summary, _, end = text.read_text("utf-8").partition("\n")
    return summary, end


def _module(command: str) -> Command:
    """Ours, or that of another package."""
    if command in COMMANDS:
        return cast(Command, import_module(f"windrow.cli.commands.{command}"))
    from windrow.cli import elsewhere

    found = elsewhere.command_of(command)
    if found is None:
        raise unknown_name("command", command, (*COMMANDS, *elsewhere.names()))
    return cast(Command, found)


if __name__ == "__main__":
    sys.exit(main())
