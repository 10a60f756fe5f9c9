"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real logs and workflows; tests that need it are skipped, and say so, where it is missing."""
    folder = Path(os.environ.get("WINDROW_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not (folder / "swf").is_dir():
        pytest.skip(f"no real logs and workflows at {folder} (set WINDROW_DATA)")
    return folder


FIRST = ("slurm", "survival", "real")
"""Folders whose tests wait for daemons and clocks: started first, they wait while the others calculate."""
CLUSTERS = 3
"""Private Slurms without accounting that run side by side, where tests do; those with accounting share one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the tests to workers that run side by side (pytest -n): each private Slurm belongs to one of them."""
    items.sort(key=lambda item: FIRST.index(_folder(item)) if _folder(item) in FIRST else len(FIRST))
    dealt = 0
    for item in items:
        if _folder(item) != "slurm":
            continue
        has_accounts = "slurm_with_accounting" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("accounts" if has_accounts else f"slurm-{dealt % CLUSTERS}"))
        dealt += not has_accounts


def _folder(item: pytest.Item) -> str:
    parts = item.path.relative_to(Path(__file__).parent).parts
    return parts[0]
