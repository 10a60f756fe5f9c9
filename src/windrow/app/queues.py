"""Opens queues by name."""

import math
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from windrow.app.settings import (
    KINDS,
    LocalTable,
    PbsTable,
    Settings,
    SiteTable,
    SlurmTable,
    settings_of,
)
from windrow.errors import InputError, NothingBegun, UserError, unknown_name
from windrow.model.resources import GPUS
from windrow.queues.port import Queue, QueueError

DENIED = re.compile("permission denied|not permitted|not authorized", re.I)


def open_queue(name: str, shell: Mapping[str, str] | None = None) -> Queue:
    """The queue that users call so: a kind, a table of `windrow.toml` (see app/settings.py), or a
    partition of Slurm.

    `shell` are the settings of the shell in which a run was started, instead of those of this one.
    """
    settings = settings_of()
    table = settings.tables.get(name)
    if table is None and name in KINDS:
        table = KINDS[name](kind=name)
    if table is None:
        from windrow.extensions import QUEUES, loaded  # noqa: PLC0415  (few runs use one)

        make = loaded(QUEUES, name)
        if make is not None:
            theirs: Queue = make()
            return theirs
        if shutil.which("sbatch", path=(shell or {}).get("PATH")):
            return _partition(name, settings, shell)
        raise unknown_name("queue", name, dict.fromkeys([*KINDS, *settings.tables]))
    try:
        return _opened(table, shell, name if name in settings.sites else "")
    except UserError as error:
        if name not in settings.tables or settings.file is None:
            raise
        raise InputError(settings.file, f"{settings.place_in_file(name)} {error}") from None


def _opened(table: SiteTable, shell: Mapping[str, str] | None, label: str) -> Queue:
    """The queue of a table. Each is loaded only if it is used: who has no Slurm need not load
    its codec."""
    far: dict[str, Any] = {}
    if table.host:  # nothing of this machine's environment counts there
        from windrow.app.far import connection  # noqa: PLC0415

        far = {"run": connection(table.host, table.setup), "env": {}}
    match table:
        case LocalTable():
            return _local(table, label)
        case SlurmTable():
            return _slurm(table, shell, far)
        case PbsTable():
            from windrow.queues.pbs.queue import PbsProfile, PbsQueue  # noqa: PLC0415

            return PbsQueue(PbsProfile(table.queue, table.account, table.project), **far)
        case _:
            raise AssertionError(table)


def _partition(name: str, settings: Settings, shell: Mapping[str, str] | None) -> Queue:
    """The partition of this name, with what [queues.slurm] says. Of a run that has started
    (`shell`) it is known."""
    unknown = unknown_name("queue", name, dict.fromkeys([*KINDS, *settings.tables]))
    said = settings.tables.get("slurm")
    if not isinstance(said, SlurmTable):
        said = SlurmTable()
    try:
        queue = _slurm(structs.replace(said, partition=name), shell)
        if shell is None:
            queue.limits()
    except UserError as error:
        raise UserError(f"{unknown}; nor is it a partition of Slurm: {error}") from None
    except (
        QueueError
    ):  # there is none, or it does not answer; `windrow forecast --on slurm` says why
        raise UserError(f"{unknown}; if it is a partition: Slurm does not answer here") from None
    return queue


def no_answer(name: str, error: QueueError) -> NothingBegun:
    """The error for a queue that does not answer, or not to this user, before anything has
    started."""
    if DENIED.search(str(error)):
        fix = (
            "ask the site whether you may list nodes and jobs (on Slurm: PrivateData), or use "
            "another queue (--on)"
        )
        return NothingBegun(
            f"the queue {name} does not tell you what Windrow needs to know: {error}; {fix}"
        )
    hint = "is this a machine of that cluster, and is its batch system up? --on local needs none"
    return NothingBegun(f"the queue {name} does not answer; {hint} ({error})")


def _local(table: LocalTable, label: str) -> Queue:
    from windrow.queues.local.queue import LocalQueue  # noqa: PLC0415

    counts = dict(table.resources)
    if table.gpus is not None:
        counts[GPUS] = table.gpus
    return LocalQueue(
        nodes=table.nodes,
        cores=table.cores,
        memory_bytes=None if table.memory is None else int(table.memory),
        disk_bytes=None if table.disk is None else int(table.disk),
        counts=counts,
        policy=table.policy,
        max_walltime_s=None if table.walltime is None else math.ceil(table.walltime),
        label=label,
    )


def _slurm(
    table: SlurmTable, shell: Mapping[str, str] | None, far: Mapping[str, Any] | None = None
) -> Queue:
    from windrow.queues import command  # noqa: PLC0415
    from windrow.queues.slurm.answers import Shared, runtime_folder  # noqa: PLC0415
    from windrow.queues.slurm.profile import VARIABLES, SlurmProfile  # noqa: PLC0415
    from windrow.queues.slurm.queue import SlurmQueue  # noqa: PLC0415

    profile = SlurmProfile(
        partition=table.partition,
        account=table.account,
        qos=table.qos,
        constraint=table.constraint,
        cluster=table.cluster,
        extra=("--export=NONE", *table.extra) if far else table.extra,
        share=table.share,
        memory=table.memory,
    )
    if far:
        return SlurmQueue(profile, **far)
    folder = runtime_folder()
    run = command.run if folder is None else Shared(folder)
    if shell is None:
        return SlurmQueue(profile, run=run)
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES.values()}
    kept = {
        name: value for name, value in shell.items() if name != "SLURM_CONF" or Path(value).exists()
    }
    return SlurmQueue(profile, env={**others, **kept}, run=run)
