"""What a site allows and what it hides, on a real Slurm: no job is submitted that could never
start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.other_user import as_nobody, python_for_all, python_path
from tests.slurm.cluster import SlurmCluster
from tests.waiting import wait_until

from windrow.queues.reasons import reason
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.queue import SlurmQueue

WINDROW = str(Path(sys.executable).with_name("windrow"))
QOS = {"four": "MaxTRESPerUser=cpu=4", "one": "MaxTRESPerUser=cpu=1", "each": "MaxTRESPerJob=cpu=4"}
FOUR_WIDE = "name: w\ntasks:\n" + "".join(
    f"  - {{id: t{n}, command: echo >> ran, nodes: 1}}\n" for n in range(4)
)


def windrow(
    slurm: SlurmCluster,
    folder: Path,
    *argv: str,
    before: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    places = {name: str(folder / "state") for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")}
    env = {**(slurm.env if env is None else env), **python_path(), **places}
    command = [WINDROW] if not before else [*before, "-P", "-m", "windrow.cli.main"]
    return subprocess.run(
        [*command, *argv],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def limited(slurm_with_accounting: SlurmCluster) -> Iterator[SlurmCluster]:
    """Nodes of two cores; QOS that allow a user, or a job, two of them or half a one."""
    slurm = slurm_with_accounting
    slurm.clear()
    for name, limit in QOS.items():
        slurm.run("sacctmgr", "-i", "add", "qos", name, "set", limit)
    slurm.run("sacctmgr", "-i", "modify", "user", slurm.place.user, "set", "qos+=" + ",".join(QOS))
    yield slurm
    slurm.clear()
    slurm.run("sacctmgr", "-i", "modify", "user", slurm.place.user, "set", "qos-=" + ",".join(QOS))
    slurm.run("sacctmgr", "-i", "delete", "qos", *QOS)


def test_jobs_keep_within_limits_on_cores(limited: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(FOUR_WIDE)
    for qos, most in (("four", 2), ("each", 2)):
        limits = SlurmQueue(SlurmProfile(qos=qos), env=limited.env).limits()
        assert (limits.max_nodes, limits.closed) == (most, "")
    (tmp_path / "windrow.toml").write_text('[queues.slurm]\nqos = "four"\n')
    done = windrow(limited, tmp_path, "run", "w.yaml", "--on", "slurm", "--strategy", "giant")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").read_text() == "\n" * 4
    (tmp_path / "windrow.toml").write_text('[queues.slurm]\nqos = "one"\n')
    for command in (["plan"], ["run", "--again"]):
        done = windrow(limited, tmp_path, *command, "w.yaml", "--on", "slurm")
        assert done.returncode == 2
        assert (
            "nothing can start on slurm: MaxTRESPerUser cpu=1 of QOS one allows less than one"
            in done.stderr
        )
    assert limited.run("squeue", "-h") == ""


def test_jobs_keep_within_what_other_jobs_leave_of_a_limit(
    limited: SlurmCluster, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_text(FOUR_WIDE)
    (tmp_path / "windrow.toml").write_text('[queues.slurm]\nqos = "four"\n')
    queue = SlurmQueue(SlurmProfile(qos="four"), env=limited.env)
    assert queue.snapshot().left == 2
    shape = ("--nodes=1", "--exclusive", "--time=5", "--output=/dev/null", "--wrap=sleep 300")
    limited.run("sbatch", "--qos=four", *shape)
    limited.wait(lambda: queue.snapshot().left == 1, "one node less", "slurmctld")
    plan = ("plan", "w.yaml", "--on", "slurm", "--strategy", "giant", "--json")
    planned = json.loads(windrow(limited, tmp_path, *plan).stdout)
    assert [job["nodes"] for job in planned["jobs_now"]] == [1]


def test_slurm_says_of_a_job_that_is_too_large_alone_what_we_say(limited: SlurmCluster) -> None:
    """Its reason is the same as where other jobs have to end first."""
    shape = ("--nodes=3", "--exclusive", "--time=1", "--output=/dev/null", "--wrap=true")
    job = limited.run("sbatch", "--parsable", "--qos=four", *shape).strip()

    def words() -> str:
        return limited.run("squeue", "-h", "-j", job, "-o", "%r").strip()

    limited.wait(lambda: words() not in ("None", "Priority"), "a reason", "slurmctld")
    assert "if none of them runs, it can never start" in reason(words()).words


@pytest.fixture
def discreet(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """A site that shows users no jobs but their own."""
    conf = slurm.place.path("slurm.conf")
    text = conf.read_text()
    slurm.clear()
    conf.write_text(f"{text}\nPrivateData=jobs\n")
    slurm.run("scontrol", "reconfigure")
    yield slurm
    conf.write_text(text)
    slurm.run("scontrol", "reconfigure")
    slurm.clear()


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_where_jobs_are_hidden_slurm_is_believed(discreet: SlurmCluster) -> None:
    slurm, folder = discreet, Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o777)
        (folder / "w.yaml").write_text(FOUR_WIDE)
        before = [*as_nobody(), python_for_all(slurm.env)]
        shape = (
            "--nodes=8",
            "--exclusive",
            "--time=20",
            "--output=/dev/null",
            "--chdir=/",
            "--wrap=sleep 1000",
        )
        slurm.run("sbatch", *shape)
        slurm.wait(
            lambda: set(slurm.node_states().values()) == {"allocated"}, "busy nodes", "slurmctld"
        )
        done = windrow(slurm, folder, "plan", "w.yaml", "--on", "slurm", "--json", before=before)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["notes"][0].startswith(
            "8 of 8 nodes are in use by jobs that the batch system does not show you"
        )
        assert 600 < told["jobs_now"][0]["expected_wait_s"] <= 1200
        done = windrow(slurm, folder, "doctor", "--on", "slurm", before=before)
        assert "jobs of others: 8 of 8 nodes are in use" in done.stdout
        run = ("run", "w.yaml", "--on", "slurm", "--detach")
        assert windrow(slurm, folder, *run, before=before).returncode == 0
        try:
            wait_until(
                lambda: (
                    "8 of 8 nodes are in use by jobs that the batch system does not show you"
                    in windrow(slurm, folder, "status", before=before).stdout
                ),
                90,
            )
        finally:
            windrow(slurm, folder, "cancel", before=before)
    finally:
        shutil.rmtree(folder)
