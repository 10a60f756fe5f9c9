"""Whose files these are: what others could have written is not executed.

Rule: commands that execute (`run`, `resume`, `retry`, `cancel`) refuse a `.windrow`, a run or a
`windrow.toml` of another user, as git refuses a repository of "dubious ownership". Commands that
only read may read whatever the system lets them read, and say whose it is if it does not let
them (`refuse_unreadable`).
"""

import os
import pwd
import stat
import tempfile
from pathlib import Path

from windrow.errors import UserError
from windrow.places import PROJECT_VARIABLE

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def refuse_foreign(
    path: Path, *, trusts_root: bool = False, otherwise: str = "use another folder"
) -> None:
    """UserError if another user owns this; `trusts_root`: the administrator may. What is not
    there is no matter.

    `otherwise`: what to do who does not trust it.
    """
    try:
        owner = path.lstat().st_uid
        if owner == os.geteuid() and path.is_symlink():  # into another user's folder, perhaps
            owner = path.stat().st_uid
    except OSError:
        return
    if owner == os.geteuid() or (trusts_root and owner == 0):
        return
    me = user_name(os.geteuid())
    raise UserError(
        f"{path.absolute()} belongs to {user_name(owner)}, not to you ({me}), and Windrow "
        "executes only what is yours; "
        f"if you trust it, make it yours (chown -R {me}), otherwise {otherwise}"
    )


def of_your_own() -> str:
    """How to have runs of one's own beside those of a colleague."""
    return (
        f"keep runs of your own here: export {PROJECT_VARIABLE}=.windrow.{user_name(os.geteuid())}"
    )


def refuse_unreadable(folder: Path) -> None:
    """UserError if another user keeps runs in this folder, or one around it, and does not let us
    read them."""
    for part in (*reversed(folder.parents), folder):
        try:
            owner = part.stat().st_uid
        except OSError:  # it is not there; what hides it was refused before
            return
        if owner != os.geteuid() and not os.access(
            part, os.R_OK | os.X_OK if part == folder else os.X_OK
        ):
            me = user_name(os.geteuid())
            raise UserError(
                f"{part.absolute()} belongs to {user_name(owner)}, and you ({me}) may not read it; "
                f"ask {user_name(owner)} to let you (chmod -R g+rX), or {of_your_own()}"
            )


def refuse_shared(folder: Path) -> None:
    """UserError if others may write into this folder, and so replace what is in it."""
    try:
        is_shared = bool(folder.stat().st_mode & _BY_OTHERS)
    except OSError:
        return
    if is_shared and _keeps_modes(folder):
        raise UserError(
            f"{folder.absolute()} can be written by other users, and Windrow executes only what "
            "is yours; "
            f"check its contents, then chmod -R go-w {folder.absolute()}"
        )


def _keeps_modes(folder: Path) -> bool:
    """Whether this file system knows modes at all: on some everything looks as if all might write
    it."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            return not os.fstat(probe.fileno()).st_mode & _BY_OTHERS
    except OSError:
        return True


def user_name(uid: int) -> str:
    """What a user is called; their number if nothing else is known."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
