"""Two packages in one repository: the product, and the studies made with it."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from windrow.cli.elsewhere import LAB, LAB_COMMANDS
from windrow.version import __version__

ROOT = Path(__file__).resolve().parents[1]


def test_both_have_one_version() -> None:
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lab["version"] == __version__
    [product] = [name for name in lab["dependencies"] if name.startswith("windrow-hpc")]
    assert product.endswith(f"=={__version__}")
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_one_licence() -> None:
    assert (ROOT / "lab" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_lab_brings_the_commands_that_it_is_asked_for() -> None:
    found = entry_points(group="windrow.commands")
    brought = {one.name for one in found if one.dist is not None and one.dist.name == LAB}
    assert brought == set(LAB_COMMANDS)
