"""Facts about job steps that the agent relies on: long-lived ones on given nodes, fed through
pipes, side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.harness import slurm_harness
from tests.slurm.settings import Settings
from tests.unit.queues.contract import spec, wait_for, wait_state

from windrow.queues.port import JobState

# Starts two steps on each node, then talks to each: had one to wait for another, the first line
# would never come.
PROGRAM = """
import json, os, subprocess, sys
nodes = subprocess.run(["scontrol", "show", "hostnames"], capture_output=True, text=True, check=True).stdout.split()
echo = 'echo "$SLURMD_NODENAME"; while read line; do echo "$line"; done; exit 3'
options = ["--nodes=1", "--ntasks=1", "--cpus-per-task=" + os.environ["SLURM_CPUS_ON_NODE"], "--cpu-bind=none"]
options += ["--mem=0", "--overlap", "--unbuffered"]
steps = [
    subprocess.Popen(["srun", *options, "--nodelist=" + node, "sh", "-c", echo], stdin=-1, stdout=-1, text=True)
    for node in nodes for _ in range(2)
]
names = [step.stdout.readline().strip() for step in steps]
answers = []
for number, step in enumerate(steps):
    step.stdin.write(f"hello {number}\\n")
    step.stdin.flush()
    answers.append(step.stdout.readline().strip())
for step in steps:
    step.stdin.close()
print(json.dumps([nodes, names, answers, [step.wait() for step in steps]]))
"""  # noqa: E501


@pytest.mark.parametrize("select", ["select/linear", "select/cons_tres"])
def test_steps_run_side_by_side_on_given_nodes(select: str, tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=3, select=select)) as cluster:
        harness = slurm_harness(cluster, tmp_path)
        one = spec(harness, ("timeout", "60", sys.executable, "-c", PROGRAM), nodes=3)
        wait_state(harness, harness.queue.submit(one), JobState.ENDED)
        wait_for(harness, "the output", lambda: Path(one.output).read_text().endswith("]]\n"))
        nodes, names, answers, codes = json.loads(Path(one.output).read_text().splitlines()[-1])
    assert nodes == ["n1", "n2", "n3"]
    assert names == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert answers == [f"hello {number}" for number in range(6)]
    assert codes == [3] * 6


def test_jobs_get_whole_nodes_where_nodes_are_shared(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=2, select="select/cons_tres")) as cluster:
        harness = slurm_harness(cluster, tmp_path)
        jobs = [harness.queue.submit(spec(harness, harness.sleeping(500))) for _ in range(3)]
        for job in jobs[:2]:
            wait_state(harness, job, JobState.RUNNING)
        shown = cluster.run("squeue", "-h", "-t", "RUNNING", "-O", "NodeList:8,NumCPUs:8").split()
        assert sorted(zip(shown[::2], shown[1::2], strict=True)) == [("n1", "2"), ("n2", "2")]
        assert harness.queue.status(jobs)[jobs[2]].state is JobState.WAITING
