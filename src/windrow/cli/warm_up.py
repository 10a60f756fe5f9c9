"""Compiles what decisions calculate with, before the clock of a run ticks.

The first decision on a machine compiles kernels, which takes half a minute; inside a run that would look like a hang
and count as its time. So one small decision is made here, on an empty queue of two nodes, by the code of real ones.
"""

from __future__ import annotations

from windrow.cli import terminal

_KERNELS = ("advance", "estimate", "listing", "rollout")


def is_cold() -> bool:
    """Whether something has to be compiled first."""
    from windrow.kernels.jit import is_compiled

    return not all(is_compiled(name) for name in _KERNELS)


def load(what: str) -> None:
    """Have everything compiled or loaded, and say so where that takes its time; `what` is what it is for."""
    from windrow.sim import Cluster

    cold = is_cold()
    if cold:
        terminal.say(f"compiling the {what}, once; this can take a minute ...")
    with terminal.waiting("compiling"):
        Cluster(nodes=1).estimate(1, 60)
        if cold:
            _decide()


def _decide() -> None:
    """What `windrow run` does first, on a queue that is made up."""
    from dataclasses import replace

    import numpy as np

    from windrow.forecast.ahead import Ahead
    from windrow.forecast.twin import Twin
    from windrow.manager.core import Core
    from windrow.manager.terms import Terms
    from windrow.model import Task, Workflow
    from windrow.queues.port import Snapshot
    from windrow.strategies import Foresight, Work, whole_seconds

    class Empty:
        def snapshot(self) -> Snapshot:
            return Snapshot(0.0, 2, ())

    workflow = Workflow.from_tasks("two", [Task("a", 60.0), Task("b", 60.0, parents=("a",))])
    terms = Terms(cluster_nodes=2)
    core = Core(Work(workflow, whole_seconds(workflow), terms.shape, terms.cluster_nodes), terms)
    twin = Twin(Empty(), lambda: 0.0)
    view = core.view(0, twin.waits_s)
    futures = Ahead(twin).futures(view, {}, np.zeros(len(workflow), dtype=bool), terms.requests())
    Foresight().decide(replace(view, futures=futures))
