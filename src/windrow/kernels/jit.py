"""The one decorator of every kernel.

Rule 1: numba is loaded, and a kernel compiled, at its first call from Python, never by an import. Where there is little
to do, kernels can be called as they are written (`in_python`), with the same answers.
Rule 2: a kernel that is called by another one is linked into it, not compiled for itself (`linking`); what is called
from Python is compiled as a whole, once, with all that it calls.
Rule 3: compiled code is kept in a per-user folder named after a digest of all kernels. Numba's own cache notices a
change in the file of a kernel, but not in that of another kernel that it calls. So any change compiles again, nothing
stale is ever loaded, and a read-only installation needs no special care.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from windrow.files import held
from windrow.places import NoHome, user_folder

logger = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


@cache
def cache_folder() -> str:
    """Folder for compiled code; `WINDROW_CACHE` overrides where it is put. Empty where no folder can be made."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    try:
        base = Path(os.environ.get("WINDROW_CACHE") or user_folder("cache"))
        folder = base / "kernels" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder) if os.access(folder, os.W_OK) else ""
    except (OSError, NoHome):
        return ""


def is_compiled(*kernels: str) -> bool:
    """Whether an earlier process has left these kernels (`advance.advance`) compiled in the cache."""
    return bool(cache_folder()) and all(any(Path(cache_folder()).rglob(f"{name}-*.nbc")) for name in kernels)


def is_loaded() -> bool:
    """Whether this process has loaded numba already, so that calling a kernel costs nothing more than the call."""
    return "numba" in sys.modules


SMALL, SMALL_WHEN_COLD = 60, 300
"""Tasks and jobs, in all, up to which a look ahead in Python takes less time than to load, or to compile, kernels."""


def is_small(size: int) -> bool:
    """Whether kernels need not be loaded for this many tasks and jobs."""
    return not is_loaded() and size <= (SMALL_WHEN_COLD if _is_cold() else SMALL)


@cache
def _is_cold() -> bool:
    return not is_compiled("play.rollout")


class Kernel:
    """A function to be compiled when it is first called.

    To call it is to call what its slot holds, without a frame of Python between: once compiled, the compiled function.
    """

    __slots__ = ("__call__", "__dict__")
    __call__: Callable[..., Any]
    is_compiling: ClassVar[bool] = True

    def __init__(self, function: Callable[..., Any], *, is_lean: bool = False) -> None:
        self.function, self.is_lean = function, is_lean
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        update_wrapper(self, function)
        self.__call__ = self._first

    def _first(self, *args: Any) -> Any:
        """Compile it and run it, or run it as it is."""
        if not Kernel.is_compiling:
            return self.function(*args)
        self.__call__ = self._compiled(args)
        return self.__call__(*args)

    def _compiled(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        from windrow.kernels import linking  # noqa: PLC0415  (loads numba)

        folder = cache_folder()
        if is_compiled(self.name):
            return linking.compiled(self.function, folder)
        logger.info(self.name)  # (`advance.advance`); it takes its time
        with _alone(folder):
            return linking.compiled(self.function, folder, args)

    @cached_property
    def linked(self) -> Any:
        """What other kernels call."""
        from windrow.kernels import linking  # noqa: PLC0415  (loads numba)

        return linking.linked(self.function, self.is_lean)


@contextmanager
def in_python(*, really: bool = True) -> Iterator[None]:
    """Within the body kernels that are not loaded yet run as they are written."""
    before = Kernel.is_compiling
    Kernel.is_compiling = before and not really
    try:
        yield
    finally:
        Kernel.is_compiling = before


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """One process compiles at a time: those that wait find in the folder what they need."""
    if not folder:
        yield
        return
    with held(Path(folder) / "compiling"):
        yield


def kernel(function: F) -> F:
    """Compile on first call, without the GIL, with the result cached for later processes."""
    return cast(F, Kernel(function))


def lean(function: F) -> F:
    """As `kernel`, for one that neither makes arrays nor is handed any by what it calls: it only borrows them.

    So it need not count references to them, which took as long as the rest of a short kernel.
    """
    return cast(F, Kernel(function, is_lean=True))
