"""Orders: what a node is told to execute. It answers with attempts (`model.attempt`).

The agent's own node takes them as they are; to other nodes they travel as JSON lines.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from windrow.agent.job_file import TaskSpec, tuples
from windrow.model.attempt import Attempt
from windrow.model.nodes import Need
from windrow.model.resources import GPUS, NodeShape, gpu_type
from windrow.model.volume import Extract, VolumeMount

HOME = "home"
NODES = "nodes"
HIT = "hit"
COMMIT = "commit"
"""How a file came to the node of an attempt: from the shared file system or its URL, from other
nodes, or it was there already. Or it was made there, and copied to the shared file system."""
WRONG = "wrong from "
"""Before the name of a node, or of the own disk: bytes from there were not those of the home; they
came again."""


class Committed(NamedTuple):
    """What came of bringing a file from its node to its place. `why` it is not there; `errno` is
    that of the error."""

    path: str
    why: str = ""
    errno: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """Execute one attempt of a task.

    `env` is added to the node's own environment. `out` is the file for what it prints. `inputs` and
    `outputs` are absolute paths; each may take up to `patience_s` to show up. `elsewhere` says
    where in the command folders for its outputs may be put in (see `model.Step`). `shared` are
    those outputs in which other tasks write, too. `gpus` are those of the node that it may see, by
    their places there; None: it sees what the node sees. `commit`: the file by which `holder`, its
    job, may bring the outputs into place, if other jobs run the task as well. `has_checkpoints`,
    for which `ask` is the signal that asks; 0: none. `local`: those of its outputs that may stay on
    a node that has a disk of its own; None: it runs on the shared files. `temporary`: outputs that
    are deleted when nothing needs them any more. `mounts` and `extracts` as in a `model.Step`.
    `hosts`: the nodes that it has, or has a part of, `cores` on each; `is_whole`: it has them to
    itself. Without hosts nothing is known. `is_held`: to its `cores`, and to its `memory_bytes`, if
    it states some (`holding`).
    """

    task: int
    attempt: int
    command: tuple[str, ...]
    workdir: str
    env: dict[str, str]
    out: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    patience_s: float = 0.0
    elsewhere: tuple[tuple[int, int, int], ...] = ()
    shared: tuple[str, ...] = ()
    gpus: tuple[int, ...] | None = None
    commit: str = ""
    holder: int = 0
    has_checkpoints: bool = False
    ask: int = 0
    mounts: tuple[VolumeMount, ...] = ()
    extracts: tuple[Extract, ...] = ()
    local: tuple[str, ...] | None = None
    temporary: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    cores: int = 1
    is_whole: bool = False
    memory_bytes: int = 0
    is_held: bool = False
    worker: tuple[str, ...] = ()


def to_line(value: Order | Attempt) -> bytes:
    """The value as one line of JSON."""
    if isinstance(value, Attempt):
        told = value.told()
    else:
        told = {f.name: getattr(value, f.name) for f in fields(value)}
    return json.dumps(told).encode() + b"\n"


def order_from(record: dict[str, Any]) -> Order:
    """The order in this record."""
    return Order(**{name: tuples(value) for name, value in record.items()})


def task_env(
    given: Mapping[str, str],
    *,
    run: str,
    task: str,
    attempt: int,
    need: Need,
    hosts: Sequence[str] = (),
) -> dict[str, str]:
    """What is added to a node's environment for a task that has this. `hosts`: its nodes, if it
    has whole ones.

    A task of less than a node may start as many threads as it has cores, unless its user said
    otherwise.
    """
    env = dict(given)
    cores = need.cores
    if hosts:
        env["WINDROW_NODES"] = ",".join(hosts)
    elif "OMP_NUM_THREADS" not in os.environ:
        env.setdefault("OMP_NUM_THREADS", str(cores))
    own = {
        "WINDROW_RUN": run,
        "WINDROW_TASK": task,
        "WINDROW_ATTEMPT": str(attempt),
        "WINDROW_CORES": str(cores),
    }
    sizes = {"WINDROW_MEMORY_BYTES": need.memory_bytes, "WINDROW_DISK_BYTES": need.disk_bytes}
    counts = {
        f"WINDROW_RESOURCE_{name.upper()}" if name != GPUS else "WINDROW_GPUS": n
        for name, n in need.counts
        if not gpu_type(name)
    }
    return (
        env
        | own
        | {
            name: str(amount)
            for name, amount in (sizes | counts).items()
            if amount or name in counts
        }
    )


def order_for(
    spec: TaskSpec,
    attempt: int,
    *,
    run: str,
    out: Path,
    hosts: Sequence[str],
    node: NodeShape,
    patience_s: float,
    key: int | None = None,
    gpus: tuple[int, ...] | None = None,
    commit: str = "",
    holder: int = 0,
    is_local: bool = False,
    is_held: bool = False,
) -> Order:
    """What a node is told to execute for an attempt on these nodes. It goes by the task's number,
    or by a key.

    Of whole nodes it has all cores, and all of what is counted there; and it sees whatever GPUs
    there are.
    """
    need = spec.need
    if spec.nodes:
        whole = tuple(hosts)
    else:
        whole = ()
    if whole:
        need = need._replace(cores=node.cores, counts=node.counts)
    elif gpus is not None:
        need = need._replace(counts=tuple(sorted({GPUS: 0, **dict(need.counts)}.items())))
    return Order(
        task=spec.task if key is None else key,
        attempt=attempt,
        command=spec.command,
        workdir=spec.workdir,
        env=task_env(spec.env, run=run, task=spec.id, attempt=attempt, need=need, hosts=whole),
        out=str(out),
        inputs=absolute(spec.workdir, spec.inputs),
        outputs=absolute(spec.workdir, spec.outputs),
        patience_s=patience_s,
        elsewhere=spec.elsewhere,
        shared=absolute(spec.workdir, spec.shared),
        gpus=gpus,
        commit=commit,
        holder=holder,
        has_checkpoints=(kept := spec.checkpoint) is not None,
        ask=signal.Signals[f"SIG{kept.signal}"] if kept is not None and kept.signal else 0,
        mounts=spec.mounts,
        extracts=spec.extracts,
        temporary=absolute(spec.workdir, spec.temporary),
        local=absolute(spec.workdir, spec.local) if is_local else None,
        hosts=tuple(hosts),
        cores=need.cores,
        is_whole=bool(whole),
        memory_bytes=0 if whole else spec.memory_bytes,
        is_held=is_held and not whole,
        worker=spec.worker,
    )


def absolute(folder: str, paths: Iterable[str]) -> tuple[str, ...]:
    """These files of a task, seen from anywhere. `folder` is where the task runs."""
    return tuple(str(Path(folder, path)) for path in paths)
