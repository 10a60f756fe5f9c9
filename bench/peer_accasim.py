"""A log in AccaSim 1.1.3, by its own FCFS or EASY dispatcher. A script of its own, for the
environment it lives in.

    python peer_accasim.py LOG.swf NODES fcfs|easy

Prints one line of JSON. Timed is `start_simulation`, with every output off; AccaSim reads the log
while it simulates.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# The one thing that keeps it from running on Python 3.10 and later: it imports this name from its
# old place.
collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]

from accasim.base.allocator_class import FirstFit  # type: ignore[import-not-found]  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # type: ignore[import-not-found]  # noqa: E402
from accasim.base.simulator_class import Simulator  # type: ignore[import-not-found]  # noqa: E402

DISPATCHERS = {"fcfs": FirstInFirstOut, "easy": EASYBackfilling}


def simulator(log: str, nodes: int, policy: str, folder: Path) -> Any:
    """A machine of one-core nodes that writes no results."""
    machine = folder / "machine.json"
    machine.write_text(
        json.dumps({"groups": {"node": {"core": 1}}, "resources": {"node": nodes}}),
        encoding="utf-8",
    )
    off = dict.fromkeys(("scheduling_output", "statistics_output", "show_statistics"), False)
    where = {"RESULTS_FOLDER_PATH": str(folder), "LOG_LEVEL": "ERROR"}
    return Simulator(log, str(machine), DISPATCHERS[policy](FirstFit()), **off, **where)


def main() -> None:
    """Time one simulation."""
    log = sys.argv[1]
    nodes = int(sys.argv[2])
    policy = sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        sim = simulator(log, nodes, policy, Path(folder))
        begin = time.perf_counter()
        sim.start_simulation()
        wall_s = time.perf_counter() - begin
    waits_s = sim.mapper.wtimes
    answer = {
        "wall_s": wall_s,
        "jobs": len(waits_s),
        "mean_wait_s": statistics.fmean(waits_s),
        "version": "1.1.3",
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
