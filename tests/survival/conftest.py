"""What tests of survival may ask for."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.survival.world import World, local_world


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where that exists: thousands of small files are written and thrown away."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A folder, a local queue of four nodes and a history of their own."""
    made = local_world(tmp_path)
    yield made
    made.clean()
