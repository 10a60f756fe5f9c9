"""House rules that a reviewer should not have to look for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

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


def _glossary() -> tuple[list[str], list[str]]:
    """The entries' lines, and the words of the table of those not used; what a bracket explains needs a reader."""
    used, unused = (ROOT / "GLOSSARY.md").read_text().split("## Words we use\n")[1].split("## Words we do not use\n")
    cells = [line.split("|")[1].strip() for line in unused.splitlines() if line.startswith("|")]
    return used.strip().splitlines(), cells[2:]


def test_the_glossary_is_sorted_and_says_each_thing_in_one_line() -> None:
    entries, unused = _glossary()
    words = [re.fullmatch(r"- \*\*([a-z -]+)\*\*: .+\.", line) for line in entries]
    assert not [line for line, found in zip(entries, words, strict=True) if found is None]
    names = [found[1] for found in words if found]
    assert names == sorted(set(names))
    assert unused == sorted(set(unused))
    assert not set(names) & set(unused)


def test_words_that_the_glossary_rules_out_are_in_no_message() -> None:
    unused = [word for word in _glossary()[1] if "(" not in word]
    pattern = re.compile(rf"\b(?:{'|'.join(unused)})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in SOURCES
        if "src" in path.parts and "reproductions" not in path.parts  # which keep the names of published columns
        for line, text in _messages(ast.parse(path.read_text()))
        if pattern.search(text)
    ]
    for path in sorted((ROOT / "src").rglob("*.txt")):  # what help says
        found += [f"{path.name}: {text}" for text in path.read_text().splitlines() if pattern.search(text)]
    assert not found


_SAID = {"say", "tell", "fault", "heading", "note", "figure", "section", "waiting", "warning", "info"}
_HELP = {"help", "description", "epilog", "what", "fix"}


def _messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What people may read: texts of help, of errors that are raised, and of calls that print or write pages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from _texts(node.exc)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for part in node.args if name in _SAID else ():
                yield from _texts(part)
            for keyword in node.keywords:
                if keyword.arg in _HELP:
                    yield from _texts(keyword.value)
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield from _texts(statement.value)


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest would collect neither."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_the_walk_in_the_architecture_names_what_is_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walk = page.partition("## A newcomer's walk")[2].partition("## ")[0]
    steps = re.findall(r"^[0-9]+\. ", walk, re.MULTILINE)
    assert 10 <= len(steps) <= 25
    for name in re.findall(r"`((?:[a-z_]+\.)+\w+(?:\.\w+)*)`", walk):
        assert resolve_name(f"windrow.{name}") is not None, name
