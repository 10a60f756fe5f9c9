"""`windrow logs`: what a task printed, or what the agent of a job did.

Rule: memory does not grow with the file, which may be of any size, and of any content: on a
terminal, what would steer it is left out.
"""

from __future__ import annotations

import argparse
import codecs
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import whole
from windrow.errors import InputError, UserError
from windrow.model.bounds import COUNT_MAX
from windrow.story.states import ACTIVE, AttemptState, TaskState

if TYPE_CHECKING:
    from windrow.app.runs import RunView


_BLOCK_BYTES = 1 << 16
_LOOK_S = 0.3
_HELD = 200  # characters of an escape sequence that may wait for the next block
# Window titles and their like, colours and their like, other escapes, then every control character
# but newline and tab.
_STEERING = re.compile(
    r"\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # noqa: E501
)

_UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]P^_X][^\x07\x1b]*\x1b?|[ -/]*)|\r)\Z")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("task TASK", nargs="?", help="the task's id, as windrow tasks lists it")
    add("--failed", action="store_true", help="what every task that failed printed last")
    how = parser.add_mutually_exclusive_group()
    options.adder(how)(
        "-f --follow", action="store_true", help="keep printing until the task has ended"
    )
    options.add_json(how)
    add("--attempt N", whole(1, COUNT_MAX), help="which attempt (default: the latest)")
    add(
        "--job N",
        whole(0, COUNT_MAX),
        help="the attempt in this job; without TASK, the job's own output",
    )
    options.add_of_run(parser)


def run(args: argparse.Namespace) -> None:
    """Find the file and copy it out."""
    from windrow.app.task_names import task_number

    if args.failed and args.task is not None and args.run is None:
        args.run, args.task = args.task, None  # the only word is the run
    told = options.run_of(args)
    if args.failed:
        _print_failed(told, args)
        return
    if args.task is None:
        head, path = _of_job(told, args)
        _show_job(told, args, head, path)
        return
    number = task_number(told.runnable.workflow, args.task, told.paths.name)
    if args.json:
        _tell(told, [(number, _attempt(told, args, number))])
    elif args.follow:
        _follow(told, args, number)
    elif (attempt := _attempt(told, args, number)) == 0:
        terminal.say(f"{args.task} has not started: {_state(told, number)}")
    else:
        path = _path(told, number, attempt)
        _print(_head(told, number, attempt, path), path)


def _show_job(told: RunView, args: argparse.Namespace, head: str, path: Path) -> None:
    if args.json:
        terminal.print_json(
            {"run": told.paths.name, "outputs": [{"job": args.job, **_content(path)}]}
        )
    else:
        _print(head, path)


def _tell(told: RunView, attempts: Sequence[tuple[int, int]]) -> None:
    """For programs: what these attempts at tasks printed; attempt 0 is none."""
    outputs = []
    for number, attempt in attempts:
        if attempt:
            about = told.story.tasks[number].attempts[attempt - 1]
            outputs.append(
                {
                    "task": told.runnable.workflow.ids[number],
                    "attempt": attempt,
                    "job": about.job,
                    "outcome": about.outcome,
                    "why": about.why,
                    **_content(_path(told, number, attempt)),
                }
            )
    terminal.print_json({"run": told.paths.name, "outputs": outputs})


def _content(path: Path) -> dict[str, str | None]:
    """Where it is, and what is in it, if there is anything."""
    if not path.exists():
        return {"file": None, "text": ""}
    return {"file": str(path), "text": path.read_bytes().decode(errors="replace")}


def _print(head: str, path: Path) -> None:
    terminal.say(head)
    if path.exists():
        _copy(path, 0, _printer())


def _print_failed(told: RunView, args: argparse.Namespace) -> None:
    """One after the other, in the order of the workflow."""
    if args.task is not None or args.job is not None or args.follow:
        raise UserError("--failed is for all that failed; leave out TASK, --job and --follow")
    failed = [n for n, task in enumerate(told.story.tasks) if task.state is TaskState.FAILED]
    if args.json:
        _tell(told, [(number, len(told.story.tasks[number].attempts)) for number in failed])
        return
    if not failed:
        terminal.say(f"no task of {told.paths.name} failed")
    for number in failed:
        attempt = len(told.story.tasks[number].attempts)
        path = _path(told, number, attempt)
        _print(_head(told, number, attempt, path), path)


def _of_job(told: RunView, args: argparse.Namespace) -> tuple[str, Path]:
    if args.job is None:
        raise UserError("name a task, or a job with --job; windrow tasks lists the tasks")
    if args.job not in told.story.jobs:
        raise UserError(
            f"{told.paths.name} has no job {args.job}; windrow status {told.paths.name} lists "
            "the jobs"
        )
    folder = told.paths.folder.path
    inside = f"jobs/{args.job}/output"
    path = next(folder.glob(f"far/*/{inside}"), folder / inside)
    return f"job {args.job}, {told.story.jobs[args.job].state}: {_printed(path)}", path


