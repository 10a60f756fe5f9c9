"""Opens queues by name."""

import math
import os
import shutil
from collections.abc import Mapping
from typing import Any

from windrow.app.settings import NAME, SITE_KEYS, find_settings, read_settings, site_fields
from windrow.errors import InputError, NothingBegun, UserError, unknown_name
from windrow.model.duration import parse_duration
from windrow.model.resources import GPUS
from windrow.model.size import parse_size
from windrow.queues.port import Queue, QueueError

KINDS = ("local", "slurm", "pbs")

_LOCAL_KEYS = {
    **{"nodes": int, "cores": int, "memory": str, "gpus": int, "disk": str, "resources": dict},
    **{"policy": str, "walltime": str},
}
_WORDS: Mapping[type, str] = {int: "a whole number", str: "text in quotes", dict: "a table such as {licence = 2}"}


def open_queue(name: str, shell: Mapping[str, str] | None = None) -> Queue:
    """The queue that users call so: a kind, a table of `windrow.toml` (see app/settings.py), or a partition of Slurm.

    `shell` are the settings of the shell in which a run was started, instead of those of this one.
    """
    file = find_settings()
    tables = read_settings(file)
    table = dict(tables.get(name, {}))
    kind = table.pop("kind", name)
    if kind not in KINDS and name not in tables and shutil.which("sbatch") is not None:
        return _partition(name, tables, shell)
    if kind not in KINDS and name not in tables:
        raise unknown_name("queue", name, dict.fromkeys([*KINDS, *tables]))
    try:
        if kind not in KINDS:
            raise unknown_name("queue", str(kind), KINDS)
        site = site_fields(name, tables)
        table = {key: value for key, value in table.items() if key not in SITE_KEYS}
        far: dict[str, Any] = {}
        if "host" in site:  # nothing of this machine's environment counts there
            from windrow.app.far import connection  # noqa: PLC0415

            if kind == "local":
                raise UserError('a site with a host needs queue = "slurm" or "pbs"; leave host out for this machine')
            far = {"run": connection(site["host"], site.get("setup", "")), "env": {}}
        # Each queue is loaded only where it is used: who has no Slurm need not load its codec.
        if kind == "pbs":
            from windrow.queues.pbs.queue import PbsQueue, pbs_profile  # noqa: PLC0415

            return PbsQueue(pbs_profile(table, SITE_KEYS), **far)
        label = name if name in read_settings(file, ("sites",)) else ""
        return _local(table, label) if kind == "local" else _slurm(table, shell, far)
    except UserError as error:
        if not tables.get(name):
            raise
        what = "sites" if name in read_settings(file, ("sites",)) else "queues"
        raise InputError(file or NAME, f"[{what}.{name}] {error}") from None


def _partition(name: str, tables: Mapping[str, Mapping[str, Any]], shell: Mapping[str, str] | None) -> Queue:
    """The partition of this name, with what [queues.slurm] says. Of a run that has started (`shell`) it is known."""
    table = {key: value for key, value in tables.get("slurm", {}).items() if key not in (*SITE_KEYS, "kind")}
    unknown = unknown_name("queue", name, dict.fromkeys([*KINDS, *tables]))
    try:
        queue = _slurm(table | {"partition": name}, shell)
        if shell is None:
            queue.limits()
    except UserError as error:
        raise UserError(f"{unknown}; nor is it a partition of Slurm: {error}") from None
    except QueueError:  # there is none, or it does not answer; `windrow forecast --on slurm` says why
        raise UserError(f"{unknown}; if it is a partition: Slurm does not answer here") from None
    return queue


def fields_of(name: str) -> dict[str, Any]:
    """What `windrow.toml` says of the site of this name, as fields of a `Site`."""
    return site_fields(name, read_settings(find_settings()))


def no_answer(name: str, error: QueueError) -> NothingBegun:
    """The error for a queue that does not answer before anything has started."""
    hint = "is this a machine of that cluster, and is its batch system up? --on local needs none"
    return NothingBegun(f"the queue {name} does not answer; {hint} ({error})")


def _local(table: Mapping[str, Any], label: str) -> Queue:
    from windrow.queues.local.queue import LocalQueue  # noqa: PLC0415

    for key, value in table.items():
        if key not in _LOCAL_KEYS:
            raise unknown_name("key", key, [*_LOCAL_KEYS, *SITE_KEYS])
        if not isinstance(value, _LOCAL_KEYS[key]) or isinstance(value, bool):
            raise UserError(f"{key} must be {_WORDS[_LOCAL_KEYS[key]]}, not {value!r}")
    memory, disk, walltime = (table.get(key) for key in ("memory", "disk", "walltime"))
    walltime_s = None if walltime is None else math.ceil(parse_duration(walltime))
    if walltime_s == 0:
        raise UserError("walltime must be above 0; leave it out for no limit")
    return LocalQueue(
        nodes=table.get("nodes"),
        cores=table.get("cores"),
        memory_bytes=None if memory is None else parse_size(memory),
        disk_bytes=None if disk is None else parse_size(disk),
        counts={**table.get("resources", {}), **({GPUS: table[GPUS]} if GPUS in table else {})},
        policy=table.get("policy"),
        max_walltime_s=walltime_s,
        label=label,
    )


def _slurm(table: Mapping[str, Any], shell: Mapping[str, str] | None, far: Mapping[str, Any] | None = None) -> Queue:
    from windrow.queues.slurm.profile import VARIABLES, slurm_profile  # noqa: PLC0415
    from windrow.queues.slurm.queue import SlurmQueue  # noqa: PLC0415

    if far:
        extra = (
            ["--export=NONE", *table.get("extra", ())] if isinstance(table.get("extra", []), list) else table["extra"]
        )
        return SlurmQueue(slurm_profile({**table, "extra": extra}, SITE_KEYS), **far)
    if shell is None:
        return SlurmQueue(slurm_profile(table, SITE_KEYS))
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES.values()}
    return SlurmQueue(slurm_profile(table, SITE_KEYS), env={**others, **shell})
