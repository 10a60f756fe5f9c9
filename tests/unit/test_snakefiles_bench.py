"""The bench of Snakefiles: its cells, what it follows, and what it concludes. Its cells need a quiet
machine."""  # noqa: E501

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench.driver_cpu import main as driver_cpu
from bench.shared_nodes import Past
from bench.snakefiles import (
    FILES,
    WORKFLOWS,
    Cell,
    Ran,
    Result,
    _around,
    all_cells,
    chain,
    chosen,
    parents,
    table,
    verdict,
)

RESULT = Result(
    100.0, 10.0, 60, 0.5, 300, 12.0, 60, is_cut=False, loadavg=0.1, late_s=0.0, commit="x"
)


def test_the_ways_of_a_seed_come_after_one_another() -> None:
    cells = all_cells()
    assert len(cells) == len({cell.name for cell in cells}) == 36
    assert [cell.way for cell in cells[:4]] == ["windrow", "slurm"] * 2
    assert chosen(["shared-fan12-1-windrow"]) == [Cell("shared", "fan12", 1, "windrow")]
    assert chosen(["whole-pairs500-*"]) == [c for c in cells if c.name.startswith("whole-pairs")]
    assert not chosen(["shared-fan12-1-sbatch"])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_as_many_jobs_as_it_says(name: str) -> None:
    """From the job that comes last back to the first ones; rules are those of the Snakefile."""
    workflow = WORKFLOWS[name]
    text = (FILES / f"{workflow.file}.smk").read_text()
    rules = set(re.findall(r"^(?:rule|checkpoint) (\w+):", text, re.M)) - {"all"}
    ends = ["report"] if "report" in rules else [f"sort-{i}" for i in range(workflow.width)]
    seen: set[str] = set()
    while ends:
        seen.update(ends)
        ends = [parent for end in ends for parent in parents(workflow, end)]
    assert len(seen) == workflow.jobs
    assert {job.partition("-")[0] for job in seen} == rules


def test_the_chain_goes_back_by_what_ended_last() -> None:
    ends = {"align-0": 5.0, "align-1": 9.0, "sort-0": 20.0, "sort-1": 15.0}
    ran = {name: Ran("1", end - 1, end) for name, end in ends.items()}
    assert chain(WORKFLOWS["pairs8"], ran) == ["sort-0", "align-0"]
    assert chain(WORKFLOWS["parts8"], {**ran, "report": Ran("1", 30, 31)}) == [
        "report",
        "sort-0",
        "align-0",
    ]


def test_what_is_around_the_work_of_a_batch_job_is_python() -> None:
    ran = {"align-0": Ran("7", 104.0, 130.0), "align-1": Ran("8", 1.0, 2.0)}
    past = Past(submitted_s=90.0, started_s=100.0, run_s=33.0, cores=1)
    assert _around(ran, {"7": past}) == {"align-0": 7.0}


def test_ways_are_compared_without_python() -> None:
    mine = {Cell("shared", "fan60", seed, "windrow"): RESULT for seed in (1, 2)}
    other = replace(RESULT, makespan_s=320.0, python_s=140.0)
    found = mine | {Cell("shared", "fan60", seed, "slurm"): other for seed in (1, 2)}
    rows = table(found)
    assert any("0.50 (0.50 to 0.50)" in row for row in rows)
    assert "0.50 of the other's" in verdict(found)[0]
    slower = {cell: replace(one, makespan_s=400.0) for cell, one in mine.items()}
    assert verdict({**found, **slower})[1].endswith("shared, fan60.")
    assert verdict(mine) == ["No case has been run both ways yet."]


@pytest.mark.slow
def test_the_time_of_a_driver_is_that_of_all_that_it_starts(tmp_path: Path) -> None:
    """Also of a process that outlives it in a session of its own."""
    spin = "import time; [None for _ in iter(lambda: time.process_time() < 0.4, False)]"
    leave = (
        "import subprocess, sys; "
        f"subprocess.Popen([sys.executable, '-S', '-c', {spin!r}], start_new_session=True); "
        "sys.exit(3)"
    )
    file = tmp_path / "cpu"
    program = str(Path(sys.modules[driver_cpu.__module__].__file__ or ""))
    done = subprocess.run(
        [sys.executable, program, str(file), sys.executable, "-S", "-c", leave], check=False
    )
    assert done.returncode == 3
    assert float(file.read_text()) >= 0.4
