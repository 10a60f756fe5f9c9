"""Unmodified Snakefiles on a real Slurm, as an ordinary user: the right files by just as many
executions as are needed, on whole nodes and on parts of them.

`WINDROW_FULL=1` also runs all tests of the plugin there, those that Snakemake has for executors
among them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.other_user import as_nobody, python_for_all, python_path
from tests.real.works import IS_FULL, private
from tests.slurm.cluster import SlurmCluster
from tests.slurm.shared import USER
from tests.slurm.test_slurm_sites import copy_compiled

pytest.importorskip("snakemake", reason="no Snakemake is installed")
pytest.importorskip("snakemake_executor_plugin_windrow", reason="no Snakemake that has the plugin")

PLUGIN = Path(__file__).parents[2] / "plugins" / "snakemake"
SHAPES = PLUGIN / "tests" / "test_shapes.py"
SITES = {"parts": "main", "whole": "whole"}
"""Partitions of the shared site."""
EVERYTHING = """
localrules: middle
rule all:
    input: "all.txt", "late", "b/1", "b/2", expand("got/{i}", i=range(3))
checkpoint parts:
    output: directory("parts")
    shell: "echo parts >> ran; mkdir parts; for i in 1 2; do echo $i > parts/$i.txt; done"
rule double:
    input: "parts/{i}.txt"
    output: "double/{i}.txt"
    shell: "echo double >> ran; cat {input} {input} > {output}"
def found(wildcards):
    folder = checkpoints.parts.get().output[0]
    return expand("double/{i}.txt", i=glob_wildcards(folder + "/{i}.txt").i)
rule aggregate:
    input: found
    output: "all.txt"
    shell: "echo aggregate >> ran; cat {input} | sort > {output}"
rule flaky:
    output: "flaky"
    retries: 2
    resources: mem_mb=lambda wildcards, attempt: 100 * attempt
    shell: "echo flaky >> ran; echo {resources.mem_mb} > {output}; test $(grep -c flaky ran) = 3"
rule middle:
    input: "flaky"
    output: "middle"
    shell: "echo middle >> ran; cp {input} {output}"
rule late:
    input: "middle"
    output: "late"
    shell: "echo late >> ran; cp {input} {output}"
rule first:
    output: temp("a/{i}")
    group: "both"
    shell: "echo first >> ran; echo {wildcards.i} > {output}"
rule second:
    input: "a/{i}"
    output: "b/{i}"
    group: "both"
    shell: "echo second >> ran; cp {input} {output}"
rule download:
    output: "got/{i}"
    resources: downloads=1
    shell: "echo download >> ran; mkdir one; sleep 0.3; rmdir one; touch {output}"
rule bad:
    output: "bad"
    log: "bad.log"
    shell: "echo bad >> ran; echo of the rule > {log}; exit 7"
"""
TIMES = Counter(
    parts=1, double=2, aggregate=1, flaky=3, middle=1, late=1, first=2, second=2, download=3, bad=1
)


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder of the ordinary user; not in one of pytest, where another user may not look."""
    folder = Path(tempfile.mkdtemp(prefix="windrow-snakemake-", dir="/tmp"))
    copy_compiled(folder / "cache")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_user(
    slurm: SlurmCluster, room: Path, site: str, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with these words in the room, as the ordinary user of the site."""
    env = {**slurm.env, **python_path(), **private(room), "HOME": str(room), "USER": USER}
    env |= {"WINDROW_CACHE": str(room / "cache"), "WINDROW_TEST_ON": "slurm"}
    settings = f'[queues.slurm]\npartition = "{SITES[site]}"\n'
    (room / "windrow.toml").write_text(settings)
    before, python = [], python_for_all(slurm.env, "snakemake, msgspec, windrow")
    if os.getuid() == 0:
        subprocess.run(["chown", "-R", USER, room], check=True)
        before = as_nobody()
    return subprocess.run(
        [*before, python, "-m", *words],
        cwd=room,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.slow
@pytest.mark.parametrize("site", SITES if IS_FULL else ["parts"])
def test_all_that_a_snakefile_can_say_runs_as_often_as_it_must(
    site: str, shared: SlurmCluster, room: Path
) -> None:
    """Checkpoint, local rule, group, retries with more memory, a limit, and a job that fails."""
    (room / "Snakefile").write_text(EVERYTHING)
    given = ("--executor", "windrow", "--windrow-on", "slurm", "-j", "50", "-k")
    done = as_user(
        shared, room, site, "snakemake", *given, "--resources", "downloads=1", "--", "all", "bad"
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert Counter((room / "ran").read_text().split()) == TIMES, said
    assert (room / "all.txt").read_text() == "1\n1\n2\n2\n"
    assert (room / "late").read_text() == "300\n"
    assert not list(room.glob("a/*"))
    assert "bad.log:\nof the rule" in said
    assert "windrow logs bad" in said
    shared.wait(lambda: not shared.run("squeue", "-h"), "an end of all jobs", "slurmctld")


@pytest.mark.slow
@pytest.mark.skipif(not IS_FULL, reason="takes minutes: WINDROW_FULL=1, or make prove")
@pytest.mark.parametrize("site", SITES)
def test_the_tests_of_the_plugin_pass_there(site: str, shared: SlurmCluster, room: Path) -> None:
    settings = (room / "pytest.ini").absolute()
    settings.write_text("[pytest]\nmarkers = slow\n")
    done = as_user(
        shared,
        room,
        site,
        *("pytest", "-c", str(settings), "-p", "no:cacheprovider", "-p", "no:xdist"),
        *(f"--basetemp={room}/made", f"--rootdir={PLUGIN}", str(PLUGIN / "tests")),
    )
    assert done.returncode == 0, done.stdout + done.stderr
