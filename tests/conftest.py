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
