from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from windrow.errors import InputError, UserError
from windrow.formats import read_log, read_workflow, write_log, write_workflow
from windrow.model import Task, Workflow

SWF = "; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 -1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize("name", ["wf.toml", "wf", "wf.gz", "log.swf"])
def test_unknown_suffixes_of_workflows_are_refused_with_those_known(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(
        UserError, match=rf"{name}: a workflow has a name that ends in .*\.xml, \.yaml, \.yml \(or"
    ):
        read_workflow(tmp_path / name)


def test_workflows_are_written_as_json_only(tmp_path: Path) -> None:
    workflow = Workflow.from_tasks("w", [Task("a", 1.0)])
    with pytest.raises(
        UserError, match=r"wf\.dax: a workflow to write has a name that ends in \.json"
    ):
        write_workflow(workflow, tmp_path / "wf.dax")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["log.swf", "log.SWF", "log.txt", "log.swf.gz", "log.txt.gz"])
def test_logs_by_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / "source.txt").write_text(SWF)
    log = read_log(tmp_path / "source.txt")
    write_log(log, tmp_path / name)
    again = read_log(tmp_path / name, nodes=2)
    assert (len(again), again.machine_nodes, again.name) == (1, 2, "log")


def test_unknown_suffixes_of_logs_are_refused_with_those_known(tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text(SWF)
    log = read_log(tmp_path / "source.txt")
    with pytest.raises(UserError, match=r"log\.csv: a log has a name that ends in \.swf, \.txt"):
        read_log(tmp_path / "log.csv")
    with pytest.raises(
        UserError, match=r"log\.csv: a log to write has a name that ends in \.swf, \.txt"
    ):
        write_log(log, tmp_path / "log.csv")


def test_what_the_model_refuses_gets_the_files_name(tmp_path: Path) -> None:
    (tmp_path / "c.dax").write_text(
        '<adag><job id="A" name="k"/><child ref="A"><parent ref="A"/></child></adag>'
    )
    with pytest.raises(InputError, match=r"c\.dax: tasks depend on each other in a cycle: A -> A"):
        read_workflow(tmp_path / "c.dax")


def test_reading_loads_neither_numba_nor_the_network() -> None:
    code = (
        "import sys, windrow.formats; print([m for m in ('numba', 'urllib.request') if m in "
        "sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
