"""The three workloads and the environment on which chapter 4 is measured (tables 4.4 and 4.5), in
kB and kB/s.

Corrected: the wide area has 1 MB/s and the local network 12, as the text says everywhere, not the
other way round. Private volumes of the batch-intensive workload have 200 MB in the table; V = 10,
as in the text, needs 203.3 to 203.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow_lab.storage.allocations import (
    ALLOCATIONS,
    MINIMAL,
    Environment,
    PipelineWorkload,
    at_once,
    least_storage,
    possible,
)

GB = 1_000_000
MB = 1000
WHERE = Environment(50, 250 * GB, 1.0 * MB, 12.0 * MB)
BASELINES = {
    "batch": PipelineWorkload(350, 5, 176_600 * MB, 200 * MB, 5000, 0.1),
    "batch, V as printed": PipelineWorkload(350, 5, 176_600 * MB, 203_500, 5000, 0.1),
    "private": PipelineWorkload(350, 5, 30 * GB, 2500 * MB, 5000, 0.1),
    "mixed": PipelineWorkload(350, 5, 45 * GB, 500 * MB, 5000, 0.1),
}


def exact() -> Iterator[tuple[str, float]]:
    """How wide each allocation is, and at what size of volumes it ends, in percent of the space."""
    small = PipelineWorkload(3, 3, 49, 24)
    yield "4.9", float(possible(small, 100) == (MINIMAL,))
    least = {least_storage(one, PipelineWorkload(1, 1, 49, 24)) for one in ALLOCATIONS}
    yield "4.9 one", float(len(least))
    for name, work in BASELINES.items():
        for one in ALLOCATIONS:
            yield f"V {name} {one}", float(at_once(one, work, WHERE.storage))
            for field in ("batch", "private"):
                yield f"end {field} {name} {one}", _end(one, work, field)


def _end(allocation: str, work: PipelineWorkload, field: str) -> float:
    """The greatest size of these volumes for which there is space, in percent of all of it."""
    space = WHERE.storage
    none = least_storage(allocation, replace(work, **{field: 0}))
    single = least_storage(allocation, replace(work, **{field: 1}))
    return 100 * ((space - none) // (single - none)) / space
