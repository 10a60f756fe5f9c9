"""One task in two jobs, as agents see it: who may bring its outputs into place, who dies at what
step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.jobs import task
from tests.unit.agent.test_outputs import Crash, content, dying_at, order_for, write

from windrow.agent.claim import holder
from windrow.agent.core import AgentCore
from windrow.agent.event_file import AttemptFailed, AttemptLost, TaskDeclined
from windrow.agent.job_file import JobFile, read_job, write_job
from windrow.agent.order import Order
from windrow.agent.outputs import Outputs, clean_up, may_be_copied
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause

NAMES = ["a.txt", "deep/c.dir"]


def raced(folder: Path, attempt: int, job: int, life: int = 0) -> Order:
    return replace(
        order_for(folder, NAMES, attempt, elsewhere=True),
        commit=str(folder / f"claim.{life}"),
        holder=job,
    )


def run(order: Order) -> bool:
    """An attempt from its start to its end; whether it won."""
    outputs = begun(order)
    if not outputs.may_keep():
        outputs.discard()
        return False
    outputs.keep()
    return True


def begun(order: Order) -> Outputs:
    outputs = Outputs(order)
    outputs.prepare()
    for name, written in zip(NAMES, outputs.written, strict=True):
        write(Path(written), f"attempt {order.attempt}", is_folder=name.endswith("dir"))
    return outputs


def of_attempt(folder: Path, number: int) -> bool:
    text = f"attempt {number}"
    return [content(folder / name) for name in NAMES] == [text, f"dir:one={text},two={text}"]


def leftovers(folder: Path) -> list[str]:
    return [
        str(path)
        for pattern in ("**/.windrow-*", "**/*.windrow-old*")
        for path in folder.glob(pattern)
    ]


def test_two_attempts_at_the_same_time_and_one_commit(tmp_path: Path) -> None:
    slow = begun(raced(tmp_path, 1, job=4))
    assert run(
        raced(tmp_path, 2, job=5)
    )  # which throws away what an earlier attempt has, for it has lost
    assert slow.is_beaten
    assert slow.why_not_made(slow.written[0])
    assert not slow.may_keep()
    slow.discard()
    assert of_attempt(tmp_path, 2)
    assert holder(tmp_path / "claim.0") == 5
    assert not leftovers(tmp_path)


def test_a_job_that_failed_to_commit_gives_the_claim_back(tmp_path: Path) -> None:
    outputs = begun(raced(tmp_path, 1, job=4))
    assert outputs.may_keep()
    outputs.discard()
    assert holder(tmp_path / "claim.0") is None
    assert run(raced(tmp_path, 2, job=5))


def test_a_job_has_its_claim_in_its_next_attempt_too(tmp_path: Path) -> None:
    assert begun(raced(tmp_path, 1, job=4)).may_keep()  # and it is gone without a word
    assert run(raced(tmp_path, 2, job=4))
    assert of_attempt(tmp_path, 2)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("step", range(20))
def test_the_winner_dies_at_any_step_of_its_commit(
    tmp_path: Path, step: int, *, before: bool
) -> None:
    """Who runs meanwhile loses; whoever runs under the next name wins, and nothing of the others is
    left."""
    for name in NAMES if before else ():
        write(tmp_path / name, "old", is_folder=name.endswith("dir"))
    meanwhile = begun(raced(tmp_path, 2, job=5))
    dead = begun(raced(tmp_path, 1, job=4))
    with dying_at(step):
        try:
            assert dead.may_keep()
            dead.keep()
        except Crash:
            pass
        else:
            assert of_attempt(tmp_path, 1)
    assert not meanwhile.may_keep()
    meanwhile.discard()
    assert run(raced(tmp_path, 3, job=6, life=1))
    assert of_attempt(tmp_path, 3)
    clean_up([str(tmp_path / name) for name in NAMES], 3, is_done=True)
    assert of_attempt(tmp_path, 3)
    assert not leftovers(tmp_path)


def test_what_cannot_be_kept_apart_has_no_copies(tmp_path: Path) -> None:
    order = order_for(tmp_path, NAMES, 1, elsewhere=True)
    assert may_be_copied(order)
    assert not may_be_copied(replace(order, elsewhere=()))
    assert not may_be_copied(replace(order, outputs=()))
    assert not may_be_copied(replace(order, shared=order.outputs[:1]))
    assert not may_be_copied(replace(order, inputs=order.outputs[:1]))
    with pytest.raises(OSError, match="several jobs run it"):
        Outputs(
            replace(order, elsewhere=(), outputs=("/dev/null",), commit=str(tmp_path / "c"))
        ).prepare()


def racing(**more: object) -> AgentCore:
    """Two tasks, the first of which other jobs may have; it runs."""
    tasks = (task(0, "x", children=(1,), commit="0.0.0", **more), task(1, "x", parents=(0,)))
    core = AgentCore(JobFile("r", 0, 1, 1, None, None, tasks), 0.0)
    assert [start.spec.task for start in core.start(1.0)] == [0]
    core.take_records()
    return core


def test_what_another_has_done_first_is_stopped_and_what_waits_for_it_goes_on() -> None:
    core = racing()
    assert core.may_be_beaten
    core.done_elsewhere(0)
    assert core.beaten == {0}
    core.ended(Attempt(0, 1, None, 15, "killed by signal SIGTERM"), 5.0)
    assert core.take_records() == [
        AttemptLost(5.0, 0, "another attempt finished first", Cause.SUPERSEDED)
    ]
    assert [start.spec.task for start in core.start(5.0)] == [1]


def test_what_waits_for_a_task_that_was_superseded_hears_of_it_later() -> None:
    core = racing()
    core.ended(Attempt(0, 1, 0, None, "exit code 0, but late", cause=Cause.SUPERSEDED), 5.0)
    assert core.start(5.0) == []
    assert core.is_waiting_for_others
    core.done_elsewhere(0)
    assert [start.spec.task for start in core.start(6.0)] == [1]


def test_a_failure_here_is_not_the_end_of_the_task() -> None:
    core = racing(retries=1)
    core.ended(Attempt(0, 1, 1, None, "exit code 1"), 5.0)
    assert [start.attempt for start in core.start(5.0)] == [2]
    core.take_records()
    core.ended(Attempt(0, 2, 1, None, "exit code 1"), 6.0)
    failed, declined = core.take_records()
    assert isinstance(failed, AttemptFailed)
    assert not failed.final
    assert isinstance(declined, TaskDeclined)
    assert (declined.task, declined.has_failed) == (0, True)
    core.never(0, "it failed everywhere", 7.0)
    assert core.is_done


def test_a_job_file_without_copies_is_as_it_was(tmp_path: Path) -> None:
    plain, copied = task(0, "x"), task(1, "x", commit="1.0.0")
    write_job(tmp_path / "job.json", JobFile("r", 0, 1, 1, None, None, (plain, copied)))
    first, second = json.loads((tmp_path / "job.json").read_bytes())["tasks"]
    assert "commit" not in first
    assert second["commit"] == "1.0.0"
    assert read_job(tmp_path / "job.json").tasks == (plain, copied)
