"""Reads one workflow, measures its shape, and prints times and peak memory as JSON. A process of
its own, for the peak.

python workflow_reader.py WORKFLOW.json
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from windrow.formats import read_workflow
from windrow.shape import kinds, shape, token_parallelism


def peak_bytes() -> int:
    """The most memory this process ever had.

    Linux hands `ru_maxrss` on from the process that started this one, so its own high-water mark is
    asked for first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    """Read, level (which reading does), report."""
    begin = time.perf_counter()
    workflow = read_workflow(sys.argv[1])
    read = time.perf_counter()
    figures = shape(workflow)
    tokens = token_parallelism(workflow)
    programs = kinds(workflow)
    measured = time.perf_counter()
    answer = {
        "tasks": figures.tasks,
        "edges": figures.edges,
        "levels": figures.levels,
        "width": figures.width,
        "tokens": tokens,
        "kinds": len(programs),
        "read_s": read - begin,
        "report_s": measured - read,
        "peak_bytes": peak_bytes(),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
