"""Volumes as the tasks of a workflow use them: what they take, and on which nodes there is room for
them. Pure.

A scratch volume that several tasks mount takes twice its size while it lives: what was left in it,
and the copy that the next task works on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from windrow.model.volume import FOLDER, VolumeMount


class VolumeUse(NamedTuple):
    """Volumes of one name: how many, how large each, by how many tasks they are mounted, and where
    files come from."""

    name: str
    volumes: int
    size_bytes: int
    tasks: int
    source: str = ""


def volumes_used(mounts: Iterable[Sequence[VolumeMount]]) -> list[VolumeUse]:
    """What these tasks mount, volume by volume, in order."""
    seen: dict[str, list[VolumeMount]] = {}
    for mount in (mount for task in mounts for mount in task):
        seen.setdefault(mount.base, []).append(mount)
    found = []
    for name, uses in seen.items():
        volumes = len({use.volume for use in uses})
        source = ""
        if uses[0].is_cache:
            source = uses[0].before
        found.append(VolumeUse(name, volumes, uses[0].size_bytes, len(uses), source))
    return found


def node_bytes(mounts: Sequence[VolumeMount]) -> int:
    """What the volumes of one task take on its node while it runs."""
    total = 0
    for mount in mounts:
        total += mount.size_bytes
        if mount.before and not mount.is_cache:
            total += mount.size_bytes
    return total


def is_backup(name: str, local: Container[str], due: Container[str]) -> bool:
    """Whether all that came after this in a scratch volume is on nodes alone, and read: not among
    what is `due`."""
    volume, _, place = name.rpartition(".")
    while f"/{FOLDER}/" in f"/{volume}" and place.isdigit():
        place = str(int(place) + 1)
        if (later := f"{volume}.{place}") not in local or later not in due:
            return later in local
    return False
