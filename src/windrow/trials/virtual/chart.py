"""The story of a virtual run as a chart of characters: a line for each job, marks for faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_COLUMNS = 60


def chart(story: Mapping[str, Any]) -> Iterator[str]:
    """Jobs over time: `.` waits, `=` runs, and how it ended: `|` by itself, `x` otherwise."""
    jobs = story["jobs"]
    times = [job["ended_s"] or job["started_s"] or job["planned_s"] for job in jobs]
    faults = [fault for fault in story["faults"] if fault["at_s"] is not None]
    last_s = max([1, *times, *(fault["at_s"] for fault in faults)])

    def column(at_s: float) -> int:
        return min(_COLUMNS - 1, max(0, int(at_s / last_s * _COLUMNS)))

    for fault in faults:
        yield f"{'':12}{' ' * column(fault['at_s'])}v {fault['kind']}, {fault['at_s']} s"
    for job in jobs:
        yield f"{'job ' + str(job['job']):12}{_line(job, column, last_s)}"
    yield f"{'':12}0 s{last_s:>{_COLUMNS - 5}} s"


def _line(job: Mapping[str, Any], column: Any, last_s: int) -> str:
    ended_s = last_s if job["ended_s"] is None else job["ended_s"]
    started_s = ended_s if job["started_s"] is None else job["started_s"]
    planned = column(job["planned_s"])
    started = column(started_s)
    ended = column(ended_s)
    runs = "=" * (ended - started)
    mark = "|" if job["state"] == "ended" else "x"
    return f"{' ' * planned}{'.' * (started - planned)}{runs}{mark}"
