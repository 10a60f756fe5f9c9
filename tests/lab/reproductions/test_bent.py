"""Bent's thesis, run again: block caches against a plain one, and a page made of one point of each
sweep."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_lab.reproductions.bent import page
from windrow_lab.reproductions.bent.baselines import BASELINES
from windrow_lab.reproductions.bent.caches import fetches, missed, scan_rate, second_scan_rate
from windrow_lab.reproductions.bent.plan import CHOICES, SWEEPS, plan_bent, sweep
from windrow_lab.reproductions.paper import Wishes, printed


def plain_misses(blocks: list[int], capacity: int, is_mru: bool) -> list[int]:
    """The same by a list from the block used longest ago to the one used last."""
    there, found = list[int](), []
    for k, block in enumerate(blocks):
        if block in there:
            there.remove(block)
        else:
            found.append(k)
            if len(there) == capacity and capacity:
                there.pop(-1 if is_mru else 0)
        if capacity:
            there.append(block)
    return found


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 6), st.booleans())
def test_caches_miss_what_a_plain_one_misses(
    blocks: list[int], capacity: int, is_mru: bool
) -> None:
    found = missed(np.array(blocks, dtype=np.int64), capacity, is_mru=is_mru)
    assert found.tolist() == plain_misses(blocks, capacity, is_mru)


@pytest.mark.parametrize(("width", "most"), [(64, 4), (32, 2)])
def test_fetches_of_figure_3_4(width: int, most: int) -> None:
    cache = 480
    for order, knee in (("depth-first", cache // 4), ("breadth-first", cache)):
        counts = [fetches(volume, cache, order, width) for volume in (knee // 2, knee, knee + 16)]
        assert counts == [1, 1, most]
    assert 1 < fetches(cache // 4 - 8, cache, "depth-first", width, is_hashed=True) < most


def test_rates_of_figure_a_3() -> None:
    rates = {"memory": 100.0, "disk": 20.0, "local": 12.0, "remote": 1.0}
    lru, mru = (
        [scan_rate(size, 8, 32, rates, is_mru=m) for size in (4, 8, 10, 32, 40, 64, 72)]
        for m in (False, True)
    )
    disk, peer = 1 / (1 / 100 + 1 / 20), 1 / (1 / 100 + 1 / 20 + 0.5 / 12)
    home = 1 / (1 / 100 + 1 / 20 + 0.5 / 12 + 1)
    assert lru == pytest.approx([100, 100, disk, disk, peer, peer, home])
    assert all(a >= b for a, b in pairwise(mru))
    assert all(m >= one for m, one in zip(mru, lru, strict=True))


def test_victims_that_are_dirty_slow_the_second_scan() -> None:
    """Each of them is written to the disk first; those that memory had are a smaller part of a
    larger scan."""
    rates = {"memory": 100.0, "disk": 20.0}
    assert second_scan_rate(8, 8, rates) == pytest.approx(100)
    assert second_scan_rate(16, 8, rates) == pytest.approx(1 / (1 / 100 + 1 / 20 + 0.5 / 20))
    assert second_scan_rate(32, 8, rates) == pytest.approx(1 / (1 / 100 + 1 / 20 + 0.25 / 20))


@pytest.mark.slow
def test_the_page_has_every_claim_and_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_bent(Wishes())
    found: list[Any] = [
        sweep(name, work, 99) if work == "mixed" else [] for name in SWEEPS for work in BASELINES
    ]
    found += [call() for call in plan.calls[len(found) : -1]]
    said, four = printed("bent"), (0, 0, 0, 0)
    found.append(
        {
            name: (*said["roles"][name], *four, *said["volumes"][name], *said["operations"][name])
            for name in ("blast", "cms", "amanda")
        }
    )
    monkeypatch.setattr(page, "chart", lambda *_args, **_more: "<figure></figure>")
    made = page.report(plan, found)
    claims = made.blocks[0].rows
    assert len(claims) == len(printed("bent")["claims"]["said"])
    assert [row[0] for row in claims if row[3] == "open"] == []
    assert sum(row[3] == "agrees" for row in claims) >= len(claims) - 12
    for said in SWEEPS.values():
        assert f"Figure {said['figure']}, mixed" in made.markdown()
    assert "cannot be checked" in made.html()
    points = made.json()["points"]
    assert isinstance(points, list)
    assert all(set(point["losses"]) == set(CHOICES) for point in points)
