"""A stand-in for running commands that gives recorded answers and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windrow.queues.command import Answer


class RecordedRun:
    """Answers each command by the longest recorded beginning of it; anything else is an error of
    the test."""

    def __init__(self, answers: Mapping[str, Answer | str]) -> None:
        self.answers = dict(answers)
        self.asked: list[list[str]] = []
        self.scripts: list[str] = []

    def __call__(self, argv: Sequence[str], *, stdin: str, **_: object) -> Answer:
        self.asked.append(list(argv))
        self.scripts.append(stdin)
        line = " ".join(argv)
        known = [start for start in self.answers if line.startswith(start)]
        assert known, f"nothing recorded for: {line}"
        answer = self.answers[max(known, key=len)]
        return Answer(0, answer, "") if isinstance(answer, str) else answer
