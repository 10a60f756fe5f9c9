"""The pages about strategies name every strategy, and every parameter with its default."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from windrow.app.strategies import MEANINGS
from windrow.strategies import Glume, Zhang

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_strategy_has_its_part() -> None:
    theory = (DOCS / "theory" / "strategies.md").read_text()
    reference = (DOCS / "reference" / "strategies.md").read_text()
    for name, meaning in MEANINGS.items():
        assert f"\n## {name}\n" in theory
        assert f"| `{name}` | {meaning} |" in reference


@pytest.mark.parametrize("strategy", [Zhang(), Glume()])
def test_every_parameter_is_told_with_its_default(strategy: Zhang | Glume) -> None:
    text = (
        (DOCS / "theory" / "strategies.md")
        .read_text()
        .split(f"\n## {strategy.name}\n")[1]
        .split("\n## ")[0]
    )
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.MULTILINE))
    written = {True: "on", False: "off"}
    defaults = {f.name: getattr(strategy, f.name) for f in fields(strategy) if f.name != "name"}
    expected = {k: written[v] if isinstance(v, bool) else f"{v:g}" for k, v in defaults.items()}
    found = {name: default for name, default in told.items() if name in expected}
    assert found == expected
