"""A task that runs out of memory gets more, or a larger node, whoever says that it did."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.agent.jobs import task
from tests.unit.manager.test_core import planned

from windrow.agent import event_file
from windrow.agent.core import AgentCore
from windrow.agent.event_file import AttemptFailed, AttemptLost
from windrow.agent.job_file import JobFile
from windrow.manager.core import Core
from windrow.manager.losses import PATIENCE
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Task, Workflow
from windrow.model.attempt import Attempt, Leave, Leaving
from windrow.model.cause import Cause
from windrow.model.site import NodeKind, Site
from windrow.queues.port import JobState, JobStatus
from windrow.story.events import Event, JobKilled, JobStarted, TaskDropped, TaskStarted
from windrow.story.translate import ending, from_agent
from windrow.strategies import JobPlan, Work

KINDS = (NodeKind(NodeShape(4, 2000), 4), NodeKind(NodeShape(8, 6000), 2))


def mixed(*memory: int) -> Core:
    """Independent tasks that state so much memory, on small nodes and large ones."""
    tasks = [Task(f"t{n}", 10, memory_bytes=size) for n, size in enumerate(memory)]
    workflow = Workflow.from_tasks("w", tasks)
    work = Work(workflow, np.full(len(memory), 10), Site(name="s", kinds=KINDS))
    return Core(work, Terms(margin=1.0, round_s=1, patience=PATIENCE))


def run_out(core: Core, *tasks: int, by: str = "job") -> None:
    """These tasks, in a job of their own, run out of memory: each alone, or the whole job."""
    number = core.submitted
    core.handle(planned(1, JobPlan(tasks, 1, 10, 10)))
    core.handle(JobStarted(1, number))
    for one in tasks:
        core.handle(TaskStarted(2, number, one))
    dropped: list[Event] = [TaskDropped(3, number, one, lacks_memory=True) for one in tasks]
    if by == "job":
        dropped = []
    for event in [*dropped, JobKilled(4, number, cause=Cause.MEMORY)]:
        core.handle(event)
        core.check()


@pytest.mark.parametrize("by", ["job", "task"])
def test_what_ran_out_of_memory_gets_more_up_to_the_largest_node(by: str) -> None:
    core = mixed(1500, 0, 100)
    had = []
    for _ in range(3):
        run_out(core, 0, 1, by=by)
        had.append(core.work.workflow.memory_bytes.tolist())
    # one that states nothing had what was left of a node: it gets all of it, then a larger one
    assert had == [[3000, 2000, 100], [6000, 4000, 100], [6000, 6000, 100]]
    shape, asked = core.work.job_shape(np.array([0]))
    assert (shape.memory_bytes, asked.memory_bytes) == (6000, 6000)
    assert "3 jobs in a row ran out of memory" in core.trouble


def test_a_task_of_whole_nodes_has_all_of_their_memory_already() -> None:
    tasks = [Task("a", 10, nodes=2)]
    work = Work(Workflow.from_tasks("w", tasks), np.array([10]), Site(name="s", kinds=KINDS))
    core = Core(work, Terms(margin=1.0, round_s=1, patience=PATIENCE))
    run_out(core, 0)
    assert core.work.workflow.memory_bytes.tolist() == [0]


def ended_for_want_of_memory(most_bytes: int) -> list[event_file.Record]:
    spec = task(0, "x", memory_bytes=100, most_memory_bytes=most_bytes, retries=0)
    core = AgentCore(JobFile("r", 0, 1, 1, 200, None, (spec,)), 0.0)
    core.start(1.0)
    core.take_records()
    core.ended(Attempt(0, 1, None, 9, "it ran out of memory", cause=Cause.MEMORY), 5.0)
    return core.take_records()


def test_an_agent_leaves_to_another_job_what_can_have_more_memory() -> None:
    (lost,) = ended_for_want_of_memory(300)
    assert isinstance(lost, AttemptLost)
    assert lost.cause == Cause.MEMORY
    heard = from_agent(7, lost)
    assert heard is not None
    assert heard.event == TaskDropped(5, 7, 0, lacks_memory=True)
    (failed,) = ended_for_want_of_memory(0)  # it has what the largest node has
    assert isinstance(failed, AttemptFailed)


@pytest.mark.parametrize(
    "printed",
    [
        "slurmstepd: error: StepId=31.batch exceeded memory limit (2663 > 2000), being killed\n",
        "slurmstepd-n1: error: Exceeded job memory limit",
        "x\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch cgroup.\ny\n",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have ",
        "=>> PBS: job killed: mem 2097152kb exceeded limit 1048576kb",
        "Out Of Memory",
    ],
)
def test_who_prints_that_memory_ran_out_is_believed(printed: str) -> None:
    status = JobStatus("17", JobState.ENDED, 1.0, 2.0, 30.5, 137)

    def told(last_word: Leaving | None) -> JobKilled:
        event = ending(3, status, 50.0, was_asked=False, last_word=last_word, printed=printed).event
        assert isinstance(event, JobKilled)
        return event

    assert told(None).cause is Cause.MEMORY
    assert told(None).why.startswith("it ran out of memory: ")
    assert told(Leaving(Leave.SIGNAL, "SIGTERM")).cause is Cause.AGENT  # who said more


def test_what_ran_out_of_memory_gets_twice_what_it_used_if_that_is_more() -> None:
    core = mixed(500, 0, 900)
    core.handle(planned(1, JobPlan((0, 1, 2), 1, 10, 10)))
    core.handle(JobStarted(1, 0))
    for one, used_bytes in enumerate((1200, 700, 300)):
        core.handle(TaskStarted(2, 0, one))
        core.handle(TaskDropped(3, 0, one, lacks_memory=True, used_bytes=used_bytes))
        core.check()
    assert core.work.workflow.memory_bytes.tolist() == [2400, 1400, 1800]


def test_what_a_lost_attempt_used_comes_from_its_agent_to_the_core() -> None:
    record = AttemptLost(5.0, 0, "it ran out of memory", Cause.MEMORY, 700)
    heard = from_agent(7, record)
    assert heard is not None
    assert heard.event == TaskDropped(5, 7, 0, lacks_memory=True, used_bytes=700)
    assert heard.attempt is not None
    assert heard.attempt.peak_bytes == 700
