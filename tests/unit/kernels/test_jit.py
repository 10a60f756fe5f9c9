"""Numba is loaded where a kernel is called, and nowhere else; what is compiled is announced, and kept."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from windrow import kernels
from windrow.cli import progress
from windrow.kernels.jit import Kernel

IMPORT_ALL = """
import pkgutil, sys, windrow
for module in pkgutil.walk_packages(windrow.__path__, "windrow."):
    if module.name not in ("windrow.kernels.linking", "windrow.agent.__main__", "windrow.queues.local.server"):
        __import__(module.name)
assert "numba" not in sys.modules and "llvmlite" not in sys.modules
"""

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
logging.getLogger("windrow.kernels.jit").setLevel("INFO")
assert pop(np.array([1, 5, 3]), 0, 3) == 1
"""

WORKFLOW = """
name: squares
tasks:
  - {id: "square-{i}", matrix: {i: 1..3}, command: "echo {i} > square-{i}", outputs: "square-{i}"}
  - {id: sum, command: "cat square-* > sum", inputs: "square-*", outputs: sum}
"""


def python(program: str, **environment: str) -> str:
    """What the program prints; it must not fail."""
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.slow
def test_no_import_loads_numba() -> None:
    python(IMPORT_ALL)


@pytest.mark.slow
def test_a_run_on_this_machine_loads_no_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text(WORKFLOW, encoding="utf-8")
    python(RUN, WINDROW_CACHE=str(tmp_path / "cache"))
    assert not list(tmp_path.glob("cache/**/*.nbc"))


@pytest.mark.slow
def test_what_is_compiled_is_announced_and_kept(tmp_path: Path) -> None:
    first, second = (python(CALL, WINDROW_CACHE=str(tmp_path)) for _ in range(2))
    assert (first, second) == ("heap.pop\n", "")
    assert [file.name for file in tmp_path.glob("**/*.nbc")] == [next(tmp_path.glob("**/heap.pop-*.nbc")).name]


@pytest.mark.slow
def test_without_a_folder_for_it_kernels_run_all_the_same() -> None:
    assert python(CALL, WINDROW_CACHE="/dev/null/nowhere") == "heap.pop\n"


@pytest.mark.parametrize("name", progress.COMPILED)
def test_what_is_announced_is_a_kernel(name: str) -> None:
    modules = [import_module(m.name) for m in pkgutil.walk_packages(kernels.__path__, "windrow.kernels.")]
    assert name in {value.name for module in modules for value in vars(module).values() if isinstance(value, Kernel)}
