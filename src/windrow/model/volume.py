"""Volumes: named pieces of space that tasks mount. Standard library only.

A cache volume is a read-only view of files at home. A scratch volume starts empty and belongs to
tasks of which each comes after the one before. Law: what a task leaves in a scratch volume is a
file of the workflow (a folder), made by this task and read by the next one that mounts the volume.
So it is ordered, moved, deleted, lost and made again as any file is; and an attempt works on a copy
of its own, so that one that fails changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

POLICIES = ("lru", "mru")
"""Which block a cache volume gives up first: the one used least recently, or most recently."""

COPY, PEER, SBCAST = WAYS = ("copy", "peer", "sbcast")
"""How what many tasks read comes to the nodes of a job: by each for itself, from each other, by
Slurm."""

FOLDER = ".windrow-volumes"
"""Where scratch volumes are at home, in the folder of the workflow file."""


class VolumeMount(NamedTuple):
    """Where a task finds a volume.

    `path`: absolute, where it is mounted; or the volume's name: then only a variable tells where it
    is. `volume`: its name, with a dash and what sets it apart from those of other pipelines.
    `before`: what the task before left in it, empty if there is none; of a cache volume, where
    its files are (a path or a URL). `after`: what this task leaves in it; empty for a cache volume.
    `policy`: one of `POLICIES`; of a scratch volume, when it is copied against loss.
    """

    path: str
    volume: str
    before: str
    after: str
    size_bytes: int
    policy: str = ""

    @property
    def is_cache(self) -> bool:
        """Whether it is read-only."""
        return not self.after

    @property
    def base(self) -> str:
        """Its name in the workflow."""
        return self.volume.partition("-")[0]

    @property
    def variable(self) -> str:
        """The variable by which the task finds it."""
        return f"WINDROW_VOLUME_{self.base.upper()}"


Extract = tuple[str, str, str]
"""A volume, a path in it, and the output as which that is kept."""
