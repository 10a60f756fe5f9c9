"""Runs on a cluster with files of its own, reached through a real sshd as another user: right, and nothing left behind.

`WINDROW_FULL=1` runs all shapes of workflows, and more faults.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.real.works import IS_FULL, Case, private, serial_checksums
from tests.real_workflows import RECIPES, write_real
from tests.slurm.cluster import SlurmCluster
from tests.slurm.far import HOST, Account, missing
from tests.waiting import wait_until

from windrow.app.runs import RunView, find_run
from windrow.forecast.waits import History
from windrow.formats import read_runnable
from windrow.manager import events as e
from windrow.manager.journal import RunJournal

pytestmark = pytest.mark.slow


@dataclass
class West:
    """A folder at home with a `windrow.toml`, and the account in which its jobs run."""

    folder: Path
    account: Account
    slurm: SlurmCluster
    env: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "windrow.cli.main", *words]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(command, cwd=self.folder, env={**self.env, **env}, process_group=0, **pipes)
        self.started.append(process)
        return process

    def windrow(self, *words: str, **env: str) -> str:
        process = self.start(*words, **env)
        said, _ = process.communicate(timeout=100)
        assert process.returncode == 0, said
        return said

    @property
    def events(self) -> list[e.Event]:
        if not (runs := list(self.folder.glob(".windrow/runs/both-*/journal.sqlite"))):
            return []
        journal = RunJournal.open(runs[0])
        found = [record.event for _, record in journal.records()]
        journal.close()
        return found

    def check_nothing_left(self) -> None:
        far = self.account.home / "scratch"
        assert [path.name for path in far.rglob("*") if path.is_file() and path.suffix != ".pyz"] == []
        self.slurm.wait(self.slurm.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)

    def check_ran_once(self) -> None:
        told = RunView(find_run(None, self.folder / ".windrow" / "runs"))
        ran = [[str(attempt.outcome) for attempt in task.attempts] for task in told.story.tasks]
        told.close()
        assert ran == [["finished"]] * len(ran)


@pytest.fixture
def west(slurm: SlurmCluster, tmp_path: Path) -> Iterator[West]:
    if reason := missing():
        pytest.skip(f"no second account: {reason}")
    slurm.clear()
    with Account(profile="echo a banner\n") as account:
        work = tmp_path / "work"
        work.mkdir()
        setup = f"export SLURM_CONF={slurm.env['SLURM_CONF']}"
        (work / "windrow.toml").write_text(
            f'[sites.west]\nqueue = "slurm"\nhost = "{HOST}"\nfolder = "~/scratch"\nsetup = "{setup}"\n'
            "[queues.local]\ncores = 2\ngpus = 1\n"
        )
        env = {**slurm.env, **private(tmp_path), **account.env, "WINDROW_WAITS": str(tmp_path / "waits.sqlite")}
        del env["SLURM_CONF"]  # which is what the site has, and we have not
        made = West(work, account, slurm, env)
        yield made
        for process in made.started:
            process.kill()
            process.wait()


def results(path: Path) -> set[str]:
    workflow = read_runnable(path).workflow
    read = set(workflow.inputs.index.tolist())
    return {workflow.files[f].id for f in workflow.outputs.index.tolist() if f not in read}


full = pytest.mark.skipif(not IS_FULL, reason="make prove runs it: WINDROW_FULL=1")


@full
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_comes_home_is_what_a_serial_run_makes(recipe: str, west: West) -> None:
    case = Case(recipe, 80 if recipe == "fft" else 50, "glume")
    path = write_real(case.recipe, case.tasks, west.folder, work_s=0.01)
    path.write_text(path.read_text().replace(sys.executable, "python3"))
    said = json.loads(west.windrow("run", path.name, "--json", "--on", "west", "--strategy", case.strategy))
    assert said["state"] == "complete"
    wanted = results(path)
    found = {name: hashlib.sha256((west.folder / name).read_bytes()).hexdigest() for name in wanted}
    assert found == {name: text for name, text in serial_checksums(recipe, case.tasks).items() if name in wanted}
    west.check_ran_once()
    west.check_nothing_left()


BOTH = """
name: both
tasks:
  - {id: a, command: head -c 3000000 /dev/urandom > a.bin; echo a >> a.bin, outputs: [a.bin], runtime: 1s, gpus: 1}
  - {id: b, command: sh tool.sh a.bin b.txt, inputs: [a.bin], outputs: [b.txt], runtime: 1s, nodes: 2}
  - {id: c, command: cat b.txt > c.txt; id -un >> c.txt, inputs: [b.txt], outputs: [c.txt], runtime: 1s, gpus: 1}
"""


def write_both(west: West) -> None:
    (west.folder / "wf.yaml").write_text(BOTH)
    (west.folder / "tool.sh").write_text("cksum < $1 > $2; id -un >> $2; echo once >> ~/ran\n")


def check_both(west: West) -> None:
    me = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    summed = subprocess.run(["cksum"], stdin=(west.folder / "a.bin").open(), capture_output=True, text=True, check=True)
    assert (west.folder / "c.txt").read_text() == f"{summed.stdout}{west.account.name}\n{me}\n"
    assert (west.account.home / "ran").read_text() == "once\n"
    west.check_nothing_left()


def test_a_run_goes_to_and_fro_although_the_connection_is_cut_and_its_manager_killed(west: West) -> None:
    """The first transfer is cut, which `rsync` meets as it would a network failure; then the manager is killed."""
    write_both(west)
    once = west.account.folder / "cut"
    real = subprocess.run(["which", "rsync"], capture_output=True, text=True, check=True).stdout.strip()
    slow = west.account.folder / "bin" / "rsync"
    slow.write_text(
        f'#!/bin/sh\nif [ -e {once} ]; then exec {real} "$@"; fi\n: > {once}\nexec {real} --bwlimit=300 "$@"\n'
    )
    slow.chmod(0o755)
    manager = west.start("run", "wf.yaml", "--on", "local,west", "--strategy", "individual")
    wait_until(lambda: bool(list(west.account.home.glob("scratch/runs/*/files/**/.a.bin.*"))), 60)
    west.account.cut()
    wait_until(lambda: any(isinstance(event, e.MoveFailed) for event in west.events), 60)
    wait_until(lambda: any(isinstance(event, e.FilesMoved) and "a.bin" in event.files for event in west.events), 60)
    os.killpg(manager.pid, signal.SIGKILL)
    manager.communicate()
    west.windrow("resume")
    check_both(west)
    assert 0 < History(west.env["WINDROW_WAITS"]).links()["", HOST] < 10  # for the next run


@full
def test_a_dead_controller_and_a_full_disk_are_waited_for(west: West) -> None:
    write_both(west)
    disk = west.account.home / "scratch"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", disk], check=True)
    try:
        manager = west.start("run", "wf.yaml", "--on", "local,west", "--strategy", "individual")
        wait_until(lambda: any("No space left" in getattr(event, "why", "") for event in west.events), 30)
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


def test_doctor_tries_all_and_leaves_nothing(west: West) -> None:
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
