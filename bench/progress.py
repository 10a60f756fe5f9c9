"""What is being done, on stderr, with the time that is left: a guess, from what a quiet two-core
machine needs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

_TRUST_S = 20.0
"""After about so long, what was seen counts as much as what was expected."""


class Progress:
    """The parts of a benchmark, one after the other. `expected_s` names them in order, with the
    seconds of each."""

    def __init__(self, expected_s: Mapping[str, float]) -> None:
        self._expected_s = dict(expected_s)
        self._console = Console(stderr=True, highlight=False)
        self._begin = self._part_begin = time.perf_counter()
        self._part = ""
        self._done_s = 0.0

    def part(self, name: str) -> None:
        """The part of that name begins, and the one before is over."""
        self._done_s += self._expected_s.get(self._part, 0.0)
        self._part = name
        self._part_begin = time.perf_counter()
        self.say("")

    def say(self, detail: str) -> None:
        """Tell what is being measured now. On a terminal it replaces what was told before."""
        now = time.perf_counter()
        doing = f"{self._part}: {detail}" if detail else self._part
        line = f"{_clock(now - self._begin)}, about {_clock(self.left_s(now))} left · {doing}"
        if self._console.is_terminal:
            self._console.print(
                f"\r\x1b[2K[dim]{escape(line)}[/]", end="", no_wrap=True, overflow="ellipsis"
            )
        else:
            self._console.print(escape(line), soft_wrap=True)

    def left_s(self, now: float) -> float:
        """The rest of the plan, stretched as the parts that are over were, once they are long
        enough to tell."""
        pace = (self._part_begin - self._begin + _TRUST_S) / (self._done_s + _TRUST_S)
        current_s = self._expected_s.get(self._part, 0.0)
        later_s = max(0.0, sum(self._expected_s.values()) - self._done_s - current_s)
        return max(0.0, pace * current_s - (now - self._part_begin)) + pace * later_s

    def clear(self) -> None:
        """Take the line off the terminal, so that something else can be printed there."""
        if self._console.is_terminal:
            self._console.print("\r\x1b[2K", end="")

    def finish(self) -> None:
        """All is done."""
        self.clear()
        self._console.print(f"[dim]took {_clock(time.perf_counter() - self._begin)}[/]")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
