"""Real runs on the queue of this machine, broken in every way that a machine offers, and
resumed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.examples import FUZZ, some
from tests.survival.added import grow
from tests.survival.world import RACE, World, braid, check_race

from windrow.agent.event_file import AgentStarted, Tail
from windrow.app.execute import managed
from windrow.app.runs import RunView
from windrow.errors import UserError
from windrow.queues.local.queue import LocalQueue

pytestmark = pytest.mark.slow

STRATEGIES = ("individual", "glume", "level-by-level")


def queue_of(world: World) -> LocalQueue:
    return LocalQueue(Path(world.env["XDG_STATE_HOME"]) / "windrow", nodes=4)


@pytest.mark.parametrize("seed", range(max(1, 3 * FUZZ)))
def test_the_manager_is_killed_again_and_again(world: World, seed: int) -> None:
    """Two dozen real kills over the seeds, each a few records after the one before, or right behind
    one."""
    chance = random.Random(seed)
    world.write(braid(work_s=0.5 if FUZZ else 0.2))  # side by side, managers take longer to begin
    words: tuple[str, ...] = ("run", "workflow.yaml", "--strategy", STRATEGIES[seed % 3])
    kills = 0
    while kills < 8 and not world.kill_after(
        words, chance.randint(1, 3), chance.choice([0.0, 0.02, 0.1])
    ):
        words = ("resume",)
        kills += 1
    assert kills > 2
    code, said = world.windrow("resume")
    assert code == 0, said
    world.check_complete()


def test_the_folder_of_a_run_is_deleted_under_its_manager(world: World) -> None:
    """It is said, and a new run of the same workflow waits until the job is over."""
    world.write(braid(gated=True))
    with world.start("run", "workflow.yaml", "--strategy", "giant") as process:
        world.wait_for(lambda: world.at_gate() or process.poll() is not None)
        shutil.rmtree(world.latest.path)
        out, err = process.communicate(timeout=90)
    assert process.returncode == 1, out + err
    assert "Traceback" not in err, err
    assert "deleted or" in err
    code, said = world.windrow("run", "workflow.yaml")
    assert (code, "was deleted, may have unfinished jobs" in said) == (2, True), said
    world.open_gate()
    world.check_nothing_left()
    code, said = world.windrow("run", "workflow.yaml")
    assert code == 0, said
    assert world.windrow("runs")[1].count("complete") == 1


@pytest.mark.parametrize("strategy", some("giant", "individual"))
def test_one_of_two_jobs_hangs(world: World, strategy: str) -> None:
    check_race(world, "--strategy", strategy)


def test_the_winner_stops_the_other_though_the_manager_is_gone(world: World) -> None:
    world.write(RACE)
    with world.start("run", "workflow.yaml", "--copies", "2") as process:
        world.wait_for(lambda: (world.folder / "both.txt").exists() or process.poll() is not None)
        process.kill()
        process.communicate()
    world.check_nothing_left()
    assert world.windrow("resume")[0] == 0
    assert "superseded" in world.windrow("explain", "hangs", "--all")[1]


def test_tasks_that_cannot_be_copied_are_named(world: World) -> None:
    world.write(braid())
    code, said = world.run("--copies", "2")
    assert code == 2
    assert "8 of 8 tasks run in one job only, despite --copies (first: first)" in said
    assert "raise --cap" in world.run("--copies", "3", "--cap", "2")[1]
    assert (
        "despite --reliability and --speculate"
        in world.run("--reliability", "0.9", "--speculate")[1]
    )
    assert (
        "--speculate needs 2 jobs at a time, but the cap is 1; raise --cap"
        in world.run("--speculate", "--cap", "1")[1]
    )


def test_a_task_that_is_late_gets_a_further_attempt(world: World) -> None:
    """The first attempt hangs; the price is said before, and what it took afterwards."""
    hangs = "'if mkdir once 2> /dev/null; then sleep 100; fi; date > {outputs}'"
    world.write(
        f"name: late\ntasks:\n  - {{id: hangs, command: {hangs}, outputs: [made.txt], runtime: "
        f"1s}}\n"
    )
    code, said = world.run("--speculate")
    assert code == 0, said
    assert "a task that is late gets another attempt (--speculate)" in said
    world.check_nothing_left()
    assert "copies of hangs (late, expected to take 1 s)" in world.windrow("explain", "hangs")[1]
    assert json.loads(world.windrow("report", "--json")[1])["copies_node_s"] > 10


def test_jobs_go_on_without_their_manager(world: World) -> None:
    """Killed when the first task is done; its job does the rest, and the next manager does nothing
    again."""
    world.write(braid(work_s=0.2))
    with world.start("run", "workflow.yaml", "--strategy", "one-job") as process:
        world.wait_for(lambda: world.has_run("first"))
        process.kill()
        process.communicate()
    world.wait_for(lambda: world.has_run("last"))
    assert RunView(world.latest).state == "interrupted"
    assert world.windrow("resume")[0] == 0
    world.check_complete()


def running_agent(world: World) -> int:
    """The process of an agent whose job runs."""
    jobs = world.latest.folder.jobs
    for events in sorted(jobs.glob("*/events")):
        words = Tail(events).read()
        if words and isinstance(words[0], AgentStarted) and "job-ended" not in events.read_text():
            return words[0].pid
    raise AssertionError("no agent runs")


def test_the_agent_is_killed(world: World) -> None:
    world.write(braid(gated=True))
    with world.start("run", "workflow.yaml", "--strategy", "one-job") as process:
        world.wait_for(world.at_gate)
        os.kill(running_agent(world), signal.SIGKILL)
        world.open_gate()
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    assert "killed" in out
    world.check_complete()


def test_an_agent_killed_together_with_its_guard(world: World) -> None:
    """Both at once: what they leave behind is the queue's to end."""
    world.write(braid(gated=True))
    with world.start("run", "workflow.yaml", "--strategy", "one-job") as process:
        world.wait_for(world.at_gate)
        agent = running_agent(world)
        guard = int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])
        for pid in (guard, agent):
            os.kill(pid, signal.SIGKILL)
        world.open_gate()
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    world.check_complete()


