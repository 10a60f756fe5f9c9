"""Every example in the README and in the how-to pages runs as printed, and so does every workflow
that is shown."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests.docs.pages import HOW_TOS, REFERENCES, ROOT, Block, a_home_of_its_own, blocks, in_a_shell

from windrow.app.settings import read_settings
from windrow.cli.main import main


def _words(text: str) -> str:
    """Wherever lines break."""
    return " ".join(text.split())


SHOWN = [block for page in (*HOW_TOS, *REFERENCES) for block in blocks(page)]
# What joins a run of its page (`run --add`, `run.add`) is run there, beside what that run made; so
# is what is shown to fail.
FAILS = "windrow run {} # exit code 1"
WORKFLOWS = [
    block
    for block in SHOWN
    if block.language == "yaml"
    and not any(
        joins in _words(block.page.read_text())
        for joins in (f"--add {block.file}", f'add("{block.file}")', FAILS.format(block.file))
    )
]
SETTINGS = [
    block
    for block in SHOWN
    if block.language == "toml" and ("[queues." in block.text or "[sites." in block.text)
]


@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.stem)
def test_examples_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in a_home_of_its_own(tmp_path).items():
        monkeypatch.setenv(name, value)
    names: dict[str, object] = {}
    shown = list(blocks(page))
    assert shown, f"{page.name} has no examples"
    for block in shown:
        block.set_up(tmp_path)
        if block.language == "python":
            exec(compile(block.text, page.name, "exec"), names)
        elif block.language == "console":
            run_commands(block.text, tmp_path, capsys)


@pytest.mark.parametrize("block", WORKFLOWS, ids=lambda block: block.label)
def test_workflows_run(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With what the page shows before it, each ends with every task finished."""
    assert block.file is not None, "begin it with a comment that names it: # name.yaml"
    before = [one for one in blocks(block.page) if one.number <= block.number]
    for one in before:
        if one.prepares or one.file in ("windrow.toml", block.file):
            one.set_up(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in a_home_of_its_own(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert main(["run", block.file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["state"] == "complete"
    assert told["tasks"]["finished"] == told["tasks"]["total"]


def test_the_example_of_checkpoints_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a how-to shows it, but for less time."""
    for source in ("checkpoints.yaml", "steps.py"):
        text = (ROOT / "examples" / source).read_text()
        text = text.replace('"0.25"', '"0.05"').replace("every: 3s", "every: 1s")
        (tmp_path / source).write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, value in a_home_of_its_own(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert main(["run", "checkpoints.yaml"]) == 0
    assert (tmp_path / "long.txt").exists()
    assert not [*tmp_path.glob("state-*")]


@pytest.mark.parametrize("block", SETTINGS, ids=lambda block: block.label)
def test_settings_are_read(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "windrow.toml"
    file.write_text(block.text)
    assert read_settings(file) != read_settings(None)


def test_other_toml_is_toml() -> None:
    for block in SHOWN:
        if block.language == "toml":
            tomllib.loads(block.text)


@pytest.mark.parametrize(
    "notebook", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = [
        cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    assert cells
    for cell in cells:
        assert cell["outputs"] == [], "commit notebooks without output"
        exec(compile("".join(cell["source"]), notebook.name, "exec"), names)


def run_commands(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command as printed; where the page shows what it prints, it prints that. Of Windrow's
    it may be a part, or an error."""
    for piece in text.split("$ ")[1:]:
        command, _, shown = piece.partition("\n")
        if command.startswith("windrow "):
            capsys.readouterr()
            code = main(shlex.split(command, comments=True)[1:])
            assert code == _expected(command, shown), command
            assert _words(shown) in _words("".join(capsys.readouterr())), command
            continue
        printed = in_a_shell(command, folder)
        assert not shown.strip() or printed.strip() == shown.strip(), command


def _expected(command: str, shown: str) -> int:
    """The exit code, which a comment says if it is neither 0 nor that of an error that is shown."""
    said = re.search(r"# exit code (\d+)$", command)
    if said is not None:
        return int(said[1])
    return 2 if "windrow: error:" in shown else 0


def test_pages_hide_nothing_that_a_reader_needs() -> None:
    for page in (*HOW_TOS, *REFERENCES):
        assert "<!--" not in page.read_text(), f"{page.name}: what a comment holds, no reader sees"
        assert not [
            block for block in blocks(page) if block.language == "python" and "assert" in block.text
        ], page.name
