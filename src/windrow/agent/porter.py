"""`agent.pyz porter RUN_DIR`: what a manager on another machine wants of a run's folder here, in
one question.

A request is one JSON object on standard input, the reply one on standard output.

Rule 1: nothing is remembered between two requests: the request says how much of each file is known,
and only what follows is sent, so whatever gets lost on the way is sent again. Rule 2: files come
into place whole. Rule 3: a reply has its limit; `more` says that there is more to ask for, and what
agents say comes before what tasks print.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from windrow.deletion import discard, discard_tree
from windrow.errors import WindrowError
from windrow.files import about_to_write, disk_faults, free_bytes, replacing

MOST_BYTES = 4 << 20
MARK = ".windrow-run"
"""In a folder that was made for a run at another place, and in no other: without it, none is
removed."""
_OF_A_JOB = ("claim", "events", "output")
_OF_ALL = ("commits", "out")


def _put(folder: Path, files: Mapping[str, str]) -> None:
    if files and not folder.exists():
        with disk_faults(f"{folder} cannot be created"):
            folder.mkdir(mode=0o700, parents=True)
            (folder / MARK).touch(0o600)
    for name, text in files.items():
        with disk_faults(f"{folder / name} cannot be written"):
            (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(folder / name) as file:
                file.write(text.encode())


def _new(path: Path, begin: int, most: int) -> bytes:
    """What the file has from there on; nothing if it is not there yet, or its file system has a
    hiccup: there is another look."""
    try:
        if path.stat().st_size <= begin:
            return b""
        with path.open("rb") as file:
            file.seek(begin)
            return file.read(most)
    except OSError:
        return b""


def serve(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Do what is requested, in this order: `put` files (name: text), send what is new, `remove` the
    folder.

    `known`: bytes of each file that the asker has; `jobs`: those whose files are wanted; `all`:
    what tasks print, too. `missing` names files of tasks: which of them are not here?
    """
    _put(folder, request.get("put", {}))
    reply: dict[str, Any] = {"now": time.time(), "files": [], "more": False, "missing": []}
    left = MOST_BYTES
    known = request.get("known", {})
    for name in _names(folder, request):
        begin = known.get(name, 0)
        if data := _new(folder / name, begin, left):
            left -= len(data)
            reply["files"].append((name, begin, base64.b64encode(data).decode("ascii")))
        reply["more"] = left <= 0
        if left <= 0:
            break
    # without it the whole disk may be away for a while
    if "missing" in request and (files := folder / "files").is_dir():
        reply["missing"] = [
            name for name in request["missing"] if not os.path.lexists(files / name)
        ]
    if request.get("remove"):
        about_to_write(folder)
        with suppress(OSError, ValueError):
            discard_tree(folder, mark=MARK)
        reply["left"] = folder.exists()
    return reply


def _names(folder: Path, request: dict[str, Any]) -> Iterator[str]:
    for part in _OF_A_JOB:
        yield from (f"jobs/{number}/{part}" for number in request.get("jobs", ()))
    for part in _OF_ALL if request.get("all") else ():
        try:
            yield from sorted(f"{part}/{name}" for name in os.listdir(folder / part))  # noqa: PTH208 - may be many
        except OSError:  # there is none yet
            continue


def told(folder: Path) -> dict[str, Any]:
    """What is to be known of this machine before a run comes here."""
    with disk_faults(f"{folder} cannot be created"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    trial = folder / f".windrow-{os.getpid()}"
    with disk_faults(f"{folder} cannot be written"):
        trial.write_bytes(b"")
        discard(trial)
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "now": time.time(),
        "python": python,
        "rsync": shutil.which("rsync"),
        "free": free_bytes(folder),
    }


if __name__ == "__main__":
    asked = json.loads(sys.stdin.read())
    try:
        print(
            json.dumps(
                told(Path(sys.argv[1])) if "hello" in asked else serve(Path(sys.argv[1]), asked)
            )
        )
    except (
        WindrowError,
        OSError,
    ) as error:  # anything else ends it with a traceback, which the manager is told, too
        print(json.dumps({"trouble": str(error)}))
