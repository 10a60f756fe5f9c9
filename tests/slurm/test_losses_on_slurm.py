"""Jobs lost on a real Slurm through nobody's fault: a node that is cut off, preemption, jobs
started out of order."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.other_user import NOBODY, as_nobody, python_for_all, python_path
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.failing import chokes, right
from tests.slurm.settings import Settings
from tests.slurm.test_slurm_sites import copy_compiled, drain, restored, up
from tests.slurm.test_survival import slurm_world, started
from tests.survival.test_out_of_order import InTwo
from tests.survival.world import World

from windrow.agent.event_file import AgentStarted, AttemptSaved, AttemptStarted, Tail
from windrow.agent.folder import RunFolder
from windrow.app.execute import drive
from windrow.forecast.base import AtOnce
from windrow.formats import read_runnable
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.terms import Terms
from windrow.model.site import Site
from windrow.queues.slurm.queue import SlurmQueue
from windrow.story.journal import RunJournal
from windrow.story.story import RunStory
from windrow.strategies import Work, whole_seconds

TASKS = 8
full = pytest.mark.skipif(
    not os.environ.get("WINDROW_FULL"), reason="make prove runs it: WINDROW_FULL=1"
)


def logging_fan() -> str:
    """A workflow file: tasks side by side, each of which writes when it starts, and when it ends,
    once it may."""
    command = "echo S t{i} >> log; until [ -e go ]; do sleep 0.1; done; echo E t{i} >> log"
    return (
        f'name: fan\ntasks:\n  - {{id: "t{{i}}", matrix: {{i: 1..{TASKS}}}, command: '
        f'"{command}", runtime: 30s}}\n'
    )


@pytest.fixture
def ordinary(slurm: SlurmCluster, tmp_path: Path) -> Iterator[World]:
    """A world of a user who is not root, where the tests are."""
    yield from ordinary_world(slurm, tmp_path)


def ordinary_world(slurm: SlurmCluster, folder: Path) -> Iterator[World]:
    """The same on any Slurm."""
    slurm.clear()
    if os.getuid() != 0:
        yield from slurm_world(slurm, folder)
        return
    python = python_for_all(slurm.env)
    with tempfile.TemporaryDirectory(prefix="windrow-nobody-", dir="/tmp") as name:
        home = Path(name)
        env = {**slurm.env, "HOME": name, "USER": NOBODY, **python_path()}
        world = World(
            home / "here",
            home / "elsewhere",
            on="slurm",
            env=env,
            python=python,
            prefix=tuple(as_nobody()),
        )
        copy_compiled(home / "cache")
        world.env["WINDROW_CACHE"] = f"{name}/cache"
        world.left = lambda: slurm.run("squeue", "--noheader", "--format=%i").split()
        subprocess.run(["chown", "-R", NOBODY, name], check=True)
        yield world
        world.clean()
        slurm.clear()


def starts_of(world: World, job: int) -> list[AttemptStarted]:
    return [
        word
        for word in Tail(world.latest.folder.events(job)).read()
        if isinstance(word, AttemptStarted)
    ]


def test_a_job_whose_node_is_cut_off_begins_nothing_more(
    ordinary: World, slurm: SlurmCluster
) -> None:
    """The daemon of its node dies alone: to Slurm the job failed, but its agent lives. Run by an
    ordinary user."""
    world = ordinary
    (world.folder / "workflow.yaml").write_text(logging_fan())
    words = ("run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job", "--max-nodes", "1")
    with world.start(*words) as process:
        world.wait_for((world.folder / "log").exists)
        node = started(world).hosts[0]
        slurm.kill_daemon(node)
        try:
            world.wait_for(world.latest.folder.events(1).exists)  # its replacement has nodes
            (world.folder / "go").touch()
            out, err = process.communicate(timeout=240)
        finally:
            slurm.start_node(node)
    assert process.returncode == 0, out + err
    assert "killed: a node failed" in out
    log = Counter((world.folder / "log").read_text().splitlines())
    ids = [f"t{i}" for i in range(1, TASKS + 1)]
    assert all(log[f"E {name}"] >= 1 for name in ids)
    twice = [name for name in ids if log[f"S {name}"] > 1]
    assert len(twice) <= 2, f"only what ran when the job was given up may run twice: {log}"
    assert max(log.values()) <= 2
    first = min(start.at for start in starts_of(world, 1))
    assert max(start.at for start in starts_of(world, 0)) <= first, (
        "it began tasks after its replacement had"
    )
    status = world.status()
    assert [job["cause"] for job in status["jobs"]] == ["node failed", None]
    print(
        f"{sum(log[f'S {n}'] for n in ids)} starts, {sum(log[f'E {n}'] for n in ids)} ends of "
        f"{TASKS} tasks"
    )


def test_the_job_that_has_nodes_takes_the_work(slurm: SlurmCluster, tmp_path: Path) -> None:
    """Two jobs are submitted together, the first is held: the second does the work of both."""
    worlds = restored(slurm, tmp_path)
    world = next(worlds)
    rows = [
        "  - {id: a, command: echo a >> ran, runtime: 2s}",
        "  - {id: b, command: echo b >> ran, runtime: 2s}",
    ]
    rows += ["  - {id: c, command: echo c >> ran, runtime: 2s, after: [a, b]}"]
    world.write("\n".join(["name: in-two", "tasks:", *rows, ""]))
    manager = manager_of(world, slurm)
    drain(slurm, slurm.nodes)
    manager.begin()
    first, second = (manager.placed[n].id for n in (0, 1))
    assert first is not None
    assert second is not None
    slurm.run("scontrol", "hold", first)
    up(slurm)
    drive(manager)
    assert manager.core.is_complete
    assert sorted((world.folder / "ran").read_text().split()) == ["a", "b", "c"]
    story = RunStory.of(
        manager.core.work.workflow, [record for _, record in manager.journal.records()]
    )
    assert (story.jobs[0].taken_by, story.jobs[0].queue_started_s, story.jobs[1].taken_by) == (
        1,
        None,
        None,
    )
    assert slurm.run("squeue", "-h", "-t", "all", "-j", first, "-o", "%T").strip() == "CANCELLED"
    manager.journal.close()
    next(worlds, None)


def manager_of(world: World, slurm: SlurmCluster) -> Manager:
    """A manager of a run of its own, with a strategy that no command has."""
    runnable = read_runnable(world.folder / "workflow.yaml")
    folder = RunFolder.at(world.folder / "run")
    folder.path.mkdir(mode=0o700)
    queue = SlurmQueue(env={**slurm.env, **python_path()})
    workflow, limits = runnable.workflow, queue.limits()
    terms = Terms(overhead_s=15, patience=PATIENCE)
    return Manager(
        folder=folder,
        journal=RunJournal.create(
            folder.path / "journal.sqlite", {"uid": f"two{time.time_ns() % 10**9}"}
        ),
        core=Core(
            Work(workflow, whole_seconds(workflow), Site.of(limits.nodes, limits.shape)), terms
        ),
        outposts=[Outpost(queue, forecasters=[AtOnce()])],
        strategy=InTwo(),
        dispatch=Dispatch(folder, runnable, f"two{time.time_ns() % 10**9}", "two-1"),
    )


@pytest.fixture(scope="module")
def preempting() -> Iterator[SlurmCluster]:
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=3, preempts=True)) as cluster:
        yield cluster


def preempt(cluster: SlurmCluster) -> None:
    """A job that needs all nodes takes them, and is gone."""
    options = (
        "--partition=high",
        "--nodes=3",
        "--exclusive",
        "--time=1",
        "--output=/dev/null",
        "--chdir=/",
    )
    cluster.run("sbatch", "--wait", *options, "--wrap=true", timeout_s=120)


def preempted(
    world: World, slurm: SlurmCluster, process: subprocess.Popen[str], times: int
) -> list[str | None]:
    """Each of the first jobs is preempted as soon as it has started; then the task may end. What
    ended the jobs."""
    for count in range(1, times + 1):
        world.wait_for(
            lambda: len(list(world.folder.glob(".windrow/runs/*/jobs/*/events"))) == count  # noqa: B023
        )
        preempt(slurm)
    (world.folder / "go").touch()
    ends_well_with(world, process)
    return [job["cause"] for job in world.status()["jobs"]]


def patient(world: World) -> None:
    command = "until [ -e go ]; do sleep 0.1; done; echo t >> ran"
    world.write(f'name: patient\ntasks:\n  - {{id: t, command: "{command}", runtime: 5s}}\n')


def test_five_preemptions_in_a_row_do_not_end_a_run(
    preempting: SlurmCluster, tmp_path: Path
) -> None:
    worlds = slurm_world(preempting, tmp_path)
    world = next(worlds)
    (world.folder / "windrow.toml").write_text('[queues.slurm]\npartition = "low"\n')
    patient(world)
    with world.start("run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job") as process:
        assert preempted(world, preempting, process, 5) == ["preempted"] * 5 + [None]
    next(worlds, None)


SPOT = """
[sites.spot]
queue = "slurm"
partition = "low"
price = 1
preempted_every = "2h"

