"""Where a user's own files are: the folders of the XDG Base Directory Specification, by one rule
for all of them.

In a project it is the folder `.windrow`, or the one that WINDROW_DIR names: two people who work in
one project folder need one each.

A variable that is empty, or that names no absolute path, is ignored, as the specification asks:
what a user has would else depend on the folder in which a command is typed.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from windrow.errors import UserError

PROJECT_VARIABLE = "WINDROW_DIR"
"""Names the folder in a project that has a user's runs and pools."""
_HOMES = {
    "cache": (".cache",),
    "config": (".config",),
    "data": (".local", "share"),
    "state": (".local", "state"),
}


class NoHome(UserError):  # noqa: N818  (it says what is missing)
    """There is no place for a user's own files."""


def project_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of a project in which a user's runs and pools are kept; from the project, if it is
    not absolute."""
    return Path(environ.get(PROJECT_VARIABLE) or ".windrow")


def user_folder(kind: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Windrow's folder for what is of this kind: `cache`, `config`, `data` or `state`. It need not
    exist."""
    variable = f"XDG_{kind.upper()}_HOME"
    named = environ.get(variable, "")
    if named.startswith("/"):
        return Path(named, "windrow")
    try:
        return Path.home().joinpath(*_HOMES[kind], "windrow")
    except RuntimeError:
        raise NoHome(f"this user has no home folder; set HOME or {variable}") from None
