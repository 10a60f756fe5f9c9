"""The real workflows that other tests run are what they promise to be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.real_workflows import (
    RECIPES,
    output_checksums,
    run_serially,
    serial_checksums,
    write_real,
    write_real_wfformat,
)

from windrow.formats import read_runnable
from windrow.recipes import generate_workflow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_shape_is_the_recipes(recipe: str, tmp_path: Path) -> None:
    found = read_runnable(write_real(recipe, 60, tmp_path)).workflow
    drawn = generate_workflow(recipe, tasks=60, seed=1)
    assert found.ids == drawn.ids
    edges = [
        {(task.id, parent) for task in workflow for parent in task.parents}
        for workflow in (found, drawn)
    ]
    assert edges[0] == edges[1]


def test_it_runs_and_checksums_tell(tmp_path: Path) -> None:
    path = write_real("montage", 20, tmp_path, work_s=0)
    wanted = serial_checksums(path)
    assert not any((tmp_path / name).exists() for name in wanted), (
        "the serial run wrote into the wrong folder"
    )
    run_serially(path)
    assert output_checksums(path) == wanted == serial_checksums(path)
    assert len(set(wanted.values())) == len(wanted)
    entry = next(file.id for file in read_runnable(path).workflow.files if file.id not in wanted)
    (tmp_path / entry).write_text("something else")
    changed = serial_checksums(path)
    assert {name for name in wanted if wanted[name] != changed[name]}, (
        "outputs do not depend on inputs"
    )


def test_wfformat_gives_the_same_outputs(tmp_path: Path) -> None:
    native = write_real("fft", 15, tmp_path / "a", work_s=0)
    other = write_real_wfformat("fft", 15, tmp_path / "b", work_s=0)
    assert serial_checksums(native) == serial_checksums(other)


def test_a_task_without_its_input_fails(tmp_path: Path) -> None:
    runnable = read_runnable(write_real("montage", 50, tmp_path))
    last = runnable.steps[int(runnable.workflow.order[-1])]
    done = subprocess.run(last.command, cwd=last.workdir, check=False, capture_output=True)
    assert done.returncode != 0
    assert b"No such file" in done.stderr


def test_the_demo_is_a_workflow_of_about_sixty_tasks() -> None:
    demo = read_runnable(ROOT / "examples" / "demo.yaml").workflow
    assert 55 <= len(demo) <= 65
    assert demo.depth >= 4


def test_the_demo_finds_the_primes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times smaller: primes, twins and largest gap below ten million are in every table
    of primes."""
    text = (ROOT / "examples" / "demo.yaml").read_text()
    path = tmp_path / "demo.yaml"
    text = text.replace("sleep 15;", "sleep 0;")
    path.write_text(text.replace("* 20_000_000", "* 200_000").replace("10_000_000 ", "100_000 "))
    assert path.read_text().count("200_000 ") == path.read_text().count(" 100_000 ") == 1
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    run_serially(path)
    summary = (tmp_path / "primes" / "summary.txt").read_text()
    assert "Primes: 664579 " in summary
    assert "Twin primes: 58980 pairs" in summary
    assert "Largest distance: 154" in summary
    assert set(output_checksums(path)) == {
        str(p.relative_to(tmp_path)) for p in tmp_path.glob("primes/**/*.*")
    }
