"""Partitions of one real Slurm as the sites of a run: the free one is chosen, and a job that waits
moves to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.other_user import python_path
from tests.real.works import IS_FULL
from tests.slurm.cluster import SlurmCluster

from windrow.app.execute import drive, managed, prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.runs import RunView
from windrow.manager import moving
from windrow.manager.manager import Manager

WINDROW = str(Path(sys.executable).with_name("windrow"))
PARTITIONS = {"east": "n[1-2]", "mid": "n[3-4]", "west": "n[5-6]"}


@pytest.fixture
def partitions(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmCluster]:
    """Three of two nodes each, beside those that the cluster has."""
    slurm.clear()
    monkeypatch.chdir(tmp_path)
    for name, place in (
        ("XDG_STATE_HOME", "state"),
        ("WINDROW_HISTORY", "h.sqlite"),
        ("WINDROW_WAITS", "w.sqlite"),
    ):
        monkeypatch.setenv(name, str(tmp_path / place))
    for name, value in {**slurm.env, **python_path()}.items():
        monkeypatch.setenv(name, value)
    for name, nodes in PARTITIONS.items():
        slurm.run(
            "scontrol", "create", f"partition={name}", f"nodes={nodes}", "maxtime=60", "state=up"
        )
    yield slurm
    slurm.clear()
    for name in PARTITIONS:
        slurm.run("scontrol", "delete", f"partition={name}")


def load(slurm: SlurmCluster, partition: str, minutes: int) -> str:
    """Somebody takes all its nodes for so long."""
    shape = [
        "--nodes=2",
        "--exclusive",
        f"--time={minutes}",
        "--output=/dev/null",
        "--wrap=sleep 3000",
    ]
    job = slurm.run("sbatch", "--parsable", f"--partition={partition}", *shape).strip()
    slurm.wait(
        lambda: slurm.run("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING",
        f"job {job} to run",
        "slurmctld",
    )
    return job


def workflow(folder: Path) -> Path:
    rows = [
        f"  - {{id: t{n}, command: echo t{n} >> ran, runtime: 20s, nodes: 1}}" for n in range(2)
    ]
    (folder / "w.yaml").write_text("\n".join(["name: w", "tasks:", *rows, ""]))
    return folder / "w.yaml"


def test_the_free_partition_is_chosen(partitions: SlurmCluster, tmp_path: Path) -> None:
    for name, minutes in (("east", 20), ("mid", 5)):
        load(partitions, name, minutes)
    file = workflow(tmp_path)
    argv = [WINDROW, "run", str(file), "--on", "east,mid,west", "--strategy", "glume", "--json"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    told = json.loads(done.stdout)
    assert told["queue"] == "east,mid,west"
    assert {job["site"] for job in told["jobs"]} == {"west"}
    lines = subprocess.run(
        [WINDROW, "explain", "0", "--all"], check=True, capture_output=True, text=True
    ).stdout
    assert "at west" in lines
    assert "at mid: 2 nodes, wait 2." in lines, (
        "half of the five minutes, of which few jobs need all"
    )
    offers = subprocess.run(
        [WINDROW, "sites", "--on", "east,mid,west", "--json"], check=True, capture_output=True
    )
    assert [one["free_nodes"] for one in json.loads(offers.stdout)["sites"]] == [0, 0, 2]


def a_waiting_job_moves_to_a_partition_that_becomes_free(
    partitions: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "LOOK_S", 1.0)
    load(partitions, "east", 4)
    late = load(partitions, "west", 30)
    order = RunRequest(workflow(tmp_path), on="west", also=("east",), strategy="glume")
    paths = start_run(prepare(order), tmp_path / "runs")
    with managed(paths) as manager:
        manager.begin()

        def free(now: Manager) -> None:
            if (
                any(job.id for job in now.placed.values())
                and partitions.run("squeue", "-h", "-j", late).strip()
            ):
                partitions.run("scancel", late)

        drive(manager, free)
        assert manager.core.is_complete, manager.core.trouble
    assert sorted((tmp_path / "ran").read_text().split()) == ["t0", "t1"]
    told = RunView(paths)
    jobs = list(told.story.jobs.values())
    assert [job.plan.site for job in jobs] == ["east", "west"]
    assert "at east" in jobs[0].note
    assert (jobs[0].started_s, jobs[0].state) == (None, "stopped")
    told.close()


if IS_FULL:  # in virtual time it is tested always (tests/survival/test_choosing.py)
    test_a_waiting_job_moves = a_waiting_job_moves_to_a_partition_that_becomes_free


def test_a_run_goes_to_the_cluster_that_is_named(
    slurm_with_accounting: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command is told (-M), and answers as the cluster of that name."""
    slurm = slurm_with_accounting
    slurm.clear()
    monkeypatch.chdir(tmp_path)
    for name, value in {
        **slurm.env,
        **python_path(),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "windrow.toml").write_text('[sites.dusk]\nqueue = "slurm"\ncluster = "windrow"\n')
    file = workflow(tmp_path)
    argv = [WINDROW, "run", str(file), "--on", "dusk", "--strategy", "giant", "--json"]
    told = json.loads(
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout
    )
    assert told["state"] == "complete"
    assert sorted((tmp_path / "ran").read_text().split()) == ["t0", "t1"]
