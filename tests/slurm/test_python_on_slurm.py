"""Functions as tasks, and flows, on a real Slurm as an ordinary user."""

from __future__ import annotations

import pytest
from tests.slurm.cluster import SlurmCluster
from tests.slurm.home import REFUSAL, Home, refusing

pytest.importorskip("cloudpickle", reason="functions are sent with cloudpickle")
pytestmark = pytest.mark.slow

CALLS = """
import os
import windrow


def square(n):
    return n * n, os.environ["SLURM_JOB_ID"]


def total(pairs):
    return sum(n for n, _ in pairs), {job for _, job in pairs}


def fails(n):
    raise ValueError(f"not {n}")


with windrow.Executor(on="slurm", guess_s=1) as pool:
    squares = [pool.submit(square, n) for n in range(6)]
    sums = pool.options(cores=2).submit(total, squares)
    bad = pool.submit(fails, 7)
    value, jobs = sums.result(timeout=600)
    assert value == 55, value
    assert jobs and "" not in jobs and str(os.getpid()) not in jobs
    error = bad.exception(timeout=600)
    assert isinstance(error, ValueError) and "in fails" in str(error.__cause__), error
    late = pool.submit(square, 9).result(timeout=600)  # on the nodes that are there
    assert late[0] == 81
    run = pool.run
assert run.wait(timeout=600) == "failed", run.state
assert run.result(sums.task)[0] == 55
events = [event.what for event in run.events()]
print("jobs", events.count("JobSubmitted"))
"""


def test_functions_run_in_batch_jobs(shared: SlurmCluster, home: Home) -> None:
    """Edges, an exception with its traceback, a call that comes later, and results afterwards."""
    room = home.room()
    (room / "program.py").write_text(CALLS)
    done = home.run(shared, room, "program.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) <= 6, "nine calls are not nine jobs"


FLOW = """
import windrow

flow = windrow.Flow("study")
sims = [
    flow.task(
        f"echo {n} $SLURM_JOB_ID > out-{n}", outputs=f"out-{n}", runtime="1s", kind="sim"
    )
    for n in range(6)
]
flow.task("cat out-* > all", id="all", after=sims, outputs="all", runtime="1s")
planned = {task for job in flow.plan(on="slurm").jobs for task in job.tasks}
assert planned <= {task.id for task in flow.tasks} and planned
run = flow.run(on="slurm")
assert run.wait(timeout=600) == "complete", run.state
"""


def test_a_flow_runs_in_batch_jobs(shared: SlurmCluster, home: Home) -> None:
    room = home.room()
    (room / "program.py").write_text(FLOW)
    done = home.run(shared, room, "program.py")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in (room / "all").read_text().splitlines()]
    assert [row[0] for row in rows] == [str(n) for n in range(6)]
    assert all(row[1].isdecimal() for row in rows)


REFUSED = """
import windrow

with windrow.Executor(on="slurm", guess_s=1) as pool:
    print(pool.submit(abs, -1).exception(timeout=600))
"""


def test_what_slurm_takes_no_job_of_is_told_to_who_waits(shared: SlurmCluster, home: Home) -> None:
    """The run gives up, and calls end with its words."""
    room = home.room()
    (room / "program.py").write_text(REFUSED)
    done = home.run(shared, room, "program.py", more=refusing(room, shared.env["PATH"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gave up" in done.stdout
    assert REFUSAL in done.stdout
