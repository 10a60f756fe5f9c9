"""From an attempt to what a node is told to execute: command, folder, environment, files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from windrow.agent.order import Order
from windrow.pool.core import Attempt
from windrow.pool.guest import Guest
from windrow.pool.leftovers import VARIABLE

_PATIENCE_S = 5.0  # how long a file written on another node may take to show up


def order_for(
    key: int,
    attempt: Attempt,
    guest: Guest,
    *,
    nodes: Sequence[str],
    node_cores: int,
    run: str,
    out: Path,
    pool_id: str,
    is_cluster: bool,
) -> Order:
    """The order for this attempt on these nodes. Tasks find the variables that they find in a job of `windrow run`."""
    workflow, step = guest.runnable.workflow, guest.runnable.steps[attempt.task]
    env = dict(step.env)
    need = guest.need(attempt.task)
    cores = node_cores if need.nodes else need.cores
    if need.nodes:
        env["WINDROW_NODES"] = ",".join(nodes)
    elif "OMP_NUM_THREADS" not in os.environ:
        env.setdefault("OMP_NUM_THREADS", str(cores))
    env |= {
        "WINDROW_RUN": run,
        "WINDROW_TASK": workflow.ids[attempt.task],
        "WINDROW_ATTEMPT": str(attempt.attempt),
        "WINDROW_CORES": str(cores),
        VARIABLE: pool_id,
    }
    return Order(
        task=key,
        attempt=attempt.attempt,
        command=step.command,
        workdir=step.workdir,
        env=env,
        out=str(out / f"{attempt.task}.{attempt.attempt}"),
        inputs=_paths(guest, workflow.inputs.of(attempt.task).tolist(), step.workdir),
        outputs=_paths(guest, workflow.outputs.of(attempt.task).tolist(), step.workdir),
        patience_s=_PATIENCE_S if is_cluster else 0.0,
    )


def _paths(guest: Guest, files: list[int], folder: str) -> tuple[str, ...]:
    known = guest.runnable.workflow.files
    return tuple(str(Path(folder, known[f].id)) for f in files)
