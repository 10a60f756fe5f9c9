"""A queue that is slow to answer holds up nobody for long, and nothing that it says is lost."""

from __future__ import annotations

import threading
import time
from concurrent.futures import wait
from typing import Any

import pytest

from windrow.queues.apart import apart
from windrow.queues.port import Accounts, JobSpec, OutcomeUnknown, QueueError, place_of
from windrow.queues.simulated import Mood, SimulatedQueue
from windrow.sim.cluster import Cluster

SPEC = JobSpec("run-1", 1, 60, ("true",), "/", "/dev/null")


class Slow(SimulatedQueue):
    """Answers when it is let."""

    let = threading.Event()

    def _answer(self, call: str) -> Mood:
        assert self.let.wait(10)
        return super()._answer(call)


@pytest.fixture
def slow() -> Slow:
    queue = Slow(Cluster(nodes=2))
    queue.let.clear()
    return queue


def settled(queue: Any) -> None:
    """The call under way has ended; from here on there is time."""
    wait([queue._asked[1]], 60)
    queue._patience_s = 60.0


def test_no_call_takes_long_and_a_late_answer_is_given_to_who_asks_again(slow: Slow) -> None:
    queue, begun_s = apart(slow, patience_s=0.01), time.monotonic()
    with pytest.raises(QueueError, match="no answer to status yet"):
        queue.status(["c1"])
    with pytest.raises(QueueError, match="no answer to status yet"):
        queue.find(["run-1"])
    with pytest.raises(QueueError, match="no answer to status yet"):
        queue.submit(SPEC)  # which was not begun
    assert time.monotonic() - begun_s < 5
    slow.let.set()
    settled(queue)
    assert queue.status(["c1"]) == {}
    assert queue.submit(SPEC) == "c1"


def test_nobody_knows_of_a_submission_that_gets_no_answer_until_its_tag_is_found(
    slow: Slow,
) -> None:
    queue = apart(slow, patience_s=0.01)
    with pytest.raises(OutcomeUnknown):
        queue.submit(SPEC)
    with pytest.raises(QueueError):
        queue.find(["run-1"])
    slow.let.set()
    settled(queue)
    assert queue.find(["run-1"]) == {"run-1": "c1"}
    assert list(slow.jobs) == ["c1"]


def test_errors_and_properties_are_the_queues_own(slow: Slow) -> None:
    slow.let.set()
    slow.mood = lambda _: Mood.DOWN
    queue = apart(slow, {"name": "north"})
    with pytest.raises(QueueError, match="the queue does not answer"):
        queue.status(["c1"])
    assert (queue.name, queue.policy, queue.limits()) == ("north", slow.policy, slow.limits())
    assert not isinstance(queue, Accounts)
    assert place_of(queue) == "north"
