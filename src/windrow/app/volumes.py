"""Volumes of a run, before it starts: what its user should know of them, and what cannot work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.errors import UserError
from windrow.model.size import format_size
from windrow.model.wording import count
from windrow.storage.volumes import node_bytes, volumes_used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.app.execute import Prepared
    from windrow.model.runnable import Step

NO_SCRATCH = "the shared file system"


def told_volumes(steps: Sequence[Step], where: str = "") -> list[str]:
    """A line for each name of a volume; `where` they would be."""
    lines = []
    for use in volumes_used(step.mounts for step in steps):
        size, by = format_size(use.size_bytes), f"mounted by {count(use.tasks, 'task')}"
        what = f"{size} from {use.source}, read-only" if use.source else f"{use.volumes:,} x {size} of scratch"
        lines.append(f"volume {use.name}: {what}, {by}{f', on {where}' if where else ''}")
    return lines


def notes_on_volumes(prepared: Prepared) -> list[str]:
    """What the user should know of volumes."""
    return told_volumes(prepared.runnable.steps, NO_SCRATCH)


def refuse_volumes(prepared: Prepared) -> None:
    """UserError where tasks could not mount their volumes, or a node could not hold them."""
    mounting = [(task, step) for task, step in enumerate(prepared.runnable.steps) if step.mounts]
    if not mounting:
        return
    ids, here = prepared.runnable.workflow.ids, [one for one in prepared.sites if one.queue.name == "local"]
    if here and any(mount.path.startswith("/") for _, step in mounting for mount in step.mounts):
        from windrow.agent.mounts import can_mount  # noqa: PLC0415  (few runs have volumes)

        if not can_mount():
            problem = f"{ids[mounting[0][0]]} mounts a volume at a path, but this machine lets users mount nothing"
            raise UserError(f"{problem}; write mounts as a list of volumes, and use $WINDROW_VOLUME_NAME in commands")
    for task, step in mounting:
        disks = [kind.shape.disk_bytes for reached in prepared.sites for kind in reached.site.kinds]
        most = max(float("inf") if disk is None else disk for disk in disks)
        if (needed := node_bytes(step.mounts)) > most:
            have = f"no node has more than {format_size(int(most))} of disk"
            fix = "make them smaller, or name a queue whose nodes have more (--on)"
            raise UserError(f"the volumes of {ids[task]} take {format_size(needed)}, but {have}; {fix}")
