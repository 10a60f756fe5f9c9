"""HyperQueue on short tasks, by its Python interface, which is what PyPI has of it. A script of its
own.

    python peer_hyperqueue.py TASKS CORES [--no-output]

A server and a worker of this many cores start in this process; then one job of TASKS times `true`
is submitted and waited for, which is what is timed. Each task gets two files for its output, which
is the default, or none. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from typing import Any

from hyperqueue import Job, LocalCluster  # type: ignore[import-not-found]
from hyperqueue.cluster import WorkerConfig  # type: ignore[import-not-found]


def main(tasks: int, cores: int, *, output: bool) -> None:
    """Run it once."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with LocalCluster() as cluster:
            cluster.start_worker(WorkerConfig(cores=cores))
            client = cluster.client()
            job = Job()
            files: dict[str, Any] = {} if output else {"stdout": None, "stderr": None}
            for _ in range(tasks):
                job.program(["true"], **files)
            begin = time.perf_counter()
            client.wait_for_jobs([client.submit(job)])
            wall_s = time.perf_counter() - begin
        os.chdir("/")
    print(json.dumps({"wall_s": wall_s, "version": version("hyperqueue")}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), output="--no-output" not in sys.argv)
