"""A batch-scheduled cluster in virtual time. `Cluster` and `simulate` need kernels: loaded when
first asked for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.sim.cluster import Cluster
    from windrow.sim.replay import simulate

_LAZY = {"Cluster": "cluster", "simulate": "replay"}

__all__ = ["Cluster", "simulate"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"windrow.sim.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
