"""Options that several commands have in common, declared once, so that each is called and explained
alike everywhere.

Rule: a page is `--html`, a folder of results `--out`. Earlier spellings still work, and help does
not show them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from windrow.cli.arguments import number, output_file, output_folder, place, size_bytes, whole
from windrow.errors import UserError

if TYPE_CHECKING:
    from windrow.app.runs import RunView

WORKFLOW_FILES = "native (.yaml), WfFormat (.json) or Pegasus DAX (.dax, .xml), plain or .gz"
ON = "local, slurm, pbs, a queue or site of windrow.toml, or a Slurm partition"
ON_VARIABLE = "WINDROW_ON"
SEVERAL = "several, separated by commas: each job goes where it should end first"
MARGIN = 1.2
"""How much longer than its tasks should need a real job asks for: estimates err."""
PAGE = "write a page with plots; it opens in any browser"

_Options = argparse.ArgumentParser | argparse._ArgumentGroup


def adder(options: _Options) -> Callable[..., None]:
    """What declares options in short: `add("-c --cap K", positive, 16, help="most jobs")`. The help
    names the default, which may be text as a user would write it, such as `1m`.
    """

    def add(
        form: str, read: Callable[[str], object] | None = None, default: object = None, **more: Any
    ) -> None:
        words = form.split()
        names = [word for word in words if word.startswith("-")] or words[:1]
        if default is not None and "(default: " not in more["help"]:
            more["help"] += f" (default: {default})"
        given = {"type": read, "default": default, "metavar": " ".join(words[len(names) :]) or None}
        more |= {key: value for key, value in given.items() if value is not None}
        options.add_argument(*names, **more)

    return add


COPIES = "reliability", "speculate"


def add_copies(parser: _Options) -> None:
    """When tasks that run get copies."""
    chance = number(0.5, 0.9999, what="a probability")
    words = (
        "run critical tasks in enough attempts (at most 3) that with this probability one of them "
    )
    adder(parser)(
        "--reliability P",
        chance,
        0.0,
        help=f"{words}is not lost with its nodes (default: no copies)",
    )
    words = (
        "start another attempt at a task that takes far longer than expected; the first to "
        "finish counts"
    )
    adder(parser)("--speculate", action="store_true", help=words)


SPACE = "space", "space_order", "scratch"


def add_space(parser: _Options) -> None:
    """The space for files."""
    orders = ("auto", "least-need", "depth-first", "breadth-first")
    words = (
        "maximum space for files of the run, such as 2TB; tasks start in an order that stays "
        "within it"
    )
    adder(parser)(
        "--space SIZE", size_bytes, help=f"{words} (default: [data] in windrow.toml, or no limit)"
    )
    words = (
        "what starts first within --space: the least additional space, one pipeline after "
        "another, level by level, or "
    )
    adder(parser)(
        "--space-order", default="auto", choices=orders, help=f"{words}the one planned to end first"
    )
    words = "local disk of the nodes, on which tasks work: a path, $TMPDIR, or none"
    adder(parser)(
        "--scratch PATH",
        default="",
        help=f"{words} (default: scratch of [data] in windrow.toml, or none)",
    )


def add_workflow(parser: argparse.ArgumentParser) -> None:
    """The workflow to look at or to simulate; it needs no commands."""
    adder(parser)("workflow WORKFLOW", help=f"a workflow: {WORKFLOW_FILES}")


def add_runnable(parser: argparse.ArgumentParser, **more: Any) -> None:
    """The workflow to run."""
    adder(parser)(
        "workflow WORKFLOW", help="native YAML, WfFormat (.json) or DAX file with commands", **more
    )


def add_on(parser: argparse.ArgumentParser) -> None:
    """`--on QUEUE`."""
    adder(parser)("--on QUEUE", default=usual_on(), help=ON)


def usual_on() -> str:
    """Where runs go unless `--on` says otherwise: as WINDROW_ON says, else this machine."""
    return os.environ.get(ON_VARIABLE) or "local"


def on_of(names: str) -> dict[str, Any]:
    """Fields of a `RunRequest` for what `--on` names: several sites with commas between them."""
    first, *others = [name.strip() for name in names.split(",")]
    if not names.strip():
        raise UserError("--on needs a name: local, slurm, pbs, or a queue or site of windrow.toml")
    if "" in (first, *others) or len({first, *others}) <= len(others):
        raise UserError(
            f"--on {names}: give different names, separated by commas, such as short,long"
        )
    return {"on": first, "also": tuple(others)}


def add_json(options: _Options, when: str = "instead of a table") -> None:
    """`--json`."""
    options.add_argument(
        "--json", action="store_true", help=f"print one JSON object {when}".rstrip()
    )


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or "\0" in value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def add_set(options: _Options) -> None:
    """`--set NAME=VALUE`."""
    options.add_argument(
        "--set",
        action="append",
        type=_assignment,
        metavar="NAME=VALUE",
        help="what a name in vars of the workflow file stands for (may be given again)",
    )


def add_accept(options: _Options) -> None:
    """`--accept TASK`."""
    options.add_argument(
        "--accept",
        action="append",
        metavar="TASK",
        help="keep what this task has made, though its command or inputs changed (may have *; may "
        "be given again)",
    )


def add_html(
    options: _Options, *earlier: str, default: str | None = None, words: str = PAGE
) -> None:
    """`--html FILE`, also under its earlier names."""
    options.add_argument("--html", type=output_file, default=default, metavar="FILE", help=words)
    _add_earlier(options, earlier, "html", type=output_file)


def add_out(options: _Options, words: str, *earlier: str) -> None:
    """`--out FOLDER`, also under its earlier names."""
    options.add_argument("--out", type=output_folder, metavar="FOLDER", help=words)
    _add_earlier(options, earlier, "out", type=output_folder)


def add_workers(options: _Options) -> None:
    """`--workers N`."""
    options.add_argument(
        "--workers",
        type=whole(1, 1000),
        metavar="N",
        help="worker processes (default: one per core)",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """The run that a command is about."""
    add_run_option(parser)
    _add_run_word(parser)


def _add_run_word(parser: argparse.ArgumentParser) -> None:
    """The same without `--run`; its default must not win over the option's."""
    parser.add_argument(
        "run",
        nargs="?",
        type=place,
        default=argparse.SUPPRESS,
        metavar="RUN",
        help="the same as --run",
    )
    parser.set_defaults(may_end_with_run=True)


