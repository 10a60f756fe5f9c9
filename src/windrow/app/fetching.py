"""How long the nodes of a job take to fetch what its tasks read, if they have disks of their
own.

A node fetches, at worst, all that several tasks read and none makes, and what one task alone reads.
The rate is that of earlier runs of the workflow, and is assumed before there are any. It is time
that a job needs beside its tasks.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windrow.agent.outputs import size_of
from windrow.errors import WindrowError
from windrow.forecast.runtimes import FETCHING, RunTimes, TimeSource
from windrow.model.duration import format_duration
from windrow.model.size import format_size

if TYPE_CHECKING:
    from windrow.model.runnable import Runnable

ASSUMED_S_PER_GB = 10.0
_GB = 1e9


class Fetching(NamedTuple):
    """What a node fetches at worst, how long that should take, and whether earlier runs tell."""

    size_bytes: int
    seconds: int
    is_learned: bool

    def words(self) -> list[str]:
        """For people; nothing if it takes no time."""
        if self.seconds < 1:
            return []
        rate = format_size(round(self.size_bytes / self.seconds))
        if self.is_learned:
            how = "as in earlier runs"
        else:
            how = "assumed, until a run has shown it"
        what = f"a node fetches up to {format_size(self.size_bytes)} that its tasks read"
        return [f"{what}: requests have {format_duration(self.seconds)} for it ({rate}/s, {how})"]


def fetching(runnable: Runnable, risk: float) -> Fetching:
    """For the jobs of this workflow on nodes with disks of their own."""
    size_bytes = _most_bytes(runnable)
    try:
        rate = RunTimes().expect(runnable.workflow.name, FETCHING, risk, guess_s=ASSUMED_S_PER_GB)
        s_per_gb = rate.runtime_s
        is_learned = rate.source is TimeSource.LEARNED
    except WindrowError:  # a history that cannot be used was told of before
        s_per_gb = ASSUMED_S_PER_GB
        is_learned = False
    seconds = size_bytes / _GB * s_per_gb
    return Fetching(size_bytes, math.ceil(seconds) if seconds >= 1 else 0, is_learned)


def _most_bytes(runnable: Runnable) -> int:
    """What several tasks read and none makes, and the most that one task reads alone."""
    workflow = runnable.workflow
    steps = runnable.steps
    times_read = np.bincount(workflow.inputs.index, minlength=len(workflow.files))
    times_read[workflow.outputs.index] = 0
    size = 0
    alone = [0] * len(workflow)
    for f, reader in {f: task for task, f in workflow.inputs.pairs()}.items():
        if times_read[f]:
            file = workflow.files[f]
            found = file.size_bytes or size_of(str(Path(steps[reader].workdir, file.id)))
            if times_read[f] > 1:
                size += int(found)
            else:
                alone[reader] += int(found)
    return size + max(alone, default=0)
