"""The pages of every key: none is left out, each has its meaning and an example, and the examples
run."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.docs.pages import ROOT, a_home_of_its_own

from windrow.app import settings as app
from windrow.app.settings import find_settings, read_settings
from windrow.cli.main import main
from windrow.formats.native import schema
from windrow.formats.native.reader import read_native

keys: Any = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "keys.py")))
EVERY = ROOT / "examples" / "every-key"


def test_every_key_of_a_workflow_file_is_on_its_page_with_an_example() -> None:
    paths = {path for path, _, _ in keys.workflow_keys()}
    wanted = {
        *schema.WORKFLOW_KEYS,
        *(f"task: {key}" for key in schema.TASK_KEYS),
        *(f"task: checkpoint: {key}" for key in schema.CHECKPOINT_KEYS),
        *(f"task: container: {key}" for key in schema.CONTAINER_KEYS),
        *(f"files: NAME: {key}" for key in schema.FILE_KEYS),
        *(f"volumes: NAME: {key}" for key in (*schema.CACHE_KEYS, *schema.SCRATCH_KEYS)),
    }
    assert wanted <= paths
    lacking = [
        path
        for path, _, meaning in keys.workflow_keys()
        if not meaning or not keys.example_of(path)
    ]
    assert lacking == []
    page = keys.workflow_page()
    assert [path for path in paths if f"\n## `{path}`\n" not in page] == []


@pytest.mark.slow
def test_the_example_of_every_key_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EVERY, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    for name, value in a_home_of_its_own(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert main(["run", "workflow.yaml"]) == 0
    assert Path("data/best-b.txt").read_text() == "ACGT\n"
    assert Path("a-2.bam").read_text() == "ACGT\n3 a\n"
    assert len(read_native("elsewhere.yaml").steps) == 4


TABLES = {
    "queues.slurm": app.SlurmTable,
    "queues.pbs": app.PbsTable,
    "queues.local": app.LocalTable,
    "sites.west": app.SlurmTable,
    "data": app.DataTable,
    "run": app.RunTable,
}


def test_every_key_of_windrow_toml_is_on_its_page_with_an_example() -> None:
    told = list(keys.settings())
    assert [(table, key) for table, key, _, meaning in told if not meaning] == []
    of_queues = {key for table, key, _, _ in told if table.startswith(("queues", "sites"))}
    for table, kind in TABLES.items():
        there = of_queues if "." in table else {key for name, key, _, _ in told if name == table}
        assert set(kind.__struct_fields__) <= there, table
    page = keys.settings_page()
    assert all(f"| `{example}` |" in page for _, key, example, _ in told if key)
    assert "## `[profiles.night]`" in page


def test_the_example_of_every_setting_is_read() -> None:
    file = ROOT / "examples" / "every-setting" / "windrow.toml"
    found = read_settings(file)
    assert found.run.cap == 8
    assert found.profiles["night"].objective == "node-hours"
    assert list(found.tables) == ["slurm", "pbs", "local", "west"]
    assert find_settings(file.parent) == file
