"""What must leave a node, and when: the pure part, as the agent's core has it."""

from __future__ import annotations

import errno
from typing import Any

from tests.unit.agent.jobs import shell

from windrow.agent.core import AgentCore
from windrow.agent.event_file import AttemptStarted, CommitFailed, OutputsCommitted
from windrow.agent.job_file import JobFile
from windrow.agent.order import Committed
from windrow.model.attempt import Attempt

GB = 1_000_000_000


def core(*, nodes: int = 2, is_one_node: bool = False, **more: Any) -> AgentCore:
    """One task that makes a file of which two others, on nodes of one core, are the readers."""
    make = shell(
        0, "", workdir="/w", outputs=("x",), local=("x",), children=(1, 2), expected_s=10.0
    )
    reads = [
        shell(n, "", workdir="/w", inputs=("x",), parents=(0,), expected_s=10.0) for n in (1, 2)
    ]
    job = JobFile("r", 0, nodes, 1, None, 1000.0, (make, *reads), scratch="/disk", **more)
    made = AgentCore(job, 0.0, is_one_node=is_one_node)
    made.start(0.0)
    made.ended(Attempt(0, 1, 0, None, "", sizes=(GB,), local=("/w/x",)), 10.0)
    return made


def test_the_time_set_aside_grows_with_what_is_read_on_nodes_alone() -> None:
    one = core()
    assert one.deadline == 1000.0 - 5.0 - 20.0
    one.start(10.0)
    for task in (1, 2):
        one.ended(Attempt(task, 1, 0, None, ""), 20.0)
    assert one.deadline == 995.0
    assert one.unneeded == ["/w/x"]
    assert one.is_done


def test_a_task_goes_where_its_bytes_are_and_another_node_gets_them_by_a_commit() -> None:
    one = core()
    first, second = one.start(10.0)
    assert (first.nodes, second.nodes) == ((0,), (1,))
    assert [r.of.near_bytes for r in one.take_records() if isinstance(r, AttemptStarted)] == [
        0,
        GB,
        0,
    ]
    assert one.has_inputs(first.spec.task)
    assert not one.has_inputs(second.spec.task)
    assert one.local.to_commit() == {0: ["/w/x"]}
    assert one.local.to_commit() == {}  # asked for once
    one.committed(Committed("/w/x"), 12.0)
    assert one.take_records() == [OutputsCommitted(12.0, 0, ("x",))]
    assert one.has_inputs(second.spec.task)


def test_what_a_reader_needs_that_leaves_is_committed_or_lost() -> None:
    one = core()
    one.drain("it is over", 11.0)
    assert not one.is_done  # though no task is open
    assert one.local.to_commit() == {0: ["/w/x"]}
    one.committed(Committed("/w/x", "disk full", errno.ENOSPC), 12.0)
    assert one.take_records()[-1] == CommitFailed(12.0, 0, "x", "disk full", "space", errno.ENOSPC)
    assert one.is_done
    assert one.local.why_lost(1) == "disk full"
    assert not one.local.is_ready(1, 0)
    other = core()
    other.local.lose(0, "node n was lost")
    other.drain("node n was lost", 11.0)
    assert other.local.to_commit() == {}
    assert other.is_done


def test_small_files_leave_their_node_at_once() -> None:
    one = core(small_bytes=GB)
    assert one.local.to_commit() == {0: ["/w/x"]}
    one.committed(Committed("/w/x"), 11.0)
    assert one.take_records()[-1] == OutputsCommitted(11.0, 0, ("x",))
    one.local.lose(0, "node n was lost")
    assert not one.local.lost
    assert core(small_bytes=GB - 1).local.to_commit() == {}
    assert core(small_bytes=GB, nodes=1).local.to_commit() == {}
    assert core(small_bytes=GB, is_one_node=True).local.to_commit() == {}


def test_a_small_file_that_cannot_leave_early_stays_like_any_other() -> None:
    one = core(small_bytes=GB)
    assert one.local.to_commit() == {0: ["/w/x"]}
    one.committed(Committed("/w/x", "disk full", errno.ENOSPC), 11.0)
    assert not one.local.lost
    assert one.local.to_commit() == {}
    assert not one.local.is_busy
    one.drain("it is over", 12.0)
    assert one.local.to_commit() == {0: ["/w/x"]}, "now it must"
    one.committed(Committed("/w/x", "disk full", errno.ENOSPC), 13.0)
    assert one.local.lost == {"/w/x": "disk full"}
