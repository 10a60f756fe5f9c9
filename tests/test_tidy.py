"""House rules that a reviewer should not have to look for."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOUND = (p for folder in ("src", "tests", "bench") for p in (ROOT / folder).rglob("*.py"))
SOURCES = sorted(p for p in FOUND if not any(part.startswith(".") for part in p.relative_to(ROOT).parts))


def test_files_and_functions_fit_on_few_screens() -> None:
    long = [
        f"{p.name}: {len(p.read_text().splitlines())} lines" for p in SOURCES if len(p.read_text().splitlines()) > 500
    ]
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > 70:
                    long.append(f"{path.name}: {node.name} has {lines} lines")
    assert not long


def test_no_room_without_a_name() -> None:
    nameless = {"utils.py", "util.py", "helpers.py", "helper.py", "misc.py", "common.py"}
    assert not [str(p) for p in SOURCES if p.name in nameless]


def test_every_module_says_what_it_is_for() -> None:
    ours = [p for p in SOURCES if "tests" not in p.relative_to(ROOT).parts and p.read_text().strip()]
    silent = [str(p) for p in ours if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_the_changelog_knows_every_dependency() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    dependencies = project.split("dependencies = [", 1)[1].split("]", 1)[0]
    names = [line.strip().strip('",').split(">")[0] for line in dependencies.splitlines() if line.strip()]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert [name for name in names if name not in changelog] == []


def test_nobody_but_the_simulation_reaches_into_a_cluster() -> None:
    """What others need of a cluster's state is a method of it; a class may of course call a field of its own so."""
    room = ROOT / "src" / "windrow"
    private = [
        f"{path.relative_to(room)}:{node.lineno}"
        for path in sorted(room.rglob("*.py"))
        if path.relative_to(room).parts[0] != "sim"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("_state", "_log")
        if not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert private == []
