"""How the time that is left is reckoned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windrow.foresight.strategy import Foresight
from windrow.strategies import Glume, Individual
from windrow_lab.campaign.campaign import Campaign, Chunk
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.workers import _Tally

LOG = LogSource("small", model="lublin", days=6, nodes=16)
WORKFLOWS = tuple(
    WorkflowSource(f"montage-{k}", recipe="montage", tasks=100, seed=k) for k in range(3)
)


def chunks(*strategies: Foresight | Glume | Individual) -> list[Chunk]:
    """Three, each of a weight of 100 for each strategy."""
    return Campaign("c", (LOG,), WORKFLOWS, (0,), strategies).chunks()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still unless a test moves it."""
    now = [1000.0]
    monkeypatch.setattr("windrow_lab.campaign.workers.time.monotonic", lambda: now[0])
    return now


def test_each_kind_of_chunk_is_reckoned_by_its_own_speed(clock: list[float]) -> None:
    quick, slow = chunks(Glume()), chunks(Foresight())
    tally = _Tally([*quick, *slow], [], 0, workers=2)
    tally.warm.update((1, 2))
    assert tally.progress().left_s is None
    tally.add(slow[0], 1, 50.0, worker=1)
    first = tally.progress().left_s or 0.0
    assert first == pytest.approx((3 * 50.0 + 2 * 50.0) / 2)  # nothing is known of the quick ones
    tally.add(quick[0], 0, 1.0, worker=2)
    told = tally.progress()
    true_s = (2 * 1.0 + 2 * 50.0) / 2  # two of each are left, for two workers
    assert told.left_s == pytest.approx(first + 0.3 * (true_s - first))
    assert (told.trials, told.done, told.found, told.failed) == (6, 2, 0, 1)
    assert clock == [1000.0]


def test_a_kind_of_which_nothing_is_done_is_like_the_others(clock: list[float]) -> None:
    known, unknown = chunks(Glume()), chunks(Individual(), Foresight())
    tally = _Tally([*known, *unknown], [known[0]], 0, workers=1)
    tally.warm.add(1)
    tally.add(known[1], 0, 3.0, worker=1)
    assert tally.progress().left_s == pytest.approx(
        3.0 + 3 * 6.0
    )  # chunks of two strategies weigh twice as much
    assert tally.progress().found == 1
    clock[0] += 5.0
    assert tally.progress().left_s == pytest.approx(16.0)


def test_compiling_is_not_counted(clock: list[float]) -> None:
    """Each process spends a minute on its first chunk and a second on the others."""
    some = [
        replace(chunk, noise=noise) for noise in (0.1, 0.2, 0.3, 0.4) for chunk in chunks(Glume())
    ]
    tally = _Tally(some, [], 0, workers=2)
    clock[0] += 60.0
    for worker in (1, 2):
        tally.add(some[worker], 0, 60.0, worker)
        assert tally.progress().left_s is None, "nothing is known but how long compiling takes"
    for n, chunk in enumerate(some[:10]):
        clock[0] += 0.5
        tally.add(chunk, 0, 1.0, 1 + n % 2)
        left_s = tally.progress().left_s
        assert left_s == pytest.approx((9 - n) / 2, abs=1.0)


def test_nothing_is_left_at_the_end(clock: list[float]) -> None:
    few = [replace(chunk, noise=0.5) for chunk in chunks(Glume())]
    tally = _Tally(few, [], 0, workers=1)
    for chunk in few:
        clock[0] += 2.0
        tally.add(chunk, 0, 2.0, worker=1)
    assert tally.progress().left_s == 0
