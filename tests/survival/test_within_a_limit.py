"""A real run in a file system of exactly its limit, killed on the way; `make prove` runs 2,000
samples."""

import subprocess
from pathlib import Path

import pytest
from bench.space import in_memory, samples


def test_samples_stay_within_a_file_system_of_their_limit(tmp_path: Path) -> None:
    try:
        (tmp_path / "try").mkdir()
        with in_memory(tmp_path / "try", 1 << 20):
            pass
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    found = samples(tmp_path, 12, 2, kills=1)
    assert found["is_whole"]
    assert int(str(found["most"])) <= int(str(found["limit"]))
