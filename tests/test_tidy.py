"""House rules that a reviewer should not have to look for."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOUND = (p for folder in ("src", "lab", "tests", "bench") for p in (ROOT / folder).rglob("*.py"))
SOURCES = sorted(
    p for p in FOUND if not any(part.startswith(".") for part in p.relative_to(ROOT).parts)
)
PACKAGES = (ROOT / "src" / "windrow", ROOT / "lab" / "src" / "windrow_lab")
OURS = {
    path: str(path.relative_to(package))
    for package in PACKAGES
    for path in SOURCES
    if path.is_relative_to(package)
}
"""What is installed, by its place in its package."""

UNCOUNTED = (
    ast.expr_context,
    ast.operator,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
    ast.alias,
    ast.arg,
    ast.arguments,
)
MOST_NODES = 300


def _content(tree: ast.AST) -> int:
    """Statements and expressions: what there is to read, whatever the layout."""
    children = (
        child
        for field, value in ast.iter_fields(tree)
        if field not in ("annotation", "returns", "decorator_list")
        for child in (value if isinstance(value, list) else [value])
        if isinstance(child, ast.AST)
    )
    return (not isinstance(tree, UNCOUNTED)) + sum(map(_content, children))


def test_functions_hold_little() -> None:
    """Kernels are exempt: numba inlines nothing, so what is one loop there is one function."""
    found = {
        f"{place}:{node.name}"
        for path, place in OURS.items()
        if not place.startswith("kernels/")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _content(node) > MOST_NODES
    }
    assert found == set()


def _is_truth(node: ast.expr) -> bool:
    """Whether this can only be true or false, as far as can be seen."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return name.startswith(("is_", "has_"))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("bool", "any", "all")
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.Compare)


def test_conditions_are_written_as_such() -> None:
    """No text or list times a truth value, and no conditional expression in another."""
    sequences = (ast.List, ast.Tuple, ast.JoinedStr, ast.Constant)
    found = []
    for path, place in OURS.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                parts = (node.left, node.right)
                is_text = any(isinstance(part, sequences) for part in parts)
                is_number = any(
                    isinstance(part, ast.Constant) and not isinstance(part.value, str)
                    for part in parts
                )
                if is_text and not is_number and any(map(_is_truth, parts)):
                    found.append(f"{place}:{node.lineno}")
            if isinstance(node, ast.IfExp) and any(
                isinstance(part, ast.IfExp) for part in ast.walk(node) if part is not node
            ):
                found.append(f"{place}:{node.lineno}")
    assert found == []


def test_no_room_without_a_name() -> None:
    nameless = {"utils.py", "util.py", "helpers.py", "helper.py", "misc.py", "common.py"}
    assert not [str(p) for p in SOURCES if p.name in nameless]


