"""Charts within a page: bars as long as their values, the page's own colours, and the same bytes
each time."""

from __future__ import annotations

import math
import re

import pytest

from windrow_lab.reproductions.charts import chart, grouped_bars, short

NAN = float("nan")


def heights(svg: str) -> list[float]:
    """Of the bars: paths of four corners in a colour of a series."""
    paths = re.findall(
        r'<path d="(M [^"]*?)z\s*" clip-path[^>]*style="fill: var\(--c\d\)', svg, flags=re.DOTALL
    )
    ends = [[float(y) for _, y in re.findall(r"[ML] ([\d.-]+) ([\d.-]+)", path)] for path in paths]
    return [max(ys) - min(ys) for ys in ends]


def test_bars_rise_in_proportion_and_carry_their_value() -> None:
    svg = grouped_bars(["a", "b"], {"x": [4.0, 8.0], "y": [NAN, 0.0]}, "h", "label", short)
    first, second, *others = heights(svg)
    assert second == pytest.approx(2 * first, rel=1e-3)
    assert all(height == 0 for height in others)
    assert ">4.00</text>" in svg
    assert "nan" not in svg


def test_deep_bars_are_cut_with_their_value() -> None:
    svg = grouped_bars(["a", "b"], {"x": [-340.0, 33.0]}, "%", "label", "{:.0f}".format)
    cut, rising = heights(svg)
    assert cut == pytest.approx(rising * 100 / 33, rel=1e-3)
    assert ">-340</text>" in svg
    assert ">33</text>" not in svg


def test_a_chart_is_part_of_the_page() -> None:
    def drawn() -> str:
        return chart(
            lambda axes: axes.plot([1, 2], [3, 4], label="a line"), "A <caption>", x="across"
        )

    svg = drawn()
    assert svg == drawn()
    assert svg.startswith("<figure>")
    assert "A &lt;caption&gt;" in svg
    for no in ("http", "<style", "<metadata", "#0072b2", 'width="691'):
        assert no not in svg
    assert "var(--c0)" in svg
    assert ">a line</text>" in svg
    assert math.isclose(svg.count("<svg"), 1)