def _attempt(told: RunView, args: argparse.Namespace, number: int) -> int:
    """Which attempt is meant, from 1; 0 if there is none yet."""
    attempts = told.story.tasks[number].attempts
    if args.attempt is not None:
        if args.attempt > len(attempts):
            raise UserError(
                f"{args.task} has {len(attempts)} attempt(s); there is no attempt {args.attempt}"
            )
        return int(args.attempt)
    if args.job is not None:
        there = [i for i, attempt in enumerate(attempts, 1) if attempt.job == args.job]
        if not there:
            raise UserError(
                f"{args.task} did not start in job {args.job}; {_explain(told, args.task)} shows "
                "where it ran"
            )
        return there[-1]
    last = told.story.tasks[number].last
    if last is None:
        return 0
    return attempts.index(last) + 1


def _explain(told: RunView, task: str) -> str:
    from windrow.app.runs import of_run

    return f"windrow explain {shlex.quote(task)}{of_run(told.paths)}"


def _path(told: RunView, number: int, attempt: int) -> Path:
    return told.paths.folder.task_out(number, told.story.tasks[number].attempts[attempt - 1].number)


def _state(told: RunView, number: int) -> str:
    task = told.story.tasks[number]
    if task.kept is not None:
        name = shlex.quote(told.runnable.workflow.ids[number])
        return (
            f"it finished in {task.kept.run}; for its output: windrow logs {name} --run "
            f"{task.kept.run}"
        )
    return {
        TaskState.PENDING: "it has not been submitted yet",
        TaskState.SUBMITTED: "its job is waiting, or has not started it yet",
        TaskState.BLOCKED: "a task that it depends on failed",
        TaskState.CANCELLED: "it was cancelled",
        TaskState.SKIPPED: "it is for a failure that did not come",
    }.get(task.state, task.state)


def _head(told: RunView, number: int, attempt: int, path: Path) -> str:
    task = told.story.tasks[number]
    name = told.runnable.workflow.ids[number]
    about = task.attempts[attempt - 1]
    if about.why:
        why = f" ({about.why})"
    else:
        why = ""
    return (
        f"{name}: attempt {attempt} of {len(task.attempts)}, job {about.job}, "
        f"{about.outcome}{why}: {_printed(path)}"
    )


def _printed(path: Path) -> str:
    if path.exists():
        return str(path)
    return f"no output; it would be in {path}"


def _follow(told: RunView, args: argparse.Namespace, number: int) -> None:
    """Print attempt after attempt until the task has ended, or the run is managed no more."""
    is_one = args.attempt is not None or args.job is not None
    attempt = max(1, _attempt(told, args, number))
    printer = _printer()
    while _has_started(told, number, attempt):
        path = _path(told, number, attempt)
        terminal.say(_head(told, number, attempt, path))
        _follow_attempt(told, number, attempt, printer)
        if is_one or _is_over(told, number):
            return
        attempt += 1
    if attempt == 1:
        terminal.say(
            f"{args.task} has not started: {_state(told, number)}; {told.paths.name} is "
            f"{told.state}"
        )


def _has_started(told: RunView, number: int, attempt: int) -> bool:
    """Wait for the attempt; False if it will not come."""
    has_said = False
    while len(told.story.tasks[number].attempts) < attempt:
        if _is_over(told, number):
            return False
        if not has_said:
            terminal.say(
                f"attempt {attempt} has not started: {_state(told, number)}; waiting for it ..."
            )
            has_said = True
        time.sleep(_LOOK_S)
        told.refresh()
    return True


def _is_over(told: RunView, number: int) -> bool:
    return told.story.tasks[number].state.is_out or told.state not in ACTIVE


def _follow_attempt(told: RunView, number: int, attempt: int, printer: _Printer) -> None:
    path = _path(told, number, attempt)
    at = 0
    while True:
        is_running = told.story.tasks[number].attempts[attempt - 1].outcome is AttemptState.RUNNING
        goes_on = is_running and told.state in ACTIVE
        if path.exists():  # looked at after the state, so that nothing is missed at the end
            at = _copy(path, at, printer)
        if not goes_on:
            return
        time.sleep(_LOOK_S)
        told.refresh()


def _copy(path: Path, at: int, printer: _Printer) -> int:
    """Print what stands in the file from there on; where it ends now."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            while block := file.read(_BLOCK_BYTES):
                printer.write(block)
            printer.flush()
            return file.tell()
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename is None:  # that is stdout's
            raise
        raise InputError(path, f"cannot be read: {error.strerror}") from None


class _Printer:
    """Bytes as they are, for files and pipes."""

    def write(self, block: bytes) -> None:
        """Print this."""
        sys.stdout.buffer.write(block)

    def flush(self) -> None:
        """Let it be seen."""
        sys.stdout.flush()


class _TerminalPrinter(_Printer):
    """Text without what steers a terminal. The start of an escape sequence waits for its rest."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def write(self, block: bytes) -> None:
        """Print this."""
        text = self._held + self._decoder.decode(block)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _HELD))
        if unfinished:
            cut = unfinished.start()
        else:
            cut = len(text)
        text, self._held = text[:cut], text[cut:]
        sys.stdout.write(_STEERING.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def _printer() -> _Printer:
    if sys.stdout.isatty():
        return _TerminalPrinter()
    return _Printer()
