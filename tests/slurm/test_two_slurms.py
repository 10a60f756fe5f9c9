"""One run on two Slurms with controllers and files of their own, the second behind a real sshd as
another user.

`WINDROW_FULL=1` runs all shapes of workflows, and the faults: a controller that is dead for the
whole run, a site that is gone for good halfway, a disk that stays full.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.works import IS_FULL
from tests.real_workflows import RECIPES
from tests.slurm.cluster import SlurmCluster
from tests.slurm.far import HOST, Account, Bed, missing
from tests.slurm.settings import Settings
from tests.waiting import wait_until

BOTH = f"east,{HOST}"
full = pytest.mark.skipif(not IS_FULL, reason="make prove runs it: WINDROW_FULL=1")


@pytest.fixture(scope="module")
def second() -> Iterator[SlurmCluster]:
    """Two nodes."""
    if reason := missing():
        pytest.skip(f"no second account: {reason}")
    with SlurmCluster(Settings(nodes=2)) as cluster:
        yield cluster


@pytest.fixture
def both(slurm: SlurmCluster, second: SlurmCluster, tmp_path: Path) -> Iterator[Bed]:
    slurm.clear()
    second.clear()
    with Account() as account:
        made = Bed(tmp_path, account, {"east": second, HOST: slurm})
        yield made
        made.stop()


@full
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_two_slurms_make_is_what_a_serial_run_makes(recipe: str, both: Bed) -> None:
    both.check_shape(recipe, on=BOTH, strategy="level-by-level")


def test_files_go_to_and_fro_between_two_slurms(both: Bed) -> None:
    both.check_shape("fork-join", on=BOTH, tasks=6, strategy="level-by-level")


TASKS = """
name: chains
tasks:
  - {id: "a{i}", matrix: {i: 1..4}, command: "sleep 2; echo a{i} >> ran; head -c 3000000 /dev/zero > a{i}", outputs: "a{i}", runtime: 4s}
  - {id: "b{i}", matrix: {i: 1..4}, command: "sleep 2; echo b{i} >> ran; wc -c < a{i} > b{i}", inputs: "a{i}", outputs: "b{i}", runtime: 4s}
  - {id: all, command: "cat b1 b2 b3 b4 > all", inputs: [b1, b2, b3, b4], outputs: all, runtime: 2s}
"""  # noqa: E501


def check_chains(both: Bed, manager: subprocess.Popen[str]) -> Counter[str]:
    """The run ends well, and what is at home is right. Returns how often tasks finished."""
    said, _ = manager.communicate(timeout=200)
    assert manager.returncode == 0, said
    assert (both.work / "all").read_text().split() == ["3000000"] * 4
    told = both.told
    ended = zip(told.runnable.workflow.ids, told.story.tasks, strict=True)
    finished = Counter(
        name for name, task in ended for one in task.attempts if str(one.outcome) == "finished"
    )
    told.close()
    return finished


def made_there(both: Bed) -> list[str]:
    """Tasks that finished behind ssh, as far as home has heard."""
    told = both.told
    ended = zip(told.runnable.workflow.ids, told.story.tasks, strict=True)
    sites = {n: job.plan.site for n, job in told.story.jobs.items()}
    found = [
        name
        for name, task in ended
        for one in task.attempts
        if str(one.outcome) == "finished" and sites[one.job] == HOST
    ]
    told.close()
    return found


@full
def test_a_controller_is_dead_for_the_whole_run(both: Bed) -> None:
    (both.work / "wf.yaml").write_text(TASKS)
    both.slurm.stop_controller()
    try:
        finished = check_chains(
            both, both.start("run", "wf.yaml", "--on", BOTH, "--strategy", "level-by-level")
        )
        assert set(finished.values()) == {1}
    finally:
        both.slurm.start_controller()
    both.check_nothing_left()


@full
def test_a_site_is_gone_for_good_halfway(both: Bed) -> None:
    """With the files that only it had: what made them is done again, and nothing else is."""
    (both.work / "wf.yaml").write_text(TASKS)
    both.hurry = json.dumps({"manager.moving.SILENT_S": 8.0, "manager.moving.LOOK_S": 1.0})
    manager = both.start("run", "wf.yaml", "--on", BOTH, "--strategy", "individual")
    far = both.account.home / "scratch"
    wait_until(lambda: any(far.rglob("files/**/a[1-4]")) and made_there(both), 60)
    both.account.stop()
    both.slurm.run("scancel", "--user", both.account.name)
    finished = check_chains(both, manager)
    assert set(finished) == {"all", *(f"{name}{n}" for name in "ab" for n in range(1, 5))}
    assert max(finished.values()) == 2, "what only the other site had is made again"


@full
def test_a_disk_that_stays_full_is_no_site_for_what_does_not_fit(both: Bed) -> None:
    (both.work / "wf.yaml").write_text(TASKS.replace('outputs: "a{i}"', 'outputs: {"a{i}": 3MB}'))
    disk = both.account.home / "scratch"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", disk], check=True)
    try:
        finished = check_chains(
            both, both.start("run", "wf.yaml", "--on", BOTH, "--strategy", "individual")
        )
        assert set(finished.values()) == {1}
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
