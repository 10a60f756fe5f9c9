"""Data on the disks of nodes: what a journal tells of it, in numbers worked out by hand; and what
older ones do not."""

from __future__ import annotations

from typing import Any

from tests.unit.report import told_runs as run

from windrow.agent.event_file import AttemptFinished, OutputsCommitted, decode, encode
from windrow.model import File, Task, Workflow
from windrow.model.attempt import Attempt, Moved
from windrow.report.run.page import run_page
from windrow.story import events as e
from windrow.story.figures import RecordedRun
from windrow.story.journal import Record
from windrow.story.node_files import RoleData, data_by_role, space_on_nodes
from windrow.story.translate import from_agent
from windrow.strategies import JobPlan

WORKFLOW = Workflow.from_tasks(
    "toy",
    [
        Task("a0", 10.0, kind="a", inputs=("ref",), outputs=("m0",)),
        Task("a1", 10.0, kind="a", inputs=("ref",), outputs=("m1",)),
        Task("b0", 10.0, kind="b", inputs=("m0",), outputs=("r0",), parents=("a0",)),
        Task("b1", 10.0, kind="b", inputs=("m1",), outputs=("r1",), parents=("a1",)),
    ],
    [File(name) for name in ("ref", "m0", "m1", "r0", "r1")],
)


def finished(
    at_s: float, task: int, begun_s: float, size: int, local: str, *moved: tuple[str, str, int]
) -> Record:
    """As an agent's file and the journal have it."""
    told = tuple(Moved(*one) for one in moved)
    made = Attempt(
        task,
        1,
        cpu_s=0.1,
        sizes=(size,),
        local=(local,) if local else (),
        moved=told,
        begun=begun_s,
    )
    written = AttemptFinished(at_s, made)
    found = from_agent(0, decode(encode(written).encode()))
    assert found is not None
    return found


def two_nodes(*, job: int = 0) -> list[Record]:
    """Task b1 runs on the other node than a1, whose output has to come there through the shared
    files."""
    begun = Record(e.RunBegan(1000))
    hosts: dict[str, Any] = {"hosts": ["n0", "n1"]}
    committed = from_agent(job, OutputsCommitted(1033.0, 1, ("m1",)))
    assert committed is not None
    return [
        begun,
        run.planned(1000, JobPlan((0, 1, 2, 3), 2, 60, 120)),
        run.submitted(1005, 0),
        Record(e.JobStarted(1015, 0), hosts),
        run.task_started(1020, 0, 0, 0),
        run.task_started(1020, 0, 1, 1),
        finished(1030, 0, 1020, 10, "m0", ("ref", "home", 100)),
        run.task_started(1031, 0, 2, 0),
        finished(1032, 1, 1020, 20, "m1", ("ref", "home", 40), ("ref", "nodes", 60)),
        committed,
        run.task_started(1033, 0, 3, 0),
        finished(1040, 2, 1031, 5, "", ("m0", "hit", 10), ("r0", "commit", 5)),
        finished(1050, 3, 1033, 7, "", ("m1", "home", 20), ("r1", "commit", 7)),
        run.ended(1060, 0),
    ]


def told(records: list[Record]) -> RecordedRun:
    return run.told(WORKFLOW, records, until_s=1060, state="complete")


def test_links_roles_and_hits() -> None:
    assert data_by_role(told(two_nodes()).story) == [
        RoleData("endpoint", committed_bytes=12),
        RoleData(
            "pipeline",
            home_bytes=20,
            hit_bytes=10,
            stayed_bytes=30,
            committed_bytes=20,
            brought=1,
            hits=1,
        ),
        RoleData("batch", home_bytes=140, nodes_bytes=60, brought=2),
    ]


def test_space_on_each_node_over_time() -> None:
    """What was brought or committed is there until the end; m0, which was on its node alone, until
    b0 has read it."""
    assert space_on_nodes(told(two_nodes())) == {
        "n0": [(20, 110), (31, 115), (33, 142), (40, 132), (60, 0)],
        "n1": [(20, 120), (60, 0)],
    }
    running = run.told(WORKFLOW, two_nodes()[:7], until_s=1031)
    assert space_on_nodes(running) == {"n0": [(20, 110), (31, 110)]}


def test_the_page_shows_it_once_there_is_any() -> None:
    page = run_page(told(two_nodes()))
    assert "Data on nodes" in page
    assert "1 hit of 2" in page
    assert "At most: n0 142 B, n1 120 B." in page
