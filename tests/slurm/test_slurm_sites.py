"""What sites do to their users: nodes drained, partitions down, limits of a QOS, settings in the
shell.

Nothing waits in silence: what cannot start is refused before anything was begun, or told as long as
it lasts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.examples import some
from tests.other_user import NOBODY, as_nobody, python_for_all, python_path
from tests.slurm.cluster import SlurmCluster
from tests.slurm.test_survival import slurm_world
from tests.survival.world import World

from windrow.kernels.jit import cache_folder


def fan(width: int = 16, nodes: int = 0, runtime: str = "1s") -> str:
    """A workflow file: `width` tasks side by side, each of which says that it was here."""
    whole = f", nodes: {nodes}" if nodes else ""
    rows = [
        f"  - {{id: t{i}, command: echo t{i} >> ran, runtime: {runtime}{whole}}}"
        for i in range(width)
    ]
    return "\n".join(["name: fan", "tasks:", *rows, ""])


@pytest.fixture
def world(slurm: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    yield from restored(slurm, tmp_path)


@pytest.fixture
def accounted(slurm_with_accounting: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    yield from restored(slurm_with_accounting, tmp_path)


def restored(slurm: SlurmCluster, folder: Path) -> Iterator[World]:
    """A world on an empty cluster, all of whose nodes and partitions are up again afterwards."""
    worlds = slurm_world(slurm, folder)
    yield next(worlds)
    for partition in ("main", "small"):
        slurm.run("scontrol", "update", f"partition={partition}", "state=up")
    up(slurm)
    next(worlds, None)


def drain(slurm: SlurmCluster, nodes: Sequence[str]) -> None:
    slurm.run("scontrol", "update", f"nodename={','.join(nodes)}", "state=drain", "reason=test")


def up(slurm: SlurmCluster) -> None:
    """Bring all drained nodes back, and wait until Slurm has heard of them."""
    if drained := [
        node for node, state in slurm.node_states().items() if state.startswith(("drain", "down"))
    ]:
        slurm.run("scontrol", "update", f"nodename={','.join(drained)}", "state=resume")
    slurm.wait(
        lambda: not any("*" in state for state in slurm.node_states().values()),
        "word from nodes",
        "slurmctld",
    )


def check_refused(world: World, words: str, *more: str) -> str:
    """`plan` and `run` say why nothing can start, with exit code 2, and begin nothing."""
    for command in ("plan", "run"):
        code, said = world.windrow(command, "workflow.yaml", "--on", "slurm", *more)
        assert code == 2, said
        assert re.search(words, said), said
    assert not list(world.folder.glob(".windrow/runs/*"))
    assert not world.left()
    return said


@pytest.mark.parametrize("drained", some(5, 2))
def test_the_default_strategy_finishes_on_the_nodes_that_are_up(
    world: World, slurm: SlurmCluster, drained: int
) -> None:
    """Sixteen tasks of a core would like eight nodes of two."""
    drain(slurm, slurm.nodes[:drained])
    world.write(fan())
    code, said = world.windrow("plan", "workflow.yaml", "--on", "slurm", "--json")
    assert code == 0, said
    plan = json.loads(said[said.index("{") :])
    assert all(
        job["nodes"] <= 8 - drained and job["expected_wait_s"] is not None
        for job in plan["jobs_now"]
    )
    code, said = world.run()
    assert code == 0, said
    world.check_complete(tasks=16)


def test_where_all_is_drained_nothing_is_begun(world: World, slurm: SlurmCluster) -> None:
    drain(slurm, slurm.nodes)
    world.write(fan())
    check_refused(
        world, r"all 8 nodes of partition main are down, drained or reserved.*; use another queue"
    )
    code, said = world.windrow("forecast", "--on", "slurm")
    assert code == 0, said
    assert "0 usable nodes" in said


def test_tasks_wider_than_what_is_up_are_refused(world: World, slurm: SlurmCluster) -> None:
    drain(slurm, slurm.nodes[:4])
    world.write(fan(width=1, nodes=6))
    check_refused(
        world, "task t0 needs 6 nodes, but only 4 of the 8 nodes of slurm can be used now"
    )


def test_a_partition_that_is_down_is_refused_and_another_of_the_shell_is_used(
    world: World, slurm: SlurmCluster
) -> None:
    slurm.run("scontrol", "update", "partition=main", "state=down")
    world.write(fan(width=2))
    check_refused(world, r"partition main is down \(State=DOWN\)")
    world.env["SBATCH_PARTITION"] = "small"
    code, said = world.run()
    assert code == 0, said
    assert "partition small (from SBATCH_PARTITION)" in said
    world.check_complete(tasks=2)
    ids = [job["id"] for job in world.status()["jobs"]]
    assert "Partition=small" in slurm.run("scontrol", "show", "job", ids[0])


def test_a_controller_that_is_down_before_anything_was_begun(
    world: World, slurm: SlurmCluster
) -> None:
    world.write(fan())
    slurm.stop_controller()
    try:
        check_refused_without_queue(world)
    finally:
        slurm.start_controller()


def check_refused_without_queue(world: World) -> None:
    for words in (
        ("plan", "workflow.yaml", "--on", "slurm"),
        ("run", "workflow.yaml", "--on", "slurm"),
    ):
        code, said = world.windrow(*words)
        assert (code, "the queue slurm does not answer" in said) == (2, True), said
    code, said = world.windrow("forecast", "--on", "slurm")
    assert (code, "the queue slurm does not answer" in said) == (2, True), said
    assert not list(world.folder.glob(".windrow/runs/*"))


def busy(slurm: SlurmCluster) -> str:
    """A job of others that holds all nodes."""
    options = ("--nodes=8", "--exclusive", "--time=10", "--output=/dev/null", "--chdir=/")
    other = slurm.run("sbatch", "--parsable", *options, "--wrap=exec sleep 600").strip()
    slurm.wait(
        lambda: slurm.run("squeue", "-h", "-j", other, "-o", "%T").strip() == "RUNNING",
        "it",
        "slurmctld",
    )
    return other


def reasons(world: World) -> list[str]:
    return [job["reason"] for job in world.status()["jobs"]]


def test_why_a_job_waits_is_told_and_that_a_held_one_never_starts(
    world: World, slurm: SlurmCluster
) -> None:
    world.write(fan())
    other = busy(slurm)
    code, said = world.run("--detach", "--strategy", "one-job")
    assert code == 0, said
    world.wait_for(lambda: world.events() >= 3 and reasons(world) == ["Resources"])
    assert "the nodes that it needs are busy (Resources)" in world.windrow("status")[1]
    (job,) = (job["id"] for job in world.status()["jobs"])
    slurm.run("scontrol", "hold", job)
    world.wait_for(
        lambda: any(
            "nothing of this run can start" in words for words in world.status()["warnings"]
        )
    )
    for words in (("status",), ("explain", "0"), ("explain", "t0")):
        assert "(JobHeld" in world.windrow(*words)[1]
    world.wait_for(lambda: "nothing of this run can start" in (world.latest.log).read_text())
    slurm.run("scontrol", "release", job)
    slurm.run("scancel", other)
    world.wait_for(lambda: world.status()["state"] == "complete")
    world.check_complete(tasks=16)


def test_nodes_that_go_while_a_job_waits_for_them(world: World, slurm: SlurmCluster) -> None:
    """The run warns; stopped and resumed, it is cut for the nodes that are left."""
    world.write(fan())
    other = busy(slurm)
    assert world.run("--detach", "--strategy", "giant")[0] == 0
    world.wait_for(lambda: world.events() >= 3 and reasons(world) == ["Resources"])
    drain(slurm, slurm.nodes[:3])
    slurm.run("scancel", other)
    world.wait_for(
        lambda: any("down, drained or reserved" in words for words in world.status()["warnings"])
    )
    assert world.windrow("cancel")[0] == 0
    code, said = world.windrow("resume")
    assert code == 0, said
    world.check_complete(tasks=16)
    assert [job["nodes"] for job in world.status()["jobs"]] == [8, 5]


def test_a_run_stays_in_the_partition_in_which_it_began(world: World, slurm: SlurmCluster) -> None:
    """Begun where SBATCH_PARTITION was set, stopped, and resumed from a shell without it."""
    world.write(fan(width=2))
    other = busy(slurm)
    world.env["SBATCH_PARTITION"] = "small"
    assert world.run("--detach", "--strategy", "one-job")[0] == 0
    world.wait_for(lambda: world.events() >= 3)
    assert world.windrow("cancel")[0] == 0
    del world.env["SBATCH_PARTITION"]
    slurm.run("scancel", other)
    code, said = world.windrow("resume")
    assert code == 0, said
    world.check_complete(tasks=2)
    for job in world.status()["jobs"]:
        assert "Partition=small" in slurm.run("scontrol", "show", "job", job["id"])


def test_the_commands_of_a_plan_can_be_pasted(world: World, slurm: SlurmCluster) -> None:
    """However long their lines are, and although nobody says how wide the paper is."""
    deep = World(world.folder / ("x" * 100), world.state, on="slurm", env=dict(world.env))
    deep.write(fan(width=1))
    code, said = deep.windrow("plan", "workflow.yaml", "--on", "slurm")
    assert code == 0, said
    command = said[said.index("sbatch --parsable") :].replace("--chdir=", "--test-only --chdir=", 1)
    assert len(command.splitlines()[0]) > 200
    done = subprocess.run(
        ["sh", "-c", command], env=slurm.env, capture_output=True, text=True, check=False
    )
    assert "unrecognized" not in done.stderr
    assert "to start at" in done.stderr


def test_a_qos_of_the_shell_limits_the_time(
    accounted: World, slurm_with_accounting: SlurmCluster
) -> None:
    slurm, user = slurm_with_accounting, slurm_with_accounting.place.user
    if "express" not in slurm.run("sacctmgr", "-n", "-P", "show", "qos", "format=Name").split():
        slurm.run("sacctmgr", "-i", "add", "qos", "express", "MaxWall=00:03:00")
        slurm.run("sacctmgr", "-i", "modify", "user", user, "set", "qos+=express")
    accounted.env["SBATCH_QOS"] = "express"
    accounted.write(fan(width=1, runtime="4m"))
    check_refused(accounted, "needs 4.2 min, but slurm allows a job at most 3.0 min")
    accounted.write(fan(width=2))
    code, said = accounted.run("--strategy", "one-job")
    assert code == 0, said
    assert "qos express (from SBATCH_QOS)" in said
    accounted.check_complete(tasks=2)


def test_a_wrong_account_or_qos_is_refused_with_those_that_there_are(accounted: World) -> None:
    accounted.write(fan(width=1))
    for setting, words in (("account", "Invalid account"), ("qos", "Invalid qos")):
        (accounted.folder / "windrow.toml").write_text(f'[queues.slurm]\n{setting} = "nosuch"\n')
        said = check_refused(accounted, f"Slurm accepts no job with {setting}=nosuch.*{words}")
        assert re.search(r"you may use the accounts science \(QOS .*normal", said)


def test_an_ordinary_user_on_a_cluster_with_drained_nodes(
    slurm: SlurmCluster, world: World
) -> None:
    """Root may do what others may not, so once it is somebody else: the default strategy, from plan
    to report."""
    if os.getuid() != 0:
        pytest.skip("this test runs as an ordinary user as it is, and so do the others")
    python = python_for_all(slurm.env)
    drain(slurm, slurm.nodes[:2])
    with tempfile.TemporaryDirectory(prefix="windrow-nobody-", dir="/tmp") as name:
        home = Path(name)
        copy_compiled(home / "cache")
        (home / "workflow.yaml").write_text(fan())
        subprocess.run(["chown", "-R", NOBODY, name], check=True)
        env = {
            **slurm.env,
            "HOME": name,
            "USER": NOBODY,
            "WINDROW_CACHE": f"{name}/cache",
            **python_path(),
        }
        for words in (
            ("plan", "workflow.yaml", "--on", "slurm"),
            ("run", "workflow.yaml", "--on", "slurm"),
            ("status",),
        ):
            command = [*as_nobody(), python, "-P", "-m", "windrow.cli.main", *words]
            done = subprocess.run(
                command, cwd=name, env=env, capture_output=True, text=True, check=False, timeout=300
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        assert "fan-1: complete" in done.stdout
        assert len((home / "ran").read_text().split()) == 16
        assert (home / "ran").owner() == NOBODY


def copy_compiled(cache: Path) -> None:
    """What has been compiled of these kernels, into a cache of somebody else."""
    if compiled := cache_folder():
        shutil.copytree(compiled, cache / "kernels" / Path(compiled).name)
