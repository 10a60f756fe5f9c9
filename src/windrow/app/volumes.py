"""Volumes of a run, before it starts: what its user should know of them, and what cannot work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windrow.errors import UserError
from windrow.forecast.runtimes import FilledTime, TimeSource
from windrow.model.size import format_size
from windrow.model.wording import count, listed
from windrow.storage.staging import Rates
from windrow.storage.volumes import VolumeUse, node_bytes, volumes_used

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from windrow.app.execute import Prepared
    from windrow.model.runnable import Runnable
    from windrow.model.volume import VolumeMount

RATES = Rates(home=100e6, disk=200e6)  # how fast they are filled, until it is learned


def told_volumes(used: Sequence[VolumeUse], where: str = "") -> list[str]:
    """A line for each name of a volume; `where` they would be."""
    lines = []
    for use in used:
        size = format_size(use.size_bytes)
        by = f"mounted by {count(use.tasks, 'task')}"
        if use.source:
            what = f"{size} from {use.source}, read-only"
        else:
            what = f"{use.volumes:,} x {size} of scratch"
        lines.append(f"volume {use.name}: {what}, {by}{f', on {where}' if where else ''}")
    return lines


def planned_volumes(
    mounts: Mapping[int, tuple[VolumeMount, ...]], jobs: Mapping[int, Collection[int]]
) -> list[tuple[VolumeUse, list[int]]]:
    """The volumes that tasks mount, each with the jobs that have these tasks."""
    found = []
    for use in volumes_used(mounts.values()):
        tasks = {task for task, ones in mounts.items() if any(one.base == use.name for one in ones)}
        found.append((use, [job for job, members in jobs.items() if not tasks.isdisjoint(members)]))
    return found


def told_plan(volumes: Iterable[tuple[VolumeUse, list[int]]]) -> Iterator[str]:
    """The same in lines."""
    for use, jobs in volumes:
        where = (
            f"nodes of {'job' if len(jobs) == 1 else 'jobs'} "
            f"{listed(list(map(str, jobs)), 8)} if scratch is set"
        )
        yield from told_volumes([use], f"{where}, otherwise on the shared file system")


def notes_on_volumes(prepared: Prepared) -> list[str]:
    """What the user should know of volumes."""
    if prepared.order.scratch:
        where = f"{prepared.order.scratch} of each node"
    else:
        where = "the shared file system"
    return told_volumes(volumes_used(step.mounts for step in prepared.runnable.steps), where)


def on_disks(runnable: Runnable, times: Sequence[FilledTime] = ()) -> Runnable:
    """The same if volumes are on the disks of nodes: tasks need room there, and time to fill it,
    unless learned."""
    work = runnable.workflow
    needed = np.array([float(node_bytes(step.mounts)) for step in runnable.steps])
    known = np.array([time.source is TimeSource.LEARNED for time in times] or [False] * len(needed))
    runtime_s = work.runtime_s + np.where(known, 0.0, RATES.moving_s(0 * needed, needed))
    return replace(
        runnable, workflow=work.changed(disk_bytes=work.disk_bytes + needed, runtime_s=runtime_s)
    )


def _refuse_mounts(task: str) -> None:
    """UserError if this machine does not let users mount volumes at paths."""
    from windrow.agent.data.mounts import can_mount  # noqa: PLC0415  (few runs have volumes)

    if not can_mount():
        problem = (
            f"{task} mounts a volume at a path, but this machine does not let users mount anything"
        )
        raise UserError(
            f"{problem}; write mounts as a list of volumes, and use $WINDROW_VOLUME_NAME in "
            "commands"
        )


def refuse_volumes(prepared: Prepared) -> None:
    """UserError if tasks could not mount their volumes."""
    steps = prepared.runnable.steps
    ids = prepared.runnable.workflow.ids
    at_paths = [
        ids[task]
        for task, step in enumerate(steps)
        if any(mount.path.startswith("/") for mount in step.mounts)
    ]
    if at_paths and any(reached.queue.name == "local" for reached in prepared.sites):
        _refuse_mounts(at_paths[0])
    urls = [use.name for use in volumes_used(step.mounts for step in steps) if "://" in use.source]
    if urls and not prepared.order.scratch:
        fix = (
            "set scratch under [data] in windrow.toml, or --scratch, to a disk of the nodes "
            "with room for it"
        )
        raise UserError(f"the files of volume {urls[0]} come from a URL; {fix}")