def run_of(args: argparse.Namespace) -> RunView:
    """The run that a command is about, as anyone can tell it."""
    from windrow.app.runs import RunView, find_run

    return RunView(find_run(args.run), asks_agents=True)


def add_of_run(parser: argparse.ArgumentParser) -> None:
    """The run, if the command is about something in it: `--run RUN`, or the last word."""
    add_run_option(parser)
    _add_run_word(parser)


def add_run_option(parser: argparse.ArgumentParser) -> None:
    """`--run RUN` alone, if all words are something else."""
    parser.add_argument("--run", type=place, metavar="RUN", help="which run (default: the latest)")


def add_listings(
    parser: argparse.ArgumentParser, tables: Mapping[str, Mapping[str, str]], more: str = ""
) -> None:
    """Put them before what ends the help."""
    parser.epilog = listings(tables) + more + (parser.epilog or "")


def listings(tables: Mapping[str, Mapping[str, str]]) -> str:
    """Names that options may take, with a sentence each, under their titles, for the end of a help
    page."""
    text = ""
    for title, meanings in tables.items():
        width = max(map(len, meanings))
        text += (
            f"{title}:\n"
            + "".join(f"  {name:<{width}}  {words}\n" for name, words in meanings.items())
            + "\n"
        )
    return text


def _add_earlier(options: _Options, names: tuple[str, ...], dest: str, **more: Any) -> None:
    if names:  # its default would else win over that of the new name
        options.add_argument(
            *names, dest=dest, default=argparse.SUPPRESS, help=argparse.SUPPRESS, **more
        )
