"""`windrow.toml`: how queues are reached. Looked for in this folder, in those above it, then in ~/.config/windrow.

[queues.slurm]                  # the name that --on takes
kind = "slurm"                  # default: the name
partition = "short"
account = "ab123"
qos = "normal"
constraint = "skylake"
extra = ["--licenses=x:1"]      # handed to sbatch as they are
room = "2TB"                    # for the files of runs there: a quota (any kind of queue)

[queues.local]                  # this machine; all keys may be left out
cores = 4                       # the most that a job uses at once
memory = "16GiB"                # likewise, by what tasks state
walltime = "12h"                # end jobs that take longer (default: no limit)

[queues.try]                    # a small cluster played on this machine, with whole nodes and walltimes
kind = "local"
nodes = 4
cores = 1                       # of each node
policy = "easy"
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from windrow.app.ownership import refuse_foreign
from windrow.errors import InputError
from windrow.formats.disk import read_text
from windrow.places import user_folder

NAME = "windrow.toml"


def find_settings(start: Path | None = None) -> Path | None:
    """The settings file that counts here; None where there is none. UserError where another user wrote it."""
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents, user_folder("config")):
        if (folder / NAME).exists():  # a pipe or a folder of this name is refused, not passed over
            refuse_foreign(folder / NAME, trusts_root=True)
            return folder / NAME
    return None


def read_settings(path: Path | None) -> dict[str, dict[str, Any]]:
    """The queues that a settings file names, by name; none without a file."""
    if path is None or (path.is_file() and path.stat().st_size == 0):
        return {}
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"is not TOML: {error}") from None
    unknown = [key for key in content if key != "queues"]
    if unknown:
        raise InputError(path, f"unknown table [{unknown[0]}]", fix="queues are described in [queues.NAME]")
    queues = content.get("queues", {})
    if not isinstance(queues, dict) or not all(isinstance(value, dict) for value in queues.values()):
        raise InputError(path, "queues are tables", fix="write [queues.NAME]")
    return {name: dict(value) for name, value in queues.items()}
