"""`windrow reliability`: what it says of a queue whose accounts are known, and of one of which
nothing is."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from windrow.app import queues
from windrow.cli.main import main
from windrow.forecast.best_effort import known_hazard
from windrow.model.cause import Cause
from windrow.queues.port import Life, QueueError


class Told:
    """A queue with accounts of 32 nodes that had jobs for 20 days each; n7 failed three times."""

    name = place = "big.main"
    is_silent = False

    def past_jobs(self, since_s: float) -> None:
        """So that it has a place."""

    def lives(self, since_s: float) -> list[Life]:
        if self.is_silent:
            raise QueueError("nothing there")
        assert 89 * 86400 < time.time() - since_s < 91 * 86400
        day = 86400.0
        found = [
            Life(f"{i}-{d}", 1, d * day, (d + 1) * day, None, (f"n{i}",))
            for i in range(32)
            for d in range(20)
        ]
        return found + [
            Life(f"x{d}", 1, d * day + 5, d * day + 60, Cause.NODE_FAILED, ("n7",))
            for d in (3, 9, 12)
        ]


@pytest.fixture(autouse=True)
def own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_WAITS", str(tmp_path / "waits.sqlite"))


WORDS = ["reliability", "--on", "slurm", "--nodes", "16", "--time", "12h", "--since", "90d"]


def test_what_a_job_may_expect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queues, "open_queue", lambda _: Told())
    assert main(WORDS) == 0
    out = capsys.readouterr().out
    assert (
        "a job of 16 nodes and 12.0 h on slurm survives with a probability of 96.7 % (95 % "
        "interval 92.4 to 99.3 %)" in out
    )
    assert "lost: 3 × node failed" in out
    assert out.split("times as many as the rest")[1].split()[:2] == ["n7", "3"]
    assert main([*WORDS, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["losses"] == {"node failed": 3}
    assert told["job"]["low"] < told["job"]["survival"] < told["job"]["high"]
    assert [one["node"] for one in told["suspects"]] == ["n7"]
    assert asdict(known_hazard("big.main", time.time())) == told["hazard"]


def test_a_silent_queue_and_one_of_which_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reliability"]) == 0
    assert "nothing is known about jobs there (your own runs)" in capsys.readouterr().out
    monkeypatch.setattr(Told, "is_silent", True)
    monkeypatch.setattr(queues, "open_queue", lambda _: Told())
    assert main(WORDS) == 2
    assert "the queue slurm does not answer" in capsys.readouterr().err
