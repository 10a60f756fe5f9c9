"""Unmodified Snakefiles on a real Slurm, as an ordinary user: the right files by just as many
executions as are needed, on whole nodes and on parts of them.

`WINDROW_FULL=1` also runs all tests of the plugin there, those that Snakemake has for executors
among them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.real.works import IS_FULL
from tests.slurm.cluster import SlurmCluster
from tests.slurm.home import REFUSAL, Home, refusing

pytest.importorskip("snakemake", reason="no Snakemake is installed")
pytest.importorskip("snakemake_executor_plugin_windrow", reason="no Snakemake that has the plugin")

PLUGIN = Path(__file__).parents[2] / "plugins" / "snakemake"
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


def settings(site: str) -> str:
    """The text of windrow.toml."""
    return f'[queues.slurm]\npartition = "{SITES[site]}"\n'


@pytest.mark.slow
@pytest.mark.parametrize("site", SITES if IS_FULL else ["parts"])
def test_all_that_a_snakefile_can_say_runs_as_often_as_it_must(
    site: str, shared: SlurmCluster, home: Home
) -> None:
    """Checkpoint, local rule, group, retries with more memory, a limit, and a job that fails."""
    room = home.room()
    (room / "windrow.toml").write_text(settings(site))
    (room / "Snakefile").write_text(EVERYTHING)
    given = ("--executor", "windrow", "--windrow-on", "slurm", "-j", "50", "-k")
    limited = (
        "--default-resources",
        "slurm_account=x",
        "--resources",
        "downloads=1",
        "--",
        "all",
        "bad",
    )
    done = home.run(shared, room, "-m", "snakemake", *given, *limited)
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
def test_what_slurm_takes_no_job_of_fails(shared: SlurmCluster, home: Home) -> None:
    """Snakemake ends with the words of Slurm, and does not wait for ever."""
    room = home.room()
    (room / "Snakefile").write_text("rule one:\n    output: 'one'\n    shell: 'touch {output}'\n")
    given = ("--executor", "windrow", "--windrow-on", "slurm", "-j", "1")
    done = home.run(
        shared, room, "-m", "snakemake", *given, more=refusing(room, shared.env["PATH"])
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert REFUSAL in said


@pytest.mark.slow
@pytest.mark.skipif(not IS_FULL, reason="takes minutes: WINDROW_FULL=1, or make prove")
@pytest.mark.parametrize("site", SITES)
def test_the_tests_of_the_plugin_pass_there(site: str, shared: SlurmCluster, home: Home) -> None:
    room = home.room()
    (room / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    done = home.run(
        shared,
        room,
        *("-m", "pytest", "-c", f"{room}/pytest.ini", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *(f"--basetemp={room}/made", f"--rootdir={PLUGIN}", str(PLUGIN / "tests")),
        more={"WINDROW_TEST_ON": "slurm", "WINDROW_TEST_SETTINGS": settings(site)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
