"""Signals for some tasks of a node and not for others, through the pipe that leads to it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import is_alive, read_pid, wait_until

from windrow.agent.order import Order
from windrow.agent.remote import RemoteNode
from windrow.model.attempt import Attempt

pytestmark = pytest.mark.slow

SLEEPER = "echo $$ > {pid}; exec sleep 600"
STUBBORN = "trap '' TERM; echo $$ > {pid}; while :; do sleep 0.05; done"


@pytest.fixture
def node() -> Iterator[RemoteNode]:
    """A node that is this machine."""
    made = RemoteNode("here", (sys.executable, "-P", "-m", "windrow.agent.node"))
    yield made
    made.close()
    gather(made, lambda _: made.is_lost)


def gather(node: RemoteNode, is_enough: Callable[[list[Attempt]], object]) -> list[Attempt]:
    """What the node says until that is enough."""
    results: list[Attempt] = []

    def enough() -> bool:
        results.extend(node.collect())
        return bool(is_enough(results))

    wait_until(enough)
    return results


def order(task: int, folder: Path, script: str, **more: Any) -> Order:
    text = script.format(pid=folder / f"{task}.pid")
    return Order(
        task, 1, ("/bin/sh", "-c", text), str(folder), {}, str(folder / f"{task}.out"), **more
    )


def pids(folder: Path, *tasks: int) -> dict[int, int]:
    return {task: read_pid(folder / f"{task}.pid") for task in tasks}


def test_only_the_tasks_that_are_meant_hear_a_signal(node: RemoteNode, tmp_path: Path) -> None:
    for task in (3, 4, 5):
        node.start(order(task, tmp_path, STUBBORN if task == 4 else SLEEPER))
    running = pids(tmp_path, 3, 4, 5)
    node.signal(signal.SIGTERM, [3, 4, 99])
    (told,) = gather(node, bool)
    assert (told.task, told.signal, told.why) == (3, signal.SIGTERM, "killed by signal SIGTERM")
    assert [is_alive(running[task]) for task in (3, 4, 5)] == [False, True, True]
    node.signal(signal.SIGKILL, [4])
    (killed,) = gather(node, bool)
    assert (killed.task, killed.signal) == (4, signal.SIGKILL)
    assert node.running == {5}
    assert is_alive(running[5])


def test_without_names_all_tasks_hear_it(node: RemoteNode, tmp_path: Path) -> None:
    for task in (1, 2):
        node.start(order(task, tmp_path, SLEEPER))
    pids(tmp_path, 1, 2)
    node.signal(signal.SIGTERM)
    ended = gather(node, lambda results: len(results) == 2)
    assert {(result.task, result.signal) for result in ended} == {
        (1, signal.SIGTERM),
        (2, signal.SIGTERM),
    }
    assert node.is_idle


def test_a_task_that_waits_for_its_inputs_ends_without_having_begun(
    node: RemoteNode, tmp_path: Path
) -> None:
    late = tmp_path / "late"
    for task in (1, 2):
        node.start(order(task, tmp_path, "echo ran", inputs=(str(late),), patience_s=60.0))
    node.signal(signal.SIGTERM, [1])
    (stopped,) = gather(node, bool)
    assert (stopped.task, stopped.exit, stopped.signal) == (1, None, signal.SIGTERM)
    assert stopped.why == "stopped before it started"
    late.touch()
    (ran,) = gather(node, bool)
    assert (ran.task, ran.why) == (2, "")
    assert not (tmp_path / "1.out").exists()
