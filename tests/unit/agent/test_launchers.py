"""What a task's environment says of nodes and cores, where no Slurm is needed to see it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from windrow.agent.launchers import Launchers
from windrow.agent.order import Order

BINDING = "OMPI_MCA_hwloc_base_binding_policy"


def order(**more: object) -> Order:
    return Order(0, 1, ("true",), "/", {"OWN": "1"}, "/out", **more)  # type: ignore[arg-type]


def test_ranks_of_tasks_that_share_a_machine_are_not_bound_unless_the_user_says_so() -> None:
    assert Launchers({}).environment(order(hosts=("h",), cores=2))[BINDING] == "none"
    assert Launchers({BINDING: "core"}).environment(order(hosts=("h",), cores=2))[BINDING] == "core"


def test_nodes_of_this_machine_are_slots_of_one_host() -> None:
    env = Launchers({"WINDROW_QUEUE": "local"}).environment(
        order(hosts=("h", "h"), cores=3, is_whole=True)
    )
    assert Path(env["OMPI_MCA_orte_default_hostfile"]).read_text() == "localhost slots=6\n"
    assert env["OWN"] == "1"


def test_a_job_of_one_node_tells_a_task_its_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here `scontrol` is a stand-in: the tests on Slurm have the real one."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho n1\n")
    scontrol.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    job = {
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_JOB_CPUS_PER_NODE": "8",
        "SLURM_NTASKS": "1",
    }
    env = Launchers(job).environment(order(hosts=("n1",), cores=3))
    assert (env["SLURM_CPUS_ON_NODE"], env["SLURM_JOB_CPUS_PER_NODE"], env["SLURM_OVERLAP"]) == (
        "3",
        "3",
        "1",
    )
    assert "SLURM_NTASKS" not in env
    assert "SLURM_HOSTFILE" not in env
    whole = Launchers(job).environment(order(hosts=("n1",), cores=8, is_whole=True))
    assert whole == {**job, "OWN": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["mpirun.openmpi", "mpiexec.mpich"])
def test_as_many_ranks_start_here_as_its_nodes_have_cores(launcher: str) -> None:
    if (program := shutil.which(launcher)) is None:
        pytest.skip(f"no {launcher} here (as root on Debian or Ubuntu: tests/slurm/install)")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environ = {"PATH": "/usr/bin:/bin", **as_root}
    env = Launchers(environ).environment(order(hosts=("h",) * 4, cores=4, is_whole=True))
    done = subprocess.run(
        [program, "-n", "16", "echo", "rank"], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "rank\n" * 16, done.stderr
