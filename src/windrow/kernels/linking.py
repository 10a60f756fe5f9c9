"""Kernels compiled by numba, each with all that it calls in one piece.

By default numba makes machine code of every function that another one calls, for its own sake, and optimises it again
in each caller: three quarters of the time that compiling took. Here what kernels call is only translated, and linked as
it is into those kernels that Python calls; these are optimised once, as a whole. Constants in calls do not make
further copies (numba would compile `f(0)` and `f(i)` twice).

This module loads numba; `jit` loads it when a kernel is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.types import unliteral
from numba.extending import typeof_impl

from windrow.kernels.jit import Kernel

_njit: Any = numba.njit  # its type does not know all options
_RULES: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any], folder: str, args: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """The function as Python calls it, kept in that folder unless the name is empty; compiled now for such `args`."""
    # The cache folder is a process-wide setting of Numba that it reads while decorating: set it for just that long.
    before: str = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = folder or before  # type: ignore[attr-defined]
    try:
        run: Any = _njit(cache=bool(folder), pipeline_class=_Compiler, **_RULES)(function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    if args and not config.DISABLE_JIT:  # type: ignore[attr-defined]
        run.compile(tuple(map(numba.typeof, args)))
    return cast(Callable[..., Any], run)


def linked(function: Callable[..., Any], is_lean: bool) -> Any:
    """The function as other kernels call it; where it `is_lean`, without counting who refers to arrays."""
    dispatcher: Any = _njit(no_cpython_wrapper=True, pipeline_class=_Linker, _nrt=not is_lean, **_RULES)(function)
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template([unliteral(one) for one in args], kws)
    return dispatcher


@typeof_impl.register(Kernel)
def _type_of(value: Kernel, context: Any) -> Any:
    """A kernel that is met in the code of another one."""
    return typeof_impl(value.linked, context)


class _Whole(JITCodeLibrary):
    """The code of a kernel that Python calls, to which that of all kernels below it is linked, each once."""

    def add_linking_library(self, library: Any) -> None:
        """Link this, and what it would link itself."""
        if library not in self._linking_libraries:
            super().add_linking_library(library)
            if isinstance(library, _Code):
                for below in library._linking_libraries:
                    self.add_linking_library(below)


class _Code(JITCodeLibrary):
    """Code to be linked into other code: neither optimised nor made machine code of, since nothing else calls it."""

    def finalize(self) -> None:
        """It is left as it is."""
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """There is none."""
        return 0

    @property
    def codegen(self) -> Any:
        """Whom numba asks for what follows."""
        return self

    def set_env(self, _name: str, _env: Any) -> None:
        """Where Python would keep objects for the function; kernels have none."""


class _Compiler(CompilerBase):
    """As numba's own, but into another kind of code."""

    kind: type[JITCodeLibrary] = _Whole

    def define_pipelines(self) -> list[Any]:
        """What is done, in order."""
        state = self.state
        state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


class _Linker(_Compiler):
    kind = _Code
