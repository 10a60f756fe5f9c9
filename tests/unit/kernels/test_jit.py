"""Numba is loaded where a kernel is called, and nowhere else; what is compiled is announced, and
kept."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import windrow.kernels
import windrow_lab.kernels
from windrow.kernels.jit import COMPILED, Kernel, cache_folder
from windrow.shape import level_of_parallelism

IMPORT_ALL = """
import pkgutil, sys, windrow, windrow_lab
for package in (windrow, windrow_lab):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(("kernels.linking", "kernels.njit", "agent.__main__", "local.server")):
            __import__(module.name)
assert "numba" not in sys.modules and "llvmlite" not in sys.modules
"""  # noqa: E501

RUN = """
import sys
from windrow.cli.main import main
code = main(["run", "w.yaml"]) or main(["status"]) or main(["explain", "sum"]) or main(["report"])
assert "numba" not in sys.modules
sys.exit(code)
"""

CALL = """
import logging, sys
import numpy as np
from windrow.kernels.run.heap import pop
logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("windrow.kernels.jit").setLevel("DEBUG")
assert pop(np.array([1, 5, 3]), 0, 3) == 1
"""

ESTIMATE = """
import windrow
log = windrow.generate_log("lublin", nodes=64, jobs=200, seed=1)
cluster = windrow.Cluster(log, policy="easy")
cluster.advance(86400)
assert len(cluster.estimate([1, 64], [3600, 3600])) == 2
"""

WITHOUT_LINKING = """
import sys
sys.modules["windrow.kernels.linking"] = None  # as if numba had changed inside
import windrow
from windrow.shape import level_of_parallelism
print(level_of_parallelism(windrow.generate_workflow("montage", tasks=4000, seed=1)))
assert "windrow.kernels.njit" in sys.modules
"""

WORKFLOW = """
name: squares
tasks:
  - {id: "square-{i}", matrix: {i: 1..3}, command: "echo {i} > square-{i}", outputs: "square-{i}"}
  - {id: sum, command: "cat square-* > sum", inputs: "square-*", outputs: sum}
"""


def python(program: str, **environment: str) -> str:
    """What the program prints; it must not fail."""
    return answer_of(program, **environment).stdout


def answer_of(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the program prints, also on stderr; it must not fail."""
    command = [sys.executable, "-c", program]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert answer.returncode == 0, answer.stderr
    return answer


@pytest.mark.slow
def test_no_import_loads_numba() -> None:
    python(IMPORT_ALL)


@pytest.mark.slow
def test_a_run_on_this_machine_loads_no_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text(WORKFLOW, encoding="utf-8")
    python(RUN, WINDROW_CACHE=str(tmp_path / "cache"))
    assert not list(tmp_path.glob("cache/**/*.nbc"))


@pytest.mark.slow
def test_what_is_compiled_is_announced_and_kept(tmp_path: Path) -> None:
    first, second = (python(CALL, WINDROW_CACHE=str(tmp_path)) for _ in range(2))
    assert (first, second) == ("compiling heap.pop\n", "")
    assert [file.name for file in tmp_path.glob("**/*.nbc")] == [
        next(tmp_path.glob("**/heap.pop-*.nbc")).name
    ]


@pytest.mark.slow
def test_a_program_that_set_up_no_logging_is_told_what_is_compiled(tmp_path: Path) -> None:
    first, second = (answer_of(ESTIMATE, WINDROW_CACHE=str(tmp_path)).stderr for _ in range(2))
    assert first.splitlines() == [
        "windrow: compiling the simulator (once per version, about 8 s) ...",
        "windrow: compiling the forecaster (once per version, about 3 s) ...",
    ]
    assert second == ""


def test_a_change_of_a_study_compiles_none_of_our_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "some_study" / "kernels" / "one.py"
    source.parent.mkdir(parents=True)
    (tmp_path / "some_study" / "__init__.py").touch()
    source.touch()
    import_module("some_study")
    folder_now = cache_folder.__wrapped__
    ours = folder_now()
    theirs = folder_now("some_study")
    source.write_text("# changed")
    assert folder_now() == ours
    assert len({ours, theirs, folder_now("some_study")}) == 2


@pytest.mark.slow
def test_kernels_compile_also_without_what_we_change_of_numba(tmp_path: Path) -> None:
    found = python(WITHOUT_LINKING, WINDROW_CACHE=str(tmp_path))
    assert int(found) == level_of_parallelism(
        windrow.generate_workflow("montage", tasks=4000, seed=1)
    )


@pytest.mark.slow
def test_without_a_folder_for_it_kernels_run_all_the_same() -> None:
    assert python(CALL, WINDROW_CACHE="/dev/null/nowhere") == "compiling heap.pop\n"


@pytest.mark.parametrize("name", sorted(COMPILED))
def test_what_is_announced_is_a_kernel(name: str) -> None:
    modules = [
        import_module(module.name)
        for package in (windrow.kernels, windrow_lab.kernels)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    assert name in {
        value.name
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Kernel)
    }
