"""Calls of Python functions as tasks: what is kept of them in a run's folder, and the program that
carries one out (`python -m windrow.calls ROOT FILE FIRST END`).

Rule 1: a call is a piece of a file that is written once, its result a file that is whole or not
there. Rule 2: a result of another call stands in a pickle as a reference, and is read where the
call runs. Rule 3: who carries out a call has the Python and the cloudpickle of who wrote it, or
says so.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from windrow.deletion import put
from windrow.errors import UserError

FOLDER = "calls"
"""Where they are in the folder of a run."""
MOST_BYTES = 100_000_000
"""Of a result."""
_ABOUT = "about.json"
_RESULTS = "results"
_REFERENCE = "result of a call"


class TaskError(Exception):
    """A call did not come to a result, and no exception of its own says why: its process was
    killed, or could not be started."""


class RemoteTraceback(Exception):  # noqa: N818  (as in concurrent.futures)
    """What the program printed of an exception where it was raised; the cause of the exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def refuse_without_pickler() -> None:
    """UserError if functions cannot be sent."""
    if importlib.util.find_spec("cloudpickle") is None:
        raise UserError(
            "functions are sent with cloudpickle, which is not installed; "
            "pip install 'windrow-hpc[python]'"
        )


def prepare(folder: Path, path: Sequence[str]) -> None:
    """Make the place for calls of a run with this folder; modules are looked for on this path."""
    calls = folder / FOLDER
    (calls / _RESULTS).mkdir(mode=0o700, parents=True)
    (calls / _ABOUT).write_text(json.dumps({"path": list(path), "with": _versions()}))


def dump(call: object, reference_to: Callable[[object], str | None]) -> bytes:
    """A call as bytes. `reference_to`: the task of which this is the result to come, if it is
    one."""
    import cloudpickle  # noqa: PLC0415  (an extra)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, found: object) -> object:
            task = reference_to(found)
            return None if task is None else (_REFERENCE, task)

    written = io.BytesIO()
    Pickler(written, protocol=5).dump(call)
    return written.getvalue()


def write(folder: Path, name: str, calls: Iterable[bytes]) -> list[tuple[int, int]]:
    """Write calls into a file; from where to where each is."""
    places = []
    first = 0
    with (folder / FOLDER / name).open("xb") as file:
        for call in calls:
            file.write(call)
            places.append((first, first + len(call)))
            first += len(call)
    return places


def result(folder: Path, task: str) -> Any:
    """What a call returned, or the exception that it raised. TaskError if neither is there."""
    try:
        content = _place(folder / FOLDER, task).read_bytes()
    except FileNotFoundError:
        raise TaskError(f"{task} has no result") from None
    returned, value, told = pickle.loads(content)
    if returned:
        return value
    value.__cause__ = RemoteTraceback(told)
    raise value


def has_result(folder: Path, task: str) -> bool:
    """Whether a call has returned something, or raised an exception."""
    return _place(folder / FOLDER, task).exists()


def _place(calls: Path, task: str) -> Path:
    return calls / _RESULTS / task


def _versions() -> dict[str, str]:
    import cloudpickle  # noqa: PLC0415  (an extra)

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"Python": python, "cloudpickle": cloudpickle.__version__}


def _load(content: bytes, calls: Path) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, reference: Any) -> Any:
            return result(calls.parent, reference[1])

    return Unpickler(io.BytesIO(content)).load()


def _carry_out(calls: Path, file: str, first: int, end: int) -> tuple[bool, Any, str]:
    try:
        with (calls / file).open("rb") as written:
            written.seek(first)
            content = written.read(end - first)
        function, args, kwargs = _load(content, calls)
        return True, function(*args, **kwargs), ""
    except BaseException as error:  # noqa: BLE001  (it is for who called)
        traceback.print_exc()
        return False, error, traceback.format_exc()


def _kept(outcome: tuple[bool, Any, str], task: str) -> tuple[bool, bytes]:
    """Whether it returned, and what is kept of it."""
    import cloudpickle  # noqa: PLC0415  (an extra)

    returned, value, told = outcome
    try:
        content = cloudpickle.dumps(outcome, protocol=5)
        if len(content) <= MOST_BYTES:
            return returned, content
        why = (
            f"the result of {task} has {len(content):,} bytes, and {MOST_BYTES:,} are the most; "
            "write it to a file, and return the path"
        )
        error: Exception = UserError(why)
    except Exception:  # noqa: BLE001  (whatever its pickling raises)
        told += traceback.format_exc()
        error = TaskError(f"what {task} ended with cannot be sent: {value!r:.200}")
    return False, cloudpickle.dumps((False, error, told), protocol=5)


def main(arguments: Sequence[str]) -> int:
    """Carry out a call; 1 if it raised an exception."""
    root, file, first, end = arguments
    task = os.environ["WINDROW_TASK"]
    calls = Path(root) / os.environ["WINDROW_RUN"] / FOLDER
    about = json.loads((calls / _ABOUT).read_text())
    refuse_without_pickler()
    if about["with"] != _versions():
        there = ", ".join(f"{name} {version}" for name, version in about["with"].items())
        here = ", ".join(f"{name} {version}" for name, version in _versions().items())
        print(f"this call was written with {there}; here are {here}", file=sys.stderr)
        return 1
    sys.path[:] = [*about["path"], *(one for one in sys.path if one not in about["path"])]
    returned, content = _kept(_carry_out(calls, file, int(first), int(end)), task)
    place = _place(calls, task)
    half = place.with_name(f".{task}.{os.environ['WINDROW_ATTEMPT']}")
    half.write_bytes(content)
    put(half, place)
    return 0 if returned else 1
