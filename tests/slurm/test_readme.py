"""The README's quick start on Slurm, and the how-to's, followed literally."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import ROOT, blocks, in_a_shell
from tests.slurm.cluster import SlurmCluster

HOW_TO = ROOT / "docs" / "how-to" / "run-a-workflow.md"


def _followed(page: Path, slurm: SlurmCluster, folder: Path) -> str:
    """Write the workflow that the page shows, and type what it says to a shell; what was
    printed."""
    shown = list(blocks(page))
    workflow = next(block for block in shown if block.file)
    (folder / str(workflow.file)).write_text(workflow.text)
    commands = [block.text for block in shown if block.language == "sh"]
    assert sum(text.count("windrow ") for text in commands) >= 4
    return "".join(in_a_shell(text, folder, slurm.env) for text in commands)


def test_the_quick_start_on_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    said = _followed(ROOT / "README.md", slurm, tmp_path)
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert "sbatch" in said  # the plan showed the exact command
    assert "complete" in said
    assert (tmp_path / ".windrow/runs/squares-1/report.html").is_file()
    assert slurm.is_free()


def test_the_how_to_on_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    _followed(HOW_TO, slurm, tmp_path)
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert slurm.is_free()
