"""Running a batch system's commands: what they said, how they ended, and what it means where they
did not begin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windrow.errors import UserError
from windrow.queues.command import Answer, run
from windrow.queues.port import QueueError


def call(*argv: str, stdin: str = "", timeout_s: float = 30.0) -> Answer:
    return run(argv, stdin=stdin, env=os.environ, timeout_s=timeout_s)


def test_no_shell_sees_the_arguments() -> None:
    odd = ("$(id)", "a b", "'\"", ";", "\n", "é")
    assert call("printf", "%s|", *odd) == Answer(0, "|".join(odd) + "|", "")
    assert call("cat", stdin="$(id)\n").out == "$(id)\n"


def test_a_failure_is_an_answer_with_its_words_on_one_line() -> None:
    answer = call("sh", "-c", "printf 'no such account\\n\\n  ask the desk\\n' >&2; exit 3")
    assert (answer.code, answer.is_good, answer.words) == (
        3,
        False,
        "no such account; ask the desk",
    )
    assert call("false").words == "exit code 1 and no message"
    assert call("printf", r"\377").out == "�"


def test_a_command_that_hangs_is_killed_at_its_limit() -> None:
    answer = call("sleep", "600", timeout_s=0.1)
    assert (answer.code, answer.words) == (None, "no answer in time")


def test_what_cannot_be_started_is_the_users_or_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "plain").touch(mode=0o600)
    for program in ("no-such-sbatch", str(tmp_path / "plain")):
        with pytest.raises(UserError, match=f"cannot run {program}: .*; run Windrow where"):
            call(program)
    with pytest.raises(
        QueueError, match="cannot run true: Argument list too long"
    ):  # as: no more processes
        call("true", "x" * (1 << 21))
