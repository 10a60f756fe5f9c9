"""Kernels compiled as numba does it by itself: one by one, each optimised again in those that call
it.

It takes about three times as long as `linking` does, and gives the same code. This module loads
numba; `jit` loads it when a kernel is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
from numba.core import config
from numba.extending import typeof_impl

from windrow.kernels.jit import Kernel

RULES: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""What all kernels are compiled with."""


def compiled(
    function: Callable[..., Any], folder: str, args: tuple[Any, ...] = (), **more: Any
) -> Callable[..., Any]:
    """The function as Python calls it, kept in that folder unless the name is empty; compiled now
    for such `args`."""
    # The cache folder is a process-wide setting of numba, which reads it while decorating: set it
    # for just that long.
    before: str = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = folder or before  # type: ignore[attr-defined]
    try:
        run: Any = cast(Any, numba.njit)(cache=bool(folder), **more, **RULES)(function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    if args and not config.DISABLE_JIT:  # type: ignore[attr-defined]
        run.compile(tuple(map(numba.typeof, args)))
    return cast(Callable[..., Any], run)


def linked(function: Callable[..., Any], is_lean: bool) -> Any:
    """The function as other kernels call it; numba finds out for itself what is lean."""
    del is_lean
    return cast(Any, numba.njit)(**RULES)(function)


@typeof_impl.register(Kernel)
def _type_of(value: Kernel, context: Any) -> Any:
    """A kernel that is met in the code of another one."""
    return typeof_impl(value.linked, context)
