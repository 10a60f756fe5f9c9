"""How the time that is left is reckoned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windrow.lab.campaign import Campaign, Chunk
from windrow.lab.sources import LogSource, WorkflowSource
from windrow.lab.workers import _Tally
from windrow.strategies import Foresight, Glume, Individual

LOG = LogSource("small", model="lublin", days=6, nodes=16)
WORKFLOWS = tuple(WorkflowSource(f"montage-{k}", recipe="montage", tasks=100, seed=k) for k in range(3))


def chunks(*strategies: Foresight | Glume | Individual) -> list[Chunk]:
    """Three, each of a weight of 100 for each strategy."""
    return Campaign("c", (LOG,), WORKFLOWS, (0,), strategies).chunks()


def test_each_kind_of_chunk_is_reckoned_by_its_own_speed() -> None:
    quick, slow = chunks(Glume()), chunks(Foresight())
    tally = _Tally([*quick, *slow], [], 0, workers=2)
    assert tally.progress().left_s is None
    tally.add(quick[0], 0, 1.0)
    tally.add(slow[0], 1, 50.0)
    told = tally.progress()
    assert told.left_s == pytest.approx((2 * 1.0 + 2 * 50.0) / 2)  # two of each are left, for two workers
    assert (told.trials, told.done, told.found, told.failed) == (6, 2, 0, 1)


def test_a_kind_of_which_nothing_is_done_is_like_the_others() -> None:
    known, unknown = chunks(Glume()), chunks(Individual(), Foresight())
    tally = _Tally([*known, *unknown], [known[0]], 0, workers=1)
    tally.add(known[1], 0, 3.0)
    assert tally.progress().left_s == pytest.approx(3.0 + 3 * 6.0)  # chunks of two strategies weigh twice as much
    assert tally.progress().found == 1


def test_nothing_is_left_at_the_end() -> None:
    few = [replace(chunk, noise=0.5) for chunk in chunks(Glume())]
    tally = _Tally(few, [], 0, workers=4)
    for chunk in few:
        tally.add(chunk, 0, 2.0)
    assert tally.progress().left_s == 0
