"""`import windrow`: light, complete, and no name hidden by a module."""

from __future__ import annotations

import subprocess
import sys

import pytest

import windrow


def test_import_is_light() -> None:
    program = "import sys, windrow; sys.exit(bool({'numpy', 'numba', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", windrow.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(windrow, name) is not None
    assert name in dir(windrow)


def test_shape_is_the_function_whoever_imports_the_module_first() -> None:
    program = (
        "import windrow.shape; from windrow.shape import kinds; import windrow; "
        "windrow.shape.__code__"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        windrow.nothing  # noqa: B018


def test_a_workflow_from_start_to_end() -> None:
    workflow = windrow.generate_workflow("montage", tasks=50, seed=1)
    assert windrow.shape(workflow).tasks == 50
    simulation = windrow.simulate(windrow.generate_log("lublin", jobs=50, seed=1), policy="easy")
    assert simulation.summary().jobs == 50
