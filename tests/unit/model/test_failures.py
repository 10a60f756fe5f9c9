"""Failures of nodes: how they are written, and what a draw of them is like."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UserError
from windrow.formats.failure_log import read_failures
from windrow.model.failures import NO_FAILURES, Failures

DAY_S = 86400


def test_how_they_are_written() -> None:
    assert read_failures("nodes=30d,repair=4h") == Failures(30 * DAY_S, 4 * 3600.0)
    assert read_failures(" nodes = 90 , shape=0.7") == Failures(90, 4 * 3600.0, 0.7)
    assert read_failures("tasks=1%,away=5m,queue=2h") == Failures(
        tasks=0.01, queue_s=7200, away_s=300
    )
    assert read_failures("manager=1d").in_shell
    assert not read_failures("nodes=1d").in_shell
    assert read_failures("nodes=1d,jobs=lost") == Failures(DAY_S, loses=True)
    assert read_failures("nodes=1d,jobs=lost").draw(1, 10, 0, DAY_S)[:, 3].all()
    assert read_failures("none") == NO_FAILURES
    assert not NO_FAILURES
    assert len(NO_FAILURES.draw(1, 10, 0, 10**9)) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "unknown kind of failure ''; known: nodes, repair, agents"),
        ("node=3d", "unknown kind of failure 'node'; did you mean nodes"),
        ("nodes", "give nodes once, with a value, as in nodes=30d,repair=4h"),
        ("nodes=1d,nodes=2d", "give nodes once"),
        ("repair=4h", "how often does what fail"),
        ("tasks=60%", "at most half of the attempts at tasks can fail or be slow, not 60%"),
        ("tasks=nan", "at most half of the attempts at tasks can fail or be slow, not nan%"),
        ("tasks=often", "'often' is not a number; tasks is one, as 1%"),
        ("queue=5s", "queue must fail less than once a minute, not every 5 s"),
        ("nodes=soon", "'soon' is not a duration"),
        ("nodes=0", "at least 1 s on average, not 0"),
        ("nodes=1d,repair=0", "the repair of a node takes at least 1 s, not 0"),
        ("nodes=1d,shape=x", "'x' is not a number"),
        ("nodes=1d,jobs=gone", "unknown fate of jobs that lose a node 'gone'; known: again, lost"),
        ("jobs=lost", "how often does what fail"),
        ("nodes=1d,shape=nan", "must be from 0.1 to 20, not nan"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words.replace("(", "\\(")):
        read_failures(text)


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
def test_a_draw(shape: float) -> None:
    """Nodes that are out do not fail again; from the first day on as many fail as the mean says,
    whatever the shape."""
    failures = Failures(5 * DAY_S, 6 * 3600, shape)
    rows = failures.draw(7, 3000, 1000, 1000 + 40 * DAY_S)
    assert np.array_equal(rows, failures.draw(7, 3000, 1000, 1000 + 40 * DAY_S))
    assert not np.array_equal(rows[:5], failures.draw(8, 3000, 1000, 1000 + 40 * DAY_S)[:5])
    at, node, until, loses = rows[np.lexsort((rows[:, 0], rows[:, 1]))].T
    assert not loses.any()
    assert (np.diff(rows[:, 0]) >= 0).all()
    assert at.min() > 1000
    assert at.max() < 1000 + 40 * DAY_S
    assert (until - at == 6 * 3600).all()
    assert (at[1:] > until[:-1])[node[1:] == node[:-1]].all()
    assert len(rows) == pytest.approx(3000 * 40 / 5.25, rel=0.03)
    assert (rows[:, 0] < 1000 + DAY_S).sum() == pytest.approx(3000 / 5, rel=0.15)


def test_more_than_anyone_can_want_is_refused() -> None:
    with pytest.raises(
        UserError, match="nodes would fail more than 5,000,000 times; let them fail less often"
    ):
        Failures(1, 1).draw(0, 1000, 0, 30 * DAY_S)
