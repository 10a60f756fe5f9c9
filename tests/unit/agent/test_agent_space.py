"""An agent whose job has a limit on space, and tasks that find none."""

from __future__ import annotations

from tests.unit.agent.jobs import Run, shell, task

from windrow.agent.core import AgentCore
from windrow.agent.event_file import AttemptLost, TaskDeclined
from windrow.agent.job_file import JobFile
from windrow.model.attempt import Attempt
from windrow.storage.admission import Admission
from windrow.storage.sequence import Demand, FileUse


def chain(limit: int) -> JobFile:
    """Two pipelines of two tasks each, whose first makes 10 bytes for its second, which makes 1."""
    files = [
        *(FileUse(f"big-{n}", 10, n, (n + 2,), keep=False) for n in (0, 1)),
        *(FileUse(f"small-{n}", 1, n + 2) for n in (0, 1)),
    ]
    space = Admission(Demand({0: [], 1: [], 2: [0], 3: [1]}, files), limit).record()
    tasks = [task(n, "x", children=(n + 2,), retries=1) for n in (0, 1)]
    tasks += [task(n, "x", parents=(n - 2,)) for n in (2, 3)]
    return JobFile("r", 0, 4, 1, None, 1000, tuple(tasks), space=tuple(space))


def test_a_pipeline_waits_for_the_space_of_another() -> None:
    core = AgentCore(chain(20), 0.0)
    assert [start.spec.task for start in core.start(1.0)] == [0]
    core.ended(Attempt(0, 1, 0, None, "", sizes=(10,)), 2.0)
    assert [start.spec.task for start in core.start(2.0)] == [2]
    core.ended(Attempt(2, 1, 0, None, "", sizes=(1,)), 3.0)
    assert core.freed == ["big-0"]
    assert [start.spec.task for start in core.start(3.0)] == [1]


def test_a_file_larger_than_expected_leaves_no_room() -> None:
    core = AgentCore(chain(12), 0.0)
    core.start(1.0)
    core.ended(Attempt(0, 1, 0, None, "", sizes=(12,)), 2.0)
    assert core.start(2.0) == []
    assert core.is_done
    declined = [record for record in core.take_records() if isinstance(record, TaskDeclined)]
    assert {record.task for record in declined} == {1, 2, 3}
    assert {record.why for record in declined} == {
        "the limit on space leaves no room for its files"
    }


def test_a_task_that_finds_no_space_has_not_failed(run: Run) -> None:
    full = shell(0, "echo 'cp: error writing: No space left on device' >&2; exit 1", retries=3)
    code, said = run.run(full, shell(1, "true"))
    assert code == 0, said
    assert [lost.cause for lost in run.of(AttemptLost)] == ["space"]
    assert run.finished() == [1]