[sites.safe]
queue = "slurm"
partition = "main"
price = 5
speed = 0.1
"""


def test_a_task_that_was_preempted_twice_leaves_the_spot_partition(
    preempting: SlurmCluster, tmp_path: Path
) -> None:
    worlds = slurm_world(preempting, tmp_path)
    world = next(worlds)
    (world.folder / "windrow.toml").write_text(SPOT)
    patient(world)
    words = ("workflow.yaml", "--on", "spot,safe", "--strategy", "one-job", "--json")
    plan = json.loads(world.windrow("plan", *words)[1])
    assert 0 < plan["jobs_now"][0]["risk"] < 0.01
    assert [way["sites"] for way in plan["frontier"]] == [["spot"], ["safe"]]
    with world.start("run", *words[:-1]) as process:
        assert preempted(world, preempting, process, 2) == ["preempted", "preempted", None]
    assert [job["site"] for job in world.status()["jobs"]] == ["spot", "spot", "safe"]
    next(worlds, None)


def ends_well_with(world: World, process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    world.check_complete(tasks=1)


# Counts in tenths of a second, from its checkpoint on, which it writes when it is asked to.
COUNTER = """\
import os, pathlib, signal, sys, time
state, leaves, asked = pathlib.Path("state-1"), sys.argv[2] == "leaves", []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
at = int(state.read_text()) if state.exists() else 0
with open("log", "a") as log:
    print("from", at, "attempt", os.environ["WINDROW_ATTEMPT"], file=log)
