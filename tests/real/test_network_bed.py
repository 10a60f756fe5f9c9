"""Hosts with links of 1 and 12 MB/s on this machine: what crosses from home, to the byte. `make prove` shows more."""

from __future__ import annotations

import pytest
from bench.network_bed import bed, orders, scoping, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces here: {why_not()}")]


def test_figure_3_3_to_the_byte_and_figure_3_4_with_its_knee() -> None:
    with bed(2) as made:
        for way, crossed, expected, _ in scoping(made, 0.5, 4, 48_000):
            assert crossed == expected, way
        assert orders(made, 6, "depth-first", 2, 12, 4096) == 1
        assert orders(made, 8, "depth-first", 2, 12, 4096) == 2
