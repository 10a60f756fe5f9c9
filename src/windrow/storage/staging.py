"""What tasks move, and how long that takes: over the link to home, or from and to the disk of their
node. Pure.

Law (Bent's figure 3.3): *remote*, whatever a task reads or writes crosses the link. *localised*:
files that tasks write and read stay where they were made. *cached*: batch data cross once, for
those that read them first, which wait for it; all read them from nearby. *both* is both. First
inputs and last outputs of a pipeline always cross. The link is shared: by as many tasks as run on a
level at the same time. What is fetched for all is not divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windrow.storage.roles import Role, roles

if TYPE_CHECKING:
    from windrow.model.workflow import Floats, Workflow

SCOPES = {
    "remote": (False, False),
    "localised": (True, False),
    "cached": (False, True),
    "both": (True, True),
}
"""Whether files that tasks write and read stay where they are, and whether batch data are
cached."""


class Rates(NamedTuple):
    """Bytes per second: of the link to home, and of a node's own disk."""

    home: float
    disk: float

    def moving_s(self, far_bytes: Floats, near_bytes: Floats) -> Floats:
        """How long it takes to move this much over each."""
        return far_bytes / self.home + near_bytes / self.disk


def moves(workflow: Workflow, scope: str) -> tuple[Floats, Floats, Floats, int]:
    """Bytes that each task moves over the link itself, that are fetched for it and others, that are
    near; and all."""
    is_local, is_cached = SCOPES[scope]
    found, _ = roles(workflow)
    sizes = np.array([file.size_bytes for file in workflow.files], dtype=np.float64)
    is_batch = np.array([role == Role.BATCH for role in found], dtype=bool)
    is_far = np.array([role == Role.ENDPOINT for role in found], dtype=bool)
    stays = (is_batch & is_cached) | (~is_batch & ~is_far & is_local)
    own = np.zeros(len(workflow))
    near = np.zeros(len(workflow))
    for edges in (workflow.inputs, workflow.outputs):
        np.add.at(own, edges.sources(), (sizes * ~stays)[edges.index])
        np.add.at(near, edges.sources(), (sizes * stays)[edges.index])
    cached = sizes * (is_batch & is_cached)
    return own, _fetched(workflow, cached), near, int(own.sum() + cached.sum())


def _fetched(workflow: Workflow, sizes: Floats) -> Floats:
    """Bytes that each task waits for because it is on the first level that reads them."""
    tasks = workflow.inputs.sources()
    files = workflow.inputs.index
    first = np.full(len(sizes), len(workflow))
    np.minimum.at(first, files, workflow.levels[tasks])
    fetched = np.zeros(len(workflow))
    np.add.at(fetched, tasks, sizes[files] * (workflow.levels[tasks] == first[files]))
    return fetched


def with_moves(workflow: Workflow, rates: Rates, scope: str, slots: int) -> tuple[Workflow, int]:
    """The workflow whose run times have the time for its data in them, and the bytes that cross the
    link.

    `slots`: the most tasks that run at the same time.
    """
    own, fetched, near, home_bytes = moves(workflow, scope)
    sharing = np.minimum(np.bincount(workflow.levels), slots)[workflow.levels]
    more_s = rates.moving_s(own * sharing + fetched, near)
    return workflow.with_times(workflow.runtime_s + more_s), home_bytes
