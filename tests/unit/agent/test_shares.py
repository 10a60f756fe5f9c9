"""Agents share one machine: each gets its part, none starves, and what a dead one held is free."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.jobs import Run, shell, task
from tests.waiting import is_alive, wait_until

from windrow.agent.event_file import AttemptStarted
from windrow.agent.machine import SHARES, Identity, this_machine
from windrow.agent.shares import Share, Shares, deal
from windrow.model.nodes import Need
from windrow.model.packing import Packing
from windrow.model.resources import NodeShape

GIB = 1 << 30


def share(pid: int, held: int, least: int = 0, wants: int = 0, **more: object) -> Share:
    return replace(Share(Identity(pid, 1), Need(held), Need(least), wants), **more)  # type: ignore[arg-type]


def dealt(cores: int, *shares: Share) -> tuple[list[int], int | None]:
    given, kept_for = deal(Need(cores, GIB), shares)
    return [need.cores for need in given], kept_for


def test_one_agent_alone_has_everything() -> None:
    assert dealt(8, share(1, 0, 1, 100)) == ([8], None)
    assert dealt(8, share(1, 3, 1, 100), share(2, 2)) == ([3, 0], None)


def test_what_is_free_goes_to_those_who_have_less() -> None:
    assert dealt(8, share(1, 4, 1, 9), share(2, 0, 1, 9)) == ([0, 4], 0)
    assert dealt(8, share(1, 0, 1, 9), share(2, 0, 1, 9)) == ([4, 4], 0)
    assert dealt(8, share(1, 0, 1, 9), share(2, 0, 1, 2)) == (
        [6, 2],
        None,
    )  # nobody else wants the rest
    assert dealt(3, share(1, 1, 1, 9, since_s=7.0), share(2, 1, 1, 9, since_s=5.0)) == (
        [0, 1],
        0,
    )  # waited longer


def test_a_task_larger_than_a_fair_share_gets_its_turn() -> None:
    large, small = share(1, 1, 3, 3), share(2, 2, 1, 9)
    assert dealt(4, large, small) == ([0, 0], 0)  # the free core is kept for it
    large = replace(large, has_turn=True)
    assert dealt(4, large, replace(small, held=Need(0))) == (
        [3, 0],
        None,
    )  # though the other one has less by now


amounts = st.tuples(
    st.integers(0, 6), st.integers(1, 4), st.integers(0, 12), st.integers(0, 5), st.integers(0, 2)
)


@given(st.integers(1, 24), st.lists(amounts, max_size=5), st.integers(0, 5))
def test_dealing_is_fair(
    cores: int, agents: list[tuple[int, int, int, int, int]], turn: int
) -> None:
    """Against the definition: at no step does anybody get a task while one who has less waits, and
    all fits."""
    shares, free = [], cores
    for pid, (most, least, cores_wanted, since, memory) in enumerate(agents):
        held, wants = min(most, free), 0 if cores_wanted < least else cores_wanted
        free -= held
        needs = Need(held), Need(least, memory) if wants else Need(0)
        shares.append(
            Share(Identity(pid, 1), *needs, wants, float(since), has_turn=pid == turn and wants > 0)
        )
    given_, kept_for = deal(Need(cores, 4), shares)
    assert sum(need.cores for need in given_) <= free
    waiting = [place for place, one in enumerate(shares) if one.is_waiting]
    if len(waiting) > 1:  # memory was nobody's
        assert sum(need.memory_bytes for need in given_) <= 4
    assert all(
        need == Need(0) for need, one in zip(given_, shares, strict=True) if not one.is_waiting
    )
    holds = [one.held.cores + need.cores for one, need in zip(shares, given_, strict=True)]
    if kept_for is None:
        # Everybody has all that he wants, but for the one who has what is left.
        unsatisfied = [
            p for p in waiting if given_[p].cores + shares[p].least.cores <= shares[p].wants
        ]
        assert len(unsatisfied) <= 1
        return
    first = shares[kept_for]
    left = free - sum(need.cores for need in given_), 4 - sum(need.memory_bytes for need in given_)
    assert left[0] < first.least.cores or left[1] < first.least.memory_bytes
    if all(one.least.memory_bytes == 0 and not one.has_turn for one in shares):
        for place in waiting:
            if given_[
                place
            ].cores:  # before its last task it had no larger part than the one who waits now has
                assert holds[place] - shares[place].least.cores <= holds[kept_for]


def run_with(folder: Path, book: Path) -> Run:
    return Run(folder, {"WINDROW_QUEUE": "local", SHARES: str(book)})


CORES = this_machine().cores
MEMORY = this_machine().memory_bytes or 0


@pytest.mark.slow
def test_two_agents_share_the_machine_and_one_alone_has_all_of_it(tmp_path: Path) -> None:
    """The first one's tasks hold all cores until two of the second have met one of its own: that
    takes both."""
    book, gate = tmp_path / "book", tmp_path / "gate"
    first, second = run_with(tmp_path / "a", book), run_with(tmp_path / "b", book)
    shape: dict[str, Any] = {"cores": CORES, "memory_bytes": MEMORY, "walltime_s": None}
    first.write(
        *[shell(n, f"while ! test -e {gate}; do sleep 0.02; done") for n in range(CORES)], **shape
    )
    one = first.begin()
    first.wait_for_start(*range(CORES))  # alone: all cores at once
    second.write(task(0, "true"), **shape)
    two = second.begin()
    wait_until(
        lambda: book.read_bytes().count(b"], [1, 0], ") == 1
    )  # the second one waits for a core
    assert second.of(AttemptStarted) == []
    gate.touch()
    assert [agent.wait(60) for agent in (one, two)] == [0, 0]
    assert sorted(first.finished()) == list(range(CORES))
    assert second.finished() == [0]
    assert book.read_bytes().partition(b"\n")[0] == b"[]"


@pytest.mark.slow
def test_what_a_killed_agent_held_is_free_at_once(tmp_path: Path) -> None:
    book = tmp_path / "book"
    first, second = run_with(tmp_path / "a", book), run_with(tmp_path / "b", book)
    shape = {"cores": CORES, "memory_bytes": MEMORY}
    first.write(shell(0, "sleep 600", cores=CORES, expected_s=1), **shape)
    one = first.begin()
    first.wait_for_start(0)
    second.write(task(0, "true"), **shape)
    two = second.begin()
    wait_until(lambda: book.read_bytes().count(b"], [1, 0], ") == 1)
    os.kill(first.agent_pid(), signal.SIGKILL)
    assert two.wait(60) == 0
    assert second.finished() == [0]
    one.wait(60)
    assert not is_alive(one.pid)


def test_memory_is_counted_among_agents(tmp_path: Path) -> None:
    """Two tasks that need more than half of the memory each do not run at once, though there are
    cores."""
    book, half = tmp_path / "book", MEMORY // 2 + 1
    books = [Shares(str(book), NodeShape(CORES, MEMORY)) for _ in range(2)]
    books[1]._own = replace(books[1]._own, who=Identity(os.getppid(), 1))
    packings = [Packing(1, NodeShape(CORES, MEMORY)) for _ in range(2)]
    for packing in packings:
        packing.offer(0, 1.0, Need(1, half))
    with books[0].sharing(packings[0]):
        assert packings[0].start() == [(0, (0,))]
    with books[1].sharing(packings[1]):
        assert packings[1].start() == []
    assert books[1].is_kept_waiting
    packings[0].finish(0)
    with books[0].sharing(packings[0]):
        assert packings[0].start() == []
    with books[1].sharing(packings[1]):
        assert packings[1].start() == [(0, (0,))]


@pytest.mark.parametrize(
    "content", [b"", b"not json\n", b"[[1,2]]\n", b'{"a": 1}\n', b"[[1, 2, [1, 0\n"]
)
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    book = tmp_path / "book"
    book.write_bytes(content)
    packing = Packing(1, NodeShape(CORES, MEMORY))
    packing.offer(0, 1.0, Need(CORES))
    with Shares(str(book), NodeShape(CORES, MEMORY)).sharing(packing):
        assert packing.start() == [(0, (0,))]