def test_a_job_is_cancelled_by_hand(world: World) -> None:
    world.write(braid(gated=True))
    with world.start("run", "workflow.yaml", "--strategy", "one-job") as process:
        world.wait_for(world.at_gate)
        queue_of(world).cancel(world.left())
        world.open_gate()
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    assert "cancelled by someone else" in out
    world.check_complete()


def test_a_run_that_is_cancelled_leaves_nothing_and_goes_on(world: World) -> None:
    world.write(braid(gated=True))
    with world.start("run", "workflow.yaml") as process:
        world.wait_for(world.at_gate)
        assert world.windrow("cancel")[0] == 0
        process.communicate(timeout=200)
    world.check_nothing_left()
    world.check_nothing_twice()
    assert RunView(world.latest).state == "stopped"
    world.open_gate()
    assert world.windrow("resume")[0] == 0
    world.check_complete()


FORGETFUL = """
name: forgetful
tasks:
  - {id: forgets, command: "test ! -e mended || touch made; echo forgets >> ran", outputs: made, runtime: 1s}
  - {id: reads, command: "cat made; echo reads >> ran", inputs: made, runtime: 1s}
  - {id: other, command: "echo other >> ran", runtime: 1s}
"""  # noqa: E501


def test_an_output_is_missing(world: World) -> None:
    world.write(FORGETFUL)
    code, said = world.run()
    assert code == 1
    assert f"exit code 0, but its output {world.folder}/made is missing" in said
    world.check_nothing_left()
    assert sorted(world.ran()) == ["forgets", "other"]
    (world.folder / "mended").touch()
    assert world.windrow("resume")[0] == 0
    assert sorted(world.ran()) == [
        "forgets",
        "forgets",
        "other",
        "reads",
    ]  # the failed one, and what was left
    world.check_nothing_left()


