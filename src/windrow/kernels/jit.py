"""The one decorator of every kernel.

Rule 1: numba is loaded, and a kernel compiled, at its first call from Python, never by an import.
If there is little to do, kernels can be called as they are written (`in_python`), with the same
answers.
Rule 2: a kernel that is called by another one is linked into it, not compiled for itself
(`linking`); what is called from Python is compiled as a whole, once, with all that it calls.
Rule 3: compiled code is kept in a per-user folder named after a digest of all kernels. Numba's own
cache notices a change in the file of a kernel, but not in that of another kernel that it calls. So
any change compiles again, nothing stale is ever loaded, and a read-only installation needs no
special care. Kernels of another package may call ours, but not the other way: it has a folder of
its own, named after its kernels and ours, and a change of its kernels compiles none of ours.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, cast

from windrow.files import held
from windrow.places import NoHome, user_folder

logger = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


OURS = __name__.partition(".")[0]


@cache
def cache_folder(package: str = OURS) -> str:
    """Folder for the compiled kernels of this package; `WINDROW_CACHE` overrides where it is put.
    Empty if no folder can be made."""
    digest = hashlib.sha256()
    for folder in _folders(package):
        for source in sorted(folder.rglob("*.py")):
            digest.update(source.read_bytes())
    try:
        base = Path(os.environ.get("WINDROW_CACHE") or user_folder("cache"))
        folder = base / "kernels" / digest.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
        return ""
    except (OSError, NoHome):
        return ""


def _folders(package: str) -> list[Path]:
    """What its kernels may consist of: those beside this module, and its own."""
    found = [Path(__file__).parent]
    source = getattr(sys.modules[package], "__file__", None)
    if package != OURS and source is not None:
        found.append(Path(source).parent / "kernels")
    return found


def is_compiled(*kernels: str, package: str = OURS) -> bool:
    """Whether an earlier process has left these kernels (`advance.advance`) of a package compiled
    in the cache."""
    folder = cache_folder(package)
    return bool(folder) and all(any(Path(folder).rglob(f"{name}-*.nbc")) for name in kernels)


def is_loaded() -> bool:
    """Whether this process has loaded numba already, so that calling a kernel costs nothing more
    than the call."""
    return "numba" in sys.modules


def load() -> None:
    """Load numba: from now on kernels are compiled, however little there is to do."""
    from windrow.kernels import linking  # noqa: F401, PLC0415  (loads numba)


# What people would call a kernel, and seconds on a usual machine; what compiles within two seconds
# is not mentioned.
COMPILED = {
    "advance.advance": ("the simulator", 8),
    "trial.go_on": ("the simulation of whole runs", 8),
    "estimate.estimate": ("the forecaster", 3),
    "estimate.run_times": ("the estimate of run times", 3),
    "play.rollout": ("the look-ahead", 8),
}


def _tell(kernel: str) -> None:
    """Say that this kernel (`advance.advance`) is to be compiled, and about how long that takes.

    That is logged. A program that set up no logging has it on stderr, once: not from its workers,
    of which the first compiles for all.
    """
    if kernel not in COMPILED:
        logger.debug("compiling %s", kernel)
        return
    what, seconds = COMPILED[kernel]
    words = f"compiling {what} (once per version, about {seconds} s) ..."
    if logger.hasHandlers():
        logger.info(words)
    elif _is_first_process():
        print(f"windrow: {words}", file=sys.stderr, flush=True)


def _is_first_process() -> bool:
    from multiprocessing import parent_process  # noqa: PLC0415  (few programs have workers)

    return parent_process() is None


SMALL = 60
SMALL_WHEN_COLD = 300
"""Tasks and jobs, in all, up to which a look ahead in Python takes less time than to load, or to
compile, kernels."""


def is_small(size: int) -> bool:
    """Whether kernels need not be loaded for this many tasks and jobs."""
    return not is_loaded() and size <= (SMALL_WHEN_COLD if _is_cold() else SMALL)


@cache
def _is_cold() -> bool:
    return not is_compiled("play.rollout")


class Kernel:
    """A function to be compiled when it is first called.

    To call it is to call what its slot holds, without a frame of Python between: once compiled, the
    compiled function.
    """

    __slots__ = ("__call__", "__dict__")
    __call__: Callable[..., Any]
    is_compiling: ClassVar[bool] = True

    def __init__(self, function: Callable[..., Any], *, is_lean: bool = False) -> None:
        self.function = function
        self.is_lean = is_lean
        self.package = function.__module__.partition(".")[0]
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
        compiled = _compiler().compiled
        folder = cache_folder(self.package)
        if is_compiled(self.name, package=self.package):
            return compiled(self.function, folder)
        _tell(self.name)
        with _alone(folder):
            return compiled(self.function, folder, args)

    @cached_property
    def linked(self) -> Any:
        """What other kernels call."""
        return _compiler().linked(self.function, self.is_lean)


class _Compiler(Protocol):
    """How kernels are compiled."""

    def compiled(
        self, function: Callable[..., Any], folder: str, args: tuple[Any, ...] = ()
    ) -> Callable[..., Any]:
        """As Python calls it."""

    def linked(self, function: Callable[..., Any], is_lean: bool) -> Any:
        """As other kernels call it."""


@cache
def _compiler() -> _Compiler:
    """Loads numba."""
    try:
        return cast(_Compiler, import_module("windrow.kernels.linking"))
    except (ImportError, AttributeError):  # numba's inner parts are others than we know
        return cast(_Compiler, import_module("windrow.kernels.njit"))


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
    """As `kernel`, for one that neither makes arrays nor is handed any by what it calls: it only
    borrows them.

    So it need not count references to them, which took as long as the rest of a short kernel.
    """
    return cast(F, Kernel(function, is_lean=True))
