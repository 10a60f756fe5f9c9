"""Tasks are held to the memory and the cores that they state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.agent.holding import Cores, Memory, held_bytes
from windrow.agent.order import Order
from windrow.agent.runner import Runner
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.model.size import format_memory

MIB = 1 << 20
TAKES = "import sys, time; taken = bytearray(int(sys.argv[1])); print(len(taken), flush=True); time.sleep(60)"  # noqa: E501
HALF = f"""import os, sys, time
if os.fork(): pass
taken = bytearray({40 * MIB})
print(len(taken), flush=True)
time.sleep(60)
"""


def order(folder: Path, memory_bytes: int, *command: str, held: bool = True) -> Order:
    return Order(
        task=1,
        attempt=1,
        command=command,
        workdir=str(folder),
        env={},
        out=str(folder / "out"),
        memory_bytes=memory_bytes,
        is_held=held,
    )


def result_of(runner: Runner) -> Attempt:
    found: list[Attempt] = []

    def has_ended() -> bool:
        found.extend(runner.collect())
        return bool(found)

    wait_until(has_ended)
    return found[0]


@pytest.mark.slow
def test_a_task_that_takes_more_than_it_states_is_killed(tmp_path: Path) -> None:
    runner = Runner(os.environ)
    runner.start(order(tmp_path, 20 * MIB, sys.executable, "-c", TAKES, str(90 * MIB)))
    ended = result_of(runner)
    assert ended.cause == Cause.MEMORY
    assert "and states 20 MiB: it was killed" in ended.why
    assert ended.why.startswith("it took ")


@pytest.mark.slow
def test_a_task_within_what_it_states_goes_on(tmp_path: Path) -> None:
    runner = Runner(os.environ)
    code = TAKES.replace("time.sleep(60)", "time.sleep(5)")
    runner.start(order(tmp_path, 200 * MIB, sys.executable, "-c", code, str(90 * MIB)))
    assert result_of(runner).why == ""


@pytest.mark.slow
def test_who_is_not_held_may_take_what_there_is(tmp_path: Path) -> None:
    runner = Runner(os.environ)
    code = TAKES.replace("time.sleep(60)", "time.sleep(5)")
    one = order(tmp_path, 20 * MIB, sys.executable, "-c", code, str(90 * MIB), held=False)
    runner.start(one)
    assert runner.look_again_s() is None
    assert result_of(runner).why == ""


@pytest.mark.slow
def test_all_processes_of_a_group_count_together() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HALF], stdout=subprocess.PIPE, process_group=0
    ) as group:
        assert group.stdout is not None
        for _ in range(2):
            group.stdout.readline()
        taken = held_bytes({group.pid: 50 * MIB})[group.pid]
        assert 80 * MIB < taken < 160 * MIB, format_memory(taken)
        assert held_bytes({group.pid: 500 * MIB}) == {}
        memory = Memory()
        memory.begin(group.pid, 50 * MIB)
        assert memory.look() == [], "once is not enough"
        assert memory.look() == [group.pid]
        assert memory.look() == [], "it is told once"
        assert memory.end(group.pid) > 80 * MIB
        os.killpg(group.pid, 9)


def test_tasks_have_cores_of_their_own_if_the_job_is_bound() -> None:
    own = sorted(os.sched_getaffinity(0))
    cores = Cores({"SLURM_CPUS_ON_NODE": str(len(own))})
    with cores.bound(1, 1):
        assert os.sched_getaffinity(0) == {own[0]}
    assert os.sched_getaffinity(0) == set(own)
    with cores.bound(2, len(own)):  # more than are free: it is not bound
        assert os.sched_getaffinity(0) == set(own)
    cores.end(1)
    with cores.bound(2, len(own)):
        assert os.sched_getaffinity(0) == set(own)


def test_nothing_is_bound_if_it_is_not_known_which_cores_the_job_has() -> None:
    own = os.sched_getaffinity(0)
    with Cores({"SLURM_CPUS_ON_NODE": str(len(own) + 1)}).bound(1, 1):
        assert os.sched_getaffinity(0) == own
    with Cores({}).bound(1, 1):
        assert os.sched_getaffinity(0) == own
