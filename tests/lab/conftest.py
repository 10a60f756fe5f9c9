"""Bar charts are slow to draw, and pages have dozens: the first of each kind is drawn, the others
are named."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from types import CodeType
from typing import Any

import pytest

from windrow_lab.reproductions import charts

_chart = charts.chart
_drawn: set[CodeType] = set()


@pytest.fixture
def few_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw bars only where none of their kind were drawn before."""

    def chart(draw: Callable[..., object], caption: str, **more: Any) -> str:
        if draw.__code__ in _drawn:
            return f"<figure><figcaption>{escape(caption)}</figcaption></figure>"
        _drawn.add(draw.__code__)
        return _chart(draw, caption, **more)

    monkeypatch.setattr(charts, "chart", chart)
