"""From an attempt to what a node is told to execute: command, folder, environment, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from windrow.agent.order import Order, absolute, task_env
from windrow.pool.core import PoolAttempt
from windrow.pool.orphans import VARIABLE
from windrow.pool.workflow_state import Guest

_PATIENCE_S = 5.0  # how long a file written on another node may take to show up


def order_for(
    key: int,
    attempt: PoolAttempt,
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
    need, task = guest.need(attempt.task), workflow.task(attempt.task)
    cores = node_cores if need.nodes else need.cores
    hosts = nodes if need.nodes else ()
    env = task_env(dict(step.env), run=run, task=task.id, attempt=attempt.attempt, cores=cores, hosts=hosts)
    return Order(
        task=key,
        attempt=attempt.attempt,
        command=step.command,
        workdir=step.workdir,
        env={**env, VARIABLE: pool_id},
        out=str(out / f"{attempt.task}.{attempt.attempt}"),
        inputs=absolute(step.workdir, task.inputs),
        outputs=absolute(step.workdir, task.outputs),
        patience_s=_PATIENCE_S if is_cluster else 0.0,
        elsewhere=step.elsewhere,
        shared=absolute(step.workdir, (name for name in task.outputs if name in guest.shared)),
    )
