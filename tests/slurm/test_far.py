"""Runs on a cluster with files of its own, reached through a real sshd as another user: right, and
nothing left behind.

`WINDROW_FULL=1` runs all shapes of workflows, and more faults.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.works import IS_FULL
from tests.real_workflows import RECIPES
from tests.slurm.cluster import SlurmCluster
from tests.slurm.far import HOST, Account, Bed, missing
from tests.waiting import wait_until

from windrow.forecast.waits import History
from windrow.story import events as e

pytestmark = pytest.mark.slow


@pytest.fixture
def west(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Bed]:
    if reason := missing():
        pytest.skip(f"no second account: {reason}")
    slurm.clear()
    with Account(profile="echo a banner\n") as account:
        made = Bed(tmp_path, account, {HOST: slurm})
        yield made
        made.stop()


full = pytest.mark.skipif(not IS_FULL, reason="make prove runs it: WINDROW_FULL=1")


@full
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_comes_home_is_what_a_serial_run_makes(recipe: str, west: Bed) -> None:
    west.check_shape(recipe, on=HOST)


BOTH = """
name: both
tasks:
  - {id: a, command: head -c 3000000 /dev/urandom > a.bin; echo a >> a.bin, outputs: [a.bin], runtime: 1s, gpus: 1}
  - {id: b, command: sh tool.sh a.bin b.txt, inputs: [a.bin], outputs: [b.txt], runtime: 1s, nodes: 2}
  - {id: c, command: cat b.txt > c.txt; id -un >> c.txt, inputs: [b.txt], outputs: [c.txt], runtime: 1s, gpus: 1}
"""  # noqa: E501


def write_both(west: Bed) -> None:
    (west.work / "wf.yaml").write_text(BOTH)
    (west.work / "tool.sh").write_text("cksum < $1 > $2; id -un >> $2; echo once >> ~/ran\n")


def check_both(west: Bed) -> None:
    me = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    summed = subprocess.run(
        ["cksum"], stdin=(west.work / "a.bin").open(), capture_output=True, text=True, check=True
    )
    assert (west.work / "c.txt").read_text() == f"{summed.stdout}{west.account.name}\n{me}\n"
    assert (west.account.home / "ran").read_text() == "once\n"
    west.check_nothing_left()


def test_a_run_goes_to_and_fro_although_the_connection_is_cut_and_its_manager_killed(
    west: Bed,
) -> None:
    """The first transfer is cut, which `rsync` meets as it would a network failure; then the
    manager is killed."""
    write_both(west)
    once = west.account.folder / "cut"
    real = subprocess.run(
        ["which", "rsync"], capture_output=True, text=True, check=True
    ).stdout.strip()
    slow = west.account.folder / "bin" / "rsync"
    slow.write_text(
        f'#!/bin/sh\nif [ -e {once} ]; then exec {real} "$@"; fi\n: > {once}\nexec {real} '
        '--bwlimit=300 "$@"\n'
    )
    slow.chmod(0o755)
    manager = west.start("run", "wf.yaml", "--on", "local,west", "--strategy", "individual")
    wait_until(lambda: bool(list(west.account.home.glob("scratch/runs/*/files/**/.a.bin.*"))), 60)
    west.account.cut()
    wait_until(lambda: any(isinstance(event, e.MoveFailed) for event in west.events), 60)
    wait_until(
        lambda: any(
            isinstance(event, e.FilesMoved) and "a.bin" in event.files for event in west.events
        ),
        60,
    )
    os.killpg(manager.pid, signal.SIGKILL)
    manager.communicate()
    west.windrow("resume")
    check_both(west)
    assert 0 < History(west.env["WINDROW_WAITS"]).links()["", HOST] < 10  # for the next run


@full
def test_a_dead_controller_and_a_full_disk_are_waited_for(west: Bed) -> None:
    write_both(west)
    disk = west.account.home / "scratch"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", disk], check=True)
    try:
        manager = west.start("run", "wf.yaml", "--on", "local,west", "--strategy", "individual")
        wait_until(
            lambda: any("No space left" in getattr(event, "why", "") for event in west.events), 30
        )
        west.slurm.stop_controller()
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        wait_until(lambda: any(isinstance(event, e.FilesMoved) for event in west.events), 40)
        west.slurm.start_controller()
        said, _ = manager.communicate(timeout=100)
        assert manager.returncode == 0, said
        check_both(west)
    finally:
        if not west.slurm._daemons.get("slurmctld"):
            west.slurm.start_controller()
        subprocess.run(["umount", "-l", disk], check=True)


def test_doctor_tries_all_and_leaves_nothing(west: Bed) -> None:
    told = json.loads(west.windrow("doctor", "--on", "west", "--json"))["findings"]
    assert [one["what"] for one in told] == [
        "queue", "login", "folder", "Python", "clock", "a file", "a file", "checksum"
    ]  # fmt: skip
    assert {one["fix"] for one in told} == {""}
    west.check_nothing_left()
    (west.account.home / ".ssh" / "authorized_keys").write_text("")
    west.account.cut()
    process = west.start("doctor", "--on", "west")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "west wants a password" in said
    assert f" {HOST}" in said.partition("type: ssh -fNM")[2]
