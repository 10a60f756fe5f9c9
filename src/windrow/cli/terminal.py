"""What the commands print with: tables on stdout, progress on stderr.

Rule 1: progress shows only on a terminal, and only for what takes longer than two seconds; it leaves nothing behind.
Rule 2: the reader may leave (`| head`), and the disk may fill up (`> file`). Results then end the command; what only
accompanies it does not. Rule 3: nothing that is printed can steer the terminal, whatever a file or a queue says.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from windrow.errors import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

_PATIENCE_S = 2.0
_WIDE = 160  # columns, where no terminal says how many it has: tables are as wide as they need


def show(*blocks: RenderableType) -> None:
    """Print tables and lines on stdout, with an empty line between blocks; colours only on a terminal."""
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    with console.capture() as captured:
        for i, block in enumerate(blocks):
            console.print(*([""] if i else []), block, sep="\n")
    # Tables are padded to their full width, which only litters what is piped or copied.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def heading(words: str) -> RenderableType:
    """A line that stands out; `words` are text, whatever brackets they hold."""
    from rich.text import Text

    return Text(words, style="bold")


def files_written(**paths: str | None) -> list[RenderableType]:
    """A block that names the files written, one to a line; nothing where there are none."""
    from rich.text import Text

    lines = [f"{what}: {path}" for what, path in paths.items() if path]
    return [Text("\n".join(lines), overflow="ignore", no_wrap=True)] if lines else []


def say(line: str) -> None:
    """One line for the person, out of the way of results; lost where nobody reads it."""
    try:
        print(printable(line), file=sys.stderr, flush=True)
    except OSError:
        send_nowhere(sys.stderr)


def tell(lines: str, farewell: str) -> None:
    """Print on stdout, and do not mind if that fails: `farewell` and silence are the answer."""
    try:
        print(printable(lines), flush=True)
    except OSError:
        send_nowhere(sys.stdout)
        say(farewell)


def send_nowhere(stream: TextIO) -> None:
    """From now on the stream leads nowhere; Python would else complain when it flushes what is left in it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def print_json(value: Mapping[str, object]) -> None:
    """Exactly one JSON object on stdout."""
    import json

    print(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner with `what` and the seconds gone while the body runs, once it has run for two of them."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console, Group
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

    with Live(get_renderable=now, console=Console(stderr=True), refresh_per_second=8, transient=True):
        yield
