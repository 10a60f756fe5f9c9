"""The one decorator of every kernel.

Numba's own cache notices a change in the file of a kernel, but not in the file of another kernel that it calls, and
would go on running old code. So the compiled code is kept in a per-user folder named after a digest of all kernels:
any change compiles anew, nothing stale is ever loaded, and a read-only installation needs no special care.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

F = TypeVar("F", bound=Callable[..., Any])


def _cache_folder() -> str:
    """Folder for compiled code; `WINDROW_CACHE` overrides where it is put. Empty where no folder can be made."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        base = Path(os.environ.get("WINDROW_CACHE") or caches / "windrow")
        folder = base / "kernels" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder) if os.access(folder, os.W_OK) else ""
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return ""


_FOLDER = _cache_folder()


def is_compiled(module: str = "*") -> bool:
    """Whether an earlier process has left compiled kernels of that module (`advance`, by default any) in the cache."""
    return bool(_FOLDER) and any(Path(_FOLDER).rglob(f"{module}.*.nbc"))


def kernel(function: F) -> F:
    """Compile on first call, without the GIL, with the result cached for later processes."""
    # The cache folder is a process-wide setting of Numba that it reads while decorating: set it for just that long.
    before: str = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = _FOLDER or before  # type: ignore[attr-defined]
    try:
        compiled = cast(F, numba.njit(cache=bool(_FOLDER), nogil=True, error_model="numpy")(function))
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    return compiled
