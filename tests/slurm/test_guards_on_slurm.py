"""What a real Slurm knows better than Windrow can: maintenance, who comes first, used memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.other_user import as_nobody, python_for_all
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.settings import Kind, Settings
from tests.slurm.test_limits_on_slurm import windrow
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

TWO_LEVELS = "name: w\ntasks:\n" + "".join(
    f"  - {{id: {level}{n}, command: sleep 2, nodes: 1, runtime: {rest}}}\n"
    for level, rest in (
        ("a", "3m"),
        ("b", "10m, after: [" + ", ".join(f"a{n}" for n in range(8)) + "]"),
    )
    for n in range(8)
)


@pytest.fixture
def closing(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """A site that has announced maintenance of all nodes in seven minutes, for an hour."""
    slurm.clear()
    when = (
        "starttime=now+7minutes",
        "duration=60",
        "flags=maint,ignore_jobs",
        f"users={slurm.place.user}",
    )
    slurm.run("scontrol", "create", "reservation", "reservationname=service", *when, "nodes=ALL")
    yield slurm
    slurm.clear()
    slurm.run("scontrol", "delete", "reservation=service")


def test_what_ends_before_maintenance_is_done_before_it(
    closing: SlurmCluster, tmp_path: Path
) -> None:
    """One job for both levels would not end before it: now the first is done, later the second."""
    (tmp_path / "w.yaml").write_text(TWO_LEVELS)
    done = windrow(closing, tmp_path, "plan", "w.yaml", "--on", "slurm", "--json")
    told = json.loads(done.stdout)
    (first,) = told["jobs_now"]
    assert first["expected_wait_s"] == 0
    assert sorted(first["tasks"]) == list(range(8))
    assert any(note.startswith("maintenance of 8 of 8 nodes from ") for note in told["notes"])
    assert windrow(closing, tmp_path, "run", "w.yaml", "--on", "slurm", "--detach").returncode == 0

    def status() -> str:
        return windrow(closing, tmp_path, "status").stdout

    try:
        wait_until(lambda: "it cannot end before announced maintenance" in status(), 90)
        wait_until(lambda: " 8/16 " in status(), 90)  # and what was started first is done
        assert "maintenance of 8 of 8 nodes" in status()
        told = json.loads(windrow(closing, tmp_path, "status", "--json").stdout)
        assert told["left_s"] > 3600
    finally:
        windrow(closing, tmp_path, "cancel")


def cron(slurm: SlurmCluster, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """As cron would start it: with neither the variables nor the PATH of the site."""
    poor = {name: value for name, value in slurm.env.items() if not name.startswith("SLURM")}
    return windrow(slurm, folder, *argv, env={**poor, "PATH": "/nowhere"})


def test_a_run_is_resumed_from_cron_as_it_was_started(slurm: SlurmCluster, tmp_path: Path) -> None:
    """It keeps SLURM_CONF and PATH. Where these are of no use any more, it fails, and says so."""
    slurm.clear()
    (tmp_path / "w.yaml").write_text(
        "name: w\ntasks: [{id: a, command: test -e go, runtime: 1m, retries: 0}]\n"
    )
    assert windrow(slurm, tmp_path, "run", "w.yaml", "--on", "slurm").returncode == 1
    (tmp_path / "go").touch()
    done = cron(slurm, tmp_path, "resume", "--detach")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: "w-1: complete" in cron(slurm, tmp_path, "status").stdout, 90)


def test_a_manager_that_ends_at_once_is_told(tmp_path: Path, slurm: SlurmCluster) -> None:
    slurm.clear()
    (tmp_path / "w.yaml").write_text("name: w\ntasks: [{id: a, command: 'false', runtime: 1m}]\n")
    elsewhere = tmp_path / "slurm.conf"
    elsewhere.write_text(slurm.place.path("slurm.conf").read_text())
    env = {**slurm.env, "SLURM_CONF": str(elsewhere)}
    assert windrow(slurm, tmp_path, "run", "w.yaml", "--on", "slurm", env=env).returncode == 1
    elsewhere.unlink()
    done = cron(slurm, tmp_path, "resume", "--detach")
    assert done.returncode != 0
    assert "w-1 does not run in the background: its manager ended at once" in done.stderr
    assert "windrow: error: " in done.stderr


TAKE = "import time; taken = bytearray({mib} << 20); time.sleep(4)"


@pytest.fixture(scope="module")
def policing() -> Iterator[SlurmCluster]:
    """Two small nodes and two large ones, where jobs that take more than a node has are killed."""
    settings = Settings(
        nodes=4,
        select="select/cons_tres",
        polices_memory=True,
        kinds=(Kind(2, 2, 200), Kind(2, 2, 900)),
    )
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(settings) as cluster:
        yield cluster


def test_a_task_that_takes_more_than_its_node_gets_a_larger_one(
    policing: SlurmCluster, tmp_path: Path
) -> None:
    """Slurm kills the whole job, and says why in what the job prints, not by its state."""
    (tmp_path / "windrow.toml").write_text('[queues.slurm]\nshare = "nodes"\n')
    (tmp_path / "w.yaml").write_text(
        f"name: w\ntasks:\n  - id: a\n    memory: 150MB\n    runtime: 1m\n"
        f'    command: ["{sys.executable}", "-c", "{TAKE.format(mib=400)}"]\n'
    )
    done = windrow(policing, tmp_path, "run", "w.yaml", "--on", "slurm", "--max-nodes", "1")
    assert done.returncode == 0, done.stderr
    status = windrow(policing, tmp_path, "status").stdout
    assert "killed" in status
    assert "it ran out of memory: slurmstepd" in status
    (second,) = tmp_path.glob(".windrow/runs/w-1/jobs/1/job.json")
    assert json.loads(second.read_text())["tasks"][0]["memory_bytes"] == 300_000_000


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder in which any user may work."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def ranked(slurm_with_accounting: SlurmCluster) -> Iterator[SlurmCluster]:
    """A site where the jobs of nobody come before those of root."""
    slurm = slurm_with_accounting
    conf = slurm.place.path("slurm.conf")
    text = conf.read_text()
    slurm.clear()
    conf.write_text(f"{text}\nPriorityWeightQOS=1000000\n")
    slurm.run("scontrol", "reconfigure")
    slurm.run("sacctmgr", "-i", "add", "qos", "first", "set", "Priority=1000")
    mine = ("account=science", "qos=first", "defaultqos=first")
    slurm.run("sacctmgr", "-i", "add", "user", "nobody", *mine)
    yield slurm
    slurm.clear()
    slurm.run("sacctmgr", "-i", "delete", "user", "nobody")
    slurm.run("sacctmgr", "-i", "delete", "qos", "first")
    conf.write_text(text)
    slurm.run("scontrol", "reconfigure")


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_a_user_whose_jobs_come_first_is_not_put_last(
    ranked: SlurmCluster, everybodys: Path
) -> None:
    """All nodes are busy for five minutes, and three hours of root's jobs wait behind nobody's."""
    slurm = ranked
    shape = ("--nodes=8", "--exclusive", "--output=/dev/null", "--chdir=/", "--wrap=sleep 1000")
    slurm.run("sbatch", "--time=5", *shape)
    busy = {"allocated"}
    slurm.wait(lambda: set(slurm.node_states().values()) == busy, "busy nodes", "slurmctld")
    for _ in range(3):
        slurm.run("sbatch", "--time=60", *shape)
    (everybodys / "w.yaml").write_text(TWO_LEVELS)
    before = [*as_nobody(), python_for_all(slurm.env)]
    done = windrow(slurm, everybodys, "plan", "w.yaml", "--on", "slurm", "--json", before=before)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["jobs_now"][0]["expected_wait_s"] < 1200
    assert any("by the batch system" in note for note in told["notes"])


POOLS = {
    "constraint": ('constraint = "fat&avx"', {"n1", "n2"}),
    "nodelist": ('extra = ["--nodelist=n[3-4]"]', {"n3", "n4"}),
    "exclude": ('extra = ["--exclude=n[1-4]"]', {"n5", "n6"}),
    "reservation": ('extra = ["--reservation=mine"]', {"n7", "n8"}),
}


@pytest.fixture
def divided(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """Two nodes with both features, one with one of them, and two that are reserved for us."""
    slurm.clear()
    for nodes, features in (("n[1-2]", "fat,avx"), ("n3", "fat")):
        told = (f"AvailableFeatures={features}", f"ActiveFeatures={features}")
        slurm.run("scontrol", "update", f"NodeName={nodes}", *told)
    when = ("starttime=now", "duration=60", f"users={slurm.place.user}", "nodes=n[7-8]")
    slurm.run("scontrol", "create", "reservation", "reservationname=mine", *when)
    wait_until(lambda: "RESERVED" in slurm.run("scontrol", "show", "node", "n8"), 60)
    yield slurm
    slurm.run("scancel", "--user", slurm.place.user)
    wait_until(lambda: not slurm.run("squeue", "-h"), 60)
    slurm.run("scontrol", "delete", "reservation=mine")
    slurm.run("scontrol", "update", "NodeName=n[1-3]", "AvailableFeatures=", "ActiveFeatures=")
    slurm.clear()


@pytest.mark.parametrize("pool", POOLS)
def test_jobs_are_no_wider_than_the_nodes_that_settings_leave(
    divided: SlurmCluster, tmp_path: Path, pool: str
) -> None:
    setting, names = POOLS[pool]
    (tmp_path / "windrow.toml").write_text(f"[queues.slurm]\n{setting}\n")
    tasks = "".join(
        f"  - {{id: t{n}, command: echo $WINDROW_NODES >> ran, nodes: 1, runtime: 1m}}\n"
        for n in range(8)
    )
    (tmp_path / "w.yaml").write_text(f"name: w\ntasks:\n{tasks}")
    run = ("run", "w.yaml", "--on", "slurm", "--strategy", "giant")
    done = windrow(divided, tmp_path, *run)
    assert done.returncode == 0, done.stderr
    assert set((tmp_path / "ran").read_text().split()) == names