while at < int(sys.argv[1]):
    time.sleep(0.1)
    at += 1
    pathlib.Path("at").write_text(f"{at} {time.time()}")
    if asked:
        pathlib.Path("state-1.new").write_text(str(at))
        os.replace("state-1.new", state)
        asked.clear()
        if leaves:
            sys.exit(75)
pathlib.Path("done").write_text(str(at))
"""


def counter(world: World, count: int, how: str, more: str = "") -> None:
    """A task that counts, in a partition whose jobs have a minute, and a notice of eight
    seconds."""
    (world.folder / "windrow.toml").write_text('[queues.slurm]\npartition = "spot"\n')
    (world.folder / "counter.py").write_text(COUNTER)
    world.write(
        f"""name: counter
tasks:
  - id: t
    command: [python3, counter.py, "{count}", {how}]
    outputs: done
    runtime: {count // 10}s
    checkpoint: {{files: state-*, signal: USR1, notice: 6s}}
{more}"""
    )


@contextmanager
def told_by(cluster: SlurmCluster, who: str) -> Iterator[None]:
    """Preempted jobs get the signal that they asked for, or their steps hear of the grace."""
    conf = cluster.place.path("slurm.conf")
    before = conf.read_text()
    if who == "signal":
        conf.write_text(
            before.replace("SchedulerParameters=", "SchedulerParameters=preempt_send_user_signal,")
        )
        cluster.run("scontrol", "reconfigure")
    yield
    if who == "signal":
        conf.write_text(before)
        cluster.run("scontrol", "reconfigure")


NOTICES = [
    pytest.param(how, nodes, who, marks=[full] * (nodes > 1 or how == "stays"))
    for how in ("leaves", "stays")
    for nodes in (1, 3)
    for who in ("grace", "signal")
]


@pytest.mark.parametrize(("how", "nodes", "who"), NOTICES)
def test_a_notice_of_preemption_reaches_the_task(
    preempting: SlurmCluster, tmp_path: Path, how: str, nodes: int, who: str
) -> None:
    """GraceTime tells steps only, or with preempt_send_user_signal the agent alone, on one node and
    on three.

    Either way it hears of it, and the task keeps what it did.
    """
    worlds = slurm_world(preempting, tmp_path)
    world = next(worlds)
    counter(world, 80 if how == "leaves" else 250, how, "    nodes: 3\n" if nodes > 1 else "")
    with world.start("run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job") as process:
        world.wait_for((world.folder / "at").exists)
        with told_by(preempting, who):
            preempt(preempting)
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, out + err
    first, second = (world.folder / "log").read_text().splitlines()
    kept = int(second.removeprefix("from ").removesuffix(" attempt 2"))
    assert first == "from 0 attempt 1"
    assert kept > 0
    words = Tail(world.latest.folder.events(0)).read()
    saved = [word for word in words if isinstance(word, AttemptSaved)]
    assert saved[-1].ended
    assert saved[-1].done_s == pytest.approx(kept / 10, abs=2.5)
    assert world.status()["jobs"][0]["cause"] == "preempted"
    assert not list(world.folder.glob("state-*"))
    next(worlds, None)


@full
def test_a_task_crosses_five_jobs_by_its_checkpoints(
    preempting: SlurmCluster, tmp_path: Path
) -> None:
    worlds = slurm_world(preempting, tmp_path)
    world = next(worlds)
    counter(world, 2000, "stays")
    code, said = world.windrow(
        "run", "workflow.yaml", "--on", "slurm", "--strategy", "one-job", timeout_s=600
    )
    assert code == 0, said
    assert (world.folder / "done").read_text() == "2000"
    starts = [int(line.split()[1]) for line in (world.folder / "log").read_text().splitlines()]
    assert len(starts) >= 5
    assert starts == sorted(set(starts)), "each continues where the one before had come"


def test_the_node_of_a_task_dies_and_its_replica_ends_the_run(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    """A sample of `bench/copies.py`."""
    worlds = slurm_world(slurm, tmp_path)
    world = next(worlds)
    *rows, last = chokes(1, 2, 0.2, 4.0).splitlines()
    world.write("\n".join([*rows, f"{last.removesuffix('}')}, replicas: 2}}", ""]))
    with world.start(
        "run", "workflow.yaml", "--on", "slurm", "--strategy", "individual"
    ) as process:
        world.wait_for(lambda: list(world.folder.glob(".windrow/runs/*/jobs/3/events")))
        words = Tail(world.latest.folder.events(2)).read()
        node = next(word.hosts[0] for word in words if isinstance(word, AgentStarted))
        slurm.kill_node(node)
        slurm.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=dead")
        try:
            out, err = process.communicate(timeout=240)
        finally:
            slurm.start_node(node)
    assert process.returncode == 0, out + err
    assert right(world.folder, 1, 2)
    assert [job["copies"] for job in world.status()["jobs"][:4]] == [[], [], [], ["c0"]]
    next(worlds, None)
