"""Every example in the README and in the how-to pages runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from windrow.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")])
BLOCK = re.compile(r"^```(python|console|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):  # a queue and a history of their own
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    names: dict[str, object] = {}
    blocks = BLOCK.findall(page.read_text())
    assert blocks, f"{page.name} has no examples"
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
        elif language == "console":
            run_commands(text)
        elif named := re.match(r"# (\S+\.yaml)\n", text):  # other pieces of YAML are no whole workflows
            Path(named[1]).write_text(text)


@pytest.mark.parametrize("notebook", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        assert cell["outputs"] == [], "commit notebooks without output"
        exec(compile("".join(cell["source"]), notebook.name, "exec"), names)


def run_commands(text: str) -> None:
    for line in text.splitlines():
        if line.startswith("$ windrow "):
            assert main(shlex.split(line)[2:]) == 0, line
