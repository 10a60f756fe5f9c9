"""A generated workflow that runs reads and writes files of the sizes that it says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from windrow.cli.main import main
from windrow.formats import read_runnable
from windrow_lab.storage.flows import of_workflow


def test_tasks_of_a_canonical_workload_do_their_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = ("depth=2", "batch_mb=0.3", "private_mb=0.1", "run_s=0.01")
    given = [word for size in sizes for word in ("--set", size)]
    assert main(["generate", "canonical", "--tasks", "6", *given, "-o", "work.yaml"]) == 0
    runnable = read_runnable("work.yaml")
    workflow = runnable.workflow
    assert len(workflow) == 6
    for number in range(len(workflow)):
        step = runnable.steps[number]
        task = workflow.task(number)
        assert all((tmp_path / name).is_file() for name in task.inputs)
        subprocess.run(step.command, check=True, cwd=tmp_path, shell=isinstance(step.command, str))
    for file in workflow.files:
        assert (tmp_path / file.id).stat().st_size == file.size_bytes > 0
    flow = of_workflow(workflow)
    assert len(flow.pipes) - 1 == 3
    assert flow.volumes.tolist() == [300_000.0] * 2
    assert flow.files[flow.is_kept].tolist() == [100_000.0] * 3
