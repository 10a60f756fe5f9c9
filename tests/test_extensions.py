"""The example packages, installed as users do: a format, a queue and a strategy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "extensions"
TABLE = "make\t\t1\techo 1 > made\nuse\tmake\t1\tcat made > used\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    packages = [str(path) for path in sorted(EXAMPLES.iterdir())]
    assert len(packages) == 3
    subprocess.run([*pip, "--target", str(place), *packages], check=True, timeout=500)
    return place


def windrow(
    *arguments: str, folder: Path, packages: Path | None
) -> subprocess.CompletedProcess[str]:
    env = dict(os.environ)
    if packages is not None:
        env["PYTHONPATH"] = str(packages)
    command = [sys.executable, "-m", "windrow.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_format_a_queue_and_a_strategy_of_other_packages(tmp_path: Path, installed: Path) -> None:
    (tmp_path / "work.tsv").write_text(TABLE)
    done = windrow(
        *("run", "work.tsv", "--on", "half", "--strategy", "narrow"),
        folder=tmp_path,
        packages=installed,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "used").read_text() == "1\n"
    (tmp_path / "bad.tsv").write_text("make\t1\n")
    bad = windrow("show", "bad.tsv", folder=tmp_path, packages=installed)
    assert bad.returncode == 2
    assert "bad.tsv:1: 2 columns; write id, parents, seconds" in bad.stderr


@pytest.mark.slow
def test_without_the_packages_the_names_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "work.tsv").write_text(TABLE)
    (tmp_path / "work.yaml").write_text("tasks: [{id: a, command: 'true'}]\n")
    for arguments, words in {
        ("show", "work.tsv"): "work.tsv",
        ("run", "work.yaml", "--strategy", "narrow"): "unknown strategy 'narrow'",
        ("run", "work.yaml", "--on", "half"): "unknown queue 'half'",
    }.items():
        told = windrow(*arguments, folder=tmp_path, packages=None)
        assert told.returncode == 2
        assert words in told.stderr


@pytest.mark.slow
def test_a_package_that_is_broken_is_named(tmp_path: Path) -> None:
    info = tmp_path / "packages" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[windrow.strategies]\nnarrow = nothere:Narrow\n")
    (tmp_path / "work.yaml").write_text("tasks: [{id: a, command: 'true'}]\n")
    told = windrow(
        *("run", "work.yaml", "--strategy", "narrow"),
        folder=tmp_path,
        packages=tmp_path / "packages",
    )
    assert told.returncode == 2
    assert "nothere:Narrow of broken, which cannot be loaded" in told.stderr
