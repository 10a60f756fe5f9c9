"""What the commands print with: tables on stdout, progress on stderr.

Rule 1: progress shows only for what takes long: on a terminal after two seconds, and it leaves
nothing behind; elsewhere as a line every ten.
Rule 2: the reader may leave (`| head`), and the disk may fill up (`> file`). Results then end the
command; what only accompanies it does not. Rule 3: nothing that is printed can steer the terminal,
whatever a file or a queue says.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from windrow.errors import printable

if TYPE_CHECKING:
    from msgspec import Struct
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from windrow.model import Workflow

_PATIENCE_S = 2.0
LINE_S = 10.0
"""How often progress is told if it is not on a terminal."""
_WIDE = 160  # columns, if no terminal says how many it has: tables are as wide as they need


@dataclass
class _Manner:
    """How commands print, as the options of every command say."""

    is_quiet: bool = False
    color: str = "auto"


_MANNER = _Manner()


def behave(*, quiet: bool, verbose: bool, color: str) -> None:
    """From now on: `quiet` results and errors alone, `verbose` with what is done meanwhile; colours
    always, never, or where a person looks."""
    _MANNER.is_quiet = quiet
    _MANNER.color = color
    if verbose:
        import logging

        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
        logging.getLogger("windrow").setLevel(logging.DEBUG)


def is_quiet() -> bool:
    """Whether only results and errors are wanted."""
    return _MANNER.is_quiet


def console(**more: Any) -> Console:
    """What prints with colours, if these are wanted."""
    from rich.console import Console

    if _MANNER.color == "always":
        more = {"force_terminal": True} | more
    if _MANNER.color == "never":
        more = {"no_color": True} | more
    return Console(highlight=False, **more)


def show(*blocks: RenderableType) -> None:
    """Print tables and lines on stdout, with an empty line between blocks; colours only on a
    terminal."""
    wide = console(width=None if sys.stdout.isatty() else _WIDE)
    with wide.capture() as captured:
        for i, block in enumerate(blocks):
            wide.print(*([""] if i else []), block, sep="\n")
    # Tables are padded to their full width, which only litters what is piped or copied.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def text(*lines: str, style: str = "") -> Text:
    """Lines as they are, whatever brackets they hold."""
    from rich.text import Text

    return Text("\n".join(lines), style)


def heading(words: str) -> Text:
    """A line that stands out."""
    return text(words, style="bold")


def guesses(workflow: Workflow) -> str:
    """What to add to an amount of work that rests on guesses; nothing if all run times are
    stated."""
    n = workflow.guessed_run_times
    if n:
        return f" ({n:,} of {len(workflow):,} run times are guesses)"
    return ""


def table(
    heads: Sequence[str] | None,
    rows: Iterable[Sequence[str | Text]],
    align: str = "<>",
    gap: int = 2,
) -> Table:
    """A table without lines. Strings are text, whatever brackets they hold.

    `align` has a sign for each column, the last for all further ones: `<` and `>` keep to one line,
    `l` and `r` wrap.
    """
    from rich.table import Table
    from rich.text import Text

    shown = Table(
        box=None, padding=(0, gap, 0, 0), header_style="bold", show_header=heads is not None
    )
    rows = list(rows)
    for i in range(len(heads) if heads is not None else max(map(len, rows), default=0)):
        sign = align[min(i, len(align) - 1)]
        head = "" if heads is None else heads[i]
        shown.add_column(head, justify="right" if sign in ">r" else "left", no_wrap=sign in "<>")
    for row in rows:
        shown.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return shown


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page, completely or not at all."""
    from windrow.formats.disk import replace_text

    replace_text(path, text)


def files_written(**paths: str | None) -> list[RenderableType]:
    """A block that names the files written, one to a line; nothing if there are none."""
    from rich.text import Text

    lines = [f"{what}: {path}" for what, path in paths.items() if path]
    if lines:
        return [Text("\n".join(lines), overflow="ignore", no_wrap=True)]
    return []


def say(line: str) -> None:
    """One line for the person, out of the way of results; lost if no one reads it."""
    if not _MANNER.is_quiet:
        complain(line)


def complain(line: str) -> None:
    """The same for what went wrong, which is said in any case."""
    try:
        print(printable(line), file=sys.stderr, flush=True)
    except OSError:
        send_nowhere(sys.stderr)


def hint(line: str) -> None:
    """What the person may do next; only who watches the results needs it."""
    if sys.stdout.isatty():
        say(line)


def tell(lines: str, farewell: str) -> None:
    """Print on stdout, and do not mind if that fails: `farewell` and silence are the answer."""
    try:
        print(printable(lines), flush=True)
    except OSError:
        send_nowhere(sys.stdout)
        say(farewell)


def send_nowhere(stream: TextIO) -> None:
    """From now on the stream leads nowhere; Python would else complain when it flushes what is left
    in it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def print_json(value: Mapping[str, object] | Struct) -> None:
    """Exactly one JSON object on stdout; views of a run may be in it."""
    print(_as_json(value, indent=2))


def print_json_line(value: Mapping[str, object] | Struct) -> None:
    """One of several, each on a line of its own."""
    print(_as_json(value), flush=True)


def _as_json(value: Mapping[str, object] | Struct, indent: int | None = None) -> str:
    import json

    from windrow.cli.json_names import SCHEMA, outward

    return json.dumps({"schema": SCHEMA, **outward(value)}, indent=indent, allow_nan=False)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show `what` and the seconds gone while the body runs: a spinner on a terminal, now and then a
    line elsewhere."""
    if not sys.stderr.isatty() or _MANNER.is_quiet:
        with _saying(what):
            yield
        return
    from rich.console import Group
    from rich.live import Live
    from rich.spinner import Spinner

    began = time.monotonic()
    spinner = Spinner("dots")

    def now() -> RenderableType:
        gone = time.monotonic() - began
        if gone < _PATIENCE_S:
            return Group()
        spinner.update(text=f"{what} ... {gone:.0f} s")
        return spinner

    with Live(
        get_renderable=now, console=console(stderr=True), refresh_per_second=8, transient=True
    ):
        yield


@contextmanager
def _saying(what: str) -> Iterator[None]:
    over = threading.Event()
    began = time.monotonic()

    def watch() -> None:
        while not over.wait(LINE_S):
            say(f"{what} ... {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
