"""Tests that root runs as somebody else: root may do what others may not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

NOBODY = "nobody"


def as_nobody() -> list[str]:
    # setpriv itself may still start what only root can reach, env may not
    return ["setpriv", f"--reuid={NOBODY}", "--regid=nogroup", "--clear-groups", "--", "env"]


def python_path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def python_for_all(env: Mapping[str, str], imports: str = "numba, msgspec, windrow") -> str:
    """A Python of this version that other users can start, with all that is imported here."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    test = f"import sys; assert sys.version.startswith('{version}.'); import {imports}"
    for python in (sys.executable, f"/usr/bin/python{version}"):
        command = [*as_nobody(), python, "-P", "-c", test]
        try:
            done = subprocess.run(
                command, env={**env, **python_path()}, cwd="/", capture_output=True, check=False
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return pytest.skip("no Python of this version that other users can start")
