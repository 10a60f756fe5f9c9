"""Whose files these are: what others could have written is not executed.

Rule: commands that execute (`run`, `resume`, `retry`, `cancel`) refuse a `.windrow`, a run or a `windrow.toml` of
another user, as git refuses a repository of "dubious ownership". Commands that only read may read whatever the system
lets them read.
"""

import os
import pwd
import stat
import tempfile
from pathlib import Path

from windrow.errors import UserError

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def refuse_foreign(path: Path, *, trusts_root: bool = False) -> None:
    """UserError where another user owns this; `trusts_root`: the administrator may. What is not there is no matter."""
    try:
        owner = path.lstat().st_uid
        if path.is_symlink():  # a link of one's own into another user's folder
            owner = path.stat().st_uid if owner == os.geteuid() else owner
    except OSError:
        return
    if owner == os.geteuid() or (trusts_root and owner == 0):
        return
    me = user_name(os.geteuid())
    raise UserError(
        f"{path.absolute()} belongs to {user_name(owner)}, not to you ({me}), and Windrow executes only what is yours; "
        f"if you trust it, make it yours (chown -R {me}), otherwise use another folder"
    )


def refuse_shared(folder: Path) -> None:
    """UserError where others may write into this folder, and so replace what is in it."""
    try:
        is_shared = bool(folder.stat().st_mode & _BY_OTHERS)
    except OSError:
        return
    if is_shared and _keeps_modes(folder):
        raise UserError(
            f"{folder.absolute()} can be written by other users, and Windrow executes only what is yours; "
            f"check its contents, then chmod -R go-w {folder.absolute()}"
        )


def _keeps_modes(folder: Path) -> bool:
    """Whether this file system knows modes at all: on some everything looks as if all might write it."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            return not os.fstat(probe.fileno()).st_mode & _BY_OTHERS
    except OSError:
        return True


def user_name(uid: int) -> str:
    """What a user is called; their number where nothing else is known."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
