"""Where a user's own files are: the folders of the XDG Base Directory Specification, by one rule for all of them.

A variable that is empty, or that names no absolute path, is ignored, as the specification asks: what a user has would
else depend on the folder in which a command is typed.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from windrow.errors import UserError

_HOMES = {"cache": (".cache",), "config": (".config",), "data": (".local", "share"), "state": (".local", "state")}


class NoHome(UserError):  # noqa: N818  (it says what is missing)
    """There is no place for a user's own files."""


def user_folder(kind: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Windrow's folder for what is of this kind: `cache`, `config`, `data` or `state`. It need not exist."""
    variable = f"XDG_{kind.upper()}_HOME"
    named = environ.get(variable, "")
    if named.startswith("/"):
        return Path(named, "windrow")
    try:
        return Path.home().joinpath(*_HOMES[kind], "windrow")
    except RuntimeError:
        raise NoHome(f"this user has no home folder; set HOME or {variable}") from None
