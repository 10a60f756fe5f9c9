"""What tests of the agent may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run's folder without jobs."""
    return Run(tmp_path / "a run")
