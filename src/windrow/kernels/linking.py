"""Kernels compiled by numba, each with all that it calls in one piece.

By default numba makes machine code of every function that another one calls, for its own sake, and
optimises it again in each caller: three quarters of the time that compiling took. Here what kernels
call is only translated, and linked as it is into those kernels that Python calls; these are
optimised once, as a whole. Constants in calls do not make further copies (numba would compile
`f(0)` and `f(i)` twice).

This module subclasses parts of numba that are not made for it. It is used with versions with which
it was tried; with others, and if it cannot be imported, kernels are compiled as numba does it
(`njit`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.types import unliteral

from windrow.kernels import njit

if numba.version_info.short >= (0, 69):
    raise ImportError("not tried with this version of numba")


def compiled(
    function: Callable[..., Any], folder: str, args: tuple[Any, ...] = ()
) -> Callable[..., Any]:
    """The function as Python calls it, kept in that folder unless the name is empty; compiled now
    for such `args`."""
    return njit.compiled(function, folder, args, pipeline_class=_WholeCompiler)


def linked(function: Callable[..., Any], is_lean: bool) -> Any:
    """The function as other kernels call it; if it `is_lean`, without counting who refers to
    arrays."""
    more = {"no_cpython_wrapper": True, "pipeline_class": _Linker, "_nrt": not is_lean}
    dispatcher: Any = cast(Any, numba.njit)(**more, **njit.RULES)(function)
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template([unliteral(one) for one in args], kws)
    return dispatcher


class _Whole(JITCodeLibrary):
    """The code of a kernel that Python calls, to which that of all kernels below it is linked, each
    once."""

    def add_linking_library(self, library: Any) -> None:
        """Link this, and what it would link itself."""
        if library not in self._linking_libraries:
            super().add_linking_library(library)
            if isinstance(library, _Code):
                for below in library._linking_libraries:
                    self.add_linking_library(below)


class _Code(JITCodeLibrary):
    """Code to be linked into other code: neither optimised nor made machine code of, since nothing
    else calls it."""

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


class _WholeCompiler(CompilerBase):
    """As numba's own, but into another kind of code."""

    kind: type[JITCodeLibrary] = _Whole

    def define_pipelines(self) -> list[Any]:
        """What is done, in order."""
        state = self.state
        state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


class _Linker(_WholeCompiler):
    kind = _Code