TIDIED = """
name: tidied
tasks:
  - {id: source, command: "echo 1 > s; echo source >> ran", outputs: s, runtime: 1s}
  - {id: middle, command: "cat s > m; echo middle >> ran", inputs: s, outputs: m, runtime: 1s}
  - {id: side, command: "cat s > x; echo side >> ran", inputs: s, outputs: x, runtime: 1s}
  - {id: last, command: "test -e mended && cat m > l && echo last >> ran", inputs: m, outputs: l, runtime: 1s}
"""  # noqa: E501


@pytest.mark.parametrize("strategy", some("individual", "glume"))
def test_outputs_are_deleted_and_made_again_where_they_are_needed(
    world: World, strategy: str
) -> None:
    """`side` is done and nobody needs what it made; `last` needs `middle`, and that needs
    `source`."""
    world.write(TIDIED)
    assert world.run("--strategy", strategy)[0] == 1
    for name in ("s", "m", "x"):
        (world.folder / name).unlink()
    code, said = world.windrow("resume")
    assert code == 1
    assert "task middle runs again: its output m is gone, and last needs it" in said
    assert "task source runs again: its output s is gone, and middle needs it" in said
    assert "task side runs again" not in said
    (world.folder / "mended").touch()
    code, said = world.windrow("resume")
    assert code == 0, said
    assert "runs again" not in said
    assert Counter(world.ran()) == {"source": 2, "middle": 2, "side": 1, "last": 1}
    assert not (world.folder / "x").exists()
    world.check_nothing_left()
    code, said = world.windrow("explain", "middle")
    assert "runs again: its output m is gone" in said
    assert "attempt 2" in said


def test_two_managers(world: World) -> None:
    world.write(braid(gated=True))
    with world.start("run", "workflow.yaml") as process:
        world.wait_for(world.at_gate)
        with pytest.raises(
            UserError, match=rf"braid-1 is being managed by process {process.pid} on"
        ):
            managed(world.latest, wait_s=0.2).__enter__()
        world.open_gate()
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    world.check_complete()


@pytest.mark.parametrize("seed", range(max(1, 2 * FUZZ)))
def test_whoever_continues_a_changed_workflow_is_killed_again_and_again(
    world: World, seed: int
) -> None:
    """The file changes in mid-run; each `resume` is killed at a random moment. What was kept has
    run once."""
    chance = random.Random(seed)
    text = braid(work_s=0.3)
    world.write(text)
    with world.start("run", "workflow.yaml", "--strategy", "one-job") as process:
        world.wait_for(lambda: world.has_run("up-0"))
        process.kill()
    world.write(
        text.replace(
            "sleep 0.3; echo $WINDROW_TASK > last.out", "sleep 0.31; echo $WINDROW_TASK > last.out"
        )
    )
    for _ in range(5):
        with world.start("resume") as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=chance.uniform(0.2, 3.0))
            process.kill()
    code, said = world.windrow("resume")
    assert code == 0, said
    world.check_nothing_left()
    told = RunView(world.latest)
    assert told.state == "complete"
    assert told.facts.continues == "braid-1"
    ran = Counter(world.ran())
    ids = told.runnable.workflow.ids
    kept = [ids[number] for number, task in enumerate(told.story.tasks) if task.kept is not None]
    assert "first" in kept
    assert all(ran[name] == 1 for name in kept)
    assert set(ran) == set(ids)


@pytest.mark.parametrize("kill_s", some(0.1, None, 0.0, 0.3))
def test_tasks_join_a_run_while_it_goes_on_and_when_it_is_over(
    world: World, kill_s: float | None
) -> None:
    world.write(braid(gated=True))
    grow(world, kill_s=kill_s)
