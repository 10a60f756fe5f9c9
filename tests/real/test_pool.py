"""A real pool on this machine: real processes, real shells that submit, real kill -9.

Each task writes a line when it starts and one when it ends: the file of these lines is the witness
for all that the pool claims.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from tests.real.works import IS_FULL
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.settings import Settings
from tests.waiting import children, wait_until

from windrow.cli.main import main
from windrow.model import Task, Workflow
from windrow.pool import events as e
from windrow.pool.folder import PoolFolder
from windrow.pool.journal import PoolJournal
from windrow.pool.view import PoolView
from windrow.recipes import generate_workflow
from windrow.records.lock import holder_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl")

WINDROW = [sys.executable, "-P", "-m", "windrow.cli.main"]
SUBMITTER = """
import sys
from windrow.cli.main import main
for path in sys.argv[2:]:
    assert main(["submit", path, "--pool", sys.argv[1]]) == 0
"""
STEP = """\
echo "start $WINDROW_RUN $WINDROW_TASK $WINDROW_ATTEMPT $(date +%s.%N)" >> "$STAMPS"
sleep $1
echo "end $WINDROW_RUN $WINDROW_TASK $WINDROW_ATTEMPT $(date +%s.%N)" >> "$STAMPS"
"""
LIMIT_S = 90.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """One line of the witness."""

    what: str
    number: int
    task: str
    attempt: int
    at_s: float


class World:
    """A folder with a pool, and shells around it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pool = PoolFolder(root / "pools" / "lab")
        self.stamps_file = root / "stamps"
        self.env = {
            **os.environ,
            "WINDROW_HISTORY": str(root / "history.sqlite"),
            "XDG_STATE_HOME": str(root / "state"),
            "STAMPS": str(self.stamps_file),
        }
        (root / "step.sh").write_text(STEP)
        self.servers: list[subprocess.Popen[str]] = []

    def windrow(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As a shell would run it, but in this process, which has loaded all that it needs."""
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.root),
            mock.patch.dict(os.environ, self.env, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def shell(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """In a process of its own."""
        command = [*WINDROW, *arguments]
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def inside_an_allocation(self, hosts: int, cores: int) -> None:
        """From now on servers find themselves inside a Slurm job; srun starts here what it should
        start there."""
        tools = self.root / "bin"
        tools.mkdir()
        names = " ".join(f"n{k}" for k in range(hosts))
        (tools / "scontrol").write_text(f"#!/bin/sh\nprintf '%s\\n' {names}\n")
        (tools / "srun").write_text(
            '#!/bin/sh\nwhile case "$1" in --*) ;; *) false;; esac; do shift; done\nexec "$@"\n'
        )
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.env |= {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "n[0-9]",
            "SLURM_CPUS_ON_NODE": str(cores),
        }

    def serve(self, *options: str) -> subprocess.Popen[str]:
        """Start a server and wait until it serves."""
        before_s = time.time()
        command = [*WINDROW, "pool", str(self.pool.path), *options]
        server = subprocess.Popen(
            command, cwd=self.root, env=self.env, stderr=subprocess.PIPE, text=True
        )
        self.servers.append(server)
        self.until(
            lambda: (
                self.pool.journal.exists()
                and PoolView(self.pool).facts.get("opened_s", 0) >= before_s
            )
        )
        return server

    def until(self, holds: Callable[[], object]) -> None:
        wait_until(holds, LIMIT_S)

    def write(self, workflow: Workflow, name: str, sleep_s: float) -> Path:
        """The workflow as a file whose tasks write stamps."""
        tasks = [
            {"id": task.id, "command": ["sh", "step.sh", str(sleep_s)], "after": list(task.parents)}
            for task in workflow
        ]
        path = self.root / f"{name}.yaml"
        path.write_text(json.dumps({"name": name, "tasks": tasks}))  # JSON is YAML
        return path

    def stamps(self) -> list[Stamp]:
        found = []
        for line in self.stamps_file.read_text().splitlines() if self.stamps_file.exists() else ():
            what, run, task, attempt, at_s = line.split()
            found.append(Stamp(what, int(run.rpartition("/")[2]), task, int(attempt), float(at_s)))
        return found

    def outcomes(self) -> dict[int, str]:
        return {number: w.outcome for number, w in PoolView(self.pool).story.workflows.items()}

    def wait_for(self, workflows: int) -> None:
        self.until(lambda: sum(bool(outcome) for outcome in self.outcomes().values()) == workflows)

    def finished(self) -> set[tuple[int, int]]:
        events = [event for _, event in PoolJournal.open(self.pool.journal).records()]
        return {
            (event.number, event.task) for event in events if isinstance(event, e.PoolTaskFinished)
        }

    def clean(self) -> None:
        for server in self.servers:
            with contextlib.suppress(ProcessLookupError):
                server.terminate()
            server.communicate(timeout=LIMIT_S)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.clean()


def most_at_once(stamps: list[Stamp]) -> int:
    """The most tasks between start and end at any time, one slot each."""
    changes = sorted((s.at_s, 1 if s.what == "start" else -1) for s in stamps)
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def check_precedence(workflow: Workflow, number: int, stamps: list[Stamp]) -> None:
    ended = {s.task: s.at_s for s in stamps if s.number == number and s.what == "end"}
    first = {s.task: s.at_s for s in reversed(stamps) if s.number == number and s.what == "start"}
    for task in workflow:
        assert all(ended[parent] <= first[task.id] for parent in task.parents)


@pytest.mark.parametrize("policy", ["bf", "sr"] if IS_FULL else ["bf"])
def test_many_shells_submit_and_every_task_runs_once(world: World, policy: str) -> None:
    drawn = {}
    for k in range(24):
        recipe = ("montage", "inspiral", "sipht")[k % 3]
        drawn[f"w{k}"] = generate_workflow(recipe, tasks=20, seed=k)
    paths = [str(world.write(workflow, name, 0.02)) for name, workflow in drawn.items()]
    world.serve("--policy", policy, "--nodes", "2", "--cores", "3")
    command = [sys.executable, "-c", SUBMITTER, str(world.pool.path)]
    shells = [
        subprocess.Popen([*command, *paths[k::4]], env=world.env, stdout=subprocess.DEVNULL)
        for k in range(4)
    ]
    assert [shell.wait(timeout=LIMIT_S) for shell in shells] == [0] * 4
    world.wait_for(24)
    stamps = world.stamps()
    story = PoolView(world.pool).story
    assert world.outcomes() == dict.fromkeys(range(1, 25), "complete")
    assert most_at_once(stamps) <= 6
    for number, told in story.workflows.items():
        workflow = drawn[told.name]
        for what in ("start", "end"):
            count = Counter(s.task for s in stamps if s.number == number and s.what == what)
            assert count == Counter(workflow.ids)
        check_precedence(workflow, number, stamps)
        assert told.slowdown is not None
        assert told.response_s is not None
        assert told.response_s >= max(told.took_s.values())
    shown = json.loads(world.windrow("status", "--pool", str(world.pool.path), "--json").stdout)
    assert shown["policy"] == policy
    assert shown["slots"] == {"total": 6, "busy": 0, "reserved_idle": 0}
    assert len(shown["workflows"]) == 24


@pytest.mark.parametrize("victim", ["server", "guardian", "both"] if IS_FULL else ["both"])
def test_killed_at_any_time_it_goes_on_and_repeats_nothing(world: World, victim: str) -> None:
    workflow = generate_workflow("montage", tasks=20, seed=1)
    paths = [world.write(workflow, f"w{k}", 0.15) for k in range(4)]
    server = world.serve("--cores", "4")
    # All four at once, and nobody waits for them: on a busy machine the first could else be done
    # before the last comes.
    with ThreadPoolExecutor(4) as shells:
        submits = [
            shells.submit(world.shell, "submit", str(path), "--pool", str(world.pool.path))
            for path in paths
        ]
        world.until(lambda: len(world.finished()) > 12)
        inner = children(server.pid)
        for pid in {"server": inner, "guardian": [server.pid], "both": [server.pid, *inner]}[
            victim
        ]:
            os.kill(pid, signal.SIGKILL)
    assert [submit.result().returncode for submit in submits] == [0] * 4
    world.until(lambda: holder_of(world.pool.lock) is None)
    finished = world.finished()
    assert 0 < len(finished) < 80
    world.serve()
    opened_s = PoolView(world.pool).facts["opened_s"]
    world.wait_for(4)
    assert set(world.outcomes().values()) == {"complete"}
    attempts: defaultdict[tuple[int, str], list[Stamp]] = defaultdict(list)
    for stamp in world.stamps():
        attempts[stamp.number, stamp.task].append(stamp)
    for number in range(1, 5):
        for task, name in enumerate(workflow.ids):
            stamps = attempts[number, name]
            starts = [s for s in stamps if s.what == "start"]
            if (number, task) in finished:
                assert len(starts) == 1
            # Whatever ran when the pool was killed was dead before anything started again.
            old = [s for s in stamps if s.what == "end" and s.attempt < starts[-1].attempt]
            assert all(s.at_s < opened_s for s in old)
            assert sum(s.what == "end" and s.attempt == starts[-1].attempt for s in stamps) == 1
        check_precedence(workflow, number, world.stamps())


def test_interrupted_it_ends_its_tasks_and_can_go_on(world: World) -> None:
    workflow = generate_workflow("montage", tasks=20, seed=2)
    server = world.serve("--cores", "4", "--policy", "fes:1")
    path = world.write(workflow, "w", 0.2)
    assert world.windrow("submit", str(path), "--pool", str(world.pool.path)).returncode == 0
    world.until(lambda: len(world.finished()) > 3)
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=LIMIT_S) == 0
    before = world.stamps()
    story = PoolView(world.pool).story
    assert story.closed is not None
    assert story.busy == 0
    time.sleep(0.4)
    assert world.stamps() == before  # nothing went on behind its back
    finished = world.finished()
    second = world.serve()
    world.wait_for(1)
    assert PoolView(world.pool).story.opened is not None
    assert PoolView(world.pool).settings is not None
    assert (
        json.loads(world.windrow("status", "--pool", str(world.pool.path), "--json").stdout)[
            "policy"
        ]
        == "fes:1"
    )
    starts = Counter(s.task for s in world.stamps() if s.what == "start")
    assert all(starts[workflow.ids[task]] == 1 for _, task in finished)
    assert world.windrow("pool", str(world.pool.path), "--stop").returncode == 0
    assert second.wait(timeout=LIMIT_S) == 0


def test_a_cancelled_workflow_is_stopped_and_makes_room(world: World) -> None:
    long = world.write(generate_workflow("montage", tasks=20, seed=3), "long", 600)
    short = world.write(generate_workflow("montage", tasks=15, seed=3), "short", 0.01)
    pool = str(world.pool.path)
    world.serve("--cores", "2")
    assert world.windrow("submit", str(long), "--pool", pool).returncode == 0
    world.until(lambda: len([s for s in world.stamps() if s.what == "start"]) == 2)
    answer = world.windrow("submit", str(short), "--pool", pool, "--json")
    assert json.loads(answer.stdout)["workflow"] == 2
    assert world.windrow("pool", pool, "--cancel", "1").returncode == 0
    world.wait_for(2)
    assert world.outcomes() == {1: "cancelled", 2: "complete"}
    assert [s for s in world.stamps() if s.what == "end" and s.number == 1] == []
    assert world.windrow("pool", pool, "--cancel", "9").returncode == 2


@pytest.mark.parametrize("name", ["{outputs}", "out/a.txt"] if IS_FULL else ["out/a.txt"])
@pytest.mark.parametrize("end", ["cancelled", "complete"])
def test_what_was_half_written_when_a_pool_was_killed_does_not_stay(
    world: World, name: str, end: str
) -> None:
    command = (
        f"if test ! -e go; then echo half > {name}; touch begun; sleep 600; fi; echo whole > {name}"
    )
    tasks = [{"id": "t", "command": command, "outputs": "out/a.txt"}]
    (world.root / "w.yaml").write_text(json.dumps({"name": "w", "tasks": tasks}))
    (world.root / "out").mkdir()
    (world.root / "out" / "a.txt").write_text("old")
    pool = str(world.pool.path)
    server = world.serve("--cores", "2")
    assert world.windrow("submit", "w.yaml", "--pool", pool).returncode == 0
    world.until((world.root / "begun").exists)
    for pid in [server.pid, *children(server.pid)]:
        os.kill(pid, signal.SIGKILL)
    world.until(lambda: holder_of(world.pool.lock) is None)
    if end == "cancelled":
        assert world.windrow("pool", pool, "--cancel", "1").returncode == 0
    else:
        (world.root / "go").touch()
    world.serve()
    world.wait_for(1)
    assert world.outcomes() == {1: end}
    kept = {"cancelled": [], "complete": ["a.txt.before-1"]}[end]  # what no run made is kept
    left = ["a.txt", *kept]
    world.until(lambda: sorted(p.name for p in (world.root / "out").iterdir()) == left)
    assert [(world.root / "out" / name).read_text() for name in kept] == ["old"] * len(kept)
    assert (world.root / "out" / "a.txt").read_text() == (
        "old" if end == "cancelled" else "whole\n"
    )


def test_failures_are_tried_again_and_block_only_what_depends_on_them(world: World) -> None:
    flaky = 'test "$WINDROW_ATTEMPT" -ge 3'
    tasks = [
        {"id": "flaky", "command": flaky, "retries": 2},
        {"id": "after", "command": "touch after.done", "after": ["flaky"]},
        {"id": "liar", "command": "true", "outputs": ["never.made"]},
        {"id": "blocked", "command": "touch blocked.done", "inputs": ["never.made"]},
    ]
    path = world.root / "mixed.yaml"
    path.write_text(json.dumps({"name": "mixed", "tasks": tasks}))
    world.serve("--cores", "2")
    answer = world.windrow("submit", str(path), "--pool", str(world.pool.path), "--wait", "--json")
    assert answer.returncode == 1
    told = json.loads(answer.stdout)
    assert told["state"] == "failed"
    assert told["tasks"] == {"total": 4, "finished": 2, "running": 0, "failed": 1}
    assert "never.made" in told["why"]
    assert (world.root / "after.done").exists()
    assert not (world.root / "blocked.done").exists()


def test_bad_workflows_are_refused_when_they_are_submitted(world: World) -> None:
    pool = str(world.pool.path)
    path = world.root / "bad.yaml"
    path.write_text(json.dumps({"name": "b", "tasks": [{"id": "a", "command": "true"}]}))
    missing = world.windrow("submit", str(path), "--pool", "nowhere")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    world.serve("--cores", "2", "--memory", "1GB")
    for task, said in (
        ({"id": "a", "command": "true", "cores": 3}, "3 cores"),
        ({"id": "a", "command": "true", "memory": "2GB"}, "1.9 GiB of memory"),
        ({"id": "a", "command": "true", "inputs": ["not.there"]}, "not.there"),
        ({"id": "a", "command": "true", "after": ["a"]}, "a"),
        ({"id": "a"}, "command"),
    ):
        path.write_text(json.dumps({"name": "b", "tasks": [task]}))
        answer = world.windrow("submit", str(path), "--pool", pool)
        assert answer.returncode == 2, answer
        assert said in answer.stderr
        assert answer.stderr.count("\n") == 1
    assert list(world.pool.workflows.iterdir()) == []
    second = world.windrow("pool", pool)
    assert second.returncode == 2
    assert "already running" in second.stderr


def test_what_is_submitted_while_nobody_serves_is_served_later(world: World) -> None:
    pool = str(world.pool.path)
    assert world.windrow("pool", pool, "--cores", "2", "--detach").returncode == 0
    assert world.windrow("pool", pool, "--stop").returncode == 0
    path = world.write(generate_workflow("montage", tasks=15, seed=1), "later", 0.01)
    answer = world.windrow("submit", str(path), "--pool", pool)
    assert answer.returncode == 0
    assert "not running" in answer.stderr
    assert "just submitted" in world.windrow("status", "--pool", pool).stdout
    world.serve()
    world.wait_for(1)
    assert world.outcomes() == {1: "complete"}


def test_inside_an_allocation_it_uses_all_nodes_and_survives_the_loss_of_one(world: World) -> None:
    world.inside_an_allocation(hosts=3, cores=2)
    workflow = generate_workflow("montage", tasks=30, seed=5)
    path = world.write(workflow, "w", 0.2)
    server = world.serve("--policy", "bf")
    assert world.windrow("submit", str(path), "--pool", str(world.pool.path)).returncode == 0
    world.until(lambda: len(world.finished()) > 8)
    steps = [
        pid
        for inner in children(server.pid)
        for pid in children(inner)
        if b"agent.node" in command_of(pid)
    ]
    assert len(steps) == 2
    os.kill(steps[0], signal.SIGKILL)
    world.wait_for(1)
    story = PoolView(world.pool).story
    assert world.outcomes() == {1: "complete"}
    assert len(story.lost_hosts) == 1
    events = [event for _, event in PoolJournal.open(world.pool.journal).records()]
    assert {event.nodes[0] for event in events if isinstance(event, e.PoolTaskStarted)} == {0, 1, 2}
    assert Counter(
        event.task for event in events if isinstance(event, e.PoolTaskFinished)
    ) == Counter(range(len(workflow)))
    assert not any(isinstance(event, e.PoolTaskFailed) for event in events)
    check_precedence(workflow, 1, world.stamps())


def test_a_task_for_more_nodes_than_are_left_fails_and_holds_nobody_up(world: World) -> None:
    world.inside_an_allocation(hosts=2, cores=1)
    pool = str(world.pool.path)
    both = {"id": "both", "command": "true", "nodes": 2, "retries": 1}
    wide = world.root / "wide.yaml"
    wide.write_text(json.dumps({"name": "wide", "tasks": [both]}))
    narrow = world.write(
        Workflow.from_tasks("narrow", [Task("a", 1.0), Task("b", 1.0)]), "narrow", 0.1
    )
    server = world.serve("--policy", "bf")
    (step,) = [
        pid
        for inner in children(server.pid)
        for pid in children(inner)
        if b"agent.node" in command_of(pid)
    ]
    os.kill(step, signal.SIGKILL)
    world.until(lambda: PoolView(world.pool).story.lost_hosts)
    for path in (wide, narrow):
        assert world.windrow("submit", str(path), "--pool", pool).returncode == 0
    world.wait_for(2)
    assert world.outcomes() == {1: "failed", 2: "complete"}
    assert (
        PoolView(world.pool).story.workflows[1].why == "it needs more nodes than the pool has left"
    )


def test_inside_an_allocation_a_cancelled_workflow_is_stopped_on_every_node(world: World) -> None:
    world.inside_an_allocation(hosts=3, cores=2)
    pool = str(world.pool.path)
    long = world.write(
        Workflow.from_tasks("long", [Task(f"t{k}", 1.0) for k in range(8)]), "long", 600
    )
    short = world.write(
        Workflow.from_tasks("short", [Task(f"t{k}", 1.0) for k in range(6)]), "short", 0.01
    )
    world.serve("--policy", "bf")
    assert world.windrow("submit", str(long), "--pool", pool).returncode == 0
    world.until(lambda: len([s for s in world.stamps() if s.what == "start"]) == 6)
    assert world.windrow("submit", str(short), "--pool", pool).returncode == 0
    assert world.windrow("pool", pool, "--cancel", "1").returncode == 0
    world.wait_for(2)
    assert world.outcomes() == {1: "cancelled", 2: "complete"}
    events = [event for _, event in PoolJournal.open(world.pool.journal).records()]
    started = {
        event.task: event.nodes
        for event in events
        if isinstance(event, e.PoolTaskStarted) and event.number == 1
    }
    assert sorted(started.values()) == [(0,), (0,), (1,), (1,), (2,), (2,)]
    assert {event.task for event in events if isinstance(event, e.PoolTaskLost)} == set(started)
    assert not any(isinstance(event, e.PoolTaskFailed | e.NodeLost) for event in events)
    assert {s.number for s in world.stamps() if s.what == "end"} == {2}


@pytest.fixture
def slurm() -> Iterator[SlurmCluster]:
    if reason := missing(accounting=False):
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings()) as cluster:
        yield cluster


def test_inside_a_slurm_allocation_until_that_ends_and_then_in_the_next(
    world: World, slurm: SlurmCluster
) -> None:
    workflow = generate_workflow("montage", tasks=30, seed=6)
    path = world.write(workflow, "w", 0.3)
    pool = str(world.pool.path)
    world.env |= slurm.env
    command = shlex.join([*WINDROW, "pool", pool, "--policy", "sr"])
    options = (
        "--nodes=3",
        "--exclusive",
        "--mem=0",
        "--time=5",
        "--no-requeue",
        "--parsable",
        f"--chdir={world.root}",
    )

    def begin() -> str:
        before_s = time.time()
        wrap = (
            f"--wrap=exec env STAMPS={world.env['STAMPS']} "
            f"WINDROW_HISTORY={world.env['WINDROW_HISTORY']} {command}"
        )
        job = slurm.run("sbatch", *options, f"--output={world.root}/said", wrap).strip()
        world.until(
            lambda: (
                world.pool.journal.exists()
                and PoolView(world.pool).facts.get("opened_s", 0) >= before_s
            )
        )
        return job

    first = begin()
    assert world.windrow("submit", str(path), "--pool", pool).returncode == 0
    world.until(lambda: len(world.finished()) > 6)
    slurm.run("scancel", first)
    world.until(lambda: holder_of(world.pool.lock) is None)
    story = PoolView(world.pool).story
    assert story.closed is not None
    finished = world.finished()
    assert 6 < len(finished) < 30
    second = begin()
    world.wait_for(1)
    assert world.outcomes() == {1: "complete"}
    events = [event for _, event in PoolJournal.open(world.pool.journal).records()]
    assert not any(isinstance(event, e.PoolTaskFailed) for event in events)
    assert {event.nodes[0] for event in events if isinstance(event, e.PoolTaskStarted)} == {0, 1, 2}
    starts = Counter(s.task for s in world.stamps() if s.what == "start")
    assert all(starts[workflow.ids[task]] == 1 for _, task in finished)
    check_precedence(workflow, 1, world.stamps())
    assert world.windrow("pool", pool, "--stop").returncode == 0
    world.until(lambda: slurm.run("squeue", "--noheader", "--jobs", second) == "")


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