def test_every_module_says_what_it_is_for() -> None:
    ours = [
        p for p in SOURCES if "tests" not in p.relative_to(ROOT).parts and p.read_text().strip()
    ]
    silent = [str(p) for p in ours if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_what_the_docstring_of_a_package_names_is_there() -> None:
    """Modules, and names inside them, as seen from the package or from the whole."""
    missing = []
    for init in (path for path in OURS if path.name == "__init__.py"):
        package = ".".join(init.parts[init.parts.index("src") + 1 : -1])
        for name in re.findall(
            r"`([a-z_]+(?:\.[A-Za-z_]+)*)`", ast.get_docstring(ast.parse(init.read_text())) or ""
        ):
            if not any(_resolves(f"{prefix}{name}") for prefix in (f"{package}.", "windrow.", "")):
                missing.append(f"{package}: {name}")
    assert missing == []


def _resolves(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return True


def test_the_changelog_is_a_page_and_knows_every_dependency() -> None:
    """Each with its reason; a package does not count as its own dependency."""
    wanted = set()
    for file in ("pyproject.toml", "lab/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text())["project"]
        extras = project.get("optional-dependencies", {}).values()
        for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]:
            wanted.add(re.split(r"[^A-Za-z0-9_-]", requirement)[0])
    reasons = (ROOT / "CHANGELOG.md").read_text().partition("### Dependencies, and why")[2]
    assert [name for name in sorted(wanted) if name not in reasons] == []
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 80, "a release is one page"


def test_no_command_imports_another() -> None:
    """What several commands need is a module beside them, named by what it does."""
    found = [
        f"{place}:{node.lineno}"
        for path, place in OURS.items()
        if place.startswith(("cli/commands/", "commands/"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom) and "commands" in _parts(node)
    ]
    assert found == []


def _parts(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Every word of the names that are imported, and where from."""
    names = [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom):
        names.append(node.module or "commands")  # `from . import` is from there
    return {part for name in names for part in name.split(".")}


def test_records_of_the_laboratory_are_no_pages_for_users() -> None:
    prove = (ROOT / "bench" / "prove.py").read_text()
    assert 'PAGE = ROOT / "bench" / "proof.md"' in prove
    assert not [*(ROOT / "docs").rglob("proof.md"), *(ROOT / "docs").rglob("speed.md")]


def test_the_hook_before_a_commit_is_lint_and_downloads_nothing() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert [(hook["entry"], hook["language"]) for hook in hooks] == [("make lint", "system")]


def test_nobody_but_the_simulation_reaches_into_a_cluster() -> None:
    """What others need of a cluster's state is a method of it; a class may of course call a field
    of its own so."""
    private = [
        f"{place}:{node.lineno}"
        for path, place in OURS.items()
        if not place.startswith("sim/")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("_state", "_log")
        if not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert private == []


DELETES = {"unlink", "rmtree", "rmdir", "removedirs", "rename", "renames"}
EXEMPT = (
    "trials/virtual/",
)  # its disks are folders of its own, and it deletes what a fault would destroy


def test_one_module_deletes_files_and_renames_over_them() -> None:
    """`deletion`, which asks for a proof that what goes is ours."""
    found = [
        f"{place}:{node.lineno}"
        for path, place in OURS.items()
        if place != "deletion.py" and not place.startswith(EXEMPT)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute | ast.Call | ast.ImportFrom) and _deletes(node)
    ]
    assert found == []


def _deletes(node: ast.Attribute | ast.Call | ast.ImportFrom) -> bool:
    """Lists have `remove`, and texts `replace` with two arguments."""
    if isinstance(node, ast.ImportFrom):
        return node.module in ("os", "shutil") and any(
            name.name in {*DELETES, "remove", "replace", "move"} for name in node.names
        )
    if isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr == "replace"
        return is_method and len(node.args) == 1 and not node.keywords
    of_system = isinstance(node.value, ast.Name) and node.value.id in ("os", "shutil")
    return node.attr in DELETES or (of_system and node.attr in {"remove", "replace", "move"})


def _glossary() -> tuple[list[str], list[str]]:
    """The entries' lines, and the words of the table of those not used; what a bracket explains
    needs a reader."""
    used, unused = (
        (ROOT / "GLOSSARY.md")
        .read_text()
        .split("## Words we use\n")[1]
        .split("## Words we do not use\n")
    )
    cells = [line.split("|")[1].strip() for line in unused.splitlines() if line.startswith("|")]
    return used.strip().splitlines(), cells[2:]


def test_the_glossary_is_sorted_and_says_each_thing_in_one_line() -> None:
    entries, unused = _glossary()
    words = [re.fullmatch(r"- \*\*([a-z -]+)\*\*: .+\.", line) for line in entries]
    assert not [line for line, found in zip(entries, words, strict=True) if found is None]
    names = [found[1] for found in words if found]
    assert names == sorted(set(names))
    assert len(names) <= 90, "which words does a newcomer not need?"
    assert not [line for line in entries if re.search(r"; (also|of|in|as) ", line)], "two meanings"
    assert unused == sorted(set(unused))
    assert not set(names) & set(unused)


def test_words_that_the_glossary_rules_out_are_in_no_message() -> None:
    unused = [word for word in _glossary()[1] if "(" not in word]
    pattern = re.compile(rf"\b(?:{'|'.join(unused)})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path, place in OURS.items()
        if not place.startswith("reproductions/")  # which keep the names of published columns
        for line, text in _messages(ast.parse(path.read_text()))
        if pattern.search(text)
    ]
    texts = [path for package in PACKAGES for path in sorted(package.rglob("*.txt"))]
    for path in texts:  # what help says
        found += [
            f"{path.name}: {text}" for text in path.read_text().splitlines() if pattern.search(text)
        ]
    assert not found


def test_node_time_is_called_wasted_nowhere() -> None:
    """Allocated = used + idle + lost: in papers, too."""
    texts = [path for package in PACKAGES for path in package.rglob("*.toml")]
    files = [*OURS, *texts, *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert not [path for path in files if "wasted" in path.read_text().lower()]


_SAID = {
    "say",
    "tell",
    "fault",
    "heading",
    "note",
    "figure",
    "section",
    "waiting",
    "warning",
    "info",
}
_HELP = {"help", "description", "epilog", "what", "fix"}


def _messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What people may read: texts of help, of errors that are raised, and of calls that print or
    write pages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from _texts(node.exc)
        elif isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
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


def test_the_architecture_is_short_and_names_every_room() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 3500
    rooms = page.partition("## Rooms")[2].partition("\nStudies are")[0]
    named = set(re.findall(r"\*\*`([a-z_]+)`\*\*", rooms))
    product = [path.relative_to(PACKAGES[0]) for path in OURS if path.is_relative_to(PACKAGES[0])]
    assert {path.parts[0].removesuffix(".py") for path in product} - {"__init__"} == named
    files = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page)
    places = (ROOT / "src" / "windrow", ROOT, ROOT / "lab" / "src" / "windrow_lab")
    assert [name for name in files if not any((top / name).exists() for top in places)] == []
