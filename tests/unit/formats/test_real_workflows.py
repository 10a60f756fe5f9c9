"""Every real workflow against the index beside it, which another program made."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from windrow.formats import read_workflow, write_workflow
from windrow.model import Workflow


def widths(workflow: Workflow) -> list[int]:
    return np.bincount(workflow.levels).tolist()  # type: ignore[no-any-return]


def longest_path_s(workflow: Workflow) -> float:
    ends = np.zeros(len(workflow))
    for task in workflow.order:
        parents = workflow.parents.of(task)
        ends[task] = workflow.runtime_s[task] + (ends[parents].max() if len(parents) else 0.0)
    return float(ends.max())


@pytest.mark.slow
def test_all_dax_files(data: Path) -> None:
    index = (data / "dax" / "INDEX.tsv").read_text().splitlines()
    assert len(index) == 44
    for line in index:
        name, *fields = line.split("\t")
        expected = dict(field.split("=", 1) for field in fields if field)
        workflow = read_workflow(data / "dax" / f"{name}.gz")
        assert workflow.name == Path(name).stem
        found = (len(workflow), workflow.parents.edges, workflow.depth, widths(workflow))
        wanted = [int(expected[key]) for key in ("tasks", "edges", "levels")]
        assert found == (*wanted, json.loads(expected["widths"])), name
        figures = (workflow.work_s, float(workflow.runtime_s.max()), longest_path_s(workflow))
        for figure, key, digits in zip(figures, ("sum", "max", "cp"), (2, 1, 1), strict=True):
            assert math.isclose(figure, float(expected[key]), abs_tol=0.51 * 10**-digits), (
                name,
                key,
            )


def test_all_wfformat_files(data: Path) -> None:
    with (data / "wfformat" / "INDEX.csv").open() as file:
        index = list(csv.DictReader(file))
    assert len(index) == 21
    for row in index:
        workflow = read_workflow(data / "wfformat" / row["file"])
        found = (len(workflow), workflow.parents.edges, workflow.depth, max(widths(workflow)))
        assert found == tuple(int(row[key]) for key in ("tasks", "edges", "levels", "max_width")), (
            row
        )
        assert math.isclose(workflow.work_s, float(row["sum_runtime_s"]), rel_tol=1e-9), row


@pytest.mark.parametrize(
    "file",
    [
        "dax/pegasus/Sipht_60.xml.gz",
        "dax/glume/GENOME_50_360000.dax.gz",
        "wfformat/bacass-dirt02-001.json.gz",
        "wfformat/epigenomics-chameleon-hep-4seq-100k-001.json.gz",
    ],
)
def test_real_workflows_go_out_and_in_unchanged(data: Path, tmp_path: Path, file: str) -> None:
    workflow = read_workflow(data / file)
    write_workflow(workflow, tmp_path / "out.json.gz")
    again = read_workflow(tmp_path / "out.json.gz")
    assert list(again) == list(workflow)
    assert (again.name, again.files) == (workflow.name, workflow.files)


def test_kinds_of_real_workflows_are_their_programs(data: Path) -> None:
    montage = read_workflow(data / "wfformat" / "montage-chameleon-2mass-005d-001.json.gz")
    assert {kind: montage.kinds.count(kind) for kind in ("mProject", "mDiffFit", "mConcatFit")} == {
        "mProject": 12,
        "mDiffFit": 18,
        "mConcatFit": 3,
    }
    genome = read_workflow(data / "wfformat" / "1000genome-chameleon-10ch-100k-001.json.gz")
    assert genome.kinds.count("individuals") == 100
    assert genome.kinds.count("individuals_merge") == 10
