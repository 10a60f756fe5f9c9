"""The README's quick start on Slurm, followed literally."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.slow
def test_the_quick_start_on_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    text = README.read_text()
    workflow = re.search(r"^```yaml\n(# squares\.yaml\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    commands = re.search(r"^```sh\n(.*?)^```", text[text.index("## On Slurm") :], re.MULTILINE | re.DOTALL)
    assert workflow is not None
    assert commands is not None
    assert commands[1].count("windrow ") >= 4
    (tmp_path / "squares.yaml").write_text(workflow[1])
    home = {f"XDG_{name}_HOME": str(tmp_path / "home" / name) for name in ("STATE", "DATA", "CONFIG")}
    path = f"{Path(sys.executable).parent}:{slurm.env['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", commands[1]],
        cwd=tmp_path,
        env={**slurm.env, **home, "PATH": path},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert "sbatch" in done.stdout  # the plan showed the exact command
    assert "complete" in done.stdout
    assert (tmp_path / ".windrow/runs/squares-1/report.html").is_file()
    assert slurm.is_free()
