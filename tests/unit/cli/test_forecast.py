"""`windrow forecast`: what it shows on a queue whose future is known by hand, and what it
refuses."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from windrow.cli.commands import forecast as command
from windrow.cli.main import Parser
from windrow.errors import UserError
from windrow.forecast.ledger import PastPrediction
from windrow.forecast.waits import History, PastWait
from windrow.queues.port import JobSpec, QueueError, Snapshot
from windrow.queues.simulated import SimulatedQueue
from windrow.sim import Cluster


@pytest.fixture(autouse=True)
def own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "waits.sqlite"
    monkeypatch.setenv("WINDROW_WAITS", str(path))
    return path


@pytest.fixture
def queue() -> SimulatedQueue:
    """Eight nodes, all held for 600 s; a 4-node job of 1200 s waits."""
    queue = SimulatedQueue(Cluster(nodes=8))
    for tag, nodes, walltime_s in (("a", 8, 600), ("b", 4, 1200)):
        queue.submit(JobSpec(tag, nodes, walltime_s, ("true",), "/tmp", "/tmp/out"))
        queue.advance(0)
    return queue


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser(prog="windrow forecast")
    command.add_arguments(parser)
    return parser.parse_args(words)


def answered(
    capsys: pytest.CaptureFixture[str],
    queue: SimulatedQueue,
    *words: str,
    past: Sequence[PastPrediction] = (),
) -> dict[str, Any]:
    command.answer(
        queue, parsed(*words, "--json"), clock=lambda: float(queue.now_s), past=lambda: past
    )
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_json(capsys: pytest.CaptureFixture[str], queue: SimulatedQueue) -> None:
    found = answered(capsys, queue, "--nodes", "8,2,9", "--time", "5m")
    assert found == {
        "schema": 1,
        "queue": queue.name,
        "at": 0.0,
        "usable_nodes": 8,
        "running_jobs": 1,
        "busy_nodes": 8,
        "waiting_jobs": 1,
        "left_out_jobs": 0,
        "candidates": [
            {
                "nodes": 2,
                "requested_s": 300,
                "fits": True,
                "wait_s": {"twin": 600, "system": 600, "history": None},
                "submit_by_at": None,
            },
            {
                "nodes": 8,
                "requested_s": 300,
                "fits": True,
                "wait_s": {"twin": 1800, "system": 1800, "history": None},
                "submit_by_at": None,
            },
            {
                "nodes": 9,
                "requested_s": 300,
                "fits": False,
                "wait_s": dict.fromkeys(("twin", "system", "history")),
                "submit_by_at": None,
            },
        ],
        "past": [],
        "trusted": "twin",
    }


def test_tables(capsys: pytest.CaptureFixture[str], queue: SimulatedQueue) -> None:
    command.answer(queue, parsed("--nodes", "2,9", "--time", "5m"), clock=lambda: 0.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        f"queue: {queue.name}, 8 usable nodes",
        "jobs: 1 running on 8 nodes, 1 waiting",
    ]
    rows = [line.split() for line in lines]
    assert ["2", "5.0", "min", "10.0", "min", "10.0", "min", "-"] in rows
    assert ["9", "5.0", "min", "never", "never", "never"] in rows
    assert "never: wider than the 8 usable nodes" in lines
    assert lines[-1].startswith("No past predictions in this folder yet")


def test_what_was_predicted_before(
    capsys: pytest.CaptureFixture[str], queue: SimulatedQueue
) -> None:
    past = [
        PastPrediction(source, f"job-{i}", i * 100.0, i * 100.0 + 90 + error, i * 100.0 + 90)
        for source, error in (("twin", 500), ("system", -200))
        for i in range(6)
    ]
    found = answered(capsys, queue, "--nodes", "1", past=past)
    assert [(one["source"], one["median_error_s"], one["bias_s"]) for one in found["past"]] == [
        ("system", 200, -200),
        ("twin", 500, 500),
    ]
    assert found["trusted"] == "system"
    command.answer(queue, parsed("--nodes", "1"), clock=lambda: 0.0, past=lambda: past)
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()]
    assert ["system", "6", "0", "3.3", "min", "-3.3", "min"] in rows
    assert ["twin", "6", "0", "8.3", "min", "8.3", "min"] in rows
    assert shown.endswith("trusted: system\n")


def test_past_waits_are_a_source(
    capsys: pytest.CaptureFixture[str], queue: SimulatedQueue, own_history: Path
) -> None:
    answered(capsys, queue)
    assert not own_history.exists()  # a question makes no files
    jobs = [PastWait(f"job-{i}", 2, 300, 0.0, 777.0) for i in range(5)]
    History(own_history).record(queue.name, jobs)
    found = answered(capsys, queue, "--nodes", "2", "--time", "5m")
    assert found["candidates"][0]["wait_s"] == {"twin": 600, "system": 600, "history": 777}


def test_default_jobs(capsys: pytest.CaptureFixture[str], queue: SimulatedQueue) -> None:
    found = answered(capsys, queue)
    jobs = [(one["nodes"], one["requested_s"]) for one in found["candidates"]]
    assert jobs == [(nodes, seconds) for nodes in (1, 2, 4, 8) for seconds in (600, 3600, 14400)]
    assert command._default_times_s(3600) == [600, 3600]
    assert command._default_times_s(60) == [60]


class Silent(SimulatedQueue):
    """A queue that has no estimates of its own, or is too busy to tell; it counts who asks."""

    def __init__(self, cluster: Cluster, error: Exception | None) -> None:
        super().__init__(cluster)
        self.error, self.looks, self.probes = error, 0, 0

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        assert nodes >= 1 <= walltime_s
        self.probes += 1
        if self.error is not None:
            raise self.error
        return None

    def snapshot(self) -> Snapshot:
        self.looks += 1
        return super().snapshot()


@pytest.mark.parametrize(("error", "probes"), [(None, 12), (QueueError("too busy"), 1)])
def test_a_queue_without_estimates(
    capsys: pytest.CaptureFixture[str], error: Exception | None, probes: int
) -> None:
    queue = Silent(Cluster(nodes=100), error)
    found = answered(capsys, queue, "--nodes", ",".join(map(str, range(1, 30))))
    assert {one["wait_s"]["twin"] for one in found["candidates"]} == {0}
    assert {one["wait_s"]["system"] for one in found["candidates"]} == {None}
    assert (queue.looks, queue.probes) == (1, probes)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--nodes", "0"], "whole number from 1 to"),
        (["--nodes", "1,,2"], "whole number from 1 to"),
        (["--nodes", "two"], "whole number from 1 to"),
        (["--time", "soon"], "is not a duration"),
        (["--time", "1h,0"], "at least a second"),
        (["--time", ""], "is not a duration"),
    ],
)
def test_what_is_refused(words: list[str], hint: str) -> None:
    with pytest.raises(UserError, match=hint):
        parsed(*words)


def test_an_unknown_policy_is_refused(queue: SimulatedQueue) -> None:
    with pytest.raises(UserError, match="did you mean easy"):
        command.answer(queue, parsed("--policy", "esay"), clock=lambda: 0.0)


def test_the_queue_is_opened_by_its_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, queue: SimulatedQueue
) -> None:
    asked: list[str] = []

    def open_queue(name: str) -> SimulatedQueue:
        asked.append(name)
        return queue

    monkeypatch.setattr("windrow.app.queues.open_queue", open_queue)
    command.run(parsed("--json"))
    command.run(parsed("--on", "slurm", "--json"))
    assert asked == ["local", "slurm"]
    assert capsys.readouterr().out.count('"usable_nodes": 8') == 2


def test_when_to_submit_for_a_start_by_a_given_time(
    capsys: pytest.CaptureFixture[str], queue: SimulatedQueue, own_history: Path
) -> None:
    waits = [PastWait(f"job-{n}", 2, 300, 0.0, 900.0) for n in range(20)]
    History(own_history).record(queue.name, waits)
    found = answered(capsys, queue, "--nodes", "2", "--time", "5m", "--start-at", "1h")
    assert found["start_at"] == 3600
    assert [one["submit_by_at"] for one in found["candidates"]] == [2700]
    late = answered(capsys, queue, "--nodes", "2", "--time", "5m", "--start-at", "10m")
    assert [one["submit_by_at"] for one in late["candidates"]] == [None]
    words = parsed("--nodes", "2", "--time", "5m", "--start-at", "1h")
    command.answer(queue, words, clock=lambda: 0.0)
    assert "in time" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["soon", "25:00", "2030-13-01"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--start-at"):
        parsed("--start-at", text)


def test_waiting_jobs_are_told_their_starts_under_each_policy(
    capsys: pytest.CaptureFixture[str], queue: SimulatedQueue
) -> None:
    """All is held for 600 s; behind b, of 4 nodes, come c, of 8, and d, of 4 and as long as b."""
    for tag, nodes, walltime_s in (("c", 8, 300), ("d", 4, 1200)):
        queue.submit(JobSpec(tag, nodes, walltime_s, ("true",), "/tmp", "/tmp/out"))
        queue.advance(0)
    found = answered(capsys, queue, "--nodes", "1", "--time", "5m", "--waiting")["waiting"]
    waits = [tuple(job["wait_s"].values()) for job in found]
    assert waits == [(600, 600, 600), (1800, 1800, 1800), (2100, 600, 600)]
    assert [job["nodes"] for job in found] == [4, 8, 4]
    command.answer(queue, parsed("--waiting"), clock=lambda: 0.0)
    assert "Jobs that wait, and how long still" in capsys.readouterr().out
