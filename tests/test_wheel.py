"""The product alone: its wheel in an environment that has what it asks for, and nothing else.

Nothing is fetched: what the wheel asks for is linked from where the tests run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from tests.docs.pages import a_home_of_its_own, blocks

from windrow.cli.manual import man_pages

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
NOT_THERE = ("scipy", "matplotlib", "pyarrow", "windrow_lab")

ENVIRONMENT = """\
storage = "1GB"
nodes = 4
"""

pytestmark = pytest.mark.slow


def built(folder: Path, kind: str, source: Path = ROOT) -> Path:
    """The wheel, or the archive of sources, that would be published."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [made] = folder.iterdir()
    return made


def needs_of(wheel: Path) -> Iterator[str]:
    """What the wheel asks for without any of its extras."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        asked = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    yield from without_extras(asked)


def without_extras(asked: list[str]) -> Iterator[str]:
    for one in asked:
        if "extra ==" not in one:
            yield re.split(r"[^A-Za-z0-9._-]", one)[0]


def closure(names: Iterator[str]) -> dict[str, Distribution]:
    """These distributions, and all that they need, as they are installed here."""
    found: dict[str, Distribution] = {}
    todo = list(names)
    while todo:
        name = todo.pop().lower()
        if name not in found:
            found[name] = distribution(name)
            todo += without_extras(found[name].requires or [])
    return found


def link(installed: Distribution, packages: Path) -> None:
    """Put links to all that a distribution brings into this folder of packages."""
    for name in {file.parts[0] for file in installed.files or [] if file.parts[0] != ".."}:
        if not (packages / name).exists():
            (packages / name).symlink_to(str(installed.locate_file(name)))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel."""
    wheel = built(tmp_path_factory.mktemp("wheel"), "wheel")
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=False)
    [packages] = folder.glob("lib/python*/site-packages")
    for installed in closure(needs_of(wheel)).values():
        link(installed, packages)
    pip = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "install"]
    subprocess.run([*pip, "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    return folder / "bin"


def answer(alone: Path, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """What a shell says to this code."""
    env = {"PATH": f"{alone}:{os.defpath}", "HOME": str(folder), **a_home_of_its_own(folder)}
    env["WINDROW_CACHE"] = str(alone.parent / "cache")
    command = ["bash", "-euo", "pipefail", "-c", code]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def said(alone: Path, folder: Path, code: str) -> str:
    """The same; it must not fail."""
    done = answer(alone, folder, code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_else_is_there(alone: Path, tmp_path: Path) -> None:
    program = f"from importlib.util import find_spec as f; print([n for n in {NOT_THERE} if f(n)])"
    assert said(alone, tmp_path, f'python -c "{program}"') == "[]\n"
    version = said(alone, tmp_path, "windrow --version")
    assert version.startswith("windrow ")


def test_each_command_has_a_man_page(alone: Path) -> None:
    pages = alone.parent / "share" / "man" / "man1"
    assert {path.name for path in pages.glob("windrow*")} == set(man_pages())
    assert (pages / "windrow-run.1").read_text() == man_pages()["windrow-run.1"]


def test_the_five_lines_of_the_readme_work(alone: Path, tmp_path: Path) -> None:
    shown = list(blocks(README))
    [workflow] = [block for block in shown if block.file == "squares.yaml"]
    [lines] = [block for block in shown if "$ windrow run squares.yaml\n" in block.text]
    workflow.set_up(tmp_path)
    said(alone, tmp_path, lines.text.replace("$ ", ""))
    assert (tmp_path / "sum").read_text() == "204\n"


def test_it_plans_simulates_and_compares(alone: Path, tmp_path: Path) -> None:
    """Kernels are compiled for the simulation, which shows that they can be; else it would take a
    minute."""
    said(alone, tmp_path, "windrow generate montage --tasks 50 --work 20h --seed 1 -o m.json")
    said(
        alone,
        tmp_path,
        "windrow generate log --model lublin --nodes 64 --jobs 200 --seed 1 -o l.swf.gz",
    )
    assert "conservative" in said(alone, tmp_path, "windrow simulate l.swf.gz")
    given = "m.json --log l.swf.gz --at 12h"
    as_written = "export NUMBA_DISABLE_JIT=1; windrow"
    assert "why: " in said(alone, tmp_path, f"{as_written} plan {given} --strategy glume")
    assert "glume" in said(
        alone, tmp_path, f"{as_written} compare {given} --strategies giant,glume"
    )


def test_a_study_says_how_to_get_it(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(ENVIRONMENT)
    how = "needs windrow-lab, which is not installed; pip install windrow-lab\n"
    for command in ("reproduce bent", "grid --help", "lab c.toml", "stream"):
        done = answer(alone, tmp_path, f"windrow {command}")
        assert done.returncode == 2
        assert done.stderr == f"windrow: error: windrow {command.split()[0]} {how}"
    done = answer(alone, tmp_path, "windrow plan w.yaml --environment e.toml")
    assert (done.returncode, done.stderr) == (
        2,
        f"windrow: error: windrow plan --environment {how}",
    )
    text = said(alone, tmp_path, "windrow help all")
    assert "with windrow-lab, which is not installed (pip install windrow-lab):" in text


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        (
            ROOT,
            {"src", "examples", "pyproject.toml", "PKG-INFO", "README.md", "LICENSE"}
            | {"ARCHITECTURE.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "GLOSSARY.md"}
            | {"hatch_build.py"},  # which makes the man pages of a wheel
        ),
        (ROOT / "lab", {"src", "pyproject.toml", "PKG-INFO", "README.md", "LICENSE"}),
    ],
    ids=["windrow-hpc", "windrow-lab"],
)
def test_an_archive_of_sources_has_what_is_listed(
    source: Path, parts: set[str], tmp_path: Path
) -> None:
    with tarfile.open(built(tmp_path, "sdist", source)) as archive:
        names = [Path(name).parts for name in archive.getnames()]
    found = {name[1] for name in names if len(name) > 1}
    assert found - {".gitignore"} == parts
    assert {name[2] for name in names if name[1:2] == ("src",)} == {
        "windrow" if source == ROOT else "windrow_lab"
    }
