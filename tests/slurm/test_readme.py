"""The README's quick start on Slurm, and the how-to's, followed literally."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, blocks, in_a_shell
from tests.slurm.cluster import SlurmCluster
from tests.slurm.far import HOST, Account, missing

HOW_TOS = ROOT / "docs" / "how-to"
PARTITIONS = {"short": "n[1-2]", "long": "n[3-4]", "spot": "n[5-6]"}
SHOWN_HOST = "login.west.example"
PROFILE = """
export SCRATCH=$HOME/scratch SLURM_CONF={conf}
module() {{ :; }}; export -f module
"""
"""What the login shells of a site say; programs are where they are already."""


def _followed(
    page: Path, env: dict[str, str], folder: Path, least: int = 4, until: str = "\0"
) -> str:
    """Write the workflow that the page shows, and type what it says to a shell, up to these words;
    what was printed."""
    shown = [block for block in blocks(page) if block.text in page.read_text().partition(until)[0]]
    for block in shown:
        if block.file:
            block.set_up(folder)
    commands = [block.text for block in shown if block.language == "sh"]
    assert sum(text.count("windrow ") for text in commands) >= least
    return "".join(in_a_shell(text, folder, env) for text in commands)


def test_the_quick_start_on_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    said = _followed(ROOT / "README.md", slurm.env, tmp_path)
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert "sbatch" in said  # the plan showed the exact command
    assert "complete" in said
    assert (tmp_path / ".windrow/runs/squares-1/report.html").is_file()
    assert slurm.is_free()


def test_the_how_to_on_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    """What its console shows, with Slurm as the usual place of runs."""
    shown = list(blocks(HOW_TOS / "run-a-workflow.md"))
    for block in shown:
        if block.file:
            block.set_up(tmp_path)
    lines = [
        line for block in shown if block.language == "console" for line in block.text.splitlines()
    ]
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ windrow ")]
    assert len(typed) >= 7
    said = [in_a_shell(line, tmp_path, slurm.env | {"WINDROW_ON": "slurm"}) for line in typed]
    assert "slurm" in said[0]
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert slurm.is_free()


@pytest.fixture
def partitions(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """With the names that the page gives them."""
    slurm.clear()
    for name, nodes in PARTITIONS.items():
        slurm.run("scontrol", "create", f"partition={name}", f"nodes={nodes}", "state=up")
    yield slurm
    slurm.clear()
    for name in PARTITIONS:
        slurm.run("scontrol", "delete", f"partition={name}")


@pytest.mark.slow
def test_the_how_to_on_partitions(partitions: SlurmCluster, tmp_path: Path) -> None:
    page = HOW_TOS / "several-clusters.md"
    said = _followed(page, partitions.env, tmp_path, 3, "## Sites in windrow.toml")
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert all(name in said for name in PARTITIONS)
    assert "complete" in said


@pytest.mark.slow
def test_the_how_to_on_clusters_over_ssh(slurm: SlurmCluster, tmp_path: Path) -> None:
    """Every command of it, from the first login on, by the name of the host that it shows."""
    if reason := missing():
        pytest.skip(f"no second account: {reason}")
    slurm.clear()
    with Account(profile=PROFILE.format(conf=slurm.env["SLURM_CONF"])) as account:
        config = account.folder / "config"
        config.write_text(config.read_text().replace(f"Host {HOST}", f"Host {HOST} {SHOWN_HOST}"))
        env = {name: value for name, value in slurm.env.items() if name != "SLURM_CONF"}
        said = _followed(HOW_TOS / "clusters-over-ssh.md", {**env, **account.env}, tmp_path, 3)
    assert said.startswith("fine\n")
    assert said.count("complete") == 2
    assert (tmp_path / "sum").read_text().split() == ["204"]
    assert slurm.is_free()
